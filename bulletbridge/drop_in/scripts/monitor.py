"""Gaps and forces of constraints while a script runs, measured alike for both solvers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.bullet.constraints import NOBODY, CreatedConstraint, Info, info_of
from bulletbridge.bullet.worlds import inertial_place, text_of
from bulletbridge.drop_in.joined_bodies import JoinedBodies, Reading
from bulletbridge.drop_in.session import Session, islands
from bulletbridge.errors import BulletBridgeError
from bulletbridge.numerics.records import Array
from bulletbridge.system.evaluation import Gap

KINDS = {
    pybullet.JOINT_REVOLUTE: "revolute",
    pybullet.JOINT_PRISMATIC: "prismatic",
    pybullet.JOINT_SPHERICAL: "spherical",
    pybullet.JOINT_PLANAR: "planar",
    pybullet.JOINT_FIXED: "fixed",
    pybullet.JOINT_POINT2POINT: "point2point",
    pybullet.JOINT_GEAR: "gear",
}
FREE_TURNS = (pybullet.JOINT_POINT2POINT, pybullet.JOINT_SPHERICAL)
ABOUT_AXIS = (pybullet.JOINT_REVOLUTE, pybullet.JOINT_PLANAR)


FORCE_FIRST = (pybullet.JOINT_POINT2POINT, pybullet.JOINT_FIXED, *ABOUT_AXIS)
"""Types whose state starts with the three parts of a force."""


@dataclass
class Seen:
    """One constraint over a run.

    Attributes:
        client, number: Whose it is.
        kind: Its type.
        between: Links that it joins.
        exact: Whether our solver closes it; reason: why not.
        limit: Force [N] or torque [N m] from which on it gives way; None when it is rigid.
        gap_m, gap_rad: Largest distance and angle by which it was open after a step.
        last_m, last_rad: The same after the last step.
        kept_m, kept_rad: Largest ones without directions that are redundant by design, which no
            joint can close; None where they are not known: of constraints that cannot be modelled,
            and of Bullet's own once their frames are moved.
        rate: Largest rate by which a gear was violated [rad/s or m/s].
        last_rate: The same after the last step.
        force: Largest force [N]; of other types than points and fixed ones the largest entry of
            its state [N or N m]; None when Bullet does not tell.
        steps: How many it was there for.
    """

    client: int
    number: int
    kind: str
    between: str
    exact: bool = False
    reason: str = ""
    limit: float | None = None
    gap_m: float = 0.0
    gap_rad: float = 0.0
    last_m: float = 0.0
    last_rad: float = 0.0
    kept_m: float | None = None
    kept_rad: float | None = None
    rate: float = 0.0
    last_rate: float = 0.0
    force: float | None = None
    steps: int = 0

    def see_kept(self, gap: Gap | None) -> None:
        """Take note of its gap without redundant directions; None: not known any more."""
        if gap is None:
            self.kept_m = self.kept_rad = None
            return
        self.kept_m = max(self.kept_m or 0.0, gap.kept_metres)
        self.kept_rad = max(self.kept_rad or 0.0, gap.kept_radians)

    @property
    def key(self) -> tuple[int, int, str, str]:
        """What it is known by; numbers start again when a world is reset."""
        return self.client, self.number, self.kind, self.between


class Monitor:
    """Looks at every constraint of every client after each step.

    Bullet's poses of links, which lag a step until somebody asks for new ones, are new afterwards;
    nothing else changes.
    """

    def __init__(self) -> None:
        self.seen: dict[tuple[object, ...], Seen] = {}
        self._kept: dict[Session, KeptGaps] = {}

    def __call__(self, session: Session) -> None:
        """Look at the constraints of a client, after a step."""
        loops = session.loops().values()
        kept = self._kept.setdefault(session, KeptGaps()).of(session, loops)
        for loop in loops:
            info = info_of(loop.number, session.client)
            key = session.client, loop.number, loop.kind, info[:4]
            found = self.seen.get(key)
            if found is None:
                kind = KINDS.get(loop.kind, str(loop.kind))
                found = Seen(*key[:2], kind, between(info, session.client))
                self.seen[key] = found
            found.exact, found.reason = loop.exact and session.mode != "native", loop.reason
            found.limit, found.steps = loop.max_force, found.steps + 1
            self._force(found, loop, session)
            if loop.kind == pybullet.JOINT_GEAR:
                found.last_rate = abs(gear_rate(loop, info, session.client))
                found.rate = max(found.rate, found.last_rate)
            else:
                found.last_m, found.last_rad = gap(loop, info, session.client)
                found.gap_m = max(found.gap_m, found.last_m)
                found.gap_rad = max(found.gap_rad, found.last_rad)
                found.see_kept(kept.get(loop.name))

    def _force(self, found: Seen, loop: CreatedConstraint, session: Session) -> None:
        try:
            native = pybullet.getConstraintState(loop.number, physicsClientId=session.client)
        except pybullet.error:
            return  # of bodies in maximal coordinates
        state = session.filtered(loop.number, native)
        one = math.hypot(*state[:3]) if loop.kind in FORCE_FIRST else max(map(abs, state))
        found.force = max(found.force or 0.0, one)


def between(info: Info, client: int) -> str:
    """The two links, by names."""
    names: list[str] = []
    for body, link in ((info[0], info[1]), (info[2], info[3])):
        if body == NOBODY:
            names.append("world")
            continue
        base, robot = pybullet.getBodyInfo(body, physicsClientId=client)
        name = base
        if link >= 0:
            name = pybullet.getJointInfo(body, link, physicsClientId=client)[12]
        names.append(f"{text_of(robot) or f'body {body}'}/{text_of(name)}")
    return " – ".join(names)


def frame(body: int, link: int, place: Any, turn: Any, client: int) -> tuple[Array, Rotation]:
    """World position (3,) [m] and rotation of a frame given in a link's inertial frame."""
    if body == NOBODY:
        return np.array(place), Rotation.from_quat(turn)
    p, quaternion = inertial_place(body, link, client)
    R = Rotation.from_quat(quaternion)
    return np.array(p) + R.apply(place), R * Rotation.from_quat(turn)


