"""A model as MJCF, for MuJoCo: its loops become equality constraints where MuJoCo has them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np
from scipy.spatial.transform import Rotation

from bulletbridge.bullet.xml_file import write_xml
from bulletbridge.constraints.force_elements import (
    Bushing,
    LinePoint,
    Pulley,
    Round,
    Spring,
    Tendon,
    Wrench,
    points_of,
)
from bulletbridge.constraints.joint_geometry import joint_axis
from bulletbridge.constraints.joints import Coupling, Distance, Frame, JointModel, LoopJoint
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.mechanism.model import WORLD, Mechanism
from bulletbridge.models.formats.robot import (
    Inertial,
    Joint,
    Link,
    Pose,
    Robot,
    Scene,
    Shape,
    free_name,
    joined,
    pose_of,
    share_of_weight,
    told,
)
from bulletbridge.models.formats.urdf_scene import scene_of
from bulletbridge.models.formats.urdf_text import exact, principal
from bulletbridge.models.formats.written import Written
from bulletbridge.models.load import load
from bulletbridge.models.model_spec import FileConstraint, ModelSpec

AT_START = -1.0, -1.0
"""Ends of a spring's rest by which MuJoCo means the length at the start."""
KINDS = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball"}
FEATHER = 1e-14
"""Mass [kg] and moments [kg m²] of a link that has none and moves: MuJoCo asks for 1e-15."""
REST = 1e-12
"""Rates that count as none [m/s or rad/s]."""
APART = 0.1
"""Distance of points that hold an axis or a plane [m]."""
FAR = 1.0
"""Of the two points, on either side of a plane, that a point on it is equally far from [m]."""
HERE, X, Y, Z = np.vstack([np.zeros(3), np.eye(3)])
PINNED = {
    JointModel.BALL: (HERE,),
    JointModel.UNIVERSAL: (HERE,),
    JointModel.REVOLUTE: (HERE, APART * Z),
}
"""Points that both frames share, in axes whose z is the joint's."""
LINE = (HERE, X), (HERE, Y)
AXIS = *LINE, (APART * Z, X), (APART * Z, Y)
PLANES = {
    JointModel.UNIVERSAL: ((APART * Z, Z),),
    JointModel.POINT_ON_PLANE: ((HERE, Z),),
    JointModel.POINT_ON_LINE: LINE,
    JointModel.PLANAR: ((HERE, Z), (APART * X, Z), (APART * Y, Z)),
    JointModel.CYLINDRICAL: AXIS,
    JointModel.PRISMATIC: (*AXIS, (APART * X, Y)),
}
"""Points of b that stay on planes of a, by the planes' normals."""
SEEN = {"contype": "0", "conaffinity": "0", "group": "2"}
TOUCHED = {"contype": "0", "conaffinity": "1", "group": "3"}
"""Geoms touch what is not of the robot, as in Bullet, but not each other."""
MESHES = (".stl", ".obj", ".msh")


def write_mjcf(spec: ModelSpec, path: Path) -> Written:
    """Write a model as MJCF.

    Raises:
        ModelError: A URDF of the model cannot be read, or the file cannot be written.
    """
    scene = scene_of(spec)
    file = path.with_name(f"{path.name}.xml")
    writer = _Writer(scene, file)
    root = writer.root
    _start(writer, spec)
    notes = [*spec.notes, *scene.notes]
    write_xml(root, file, [f"converted from {spec.path.name} by bulletbridge", *notes])
    return Written((file,), tuple(scene.notes))


