"""What joints of the tree bear, in one call: from what constraints, contacts and elements leave."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_element_records import elements_of
from bulletbridge.constraints.force_elements import Wrench
from bulletbridge.constraints.joints import Distance, LoopJoint
from bulletbridge.engine.records import Arrays, SystemArrays, arrays_of
from bulletbridge.inequalities.arrays import IMPULSES, MOVING, X
from bulletbridge.inequalities.contact_rows import (
    CONTACT_ROWS,
    ContactRows,
    contact_load,
    meeting_gap,
)
from bulletbridge.mechanism.element_wrenches import element_wrenches
from bulletbridge.mechanism.kinematics import displace, kinematics
from bulletbridge.mechanism.link_tree import (
    BORNE,
    NO_LOADS,
    Borne,
    LinkData,
    LinkTree,
    Load,
    act,
    act_between,
    gather,
    put_inertial,
)
from bulletbridge.mechanism.model import WORLD
from bulletbridge.mechanism.records import CONTACT_POINT, Axis, ContactPoint, Pose
from bulletbridge.numerics.records import Array, Ints, Records, Vector, copied
from bulletbridge.numerics.spatial import ZERO, add, add_pair, scale, scale_pair, sub, vec
from bulletbridge.system.forward_dynamics import ForwardDynamics, SolvedState


class BorneArrays(NamedTuple):
    """What ``find_borne`` works on, besides what forward dynamics have found."""

    links: Records[LinkData]  # the tree, and
    found: Records[Borne]  # what each link's joint bears
    damped: Ints  # (n, 2) efforts that are Bullet's damping, and the links that they act on
    elements: Ints  # (n, 3) other efforts, and links a and b that they are between
    ends: Ints  # (loops, 2) links a and b of loops
    wrenches: Array  # (efforts, 6) room, and
    extra: Array  # (nb, 6) likewise
    moved: Array  # (nq,) room for a configuration, and
    there: Records[Pose]  # poses and
    axes_there: Records[Axis]  # axes of it


class Touching(NamedTuple):
    """The contacts of a step."""

    points: Records[ContactPoint]  # (n,) and more, as they were found
    rows: Records[ContactRows]  # their rows
    links: Ints  # (n, 2) that they are between, of a and of b
    impulses: Array  # of ``InequalityArrays``


UNTOUCHED = Touching(
    np.zeros(0, CONTACT_POINT),
    np.zeros(0, CONTACT_ROWS),
    np.zeros((0, 2), np.int64),
    np.zeros((IMPULSES, 1)),
)


@kernel
def find_borne(
    arrays: SystemArrays,
    solved: SolvedState,
    w: BorneArrays,
    touching: Touching,
    dt: float,
    others: Records[Load],
) -> int:
    """What joints of the tree bear, from the leaves; 0.

    Args:
        arrays: As ``forward_dynamics`` left them, and
        solved: what it found.
        w: What is found.
        touching: Contacts of the step,
        dt: and its length [s].
        others: What acts besides.

    Source: Featherstone, Rigid Body Dynamics Algorithms, ch. 5.3, in world axes, link by link.
    """
    s, found = arrays_of(arrays), w.found
    put_inertial(w.links, s.bodies, s.poses, s.axes, solved.vdot, w.extra, found)
    for i in range(len(w.ends)):
        loop, total = s.loops[i], (ZERO, ZERO)
        for k in range(loop.row, loop.row + loop.rows):
            row = solved.wrench_rows[k]
            total = add_pair(total, scale_pair(solved.lam[k], (vec(row), vec(row[3:]))))
        act_between(found, w.ends[i, 0], w.ends[i, 1], vec(solved.points[i]), total)
    if len(w.wrenches) > 0:
        element_wrenches(s.efforts, s.poses, w.wrenches)
    for i in range(len(w.damped)):
        n = int(w.damped[i, 0])
        point = vec(s.poses[s.efforts[n].body].origin)
        wrench = w.wrenches[n]
        act(found, w.damped[i, 1], point, (vec(wrench), vec(wrench[3:])))
    for i in range(len(w.elements)):
        n = int(w.elements[i, 0])
        point = vec(s.poses[s.efforts[n].body_b].origin)
        wrench = w.wrenches[n]
        load = vec(wrench), vec(wrench[3:])
        act_between(found, w.elements[i, 1], w.elements[i, 2], point, load)
    if len(touching.links) > 0:
        touch(s, arrays.state[: len(w.moved)], w, touching, dt)
    for i in range(len(others)):
        load = others[i]
        act(found, load.link, vec(load.point), (vec(load.moment), vec(load.force)))
    gather(w.links, found)
    return 0


@helper
def touch(s: Arrays, q: Array, w: BorneArrays, touching: Touching, dt: float) -> None:
    """Have contacts act on the links that they are between.

    They are found where the step was to lead: the places on the bodies are those at its start.
    """
    displace(s.bodies, q, touching.impulses[MOVING], dt, w.moved)
    kinematics(s.bodies, s.beams, s.stations, w.moved, w.there, w.axes_there)
    for i in range(len(touching.links)):
        point = touching.points[i]
        moment, force = contact_load(point, touching.rows[i], touching.impulses[X], 1.0 / dt)
        on_b = vec(point.position)
        apart = meeting_gap(point, touching.rows[i].compliance)
        on_a = sub(on_b, scale(apart, vec(point.normal)))
        a, b = touching.links[i, 0], touching.links[i, 1]
        act(w.found, b, add(on_b, way_back(s, w, point.body_b)), (moment, force))
        opposite = scale_pair(-1.0, (moment, force))
        act(w.found, a, add(on_a, way_back(s, w, point.body_a)), opposite)


@helper
def way_back(s: Arrays, w: BorneArrays, body: int) -> Vector:
    """From where a body was to be to where it is."""
    here, there = s.poses[body], w.there[body]
    return sub(add(vec(here.origin), vec(here.p)), add(vec(there.origin), vec(there.p)))


class Bearing:
    """What joints bear where forward dynamics were found.

    Args:
        dynamics: Whose ``find`` is called before each ``borne``.
        tree: Links.
        constraints: Of its solver.
    """

    def __init__(
        self, dynamics: ForwardDynamics, tree: LinkTree, constraints: Sequence[Constraint]
    ) -> None:
        s, number = dynamics.arrays, tree.number
        names, joined = list(dynamics.solver.encoded.rows), {c.name: c for c in constraints}
        joints = [joined[name] for name in names[: len(s.loops)]]
        ends = [
            (number(each.a.link), number(each.b.link))
            for each in joints
            if isinstance(each, LoopJoint | Distance)
        ]
        self.ends: Ints = np.array(ends, np.int64).reshape(-1, 2)
        first = len(s.efforts) - len(dynamics.solver.encoded.elements)
        between = [(e.a.link, e.b.link) for e in elements_of(constraints)]
        between += [(WORLD, each.frame.link) for each in constraints if isinstance(each, Wrench)]
        elements = [(first + k, number(a), number(b)) for k, (a, b) in enumerate(between)]
        damped = np.stack([tree.dampings, tree.damped], axis=1)
        found = np.zeros(len(tree.links), BORNE)
        self._table: Array = found.view(np.float64).reshape(len(found), -1)
        self._arrays = BorneArrays(
            tree.records, found, np.ascontiguousarray(damped, np.int64),
            np.array(elements, np.int64).reshape(-1, 3), self.ends, np.zeros((len(s.efforts), 6)),
            np.zeros((len(s.bodies), 6)), np.zeros(dynamics.solver.mechanism.nq),
            copied(dynamics.poses), copied(dynamics.axes),
        )  # fmt: skip
        rest = UNTOUCHED, 1.0, NO_LOADS
        with announce_compilation(find_borne):
            self._find = StoredCall(find_borne, (s, dynamics.found, self._arrays), rest).call

    def borne(self, touching: Touching, dt: float, others: np.ndarray) -> Array:
        """What the joint that carries each link does to it: (n, 18), in lines as of ``BORNE``.

        Args:
            touching: Contacts of the step, and
            dt: its length [s].
            others: (m,) of ``LOAD``, what acts besides.
        """
        self._find((touching, dt, others))
        return self._table.copy()
