"""Constraints written by users in plain Python, on the same footing as the built-in ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from bulletbridge.constraints.joints import Frame, frame_of
from bulletbridge.errors import Hinting, ModelError
from bulletbridge.mechanism.frames import locate
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array


class Rows(NamedTuple):
    """Equations of one constraint: g = 0, J v + g_t = 0, J v̇ + gamma = 0."""

    g: Array  # (nc,) [m or rad]
    J: Array  # (nc, nv)
    g_t: Array  # (nc,) rate of g at fixed q
    gamma: Array  # (nc,) acceleration at v̇ = 0


class Point(NamedTuple):
    """A frame's origin on a moving link, world axes."""

    p_W: Array  # (3,) [m]
    R_W: Array  # (3, 3)
    J: Array  # (3, nv): velocity of the point is J v
    J_angular: Array  # (3, nv): angular velocity of the link
    bias: Array  # (3,) [m/s²] acceleration of the point at v̇ = 0
    bias_angular: Array  # (3,) [rad/s²]


@dataclass(frozen=True)
class Kinematics(Hinting):
    """The mechanism at one state, as a user's constraint sees it.

    Attributes:
        mechanism: Its bodies and joints.
        poses: (nb,) where the bodies are, of ``mechanism.records``.
        axes: (nv,) where the axes of the rates are, of ``mechanism.records``.
        q: Configuration (nq,).
        v: Velocity (nv,).
        t: Time [s].
    """

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("position", "p", "xyz"), ".point(bb.Frame('link')).p_W"),
        **dict.fromkeys(("pose", "link_pose", "frame"), "system.link_pose('link')"),
        **dict.fromkeys(("rotation", "orientation"), ".point(bb.Frame('link')).R_W"),
        **dict.fromkeys(("jacobian", "J"), ".point(bb.Frame('link')).J"),
    }

    mechanism: Mechanism
    poses: np.ndarray
    axes: np.ndarray
    q: Array
    v: Array
    t: float

    def __repr__(self) -> str:
        """Of what, and when."""
        return f"<Kinematics: {self.mechanism!r}, t = {self.t:.6g} s>"

    def point(self, frame: Frame | str) -> Point:
        """Position, Jacobians and bias accelerations of a frame's origin.

        Raises:
            ModelError: The frame's link does not exist.
        """
        body, arm, R_W = self._located(frame)
        pose, across = self.poses[body], cross_matrix(arm)
        J, J_angular = np.zeros((2, 3, self.mechanism.nv))
        chain = rates_of(self.mechanism, body)
        if chain:
            w, v = self.axes["w"][chain], self.axes["v"][chain]
            J_angular[:, chain] = w.T
            J[:, chain] = (v + w @ across).T
        spatial = pose["av"] + self.mechanism.gravity + pose["aw"] @ across
        bias = spatial + (J_angular @ self.v) @ cross_matrix(J @ self.v)
        return Point(pose["origin"] + arm, R_W, J, J_angular, bias, np.array(pose["aw"]))

    def wrench(self, frame: Frame | str, force: Array, moment: Array) -> Array:
        """Joint forces (nv,) of a force [N] at a frame's origin and a moment [N m], world axes.

        Raises:
            ModelError: The frame's link does not exist.
        """
        body, arm, _ = self._located(frame)
        found, chain = np.zeros(self.mechanism.nv), rates_of(self.mechanism, body)
        if chain:
            about_origin = moment + arm @ cross_matrix(force)
            found[chain] = self.axes["w"][chain] @ about_origin + self.axes["v"][chain] @ force
        return found

    def _located(self, frame: Frame | str) -> tuple[int, Array, Array]:
        """Body of a frame, where it is from the tree's origin (3,), and its axes (3, 3)."""
        frame = frame_of(frame)
        body, R, p = locate(self.mechanism, frame.link, frame.xyz, frame.rpy)
        axes = self.poses["R"][body]
        return body, self.poses["p"][body] + axes @ p, axes @ R


def rates_of(mechanism: Mechanism, body: int) -> list[int]:
    """Rates that move a body."""
    chain, below = list[int](), mechanism.axes["below"]
    k = int(mechanism.bodies["axis"][body])
    while k >= 0:
        chain.append(k)
        k = int(below[k])
    return chain


def cross_matrix(b: Array) -> Array:
    """(3, 3) of b (3,): a @ it is a x b for lines a, in a tenth of the time of ``numpy.cross``."""
    x, y, z = b.tolist()
    return np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))


def checked_rows(user: "UserConstraint", kinematics: Kinematics) -> Rows:
    """The rows of a user's constraint at a state.

    Raises:
        ModelError: They are not four arrays of finite numbers, or have other shapes than they
            should; the message names the constraint.
    """
    given, n = user.rows(kinematics), len(user.units)
    try:
        rows = Rows(*(np.asarray(part, np.float64) for part in given))
    except (TypeError, ValueError):
        raise ModelError(
            f"constraint '{user.name}' gave rows that are not four arrays of numbers; return"
            " Rows(g, J, g_t, gamma)"
        ) from None
    for name, part in rows._asdict().items():
        shape = (n, len(kinematics.v)) if name == "J" else (n,)
        if part.shape != shape:
            raise ModelError(
                f"constraint '{user.name}' gave {name} of shape {part.shape}; its {n} units ask for"
                f" {shape}"
            )
        if not np.all(np.isfinite(part)):
            raise ModelError(
                f"constraint '{user.name}' gave {name} that is not finite at t ="
                f" {kinematics.t:g} s: {part.tolist()}; correct its rows, or keep it from there"
            )
    return rows


class UserConstraint(Protocol):
    """Interface of a constraint in plain Python; no base class is needed.

    Attributes:
        name: What reports and errors call it.
        units: Unit of each row.
    """

    @property
    def name(self) -> str:
        """Its name in reports and errors."""
        ...

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each row's g, ``m`` or ``rad``."""
        ...

    def rows(self, kinematics: Kinematics) -> Rows:
        """The equations at this state; evaluated several times a step."""
        ...
