"""Mechanisms of the campaign with motors, joint friction, limits and force limits, judged.

What motors, friction and limits exert is what the system tells; that it is what led to the rates,
within bounds and by their laws, that joints stay within limits and loops closed, is judged by the
judge's kinematics and Pinocchio's M and h. With ``--contacts`` links have spheres that meet walls
and each other, and contacts are judged too.

    python benchmarks/bounded_campaign.py --first 0 --mechanisms 100 --steps 100 [--contacts]
"""

import argparse
import re
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from _campaign_cases import MAKERS, Case, make_case
from _campaign_conserved import Conserved
from _campaign_forces import BENT, BEYOND, Forces, State
from _campaign_judge import ROLLING, TURNING, Judge
from _campaign_run import OPEN, SLIPS
from _campaign_spheres import Sphere, Spheres, Surface, Wall
from _campaign_tables import tell

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeError
from bulletbridge.numerics.records import Array
from bulletbridge.system.contact_report import contact_states

LED = re.compile(r"limit of joint '(\w+)'.* is passed")
"""What a warning says of a joint that drives lead past its limit."""
LED_INTO = re.compile(r"'[^']*' and '[^']*' .*into each other")
"""What one says of bodies that drives, or closing loops, lead into each other."""
UNSOLVED = 1e-6
"""Residual of the inequality rows, relative to the fastest rate above one."""


@dataclass(frozen=True)
class Bounded:
    """A case, and what acts in its joints.

    Attributes:
        case: With limits of joints and force limits of some constraints.
        motors: Arguments of ``Motors.set`` or, with a stiffness, ``Motors.servo`` by joint.
        frictions: Largest Coulomb friction by joint [N or N m].
        world: What it touches, if it touches anything.
    """

    case: Case
    motors: dict[str, dict[str, float]]
    frictions: dict[str, float]
    world: Spheres | None = None

    def system(self) -> bb.System:
        """The system at its start, with everything switched on."""
        p = self.case.parts
        world: Any = self.world  # what of ``World`` is not there nobody asks for
        made = bb.System(
            p.mechanism,
            p.constraints,
            world=world,
            dt=p.dt,
            limits="always",
            contacts=self.world is not None,
        )
        made.set_state(p.q, p.v)
        made.tau[:] = p.tau
        for name, given in self.motors.items():
            (made.motors.servo if "stiffness" in given else made.motors.set)(name, **given)
        for name, force in self.frictions.items():
            made.motors.set_friction(name, force)
        return made

    def forces(self, judge: Judge, system: bb.System) -> Forces:
        """The judge of its steps."""
        return Forces(judge, system, self.motors, self.frictions)


def bounded_case(number: int, kind: str | None = None) -> Bounded:
    """The case of a number, of a kind of its own unless one is asked for, with what acts in it."""
    case, rng = make_case(number, kind), np.random.default_rng([number, 7])
    parts, joints = case.parts, dict(case.parts.mechanism.joints)
    weight = 5.0 * float(parts.mechanism.bodies["mass"].sum())
    motors, frictions = dict[str, dict[str, float]](), dict[str, float]()
    for name, joint in joints.items():
        if not joint.is_single:
            continue
        x, force = float(parts.q[joint.q.start]), weight * 10 ** rng.uniform(-3, 1.5)
        if rng.random() < 0.35:
            lower, upper = x - 10 ** rng.uniform(-4, 0.3), x + 10 ** rng.uniform(-4, 0.3)
            joints[name] = replace(joint, lower=lower, upper=upper)
        way = rng.random()
        if way < 0.25:
            motors[name] = {"force": force, "velocity": float(rng.normal(0, 2))}
        elif way < 0.4:
            motors[name] = {"force": force, "position": x + float(rng.normal(0, 0.5))}
        elif way < 0.5:
            stiffness, damping = (force * 10 ** rng.uniform(-1, 3) for _ in range(2))
            motors[name] = {"force": force, "stiffness": stiffness, "damping": damping}
        if rng.random() < 0.3:
            frictions[name] = weight * 10 ** rng.uniform(-4, 0)
    constraints = tuple(
        replace(c, max_force=weight * 10 ** rng.uniform(-2, 1.5)) if rng.random() < 0.12 else c
        for c in parts.constraints
    )
    mechanism = replace(parts.mechanism, joints=joints)
    bounded = replace(parts, mechanism=mechanism, constraints=constraints)
    return Bounded(Case(number, case.kind, bounded), motors, frictions)


