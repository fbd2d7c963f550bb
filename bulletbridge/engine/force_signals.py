"""Joint forces that are given functions, of time or of the state."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bulletbridge.compilation.users import Takes
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_elements import Wrench
from bulletbridge.constraints.functions import ForceFunction, takes
from bulletbridge.constraints.motion import Formula, Signal, Sine
from bulletbridge.engine.asked_forces import AskedForce
from bulletbridge.errors import ModelError, require_kind
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array

ForceSignal = Signal | Callable[[float], float]
"""Time [s] to a force or torque [N or N m]; of the triple of a ``Signal`` the value counts."""


@dataclass(frozen=True)
class Script:
    """Forces on rates of a mechanism."""

    # with the name of the joint and the number of the rate on which they act; several of one rate
    # add up
    signals: tuple[tuple[str, int, ForceSignal], ...] = ()
    nv: int = 0  # number of rates
    asked: tuple[AskedForce, ...] = ()  # functions of the state

    def at(self, times: Array) -> Array:
        """Forces (len(times), nv) at times [s].

        Raises:
            ModelError: One of them is not a finite number; the message names its joint.
        """
        forces = np.zeros((len(times), self.nv))
        rates, sines, others = self._kinds
        if rates:
            np.add.at(forces.T, rates, sines.over(times)[..., 0])
        for joint, rate, signal in others:
            forces[:, rate] += values(signal, times, joint)
        if not np.isfinite(forces).all():
            self._refuse(times)
        return forces

    @cached_property
    def _kinds(self) -> tuple[list[int], Sine, list[tuple[str, int, ForceSignal]]]:
        """Rates of sines, these as one, of which each takes as long as all; and other signals."""
        alike = [
            (rate, signal)
            for _, rate, signal in self.signals
            if isinstance(signal, Sine) and type(signal) is Sine
        ]
        numbers = [[s.amplitude, s.frequency, s.phase, s.offset] for _, s in alike]
        columns: Any = np.reshape(numbers, (-1, 4)).T[:, :, None]
        others = [each for each in self.signals if type(each[2]) is not Sine]
        return [rate for rate, _ in alike], Sine(*columns), others

    def _refuse(self, times: Array) -> None:
        """Tell which of them is not finite, and when."""
        for joint, _, signal in self.signals:
            given = values(signal, times, joint)
            if not np.isfinite(given).all():
                bad = int(np.argmin(np.isfinite(given)))
                raise no_force(joint, float(given[bad]), float(times[bad]))


@dataclass(frozen=True)
class HeldForces:
    """Forces that stay over a step and jump from one to the next."""

    forces: Array  # (steps, nv) [N m or N]
    begun: float  # start of the first step [s]
    dt: float  # step [s]

    def within(self, times: Array) -> Array:
        """Forces (len(times), nv) at times [s] inside steps, not on the border of two."""
        steps = np.floor((times - self.begun) / self.dt).astype(np.int64)
        return self.forces[np.clip(steps, 0, len(self.forces) - 1)]


def values(signal: ForceSignal, times: Array, joint: str) -> Array:
    """A signal at times [s].

    Raises:
        ModelError: It gives something else than numbers; the message names the joint.
    """
    if isinstance(signal, Formula):
        return signal.over(times)[:, 0]
    found = np.empty(len(times))
    for n, t in enumerate(times.tolist()):
        given = signal(t)
        value = given[0] if isinstance(given, tuple) and len(given) == 3 else given
        try:
            found[n] = value
        except (TypeError, ValueError):
            raise no_force(joint, given, t) from None
    return found


def no_force(joint: str, given: object, t: float) -> ModelError:
    """What is raised for what a scripted force gave at a time."""
    return ModelError(
        f"the scripted force of joint '{joint}' is {given!r}, not a finite number at t = {t:.6g} s;"
        " correct the function"
    )


JointFunctions = ForceSignal | ForceFunction | Sequence[ForceSignal | ForceFunction]
"""Forces of one joint."""


def script(mechanism: Mechanism, forces: Mapping[str, JointFunctions]) -> Script:
    """Forces by joint name.

    Args:
        mechanism: Where the joints are.
        forces: A function of (t) or of (t, q, v) for a joint of one rate; for others one for each
            rate, in their order, or one of (t, q, v) that gives as many numbers.

    Raises:
        ModelError: A joint does not exist, or has another number of rates, or got no functions.
    """
    signals: list[tuple[str, int, ForceSignal]] = []
    asked: list[AskedForce] = []
    for name, given in forces.items():
        joint = mechanism.joint(name)
        loose: object = given  # what users give in fact
        single = callable(given)
        several = [given] if single else list(given) if isinstance(loose, Sequence) else []
        if not several or not all(map(callable, several)):
            raise ModelError(
                f"the scripted force of joint '{name}' is {given!r}; give a function of (t) or of"
                " (t, q, v), or set tau for what is constant"
            )
        count, what = joint.v.stop - joint.v.start, f"force of joint '{name}'"
        if single and count > 1 and takes(several[0], what) == Takes.STATE:
            asked.append(AskedForce(what, several[0], Takes.STATE, count, -1, joint.v.start))
            continue
        if len(several) != count:
            raise ModelError(
                f"joint '{name}' has {count} rates and got {len(several)} scripted forces; give "
                "one for each"
            )
        for rate, function in enumerate(several, joint.v.start):
            if takes(function, what) == Takes.STATE:
                asked.append(AskedForce(what, function, Takes.STATE, 0, -1, rate))
            else:
                signals.append((name, rate, function))
    return Script(tuple(signals), mechanism.nv, tuple(asked))


def require_list(constraints: object) -> None:
    """Refuse constraints that are no list of them."""
    named = getattr(constraints, "name", None)
    said = f"one {type(constraints).__name__} '{named}'" if named else repr(constraints)
    bodies = "; several bodies are one argument, as [1, 2]" if isinstance(constraints, int) else ""
    require_kind(constraints, Sequence, f"the constraints are {said}; give a list of them{bodies}")


def split_forces(
    forces: Mapping[str, JointFunctions | Wrench], constraints: Sequence[Constraint]
) -> tuple[dict[str, JointFunctions], list[Wrench]]:
    """Functions by joint, and wrenches with the names that they were given under.

    Raises:
        ModelError: The constraints are no sequence, or a wrench is given among them.
    """
    require_list(constraints)
    for constraint in constraints:
        if isinstance(constraint, Wrench):
            raise ModelError(
                "a Wrench closes no loop; give it a name among the forces:"
                ' forces={"wind": Wrench(...)}'
            )
    wrenches = [replace(w, name=name) for name, w in forces.items() if isinstance(w, Wrench)]
    return {n: f for n, f in forces.items() if not isinstance(f, Wrench)}, wrenches
