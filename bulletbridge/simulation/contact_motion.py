"""Contacts that stick, slide, lift off and touch again, with the instants located.

Between events the contacts are loop joints of a system, and any integrator steps it. A step at
whose end a contact has passed what its mode allows is taken again, shorter, until it ends there: so
an event is as accurate as the integrator. Events that begin and end within one step are not seen.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from bulletbridge.constraints.contact import Contact, Mode, Touch, touch
from bulletbridge.constraints.encode import Constraint
from bulletbridge.errors import BulletBridgeError, ModelError, StepError
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.impact import impact
from bulletbridge.simulation.options import Integrator
from bulletbridge.simulation.sliding import STILL, Friction, Sliding, sliding
from bulletbridge.simulation.system import System
from bulletbridge.simulation.tree import Tree

CLOSED = 1e-9
"""Gap [mechanism lengths] at which a contact counts as closed."""
MOST_EVENTS = 500
"""In one step."""
SHORTEST = 1e-13
"""Step [s] that is not worth taking."""
HALVINGS = 40
FORCE_RTOL = 1e-9
"""Share of the largest contact force that counts as none."""


class Event(NamedTuple):
    """A change of mode, or a bounce."""

    t: float  # [s]
    contact: str
    what: str  # lift-off, slide, stick, land or bounce
    energy_lost: float = 0.0  # [J], by an impact


class Force(NamedTuple):
    """Of a closed contact on the link of b [N]."""

    normal: float
    tangential: Array  # (2,) along ``Touch.tangents``; zero while it slides


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
        mode: Of each contact, by name.
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
        self._others, self._resting = tuple(constraints), resting
        names = [c.name for c in self._others]
        taken = [name for name in self.contacts if name in names]
        if taken:
            raise ModelError(f"a constraint is called '{taken[0]}' like a contact; rename one")
        self._friction = {
            name: Friction(c.joint(Mode.SLIDE), c.friction, bilateral=False)
            for name, c in self.contacts.items()
        }
        make = sliding(*self._friction.values())
        self.system = System(
            mechanism, self._others, integrator=integrator, formulation=make, **options
        )
        self.mode = dict.fromkeys(self.contacts, Mode.OPEN)
        self.events: list[Event] = []
        self._started = False

    def start(self) -> None:
        """Find the modes that belong to the state of the system.

        Raises:
            ModelError: A ball is in its plane.
        """
        self._set_modes(dict.fromkeys(self.contacts, Mode.OPEN))
        if self.system.decision.cap >= self.system.mechanism.nv:
            raise ModelError("the constraints leave no freedom; contacts have nothing to hold")
        here, length = self._touches(), self.system.encoded.length
        for name, at in here.items():
            if at.gap < -CLOSED * length:
                raise ModelError(
                    f"contact '{name}' begins {-at.gap:.3g} m inside its plane; move link "
                    f"'{self.contacts[name].b.link}', or turn the axis round"
                )
        count = len(self.events)
        if any(at.gap <= CLOSED * length for at in here.values()):
            self._touch(here)
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
        before, modes, count = self._state(), dict(self.mode), len(self.events)
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
            self._set_modes(dict.fromkeys(self.contacts, Mode.OPEN))
            system.set_state(*before)
            self._set_modes(modes)
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
        return self._forces()

    def _state(self) -> tuple[Array, Array, float]:
        return self.system.q, self.system.v, self.system.t

    def _touches(self) -> dict[str, Touch]:
        """Geometry of all contacts at the state."""
        seen = self.system.kinematics()
        return {name: touch(c.joint(Mode.SLIDE), seen) for name, c in self.contacts.items()}

    def _set_modes(self, modes: dict[str, Mode]) -> None:
        """Take modes, and the loop joints that they stand for."""
        self.mode = modes
        for name, friction in self._friction.items():
            friction.slides = modes[name] is Mode.SLIDE
        closed = (c.joint(modes[n]) for n, c in self.contacts.items() if modes[n] is not Mode.OPEN)
        self.system.exchange((*self._others, *closed))

    def _change(self, name: str, mode: Mode) -> None:
        self._set_modes(self.mode | {name: mode})

    def _forces(self) -> dict[str, Force]:
        """Contact forces at the state, as its modes have it."""
        dynamics = self.system.dynamics
        assert isinstance(dynamics, Tree)
        solver, (q, v, t) = dynamics.solver, self._state()
        lam = Sliding(dynamics, self._friction.values())(q, v, t).lam
        terms, names = solver.terms(q, v, t), list(solver.encoded.rows)
        found: dict[str, Force] = {}
        for name, at in self._touches().items():
            if self.mode[name] is not Mode.OPEN:
                _, rows = solver.wrench_rows(terms, names.index(name), t)
                force = lam[solver.encoded.rows[name]] @ rows[:, 3:]
                found[name] = Force(float(force @ at.normal), at.tangents @ force)
        return found

    def _margins(self) -> dict[tuple[str, Mode], float]:
        """What must not become negative, by contact and the mode that then follows."""
        found: dict[tuple[str, Mode], float] = {}
        forces, v = self._forces(), self.system.v
        for name, at in self._touches().items():
            if self.mode[name] is Mode.OPEN:
                found[name, Mode.STICK] = at.gap
                continue
            found[name, Mode.OPEN] = forces[name].normal
            friction = self._friction[name]
            if self.mode[name] is Mode.STICK:
                found[name, Mode.SLIDE] = self._reserve(name, forces[name])
            elif friction.coefficient > 0.0 and friction.reference is not None:
                along = float(at.tangents @ at.jacobian @ v @ friction.reference)
                # what the normal alone locks has slip of round-off
                found[name, Mode.STICK] = along if abs(along) > STILL else 0.0
        return found

    def _reserve(self, name: str, force: Force) -> float:
        """Friction that a contact which sticks has left [N]."""
        size = float(np.linalg.norm(force.tangential))
        return self.contacts[name].friction * force.normal - size

    def _advance(self, h: float) -> bool:
        """Advance by h [s], or to the first event, which is handled; whether there was none."""
        self._refer()
        before, at_start = self._state(), self._margins()

        def after(x: float) -> dict[tuple[str, Mode], float]:
            self.system.set_state(*before)
            if x > SHORTEST:
                self.system.dt = x
                self.system.step(write=False)
            return self._margins()

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
            if key[1] is Mode.OPEN and there[key] <= FORCE_RTOL * abs(at_start[key])
        ]
        name, mode = min(lifts or crossed, key=lambda key: there[key])
        self._handle(name, mode)
        return False

    def _refer(self) -> None:
        """Let friction remember the way that slip goes now."""
        v = self.system.v
        for name, at in self._touches().items():
            slip = at.tangents @ at.jacobian @ v
            size = float(np.linalg.norm(slip))
            if self.mode[name] is Mode.SLIDE and size > STILL:
                self._friction[name].reference = slip / size

    def _handle(self, name: str, mode: Mode) -> None:
        """Change modes at an event."""
        here = self._touches()
        if self.mode[name] is Mode.OPEN:
            self._touch(here, name)
            return
        if mode is Mode.STICK:
            at = here[name]
            slip = at.tangents @ at.jacobian @ self.system.v
            if float(np.linalg.norm(slip)) > 1e3 * STILL:
                return  # it has turned by a right angle, not stopped
        if mode is Mode.SLIDE:
            self._slip_from(name, self._forces()[name])
        self._change(name, mode)
        said = {Mode.OPEN: "lift-off", Mode.SLIDE: "slide", Mode.STICK: "stick"}[mode]
        self.events.append(Event(self.system.t, name, said))
        self._settle()

    def _slip_from(self, name: str, force: Force) -> None:
        """A contact that sticks no more will slip against the friction that it had."""
        size = float(np.linalg.norm(force.tangential))
        self._friction[name].reference = -force.tangential / size if size > 0.0 else None

    def _touch(self, here: dict[str, Touch], new: str = "") -> None:
        """Impact of the contacts that are closed, at the state."""
        near = CLOSED * self.system.encoded.length
        closed = [n for n, at in here.items() if n == new or at.gap <= near]
        closed += [n for n, mode in self.mode.items() if mode is not Mode.OPEN and n not in closed]
        was = dict(self.mode)
        self._set_modes(dict.fromkeys(self.contacts, Mode.OPEN))
        q, v, t = self._state()
        e, touches = (
            self.system.dynamics.equations(q, v, t),
            [(self.contacts[n], here[n]) for n in closed],
        )
        after = impact(e, v, touches, self._resting)
        self.system.set_state(v=after.v)
        modes = dict.fromkeys(self.contacts, Mode.OPEN)
        for n in closed:
            slip = here[n].tangents @ here[n].jacobian @ after.v
            size = float(np.linalg.norm(slip))
            if float(here[n].normal @ here[n].jacobian @ after.v) > self._resting:
                said = "bounce" if was[n] is Mode.OPEN else "lift-off"
            else:
                held = self.contacts[n].friction > 0.0 and size <= 1e3 * STILL
                modes[n] = Mode.STICK if held else Mode.SLIDE
                self._friction[n].reference = None if size <= STILL else slip / size
                said = "" if was[n] is not Mode.OPEN else "land"
            if said:
                self.events.append(Event(t, n, said, -after.work))
        self._set_modes(modes)
        self._settle()

    def _settle(self) -> None:
        """Change modes until the forces at the state agree with them.

        Raises:
            StepError: They never do.
        """
        for _ in range(4 * len(self.contacts) + 2):
            forces = self._forces()
            size = max((abs(f.normal) for f in forces.values()), default=0.0)
            enough = -FORCE_RTOL * size
            pulls = [n for n, f in forces.items() if f.normal < enough]
            slips = [
                n
                for n, f in forces.items()
                if self.mode[n] is Mode.STICK and self._reserve(n, f) < enough
            ]
            if pulls:
                self._change(min(pulls, key=lambda n: forces[n].normal), Mode.OPEN)
            elif slips:
                name = min(slips, key=lambda n: self._reserve(n, forces[n]))
                self._slip_from(name, forces[name])
                self._change(name, Mode.SLIDE)
            else:
                return
        raise StepError(
            f"no modes of the contacts agree with their forces at t = {self.system.t:.6g} s; use a "
            f"smaller friction, or System(contacts=True), which steps through it"
        )


def first_root(margin: Callable[[float], float], h: float, at_end: float) -> float:
    """Where a margin that is negative at h becomes so; zero if it is from the start."""
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