class _Writer:
    """The elements of a file under construction.

    Args:
        scene: The model; notes are added to it.
        file: Where it will be; meshes are named relative to it.
    """

    def __init__(self, scene: Scene, file: Path) -> None:
        self.scene, self.file = scene, file
        self.root = Xml.Element("mujoco", model=scene.name)
        Xml.SubElement(self.root, "compiler", angle="radian", autolimits="true")
        Xml.SubElement(self.root, "option", gravity=exact(scene.gravity))
        self.assets = Xml.SubElement(self.root, "asset")
        self.world = Xml.SubElement(self.root, "worldbody")
        self.tendons = Xml.SubElement(self.root, "tendon")
        self.equality = Xml.SubElement(self.root, "equality")
        self.actuators = Xml.SubElement(self.root, "actuator")
        self.bodies: dict[str, Xml.Element] = {WORLD: self.world}
        self.zero: dict[str, Pose] = {WORLD: Pose()}
        self.order: list[str] = []
        self.meshes: dict[tuple[str, tuple[float, ...]], str] = {}
        self.lost_meshes: list[str] = []
        self.flat: list[str] = []
        self.zeroed: list[str] = []
        self.feathers: list[str] = []
        self.used = self._named_links()
        for robot in scene.robots:
            self._robot(robot)
        for robot in scene.scenery:
            self._scenery(robot)
        for constraint in scene.loops:
            self._constraint(constraint)
        for element in scene.elements:
            self._element(element)
        scene.lose_base_damping()
        lost = [f"'{wrench.name}'" for wrench in scene.wrenches if not self._lift(wrench)]
        scene.notes += told({"wrenches are left out: {}": lost})
        self._actuate()
        self._finish()

    def _named_links(self) -> set[str]:
        """Links that loops and springs name; these stay bodies."""
        joined = [*self.scene.loops, *self.scene.elements]
        pairs = [(x.a, x.b) for x in joined if not isinstance(x, Coupling | Tendon)]
        pairs += [points_of(x) for x in joined if isinstance(x, Spring)]
        return {end.link for pair in pairs for end in pair}

    def _robot(self, robot: Robot) -> None:
        prefix = self.scene.prefix(robot)
        standing = robot.fixed and robot.root == WORLD and not _where(robot.place)
        below: dict[str, list[Joint]] = {}
        for joint in robot.joints.values():
            below.setdefault(joint.parent, []).append(joint)
        root = prefix + robot.root
        self.zero[root] = robot.place
        if standing:
            self.bodies[root] = self.world
            self._shapes(self.world, robot.links[robot.root])
        else:
            body = self._body(self.world, root, robot.place)
            if not robot.fixed:
                name = f"{prefix}base"
                Xml.SubElement(body, "freejoint", name=name)
                self.order.append(name)
            self._fill(
                body,
                robot.links[robot.root],
                not robot.fixed and not _held(robot, robot.root, below),
            )
        todo = [(joint, self.bodies[root], Pose(), ()) for joint in below.get(robot.root, [])[::-1]]
        waiting: list[tuple[Joint, Xml.Element, Pose, tuple[tuple[Joint, Pose], ...]]] = [*todo]
        while waiting:
            joint, parent, place, before = waiting.pop()
            link = robot.links[joint.child]
            name = prefix + link.name
            self.zero[name] = self.zero[prefix + joint.parent] @ joint.place
            here = place @ joint.place
            mine = (*((each, at @ joint.place) for each, at in before), (joint, Pose()))
            children = below.get(link.name, [])
            if self._melts(link, name, joint, children):
                # MuJoCo wants several joints in one body in the place of links without mass
                waiting.append((children[0], parent, here, mine))
                continue
            body = self._body(parent, name, here)
            for each, at in mine:
                self._joint(body, prefix, each, at.inverse)
            self._fill(body, link, joint.kind != "fixed" and not _held(robot, link.name, below))
            waiting += [(child, body, Pose(), ()) for child in children[::-1]]

    def _melts(self, link: Link, name: str, joint: Joint, children: list[Joint]) -> bool:
        """Whether a link is nothing but a step between two joints."""
        bare = link.inertial is None and not link.visuals and not link.collisions
        simple = ("revolute", "prismatic")
        return (
            bare
            and name not in self.used
            and joint.kind in simple
            and len(children) == 1
            and children[0].kind in simple
        )

    def _body(self, parent: Xml.Element, name: str, place: Pose) -> Xml.Element:
        body = Xml.SubElement(parent, "body", {"name": name} | _where(place))
        self.bodies[name] = body
        return body

    def _joint(self, body: Xml.Element, prefix: str, joint: Joint, place: Pose) -> None:
        """A joint whose frame is at ``place`` in the body, at zero."""
        if joint.kind == "fixed":
            return
        name = prefix + joint.name
        said = {"name": name, "type": KINDS[joint.kind], "pos": exact(place.p)}
        if joint.kind != "spherical":
            said["axis"] = exact(place.R @ joint.axis)
        if joint.limited:
            said["range"] = exact(np.clip(joint.limits, -1e9, 1e9))
        values = {
            "damping": joint.damping,
            "frictionloss": joint.friction,
            "armature": joint.armature,
            "stiffness": joint.stiffness,
            "springref": joint.rest if joint.stiffness else 0.0,
        }
        said |= {key: exact((value,)) for key, value in values.items() if value}
        Xml.SubElement(body, "joint", said)
        self.order.append(name)

    def _fill(self, body: Xml.Element, link: Link, alone: bool) -> None:
        """Mass and shapes; a link that moves alone needs some mass and inertia."""
        inertial = link.inertial
        if alone:
            self.feathers.append(link.name)
            own = inertial or Inertial(0.0, np.zeros(3), np.zeros((3, 3)))
            inertial = Inertial(own.mass or FEATHER, own.com, own.J + FEATHER * np.eye(3))
        if inertial is not None and not self._weigh(body, inertial):
            self.zeroed.append(link.name)
        self._shapes(body, link)

    def _weigh(self, body: Xml.Element, inertial: Inertial) -> bool:
        """Give a body its mass and inertia; whether any body can have it, else it is zero."""
        axes, moments = principal(inertial.J)
        possible = min(moments.min(), moments.sum() - 2.0 * moments.max()) >= 0.0
        if not possible:
            moments = np.zeros(3)
        order = np.argsort(moments)[::-1]  # as MuJoCo has it, so that it changes nothing
        axes = axes[:, order] * np.array([1.0, 1.0, np.linalg.det(axes[:, order])])
        place = _where(Pose(axes, inertial.com))
        numbers = {"mass": exact((inertial.mass,)), "diaginertia": exact(moments[order])}
        Xml.SubElement(body, "inertial", {"pos": "0 0 0"} | place | numbers)
        return possible

    def _shapes(self, body: Xml.Element, link: Link) -> None:
        for kind, shapes in ((SEEN, link.visuals), (TOUCHED, link.collisions)):
            for shape in shapes:
                if min(shape.size, default=1.0) <= 0.0 and shape.kind != "mesh":
                    self.flat.append(link.name)
                    continue
                said = self._geom(shape)
                if not said:
                    self.lost_meshes.append(link.name)
                    continue
                colour = {"rgba": exact(shape.rgba)} if len(shape.rgba) == 4 else {}
                contact = {"group": "3"} if kind is TOUCHED and body is self.world else kind
                given = said | _where(shape.place) | {"mass": "0"} | contact | colour
                if link.friction is not None and kind is TOUCHED:
                    given["friction"] = exact((link.friction**2,))
                Xml.SubElement(body, "geom", given)

    def _scenery(self, robot: Robot) -> None:
        """What stands in the world, as geoms of it; a plane has its name."""
        link = robot.links[robot.root]
        for shapes in (link.visuals, link.collisions):
            shapes[:] = [replace(shape, place=robot.place @ shape.place) for shape in shapes]
        self._shapes(self.world, link)
        if any(shape.kind == "plane" for shape in link.collisions):
            self.world[-1].set("name", robot.name)

    def _geom(self, shape: Shape) -> dict[str, str]:
        """Type and size of a geom; nothing for a mesh that MuJoCo cannot read."""
        if shape.kind == "box":
            return {"type": "box", "size": exact(np.array(shape.size) / 2.0)}
        if shape.kind == "plane":
            return {"type": "plane", "size": exact((0.0, 0.0, 1.0))}
        if shape.kind != "mesh":
            size = (shape.size[0], *(length / 2.0 for length in shape.size[1:]))
            return {"type": shape.kind, "size": exact(size)}
        file = Path(shape.mesh)
        if file.suffix.lower() not in MESHES or not file.is_file():
            return {}
        key = shape.mesh, shape.size
        if key not in self.meshes:
            name = free_name(file.stem, self.meshes.values())
            self.meshes[key] = name
            place = Path(os.path.relpath(file, self.file.parent)).as_posix()
            scale = exact(shape.size)
            # no mass is taken from it, and a shell may be flat or open
            said = {"name": name, "file": place, "scale": scale, "inertia": "shell"}
            Xml.SubElement(self.assets, "mesh", said)
        return {"type": "mesh", "mesh": self.meshes[key]}

    def _site(self, frame: Frame, name: str) -> str:
        place = _where(pose_of(frame.xyz, frame.rpy))
        Xml.SubElement(self.bodies[frame.link], "site", {"name": name} | place)
        return name

    def _sites(self, a: Frame, b: Frame, name: str) -> dict[str, str]:
        return {"site1": self._site(a, f"{name}_a"), "site2": self._site(b, f"{name}_b")}

    def _constraint(self, constraint: FileConstraint) -> None:
        name, notes = constraint.name, self.scene.notes
        if constraint.motion is not None or constraint.max_force is not None:
            notes.append(f"motion or force limit of '{name}' is left out")
        if isinstance(constraint, Coupling):
            self._coupling(constraint)
        elif isinstance(constraint, Distance):
            self._line(constraint, (), {})
            apart = self._at_zero(constraint.b).p - self._at_zero(constraint.a).p
            poly = exact((constraint.length - float(np.linalg.norm(apart)), 1.0, 0.0, 0.0, 0.0))
            Xml.SubElement(self.equality, "tendon", name=name, tendon1=name, polycoef=poly)
        else:
            self._loop(constraint)

    def _loop(self, loop: LoopJoint) -> None:
        name, notes = loop.name, self.scene.notes
        if loop.turn or loop.travel:
            notes.append(f"what acts along the free motion of '{name}' is left out")
        if loop.model is JointModel.WELD:
            sites = self._sites(loop.a, loop.b, name)
            Xml.SubElement(self.equality, "weld", {"name": name} | sites)
            return
        if loop.model is JointModel.POINT_ON_SPHERE:
            self._constraint(Distance(name, loop.a, loop.b, loop.radius))
            return
        pinned, planes = PINNED.get(loop.model, ()), PLANES.get(loop.model, ())
        if not pinned and not planes:
            notes.append(f"loop '{name}' is LEFT OUT: MuJoCo has no {loop.model.value} constraint")
            return
        a, b = (
            pose_of(frame.xyz, frame.rpy) @ Pose(frame_with_z(joint_axis(loop, end)))
            for frame, end in ((loop.a, "a"), (loop.b, "b"))
        )
        for k, point in enumerate(pinned, 1):
            part = name if len(pinned) == 1 else f"{name}_{k}"
            at = Pose(p=point)
            sites = self._sites((a @ at).on(loop.a.link), (b @ at).on(loop.b.link), part)
            Xml.SubElement(self.equality, "connect", {"name": part} | sites)
        for k, (point, normal) in enumerate(planes, 1):
            middle = loop.radius * normal
            ends = [(a @ Pose(p=middle + side * normal)).on(loop.a.link) for side in (FAR, -FAR)]
            self._on_plane(f"{name}_plane_{k}", ends, (b @ Pose(p=point)).on(loop.b.link))
        if planes:
            notes.append(
                f"{loop.model.value} loop '{name}' is points on planes, each by two tendons of one"
                " length"
            )
        elif len(pinned) > 1:
            notes.append(f"revolute loop '{name}' is two points of its axis, as MuJoCo advises")

    def _on_plane(self, name: str, ends: Sequence[Frame], point: Frame) -> None:
        """Hold a point to the plane between two others: it is as far from one as from the other."""
        shared = self._site(point, name)
        for k, end in enumerate(ends, 1):
            tendon = Xml.SubElement(self.tendons, "spatial", name=f"{name}_{k}", group="4")
            Xml.SubElement(tendon, "site", site=self._site(end, f"{name}_{k}"))
            Xml.SubElement(tendon, "site", site=shared)
        at = self._at_zero(point).p
        first, second = (float(np.linalg.norm(at - self._at_zero(end).p)) for end in ends)
        said = {"name": name, "tendon1": f"{name}_1", "tendon2": f"{name}_2"}
        poly = exact((second - first, 1.0, 0.0, 0.0, 0.0))
        Xml.SubElement(self.equality, "tendon", said | {"polycoef": poly})

    def _coupling(self, coupling: Coupling) -> None:
        """One or two joints by ``<joint>``, others by a tendon of constant length.

        ``<joint>`` has the factor one for its first joint, so that other rows would be scaled.
        """
        name, pairs = coupling.name, list(coupling.coefficients.items())
        # the first is linear
        pairs.sort(key=lambda pair: (bool(coupling.higher.get(pair[0])), pair[1] != 1.0))
        (first, c), *others = pairs
        whole = c == 1.0 or bool(coupling.higher)
        if len(pairs) <= 2 and whole and not coupling.higher.get(first):
            factors = [-x / c for other, _ in others for x in coupling.polynomial(other)]
            said = {"name": name, "joint1": first}
            said |= {"joint2": others[0][0]} if others else {}
            poly = exact((coupling.offset / c, *factors, *[0.0] * (4 - len(factors))))
            Xml.SubElement(self.equality, "joint", said | {"polycoef": poly})
            return
        if coupling.higher:
            self.scene.notes.append(
                f"coupling '{name}' is LEFT OUT: MuJoCo has one polynomial of one joint"
            )
            return
        self._sum(name, dict(pairs))
        poly = exact((coupling.offset, 1.0, 0.0, 0.0, 0.0))
        Xml.SubElement(self.equality, "tendon", name=name, tendon1=name, polycoef=poly)

    def _sum(
        self, name: str, factors: Mapping[str, float], given: dict[str, str] | None = None
    ) -> None:
        """A tendon of fixed type."""
        tendon = Xml.SubElement(self.tendons, "fixed", {"name": name} | (given or {}))
        for joint, factor in factors.items():
            Xml.SubElement(tendon, "joint", joint=joint, coef=exact((factor,)))

    def _line(
        self, spring: Spring | Distance, between: Sequence[LinePoint], given: dict[str, str]
    ) -> None:
        """A tendon from a to b of something, and what it goes through, round or over on the way."""
        name = spring.name
        line = Xml.SubElement(self.tendons, "spatial", {"name": name} | given)
        Xml.SubElement(line, "site", site=self._site(spring.a, f"{name}_a"))
        for k, point in enumerate(between, 1):
            called = f"{name}_{k}"
            if isinstance(point, Pulley):
                Xml.SubElement(line, "pulley", divisor=exact((point.divisor,)))
            elif isinstance(point, Frame):
                Xml.SubElement(line, "site", site=self._site(point, called))
            else:
                Xml.SubElement(line, "geom", self._round(point, called))
        Xml.SubElement(line, "site", site=self._site(spring.b, f"{name}_b"))

    def _round(self, point: Round, name: str) -> dict[str, str]:
        """Write what a line goes round, which touches nothing; how the line names it."""
        link, pose = point.frame.link, pose_of(point.frame.xyz, point.frame.rpy)
        kind = "cylinder" if point.cylinder else "sphere"
        size = (point.radius, point.radius) if point.cylinder else (point.radius,)
        shape = {"name": name, "type": kind, "size": exact(size), "mass": "0"}
        shape |= {"contype": "0", "conaffinity": "0"} | _where(pose)
        Xml.SubElement(self.bodies[link], "geom", shape)
        if point.side is None:
            return {"geom": name}
        at = (pose @ pose_of(point.side, (0.0, 0.0, 0.0))).on(link)
        return {"geom": name, "sidesite": self._site(at, f"{name}_side")}

    def _element(self, element: object) -> None:
        if isinstance(element, Spring) and not element.force:
            ends = element.length - element.slack, element.length + element.slack
            given = self._stretched(element, ends)
            self._line(element, element.via, given)
            self._servo(element)
        elif isinstance(element, Tendon) and not element.force:
            self._tendon(element)
        elif isinstance(element, Bushing) and (self._on_ball(element) or self._on_free(element)):
            return
        else:
            name = getattr(element, "name", "")
            self.scene.notes.append(f"force element '{name}' is left out: MuJoCo has none such")

    def _lift(self, wrench: Wrench) -> bool:
        """Write a wrench as gravity compensation, if it is a share of its body's weight."""
        body = self.bodies.get(wrench.frame.link)
        inertial = None if body is None else body.find("inertial")
        if body is None or inertial is None:
            return False
        mass = float(inertial.get("mass", "0"))
        com = np.array(inertial.get("pos", "0 0 0").split(), float)
        share = share_of_weight(wrench, mass, com, self.scene.gravity)
        if share is None:
            return self._on_rotor(body, inertial, wrench)
        body.set("gravcomp", exact((share + float(body.get("gravcomp", "0")),)))
        return True

    def _on_rotor(self, body: Xml.Element, written: Xml.Element, wrench: Wrench) -> bool:
        """Write it as armature of a free joint: mass and inertia at the body without weight."""
        joint = body.find("freejoint")
        joint = body.find("joint[@type='free']") if joint is None else joint
        robot = next(
            x for x in self.scene.robots if wrench.frame.link.startswith(self.scene.prefix(x))
        )
        given, gravity = robot.links[robot.root].inertial, np.array(self.scene.gravity)
        placed = any(wrench.frame.xyz) or not gravity.any()
        if joint is None or given is None or placed or not wrench.is_dead_load:
            return False
        force = np.array(wrench.force, float)
        armature = -float(force @ gravity / (gravity @ gravity))
        if (
            not 0.0 < armature < given.mass
            or np.abs(force + armature * gravity).max() > 1e-12 * armature
        ):
            return False
        rotor = Inertial(-armature, np.zeros(3), -armature * np.eye(3))
        if not self._weigh(body, joined([given, rotor])):
            body.remove(body.findall("inertial")[-1])
            return False
        body.remove(written)
        joint.tag = "joint"
        joint.attrib.update(type="free", armature=exact((armature,)))
        return True

    def _tendon(self, tendon: Tendon) -> None:
        """Spring, limits and friction of a sum of joint positions, and a servo along it."""
        ends = tendon.rest - tendon.slack, tendon.rest + tendon.slack
        self._sum(tendon.name, tendon.coefficients, self._stretched(tendon, ends))
        self._servo(tendon)

    def _stretched(self, element: Spring | Tendon, ends: tuple[float, float]) -> dict[str, str]:
        """What acts along a tendon but for a servo; within its ends the spring is slack."""
        given: dict[str, str] = {}
        if element.springs:
            if ends == AT_START:
                ends = ends[0], float(np.nextafter(ends[1], 0.0))
            values = {"stiffness": element.stiffness, "damping": element.damping}
            given = {"springlength": exact(ends)} | {k: exact((v,)) for k, v in values.items()}
        if element.limits:
            given |= {"limited": "true", "range": exact(element.limits)}
        if element.friction:
            given["frictionloss"] = exact((element.friction,))
        return given

    def _servo(self, element: Spring | Tendon) -> None:
        """The motor along a tendon, if it is a servo."""
        motor = element.motor
        if motor is None:
            return
        if not (motor.stiffness or motor.damping):
            self.scene.notes.append(
                f"motor of '{element.name}' is left out: MuJoCo has servos only"
            )
            return
        least = -motor.force if motor.least is None else motor.least
        at = motor.stiffness * (motor.position or 0.0) + motor.damping * motor.velocity
        said = {
            "name": element.name,
            "tendon": element.name,
            "biastype": "affine",
            "gainprm": "1",
            "biasprm": exact((at, -motor.stiffness, -motor.damping)),
            "forcelimited": "true",
            "forcerange": exact((least, motor.force)),
        }
        Xml.SubElement(self.actuators, "general", said)

    def _on_ball(self, spring: Bushing) -> bool:
        """Give a ball joint its spring, if this is one and no more."""
        found = [each for each in self.world.iter("joint") if each.get("name") == spring.name]
        alike = len(set(spring.turning_stiffness)) == 1
        if any((*spring.stiffness, *spring.damping, *spring.turning_damping)) or not alike:
            return False
        for joint in found:
            if joint.get("type") == "ball":
                joint.set("stiffness", exact((spring.turning_stiffness[0],)))
                return True
        return False

    def _on_free(self, spring: Bushing) -> bool:
        """Give a free joint its spring and damper, if this is such and no more.

        MuJoCo's act alike along and about all axes, and its spring rests where the body is drawn.
        """
        springs = {*spring.stiffness, *spring.turning_stiffness}
        for robot in self.scene.robots:
            base, root = f"{self.scene.prefix(robot)}base", self.scene.prefix(robot) + robot.root
            dampers = {*spring.damping, self.scene.base_damping.get(base, 0.0)}
            alike = len(springs) == len(dampers) == 1 and not any(spring.turning_damping)
            if robot.fixed or not alike or (spring.a.link, spring.b.link) != (WORLD, root):
                continue
            off = self._at_zero(spring.a).inverse @ self._at_zero(spring.b)
            own = pose_of(spring.b.xyz, spring.b.rpy)
            if not _is_near(own) or (any(springs) and not _is_near(off)):
                return False
            joint = next(each for each in self.world.iter("freejoint") if each.get("name") == base)
            joint.tag, (stiffness,), (damping,) = "joint", springs, dampers
            said = {"type": "free", "stiffness": exact((stiffness,)), "damping": exact((damping,))}
            joint.attrib.update(said)
            self.scene.base_damping.pop(base, None)
            return True
        return False

    def _at_zero(self, frame: Frame) -> Pose:
        return self.zero[frame.link] @ pose_of(frame.xyz, frame.rpy)

    def _actuate(self) -> None:
        joints = self.scene.joints()
        for name in self.scene.actuated:
            said = {"name": name, "joint": name}
            joint = joints.get(name)
            if joint is not None and 0.0 < joint.effort < 1e6:
                said["ctrlrange"] = exact((-joint.effort, joint.effort))
            Xml.SubElement(self.actuators, "motor", said)

    def _finish(self) -> None:
        for part in (self.assets, self.tendons, self.equality, self.actuators):
            if not len(part):
                self.root.remove(part)
        if self.lost_meshes:
            names = ", ".join(dict.fromkeys(self.lost_meshes))
            self.scene.notes.append(f"meshes of {names} are left out: MuJoCo reads STL and OBJ")
        flat = list(dict.fromkeys(self.flat))
        said = {
            "shapes of {} with a size of zero are left out: MuJoCo has none such": flat,
            "inertias that no body can have, of {}, are zero, as in Bullet": self.zeroed,
            f"{{}}: {FEATHER:g} kg and kg m² added, for MuJoCo moves nothing"
            " without": self.feathers,
        }
        self.scene.notes += told(said)


