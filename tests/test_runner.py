"""``bulletbridge run``: scripts run as under python, with loops closed; their ends and clocks."""

import datetime
import json
import subprocess
import sys
import threading
import time

import pybullet
import pytest
from support.claims import claimed_elsewhere
from support.small_models import four_bar

from bulletbridge import cli
from bulletbridge.compilation.claims import claim, give_up
from bulletbridge.drop_in.functions import FUNCTIONS
from bulletbridge.drop_in.scripts.headless import CALL, EPOCH, headless
from bulletbridge.drop_in.scripts.step_limit import FEWEST, IDLE_CALLS, PATIENCE, Ended, Meter
from bulletbridge.drop_in.scripts.table import microseconds
from bulletbridge.drop_in.session import REAL_TIME, session_of

pytestmark = pytest.mark.usefixtures("nobody_connected")
FOUR_BAR = """
import pybullet as p, sys, time
p.connect(p.GUI)
body = p.loadURDF(sys.argv[1], useFixedBase=True, flags=p.URDF_USE_INERTIA_FROM_FILE)
p.setGravity(0, 0, -9.81)
for joint, start in enumerate((1.2, -1.9186, 0.1)):
    p.resetJointState(body, joint, start)
    free = dict(controlMode=p.VELOCITY_CONTROL, force=0)
    p.setJointMotorControl2(bodyIndex=body, jointIndex=joint, **free)
ends = []
for link, length in ((1, 1.2), (2, 0.9)):
    com, turn = p.getDynamicsInfo(body, link)[3:5]
    back, origin = p.invertTransform(com, turn), [0, 0, -length]
    ends.append(p.multiplyTransforms(*back, origin, [0, 0, 0, 1])[0])
p.createConstraint(body, 1, body, 2, p.JOINT_POINT2POINT, [0, 0, 0], *ends)
"""
WINDOW = """
assert p.getDebugVisualizerCamera()[0] > 0 and p.getKeyboardEvents() == {} and input("? ") == ""
drag, button = p.addUserDebugParameter("drag", 0, 5, 2.5), p.addUserDebugParameter("go", 1, 0, 0)
print("ready")
while p.isConnected():
    assert (p.readUserDebugParameter(drag), p.readUserDebugParameter(button)) == (2.5, 0)
    p.stepSimulation()
    time.sleep(1 / 240)
"""
FINAL = """
for _ in range(100):
    p.stepSimulation()
print([x.hex() for joint in range(3) for x in p.getJointState(body, joint)[:2]])
"""
REAL_TIME_SCRIPT = """
from pybullet import *
import time
connect(GUI)
cube = createMultiBody(1, createCollisionShape(GEOM_BOX, halfExtents=[0.1, 0.1, 0.1]))
setGravity(0, 0, -10)
setRealTimeSimulation(1)
held = createConstraint(cube, -1, -1, -1, JOINT_FIXED, [0, 0, 0], [0, 0, 0], [0, 0, 0])
height = 0
while 1:
    height += 0.01
    time.sleep(0.05)
    changeConstraint(held, [0, 0, height], maxForce=1000)
"""
COPY = """
import functools, inspect, os, sys
import pybullet
from pybullet_utils import bullet_client


class Copy:
    # pybullet_envs has copies of BulletClient that look like this
    def __init__(self):
        self._client = pybullet.connect(pybullet.DIRECT)

    def __getattr__(self, name):
        attribute = getattr(pybullet, name)
        if inspect.isbuiltin(attribute):
            attribute = functools.partial(attribute, physicsClientId=self._client)
        return attribute


for client in (bullet_client.BulletClient(pybullet.DIRECT), Copy()):
    body = client.createMultiBody(1, client.createCollisionShape(client.GEOM_SPHERE))
    client.createConstraint(body, -1, -1, -1, client.JOINT_FIXED, [0] * 3, [0] * 3, [0] * 3)
    client.stepSimulation()
    assert [loop.exact for loop in client.getBridgeLoops().values()] == [True]
assert __name__ == "__main__" and sys.modules["__main__"].client is client
print(sys.argv[1:], os.path.basename(sys.argv[0]), sys.path[0] == os.path.dirname(__file__))
sys.exit(7)
"""
STUBBORN = """
import pybullet as p, threading
p.connect(p.DIRECT)
def work():
    while True:
        p.stepSimulation()
thread = threading.Thread(target=work)
thread.start()
thread.join()
while True:
    try:
        p.stepSimulation()
    except:
        pass
"""
WRONG = """
import pybullet as p
def build():
    p.createConstraint(5, 0, 6, 0, p.JOINT_FIXED, [0, 0, 0], [0, 0, 0], [0, 0, 0])
p.connect(p.DIRECT)
build()
"""


