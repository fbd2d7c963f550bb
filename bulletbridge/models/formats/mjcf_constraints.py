"""MuJoCo's equality constraints and tendons as loops, couplings and springs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from bulletbridge.constraints.force_elements import LinePoint, Pulley, Round, Spring, Tendon
from bulletbridge.constraints.joints import Coupling, Distance, Frame, JointModel, LoopJoint
from bulletbridge.mechanism.frames import triple
from bulletbridge.models.formats.mjcf_file import library
from bulletbridge.models.formats.mjcf_places import Places, turn
from bulletbridge.models.formats.robot import Pose, Scene, free_name, listed, told
from bulletbridge.numerics.records import Array

EQUAL = 1e-12
"""Relative difference of two lengths that are one."""
HIGHER = slice(2, 5)
"""Coefficients of a joint or tendon equality's polynomial that are not linear."""


@dataclass(frozen=True)
class Path:
    """The way of a tendon: a sum of joint positions, or a line through points."""

    factors: dict[str, float]  # of joints' positions, by full name
    # what a line goes through, round and over, from a point to a point
    points: tuple[LinePoint, ...]
    length: float  # with every joint where MuJoCo draws it [m]

    @property
    def straight(self) -> bool:
        """Whether it goes through points alone, if it is a line."""
        return all(isinstance(point, Frame) for point in self.points)

    def spring(self, name: str, **numbers: Any) -> Spring:
        """A spring along the line."""
        first, *between, last = self.points
        assert isinstance(first, Frame) and isinstance(last, Frame)
        return Spring(name, first, last, via=tuple(between), **numbers)


def add_constraints(model: Any, places: Places) -> None:
    """Loops of a scene, from all active equality constraints, and springs of tendons."""
    scene = places.scene
    tendons = [path_of(model, places, k) for k in range(model.ntendon)]
    off = model.opt.disableflags & library().mjtDisableBit.mjDSBL_EQUALITY
    idle: list[str] = []
    void: list[str] = []
    for k in range(model.neq):
        kind = library().mjtEq(model.eq_type[k])
        name = _name(model, places, k, kind)
        if off or not model.eq_active0[k]:
            idle.append(name)
        elif kind.name in ("mjEQ_CONNECT", "mjEQ_WELD"):
            one, two = (places.rigid(body) for body in _bodies(model, k))
            if one == two:
                void.append(f"'{name}'")
                continue
            scene.loops.append(_loop(model, places, k, name, kind.name == "mjEQ_WELD"))
        elif kind.name == "mjEQ_JOINT":
            _couple_joints(model, places, k, name)
        elif kind.name == "mjEQ_TENDON":
            _couple_tendons(model, scene, k, name, tendons)
        else:
            scene.notes.append(f"equality '{name}' of deformable bodies is left out")
    if idle:
        scene.notes.append(f"equalities that are not active are left out: {', '.join(idle)}")
    if void:
        scene.notes.append(
            "equalities between bodies that cannot move against each other, which do nothing, are"
            f" left out: {listed(void)}"
        )
    if model.neq > len(idle) + len(void):
        scene.notes.append(
            "equality constraints hold exactly here; MuJoCo's are soft (solref, solimp)"
        )
    lost: dict[str, list[str]] = {}
    rigid = {k for k in range(model.ntendon) if _is_rigid(model, places, k)}
    for k, tendon in enumerate(tendons):
        if k in rigid:
            continue
        for what in _add_spring(model, scene, k, tendon):
            lost.setdefault(what, []).append(f"'{model.tendon(k).name or f'tendon_{k}'}'")
    for what, names in lost.items():
        s = "s" if len(names) > 1 else ""
        scene.notes.append(f"{what} of tendon{s} {listed(names)}: left out")
    names = [model.tendon(k).name or f"tendon_{k}" for k in range(model.ntendon)]
    wrapped = [f"'{names[k]}'" for k, path in enumerate(tendons) if path is None and k not in rigid]
    said = {
        "tendons that begin with a pulley, or have a side site on another body than what they"
        " go round, do nothing: {}": wrapped,
        "tendons between points of one rigid body, whose length never changes, are left out: {}": [
            repr(names[k]) for k in sorted(rigid)
        ],
    }
    scene.notes += told(said)


def _name(model: Any, places: Places, k: int, kind: Any) -> str:
    """Unique among constraints; MuJoCo's need none."""
    what = kind.name.removeprefix("mjEQ_").lower()
    name = model.equality(k).name
    if not name and what == "joint":
        name = f"{places.joint_names[int(model.eq_obj1id[k])]}_coupling"
    elif not name and what in ("connect", "weld"):
        name = "_to_".join(places.body_names[x] for x in _bodies(model, k))
    return free_name(name or f"{what}_{k}", (loop.name for loop in places.scene.loops))


def _bodies(model: Any, k: int) -> tuple[int, int]:
    """The two bodies that a connect or weld joins."""
    one, two = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    if _by_sites(model, k):
        return int(model.site_bodyid[one]), int(model.site_bodyid[two])
    return one, two


