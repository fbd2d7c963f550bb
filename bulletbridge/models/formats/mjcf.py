"""MJCF as a scene: MuJoCo compiles the file, and its model is read body by body."""

from pathlib import Path
from typing import Any

import numpy as np

from bulletbridge.constraints.force_elements import Bushing
from bulletbridge.constraints.joints import Coupling
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.how import AS_IT_IS, How
from bulletbridge.models.formats.mjcf_constraints import add_constraints, element_name
from bulletbridge.models.formats.mjcf_drives import add_drives
from bulletbridge.models.formats.mjcf_file import compile_mjcf, library
from bulletbridge.models.formats.mjcf_places import BASE, Places, turn
from bulletbridge.models.formats.mjcf_shapes import add_shapes
from bulletbridge.models.formats.robot import (
    UNLIMITED,
    Inertial,
    Joint,
    Link,
    Pose,
    Robot,
    Scene,
    free_name,
    joined,
    listed,
    told,
)
from bulletbridge.models.formats.urdf_text import specify
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array

FREE, BALL, SLIDE, HINGE = range(4)
"""MuJoCo's kinds of joints."""
QUARTERS = np.array([0.5, 1.0, 1.5, 2.0]) * np.pi
"""Ends of ranges in radians that people write, and would hardly write in degrees."""
ROUNDED = 5e-3
"""How far they are off when written with two digits."""
ROUND_OFF = 1e-12
"""Gaps [m or rad] that are none."""
KINDS = {BALL: "spherical", SLIDE: "prismatic", HINGE: "revolute"}
WIDTHS = {FREE: 6, BALL: 3, SLIDE: 1, HINGE: 1}
"""Rates of a joint."""


def read_mjcf(path: Path, folder: Path, how: How = AS_IT_IS) -> ModelSpec:
    """Read an MJCF file.

    Args:
        path: The file.
        folder: Where the generated URDFs and meshes go.
        how: Servos are actuators that follow the position or rate of a joint.

    Raises:
        ModelError: MuJoCo cannot read the file; something that the file needs is missing.
        MissingExtraError: MuJoCo is not installed.
    """
    spec, model, notes = compile_mjcf(path, how.inside, how.keyframe)
    places = Places(model, path.stem)
    scene = places.scene
    scene.notes += notes
    _switch_off(model, scene)
    _grow(model, places)
    places.drop_idle()
    scene.robots = list(places.robots.values())
    add_shapes(spec, model, places, path, folder)
    _ball_springs(model, places)
    _free_springs(model, places)
    scene.gravity = _gravity(model, scene)
    _lift(model, places)
    add_constraints(model, places)
    _judge_equalities(model, scene)
    _start(model, places)
    add_drives(model, places, how.servos)
    _note_rest(spec, model, scene)
    return specify(scene, path, folder)


def _switch_off(model: Any, scene: Scene) -> None:
    """Zero what the file's flags disable."""
    off = library().mjtDisableBit
    held = model.opt.disableflags & int(off.mjDSBL_CONSTRAINT)
    if held:  # equalities go where they are read
        model.opt.disableflags |= int(off.mjDSBL_FRICTIONLOSS) | int(off.mjDSBL_LIMIT)
        model.opt.disableflags |= int(off.mjDSBL_EQUALITY)
    switched = {
        "springs": (off.mjDSBL_SPRING, ("jnt_stiffness", "jnt_stiffnesspoly", "tendon_stiffness")),
        "dampers": (off.mjDSBL_DAMPER, ("dof_damping", "dof_dampingpoly", "tendon_damping")),
        "friction": (off.mjDSBL_FRICTIONLOSS, ("dof_frictionloss", "tendon_frictionloss")),
        "limits": (off.mjDSBL_LIMIT, ("jnt_limited", "tendon_limited")),
        "actuators": (off.mjDSBL_ACTUATION, ("actuator_biastype",)),
    }
    for what, (flag, fields) in switched.items():
        if not model.opt.disableflags & int(flag):
            continue
        be = "is" if what == "friction" else "are"
        scene.notes.append(f"{what} {be} switched off in <option>")
        for field in fields:
            if hasattr(model, field):
                getattr(model, field)[...] = 0


