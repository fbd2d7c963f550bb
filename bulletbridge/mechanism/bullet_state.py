"""States between Bullet and the coordinates of a mechanism, at the cost of Bullet's own calls.

Bullet's orientations are of inertial frames: a base quaternion turns the base's inertial axes, a
spherical joint's quaternion and rates are in the child's. Ours are in link axes, which do not depend
on how Bullet diagonalised an inertia. NumPy pays from a dozen numbers on; here plain floats are faster.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.errors import ModelError, WorldError
from bulletbridge.mechanism.bullet_tree import FIXED, POSITIONS, RATES, RawBody
from bulletbridge.mechanism.layout import SPHERICAL
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Matrix

Floats = Sequence[float]
IDENTITY: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class Ball:
    """A spherical joint: its place in Bullet's lists and in q and v, the child's I in its link."""

    place: int
    q: int
    v: int
    R: Matrix


class Converter:
    """One body's coordinates: where they are in q and v, and how Bullet wants them.

    Attributes:
        indices: Bullet's indices of the joints that move.
        nq, nv: Where the next body's coordinates start.
    """

    def __init__(self, robot: RawBody, nq: int, nv: int) -> None:
        base = Rotation.from_matrix(robot.links[0].R)
        x, y, z, w = base.as_quat()
        self._principal = (float(x), float(y), float(z), float(w))
        self.q0, self.v0 = nq, nv
        if robot.floating:
            nq, nv = nq + 7, nv + 6
        self.indices: list[int] = []
        self.balls: list[Ball] = []
        self._q: list[slice] = []
        self._v: list[slice] = []
        for index, joint in enumerate(robot.joints):
            if joint.kind == FIXED:
                continue
            if joint.kind == SPHERICAL:
                R: Matrix = tuple(map(tuple, robot.links[index + 1].R.tolist()))
                self.balls.append(Ball(len(self.indices), nq, nv, R))
            self.indices.append(index)
            self._q.append(slice(nq, nq + POSITIONS[joint.kind]))
            self._v.append(slice(nv, nv + RATES[joint.kind]))
            nq, nv = self._q[-1].stop, self._v[-1].stop
        self.nq, self.nv = nq, nv

    def read_base(
        self, q: Array, v: Array, pose: tuple[Floats, Floats], twist: tuple[Floats, Floats]
    ) -> None:
        """Put the base's pose and (linear, angular) velocity into q and v."""
        i, k = self.q0, self.v0
        x, y, z, w = self._principal
        q[i : i + 3], q[i + 3 : i + 7] = pose[0], quat_product(unit(pose[1]), (-x, -y, -z, w))
        v[k : k + 3], v[k + 3 : k + 6] = twist[1], twist[0]

    def read_joints(
        self, q: Array, v: Array, positions: Sequence[Floats], rates: Sequence[Floats]
    ) -> None:
        """Put Bullet's joint positions and rates into q and v."""
        for at, values in zip(self._q, positions, strict=True):
            q[at] = values
        for at, values in zip(self._v, rates, strict=True):
            v[at] = values
        for ball in self.balls:
            x, y, z, w = unit(positions[ball.place])
            q[ball.q : ball.q + 4] = (*turned(ball.R, (x, y, z)), w)
            v[ball.v : ball.v + 3] = turned(ball.R, rates[ball.place])

    def columns(self) -> tuple[tuple[slice, None], tuple[slice, None]]:
        """Where the joints are in q and v, as columns: their lists are what Bullet takes."""
        q_start, v_start = (self._q[0].start, self._v[0].start) if self._q else (self.nq, self.nv)
        return (slice(q_start, self.nq), None), (slice(v_start, self.nv), None)

    def joint_lists(self) -> Callable[[Array, Array], tuple[list[Floats], list[Floats]]]:
        """Function of (q, v) that gives the lists Bullet takes: a list of floats per joint."""
        q_part, v_part = self.columns()
        if not self.balls:
            return lambda q, v: (q[q_part].tolist(), v[v_part].tolist())
        q_slices, v_slices = self._q, self._v
        balls = [(ball.place, transposed(ball.R)) for ball in self.balls if ball.R != IDENTITY]

        def lists(q: Array, v: Array) -> tuple[list[Floats], list[Floats]]:
            positions, rates = q.tolist(), v.tolist()
            positions = [positions[at] for at in q_slices]
            rates = [rates[at] for at in v_slices]
            for place, R in balls:
                positions[place][:3] = turned(R, positions[place])
                rates[place] = turned(R, rates[place])
            return positions, rates

        return lists

    def base_lists(self) -> Callable[[Array, Array], tuple[Floats, Floats, Floats, Floats]]:
        """Function of (q, v) that gives a floating base's position, orientation, velocities."""
        q_part, v_part = slice(self.q0, self.q0 + 7), slice(self.v0, self.v0 + 6)
        principal = self._principal
        turn = None if principal == (0.0, 0.0, 0.0, 1.0) else principal

        def lists(q: Array, v: Array) -> tuple[Floats, Floats, Floats, Floats]:
            pose, twist = q[q_part].tolist(), v[v_part].tolist()
            quat = unit(pose[3:])
            if turn:
                quat = quat_product(quat, turn)
            return pose[:3], quat, twist[3:], twist[:3]

        return lists