def gap(loop: CreatedConstraint, info: Info, client: int) -> tuple[float, float]:
    """Distance [m] and angle [rad] by which a constraint is open."""
    p_a, R_a = frame(info[0], info[1], info[6], info[8], client)
    p_b, R_b = frame(info[2], info[3], info[7], info[9], client)
    shift, turn = p_b - p_a, (R_a.inv() * R_b).as_rotvec()
    if loop.kind in FREE_TURNS:
        return float(np.linalg.norm(shift)), 0.0
    axis = np.array(loop.axis, float)
    length = float(np.linalg.norm(axis))
    if length > 0.0:  # given in the parent's inertial axes
        in_frame = Rotation.from_quat(info[8]).inv().apply(axis / length)
        along = R_a.apply(in_frame)
        if loop.kind == pybullet.JOINT_PRISMATIC:
            shift = shift - along * (along @ shift)
        if loop.kind == pybullet.JOINT_PLANAR:
            shift = along * (along @ shift)
        if loop.kind in ABOUT_AXIS:
            turn = np.cross(in_frame, (R_a.inv() * R_b).apply(in_frame))
    return float(np.linalg.norm(shift)), float(np.linalg.norm(turn))


def gear_rate(loop: CreatedConstraint, info: Info, client: int) -> float:
    """Rate by which a gear is violated."""
    first, second = (
        pybullet.getJointState(body, joint, physicsClientId=client)[1]
        for body, joint in ((info[0], info[1]), (info[2], info[3]))
    )
    if loop.auxiliary != NOBODY:
        first -= pybullet.getJointState(info[0], loop.auxiliary, physicsClientId=client)[1]
    return float(first + loop.ratio * second)


class KeptGaps:
    """Gaps of one client's constraints; where Bullet steps alone, groups are made to look only."""

    def __init__(self) -> None:
        self._loops: frozenset[CreatedConstraint] = frozenset()
        self._actions: object = None  # a new one with each reset of the world
        self._groups: list[JoinedBodies] = []

    def of(self, session: Session, loops: Iterable[CreatedConstraint]) -> dict[str, Gap]:
        """Gaps by the names of the loops, of those that can be modelled."""
        groups = [group.joined for group in session.groups.values()]
        if session.mode == "native":
            groups = self._watched(session, loops)
        return {gap.name: gap for group in groups for gap in group.gaps()}

    def _watched(self, session: Session, loops: Iterable[CreatedConstraint]) -> list[JoinedBodies]:
        # frames that move would have to be followed; force limits do not matter here
        still = [replace(n, max_force=None) for n in loops if n.exact and not n.moving]
        if self._loops == frozenset(still) and self._actions is session.actions:
            return self._groups
        self._loops, self._actions = frozenset(still), session.actions
        self._groups = []
        for bodies in islands(loop.bodies for loop in still):
            among = [loop for loop in still if bodies & set(loop.bodies)]
            try:
                client = session.client
                self._groups.append(JoinedBodies(bodies, among, client, Reading(client)))
            except BulletBridgeError:
                continue
        return self._groups
