"""Several clients: side by side, in threads, in forked workers, one after the other."""

import gc
import multiprocessing
import os
import threading
import warnings
from pathlib import Path

import numpy as np
import pybullet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pybullet_utils.bullet_client import BulletClient as Native
from test_client import linkage, tips

import bulletbridge.pybullet as module
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import SESSIONS, islands
from bulletbridge.errors import BulletBridgeWarning, unheard, warn_user


def swing(client, body, steps=100):
    """Joint angles after some steps, the loop closed at each."""
    for _ in range(steps):
        client.stepSimulation()
        assert tips(client, body) < 1e-12
    return [client.getJointState(body, joint)[0] for joint in range(3)]


LOADING = threading.Lock()
HANG = 1800.0
"""Only what hangs takes so long [s]: kernels compile in minutes on a busy machine."""


def alone(folder):
    """The same in a client of its own; PyBullet itself cannot load files in two threads at once."""
    client = BulletClient(pybullet.DIRECT)
    with LOADING:
        body, _ = linkage(client, folder)
    found = swing(client, body)
    client.disconnect()
    return found


def test_threads_do_not_disturb_each_other(tmp_path):
    expected, found = alone(tmp_path), {}

    def work(number):
        folder = tmp_path / str(number)  # its own: all write the same files
        folder.mkdir()
        found[number] = alone(folder)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(found.values()) == [expected] * 4


def test_threads_that_read_bodies_do_not_silence_each_other():
    """Whoever is silent is so alone, in whatever order they begin and end."""
    entered, may_leave = threading.Event(), threading.Event()

    def read():
        with unheard():
            entered.set()
            may_leave.wait(HANG)

    reader = threading.Thread(target=read)
    reader.start()
    entered.wait(HANG)
    with pytest.warns(BulletBridgeWarning, match="meanwhile"):
        warn_user("meanwhile")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with unheard():
            may_leave.set()
            reader.join()
            warn_user("nobody hears that")
    with pytest.warns(BulletBridgeWarning, match="afterwards"):
        warn_user("afterwards")


def work_in_fork(client, body, folder, results):
    """The parent's client goes on here as a copy, beside a new one; what goes wrong is told."""
    try:
        folder.mkdir()  # its own: the other worker writes the same files
        results.put((swing(client, body, 50), alone(folder)))
    except BaseException as error:
        results.put(repr(error))
        raise


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_workers_go_on_by_themselves(tmp_path):
    expected = alone(tmp_path)
    client = BulletClient(pybullet.DIRECT)
    body, _ = linkage(client, tmp_path)
    swing(client, body, 50)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [
        context.Process(target=work_in_fork, args=(client, body, tmp_path / str(n), results))
        for n in range(2)
    ]
    for worker in workers:
        worker.start()
    answers = [results.get(timeout=HANG) for _ in workers]
    for worker in workers:
        worker.join()
    assert answers == [(expected, expected)] * 2
    assert swing(client, body, 50) == expected
    client.disconnect()


def test_a_client_id_that_is_used_again_starts_afresh(tmp_path):
    for kind in (BulletClient, Native):
        client = kind(pybullet.DIRECT)
        body, _ = linkage(client, tmp_path)
        client.stepSimulation()
        number = client._client
        client.disconnect()
        if kind is BulletClient:
            assert number not in SESSIONS
    again = BulletClient(pybullet.DIRECT)
    assert again._client == number
    assert again.getBridgeLoops() == {}
    body, _ = linkage(again, tmp_path)
    swing(again, body, 10)
    again.disconnect()


def test_the_module_serves_several_clients_and_wrappers(tmp_path, monkeypatch):
    expected = alone(tmp_path)
    one, two = module.connect(module.DIRECT), module.connect(module.DIRECT)
    monkeypatch.setattr("pybullet_utils.bullet_client.pybullet", module)
    wrapped = Native(module.DIRECT)
    assert "pybullet_utils" in type(wrapped).__module__
    body, _ = linkage(wrapped, tmp_path)
    assert swing(wrapped, body) == expected
    assert module.getNumBodies(one) == module.getNumBodies(physicsClientId=two) == 0
    wrapped.disconnect()
    module.disconnect(one)
    module.disconnect(physicsClientId=two)


def test_constraints_made_before_are_taken_over(tmp_path):
    native = Native(pybullet.DIRECT)
    body, made = linkage(native, tmp_path)
    native.stepSimulation()
    for _ in range(20):
        module.stepSimulation(native._client)
        assert tips(native, body) < 1e-12
    assert list(module.getBridgeLoops(native._client)) == [made]
    module.disconnect(native._client)
    native._client = -1


def resident() -> int:
    """Memory of this process [bytes]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_nothing_leaks_over_many_steps(tmp_path):
    client = BulletClient(pybullet.DIRECT)
    linkage(client, tmp_path)
    for _ in range(10000):
        client.stepSimulation()
    gc.collect()
    before = resident()
    for _ in range(100000):
        client.stepSimulation()
    gc.collect()
    assert resident() - before < 1e6  # ten bytes a step would be as much
    client.disconnect()


def test_nothing_leaks_over_many_constraints(tmp_path):
    client = BulletClient(pybullet.DIRECT)
    body, made = linkage(client, tmp_path)
    info = client.getConstraintInfo(made)
    for _ in range(20):
        client.stepSimulation()
        client.removeConstraint(made)
        made = client.createConstraint(body, 1, body, 2, info[4], info[5], info[6], info[7])
    session = SESSIONS[client._client]
    client.stepSimulation()
    assert len(session.groups) == len(session.loops()) == 1
    assert np.isfinite(client.getJointState(body, 0)[0])
    client.disconnect()
    assert client._client not in SESSIONS


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_many_robots_are_read_from_one_look_at_the_world(connect, tmp_path, monkeypatch, mode):
    """Bullet writes its whole world to tell its files: a look for each robot grew as the square."""
    looks, own = [], pybullet.saveWorld

    def save(*arguments):
        looks.append(arguments)
        return own(*arguments)

    monkeypatch.setattr(pybullet, "saveWorld", save)
    client = connect()
    client.setBridgeMode(mode)
    robots = [linkage(client, tmp_path)[0] for _ in range(4)]
    client.stepSimulation()
    assert len(looks) == 1
    later, _ = linkage(client, tmp_path)
    client.stepSimulation()
    assert len(looks) == 2
    assert max(tips(client, robot) for robot in (*robots, later)) < 1e-12


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=3), max_size=15))
def test_islands_are_what_hangs_together(groups):
    """By going from body to body until none is new; none is lost, none is twice."""
    found = islands(map(tuple, groups))
    assert sum(map(len, found)) == len({body for group in groups for body in group})
    for group in groups:
        reached, size = set(group), 0
        while len(reached) > size:
            size = len(reached)
            reached.update(*(other for other in groups if reached.intersection(other)))
        assert frozenset(reached) in found
