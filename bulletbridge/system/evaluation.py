"""Evaluation of a state: gaps, energy, momentum and reactions, from the definitions alone."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, SupportsIndex, overload

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_elements import ForceElement
from bulletbridge.constraints.joints import Coupling, Distance, LoopJoint
from bulletbridge.constraints.user import Kinematics
from bulletbridge.engine.redundancy import Redundancy
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.whitened import whiten
from bulletbridge.engine.workspace import Terms
from bulletbridge.errors import Hinting, ModelError, refuse_name
from bulletbridge.formulations.equations import Split
from bulletbridge.formulations.system_dynamics import shortest_multipliers
from bulletbridge.mechanism.force_elements import measure
from bulletbridge.mechanism.records import BUSHING, SPRING, STRETCH, TENDON, WRENCH
from bulletbridge.numerics.one_thread import one_blas_thread
from bulletbridge.numerics.records import Array, Mask

FOLLOWS = 0.01
"""Part of a row in a dependency, against the largest of any, from which on it follows from others.

Where a row enters with less, what is left of the others would be nearly dependent without it.
"""


@dataclass(frozen=True)
class Gap(Hinting):
    """How far one constraint is open, over all its rows as written and over the kept ones.

    Attributes:
        name: The constraint.
        metres: Length of its residuals that are lengths, over all rows as written [m].
        radians: Of those that are angles [rad].
        rate_metres: Length of their rates [m/s].
        rate_radians: [rad/s]
        kept_metres: As ``metres``, over the kept rows alone.
        kept_radians: [rad]
        kept_rate_metres: [m/s]
        kept_rate_radians: [rad/s]
    """

    ELSEWHERE: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("gap", "value", "m", "length", "distance", "position"), ".metres, or .radians"
    )

    name: str
    metres: float
    radians: float
    rate_metres: float
    rate_radians: float
    kept_metres: float
    kept_radians: float
    kept_rate_metres: float
    kept_rate_radians: float


class Gaps(Hinting, tuple[Gap, ...]):
    """A gap for each constraint, by number or by name, as ``gaps["pin"]``."""

    __slots__ = ()
    ELSEWHERE: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("items", "keys", "values"), "for gap in gaps: gap.name, gap.metres, gap.radians"
    )

    @overload
    def __getitem__(self, key: SupportsIndex | str, /) -> Gap: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[Gap, ...]: ...
    def __getitem__(self, key: SupportsIndex | str | slice, /) -> Gap | tuple[Gap, ...]:
        """One of them, or several.

        Raises:
            UnknownNameError: There is no constraint of that name.
        """
        if not isinstance(key, str):
            return super().__getitem__(key)
        by_name = {each.name: each for each in self}
        if key not in by_name:
            refuse_name("constraint", key, by_name)
        return by_name[key]


@dataclass(frozen=True)
class Evaluation(Hinting):
    """A state seen from outside, whoever produced it.

    Attributes:
        gaps: One for each constraint, by number or by its name.
        kinetic: Energy of motion [J].
        potential: Energy of gravity and springs [J].
        momentum: (6,) angular about the world origin [kg m²/s], linear [kg m/s].
        rates: Rates of all rows as written [m/s or rad/s].
        in_metres: Which of them are in metres.
    """

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("gap", "metres", "radians", "max_gap"),
            ".largest('metres'), or .gaps of each constraint",
        ),
        **dict.fromkeys(("total", "total_energy", "mechanical_energy"), ".energy"),
    }

    gaps: Gaps
    kinetic: float
    potential: float
    momentum: Array
    rates: Array
    in_metres: Mask

    def __repr__(self) -> str:
        """How far the loops are open, and the energy."""
        open_by = f"{self.largest('metres'):.1e} m and {self.largest('radians'):.1e} rad"
        return f"<Evaluation: loops open by up to {open_by}, energy {self.energy:.6g} J>"

    @property
    def energy(self) -> float:
        """Kinetic and potential [J]."""
        return self.kinetic + self.potential

    def largest(self, field: str) -> float:
        """Largest of one field of the gaps, such as ``metres``; 0 without constraints.

        Raises:
            UnknownNameError: Gaps have no such field.
        """
        numbers = [each.name for each in fields(Gap) if each.name != "name"]
        if field not in numbers:
            refuse_name("measure of gaps", field, numbers)
        return max((float(getattr(gap, field)) for gap in self.gaps), default=0.0)


@dataclass(frozen=True)
class Reaction(Hinting):
    """What a constraint does to the link of its frame b; the opposite acts on the link of frame a.

    Attributes:
        name: The constraint.
        point: (3,) origin of frame b in the world [m], where the force acts.
        force: (3,) [N], world axes.
        torque: (3,) [N m] about the point, world axes.
        multipliers: (nc,) of the kept rows; for couplings and users' rows all there is.
        unique: Whether the constraints determine it. If not, it is the shortest multiplier
            vector, rows in metres measured in units of the mechanism's length.
    """

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        "moment": ".torque",
        "wrench": ".force and .torque",
        "position": ".point",
        "magnitude": "np.linalg.norm(reaction.force)",
    }

    name: str
    point: Array
    force: Array
    torque: Array
    multipliers: Array
    unique: bool

    def __repr__(self) -> str:
        """Force and torque, and where; of what acts along joints the multipliers."""
        if self.multipliers.any() and not (self.force.any() or self.torque.any()):
            return f"<Reaction of '{self.name}': multipliers {brief(self.multipliers)}>"
        what, point = f"Reaction of '{self.name}' on frame b", f"{brief(self.point)} m"
        return said_of_wrench(what, self.force, self.torque, point, self.unique)


def require_points(constraints: Iterable[Constraint], names: Collection[str]) -> None:
    """Refuse names of constraints that have no force at a point: zeros would be told."""
    for one in constraints:
        if one.name not in names or isinstance(one, LoopJoint | Distance):
            continue
        if isinstance(one, Coupling):
            joint = next(iter(one.coefficients))
            where = f"what '{joint}' bears, reactions=['{joint}'], has that along its axis"
        elif isinstance(one, ForceElement):
            where = f"system.spring_forces()['{one.name}'] has what it exerts"
        else:
            where = f"system.reactions()['{one.name}'].multipliers has all there is"
        raise ModelError(f"'{one.name}' has no reaction at a point; {where}")


def brief(x: Array) -> str:
    """An array in four digits."""
    return np.array2string(x, precision=4, suppress_small=True)


def said_of_wrench(what: str, force: Array, torque: Array, about: str, unique: bool) -> str:
    """How a force (3,) [N] and a torque (3,) [N m] about some point are shown."""
    shared = "" if unique else ", of a load that constraints share"
    return f"<{what}: {brief(force)} N and {brief(torque)} N m about {about}, world axes{shared}>"


@dataclass(frozen=True)
class SpringForce:
    """What a force element does.

    Attributes:
        name: The element, or the loop joint along whose free motion it acts.
        kind: Of ``mechanism.records``.
        position: Length [m], turn [rad], travel [m], a tendon's sum; (6,) turns, then ways, of a
            bushing.
        rate: [m/s or rad/s]
        force: Along the position [N or N m]: pushes the ends of a spring apart.
        point_a: (3,) origin of its frame a in the world [m]; NaN of a tendon, which has none.
        point_b: (3,) origin of its frame b [m]; NaN of a tendon.
    """

    name: str
    kind: int
    position: float | Array
    rate: float | Array
    force: float | Array
    point_a: Array
    point_b: Array


@dataclass(frozen=True)
class AppliedWrench:
    """What a ``Wrench`` does at a state.

    Attributes:
        name: Its name.
        point: (3,) where it acts [m], world axes, as all here.
        force: (3,) [N]
        torque: (3,) [N m] about the point.
        power: What it does on its link [W].
    """

    name: str
    point: Array
    force: Array
    torque: Array
    power: float


def evaluate(full: Solver, kept: Solver, q: Array, v: Array, t: float) -> Evaluation:
    """Evaluate a state with the rows as written (``full``) and as kept."""
    terms = full.terms(q, v, t)
    reduced = terms if kept is full else kept.terms(q, v, t)
    kept_rates = reduced.J @ v + reduced.g_t
    residual, kept_rate = keep(kept, reduced, np.array([reduced.g, kept_rates]))
    rate = terms.J @ v + terms.g_t
    gaps = [
        Gap(
            name,
            *_by_unit(full.encoded, name, terms.g),
            *_by_unit(full.encoded, name, rate),
            *_by_unit(kept.encoded, name, residual),
            *_by_unit(kept.encoded, name, kept_rate),
        )
        for name in full.encoded.rows
    ]
    kinetic = 0.5 * float(v @ terms.M @ v)
    return Evaluation(
        Gaps(gaps),
        kinetic,
        potential(full, terms, q),
        momentum(full, terms, v),
        rate,
        full.encoded.in_metres,
    )


def widths(full: Solver, q: Array, t: float) -> dict[str, tuple[float, float]]:
    """How far constraints are open [m], [rad], over all rows, and no more of ``evaluate``."""
    encoded, g = full.encoded, full.gaps_at(q, t)
    return {name: _by_unit(encoded, name, g) for name in encoded.rows}


def gap_vectors(
    solver: Solver, q: Array, v: Array, t: float, kept: bool
) -> dict[str, tuple[Array, Array]]:
    """Origin of frame b (3,) [m] of each loop, and its way there from where it should be (3,) [m].

    The rows in metres measure that way along the forces of their unit multipliers.

    Args:
        solver: Of the rows as written, or as kept.
        q: (nq,)
        v: (nv,)
        t: [s]
        kept: Whether what no joint can move does not count.
    """
    terms = solver.terms(q, v, t)
    g = keep(solver, terms, terms.g[None])[0] if kept else terms.g
    found: dict[str, tuple[Array, Array]] = {}
    for index, (name, part) in enumerate(solver.encoded.rows.items()):
        if index < len(solver.encoded.loops):
            point, rows = solver.wrench_rows(terms.poses, index, t)
            metres = solver.encoded.in_metres[part]
            found[name] = point, np.linalg.pinv(rows[metres, 3:]) @ g[part][metres]
    return found


def kinematics_at(solver: Solver, q: Array, v: Array, t: float) -> Kinematics:
    """Frames, Jacobians and bias accelerations at a state."""
    terms = solver.terms(q, v, t)
    return Kinematics(solver.mechanism, terms.poses, terms.axes, q, v, t)


def link_pose(solver: Solver, name: str) -> tuple[Array, Array]:
    """Rotation (3, 3) and position (3,) [m] of a link in the world, at the state of a solver.

    Raises:
        ModelError: The link does not exist.
    """
    link = solver.mechanism.link(name)
    if link.body == 0:
        return link.R, link.p
    poses, _ = solver.places_at(solver.q)
    R, p = poses["R"][link.body], poses["origin"][link.body] + poses["p"][link.body]
    return R @ link.R, p + R @ link.p


def keep(solver: Solver, terms: Terms, values: Array) -> Array:
    """Row values (n, nc) with zero for as many rows as are redundant among loops.

    Which of them are left out is a matter of choice, and each solver has its own: here, line by
    line, those with the largest values that follow from what stays. So a solver that closes any
    independent rows has closed the kept ones, and no choice makes their largest value smaller: they
    are the basis of a matroid that a greedy search finds.
    """
    cap, scale = int(solver.control[0]["cap"]), solver.rows[0]["scale"]
    if cap >= len(terms.g):
        return values
    with one_blas_thread():
        U = np.linalg.svd(whiten(terms.M, scale[:, None] * terms.J))[0]
    found = values.copy()
    for line in found:
        dependencies = U[:, cap:]
        for row in np.argsort(-np.abs(line * solver.encoded.scale)):
            part = dependencies[row]
            size = float(np.linalg.norm(part))
            if size > FOLLOWS * np.linalg.norm(dependencies, axis=1).max(initial=0.0):
                line[row] = 0.0
                turned = np.linalg.svd(part[None])[2]  # the first along part, the others across
                dependencies = dependencies @ turned[1:].T
            if not dependencies.shape[1]:
                break
    return found


def potential(solver: Solver, terms: Terms, q: Array) -> float:
    """Potential energy [J] of gravity and springs."""
    poses, energy = terms.poses, 0.0
    for moments in (poses["mc"], poses["m"][:, None] * poses["origin"]):
        energy -= float(moments.sum(axis=0) @ solver.control[0]["gravity"])
    for beam in solver.beams[solver.bodies["parent"][solver.beams["body"]] == 0]:
        # the world carries its stations, and has another origin
        mass = float(solver.stations["mass"][beam["first"] : beam["tip"]].sum())
        energy -= mass * float(poses["origin"][beam["body"]] @ solver.control[0]["gravity"])
    for axis in solver.axes:
        if axis["stiffness"] != 0.0:
            energy += 0.5 * float(axis["stiffness"] * (q[axis["q"]] - axis["rest"]) ** 2)
    elements = solver.encoded.elements
    way = measured(elements, terms)[:, 0] - elements["rest"][:, None]
    stretched = way - np.clip(way, -(slack := elements["slack"][:, None]), slack)
    return energy + 0.5 * float(np.sum(elements["stiffness"] * stretched**2))


def measured(elements: np.ndarray, terms: Terms) -> Array:
    """(elements, 3, 6): positions, rates and forces of force elements."""
    found = np.zeros((len(elements), 3, 6))
    measure(elements, terms.poses, terms.axes, found)
    return found


def spring_forces(solver: Solver, q: Array, v: Array, t: float) -> dict[str, SpringForce]:
    """What each force element does at a state."""
    terms, encoded = solver.terms(q, v, t), solver.encoded
    found = dict[str, SpringForce]()
    elements = elements_at(solver, terms, q, v, t)
    for k, (name, element, (x, rate, force)) in enumerate(
        zip(encoded.element_names, elements, measured(elements, terms), strict=True)
    ):
        kind = int(element["kind"])
        if kind in (WRENCH, STRETCH):
            continue
        last = elements[k + int(element["stretches"])]
        bodies = [
            (terms.poses[one[f"body_{end}"]], one[f"p_{end}"])
            for end, one in (("a", element), ("b", last))
        ]
        ends = [pose["origin"] + pose["p"] + pose["R"] @ p for pose, p in bodies]
        if kind == TENDON:
            ends = [np.full(3, np.nan)] * 2
        if kind == BUSHING:
            found[name] = SpringForce(name, kind, x, rate, force, *ends)
        else:
            said = float(x[0]), float(rate[0]), float(force[0])
            found[name] = SpringForce(name, kind, *said, *ends)
    return found


def elements_at(solver: Solver, terms: Terms, q: Array, v: Array, t: float) -> np.ndarray:
    """Force elements with what they exert as functions of time and of a state."""
    targets = solver.encoded.targets(np.array([t]))[0]
    efforts = solver.efforts_at(targets, terms.poses, terms.axes.copy(), q, v, t)
    return efforts[len(efforts) - len(solver.encoded.elements) :]


def applied_wrenches(solver: Solver, q: Array, v: Array, t: float) -> dict[str, AppliedWrench]:
    """What each wrench does at a state."""
    terms, found = solver.terms(q, v, t), dict[str, AppliedWrench]()
    elements = elements_at(solver, terms, q, v, t)
    for name, element in zip(solver.encoded.element_names, elements, strict=True):
        if element["kind"] == WRENCH:
            pose, turn = terms.poses[element["body_b"]], terms.poses[element["body_a"]]["R"]
            arm = pose["p"] + pose["R"] @ element["p_b"]
            torque, force = (turn @ element["R_a"] @ element["wrench"].reshape(2, 3).T).T
            power = force @ (pose["v"] + np.cross(pose["w"], arm)) + torque @ pose["w"]
            point = pose["origin"] + arm
            found[name] = AppliedWrench(name, point, force, torque, float(power))
    return found


def applied_power(solver: Solver, q: Array, v: Array, t: float) -> float:
    """Power [W] of all forces that are given: tau, functions of joints, wrenches."""
    terms = solver.terms(q, v, t)
    axes = terms.axes.copy()
    axes["pushed"] = 0.0
    solver.efforts_at(solver.targets_at(t), terms.poses, axes, q, v, t)
    joints = float(v @ (solver.tau[0] + solver.scripted(t) + axes["pushed"]))
    return joints + sum(w.power for w in applied_wrenches(solver, q, v, t).values())


def require_lengths(solver: Solver, q: Array, t: float) -> None:
    """Refuse springs whose force has no direction.

    Raises:
        ModelError: The ends of one coincide, and it pushes or pulls them there.
    """
    for spring in spring_forces(solver, q, np.zeros(len(solver.v)), t).values():
        if spring.kind == SPRING and spring.position == 0.0 and spring.force != 0.0:
            raise ModelError(
                f"spring '{spring.name}' has ends in one place, and a force of {spring.force:g} N "
                "has no direction there; start elsewhere, or use a bushing"
            )


def momentum(solver: Solver, terms: Terms, v: Array) -> Array:
    """Angular momentum about the world origin and linear momentum, (6,)."""
    pose = terms.poses[1:]
    w, u, mc = pose["w"], pose["v"], pose["mc"]
    linear = pose["m"][:, None] * u - np.cross(mc, w)
    angular = np.einsum("nij,nj->ni", pose["J"], w) + np.cross(mc, u)
    angular += np.cross(pose["origin"], linear)
    total = np.concatenate([angular.sum(axis=0), linear.sum(axis=0)])
    for beam in solver.beams:  # what bending adds to stations that move with the root
        body = solver.bodies[beam["body"]]
        rates = v[body["v"] : body["axis"] + 1]
        own = terms.stations[beam["first"] : beam["tip"]]
        bending = own["mass"][:, None] * np.einsum("k,nki->ni", rates, own["D"][:, : len(rates)])
        places = terms.poses["origin"][beam["body"]] + own["p"]
        total += np.concatenate([np.cross(places, bending), bending], axis=1).sum(axis=0)
    return total


def reactions(
    solver: Solver,
    redundancy: Mapping[str, Redundancy],
    terms: Terms,
    t: float,
    vdot: Array,
    tau: Array,
    split: Split | None = None,
) -> dict[str, Reaction]:
    """Reactions of all constraints that go with an acceleration vdot (nv,) at a state.

    Args:
        solver: The system.
        redundancy: Of its constraints.
        terms: At the state.
        t: Time [s].
        vdot: (nv,)
        tau: (nv,) forces on the rates [N m or N].
        split: As of ``wrenches``.
    """
    needed: Array = terms.M @ vdot + terms.h - terms.forces - tau
    return wrenches(solver, redundancy, terms, needed, t, split)


def wrenches(
    solver: Solver,
    redundancy: Mapping[str, Redundancy],
    terms: Terms,
    needed: Array,
    t: float,
    split: Split | None = None,
) -> dict[str, Reaction]:
    """How all constraints together supply generalised forces or impulses ``needed`` (nv,).

    Rows that are weak in ``split``, which is the step's unless given, supply none.
    """
    lam, shared = shortest_multipliers(solver, terms, needed, split)
    found: dict[str, Reaction] = {}
    loops = solver.wrench_rows_of(terms.poses, slice(None), t)
    for index, (name, part) in enumerate(solver.encoded.rows.items()):
        decided = redundancy[name].kept == redundancy[name].rows
        unique = decided and not bool(shared[part].any())
        point, force, torque = np.zeros((3, 3))
        if index < len(loops):
            point, rows = loops[index]
            moment_force = lam[part] @ rows
            torque, force = moment_force[:3], moment_force[3:]
        found[name] = Reaction(name, point, force, torque, lam[part], unique)
    return found


def _by_unit(encoded: Encoded, name: str, values: Array) -> tuple[float, float]:
    """Lengths of what a constraint's rows have: of those in metres, of the others."""
    part = encoded.rows[name]
    metres, found = encoded.in_metres[part], values[part]
    return float(np.linalg.norm(found[metres])), float(np.linalg.norm(found[~metres]))
