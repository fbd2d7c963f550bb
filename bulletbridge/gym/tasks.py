"""What an environment is about: a model, what is seen of it, what is done to it, and for what."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Literal, TypeVar, get_args

import numpy as np

from bulletbridge.constraints.joints import Frame
from bulletbridge.errors import ByName, ModelError, given_as, refuse_name, require_kind
from bulletbridge.mechanism.by_joint import Values
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array, Mask
from bulletbridge.system.many_worlds import Worlds
from bulletbridge.system.options import is_count

T = TypeVar("T")
Kind = Literal["position", "velocity", "torque"]
TURNS, TRAVEL = 2.0 * np.pi, 2.0
"""Bounds of observations that nothing else bounds: of angles [rad], of places [m]."""
FASTEST = 50.0
"""And of rates [rad/s or m/s]."""


@dataclass(frozen=True)
class Action:
    """What one number of an action does to a joint: -1 is low, 1 is high.

    Attributes:
        joint: Its name, or that of a loop's free motion.
        kind: ``position`` [rad or m] or ``velocity`` [rad/s or m/s] of its motor, or ``torque``
            [N m or N].
        low: What an action of -1 asks for.
        high: What an action of 1 asks for.
        force: Largest of the motor [N m or N].
        position_gain: Share of the error of position that a step of the motor takes away.
        velocity_gain: Share of the error of rate, likewise.
    """

    joint: str
    kind: Kind
    low: float
    high: float
    force: float = 100.0
    position_gain: float = 0.1
    velocity_gain: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what does nothing.

        Raises:
            ModelError: There is no such kind, or -1 and 1 ask for no two different finite numbers.
        """
        if self.kind not in get_args(Kind):
            refuse_name(f"kind of the action on '{self.joint}'", self.kind, get_args(Kind))
        if not (math.isfinite(self.low) and math.isfinite(self.high)) or self.low == self.high:
            raise ModelError(
                f"the action on '{self.joint}' goes from {self.low} to {self.high}; give two"
                " different finite numbers"
            )


class View:
    """The worlds as tasks see them, all at once: arrays of n lines.

    Attributes:
        mechanism: Names the coordinates.
        q: Configurations (n, nq).
        v: Velocities (n, nv).
        t: Times (n,) [s].
        kept: What tasks have kept of each world at its start, (n, ...) by name, such as a goal.
        actions: The last ones (n, actions), from -1 to 1; zero at the start.
    """

    def __init__(
        self, worlds: Worlds, mechanism: Mechanism, kept: Mapping[str, Array], actions: Array
    ) -> None:
        self.mechanism, self.actions, self._worlds = mechanism, actions, worlds
        self.kept = ByName("kept number", dict(kept))
        self.q, self.v, self.t = worlds.q, worlds.v, worlds.t
        self._known: dict[tuple[str, object], Array] = {}  # several functions ask for the same

    def position(self, joint: str) -> Array:
        """Coordinates of a joint, (n,) or (n, several) [rad or m].

        Raises:
            ModelError: There is no such joint.
        """
        return _plain(self.q[:, self.mechanism.joint(joint).q])

    def rate(self, joint: str) -> Array:
        """Rates of a joint, (n,) or (n, several) [rad/s or m/s].

        Raises:
            ModelError: There is no such joint.
        """
        return _plain(self.v[:, self.mechanism.joint(joint).v])

    def point(self, frame: Frame) -> Array:
        """Place of a frame's origin (n, 3) [m]."""
        return self._once("points", frame, self._worlds.points)

    def axes(self, frame: Frame) -> Array:
        """Axes of a frame (n, 3, 3) in the world, as columns."""
        return self._once("axes", frame, self._worlds.axes)

    def contact_force(self, link: str) -> Array:
        """Sum of the contact forces on a link in the last step (n, 3) [N], world axes."""
        return self._once("forces", link, lambda name: self._worlds.contact_forces([name])[:, 0])

    def _once(self, what: str, of: T, find: Callable[[T], Array]) -> Array:
        if (what, of) not in self._known:
            self._known[what, of] = find(of)
        return self._known[what, of].copy()


def _plain(part: Array) -> Array:
    return part[:, 0] if part.shape[1] == 1 else part


Seen = Callable[[View], Array]
"""What is seen of the worlds, (n,) or (n, several)."""


@dataclass(frozen=True)
class Observation:
    """An entry of what is observed.

    Attributes:
        of: What is seen.
        low: Its lower bound, one or (several,): what is beyond is told as the bound.
        high: Its upper bound, likewise.
    """

    of: Seen
    low: float | Sequence[float]
    high: float | Sequence[float]


