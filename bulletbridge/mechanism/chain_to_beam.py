"""A chain of bodies of a mechanism replaced by one flexible beam."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.mechanism.beams import FlexibleBeam, beam_record
from bulletbridge.mechanism.build import ORIGIN, Load
from bulletbridge.mechanism.frames import Triple, inertia_at, locate
from bulletbridge.mechanism.model import Joint, Link, Mechanism, empty_arrays
from bulletbridge.mechanism.records import BEAM
from bulletbridge.numerics.records import Array

NO_SEGMENTS: Mapping[str, Load] = {}


@dataclass(frozen=True)
class Replacement:
    """A mechanism in which a beam stands for a chain, and where the coordinates went."""

    mechanism: Mechanism  # with the beam
    q: np.ndarray  # (2, n) indices of the positions that are left: in the old q, in the new one
    v: np.ndarray  # (2, n) the same for rates
    chain: np.ndarray  # (n,) old positions of the chain, from the root on
    beam: slice  # new positions of the beam's modes


def replace_chain(
    mechanism: Mechanism,
    joints: Sequence[str],
    name: str,
    beam: FlexibleBeam,
    on: str,
    xyz: Triple = ORIGIN,
    rpy: Triple = ORIGIN,
    segments: Mapping[str, Load] = NO_SEGMENTS,
) -> Replacement:
    """Replace joints in a row, with the bodies between them, by one beam.

    What the last of them carries is at the beam's tip, placed as on the straight chain. Links of
    the bodies between are gone.

    Args:
        mechanism: Stays as it is.
        joints: Names from the root on; all rates zero is the straight chain.
        name: Of the beam's joint.
        beam: What takes their place.
        on: Link at the root, which stays.
        xyz: Origin of the beam's root frame on it [m].
        rpy: Its roll, pitch, yaw there [rad]: x along the beam, y the way it bends.
        segments: Masses of segments of the chain that are fixed to links that stay, by link, in the
            link's frame; they are taken away, since the beam has its own.

    Raises:
        ModelError: The joints are no chain, or bodies between them carry others.
    """
    chain = [int(mechanism.axes[mechanism.joint(joint).v.start]["body"]) for joint in joints]
    root, R, p = locate(mechanism, on, xyz, rpy)
    _check_chain(mechanism, joints, chain, root)
    if name in mechanism.joints and name not in joints:
        raise ModelError(f"there is a joint '{name}' already; give another name")
    tip, old = chain[-1], _without_segments(mechanism, segments)
    order = [b for b in range(len(old.bodies)) if b not in chain[:-1]]
    number = {b: n for n, b in enumerate(order)}
    pairs = _renumbered(old, order, tip, name, beam.modes)
    stays = [(before, after) for before, after in pairs if after.name != name]
    q, v = (_indices([(getattr(a, x), getattr(b, x)) for a, b in stays]) for x in "qv")
    at = {after.name: after for _, after in pairs}[name]

    bodies, axes = empty_arrays(len(order), pairs[-1][1].v.stop)
    bodies[:], axes[v[1]] = old.bodies[order], old.axes[v[0]]
    axis: dict[int, int] = dict(zip(*v.tolist(), strict=True)) | {-1: -1}
    axis |= {old.joint(joint).v.start: at.v.stop - 1 for joint in joints}
    position: dict[int, int] = dict(zip(*q.tolist(), strict=True)) | {-1: -1}
    for k in map(int, v[1]):
        axes[k]["body"], axes[k]["below"] = number[axes[k]["body"]], axis[axes[k]["below"]]
        axes[k]["q"] = position[axes[k]["q"]]
    moved = _tip_frame(old, chain, R, p, beam.length)
    for body, (_, joint) in zip(bodies[1:], pairs, strict=True):
        if body["parent"] == tip:
            body["R"], body["p"] = moved[0] @ body["R"], moved[1] + moved[0] @ body["p"]
        body["parent"] = number.get(int(body["parent"]), 0)
        body["q"], body["v"], body["axis"] = joint.q.start, joint.v.start, joint.v.stop - 1
    body = bodies[number[tip]]
    body["parent"], body["joint"], body["beam"] = number[root], BEAM, len(old.beams)
    body["R"], body["p"] = R, p
    _move_load(body, *moved)
    for k in range(at.v.start, at.v.stop):
        axes[k]["body"], axes[k]["q"] = number[tip], at.q.start + k - at.v.start
        axes[k]["below"] = k - 1 if k > at.v.start else axis[int(old.bodies[root]["axis"])]
    axes["stiffness"][at.v], axes["damping"][at.v] = beam.mode_stiffness, beam.mode_damping

    efforts = old.efforts[np.isin(old.efforts["body"], order)]
    for effort in efforts:
        if effort["body"] == tip:
            _move_load(effort, *moved)
        effort["body"] = number[int(effort["body"])]
    beams, stations = old.beams.copy(), beam.stations()
    beams["body"] = [number[int(b)] for b in beams["body"]]
    new = beam_record(number[tip], len(old.stations), len(stations) - 1)
    return Replacement(
        replace(
            old,
            bodies=bodies,
            axes=axes,
            links=_links(old, number, tip, *moved),
            joints={after.name: after for _, after in pairs},
            efforts=efforts,
            beams=np.concatenate([beams, new]),
            stations=np.concatenate([old.stations, stations]),
            carried=(),
        ),
        q,
        v,
        np.array([old.joint(joint).q.start for joint in joints]),
        at.q,
    )


def _check_chain(
    mechanism: Mechanism, joints: Sequence[str], chain: Sequence[int], root: int
) -> None:
    """Raise ModelError unless the joints follow each other without branches."""
    parents = mechanism.bodies["parent"]
    if not chain or any(mechanism.joint(joint).kind != "revolute" for joint in joints):
        raise ModelError(f"joints {', '.join(joints)}: give revolute ones, at least one")
    for joint, body, parent in zip(joints, chain, [root, *chain[:-1]], strict=True):
        if int(parents[body]) != parent:
            raise ModelError(f"joint '{joint}' does not follow the one before it in the chain")
    for body, after in zip(chain[:-1], chain[1:], strict=True):
        if list(np.flatnonzero(parents[1:] == body) + 1) != [after]:
            raise ModelError(f"the chain {', '.join(joints)} has branches; remove them first")


def _without_segments(mechanism: Mechanism, segments: Mapping[str, Load]) -> Mechanism:
    """A copy whose bodies lack the masses of segments."""
    bodies = mechanism.bodies.copy()
    for name, load in segments.items():
        link = mechanism.link(name)
        body = bodies[link.body]
        if link.body == 0:
            continue  # the world's mass is no matter
        centre = link.p + link.R @ np.asarray(load.com, float)
        left = float(body["mass"]) - load.mass
        second = body["J"] + body["mass"] * inertia_at(body["com"])
        second -= link.R @ load.J @ link.R.T + load.mass * inertia_at(centre)
        first = body["mass"] * body["com"] - load.mass * centre
        if left < 1e-12 * load.mass:  # nothing else was there
            body["mass"], body["com"], body["J"] = 0.0, 0.0, 0.0
            continue
        body["mass"], body["com"] = left, first / left
        body["J"] = second - left * inertia_at(body["com"])
    return replace(mechanism, bodies=bodies)


def _renumbered(
    old: Mechanism, order: Sequence[int], tip: int, name: str, modes: int
) -> list[tuple[Joint, Joint]]:
    """Joints of the bodies that are left, as they were and with their new places."""
    by_body = {int(old.axes[j.v.start]["body"]): j for j in old.joints.values()}
    pairs: list[tuple[Joint, Joint]] = []
    q = v = 0
    for b in order[1:]:
        joint = by_body[b]
        if b == tip:
            new = Joint(name, "beam", slice(q, q + modes), slice(v, v + modes))
        else:
            positions, rates = (part.stop - part.start for part in (joint.q, joint.v))
            new = replace(joint, q=slice(q, q + positions), v=slice(v, v + rates))
        pairs.append((joint, new))
        q, v = new.q.stop, new.v.stop
    return pairs


def _indices(slices: Sequence[tuple[slice, slice]]) -> np.ndarray:
    """(2, n) indices of pairs of slices of equal lengths."""
    table = [
        (i, j)
        for a, b in slices
        for i, j in zip(range(a.start, a.stop), range(b.start, b.stop), strict=True)
    ]
    return np.array(table, int).reshape(-1, 2).T


def _tip_frame(
    mechanism: Mechanism, chain: Sequence[int], R: Array, p: Array, length: float
) -> tuple[Array, Array]:
    """Frame (3, 3), (3,) of the last body in that of the tip, the chain straight."""
    at_R, at_p = np.eye(3), np.zeros(3)
    for b in chain:
        body = mechanism.bodies[b]
        at_p = at_p + at_R @ body["p"]
        at_R = at_R @ body["R"]
    return R.T @ at_R, R.T @ (at_p - p) - np.array([length, 0.0, 0.0])


def _move_load(record: np.void, R: Array, p: Array) -> None:
    """Write the mass of a body or a drag in a frame in which its own is at (R, p)."""
    record["com"], record["J"] = p + R @ record["com"], R @ record["J"] @ R.T


def _links(
    mechanism: Mechanism, number: Mapping[int, int], tip: int, R: Array, p: Array
) -> dict[str, Link]:
    """The links that are left."""
    found: dict[str, Link] = {}
    for link in mechanism.links.values():
        if link.body == tip:
            link = replace(link, R=R @ link.R, p=p + R @ link.p)
        if link.body in number:
            found[link.name] = replace(link, body=number[link.body])
    return found
