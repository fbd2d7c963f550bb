"""Environments keep Gymnasium's rules, are repeated by their seeds, and many are as each alone."""

import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from numpy.testing import assert_array_equal

import bulletbridge as bb
from bulletbridge.errors import ModelError, WorldError
from bulletbridge.gym import REGISTERED, Action, LoopEnv, LoopVectorEnv, Observation, Start, Task

REACH = "bulletbridge.gym.delta_reach:delta_reach"


@pytest.fixture
def made():
    """Environments by their class, closed afterwards."""
    found = []

    def make(kind, *args, **options):
        found.append(kind(*args, **options))
        return found[-1]

    yield make
    for env in found:
        env.close()


def shaking(n):
    """A four-bar whose crank is turned, with goals and masses by chance; short episodes."""
    return Task(
        "four_bar",
        actions=[Action("crank", "torque", -2.0, 2.0)],
        observations={
            "crank": Observation(lambda view: view.position("crank"), -7.0, 7.0),
            "goal": Observation(lambda view: view.kept["goal"], 0.0, 1.0),
        },
        start=lambda rng: Start(
            {"crank": rng.uniform(0.8, 1.2)},
            {"rocker.mass": rng.uniform(1.0, 2.0)},
            {"goal": rng.uniform(0.0, 1.0)},
        ),
        reward=lambda view: -np.abs(view.position("crank") - view.kept["goal"]),
        terminated=lambda view: view.position("crank") < 0.0,
        most_actions=n,
    )


@pytest.mark.parametrize("name", REGISTERED)
def test_registered_ones_pass_gymnasiums_check(made, name):
    """Warnings are errors here; pictures are checked too."""
    env = made(gymnasium.make, name)
    check_env(env.unwrapped)
    seen, _ = env.reset(seed=3)
    assert env.observation_space.contains(seen)
    for _ in range(5):
        seen, reward, *_ = env.step(env.action_space.sample())
        assert env.observation_space.contains(seen) and np.isfinite(reward)
    gap = env.unwrapped.worlds.evaluate(0).largest("kept_metres")
    assert gap < 1e-12


@pytest.mark.parametrize("model", ["stewart", "slider_crank", "five_bar"])
def test_any_model_is_an_environment(made, model):
    env = made(LoopEnv, model)
    check_env(env, skip_render_check=True)
    spec = bb.load(model, "new").spec
    assert [name.rpartition(".")[0] for name in env.action_names] == list(spec.actuated)
    assert set(env.observation_names) == set(env.observation_space.spaces)


@pytest.mark.parametrize("threads", [1, 2])
def test_many_worlds_are_each_alone(made, rng, threads):
    """To the bit: seeds are those from the first on; episodes begin again by themselves."""
    many = made(LoopVectorEnv, 3, shaking(7), threads=threads)
    seen, _ = many.reset(seed=11)
    ones = [made(LoopEnv, shaking(7)) for _ in range(3)]
    alone = [env.reset(seed=11 + k)[0] for k, env in enumerate(ones)]
    over = [False] * 3
    for _ in range(20):
        for k in range(3):
            assert_array_equal(seen["crank"][k], alone[k]["crank"])
            assert_array_equal(seen["goal"][k], alone[k]["goal"])
        actions = rng.uniform(-1.0, 1.0, (3, 1)).astype(np.float32)
        seen, rewards, terminated, truncated, _ = many.step(actions)
        for k, env in enumerate(ones):
            if over[k]:
                alone[k], over[k] = env.reset()[0], False
                assert rewards[k] == 0.0 and not (terminated[k] or truncated[k])
                continue
            alone[k], reward, end, cut, _ = env.step(actions[k])
            assert (reward, end, cut) == (rewards[k], terminated[k], truncated[k])
            over[k] = end or cut


def test_seeds_repeat_an_episode(made):
    env = made(LoopEnv, REACH, flat=True)
    runs = []
    for _ in range(2):
        seen, _ = env.reset(seed=5)
        env.action_space.seed(5)
        runs.append([seen])
        for _ in range(8):
            seen, reward, *_ = env.step(env.action_space.sample())
            runs[-1] += [seen, [reward]]
    for one, other in zip(*runs, strict=True):
        assert_array_equal(one, other)
    assert np.abs(env.reset(seed=6)[0] - runs[0][0]).max() > 1e-3


def test_episodes_begin_again_in_the_same_step(made):
    env = made(LoopVectorEnv, 2, shaking(3), autoreset_mode="SameStep", flat=True)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    env.reset(seed=1)
    for k in range(3):
        seen, _, _, truncated, infos = env.step(np.zeros((2, 1)))
        assert truncated.all() == (k == 2)
    assert infos["_final_obs"].all()
    assert all(np.abs(infos["final_obs"][n] - seen[n]).max() > 0.0 for n in range(2))
    assert infos["final_info"]["t"].tolist() == pytest.approx([12 / 240] * 2)
    assert infos["t"].tolist() == [0.0, 0.0]