def _by_sites(model: Any, k: int) -> bool:
    return bool(model.eq_objtype[k] == library().mjtObj.mjOBJ_SITE)


def _loop(model: Any, places: Places, k: int, name: str, weld: bool) -> LoopJoint:
    """A connect or weld: between two sites, or by numbers that MuJoCo has worked out."""
    one, two = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    data = model.eq_data[k]
    if _by_sites(model, k):
        a, b = _site(model, places, one), _site(model, places, two)
    elif weld:
        place = Pose(turn(data[6:10]), data[3:6].copy())
        a, b = places.frame(one, place), places.point(two, data[0:3])
    else:
        a, b = places.point(one, data[0:3]), places.point(two, data[3:6])
    held = weld and data[10] != 0.0  # without torquescale it holds the point alone
    return LoopJoint(name, JointModel.WELD if held else JointModel.BALL, a, b)


def _site(model: Any, places: Places, k: int) -> Frame:
    place = Pose(turn(model.site_quat[k]), model.site_pos[k].copy())
    return places.frame(int(model.site_bodyid[k]), place)


def _couple_joints(model: Any, places: Places, k: int, name: str) -> None:
    """``q1 - q1_0`` is a polynomial of ``q2 - q2_0``, or a constant."""
    one, two = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    poly: Array = model.eq_data[k, :5]
    at = [float(model.qpos0[model.jnt_qposadr[j]]) for j in (one, two) if j >= 0]
    if two < 0:
        places.scene.loops.append(
            Coupling(name, {places.full_joint(one): 1.0}, at[0] + float(poly[0]))
        )
        return
    names = places.full_joint(one), places.full_joint(two)
    of_q2 = Polynomial(poly)(Polynomial((-at[1], 1.0)))  # of q2, not of its way from q2_0
    constant, first, *higher = [*map(float, of_q2.coef), *[0.0] * len(poly)][: len(poly)]
    factors = {names[0]: 1.0} | ({names[1]: -first} if poly[1:].any() else {})
    powers = {names[1]: tuple(-x for x in higher)} if any(higher) else {}
    places.scene.loops.append(Coupling(name, factors, at[0] + constant, higher=powers))


def _not_linear(name: str, poly: Array, between: str) -> str:
    said = " ".join(f"{x:g}" for x in poly)
    return (
        f"equality '{name}' {between} is a polynomial ({said}) and is LEFT OUT: write it as a"
        " constraint in Python (docs/api/constraints.md)"
    )


def _couple_tendons(
    model: Any, scene: Scene, k: int, name: str, tendons: list[Path | None]
) -> None:
    """The same between lengths of tendons."""
    one, two = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    poly: Array = model.eq_data[k, :5]
    found = [tendons[j] for j in (one, two) if j >= 0]
    if any(tendon is None or not tendon.straight for tendon in found):
        scene.notes.append(
            f"equality '{name}' is LEFT OUT: a tendon of it wraps round bodies, goes over pulleys"
            " or is on one rigid body"
        )
        return
    first, *others = (tendon for tendon in found if tendon is not None)
    if others and poly[HIGHER].any():
        scene.notes.append(_not_linear(name, poly, "of tendons"))
        return
    if len(first.points) == 2 and not others:
        a, b = (point for point in first.points if isinstance(point, Frame))
        scene.loops.append(Distance(name, a, b, first.length + float(poly[0])))
        return
    if first.points and not others:
        length = first.length + float(poly[0])
        taken = element_name(scene, name)
        scene.elements.append(first.spring(taken, limits=(length, length)))
        scene.notes.append(
            f"equality '{name}' of a line through several points holds as limits of its length, by"
            " steps of first order"
        )
        return
    plane = _plane(name, first, others[0], poly) if others else None
    if plane is not None:
        scene.loops.append(plane)
        return
    if first.points or (others and others[0].points):
        scene.notes.append(f"equality '{name}' between lengths of two lines is LEFT OUT")
        return
    factors = dict(first.factors)
    offset = first.length + float(poly[0])
    for other in others:
        offset -= float(poly[1]) * other.length
        for joint, factor in other.factors.items():
            factors[joint] = factors.get(joint, 0.0) - float(poly[1]) * factor
    factors = {joint: factor for joint, factor in factors.items() if factor}
    scene.loops.append(Coupling(name, factors, offset))


def _plane(name: str, one: Path, two: Path, poly: Array) -> LoopJoint | None:
    """A point that is as far from one point of a body as from another: it stays between them."""
    shared = [point for point in one.points if point in two.points]
    ends = [point for point in (*one.points, *two.points) if point not in shared]
    off = one.length + float(poly[0]) - two.length
    if len(shared) != 1 or len(ends) != 2 or poly[1] != 1.0 or abs(off) > EQUAL * one.length:
        return None
    a, b, point = *ends, *shared
    if not isinstance(a, Frame) or not isinstance(b, Frame) or not isinstance(point, Frame):
        return None
    way = np.subtract(a.xyz, b.xyz)
    if a.link != b.link or not way.any():
        return None
    middle = Frame(a.link, triple(np.add(a.xyz, b.xyz) / 2.0))
    return LoopJoint(name, JointModel.POINT_ON_PLANE, middle, point, axis=triple(way))


