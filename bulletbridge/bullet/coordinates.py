"""One body's coordinates, in Bullet's terms and in ours; no calls into a world.

Bullet's orientations are of inertial frames: a base quaternion turns the base's inertial axes, a
spherical joint's quaternion and rates are in the child's. Ours are in link axes, which do not
depend on how Bullet diagonalised an inertia. Plain floats: for so few numbers NumPy is slower.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pybullet

from bulletbridge.bullet.tree import FIXED, POSITIONS, RATES, RawBody
from bulletbridge.mechanism.records import SPHERICAL
from bulletbridge.numerics.records import Array, Matrix

Floats = Sequence[float]
IDENTITY: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
STRAIGHT = (0.0, 0.0, 0.0, 1.0)
"""Quaternion of axes that are not turned."""


def matrix(quat: Floats) -> Array:
    """Rotation (3, 3) of a quaternion xyzw."""
    return np.array(pybullet.getMatrixFromQuaternion(quat)).reshape(3, 3)


def quaternion(R: Array) -> tuple[float, float, float, float]:
    """Quaternion xyzw of a rotation (3, 3)."""
    if np.array_equal(R, IDENTITY):
        return STRAIGHT
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat()
    return float(x), float(y), float(z), float(w)


@dataclass(frozen=True)
class Ball:
    """A spherical joint: its place in Bullet's lists, and the child's I in its link."""

    place: int
    R: Matrix


class Converter:
    """One body's coordinates: where they are in q and v, and how Bullet wants them.

    Args:
        robot: The body.
        nq, nv: Where its coordinates start.

    Attributes:
        indices: Bullet's indices of the joints that move.
        nq, nv: Where the next body's coordinates start.
        quaternions: Where in q they are.
    """

    def __init__(self, robot: RawBody, nq: int, nv: int) -> None:
        self._principal = quaternion(robot.links[0].R)
        self._turned = self._principal != STRAIGHT
        self.q0, self.v0 = nq, nv
        self.quaternions: list[slice] = []
        if robot.floating:
            nq, nv = nq + 7, nv + 6
            self.quaternions.append(slice(nq - 4, nq))
        self.indices: list[int] = []
        self.balls: list[Ball] = []
        self._q: list[slice] = []
        self._v: list[slice] = []
        for index, joint in enumerate(robot.joints):
            if joint.kind == FIXED:
                continue
            if joint.kind == SPHERICAL:
                rows = cast(list[list[float]], robot.links[index + 1].R.tolist())
                R = cast(Matrix, tuple(tuple(row) for row in rows))
                self.balls.append(Ball(len(self.indices), IDENTITY if R == IDENTITY else R))
            self.indices.append(index)
            self._q.append(slice(nq, nq + POSITIONS[joint.kind]))
            self._v.append(slice(nv, nv + RATES[joint.kind]))
            nq, nv = self._q[-1].stop, self._v[-1].stop
            if joint.kind == SPHERICAL:
                self.quaternions.append(self._q[-1])
        self.nq, self.nv = nq, nv
        turns = {ball.place: ball.R for ball in self.balls}
        self._turns = [turns.get(place) for place in range(len(self.indices))]

    def add_base(
        self,
        q: list[float],
        v: list[float],
        pose: tuple[Floats, Floats],
        twist: tuple[Floats, Floats],
    ) -> None:
        """Append the base's pose and (linear, angular) velocity to the numbers of q and v."""
        quat = unit(pose[1])
        if self._turned:
            x, y, z, w = self._principal
            quat = quat_product(quat, (-x, -y, -z, w))
        q += pose[0]
        q += quat
        v += twist[1]
        v += twist[0]

    def add_joints(self, q: list[float], v: list[float], states: Sequence[Any]) -> None:
        """Append what ``getJointStatesMultiDof`` tells, some of spherical joints, to q and v."""
        for (position, rate, *_), R in zip(states, self._turns, strict=True):
            if R is None:
                q += position
                v += rate
                continue
            x, y, z, w = position
            scale = (x * x + y * y + z * z + w * w) ** -0.5
            if R is IDENTITY:
                q += scale * x, scale * y, scale * z, scale * w
                v += rate
            else:
                q += (*turned(R, (scale * x, scale * y, scale * z)), scale * w)
                v += turned(R, rate)

    def first_single(self) -> tuple[int, int, int] | None:
        """Bullet's index of the first joint with one rate, and where it is in q and v."""
        balls = {ball.place for ball in self.balls}
        for place, index in enumerate(self.indices):
            if place not in balls:
                return index, self._q[place].start, self._v[place].start
        return None

    def parts(self) -> tuple[slice, slice]:
        """Where the joints are in q and v."""
        q_start, v_start = (self._q[0].start, self._v[0].start) if self._q else (self.nq, self.nv)
        return slice(q_start, self.nq), slice(v_start, self.nv)

    def joint_lists(self) -> Callable[[Floats, Floats], tuple[list[Floats], list[Floats]]]:
        """Function of the numbers of q and v that gives the lists Bullet takes, one per joint."""
        q_part, v_part = self.parts()
        if not self.balls:
            return lambda q, v: ([*zip(q[q_part])], [*zip(v[v_part])])
        q_slices, v_slices = self._q, self._v
        balls = [(ball.place, transposed(ball.R)) for ball in self.balls if ball.R is not IDENTITY]

        def lists(q: Floats, v: Floats) -> tuple[list[Floats], list[Floats]]:
            positions, rates = [q[at] for at in q_slices], [v[at] for at in v_slices]
            for place, R in balls:
                x, y, z = turned(R, positions[place])
                positions[place] = [x, y, z, positions[place][3]]
                rates[place] = turned(R, rates[place])
            return positions, rates

        return lists

    def base_lists(self) -> Callable[[Floats, Floats], tuple[Floats, Floats, Floats, Floats]]:
        """Function of q and v that gives a floating base's position, orientation, velocities."""
        q0, v0 = self.q0, self.v0
        turn = self._principal if self._turned else None

        def lists(q: Floats, v: Floats) -> tuple[Floats, Floats, Floats, Floats]:
            quat = unit(q[q0 + 3 : q0 + 7])
            if turn:
                quat = quat_product(quat, turn)
            return q[q0 : q0 + 3], quat, v[v0 + 3 : v0 + 6], v[v0 : v0 + 3]

        return lists


def unit(quat: Floats) -> Floats:
    """A quaternion of length 1; Bullet stores what it gets, its own integrator lets it drift."""
    x, y, z, w = quat
    scale = (x * x + y * y + z * z + w * w) ** -0.5
    return scale * x, scale * y, scale * z, scale * w


def quat_product(a: Floats, b: Floats) -> Floats:
    """Quaternion xyzw of the rotation b followed by a."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by + ay * bw + az * bx - ax * bz,
        aw * bz + az * bw + ax * by - ay * bx,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def turned(R: Matrix, a: Floats) -> list[float]:
    """R times the first three numbers of a."""
    x, y, z, *_ = a
    return [row[0] * x + row[1] * y + row[2] * z for row in R]


def transposed(R: Matrix) -> Matrix:
    """Rows for columns."""
    x, y, z = zip(*R, strict=True)
    return x, y, z
