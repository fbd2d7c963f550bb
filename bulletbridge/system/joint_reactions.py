"""What joints of the tree bear, by name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_elements import Spring
from bulletbridge.constraints.joints import Distance, Frame, LoopJoint
from bulletbridge.engine.redundancy import Redundancy
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import ModelError, UnsupportedError, refuse_name
from bulletbridge.inequalities.stepper import InequalityStepper
from bulletbridge.mechanism.frames import locate
from bulletbridge.mechanism.link_tree import LinkTree, Loads
from bulletbridge.mechanism.model import CarriedLink
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.system.borne import UNTOUCHED, Bearing, Touching
from bulletbridge.system.contact_report import bounded_reactions, loaded_forces
from bulletbridge.system.evaluation import said_of_wrench
from bulletbridge.system.forward_dynamics import ForwardDynamics
from bulletbridge.system.shown_world import ShownWorld

State: TypeAlias = tuple[Array, Array, float]
"""q (nq,), v (nv,) and t [s]."""
Push: TypeAlias = tuple[Frame, Array, Array]
"""Where a force (3,) [N] and a torque (3,) [N m] act, world axes."""


@dataclass(frozen=True)
class JointReaction:
    """What a joint of the tree does to the link that it carries; the opposite acts on its parent.

    Attributes:
        name: The joint.
        link: The link that it carries.
        point: (3,) origin of that link in the world [m], where the force acts.
        force: (3,) [N], world axes.
        torque: (3,) [N m] about the point, world axes. What motor, springs, damper, friction and
            limit of the joint do along it is part of it, or of the force.
        axes: (3, 3) axes of the link in the world, as columns.
        unique: Whether it follows from the motion. If not, constraints share a load that it
            depends on, and it goes with what ``System.reactions`` tells of them.
    """

    name: str
    link: str
    point: Array
    force: Array
    torque: Array
    axes: Array
    unique: bool

    def __repr__(self) -> str:
        """Force and torque, where and on what."""
        where = f"JointReaction of '{self.name}' on '{self.link}'"
        return said_of_wrench(where, self.force, self.torque, "its origin", self.unique)

    @property
    def in_link(self) -> Array:
        """Force [N], then torque [N m], in the axes of the link, as a sensor there reads (6,)."""
        return np.concatenate([self.axes.T @ self.force, self.axes.T @ self.torque])


class JointReactions(Mapping[str, JointReaction]):
    """What the joints of a tree bear, by name; each is put together when it is asked for.

    Args:
        names: Number of the link that each joint carries, by name.
        links: Links, by number.
        borne: (links, 18) as of ``link_tree.BORNE``.
        unique: (links,) whether each follows from the motion.
    """

    def __init__(
        self,
        names: Mapping[str, int],
        links: Sequence[CarriedLink],
        borne: Array,
        unique: Sequence[bool],
    ) -> None:
        self._names, self._links, self._borne, self._unique = names, links, borne, unique

    def __getitem__(self, name: str) -> JointReaction:
        """What one joint bears.

        Raises:
            UnknownNameError: There is no joint of that name.
        """
        k = self._number(name)
        R, point, force, torque = np.split(self._borne[k], (9, 12, 15))
        told = point, force, torque, R.reshape(3, 3), self._unique[k]
        return JointReaction(name, self._links[k].link, *told)

    def __iter__(self) -> Iterator[str]:
        """Names of the joints."""
        return iter(self._names)

    def __len__(self) -> int:
        """How many joints."""
        return len(self._names)

    def __repr__(self) -> str:
        """Which joints."""
        return f"<JointReactions of {', '.join(self._names)}>"

    def _number(self, name: str) -> int:
        """Number of the link that a joint carries."""
        if name not in self._names:
            refuse_name("joint", name, self._names)
        return self._names[name]

    def in_links(self, names: Iterable[str] | None = None) -> Array:
        """Forces [N], then torques [N m], in the axes of the links, as sensors there read (n, 6).

        Args:
            names: Of joints, in the order of the rows; all unless given.

        Raises:
            UnknownNameError: There is no joint of such a name.
        """
        chosen = self._names if names is None else names
        found = self._borne[[self._number(name) for name in chosen]]
        axes, parts = found[:, :9].reshape(-1, 3, 3), found[:, 12:].reshape(-1, 2, 3)
        return (parts @ axes).reshape(-1, 6)


class JointLoads:
    """Finds what joints bear, for one set of constraints.

    Args:
        tree: Links of the mechanism.
        solver: Its arrays.
        constraints: All of the system.
        by_name: What was decided about them.

    Raises:
        UnsupportedError: Constraints are known on the rates alone.
    """

    def __init__(
        self,
        tree: LinkTree,
        solver: Solver,
        constraints: Sequence[Constraint],
        by_name: Mapping[str, Redundancy],
    ) -> None:
        if solver.encoded.users:
            name = solver.encoded.users[0].name
            raise UnsupportedError(
                f"'{name}' is a constraint in Python, of which only forces on rates are known, not"
                " where they act; describe it by loop joints, rods and couplings to be told what"
                " joints bear"
            )
        self._key = tree, solver, constraints, by_name
        self._tree, self._constraints = tree, {each.name: each for each in constraints}
        self._dynamics = ForwardDynamics(solver)
        self._bearing = Bearing(self._dynamics, tree, constraints)
        rows = list(solver.encoded.rows.items())[: len(self._bearing.ends)]
        self._parts = [part for _, part in rows]
        self._decided = np.array([by_name[n].kept == by_name[n].rows for n, _ in rows], bool)
        self._names = {
            link.joint: k for k, link in enumerate(tree.links) if link.joint and link.kind != "free"
        }
        self._undecided = (~self._decided).tobytes()
        self._pairs: dict[int, tuple[int, int]] = {}
        self._unique: dict[bytes, Sequence[bool]] = {}

    def are_for(self, tree: LinkTree, solver: Solver, constraints: object, by_name: object) -> bool:
        """Whether these were made for this tree, these rows, constraints and decisions."""
        key = tree, solver, constraints, by_name
        return all(mine is its for mine, its in zip(self._key, key, strict=True))

    def at(self, state: State, tau: Array, pushes: Iterable[Push]) -> JointReactions:
        """What joints bear at a state with forces ``tau`` (nv,) on the rates.

        Raises:
            ModelError: The link of a push does not exist.
        """
        self._dynamics.find(state, tau)
        loads = Loads()
        self._add_pushes(loads, pushes)
        return self._told(self._bearing.borne(UNTOUCHED, 1.0, loads.all), self._shared())

    def in_step(
        self, step: InequalityStepper, world: ShownWorld, pushes: Iterable[Push]
    ) -> JointReactions:
        """What they bore in the last step, as a mean over it, at its start.

        Raises:
            ModelError: The link of a push does not exist.
            UnsupportedError: A line through several points was at a limit, or had a motor.
        """
        state, more, loads = step.start, step.inequalities, Loads()
        if step.solver.encoded.nc or more.force_limited.nc or more.loop_axes.names:
            self._dynamics.find(state, loaded_forces(step, state[1]), weak=True)
            if more.force_limited.nc or more.loop_axes.names:
                self._add_bounded(loads, step, state[2])
        else:
            vdot = (step.solver.v - state[1]) / step.dt
            self._dynamics.find(state, step.tau, vdot)
        self._add_pushes(loads, pushes)
        points = step.contact_points
        links = self._links_of(points, world)
        touching = Touching(points, step.contact_rows, links, step.impulses)
        return self._told(self._bearing.borne(touching, step.dt, loads.all), self._shared())

    def _add_bounded(self, loads: Loads, step: InequalityStepper, t: float) -> None:
        """Add what acts within bounds at frames of loops."""
        for name, reaction in bounded_reactions(step, self._dynamics.poses, t).items():
            each = self._constraints.get(name) or self._constraints[name.rpartition("/")[0]]
            if isinstance(each, Spring) and len(each.stretches) > 1:
                raise UnsupportedError(
                    f"'{name}' is a line through several points with a motor, limits or friction,"
                    " of which the force at these points is not told; what joints bear is not known"
                )
            if isinstance(each, LoopJoint | Distance | Spring):  # couplings act on joints
                a, b = (self._tree.number(end) for end in (each.a.link, each.b.link))
                loads.add_between(a, b, reaction.point, reaction.force, reaction.torque)

    def _add_pushes(self, loads: Loads, pushes: Iterable[Push]) -> None:
        """Add forces on links, where forward dynamics were found last."""
        if isinstance(pushes, str):
            raise ModelError(f"pushes are forces on links; write joint_reactions()['{pushes}']")
        poses = self._dynamics.poses
        for frame, force, torque in pushes:
            body, _, p = locate(self._tree.mechanism, frame.link, frame.xyz, frame.rpy)
            pose = poses[body]
            point = pose["origin"] + pose["p"] + pose["R"] @ p
            link = np.array([self._tree.number(frame.link)])
            loads.add(link, point, np.asarray(force), np.asarray(torque))

    def _links_of(self, points: np.ndarray, world: ShownWorld) -> Ints:
        """Links (n, 2) that contacts are between, of a and of b."""
        pairs = points["pair"].tolist()
        for k, pair in enumerate(pairs):
            if pair not in self._pairs:
                a, b = (self._tree.first_on(int(points[f"body_{end}"][k])) for end in "ab")
                for named in world.touching(points[k : k + 1]):
                    a, b = (self._tree.number(link) for link in named)
                self._pairs[pair] = a, b
        return np.array([self._pairs[pair] for pair in pairs], np.int64).reshape(-1, 2)

    def _shared(self) -> bytes:
        """Which loops share a load with others, as the bytes of a mask."""
        shared, decided = self._dynamics.shared, self._decided
        if shared is None:
            return self._undecided
        some = [bool(shared[part].any()) for part in self._parts]
        return (np.array(some, bool) | ~decided).tobytes()

    def _told(self, borne: Array, shared: bytes) -> JointReactions:
        """What was found, where these loops share a load."""
        if shared not in self._unique:
            crossing = self._bearing.ends[np.frombuffer(shared, bool)]
            inside = self._tree.carries[:, crossing] & (crossing >= 0)  # nothing carries the world
            same = (inside[..., 0] == inside[..., 1]).all(axis=1)
            self._unique[shared] = same.tolist()
        return JointReactions(self._names, self._tree.links, borne, self._unique[shared])