def path_of(model: Any, places: Places, k: int) -> Path | None:
    """The way of a tendon; None if it has a side or a pulley in a place that lines have not."""
    wraps = range(int(model.tendon_adr[k]), int(model.tendon_adr[k] + model.tendon_num[k]))
    kinds = library().mjtWrap
    length = float(model.tendon_length0[k])
    if all(model.wrap_type[w] == kinds.mjWRAP_JOINT for w in wraps):
        factors: dict[str, float] = {}
        for w in wraps:
            joint = places.full_joint(int(model.wrap_objid[w]))
            factors[joint] = factors.get(joint, 0.0) + float(model.wrap_prm[w])
        return Path(factors, (), length)
    points = [_line_point(model, places, w) for w in wraps]
    if (
        _is_rigid(model, places, k)
        or any(point is None for point in points)
        or isinstance(points[0], Pulley)
    ):
        return None
    return Path({}, tuple(point for point in points if point is not None), length)


def _is_rigid(model: Any, places: Places, k: int) -> bool:
    """Whether all that a tendon goes through or round is one rigid body."""
    kinds, bodies = library().mjtWrap, set[str]()
    for w in range(int(model.tendon_adr[k]), int(model.tendon_adr[k] + model.tendon_num[k])):
        what = int(model.wrap_objid[w])
        if model.wrap_type[w] == kinds.mjWRAP_JOINT:
            return False
        if model.wrap_type[w] != kinds.mjWRAP_PULLEY:
            site = model.wrap_type[w] == kinds.mjWRAP_SITE
            bodies.add(places.rigid(int((model.site_bodyid if site else model.geom_bodyid)[what])))
    return len(bodies) < 2


def _line_point(model: Any, places: Places, w: int) -> LinePoint | None:
    """What a tendon goes through, round or over; None where its side is on another body."""
    kinds = library().mjtWrap
    kind, what, number = model.wrap_type[w], int(model.wrap_objid[w]), float(model.wrap_prm[w])
    if kind == kinds.mjWRAP_PULLEY:
        return Pulley(number)
    if kind == kinds.mjWRAP_SITE:
        return _site(model, places, what)
    body, site = int(model.geom_bodyid[what]), int(round(number))
    own = Pose(turn(model.geom_quat[what]), model.geom_pos[what].copy())
    side: tuple[float, float, float] | None = None
    if site >= 0:
        if int(model.site_bodyid[site]) != body:
            return None
        x, y, z = (float(each) for each in own.R.T @ (model.site_pos[site] - own.p))
        side = x, y, z
    radius = float(model.geom_size[what, 0])
    return Round(places.frame(body, own), radius, kind == kinds.mjWRAP_CYLINDER, side)


def element_name(scene: Scene, wanted: str) -> str:
    """A name for a force element, which may not be called like a joint either."""
    joints = scene.joints()
    taken = (*joints, *(each.name for each in (*scene.elements, *scene.loops)))
    return free_name(f"{wanted}_tendon" if wanted in joints else wanted, taken)


def _add_spring(model: Any, scene: Scene, k: int, path: Path | None) -> list[str]:
    """Spring and damper of a tendon; what else it does, in words."""
    name = model.tendon(k).name or f"tendon_{k}"
    stiffness, damping = float(model.tendon_stiffness[k]), float(model.tendon_damping[k])
    lower, upper = (float(x) for x in model.tendon_lengthspring[k])
    limited, friction = bool(model.tendon_limited[k]), float(model.tendon_frictionloss[k])
    shortest, longest = (float(x) for x in model.tendon_range[k])
    held = path is not None and path.straight  # bounds act along lines through points alone
    bounded = held and (limited or friction > 0.0)
    middle, slack = (lower + upper) / 2.0, (upper - lower) / 2.0
    if not stiffness:
        middle = slack = 0.0
    acts: dict[str, Any] = {"stiffness": stiffness, "damping": damping, "slack": slack}
    if held:
        acts |= {"limits": (shortest, longest) if limited else None, "friction": friction}
    lost: list[str] = []
    if stiffness or damping or bounded:
        if path is None:
            lost.append("spring and damper")
        elif path.points:
            spring = path.spring(element_name(scene, name), length=middle, **acts)
            scene.elements.append(spring)
        elif len(path.factors) == 1 and lower == upper and not bounded:
            ((joint, c),) = path.factors.items()
            scene.joints()[joint].add_spring(c * c * stiffness, lower / c, c * c * damping)
        else:
            factors = {joint: c for joint, c in path.factors.items() if c}
            name = element_name(scene, name)
            scene.elements.append(Tendon(name, factors, rest=middle, **acts))
    others = {
        "limits": limited and not held,
        "friction": friction and not held,
        "armature": getattr(model, "tendon_armature", np.zeros(model.ntendon))[k],
    }
    return lost + [what for what, given in others.items() if given]