def _grow(model: Any, places: Places) -> None:
    """Links and joints of all bodies."""
    scene = places.scene
    moved, still = list[str](), list[str]()
    joint_names, body_names = set(places.joint_names), set(places.body_names)
    for body in range(1, model.nbody):
        parent = int(model.body_parentid[body])
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        at = Pose(turn(model.body_quat[body]), model.body_pos[body].copy())
        name, mocap = places.body_names[body], int(model.body_mocapid[body])
        if mocap >= 0 and model.nkey:  # where the start has it
            quat, pos = model.key_mquat[0].reshape(-1, 4), model.key_mpos[0].reshape(-1, 3)
            at = Pose(turn(quat[mocap]), pos[mocap].copy())
        if count and model.jnt_type[first] == FREE:
            called = places.robot_names[body]
            robot = Robot(called, name, False, {name: Link(name)}, {}, at)
            places.robots[called] = robot
            places.put(body, called, name, Pose())
            if model.dof_frictionloss[model.jnt_dofadr[first]]:
                scene.notes.append(f"friction of the free joint of '{name}': left out")
        else:
            robot, link, here = places.of(parent)
            frame = here @ at
            if mocap >= 0:
                still.append(name)
            if not count:
                taken = joint_names.union(robot.joints)
                joint = Joint(free_name(name, taken), "fixed", link, name, frame)
                robot.links[name] = Link(name)
                robot.joints[joint.name] = joint
                frame = Pose()
            for k in range(first, first + count):
                last = k == first + count - 1
                between = f"{places.joint_names[k]}_link"
                child = name if last else free_name(between, body_names.union(robot.links))
                joint, frame = _joint(model, k, places, link, child, frame)
                robot.links[child] = Link(child)
                robot.joints[joint.name] = joint
                link = child
            places.put(body, robot.name, name, frame)
            if np.abs(frame.p).max() > 0.0 or not np.array_equal(frame.R, np.eye(3)):
                moved.append(name)
        robot, _, here = places.of(body)
        if model.body_mass[body] > 0.0 or np.any(model.body_inertia[body]):
            own = here @ Pose(turn(model.body_iquat[body]), model.body_ipos[body].copy())
            J = (own.R * model.body_inertia[body]) @ own.R.T
            robot.links[name].inertial = Inertial(float(model.body_mass[body]), own.p, J)
        if count and model.jnt_type[first] == FREE:
            _add_armature(robot.links[name], float(model.dof_armature[model.jnt_dofadr[first]]))
    said = {
        "mocap bodies stand still ({}); a `motion` of the loop to one moves what it holds": still,
        "link frames are at the joints, not at MJCF's body frames: {}": moved,
    }
    scene.notes += told(said)


def _add_armature(link: Link, armature: float) -> None:
    """Armature of a free joint: a mass at the body's frame, and as much inertia about all axes.

    It has no weight (``_lift``).
    """
    if armature:
        more = Inertial(armature, np.zeros(3), armature * np.eye(3))
        link.inertial = joined([more] if link.inertial is None else [link.inertial, more])


def _joint(
    model: Any, k: int, places: Places, parent: str, child: str, frame: Pose
) -> tuple[Joint, Pose]:
    """One joint, and the body's frame after it in the frame of the link that it carries.

    Args:
        model: MuJoCo's.
        k: Number of the joint.
        places: What is known of names.
        parent: Link that carries it.
        child: Link that it carries.
        frame: The body's frame before this joint, in the parent link.
    """
    from scipy.spatial.transform import Rotation

    kind = int(model.jnt_type[k])
    dof, q = int(model.jnt_dofadr[k]), int(model.jnt_qposadr[k])
    anchor, axis = model.jnt_pos[k].copy(), model.jnt_axis[k].copy()
    joint = Joint(places.joint_names[k], KINDS[kind], parent, child, axis=axis)
    joint.armature = float(model.dof_armature[dof])
    joint.damping = float(model.dof_damping[dof])
    joint.friction = float(model.dof_frictionloss[dof])
    if kind == SLIDE:
        joint.place = frame
        back = Pose(np.eye(3), -axis * model.qpos0[q])
    else:
        joint.place = frame @ Pose(np.eye(3), anchor)
        R = np.eye(3)
        if kind == HINGE and model.qpos0[q]:
            R = Rotation.from_rotvec(-axis * model.qpos0[q]).as_matrix()
        back = Pose(R, -R @ anchor)
    if model.jnt_limited[k]:
        lower, upper = (float(x) for x in model.jnt_range[k])
        joint.limits = (lower, upper) if lower < upper else UNLIMITED
    if kind != BALL:
        joint.stiffness = float(model.jnt_stiffness[k])
        joint.rest = float(model.qpos_spring[q])
        if model.jnt_actfrclimited[k]:
            joint.effort = float(np.abs(model.jnt_actfrcrange[k]).max())
    return joint, back


def _ball_springs(model: Any, places: Places) -> None:
    """Springs of ball joints."""
    scene = places.scene
    for k in np.flatnonzero(model.jnt_type == BALL):
        joint, body = places.joint(int(k)), int(model.jnt_bodyid[k])
        if model.jnt_stiffness[k]:
            k_turn = float(model.jnt_stiffness[k])
            prefix = scene.prefix(places.of(body)[0])
            a, b = joint.place.on(prefix + joint.parent), Pose().on(prefix + joint.child)
            scene.elements.append(
                Bushing(places.full_joint(int(k)), a, b, turning_stiffness=(k_turn, k_turn, k_turn))
            )