def _start(writer: _Writer, spec: ModelSpec) -> None:
    """A keyframe of the assembled start, where that is not what joints at zero give.

    Joints that move nothing get the trace of armature that they have here.
    """
    moved = spec.start_q or spec.start_guess or spec.start_v or spec.constraints
    if not (moved or writer.feathers):
        return
    with load(spec, "new") as model:
        _give_armature(writer, model.system.mechanism)
        if not moved:
            return
        q, v, joints = model.system.q, model.system.v, model.system.mechanism.joints
        positions, rates = list[float](), list[float]()
        prefix = len(spec.bodies) > 1
        for name in writer.order:
            joint = joints[name]
            own, speed = q[joint.q], v[joint.v]
            if joint.kind == "free":
                robot = next(
                    r
                    for r in writer.scene.robots
                    if name == (f"{r.name}/base" if prefix else "base")
                )
                R = Rotation.from_quat(own[3:]).as_matrix()
                arm = R @ robot.base_com()
                positions += [*(own[:3] - arm), *np.roll(own[3:], 1)]
                rates += [*(speed[3:] - np.cross(speed[:3], arm)), *(R.T @ speed[:3])]
            elif joint.kind == "spherical":
                positions += list(np.roll(own, 1))
                rates += list(speed)
            else:
                positions.append(float(own[0]))
                rates.append(float(speed[0]))
    frame = Xml.SubElement(writer.root, "keyframe")
    said = {"name": "start", "qpos": exact(tuple(positions))}
    if np.abs(rates).max(initial=0.0) > REST:
        said["qvel"] = exact(tuple(rates))
    Xml.SubElement(frame, "key", said)


