"""Has somebody else moved bodies that a system shows, or changed what its steps take as given?"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakSet

import numpy as np
import pybullet

from bulletbridge.bullet.contacts import is_floating
from bulletbridge.bullet.coordinates import Converter, Floats
from bulletbridge.bullet.stamps import stamp
from bulletbridge.bullet.worlds import body_ids, gravity, text_of, time_step
from bulletbridge.errors import warn_user
from bulletbridge.numerics.records import Array

MOVED = 1e-9
"""Change of a position or rate, in its unit or relative, that somebody else has made; what is
written comes back to the last bit, or to round-off where Bullet normalises a quaternion."""

FALLING = 5.0
"""Speed [m/s] of half a second's fall: what is meant to stand has not been held by anything."""


def how_to_join(bodies: Mapping[str, int], other: int) -> str:
    """How another body becomes part of the system of these, by name."""
    several = len(bodies) > 1
    whole = {name if several else "robot": body for name, body in bodies.items()}
    return (
        f"attach {'all' if several else 'both'} together, as"
        f" bb.attach({whole | {'other': other}},"
        " contacts=True), or name both under 'bodies' of a loops file"
    )


class Probe(NamedTuple):
    """One joint of a body, or its floating base, that any step of Bullet's would move.

    Attributes:
        name: Of the body.
        body: Bullet's id.
        joint: Bullet's index; -1 for the base.
        q, v: Where its position and rate are in what was shown.
        stamp: No other body has it; ids are given again, and so are clients' numbers.
    """

    name: str
    body: int
    joint: int
    q: int
    v: int
    stamp: bytes


def probe_of(
    name: str, body: int, stamp: bytes, floats: bool, converter: Converter
) -> Probe | None:
    """What tells that a body was moved; None if nothing of it moves, or only spherical joints."""
    at = converter.first_single()
    if at is not None:
        return Probe(name, body, *at, stamp)
    return Probe(name, body, -1, converter.q0, converter.v0, stamp) if floats else None


