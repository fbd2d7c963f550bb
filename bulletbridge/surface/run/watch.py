"""What constraints do while a script runs, measured alike for our solver and for Bullet's."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.numerics.records import Array
from bulletbridge.surface.drop_in.loops import NOBODY, Loop, info_of
from bulletbridge.surface.drop_in.session import Session

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


@dataclass
class Seen:
    """One constraint over a run.

    Attributes:
        client, number: Whose it is.
        kind: Its type.
        between: Links that it joins.
        exact: Whether our solver closes it; reason: why not.
        gap_m, gap_rad: Largest distance and angle by which it was open after a step.
        last_m, last_rad: The same after the last step.
        rate: Largest rate by which a gear was violated [rad/s or m/s].
        force: Largest entry of its state [N, N m].
        steps: How many it was there for.
    """

    client: int
    number: int
    kind: str
    between: str
    exact: bool = False
    reason: str = ""
    gap_m: float = 0.0
    gap_rad: float = 0.0
    last_m: float = 0.0
    last_rad: float = 0.0
    rate: float = 0.0
    force: float = 0.0
    steps: int = 0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Watch:
    """Looks at every constraint of every client after each step."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, int], Seen] = {}

    def __call__(self, session: Session) -> None:
        """Look at the constraints of a client, after a step."""
        for loop in session.loops().values():
            key = session.client, loop.number
            found = self.seen.get(key)
            if found is None:
                found = Seen(*key, KINDS.get(loop.kind, str(loop.kind)), between(loop, session))
                self.seen[key] = found
            found.exact, found.reason = loop.exact and session.mode != "native", loop.reason
            self._measure(found, loop, session)

    def _measure(self, found: Seen, loop: Loop, session: Session) -> None:
        client, info = session.client, info_of(loop.number, session.client)
        found.steps += 1
        native = pybullet.getConstraintState(loop.number, physicsClientId=client)
        state = session.filtered(loop.number, native)
        found.force = max(found.force, *map(abs, state))
        if loop.kind == pybullet.JOINT_GEAR:
            found.rate = max(found.rate, abs(gear_rate(loop, info, client)))
            return
        found.last_m, found.last_rad = gap(loop, info, client)
        found.gap_m = max(found.gap_m, found.last_m)
        found.gap_rad = max(found.gap_rad, found.last_rad)


def between(loop: Loop, session: Session) -> str:
    """The two links, by names."""
    info = info_of(loop.number, session.client)
    names: list[str] = []
    for body, link in ((info[0], info[1]), (info[2], info[3])):
        if body == NOBODY:
            names.append("world")
            continue
        base, robot = pybullet.getBodyInfo(body, physicsClientId=session.client)
        name = base
        if link >= 0:
            name = pybullet.getJointInfo(body, link, physicsClientId=session.client)[12]
        names.append(f"{robot.decode()}/{name.decode()}")
    return " – ".join(names)


def frame(body: int, link: int, place: Any, turn: Any, client: int) -> tuple[Array, Rotation]:
    """A constraint's frame in the world, from Bullet's double-precision poses."""
    if body == NOBODY:
        return np.array(place), Rotation.from_quat(turn)
    if link < 0:
        p, quaternion = pybullet.getBasePositionAndOrientation(body, physicsClientId=client)
    else:
        p, quaternion = pybullet.getLinkState(
            body, link, computeForwardKinematics=1, physicsClientId=client
        )[:2]
    R = Rotation.from_quat(quaternion)
    return np.array(p) + R.apply(place), R * Rotation.from_quat(turn)


def gap(loop: Loop, info: Any, client: int) -> tuple[float, float]:
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


def gear_rate(loop: Loop, info: Any, client: int) -> float:
    """Rate by which a gear is violated, without its auxiliary joint."""
    first, second = (
        pybullet.getJointState(body, joint, physicsClientId=client)[1]
        for body, joint in ((info[0], info[1]), (info[2], info[3]))
    )
    if loop.auxiliary:
        first -= pybullet.getJointState(info[0], info[12], physicsClientId=client)[1]
    return float(first + loop.ratio * second)