def _give_armature(writer: _Writer, mechanism: Mechanism) -> None:
    """Say what armature joints have that move nothing by themselves."""
    for element in writer.world.iter("joint"):
        joint = mechanism.joints[element.get("name", "")]
        armature = float(mechanism.axes["armature"][joint.v.start])
        if armature:
            element.set("armature", exact((armature,)))


def _held(robot: Robot, link: str, below: dict[str, list[Joint]]) -> bool:
    """Whether a link, or one that is fixed to it, has mass and moments enough for MuJoCo."""
    fixed = [joint.child for joint in below.get(link, []) if joint.kind == "fixed"]
    inertial = robot.links[link].inertial
    heavy = inertial is not None and inertial.mass > FEATHER
    whole = heavy and inertial is not None and principal(inertial.J)[1].min() > FEATHER
    return whole or any(_held(robot, child, below) for child in fixed)


def _where(place: Pose) -> dict[str, str]:
    """Attributes of a place; none where it is the origin."""
    said: dict[str, str] = {}
    if place.p.any():
        said["pos"] = exact(place.p)
    if not np.array_equal(place.R, np.eye(3)):
        said["quat"] = exact(np.roll(Rotation.from_matrix(place.R).as_quat(), 1))
    return said


def _is_near(place: Pose) -> bool:
    """Whether a frame is another one but for round-off."""
    return bool(max(np.abs(place.p).max(), np.abs(place.R - np.eye(3)).max()) < 1e-12)