@dataclass(frozen=True)
class Port:
    """One body and where its coordinates are."""

    name: str
    body_id: int
    client: int
    stamp_id: int
    stamp: bytes
    converter: Converter
    base: tuple[Floats, Floats] | None  # position and quaternion of a fixed base when it was read

    def check(self) -> None:
        """Raise WorldError unless the body is the one that was read."""
        if not pybullet.isConnected(self.client):
            raise WorldError(
                f"body '{self.name}': client {self.client} is not connected any more;"
                " connect, load the bodies and read them again"
            )
        if pybullet.getUserData(self.stamp_id, self.client) != self.stamp:
            raise WorldError(
                f"body '{self.name}' (id {self.body_id}, client {self.client}) was removed from"
                " the world; load it and read it again. Its id may by now be another body's"
            )

    def read(self, q: Array, v: Array) -> None:
        """Fill the body's part of q and v."""
        body, client, converter = self.body_id, self.client, self.converter
        pose = pybullet.getBasePositionAndOrientation(body, client)
        if self.base is None:
            converter.read_base(q, v, pose, pybullet.getBaseVelocity(body, client))
        elif pose != self.base:
            self._check_base(pose, self.base)
        if converter.indices:
            states = pybullet.getJointStatesMultiDof(body, converter.indices, client)
            positions, rates, *_ = zip(*states, strict=True)
            converter.read_joints(q, v, positions, rates)

    def writer(self) -> Callable[[Array, Array], None]:
        """Function of (q, v) that puts the body's part of them into Bullet."""
        body, client, indices = self.body_id, self.client, self.converter.indices
        joints, base = self.converter.joint_lists(), self.converter.base_lists()
        reset_joints = pybullet.resetJointStatesMultiDof
        reset_pose = pybullet.resetBasePositionAndOrientation
        reset_velocity = pybullet.resetBaseVelocity

        q_part, v_part = self.converter.columns()

        def write_columns(q: Array, v: Array) -> None:
            reset_joints(body, indices, q[q_part].tolist(), v[v_part].tolist(), client)

        def write_lists(q: Array, v: Array) -> None:
            positions, rates = joints(q, v)
            reset_joints(body, indices, positions, rates, client)

        write_joints = write_lists if self.converter.balls else write_columns

        def write_base(q: Array, v: Array) -> None:
            position, orientation, linear, angular = base(q, v)
            reset_pose(body, position, orientation, client)  # sets the velocity to zero
            reset_velocity(body, linear, angular, client)

        def write_all(q: Array, v: Array) -> None:
            write_base(q, v)
            write_joints(q, v)

        if self.base is not None:
            return write_joints if indices else lambda q, v: None
        return write_all if indices else write_base

    def _check_base(self, now: tuple[Floats, Floats], read: tuple[Floats, Floats]) -> None:
        shift = float(np.abs(np.subtract(now[0], read[0])).max())
        turn = (Rotation.from_quat(now[1]) * Rotation.from_quat(read[1]).inv()).magnitude()
        if shift > 1e-12 or turn > 1e-12:
            raise WorldError(
                f"body '{self.name}': its fixed base was moved by {shift:.3g} m and turned by"
                f" {turn:.3g} rad since it was read; read the body again"
            )


@dataclass(frozen=True)
class BulletBodies:
    """Bodies of one Bullet client and the mechanism they make up; the ``World`` of a ``System``.

    Attributes:
        mechanism: Forest of all bodies.
        body_ids: Bullet's ids by name.
        client: Physics client.
        ports: How each body is recognised, read and written.
    """

    mechanism: Mechanism
    body_ids: dict[str, int]
    client: int
    ports: tuple[Port, ...] = field(repr=False)
    _writers: tuple[Callable[[Array, Array], None], ...] = field(init=False, repr=False)
    _stamps: tuple[tuple[int, bytes], ...] = field(init=False, repr=False)
    _nq: int = field(init=False, repr=False)
    _nv: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Prepare what ``write`` needs at every step."""
        put = object.__setattr__
        put(self, "_writers", tuple(port.writer() for port in self.ports))
        put(self, "_stamps", tuple((port.stamp_id, port.stamp) for port in self.ports))
        put(self, "_nq", self.mechanism.nq)
        put(self, "_nv", self.mechanism.nv)

    def state(self) -> tuple[Array, Array]:
        """Configuration (nq,) and velocity (nv,) as Bullet has them.

        Raises:
            WorldError: A body is gone, a fixed base was moved, or a number is not finite.
        """
        self.check()
        q, v = np.zeros(self.mechanism.nq), np.zeros(self.mechanism.nv)
        for port in self.ports:
            port.read(q, v)
        if np.isfinite(q).all() and np.isfinite(v).all():
            return q, v
        for joint in self.mechanism.joints.values():
            if not np.isfinite([*q[joint.q], *v[joint.v]]).all():
                raise WorldError(
                    f"joint '{joint.name}': position {q[joint.q]} or rate {v[joint.v]} in Bullet is"
                    " not a number; reset it"
                )
        return q, v

    def write(self, q: Array, v: Array) -> None:
        """Put a state into Bullet: base pose, base velocity, then all joints of a body at once.

        Raises:
            WorldError: A body is gone; nothing was written.
            ModelError: Not q (nq,) and v (nv,); nothing was written.
        """
        if len(q) != self._nq or len(v) != self._nv:
            raise ModelError(
                f"q has {len(q)} numbers and v {len(v)}; this mechanism has {self._nq} and {self._nv}"
            )
        self.check()
        for put in self._writers:
            put(q, v)

    def check(self) -> None:
        """Make sure that the bodies are still those that were read.

        Raises:
            WorldError: A body was removed, whether or not another one has its id by now, or the
                client is gone.
        """
        user_data, client = pybullet.getUserData, self.client
        try:
            for stamp_id, stamp in self._stamps:
                if user_data(stamp_id, client) != stamp:
                    break
            else:
                return
        except pybullet.error:
            pass
        for port in self.ports:
            port.check()


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
    return tuple(zip(*R, strict=True))