def _free_springs(model: Any, places: Places) -> None:
    """Springs and dampers of free joints, between the world and the body's frame."""
    scene = places.scene
    for k in np.flatnonzero(model.jnt_type == FREE):
        body, at = int(model.jnt_bodyid[k]), int(model.jnt_qposadr[k])
        stiffness = float(model.jnt_stiffness[k])
        damping = float(model.dof_damping[model.jnt_dofadr[k]])
        if damping:
            scene.base_damping[places.full_joint(int(k))] = damping
        if stiffness or damping:
            rest: Array = model.qpos_spring[at : at + 7]
            name = element_name(scene, f"{places.body_names[body]}_free")
            a = Pose(turn(rest[3:]), rest[:3].copy()).on(WORLD)
            b = places.frame(body, Pose())
            springs, dampers = (stiffness, stiffness, stiffness), (damping, damping, damping)
            scene.elements.append(Bushing(name, a, b, springs, dampers, springs))


def _gravity(model: Any, scene: Scene) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in model.opt.gravity)
    if model.opt.disableflags & library().mjtDisableBit.mjDSBL_GRAVITY:
        scene.notes.append("gravity is switched off in <option>")
        return 0.0, 0.0, 0.0
    return x, y, z


def _lift(model: Any, places: Places) -> None:
    """What takes weight: gravity compensation at a centre of mass, and that of free armature."""
    scene = places.scene
    lifts = [
        (int(body), model.body_gravcomp[body] * model.body_mass[body], model.body_ipos[body])
        for body in np.flatnonzero(model.body_gravcomp * model.body_mass)
    ]
    free = [int(k) for k in np.flatnonzero(model.jnt_type == FREE)]
    armatures = [
        (int(model.jnt_bodyid[k]), model.dof_armature[model.jnt_dofadr[k]], np.zeros(3))
        for k in free
        if model.dof_armature[model.jnt_dofadr[k]]
    ]
    for body, mass, at in (*lifts, *armatures):
        if places.moves(body):
            scene.lift(places.point(body, at), float(mass))
    for found, what in (
        (lifts, "gravity compensation of {}: forces on them (wrenches)"),
        (armatures, "armature of free joints of {}: mass and inertia without weight (wrenches)"),
    ):
        if found:
            names = listed(places.body_names[body] for body, _, _ in found)
            scene.notes.append(what.format(names))


def _judge_equalities(model: Any, scene: Scene) -> None:
    """Whether equalities are open as drawn, and whether they leave no freedom there.

    By anchors none is open, by sites and poses some are. What has no freedom stands in MuJoCo.
    """
    mujoco = library()
    data, option = mujoco.MjData(model), model.opt
    before = option.disableflags, option.jacobian
    option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    option.jacobian = int(mujoco.mjtJacobian.mjJAC_DENSE)
    mujoco.mj_fwdPosition(model, data)
    rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    # MuJoCo's array may be longer than its rows
    J = data.efc_J[: len(rows) * model.nv].reshape(len(rows), model.nv)[rows]
    option.disableflags, option.jacobian = before
    scene.drawn_apart = bool(np.abs(data.efc_pos[rows]).max(initial=0.0) > ROUND_OFF)
    scene.allow_structure = bool(rows.any()) and int(np.linalg.matrix_rank(J)) == model.nv
    if scene.allow_structure:
        scene.notes.append("equalities leave no freedom, so it stands still (allow_structure)")