@dataclass(frozen=True)
class Start:
    """How an episode begins.

    Attributes:
        q: Positions held by joint, for which the loops are closed from the model's start; at rest.
        parameters: By name of ``system.parameters``; name the same ones each time.
        keep: Numbers to keep, such as a goal, for ``View.kept``.
    """

    q: Values = field(default_factory=lambda: {})
    parameters: Mapping[str, float] = field(default_factory=lambda: {})
    keep: Mapping[str, Array] = field(default_factory=lambda: {})


Started = Callable[[np.random.Generator], Start]
Judged = Callable[[View], Array]


def as_it_is(_: np.random.Generator) -> Start:
    """The start of the model itself."""
    return Start()


def no_reward(view: View) -> Array:
    """Nothing to be had."""
    return np.zeros(len(view.q))


def never(view: View) -> Mask:
    """No end but that of the time."""
    return np.zeros(len(view.q), bool)


def nothing_around(_client: int) -> None:
    """A world without anything else."""


@dataclass(frozen=True)
class Task:
    """A model, and what it is to learn; functions take all worlds at once and answer in n lines.

    Attributes:
        model: Bundled name, path of a loops file or of a robot, or what was read from one.
        actions: What is done; None for the joints that the model calls actuated: positions within
            their limits, where they have some, otherwise rates up to a turn or a metre a second.
        observations: What is seen, by name; None for the position and rate of every joint.
        start: How an episode begins, by chance; the model's start unless given.
        reward: What a step was worth (n,).
        terminated: (n,) whether an episode has come to its end.
        dt: Step [s].
        steps: Steps for each action.
        most_actions: After so many an episode is truncated.
        contacts: Whether contacts act.
        scene: Puts what is around into a Bullet client, before the model is loaded.
    """

    model: str | Path | ModelSpec
    actions: Sequence[Action] | None = None
    observations: Mapping[str, Observation] | None = None
    start: Started = as_it_is
    reward: Judged = no_reward
    terminated: Callable[[View], Mask] = never
    dt: float = 1 / 240
    steps: int = 4
    most_actions: int = 1000
    contacts: bool = False
    scene: Callable[[int], None] = nothing_around

    def __post_init__(self) -> None:
        """Refuse what means nothing, before a model is loaded."""
        for name in ("steps", "most_actions"):
            if not (is_count(given := getattr(self, name)) and given >= 1):
                raise ModelError(f"the task's {name} is {given!r}; give a whole number from one on")
        for name in ("start", "reward", "terminated", "scene"):
            if not callable(given := getattr(self, name)):
                raise ModelError(f"the task's {name} is {given_as(given)}; give a function")
        if self.observations is not None:
            said = "the task's observations have no names; give {'name': Observation(...)}"
            require_kind(self.observations, Mapping, said)


def task_of(given: "Task | str | Path | ModelSpec") -> Task:
    """A task as it is; that of a model; or that which a function makes, as ``module:function``.

    Raises:
        ModelError: There is no such function.
    """
    if isinstance(given, Task):
        return given
    module, _, name = str(given).partition(":")
    if isinstance(given, str) and name.isidentifier():
        try:
            made = getattr(import_module(module), name)()
        except (ImportError, AttributeError) as error:
            raise ModelError(f"'{given}' names no function that makes a task: {error}") from None
        return made
    return Task(given)


def default_actions(spec: ModelSpec, mechanism: Mechanism) -> tuple[Action, ...]:
    """An action for each joint that a model calls actuated.

    Raises:
        ModelError: There is none.
    """
    if not spec.actuated:
        raise ModelError(
            f"'{spec.name}' says of no joint that it is actuated; give the task its actions"
        )
    found: list[Action] = []
    for name in spec.actuated:
        joint = mechanism.joint(name)
        if np.isfinite(joint.upper - joint.lower):
            found.append(Action(name, "position", joint.lower, joint.upper))
        else:
            fastest = TURNS if joint.kind == "revolute" else 1.0
            found.append(Action(name, "velocity", -fastest, fastest))
    return tuple(found)


def default_observations(mechanism: Mechanism) -> dict[str, Observation]:
    """Position and rate of every joint, as ``JOINT.position`` and ``JOINT.rate``."""
    found: dict[str, Observation] = {}
    for name, joint in mechanism.joints.items():
        low, high = joint.lower, joint.upper
        if not np.isfinite(high - low):
            high = TURNS if joint.kind == "revolute" else TRAVEL
            low = -high
        found[f"{name}.position"] = Observation(_position(name), low, high)
        found[f"{name}.rate"] = Observation(_rate(name), -FASTEST, FASTEST)
    return found


def _position(joint: str) -> Seen:
    return lambda view: view.position(joint)


def _rate(joint: str) -> Seen:
    """What sees the rate of a joint."""
    return lambda view: view.rate(joint)