STEPS = (1 / 60, 1 / 240, 1 / 240, 1e-3, 1e-5)
"""Lengths [s] of steps with contacts."""


def touching_case(number: int, kind: str | None = None) -> Bounded:
    """The bounded case of a number, in some a body of another mass, with spheres among walls."""
    bounded, rng = bounded_case(number, kind), np.random.default_rng([number, 8])
    parts = bounded.case.parts
    mechanism, down = parts.mechanism, np.array(parts.mechanism.gravity)
    if rng.random() < 0.3:
        body = mechanism.bodies[int(rng.integers(1, len(mechanism.bodies)))]
        factor = 10 ** rng.uniform(-3, 3)
        body["mass"], body["J"] = factor * body["mass"], factor * body["J"]
    spheres = [
        Sphere(int(i), rng.normal(0, 0.3, 3), float(rng.uniform(0.03, 0.15)))
        for i in rng.integers(1, len(mechanism.bodies), int(rng.integers(1, 7)))
    ]
    surface = Surface(
        float(rng.choice([0.0, rng.uniform(0.1, 1.2)], p=[0.15, 0.85])),
        float(rng.choice([0.0, rng.uniform(0.1, 0.9)], p=[0.75, 0.25])),
        *(rng.random() < 0.15) * rng.uniform(0.001, 0.02, 2),
    )
    walls, open_space = list[Wall](), Spheres(mechanism, (parts.q, parts.v), spheres, ())
    for _ in range(int(rng.integers(1, 4))):
        normal = rng.normal(0, 1, 3) - (down if not walls else 0.0)
        normal /= np.linalg.norm(normal)
        nearest = min(open_space.clearance(parts.q, normal))
        walls.append(Wall(normal, nearest - float(rng.choice([0.0, 1e-9, 1e-3, 0.05]))))
    v = Judge(mechanism, parts.constraints).admissible(parts.q, parts.v, 0.0)
    world = Spheres(mechanism, (parts.q, v), spheres, walls, surface)
    stepped = replace(parts, v=v, dt=float(rng.choice(STEPS)))
    return replace(bounded, case=replace(bounded.case, parts=stepped), world=world)