def _start(model: Any, places: Places) -> None:
    """Start at the first keyframe that is left, or else where joints are drawn, and at rest.

    Drawn beyond a limit they start at it, unless loops were closed there. Rates that loops might
    contradict, which are soft in MuJoCo, are not taken.
    """
    from scipy.spatial.transform import Rotation

    scene, q, v = places.scene, model.qpos0, np.zeros(model.nv)
    looped, beyond, resting = _looped(scene), list[str](), list[str]()
    if model.nkey:
        q, v, own = model.key_qpos[0], model.key_qvel[0], model.key(0).name
        others = [model.key(k).name for k in range(1, model.nkey) if model.key(k).name]
        first = ", the first one" if model.nkey > 1 else ""
        more = f"; keyframe=... takes another one: {listed(others)}" if others else ""
        called = f" '{own}'" if own else ""
        scene.notes.append(f"starts near keyframe{called}{first}{more}")
    for k in range(model.njnt):
        at, kind = int(model.jnt_qposadr[k]), int(model.jnt_type[k])
        dof, name = int(model.jnt_dofadr[k]), places.full_joint(k)
        rate = v[dof : dof + WIDTHS[kind]]
        if kind == FREE:
            if not model.nkey:
                continue  # where the body stands, as URDF's base pose says
            place = Pose(turn(q[at + 3 : at + 7]), q[at : at + 3].copy())
            robot = places.of(int(model.jnt_bodyid[k]))[0]
            robot.place = place
            arm = place.R @ robot.base_com()
            quat = Rotation.from_matrix(place.R).as_quat()
            # a base that loops join to something else moves as they are closed
            start = scene.start_guess if name in looped else scene.start_q
            start[name] = [float(x) for x in (*(place.p + arm), *quat)]
            turning = place.R @ rate[3:]
            rate = np.r_[turning, rate[:3] + np.cross(turning, arm)]
        elif kind == BALL:
            if model.nkey:
                quat = np.roll(q[at : at + 4], -1) / np.linalg.norm(q[at : at + 4])
                scene.start_guess[name] = [float(x) for x in quat]
        else:
            position = float(q[at])
            if not model.nkey and name not in looped:
                position = float(np.clip(position, *places.joint(k).limits))
            if position != q[at]:
                beyond.append(name)
            if position:
                scene.start_guess[name] = position
        if rate.any() and name in looped:
            resting.append(name)
        elif rate.any():
            numbers = [float(x) for x in rate]
            scene.start_v[name] = numbers if len(numbers) > 1 else numbers[0]
    said = {
        "rates of a keyframe are left out for joints in loops, which start at rest: {}": resting,
        "start at a limit, beyond which the file draws them and names no keyframe: {}": beyond,
    }
    scene.notes += told(said)


def _looped(scene: Scene) -> set[str]:
    """Joints, floating bases too, whose positions loops depend on, by their full names."""
    carried: dict[str, tuple[str, str]] = {}
    for robot in scene.robots:
        prefix = scene.prefix(robot)
        if not robot.fixed:
            carried[prefix + robot.root] = prefix + BASE, WORLD
        for joint in robot.joints.values():
            carried[prefix + joint.child] = prefix + joint.name, prefix + joint.parent

    def above(link: str) -> set[str]:
        names = set[str]()
        while link in carried:
            name, link = carried[link]
            names.add(name)
        return names

    found = set[str]()
    for loop in scene.loops:
        if isinstance(loop, Coupling):
            found |= loop.coefficients.keys()
        else:
            found |= above(loop.a.link) ^ above(loop.b.link)
    return found


def _note_radians(spec: Any, model: Any, scene: Scene) -> None:
    """Tell ranges of hinges that are degrees by default, and look like radians."""
    if not spec.compiler.degree:
        return
    hinges = np.flatnonzero((model.jnt_type == HINGE) & (model.jnt_limited != 0))
    ends = np.abs(np.degrees(model.jnt_range[hinges]))
    like = (np.abs(ends[:, :, None] - QUARTERS) < ROUNDED).any(axis=(1, 2))
    like |= len(hinges) > 1 and ends.max() <= 2 * np.pi  # of several none reaches seven degrees
    if like.any():
        names = [model.joint(int(k)).name or f"number {k}" for k in hinges[like]]
        scene.notes.append(
            f"ranges of a few degrees that look like radians ({listed(names)}); if radians are"
            ' meant, write <compiler angle="radian"/>'
        )


def _note_rest(spec: Any, model: Any, scene: Scene) -> None:
    """Say what else the file has and we have not."""
    counts = {
        "camera": model.ncam,
        "light": model.nlight,
        "flex": model.nflex,
        "plugin": model.nplugin,
    }
    found = [f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n]
    if found:
        scene.notes.append(f"left out: {', '.join(found)}")
    _note_radians(spec, model, scene)
    option = model.opt
    if option.density or option.viscosity or option.wind.any():
        scene.notes.append("forces of air or water (density, viscosity, wind) are left out")
    lost = {  # what came with MuJoCo 4
        "springs and dampers that are polynomials have their linear part only": (
            *("jnt_stiffnesspoly", "dof_dampingpoly", "tendon_stiffnesspoly"),
            *("tendon_dampingpoly", "actuator_dampingpoly"),
        ),
        "springs that yield (springyield) stay elastic": ("jnt_springyield", "tendon_springyield"),
        "surfaces that stick or move (adhesion, surfacevel) do neither": (
            *("geom_adhesion", "geom_surfacevel"),
        ),
    }
    for said, fields in lost.items():
        if any(np.any(getattr(model, field, 0.0)) for field in fields):
            scene.notes.append(said)
