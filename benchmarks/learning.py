"""A delta robot learns to bring its platform to any point: PPO on many worlds at once.

Takes `pip install 'bulletbridge[gym]' stable-baselines3`, which brings PyTorch, and some minutes
without a window. What was learned is measured on goals that it has not seen. ``--curve FILE`` keeps
the learning curve as a drawing.
"""

import argparse
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

TASK = "bulletbridge.gym.delta_reach:delta_reach"
TRIALS = 256  # goals that what was learned is measured on


def many_worlds(number: int) -> Any:
    """Worlds as stable-baselines3 takes them, each starting again when its episode is over."""
    from bulletbridge.gym import LoopVectorEnv

    VecEnv: Any = import_module("stable_baselines3.common.vec_env").VecEnv

    class ManyWorlds(VecEnv):
        """``LoopVectorEnv`` by the names that stable-baselines3 has."""

        def __init__(self) -> None:
            self.inner = LoopVectorEnv(number, TASK, flat=True, autoreset_mode="SameStep")
            single: Any = self.inner.single_observation_space, self.inner.single_action_space
            super().__init__(number, *single)

        def reset(self) -> Any:
            return self.inner.reset(seed=self._seeds[0])[0]

        def step_async(self, actions: Any) -> None:
            self.actions = actions

        def step_wait(self) -> Any:
            seen, rewards, terminated, truncated, infos = self.inner.step(self.actions)
            told: list[dict[str, Any]] = [{} for _ in range(number)]
            for k in np.flatnonzero(terminated | truncated):
                told[k] = {"terminal_observation": infos["final_obs"][k],
                           "TimeLimit.truncated": bool(truncated[k])}  # fmt: skip
            return seen, rewards, terminated | truncated, told

        def close(self) -> None:
            self.inner.close()

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [getattr(self.inner, attr_name)] * number

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            setattr(self.inner, attr_name, value)

        def env_method(self, method_name: str, *args: Any, **kwargs: Any) -> list[Any]:
            return [getattr(self.inner, method_name)(*args, **kwargs)]

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False] * number

    return ManyWorlds()


def final_distances(policy: Any, seed: int) -> Any:
    """Distances of the platform from its goal at the end of episodes (TRIALS,) [m]."""
    from bulletbridge.gym import LoopVectorEnv

    env = LoopVectorEnv(TRIALS, TASK, flat=True, autoreset_mode="Disabled")
    seen, _ = env.reset(seed=seed)
    over = np.zeros(TRIALS, bool)
    while not over.any():
        actions, _ = policy.predict(seen, deterministic=True)
        seen, _, terminated, truncated, _ = env.step(actions)
        over = terminated | truncated
    env.close()
    first = env.observation_names.index("to_goal")
    sizes = [3] * len(env.observation_names)
    at = sum(sizes[:first])
    return np.linalg.norm(seen[:, at : at + 3], axis=1)


def draw(actions: Any, distances: Any, file: Path) -> None:
    """Draw the learning curve."""
    from matplotlib.figure import Figure

    figure = Figure((6.0, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.semilogy(actions, 1000 * distances, "o-")
    axes.set_xlabel("actions, of all worlds")
    axes.set_ylabel("median distance from the goal [mm]")
    axes.grid(alpha=0.3)
    figure.savefig(file)


def learn(steps: int, seed: int, worlds: int, curve: Path | None) -> tuple[float, float]:
    """Learn for so many actions; median distance [m] from goals before and after."""
    library: Any = import_module("stable_baselines3")
    import_module("torch").set_num_threads(1)
    env = many_worlds(worlds)
    env.seed(seed)
    ppo = library.PPO("MlpPolicy", env, seed=seed, n_steps=120, batch_size=960, n_epochs=8,
              learning_rate=1e-3, gamma=0.95, gae_lambda=0.9, device="cpu",
              policy_kwargs={"net_arch": [64, 64], "log_std_init": -0.5})  # fmt: skip
    before = float(np.median(final_distances(ppo, 10**6)))
    begun, rows = time.perf_counter(), list[tuple[float, float]]()
    while ppo.num_timesteps < steps:
        ppo.learn(min(12 * 120 * worlds, steps - ppo.num_timesteps), reset_num_timesteps=False)
        found = float(np.median(final_distances(ppo, 10**6)))
        rows.append((ppo.num_timesteps, found))
        print(f"{ppo.num_timesteps:8d} actions, {time.perf_counter() - begun:4.0f} s:"
              f" {1000 * found:6.1f} mm from the goal")  # fmt: skip
    env.close()
    x, y = np.array([(0.0, before), *rows]).T
    if curve is not None:
        draw(x, y, curve)
    return before, float(y[-1])


def main(steps: int = 150_000, seed: int = 1, worlds: int = 32, curve: Path | None = None) -> float:
    """Learn, and tell; return the median distance from goals [m]."""
    before, after = learn(steps, seed, worlds, curve)
    print(f"median of {TRIALS} unseen goals: {1000 * before:.1f} mm before, {1000 * after:.1f} mm"
          f" after {steps} actions, seed {seed}")  # fmt: skip
    return after


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150_000, help="actions, of all worlds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=32)
    parser.add_argument("--curve", type=Path, metavar="FILE", help="save the learning curve")
    main(**vars(parser.parse_args()))
