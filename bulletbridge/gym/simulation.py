"""The worlds of an environment: started by chance, driven by actions, observed by name."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pybullet
from gymnasium import spaces
from numpy.typing import NDArray

from bulletbridge.bullet.worlds import connect_direct, connect_window, disconnect
from bulletbridge.errors import AssemblyError, BulletBridgeWarning, ModelError, require_kind
from bulletbridge.gym.tasks import (
    Action,
    Observation,
    Start,
    Task,
    View,
    default_actions,
    default_observations,
)
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.load import LoadedModel, load
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array, Mask
from bulletbridge.system.many_worlds import Worlds
from bulletbridge.viewer.pictures import Camera, find_camera, take

Singles = NDArray[np.float32]
SIZE = 480, 360
"""Of pictures."""
MOST_STARTS = 20
"""Starts by chance that are tried before an error."""


class Simulation:
    """Worlds of a task.

    Args:
        task: The task.
        number: How many.
        threads: That step them.
        window: Whether Bullet shows one of them in its window.

    Attributes:
        observations: What is seen, by name.
        actions: What is done.
        observation_space: Of one world.
        action_space: Of one world, from -1 to 1.

    Raises:
        ModelError: The task names what the model does not have.
        WorldError: There is to be a window, and no display.
    """

    def __init__(
        self, task: Task, number: int, threads: int | None = None, window: bool = False
    ) -> None:
        self.task, self._window = task, window
        self.client = (
            connect_window("render_mode='human'", "use 'rgb_array'") if window else connect_direct()
        )
        try:
            self.model = _load(task, self.client)
            system = self.model.system
            given = [task.actions] if isinstance(task.actions, Action) else task.actions
            self.actions = tuple(
                default_actions(self.model.spec, system.mechanism) if given is None else given
            )
            self._rest = system.tau.copy()
            for action in self.actions:
                said = f"an action is {action!r}; give Action(joint, kind, low, high)"
                require_kind(action, Action, said)
                if action.kind != "torque":
                    system.motors.set(action.joint, force=action.force)
                else:
                    system.mechanism.joint(action.joint)
            self.worlds = Worlds(system, number, threads=threads)
            self.first = system.q, system.v, 0.0
            self.kept: dict[str, Array] = {}
            self.last = np.zeros((number, len(self.actions)))
            seen = task.observations
            self.observations = dict(
                default_observations(system.mechanism) if seen is None else seen
            )
            self._find_spaces()
        except BaseException:
            self.close()
            raise
        self._camera: Camera | None = None

    def _find_spaces(self) -> None:
        """Spaces of one world: bounds of what is seen, broadcast to the size that it has."""
        view, found = self.view(probe=True), dict[str, spaces.Space[Any]]()
        for name, observation in self.observations.items():
            said = f"observation '{name}' is {observation!r}; give Observation(function, low, high)"
            require_kind(observation, Observation, said)
            shape = np.shape(observation.of(view))[1:] or (1,)
            low, high = (np.broadcast_to(np.asarray(x, np.float32), shape) for x in
                         (observation.low, observation.high))  # fmt: skip
            found[name] = spaces.Box(low.copy(), high.copy(), dtype=np.float32)
        self.observation_space = spaces.Dict(found)
        self.action_space = spaces.Box(-1.0, 1.0, (len(self.actions),), np.float32)

    def view(self, probe: bool = False) -> View:
        """The worlds as they are; a ``probe`` has what a start keeps, without one."""
        kept = self.kept
        if probe:
            start = self._begun(np.random.default_rng(0))
            n = len(self.worlds)
            kept = {name: np.repeat(np.asarray(x, float)[None], n, 0) for name, x in
                    start.keep.items()}  # fmt: skip
        return View(self.worlds, self.model.system.mechanism, kept, self.last)

    def start(self, world: int, rng: np.random.Generator) -> None:
        """Begin an episode by chance, in a world; where loops cannot be closed it is drawn again.

        Raises:
            AssemblyError: None of the starts that were tried can be closed.
        """
        for n in range(MOST_STARTS):
            start = self._begun(rng)
            try:
                self.worlds.start(world, self.first, start.parameters, start.q)
            except AssemblyError:
                if n == MOST_STARTS - 1:
                    raise
            else:
                self._keep(world, start)
                self.last[world] = 0.0
                return

    def _begun(self, rng: np.random.Generator) -> Start:
        start = self.task.start(rng)
        said = f"the task's start gave {start!r}; give Start(q, parameters, keep)"
        require_kind(start, Start, said)
        return start

    def _keep(self, world: int, start: Start) -> None:
        for name, value in start.keep.items():
            given = np.asarray(value, float)
            kept = self.kept.setdefault(name, np.zeros((len(self.worlds), *given.shape)))
            kept[world] = given

    def act(self, actions: Array, moving: Mask) -> None:
        """Do what actions (n, actions) ask for, in the worlds that are moving (n,)."""
        given, shape = np.asarray(actions, np.float64), (len(self.worlds), len(self.actions))
        if given.shape != shape or not np.all(np.isfinite(given[moving])):
            names = ", ".join(f"{action.joint}.{action.kind}" for action in self.actions)
            each = f"for each of {shape[0]} worlds " if shape[0] > 1 else ""
            raise ModelError(f"actions {given} are not {each}{shape[1]} finite numbers ({names})")
        bounded = np.clip(given, -1.0, 1.0)
        self.last = np.where(moving[:, None], bounded, self.last)
        motors: dict[str, dict[str, Any]] = {}
        joints = self.model.system.mechanism.joints
        tau = np.tile(self._rest, (len(self.worlds), 1))
        for k, action in enumerate(self.actions):
            value = action.low + (self.last[:, k] + 1.0) / 2.0 * (action.high - action.low)
            if action.kind == "torque":
                tau[:, joints[action.joint].v.start] += value
                continue
            numbers = motors.setdefault(action.joint, {"force": action.force})
            numbers |= {action.kind: value, "velocity_gain": action.velocity_gain}
            if action.kind == "position":
                numbers["position_gain"] = action.position_gain
        self.worlds.step(self.task.steps, motors=motors, tau=tau, moving=moving)

    def observe(self, view: View) -> dict[str, Singles]:
        """What is seen of all worlds (n, several), by name, within its bounds."""
        found: dict[str, Singles] = {}
        for name, observation in self.observations.items():
            space = self.observation_space[name]
            assert isinstance(space, spaces.Box)
            values = np.reshape(observation.of(view), (len(self.worlds), *space.shape))
            low, high = space.low.astype(np.float64), space.high.astype(np.float64)
            found[name] = np.clip(values, low, high).astype(np.float32)
        return found

    def picture(self, world: int) -> np.ndarray:
        """A world by Bullet's own renderer (height, width, 3)."""
        self.worlds.show(world)
        if self._camera is None:
            self._camera = find_camera(self.model.bodies, [self.model.system.q])
            self.worlds.show(world)
        return take(self._camera, self.client, SIZE)[0].copy()

    def close(self) -> None:
        """End the world."""
        if pybullet.isConnected(self.client):
            disconnect(self.client)


def _load(task: Task, client: int) -> LoadedModel:
    """The model of a task in its scene, with its own gravity.

    What the file lost or assumed is said; that joints start beyond limits is not, each time.
    """
    spec = task.model if isinstance(task.model, ModelSpec) else read_model(task.model)
    task.scene(client)
    pybullet.setGravity(*spec.own_gravity, client)
    spec = replace(spec, gravity=spec.own_gravity)
    with warnings.catch_warnings():
        if isinstance(task.model, ModelSpec):
            warnings.simplefilter("ignore", BulletBridgeWarning)
        return load(spec, client, dt=task.dt, contacts=task.contacts)


def names_of(actions: Sequence[Action]) -> tuple[str, ...]:
    """What the numbers of an action are called: joint and kind."""
    return tuple(f"{action.joint}.{action.kind}" for action in actions)