def test_a_mask_begins_some_episodes_again(made):
    env = made(LoopVectorEnv, 3, shaking(2), autoreset_mode=AutoresetMode.DISABLED)
    env.reset(seed=1)
    env.step(np.zeros((3, 1)))
    _, _, _, truncated, _ = env.step(np.zeros((3, 1)))
    assert truncated.all()
    with pytest.raises(ModelError, match="autoreset is disabled"):
        env.step(np.zeros((3, 1)))
    before = env.worlds.t
    _, infos = env.reset(options={"reset_mask": np.array([True, False, True])})
    assert env.worlds.t.tolist() == [0.0, before[1], 0.0]
    assert infos["_t"].tolist() == [True, False, True]
    with pytest.raises(ModelError, match="give booleans"):
        env.reset(options={"reset_mask": [1, 0, 1]})


def test_a_world_that_fails_is_truncated_and_says_why(made):
    """Its loop is pulled apart by a torque that no step can follow."""
    hard = Task("four_bar", actions=[Action("crank", "torque", -1e12, 1e12)], dt=0.05)
    env = made(LoopVectorEnv, 2, hard)
    env.reset(seed=0)
    truncated, infos = np.zeros(2, bool), {}
    for _ in range(50):
        _, _, _, truncated, infos = env.step(np.array([[1.0], [0.0]]))
        if truncated.any():
            break
    assert truncated.tolist() == [True, False]
    assert infos["failure"][0] and not infos["failure"][1]
    env.step(np.array([[0.0], [0.0]]))  # the world begins again
    assert not env.worlds.failures


def test_vectors_are_made_by_name(made):
    env = made(gymnasium.make_vec, "bulletbridge/DeltaReach-v0", num_envs=2)
    assert isinstance(env.unwrapped, LoopVectorEnv)
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    found = env.step(env.action_space.sample())
    assert env.observation_space.contains(found[0])


def test_pictures_show_the_world(made):
    env = made(LoopEnv, "four_bar", render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    for _ in range(20):
        env.step(env.action_space.sample())
    second = env.render()
    assert first.shape == second.shape and first.dtype == np.uint8
    assert np.ptp(first) > 50 and np.abs(first.astype(int) - second).max() > 50


def test_what_cannot_be_is_refused(made):
    for kind, options, said in (
        (LoopEnv, {"task": "four_bar", "render_mode": "ansi"}, "rgb_array"),
        (LoopEnv, {"task": "bulletbridge.gym.delta_reach:nothing"}, "names no function"),
        (LoopVectorEnv, {"num_envs": 2, "task": "four_bar", "autoreset_mode": "x"}, "NextStep"),
        (LoopEnv, {"task": Task("four_bar", actions=[Action("crnk", "torque", -1, 1)])}, "crank"),
        (LoopEnv, {"task": Task("four_bar", start=lambda rng: Start({}, {"crank.mas": 1.0}))},
         "crank.mass"),
        (LoopEnv, {"task": Task("four_bar", start=lambda rng: {"crank": 1.0})}, r"give Start\("),
        (LoopEnv, {"task": Task("four_bar", actions=["crank"])}, r"give Action\("),
        (LoopEnv, {"task": Task("four_bar", observations={
            "x": Observation(lambda view: view.kept["goal"], 0, 1)})}, "kept number 'goal'"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=said):
            made(kind, **options).reset()
    for given, said in (
        ({"steps": 0.5}, "steps is 0.5"),
        ({"most_actions": "9"}, "most_actions is '9'"),
        ({"start": Start()}, "start is .*; give a function"),
        ({"observations": ["crank"]}, "no names"),
    ):
        with pytest.raises(ModelError, match=said):
            Task("four_bar", **given)
    with pytest.raises(TypeError, match=r"LoopEnv\(Task\("):
        LoopEnv("four_bar", actions=[])
    with pytest.raises(ModelError, match="give a number, then the task"):
        LoopVectorEnv(Task("four_bar"), 2)
    env = made(LoopEnv, Task("four_bar", actions=[Action("crank", "torque", -1, 1)]))
    env.reset(seed=0)
    for action in ([0.5, 0.5], [np.nan]):
        with pytest.raises(ModelError, match=r"are not 1 finite numbers \(crank.torque\)"):
            env.step(action)
    with pytest.raises(ModelError, match="action is not an array of real numbers, but 'x'"):
        env.step("x")
    with pytest.raises(WorldError, match=r"not copied or pickled.* env\.task"):
        pickle.dumps(env)


def test_a_reward_that_is_none_is_refused(made):
    """Not a number for good, as numpy makes of it."""
    env = made(LoopEnv, Task("four_bar", reward=lambda view: None))
    env.reset(seed=0)
    with pytest.raises(ModelError, match="reward is None; give 1 numbers"):
        env.step(env.action_space.sample())


def test_a_closed_environment_says_so(made):
    """Many worlds went on without a word, one had an error of Bullet's."""
    task = Task("four_bar", actions=[Action("crank", "torque", -1, 1)])
    for env in (made(LoopEnv, task), made(LoopVectorEnv, 2, task)):
        env.reset(seed=0)
        with pytest.raises(ModelError, match="are not (for each of 2 worlds )?1 finite numbers"):
            env.step(np.zeros(3))
        env.close()
        for call in (lambda env=env: env.step(env.action_space.sample()), env.reset):
            with pytest.raises(gymnasium.error.ClosedEnvironmentError):
                call()


def test_without_gymnasium_the_error_names_the_extra():
    code = "import sys; sys.modules['gymnasium'] = None; import bulletbridge.gym"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'bulletbridge[gym]'" in done.stderr


def test_importing_bulletbridge_leaves_gymnasium_alone():
    code = "import sys, bulletbridge; sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
