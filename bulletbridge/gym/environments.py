"""Environments on Gymnasium's API: one mechanism, or many of them in compiled calls."""

import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NoReturn

import gymnasium
import numpy as np
import pybullet
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from bulletbridge.bullet.worlds import has_display
from bulletbridge.errors import ModelError, WorldError, called_as, given_as
from bulletbridge.gym.simulation import Simulation, Singles, names_of
from bulletbridge.gym.tasks import Task, task_of
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array, Mask, array_of
from bulletbridge.system.options import is_count

Given = Task | str | Path | ModelSpec
Seen = dict[str, Singles] | Singles
RENDER_MODES = ["human", "rgb_array"] if has_display() else ["rgb_array"]
FRAMES_A_SECOND = 60


def check_mode(mode: str | None) -> None:
    """Refuse ways of rendering that there are not."""
    if mode not in (None, *RENDER_MODES):
        hint = "" if has_display() or mode != "human" else "; there is no display for a window"
        raise ModelError(f"render_mode is {mode!r}; give {' or '.join(RENDER_MODES)}{hint}")


class Episodes:
    """Worlds with their tasks: what both environments do, for all worlds at once.

    Args:
        task: As of ``LoopEnv``.
        number: Worlds.
        flat: Whether what is seen is one array, in the order of its names.
        threads: That step the worlds.
        window: Whether Bullet shows a window.

    Attributes:
        done: (n,) actions of each world in its episode.
    """

    def __init__(
        self, task: Given, number: int, flat: bool, threads: int | None, window: bool
    ) -> None:
        self.task = task_of(task)
        self.simulation = Simulation(self.task, number, threads, window)
        self.done = np.zeros(number, np.int64)
        self.space: spaces.Space[Any] = self.simulation.observation_space
        self._flat = flat
        if flat:
            self.space = spaces.flatten_space(self.simulation.observation_space)

    def __reduce__(self) -> NoReturn:
        """Refuse copies, which would be of a world in Bullet."""
        raise WorldError(
            "environments are not copied or pickled, for their worlds are in Bullet: copy or pickle"
            " env.task, and make another environment of it"
        )

    def start(self, worlds: Sequence[int], rngs: Mapping[int, np.random.Generator]) -> None:
        """Begin episodes in some worlds."""
        self._require_open()
        for world in worlds:
            self.simulation.start(world, rngs[world])
            self.done[world] = 0

    def observe(self) -> Seen:
        """What is seen of all worlds."""
        return self._told(self.simulation.observe(self.simulation.view()))

    def _told(self, seen: dict[str, Singles]) -> Seen:
        # gymnasium flattens a Dict in the order of its space
        return np.concatenate([seen[name] for name in seen], axis=1) if self._flat else seen

    def step(self, actions: Array, moving: Mask) -> tuple[Seen, Array, Mask, Mask]:
        """One action in the worlds that are moving (n,).

        A world that fails is truncated.

        Returns:
            What is seen, rewards, whether they have terminated, and are truncated.
        """
        simulation, task = self.simulation, self.task
        self._require_open()
        simulation.act(actions, moving)
        self.done[moving] += 1
        view = simulation.view()
        rewards: Any = task.reward(view)
        if rewards is None or np.shape(rewards) not in ((), moving.shape):
            said = given_as(rewards)
            raise ModelError(
                f"the task's reward is {said}; give {len(moving)} numbers, a world each"
            )
        rewards = np.where(moving, np.asarray(rewards, np.float64), 0.0)
        failed = np.zeros(len(moving), bool)
        failed[list(simulation.worlds.failures)] = True
        terminated = np.asarray(task.terminated(view), bool) & moving & ~failed
        truncated = moving & ((self.done >= task.most_actions) | failed) & ~terminated
        return self._told(simulation.observe(view)), rewards, terminated, truncated

    def _require_open(self) -> None:
        if not pybullet.isConnected(self.simulation.client):
            raise gymnasium.error.ClosedEnvironmentError("it is closed; make another one")

    def info(self, world: int) -> dict[str, Any]:
        """What an environment tells besides: time [s], and why the world failed, if it has."""
        found: dict[str, Any] = {"t": float(self.simulation.worlds.t[world])}
        failure = self.simulation.worlds.failures.get(world)
        return found | ({} if failure is None else {"failure": failure})


