"""What joints of the tree bear: what constraints, contacts and loads leave over for them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_element_records import elements_of
from bulletbridge.constraints.force_elements import Spring, Wrench
from bulletbridge.constraints.joints import Distance, Frame, LoopJoint
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.element_wrenches import element_wrenches
from bulletbridge.mechanism.frames import locate
from bulletbridge.mechanism.link_tree import LinkTree, Loads
from bulletbridge.numerics.records import Array, Ints, copied
from bulletbridge.system.contact_report import ContactLoad, Loaded
from bulletbridge.system.evaluation import Reaction, efforts_at

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

    @property
    def in_link(self) -> Array:
        """Force [N], then torque [N m], in the axes of the link, as a sensor there reads (6,)."""
        return np.concatenate([self.axes.T @ self.force, self.axes.T @ self.torque])


class Acting(NamedTuple):
    """What acts on links besides joints.

    Attributes:
        loops: Reactions of the constraints.
        contacts: What contacts do, and
        touching: the links that they are between, of a and of b, as far as they are known.
        pushes: Forces on links that are part of ``tau``.
    """

    loops: Mapping[str, Reaction]
    contacts: Sequence[ContactLoad] = ()
    touching: Sequence[tuple[str, str]] = ()
    pushes: Iterable[Push] = ()


def joint_reactions(
    tree: LinkTree,
    solver: Solver,
    constraints: Sequence[Constraint],
    motion: Loaded,
    acting: Acting,
) -> dict[str, JointReaction]:
    """What every joint of the tree bears, those on fixed joints too.

    Args:
        tree: Links of the mechanism.
        solver: Its arrays.
        constraints: All of the system.
        motion: Its equations of motion and what came of them.
        acting: What acted besides.

    Raises:
        UnsupportedError: Constraints are known on the rates alone.
        ModelError: The link of a push does not exist.
    """
    if solver.encoded.users:
        name = solver.encoded.users[0].name
        raise UnsupportedError(
            f"'{name}' is a constraint in Python, of which only forces on rates are known, not"
            " where they act; describe it by loop joints, rods and couplings to be told what"
            " joints bear"
        )
    terms = motion.terms
    loads = Loads()
    crossing = add_loops(tree, loads, constraints, acting.loops)
    add_elements(tree, loads, solver, constraints, motion)
    for k, load in enumerate(acting.contacts):
        if not (load.force.any() or load.moment.any()):
            continue
        a, b = tree.first_on(load.a), tree.first_on(load.b)
        if k < len(acting.touching):
            a, b = (tree.number(link) for link in acting.touching[k])
        sides, signs = np.array([b, a]), np.array([[1.0], [-1.0]])
        points = np.array([load.point_b, load.point_a])
        loads.add(sides, points, signs * load.force, signs * load.moment)
    for frame, force, torque in acting.pushes:
        body, _, p = locate(tree.mechanism, frame.link, frame.xyz, frame.rpy)
        pose = terms.poses[body]
        point = pose["origin"] + pose["p"] + pose["R"] @ p
        link = np.array([tree.number(frame.link)])
        loads.add(link, point, np.asarray(force), np.asarray(torque))
    borne = tree.borne(terms.poses, terms.axes, motion.vdot, loads.all)
    return told(tree, borne, crossing)


def told(
    tree: LinkTree, borne: np.ndarray, crossing: Sequence[tuple[int, int]]
) -> dict[str, JointReaction]:
    """What joints bear, by name; ``crossing``: links between which loads are shared."""
    axes, points, forces, moments = (borne[x] for x in ("R", "origin", "force", "moment"))
    ends: Ints = np.array(crossing, int).reshape(-1, 2)
    inside = tree.carries[:, ends] & (ends >= 0)  # the world, -1, is carried by nothing
    unique: list[bool] = (inside[..., 0] == inside[..., 1]).all(axis=1).tolist()
    found: dict[str, JointReaction] = {}
    for k, link in enumerate(tree.links):
        if link.kind == "free" or not link.joint:
            continue
        found[link.joint] = JointReaction(
            link.joint, link.link, points[k], forces[k], moments[k], axes[k], unique[k]
        )
    return found


def add_loops(
    tree: LinkTree, loads: Loads, constraints: Sequence[Constraint], loops: Mapping[str, Reaction]
) -> list[tuple[int, int]]:
    """Add what constraints do to links; between which links that is not unique.

    Raises:
        UnsupportedError: A line through several points was at a limit, or had a motor.
    """
    found, joined = list[tuple[int, int]](), {each.name: each for each in constraints}
    for name, reaction in loops.items():
        each = joined.get(name) or joined.get(name.rpartition("/")[0])
        if not isinstance(each, LoopJoint | Distance | Spring):
            continue  # of couplings, which act on joints
        if isinstance(each, Spring) and len(each.stretches) > 1:
            raise UnsupportedError(
                f"'{name}' is a line through several points with a motor, limits or friction, of"
                " which the force at these points is not told; what joints bear is not known"
            )
        a, b = tree.number(each.a.link), tree.number(each.b.link)
        loads.add_between(a, b, reaction.point, reaction.force, reaction.torque)
        if not reaction.unique:
            found.append((a, b))
    return found


def add_elements(
    tree: LinkTree,
    loads: Loads,
    solver: Solver,
    constraints: Sequence[Constraint],
    motion: Loaded,
) -> None:
    """Add what force elements, wrenches and Bullet's damping of links do."""
    efforts = efforts_at(solver, motion.terms, *motion.state)
    if not len(efforts):
        return
    wrenches, poses = np.zeros((len(efforts), 6)), copied(motion.terms.poses)
    element_wrenches(efforts, poses, wrenches)
    own, origins = wrenches[tree.dampings], poses["origin"][tree.body[tree.damped]]
    loads.add(tree.damped, origins, own[:, 3:], own[:, :3])
    first = len(efforts) - len(solver.encoded.elements)
    if first == len(efforts):
        return
    between: list[tuple[str, str]] = [(e.a.link, e.b.link) for e in elements_of(constraints)]
    between += [("", each.frame.link) for each in constraints if isinstance(each, Wrench)]
    for (a, b), effort, wrench in zip(between, efforts[first:], wrenches[first:], strict=True):
        moment, force = np.split(wrench, 2)
        point = poses["origin"][effort["body_b"]]
        number = tree.number(a) if a else -1
        loads.add_between(number, tree.number(b), point, force, moment)