@pytest.fixture
def write(tmp_path):
    """Writes a script."""

    def make(*parts):
        path = tmp_path / "script.py"
        path.write_text("".join(parts))
        return str(path)

    return make


def python(*arguments):
    """A python process."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run(*arguments):
    """The command in a process of its own."""
    return python("-m", "bulletbridge", "run", *arguments)


def model(tmp_path):
    """Path of the four-bar's URDF."""
    return four_bar(tmp_path).parent / "four_bar.urdf"


def test_an_endless_script_with_a_window_is_compared(write, tmp_path, capfd):
    script, file = write(FOUR_BAR, WINDOW), tmp_path / "found.json"
    options = ("--headless", "--steps", "200", "--compare", "--json", str(file))
    ended = cli.run(["run", *options, script, str(model(tmp_path))])
    out, err = capfd.readouterr()
    assert ended == 0, err
    assert "ready\n" in out and "four_bar/coupler –" in out
    found = json.loads(file.read_text())
    ours, native = found["ours"], found["native"]
    assert ours["steps"] == native["steps"] == 200 and ours["ended"] and native["ended"]
    (closed,), (open_,) = ours["seen"], native["seen"]
    assert closed["exact"] and closed["gap_m"] < 1e-12
    assert not open_["exact"] and open_["gap_m"] > 1e-5
    # the start is given to four digits; Bullet jerks the loop shut, we close it before the step
    assert 0 < closed["force"] < 0.1 * open_["force"]


def test_watching_bullet_changes_nothing(write, tmp_path):
    script, urdf = write(FOUR_BAR.replace("p.GUI", "p.DIRECT"), FINAL), model(tmp_path)
    watched = run("--mode", "native", "--watch", script, urdf)
    alone = python(script, urdf)
    assert "'0x" in alone.stdout and watched.stdout.startswith(alone.stdout)


def test_real_time_simulation_follows_the_virtual_clock(write):
    done = run("--headless", "--steps", 240, "--json", "-", write(REAL_TIME_SCRIPT))
    found = json.loads(done.stdout)["ours"]
    (held,) = found["seen"]
    assert found["steps"] == 240 and found["ended"]
    assert held["limit"] == 1000 and held["gap_m"] < 0.011  # one move of the pivot at most


def test_arguments_exit_code_and_clients_are_the_scripts(write):
    done = run(write(COPY), "--json", "-x", "a b")
    assert done.stdout.splitlines()[-1] == "['--json', '-x', 'a b'] script.py True"
    assert done.returncode == 7


@pytest.mark.parametrize("source", [WRONG, "x = (\n", "raise ValueError('a\\nb')"])
def test_errors_look_as_under_python(write, source):
    script = write(source)
    done, expected = run(script), python(script)
    greeting = "pybullet build time"
    shown = [line for line in expected.stderr.splitlines() if not line.startswith(greeting)]
    assert (done.returncode, done.stderr.splitlines()) == (1, shown)


def test_a_script_that_catches_everything_ends_and_so_do_threads(write):
    done = run("--steps", 5, "--json", "-", write(STUBBORN))
    assert done.returncode == 0 and json.loads(done.stdout)["ours"]["ended"]
    assert "Ended" not in done.stderr


def test_a_native_failure_is_named(write, capfd):
    assert cli.run(["run", "--compare", write(WRONG)]) == 1
    shown = capfd.readouterr().out
    for who in ("on our solver", "natively"):
        assert f"{who} the script failed: pybullet.error: createConstraint failed." in shown


@pytest.mark.parametrize("arguments", [["nowhere.py"], ["-m", "no.where"], ["-m", "nowhere"]])
def test_a_missing_script_is_wrong_usage(arguments, capsys):
    assert cli.run(["run", *arguments]) == cli.WRONG_INPUT
    assert "there is no" in capsys.readouterr().err