class LoopEnv(gymnasium.Env[Any, Any]):
    """A mechanism with closed loops to learn with.

    Actions go from -1 to 1, one number for each entry of ``action_names``. What is seen is a
    dictionary of arrays by name. An episode is truncated after the most actions of its task, and
    where a step cannot be finished; ``info["failure"]`` says why. Equal seeds give equal bits.

    Args:
        task: A ``Task``; a model's name or file, which is seen and driven as ``Task`` says unless
            told otherwise; or ``module:function``, which makes a task.
        render_mode: ``rgb_array``, pictures by Bullet's own renderer; ``human``, Bullet's window,
            where there is a display; None.
        flat: Whether what is seen is one array, in the order of ``observation_space`` without.

    Attributes:
        task: The task that episodes are of.
        worlds: The world, as ``bulletbridge.Worlds`` of one.

    Raises:
        ModelError: The task names what the model does not have, or an option is none.
        WorldError: Bullet cannot open its window.
    """

    metadata = {"render_modes": RENDER_MODES, "render_fps": FRAMES_A_SECOND}

    @called_as(
        "what is done, seen and aimed at is a Task, as LoopEnv(Task('stewart', actions=[...]))"
    )
    def __init__(self, task: Given, render_mode: str | None = None, flat: bool = False) -> None:
        check_mode(render_mode)
        self.render_mode = render_mode
        self._episodes = Episodes(task, 1, flat, 1, render_mode == "human")
        simulation, self.task = self._episodes.simulation, self._episodes.task
        self.worlds, self._period = simulation.worlds, self.task.dt * self.task.steps
        self.metadata = {**self.metadata, "render_fps": round(1.0 / self._period)}
        self.observation_space, self.action_space = self._episodes.space, simulation.action_space
        self.action_names = names_of(simulation.actions)
        self.observation_names = tuple(simulation.observations)
        self._due = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; ``seed`` sets what chance will be from here on.

        Returns:
            What is seen, and ``{"t": 0.0}``.
        """
        super().reset(seed=seed)
        self._episodes.start([0], {0: self.np_random})
        self._show()
        return _line(self._episodes.observe(), 0), self._episodes.info(0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Do what an action (actions,) asks for.

        Returns:
            What is seen, the reward, whether the episode has terminated, whether it is truncated,
            and what is told besides.
        """
        found = self._episodes.step(array_of("action", action)[None], np.ones(1, bool))
        seen, rewards, terminated, truncated = found
        self._show()
        return (
            _line(seen, 0),
            float(rewards[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            self._episodes.info(0),
        )

    def render(self) -> Any:
        """A picture (height, width, 3) with ``rgb_array``; the window shows itself."""
        return self._episodes.simulation.picture(0) if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """End the world."""
        self._episodes.simulation.close()

    def _show(self) -> None:
        """Show the state in the window, not faster than it happens."""
        if self.render_mode == "human":
            self.worlds.show(0)
            time.sleep(max(0.0, self._due - time.monotonic()))
            self._due = time.monotonic() + self._period


class LoopVectorEnv(VectorEnv[Any, Any, Any]):
    """Many worlds of one task, stepped together in compiled calls on all cores.

    Each world is what ``LoopEnv`` is with its seed, to the last bit: seeds are seed, seed + 1, and
    so on. ``reset(options={"reset_mask": mask})`` begins new episodes in some worlds (n,) alone.

    Args:
        num_envs: Worlds.
        task: As of ``LoopEnv``.
        render_mode: ``rgb_array`` or None; pictures are one of each world.
        flat: As of ``LoopEnv``.
        autoreset_mode: What happens to worlds whose episode is over, declared in ``metadata``:
            ``NEXT_STEP``, their next step begins a new one; ``SAME_STEP``, the same one does, and
            ``infos["final_obs"]`` has what was seen last; ``DISABLED``, nothing before ``reset``.
        threads: That step the worlds; all cores unless given.

    Attributes:
        task: What the worlds are about.
        worlds: The worlds, ``bulletbridge.Worlds``.

    Raises:
        ModelError: The task names what the model does not have, or an option is none.
    """

    metadata = {
        "render_modes": ["rgb_array"],
        "render_fps": FRAMES_A_SECOND,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int,
        task: Given,
        render_mode: str | None = None,
        flat: bool = False,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int | None = None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ModelError(f"render_mode is {render_mode!r}; many worlds have rgb_array alone")
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            known = ", ".join(mode.value for mode in AutoresetMode)
            raise ModelError(f"autoreset_mode is {autoreset_mode!r}; give {known}") from None
        if not is_count(num_envs):
            raise ModelError(f"num_envs is {given_as(num_envs)}; give a number, then the task")
        self.num_envs, self.render_mode = num_envs, render_mode
        self._episodes = Episodes(task, num_envs, flat, threads, False)
        simulation, self.task = self._episodes.simulation, self._episodes.task
        self.worlds = simulation.worlds
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = self._episodes.space
        self.single_action_space = simulation.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.action_names = names_of(simulation.actions)
        self.observation_names = tuple(simulation.observations)
        self._rngs: dict[int, np.random.Generator] = {}
        self._over = np.zeros(num_envs, bool)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes, in all worlds or in those of ``options["reset_mask"]`` (n,).

        Returns:
            What is seen of all worlds, and what is told besides of those that begin.

        Raises:
            ModelError: The mask or the seeds do not fit.
        """
        chosen = self._mask((options or {}).get("reset_mask"))
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + k for k in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ModelError(f"{len(seeds)} seeds are given; give one, or {self.num_envs}")
        worlds = np.flatnonzero(chosen).tolist()
        for world in worlds:
            if seeds[world] is not None or world not in self._rngs:
                self._rngs[world], _ = seeding.np_random(seeds[world])
        self._episodes.start(worlds, self._rngs)
        self._over[chosen] = False
        return self._episodes.observe(), self._infos(chosen)

    def _mask(self, given: object) -> Mask:
        """Worlds (n,) whose episodes begin again: all unless given."""
        if given is None:
            return np.ones(self.num_envs, bool)
        mask = np.asarray(given)
        if mask.shape != (self.num_envs,) or mask.dtype != bool:
            raise ModelError(
                f"reset_mask is {mask.dtype} {mask.shape}; give booleans ({self.num_envs},), true"
                " for worlds that are to begin again"
            )
        return mask.astype(bool)

    def step(self, actions: Any) -> tuple[Any, Array, Mask, Mask, dict[str, Any]]:
        """Do what actions (n, actions) ask for.

        Returns:
            What is seen, rewards, whether episodes have terminated, whether they are truncated, and
            what is told besides.

        Raises:
            ModelError: An episode is over, and nothing begins a new one.
        """
        if len(self._rngs) < self.num_envs:
            raise gymnasium.error.ResetNeeded("call reset before step")
        again = self._over.copy()
        if self.autoreset_mode == AutoresetMode.DISABLED and again.any():
            raise ModelError(
                f"the episode of world {int(np.argmax(again))} is over, and autoreset is disabled:"
                " call reset(options={'reset_mask': terminated | truncated}) first"
            )
        begin = np.flatnonzero(again).tolist()
        self._episodes.start(begin, self._rngs)
        found = self._episodes.step(array_of("actions", actions), ~again)
        seen, rewards, terminated, truncated = found
        self._over = terminated | truncated
        infos = self._infos(np.ones(self.num_envs, bool))
        if self.autoreset_mode == AutoresetMode.SAME_STEP and self._over.any():
            over = np.flatnonzero(self._over).tolist()
            final = np.full(self.num_envs, None, object)
            for world in over:
                final[world] = deepcopy(_line(seen, world))
            final_info = self._infos(self._over)
            self._episodes.start(over, self._rngs)
            seen, infos = self._episodes.observe(), self._infos(np.ones(self.num_envs, bool))
            infos |= {"final_obs": final, "_final_obs": self._over.copy()}
            infos |= {"final_info": final_info, "_final_info": self._over.copy()}
            self._over = np.zeros(self.num_envs, bool)
        return seen, rewards, terminated, truncated, infos

    def _infos(self, chosen: Mask) -> dict[str, Any]:
        """What is told besides of some worlds, as Gymnasium gathers it."""
        found: dict[str, Any] = {}
        for world in np.flatnonzero(chosen).tolist():
            found = self._add_info(found, self._episodes.info(world), world)
        return found

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture of each world (height, width, 3)."""
        if self.render_mode is None:
            return None
        return tuple(self._episodes.simulation.picture(k) for k in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """End the world."""
        self._episodes.simulation.close()


def _line(seen: Seen, world: int) -> Any:
    return {name: x[world] for name, x in seen.items()} if isinstance(seen, dict) else seen[world]