class Meddling:
    """Watches that Bullet has what it was last shown, and says once where it has not.

    Args:
        client: Physics client.
        probes: One for each body.
        quaternions: Where in q they are; each is the same pose with the other sign, which Bullet
            gives it where it works out a pose anew.
        pull: (3,) gravity of the world when the bodies were read [m/s²].
        dt: Its step then [s].
    """

    def __init__(
        self,
        client: int,
        probes: Sequence[Probe],
        quaternions: Sequence[slice],
        pull: Array,
        dt: float,
    ) -> None:
        self.client, self.probes = client, tuple(probes)
        self.pull, self.dt = pull.tolist(), dt
        self.quaternions = tuple(quaternions)
        self.shown: tuple[Floats, Floats] | None = None  # q and v in Bullet's coordinates
        self.told = False
        self._beside = 0  # how many bodies there were when those beside were looked at
        self._fell = False  # whether it was told
        WATCHING.add(self)

    def moved(self) -> Probe | None:
        """The body whose probe is not where it was shown to be; asks Bullet once for each body."""
        return None if self.told else self._astray()

    def _astray(self) -> Probe | None:
        if self.shown is None:
            return None
        (q, v), client = self.shown, self.client
        for probe in self.probes:
            _, body, joint, iq, iv, _ = probe
            if joint >= 0:
                position, rate, _, _ = pybullet.getJointState(body, joint, client)
                if position != q[iq] or rate != v[iv]:
                    return probe
            else:
                (x, y, z), _ = pybullet.getBasePositionAndOrientation(body, client)
                if x != q[iq] or y != q[iq + 1] or z != q[iq + 2]:
                    return probe
        return None

    def shown_as(self, numbers: list[float]) -> list[float] | None:
        """What was shown, q and v in a row; None if that is not, to round-off, what Bullet has.

        Args:
            numbers: q and v as Bullet has them.
        """
        if self.shown is None:
            return None
        given = [*self.shown[0], *self.shown[1]]
        if given == numbers:
            return given
        shown, now = np.array(given), np.array(numbers)
        for part in self.quaternions:
            now[part] = np.copysign(1.0, now[part] @ shown[part]) * now[part]
        return given if np.allclose(now, shown, rtol=MOVED, atol=MOVED) else None

    def tell_moved(self, numbers: list[float], bodies: str) -> None:
        """Warn if what Bullet has is not what it was shown, beyond round-off.

        Args:
            numbers: q and v as Bullet has them.
            bodies: Who was moved.
        """
        if self.shown is None or self.told or self.shown_as(numbers) is not None:
            return
        self.told = True
        other = self._other()
        if other is not None:
            warn_user(
                f"{bodies} is advanced by two systems, one of {self._names()} and one of"
                f" {other._names()}, which show it in turn: attach it once, with all that closes"
                " its loops"
            )
            return
        warn_user(
            f"{bodies} was moved in Bullet since it was shown there, which steps do not follow:"
            " step() takes the place of stepSimulation, motors are system.motors.set(...) in the"
            " place of setJointMotorControl2, torques system.tau, and what resetJointState and the"
            " like have set is taken over by system.read(). Other bodies are best stepped in"
            " bulletbridge.BulletClient, which does all of it"
        )

    def tell_of_bodies_beside(self) -> None:
        """Warn once of free bodies that no system advances: they hang where they were put."""
        count = pybullet.getNumBodies(physicsClientId=self.client)
        if self.told or count == self._beside or not self.probes:
            return
        self._beside = count
        client, ours = self.client, {p.stamp for each in [*WATCHING] for p in each.probes}
        free = [body for body in body_ids(client) if is_floating(body, client)]
        left = [body for body in free if stamp(body, client)[1] not in ours]
        if left:
            self.told = True
            ours_by_name = {probe.name: probe.body for probe in self.probes}
            called = text_of(pybullet.getBodyInfo(left[0], self.client)[1])
            more = f" and {len(left) - 1} more" if len(left) > 1 else ""
            warn_user(
                f"body {left[0]} ('{called}'){more} may move and is part of no System, so that no"
                f" step moves it: {how_to_join(ours_by_name, left[0])}, or give it a fixed"
                " base or mass 0 if it is to stand still"
            )

    def tell_of_a_fall(self, pull: Array, touches: bool) -> None:
        """Warn once of what falls past all that could hold it, or asks for contacts with nothing.

        Args:
            pull: Gravity that acts (3,) [m/s²].
            touches: Whether contacts act.
        """
        others = set(body_ids(self.client)) - {probe.body for probe in self.probes}
        if self._fell or touches == bool(others):
            return
        for name, body in ((probe.name, probe.body) for probe in self.probes):
            rate = pybullet.getBaseVelocity(body, self.client)[0]
            if np.dot(rate, pull) > FALLING * np.linalg.norm(pull) and is_floating(
                body, self.client
            ):
                self._fell = True
                what = (
                    "there is nothing else in its world; load a ground, by pybullet.loadURDF or as"
                    " 'scenery' of a loops file, or hold its base"
                )
                if not touches:
                    what = "contacts=True has it touch the other bodies in its world"
                warn_user(f"'{name}' falls, and touches nothing: {what}")
                return

    def _other(self) -> "Meddling | None":
        """Who else shows a body of these, and has shown it last."""
        bodies = {probe.stamp for probe in self.probes}
        for other in [*WATCHING]:
            shared = bodies.intersection(probe.stamp for probe in other.probes)
            if shared and other is not self and other._is_shown():
                return other
        return None

    def _is_shown(self) -> bool:
        """Whether its bodies are where they were shown, and are there at all."""
        try:
            return self.shown is not None and self._astray() is None
        except pybullet.error:  # one of its other bodies is gone
            return False

    def _names(self) -> str:
        return ", ".join(f"'{probe.name}'" for probe in self.probes)

    def tell_settings(self, acting: Callable[[], tuple[Array, float]]) -> None:
        """Warn if ``setGravity`` or ``setTimeStep`` was called, unless the system was told as much.

        Args:
            acting: Gravity of the system (3,) [m/s²], and its step [s].
        """
        pull, dt = list(gravity(self.client)), time_step(self.client)
        if pull == self.pull and dt == self.dt:
            return
        (own_pull, own_dt), said = acting(), list[tuple[str, str, str]]()
        if pull != self.pull and not np.allclose(own_pull, pull, rtol=1e-12, atol=0.0):
            listed = ", ".join(f"{value:g}" for value in pull)
            said.append(("gravity", f"({listed}) m/s²", f"gravity = ({listed})"))
        if dt not in (self.dt, own_dt):
            said.append(("the time step", f"{dt:g} s", f"dt = {dt:g}"))
        self.pull, self.dt = pull, dt
        for what, value, remedy in said:
            warn_user(
                f"{what} of client {self.client} was set to {value} after the system was"
                f" made, which has its own: set system.{remedy}"
            )


WATCHING: WeakSet[Meddling] = WeakSet()
"""All of this process, to find who else shows a body."""
