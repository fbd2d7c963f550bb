"""Modes of ideal contacts: loop joints that exist while they are closed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.errors import StepError
from bulletbridge.events.contact import Contact, ContactGeometry, ContactMode, contact_geometry
from bulletbridge.events.sliding import STILL, Friction, Sliding, sliding
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

FORCE_RTOL = 1e-9
"""Share of the largest contact force that counts as none."""


class Force(NamedTuple):
    """Forces of a closed contact on the link of b [N]."""

    normal: float
    tangential: Array  # (2,) along ``ContactGeometry.tangents``; zero while it slides


class ContactModes:
    """Which contacts of a system stick, slide or are open, and whether forces agree.

    Args:
        mechanism: The tree.
        others: What else closes its loops.
        contacts: Each of a ball or a point with a plane.
        options: As of ``System``.

    Attributes:
        system: With the contacts that are closed as loop joints.
        now: ContactMode of each contact, by name.
        friction: Of each, which remembers the way that slip goes.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        others: Sequence[Constraint],
        contacts: dict[str, Contact],
        **options: Any,
    ) -> None:
        self.contacts, self._others = contacts, tuple(others)
        self.friction = {
            name: Friction(c.joint(ContactMode.SLIDE), c.friction, bilateral=False)
            for name, c in contacts.items()
        }
        make = sliding(*self.friction.values())
        self.system = System(mechanism, self._others, formulation=make, **options)
        self.now = dict.fromkeys(contacts, ContactMode.OPEN)

    def state(self) -> tuple[Array, Array, float]:
        """q (nq,), v (nv,) and t [s] of the system."""
        return self.system.q, self.system.v, self.system.t

    def geometries(self) -> dict[str, ContactGeometry]:
        """Geometry of all contacts at the state."""
        seen = self.system.kinematics()
        return {
            name: contact_geometry(c.joint(ContactMode.SLIDE), seen)
            for name, c in self.contacts.items()
        }

    def take(self, modes: dict[str, ContactMode]) -> None:
        """Take modes, and the loop joints that they stand for."""
        self.now = modes
        for name, friction in self.friction.items():
            friction.slides = modes[name] is ContactMode.SLIDE
        closed = (
            c.joint(modes[n]) for n, c in self.contacts.items() if modes[n] is not ContactMode.OPEN
        )
        self.system.exchange((*self._others, *closed))

    def change(self, name: str, mode: ContactMode) -> None:
        """Give one contact another mode."""
        self.take(self.now | {name: mode})

    def forces(self) -> dict[str, Force]:
        """Contact forces at the state, as its modes have it."""
        dynamics = self.system.dynamics
        solver, (q, v, t) = dynamics.solver, self.state()
        lam = Sliding(dynamics, self.friction.values())(q, v, t).lam
        terms, names = solver.terms(q, v, t), list(solver.encoded.rows)
        found: dict[str, Force] = {}
        for name, at in self.geometries().items():
            if self.now[name] is not ContactMode.OPEN:
                _, rows = solver.wrench_rows(terms.poses, names.index(name), t)
                force = lam[solver.encoded.rows[name]] @ rows[:, 3:]
                found[name] = Force(float(force @ at.normal), at.tangents @ force)
        return found

    def margins(self) -> dict[tuple[str, ContactMode], float]:
        """What must not become negative, by contact and the mode that then follows."""
        found: dict[tuple[str, ContactMode], float] = {}
        forces, v = self.forces(), self.system.v
        for name, at in self.geometries().items():
            if self.now[name] is ContactMode.OPEN:
                found[name, ContactMode.STICK] = at.gap
                continue
            found[name, ContactMode.OPEN] = forces[name].normal
            friction = self.friction[name]
            if self.now[name] is ContactMode.STICK:
                found[name, ContactMode.SLIDE] = self.reserve(name, forces[name])
            elif friction.coefficient > 0.0 and friction.reference is not None:
                along = float(at.tangents @ at.jacobian @ v @ friction.reference)
                # what the normal alone locks has slip of round-off
                found[name, ContactMode.STICK] = along if abs(along) > STILL else 0.0
        return found

    def reserve(self, name: str, force: Force) -> float:
        """Friction that a contact which sticks has left [N]."""
        size = float(np.linalg.norm(force.tangential))
        return self.contacts[name].friction * force.normal - size

    def refer(self) -> None:
        """Let friction remember the way that slip goes now."""
        v = self.system.v
        for name, at in self.geometries().items():
            slip = at.tangents @ at.jacobian @ v
            size = float(np.linalg.norm(slip))
            if self.now[name] is ContactMode.SLIDE and size > STILL:
                self.friction[name].reference = slip / size

    def slip_from(self, name: str, force: Force) -> None:
        """A contact that sticks no more will slip against the friction that it had."""
        size = float(np.linalg.norm(force.tangential))
        self.friction[name].reference = -force.tangential / size if size > 0.0 else None

    def settle(self) -> None:
        """Change modes until the forces at the state agree with them.

        Raises:
            StepError: They never do.
        """
        for _ in range(4 * len(self.contacts) + 2):
            forces = self.forces()
            size = max((abs(f.normal) for f in forces.values()), default=0.0)
            enough = -FORCE_RTOL * size
            pulls = [n for n, f in forces.items() if f.normal < enough]
            slips = [
                n
                for n, f in forces.items()
                if self.now[n] is ContactMode.STICK and self.reserve(n, f) < enough
            ]
            if pulls:
                self.change(min(pulls, key=lambda n: forces[n].normal), ContactMode.OPEN)
            elif slips:
                name = min(slips, key=lambda n: self.reserve(n, forces[n]))
                self.slip_from(name, forces[name])
                self.change(name, ContactMode.SLIDE)
            else:
                return
        raise StepError(
            f"no modes of the contacts agree with their forces at t = {self.system.t:.6g} s; use a "
            f"smaller friction, or System(contacts=True), which steps through it"
        )