def test_a_robot_in_the_place_of_a_script_is_told_as_that(tmp_path, capsys):
    (tmp_path / "robot.urdf").write_text("<robot/>")
    assert cli.run(["run", str(tmp_path / "robot.urdf")]) == cli.WRONG_INPUT
    assert "is a robot, not a Python program: `bulletbridge inspect`" in capsys.readouterr().err


def test_waiting_is_virtual(monkeypatch):
    waited = []
    monkeypatch.setattr("bulletbridge.drop_in.scripts.headless.real_sleep", waited.append)
    with headless() as clock:
        start = time.time()
        assert start == pytest.approx(EPOCH, abs=1e-3)
        time.sleep(3600)
        assert time.time() - start == pytest.approx(3600, abs=1e-3)
        while time.monotonic() < 3600.01:  # ends because looks take time
            pass
        assert time.time_ns() == pytest.approx(1e9 * (EPOCH + clock.now), abs=1e4)
        moment = datetime.datetime.now()
        assert isinstance(moment, datetime.datetime)
        assert (
            datetime.datetime(2020, 1, 1)
            < moment
            == datetime.datetime.fromtimestamp(moment.timestamp())
        )
        with pytest.raises(ValueError, match="non-negative"):
            time.sleep(-1)
    assert set(waited) == {0}  # once a sleep, which lets other threads run
    assert not isinstance(None, datetime.datetime)


def test_waiting_for_another_process_to_compile_is_real(tmp_path):
    """A virtual wait would step real-time simulation, which waits for the kernel, and so on."""
    pytest.importorskip("fcntl")
    path = tmp_path / "a" / "some.kernel"
    path.parent.mkdir()
    with claimed_elsewhere(path) as other, headless() as clock:
        released = []

        def release():
            released.append(True)
            other.stdin.close()

        threading.Timer(0.2, release).start()
        assert claim(path) and released and clock.now == 0.0
        give_up(path)


def test_real_time_goes_on_while_the_script_sleeps():
    with headless():
        client = FUNCTIONS["connect"](pybullet.GUI)
        steps = []
        session = session_of(client)
        session.step = lambda: steps.append(1)
        FUNCTIONS["setRealTimeSimulation"](1, physicsClientId=client)
        time.sleep(2)
        assert len(steps) == pytest.approx(2 * 240, abs=1 + CALL * 240)
        FUNCTIONS["disconnect"](physicsClientId=client)
        assert session not in REAL_TIME


def test_sliders_stay_where_they_start():
    with headless():
        client = FUNCTIONS["connect"](pybullet.GUI)
        add, read = FUNCTIONS["addUserDebugParameter"], FUNCTIONS["readUserDebugParameter"]
        slider = add("a", -1, 1, 0.25, physicsClientId=client)
        plain, button = add("b", physicsClientId=client), add("c", 1, 0, 7, physicsClientId=client)
        values = [read(item, physicsClientId=client) for item in (slider, plain, button)]
        assert values == [0.25, 0.0, 0.0]
        FUNCTIONS["removeUserDebugItem"](slider, physicsClientId=client)
        with pytest.raises(pybullet.error):
            read(slider, physicsClientId=client)
        FUNCTIONS["disconnect"](physicsClientId=client)


def ends(action):
    """Whether it ends the script."""
    try:
        action()
    except Ended:
        return True
    return False


def test_cleaning_up_after_the_end_may_call_once_more():
    given_up = []
    meter = Meter(3, lambda: given_up.append(1))
    assert [ends(lambda: meter.step(None)) for _ in range(3)] == [False, False, True]
    assert not ends(meter.call) and ends(meter.sleep) and ends(meter.call)
    for _ in range(PATIENCE):
        ends(meter.call)
    assert given_up


@pytest.mark.parametrize(("action", "times"), [("sleep", 1), ("call", IDLE_CALLS)])
def test_scripts_that_never_step_end(action, times):
    meter = Meter(FEWEST + 1, lambda: None)
    allowed = (FEWEST + 1) * times
    assert not any(ends(getattr(meter, action)) for _ in range(allowed))
    assert ends(getattr(meter, action))
    endless = Meter(None, lambda: None)
    assert not any(ends(getattr(endless, action)) for _ in range(allowed + 1))


@pytest.mark.parametrize(
    ("time", "text"),
    [(0.51234, "0.512 µs"), (31.04, "31 µs"), (99.97, "100 µs"), (1234.4, "1234 µs")],
)
def test_times_of_steps_are_told_without_exponents(time, text):
    assert microseconds(time) == text
