"""Contacts that stick, slide, lift off and touch again, with the instants located.

Between events the contacts are loop joints of a system, and any integrator steps it. A step at
whose end a contact has passed what its mode allows is taken again, shorter, until it ends there: so
an event is as accurate as the integrator. Events that begin and end within one step are not seen.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.errors import BulletBridgeError, ModelError, StepError
from bulletbridge.events.contact import Contact, ContactGeometry, ContactMode
from bulletbridge.events.contact_modes import FORCE_RTOL, ContactModes, Force
from bulletbridge.events.impact import impact
from bulletbridge.events.sliding import STILL
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.system.options import Integrator

CLOSED = 1e-9
"""Gap [mechanism lengths] at which a contact counts as closed."""
MOST_EVENTS = 500
"""Most events in one step."""
SHORTEST = 1e-13
"""Step [s] that is not worth taking."""
HALVINGS = 40


class Event(NamedTuple):
    """A change of mode, or a bounce."""

    t: float  # [s]
    contact: str
    what: str  # lift-off, slide, stick, land or bounce
    energy_lost: float = 0.0  # [J], by an impact


class ContactMotion:
    """A system with ideal contacts.

    Args:
        mechanism: The tree.
        constraints: What else closes its loops.
        contacts: Each of a ball or a point with a plane.
        resting: Normal speed [m/s] below which what touches stays.
        integrator: Of high order for accurate events.
        options: As of ``System``.

    Attributes:
        system: The system between events; set its state before the first step, or call ``start``
            afterwards.
        events: So far.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        constraints: Sequence[Constraint],
        contacts: Iterable[Contact],
        *,
        resting: float = 1e-3,
        integrator: Integrator = "rk4",
        **options: Any,
    ) -> None:
        if {"formulation", "contacts"} & options.keys():
            raise ModelError("contacts bring their own formulation; leave out what options name it")
        self.contacts = {contact.name: contact for contact in contacts}
        names, self._resting = [c.name for c in constraints], resting
        taken = [name for name in self.contacts if name in names]
        if taken:
            raise ModelError(f"a constraint is called '{taken[0]}' like a contact; rename one")
        self._modes = ContactModes(
            mechanism, constraints, self.contacts, integrator=integrator, **options
        )
        self.system = self._modes.system
        self.events: list[Event] = []
        self._started = False

    @property
    def mode(self) -> dict[str, ContactMode]:
        """State of each contact, by name."""
        return self._modes.now

    def start(self) -> None:
        """Find the modes that belong to the state of the system.

        Raises:
            ModelError: A contact begins inside its plane, or the constraints leave no freedom.
        """
        self._modes.take(dict.fromkeys(self.contacts, ContactMode.OPEN))
        if self.system.decision.cap >= self.system.mechanism.nv:
            raise ModelError("the constraints leave no freedom; contacts have nothing to hold")
        here, length = self._modes.geometries(), self.system.encoded.length
        for name, at in here.items():
            if at.gap < -CLOSED * length:
                raise ModelError(
                    f"contact '{name}' begins {-at.gap:.3g} m inside its plane; move link "
                    f"'{self.contacts[name].b.link}', or turn the axis round"
                )
        count = len(self.events)
        if any(at.gap <= CLOSED * length for at in here.values()):
            self._take_impact(here)
        self.events[count:] = [e for e in self.events[count:] if e.what == "bounce"]
        self._started = True

    def step(self) -> None:
        """Advance by one step of the system, with all events in it.

        Raises:
            StepError: The step could not be finished; the state before it was restored.
        """
        if not self._started:
            self.start()
        system, dt = self.system, self.system.dt
        before, modes, count = self._modes.state(), dict(self._modes.now), len(self.events)
        end = system.t + dt
        try:
            for _ in range(MOST_EVENTS):
                if not end - system.t > SHORTEST or self._advance(end - system.t):
                    break
            else:
                raise StepError(
                    f"more than {MOST_EVENTS} events in the step at t = {before[2]:.6g} s; raise "
                    f"resting, or use a smaller step"
                )
        except BulletBridgeError:
            del self.events[count:]
            self._modes.take(dict.fromkeys(self.contacts, ContactMode.OPEN))
            system.set_state(*before)
            self._modes.take(modes)
            raise
        finally:
            system.dt = dt
        system.write()

    def run(self, duration: float) -> None:
        """Advance by ``duration`` [s]."""
        for _ in range(max(1, round(duration / self.system.dt))):
            self.step()

    def forces(self) -> dict[str, Force]:
        """Contact forces at the state, of the contacts that are closed."""
        if not self._started:
            self.start()
        return self._modes.forces()

    def _advance(self, h: float) -> bool:
        """Advance by h [s], or to the first event, which is handled; whether there was none."""
        self._modes.refer()
        before, at_start = self._modes.state(), self._modes.margins()

        def after(x: float) -> dict[tuple[str, ContactMode], float]:
            self.system.set_state(*before)
            if x > SHORTEST:
                self.system.dt = x
                self.system.step(write=False)
            return self._modes.margins()

        at_end = after(h)
        crossed = [key for key, value in at_end.items() if value < 0.0]
        if not crossed:
            return True
        root = first_root(
            lambda x: min(after(x)[key] for key in crossed),
            h,
            min(at_end[key] for key in crossed),
        )
        there = after(root)
        # without a normal force there is no friction either: that is a lift-off, not a slip
        lifts = [
            key
            for key in crossed
            if key[1] is ContactMode.OPEN and there[key] <= FORCE_RTOL * abs(at_start[key])
        ]
        name, mode = min(lifts or crossed, key=lambda key: there[key])
        self._handle(name, mode)
        return False

    def _handle(self, name: str, mode: ContactMode) -> None:
        """Change modes at an event."""
        here = self._modes.geometries()
        if self._modes.now[name] is ContactMode.OPEN:
            self._take_impact(here, name)
            return
        if mode is ContactMode.STICK:
            at = here[name]
            slip = at.tangents @ at.jacobian @ self.system.v
            if float(np.linalg.norm(slip)) > 1e3 * STILL:
                return  # it has turned by a right angle, not stopped
        if mode is ContactMode.SLIDE:
            self._modes.slip_from(name, self._modes.forces()[name])
        self._modes.change(name, mode)
        said = {
            ContactMode.OPEN: "lift-off",
            ContactMode.SLIDE: "slide",
            ContactMode.STICK: "stick",
        }[mode]
        self.events.append(Event(self.system.t, name, said))
        self._modes.settle()

    def _take_impact(self, here: dict[str, ContactGeometry], new: str = "") -> None:
        """Impact of the contacts that are closed, at the state."""
        near = CLOSED * self.system.encoded.length
        closed = [n for n, at in here.items() if n == new or at.gap <= near]
        closed += [
            n
            for n, mode in self._modes.now.items()
            if mode is not ContactMode.OPEN and n not in closed
        ]
        was = dict(self._modes.now)
        self._modes.take(dict.fromkeys(self.contacts, ContactMode.OPEN))
        q, v, t = self._modes.state()
        e = self.system.dynamics.equations(q, v, t)
        meeting = [(self.contacts[n], here[n]) for n in closed]
        after = impact(e, v, meeting, self._resting)
        self.system.set_state(v=after.v)
        modes = dict.fromkeys(self.contacts, ContactMode.OPEN)
        for n in closed:
            slip = here[n].tangents @ here[n].jacobian @ after.v
            size = float(np.linalg.norm(slip))
            if float(here[n].normal @ here[n].jacobian @ after.v) > self._resting:
                said = "bounce" if was[n] is ContactMode.OPEN else "lift-off"
            else:
                held = self.contacts[n].friction > 0.0 and size <= 1e3 * STILL
                modes[n] = ContactMode.STICK if held else ContactMode.SLIDE
                self._modes.friction[n].reference = None if size <= STILL else slip / size
                said = "" if was[n] is not ContactMode.OPEN else "land"
            if said:
                self.events.append(Event(t, n, said, -after.work))
        self._modes.take(modes)
        self._modes.settle()


def first_root(margin: Callable[[float], float], h: float, at_end: float) -> float:
    """Time [s] at which a function that is negative at h becomes so; 0 if it is at once."""
    from scipy.optimize import brentq

    low, at_low = 0.0, margin(0.0)
    if not at_low > 0.0:  # it has begun at zero: where has it risen?
        low = h
        for _ in range(HALVINGS):
            low *= 0.5
            at_low = margin(low)
            if at_low > 0.0:
                break
        else:
            return 0.0
    ends = {low: at_low, h: at_end}  # steps with error control do not repeat to the last digit

    def known(x: float) -> float:
        return ends[x] if x in ends else margin(x)

    return float(brentq(known, low, h, xtol=SHORTEST, rtol=1e-14, maxiter=200))
