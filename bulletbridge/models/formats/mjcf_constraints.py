"""MuJoCo's equality constraints and tendons as loops, couplings and springs."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from bulletbridge.constraints.force_elements import Spring, Tendon
from bulletbridge.constraints.joints import Coupling, Distance, Frame, JointModel, LoopJoint
from bulletbridge.models.formats.mjcf_file import library
from bulletbridge.models.formats.mjcf_places import Places
from bulletbridge.models.formats.robot import Pose, Scene, free_name, listed
from bulletbridge.numerics.records import Array

HIGHER = slice(2, 5)
"""Coefficients of a joint or tendon equality's polynomial that are not linear."""


@dataclass(frozen=True)
class Path:
    """The way of a tendon: a sum of joint positions, or a line through points.

    Attributes:
        factors: Of joints' positions, by full name.
        points: Of a line, two or more.
        length: With every joint where MuJoCo draws it [m].
    """

    factors: dict[str, float]
    points: tuple[Frame, ...]
    length: float

    def spring(self, name: str, **numbers: Any) -> Spring:
        """A spring along the line."""
        first, *between, last = self.points
        return Spring(name, first, last, via=tuple(between), **numbers)


def add_constraints(model: Any, places: Places) -> None:
    """Loops of a scene, from all active equality constraints, and springs of tendons."""
    scene = places.scene
    tendons = [path_of(model, places, k) for k in range(model.ntendon)]
    off = model.opt.disableflags & library().mjtDisableBit.mjDSBL_EQUALITY
    idle: list[str] = []
    for k in range(model.neq):
        kind = library().mjtEq(model.eq_type[k])
        name = _name(model, places, k, kind)
        if off or not model.eq_active0[k]:
            idle.append(name)
        elif kind.name in ("mjEQ_CONNECT", "mjEQ_WELD"):
            scene.loops.append(_loop(model, places, k, name, kind.name == "mjEQ_WELD"))
        elif kind.name == "mjEQ_JOINT":
            _couple_joints(model, places, k, name)
        elif kind.name == "mjEQ_TENDON":
            _couple_tendons(model, scene, k, name, tendons)
        else:
            scene.notes.append(f"equality '{name}' of deformable bodies is left out")
    if idle:
        scene.notes.append(f"equalities that are not active are left out: {', '.join(idle)}")
    if model.neq > len(idle):
        scene.notes.append(
            "equality constraints hold exactly here; MuJoCo's are soft (solref, solimp)"
        )
    lost: dict[str, list[str]] = {}
    for k, tendon in enumerate(tendons):
        for what in _add_spring(model, scene, k, tendon):
            lost.setdefault(what, []).append(f"'{model.tendon(k).name or f'tendon_{k}'}'")
    for what, names in lost.items():
        s = "s" if len(names) > 1 else ""
        scene.notes.append(f"{what} of tendon{s} {listed(names)}: left out")
    names = [model.tendon(k).name or f"tendon_{k}" for k in range(model.ntendon)]
    wrapped = [f"'{name}'" for name, path in zip(names, tendons, strict=True) if path is None]
    if wrapped:
        scene.notes.append(
            f"tendons that wrap round bodies or go over pulleys do nothing: {listed(wrapped)}"
        )


def _name(model: Any, places: Places, k: int, kind: Any) -> str:
    """Unique among constraints; MuJoCo's need none."""
    what = kind.name.removeprefix("mjEQ_").lower()
    name = model.equality(k).name
    if not name and what == "joint":
        name = f"{places.joint_names[int(model.eq_obj1id[k])]}_coupling"
    elif not name and what in ("connect", "weld"):
        ends = (int(x) for x in (model.eq_obj1id[k], model.eq_obj2id[k]))
        bodies = [int(model.site_bodyid[x]) if _by_sites(model, k) else x for x in ends]
        name = "_to_".join(places.body_names[x] for x in bodies)
    return free_name(name or f"{what}_{k}", (loop.name for loop in places.scene.loops))


def _by_sites(model: Any, k: int) -> bool:
    return bool(model.eq_objtype[k] == library().mjtObj.mjOBJ_SITE)


