"""Fixtures for all tests."""

import gc
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the workers of a suite are as many as cores
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes that each import all of it
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pybullet
import pytest
from hypothesis import HealthCheck, settings
from support.bullet_worlds import BulletWorld
from support.fake_window import Window
from support.loops_files import ROBOT
from support.solid_worlds import SolidWorld

import bulletbridge
from bulletbridge.bullet.worlds import MOST_CLIENTS, clients_of_the_program, disconnect

# A busy machine may take its time, also to draw examples. Where CI is set the examples are the
# same in every run, so that a change is judged by itself; everywhere else they are new each time.
# Few are drawn, since many runs draw; an example that has failed is written down with its test.
settings.register_profile(
    "busy",
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("busy")


def pytest_collection_finish() -> None:
    """Leave to tests alone what collects garbage: thousands of tests are there until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_world_left() -> Generator[None, None, None]:
    """Fails a test that leaves a client connected: later ones would load into its world."""
    before = set(clients_of_the_program())
    yield
    left = set(clients_of_the_program()) - before
    for client in left:
        pybullet.disconnect(client)
    assert not left, f"clients {sorted(left)} are left connected"


@pytest.fixture
def nobody_connected() -> None:
    """For programs that name no client: theirs is client 0, which an earlier test may have kept."""
    for client in range(MOST_CLIENTS):
        disconnect(client)


@pytest.fixture
def rng() -> np.random.Generator:
    """Repeatable random numbers."""
    return np.random.default_rng(12345)


@pytest.fixture
def client() -> Generator[int, None, None]:
    """Number of a client of Bullet's own, which is closed after the test."""
    number = pybullet.connect(pybullet.DIRECT)
    yield number
    if pybullet.isConnected(number):
        pybullet.disconnect(number)


@pytest.fixture
def client_on_earth(client: int) -> int:
    """The same, with gravity."""
    pybullet.setGravity(0, 0, -9.81, client)
    return client


@pytest.fixture(params=["filter", "exact"])
def client_of_ours(connect: Callable[..., Any], request: pytest.FixtureRequest) -> Any:
    """A client in each of our modes in turn."""
    made = connect()
    made.setBridgeMode(request.param)
    return made


@pytest.fixture
def connect() -> Generator[Callable[..., Any], None, None]:
    """Makes clients, ours unless another class is given, and closes them after the test."""
    made: list[Any] = []

    def make(kind: Any = None) -> Any:
        made.append((kind or bulletbridge.BulletClient)(pybullet.DIRECT))
        return made[-1]

    yield make
    for client in made:
        client.disconnect()


@pytest.fixture
def world(tmp_path: Path) -> Generator[BulletWorld, None, None]:
    """A Bullet client of its own, into which URDF text is loaded."""
    bullet = BulletWorld(tmp_path)
    yield bullet
    if pybullet.isConnected(bullet.client):
        pybullet.disconnect(bullet.client)


@pytest.fixture
def solids(tmp_path: Path) -> Generator[SolidWorld, None, None]:
    """A world of solids on the ground that is closed after the test."""
    made = SolidWorld(tmp_path)
    yield made
    pybullet.disconnect(made.client)


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Window:
    """Bullet's window without one, from here on."""
    return Window().install(monkeypatch)


@pytest.fixture
def loops_file(tmp_path: Path) -> Callable[[str], Path]:
    """Puts text into a loops file beside a robot; its path."""
    (tmp_path / "robot.urdf").write_text(ROBOT)

    def put(text: str) -> Path:
        path = tmp_path / "robot.loops.yaml"
        path.write_text(text)
        return path

    return put