@dataclass
class BoundedRun:
    """A run of such a case, judged after every step.

    Attributes:
        bounded: What runs.
        steps: How long.
        faults: What was found, with the step and how much it is.
        momentum: Largest drift of momenta of what hangs from nothing, of their terms.
        led: Joints of which a warning has told that drives lead them past their limits.
        into: Whether one has told that bodies are led into each other.
    """

    bounded: Bounded
    steps: int
    faults: dict[str, tuple[int, float]] = field(default_factory=lambda: {})
    momentum: float = 0.0
    led: set[str] = field(default_factory=lambda: set())
    into: bool = False

    def record(self) -> dict[str, Any]:
        """What the run shows, as a line of a journal."""
        case, done, message = self.bounded.case, 0, ""
        judge = Judge(case.parts.mechanism, case.parts.constraints)
        try:
            system = self.bounded.system()
            conserved = Conserved(judge, False, case.parts.tau)
            start, sizes, _ = conserved.measure(*state_of(system))
            allowed = [float(np.abs(g).max()) for g in judge.gaps(*state_of(system))]
            forces = self.bounded.forces(judge, system)
            forces.led = self.led
            while done < self.steps:
                before = State(system.q.copy(), system.v.copy(), system.t)
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    system.step()
                self.into |= any(LED_INTO.search(str(each.message)) for each in told)
                forces.into = self.into
                self.led |= {name for each in told for name in LED.findall(str(each.message))}
                self._look(judge, system, allowed, done, before)
                if is_whole(system):
                    for name, size in forces.faults(before):
                        self._blame(name, done, size)
                now, terms, floors = conserved.measure(*state_of(system))
                sizes = np.maximum(sizes, terms)
                if conserved.groups:
                    off = np.linalg.norm(now - start, axis=2) - floors
                    share = off / np.maximum(sizes, 1e-300)
                    self.momentum = max(self.momentum, float(share.max()))
                done += 1
        except BulletBridgeError as error:
            message = f"{type(error).__name__}: {error}"
        end = "held" if not message else "told" if done else "refused"
        return {
            "number": case.number,
            "kind": case.kind,
            "end": end,
            "done": done,
            "message": message,
            "momentum": self.momentum,
            "faults": self.faults,
        }

    def _blame(self, name: str, step: int, size: float) -> None:
        self.faults.setdefault(name, (step, float(size)))

    def _look(
        self, judge: Judge, system: bb.System, allowed: list[float], step: int, before: State
    ) -> None:
        """Judge gaps and rates of what holds without a force limit, depths, and the residual.

        ``before``: where the step began.
        """
        state, world = state_of(system), self.bounded.world
        if not all(np.isfinite(part).all() for part in state):
            self._blame("not finite", step, np.inf)
            return
        fastest = max(1.0, float(np.abs(system.v).max()))
        weak = judge.spectrum(system.q, system.t)
        slips = max(SLIPS, float(weak[weak < TURNING].max(initial=0.0)))
        for c, was, g, rate in zip(judge.constraints, allowed, *judge.look(*state), strict=True):
            if c.max_force is not None:
                continue
            if (gap := float(np.abs(g).max()) - was) > OPEN:
                self._blame("silent gap", step, gap)
            rolls = isinstance(c, bb.LoopJoint) and c.model in ROLLING
            if (size := float(np.abs(rate).max()) / fastest) > slips:
                self._blame("slip" if rolls else "silent rate", step, size)
        if world is not None:
            turns = system.dt * max(fastest, float(np.abs(before.v).max()))
            bent = BENT * turns**2 + BEYOND
            if step == 0:  # a chain short of its reach by g bends by sqrt(2 g / length) to close
                bent += (2.0 * system.encoded.length * max(allowed, default=0.0)) ** 0.5
            was, now = world.gaps(before.q), world.gaps(system.q)
            held = held_pairs(system)
            sunk = max((min(was[k], 0.0) - now[k] for k in now.keys() - held), default=0.0)
            if sunk > bent and not self.into:
                self._blame("sinks", step, sunk)
        solved = system.complementarity
        if (
            solved is not None
            and solved.residual > UNSOLVED * fastest
            and not (self.led or self.into)
        ):
            self._blame("residual", step, solved.residual)


def is_whole(system: bb.System) -> bool:
    """Whether the last step was made at once: of one in parts the forces of the last are told."""
    latest = system._inequalities.latest  # pyright: ignore[reportPrivateUsage]
    return latest is not None and abs(latest.dt - system.dt) < 1e-12


def held_pairs(system: bb.System) -> set[int]:
    """Numbers of contacts that the last step left to the loops, told with the state ``held``.

    What could push one open is a wedge, as beside the pivot of a loop that joins its bodies.
    """
    latest = system._inequalities.latest  # pyright: ignore[reportPrivateUsage]
    if latest is None:
        return set()
    states = zip(latest.contact_points["pair"].tolist(), contact_states(latest), strict=True)
    return {pair for pair, state in states if state == "held"} | {
        *latest.held_points["pair"].tolist()
    }


def state_of(system: bb.System) -> tuple[Array, Array, Array]:
    """Q (1, nq), v (1, nv) and t (1,) as the judge takes them."""
    return np.array(system.q)[None], np.array(system.v)[None], np.array([system.t])


def main() -> None:
    """Run mechanisms of some numbers, print those in which something was found, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="number of the first mechanism")
    parser.add_argument("--mechanisms", type=int, default=100)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--contacts", action="store_true", help="with spheres among walls")
    parser.add_argument("--kind", choices=MAKERS, help="of all cases; of each its own unless given")
    given = parser.parse_args()
    make = touching_case if given.contacts else bounded_case
    cases = (make(given.first + k, given.kind) for k in range(given.mechanisms))
    closed = (bounded for bounded in cases if not bounded.case.parts.assembled)
    tell("mechanisms", (BoundedRun(bounded, given.steps).record() for bounded in closed))


if __name__ == "__main__":
    main()