def _loop(model: Any, places: Places, k: int, name: str, weld: bool) -> LoopJoint:
    """A connect or weld: between two sites, or by numbers that MuJoCo has worked out."""
    from scipy.spatial.transform import Rotation

    one, two = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    data = model.eq_data[k]
    if _by_sites(model, k):
        a, b = _site(model, places, one), _site(model, places, two)
    elif weld:
        R = Rotation.from_quat(np.roll(data[6:10], -1)).as_matrix()
        a, b = places.frame(one, Pose(R, data[3:6].copy())), places.point(two, data[0:3])
    else:
        a, b = places.point(one, data[0:3]), places.point(two, data[3:6])
    held = weld and data[10] != 0.0  # without torquescale it holds the point alone
    return LoopJoint(name, JointModel.WELD if held else JointModel.BALL, a, b)


def _site(model: Any, places: Places, k: int) -> Frame:
    from scipy.spatial.transform import Rotation

    R = Rotation.from_quat(np.roll(model.site_quat[k], -1)).as_matrix()
    return places.frame(int(model.site_bodyid[k]), Pose(R, model.site_pos[k].copy()))


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
        " constraint in Python (README, Constraints)"
    )


def _couple_tendons(
    model: Any, scene: Scene, k: int, name: str, tendons: list[Path | None]
) -> None:
    """The same between lengths of tendons."""
    one, two = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    poly: Array = model.eq_data[k, :5]
    found = [tendons[j] for j in (one, two) if j >= 0]
    if any(tendon is None for tendon in found):
        scene.notes.append(
            f"equality '{name}' is LEFT OUT: a tendon of it wraps round bodies or goes over pulleys"
        )
        return
    first, *others = (tendon for tendon in found if tendon is not None)
    if others and poly[HIGHER].any():
        scene.notes.append(_not_linear(name, poly, "of tendons"))
        return
    if len(first.points) == 2 and not others:
        scene.loops.append(Distance(name, *first.points, first.length + float(poly[0])))
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


def path_of(model: Any, places: Places, k: int) -> Path | None:
    """The way of a tendon; None if it wraps round bodies or goes over pulleys."""
    wraps = range(int(model.tendon_adr[k]), int(model.tendon_adr[k] + model.tendon_num[k]))
    kinds = library().mjtWrap
    length = float(model.tendon_length0[k])
    if all(model.wrap_type[w] == kinds.mjWRAP_JOINT for w in wraps):
        factors: dict[str, float] = {}
        for w in wraps:
            joint = places.full_joint(int(model.wrap_objid[w]))
            factors[joint] = factors.get(joint, 0.0) + float(model.wrap_prm[w])
        return Path(factors, (), length)
    if all(model.wrap_type[w] == kinds.mjWRAP_SITE for w in wraps):
        points = tuple(_site(model, places, int(model.wrap_objid[w])) for w in wraps)
        return Path({}, points, length)
    return None


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
    bounded = path is not None and (limited or friction > 0.0)
    limits = (shortest, longest) if limited else None
    middle, slack = (lower + upper) / 2.0, (upper - lower) / 2.0
    if not stiffness:
        middle = slack = 0.0
    lost: list[str] = []
    if stiffness or damping or bounded:
        if path is None:
            lost.append("spring and damper")
        elif path.points:
            numbers = {"stiffness": stiffness, "damping": damping, "length": middle}
            numbers |= {"slack": slack, "limits": limits, "friction": friction}
            scene.elements.append(path.spring(element_name(scene, name), **numbers))
        elif len(path.factors) == 1 and lower == upper and not bounded:
            ((joint, c),) = path.factors.items()
            scene.joints()[joint].add_spring(c * c * stiffness, lower / c, c * c * damping)
        else:
            factors = {joint: c for joint, c in path.factors.items() if c}
            name = element_name(scene, name)
            spring = Tendon(name, factors, stiffness, damping, middle, slack)
            scene.elements.append(replace(spring, limits=limits, friction=friction))
    others = {
        "limits": limited and path is None,
        "friction": friction and path is None,
        "armature": getattr(model, "tendon_armature", np.zeros(model.ntendon))[k],
    }
    return lost + [what for what, given in others.items() if given]
