"""Bodies in a PyBullet world: recognised, their states read and written, at Bullet's own cost."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.errors import ModelError, WorldError
from bulletbridge.mechanism.bullet_coordinates import Converter, Floats
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array


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
                f"q has {len(q)} numbers and v {len(v)};"
                f" the mechanism has {self._nq} and {self._nv}"
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
