"""Constraints of a running program, saved as a loops file."""

import numpy as np
import pytest

from bulletbridge.constraints.joints import Coupling, JointModel
from bulletbridge.models.bundled import find
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.load import load

pytestmark = pytest.mark.usefixtures("nobody_connected")
SCRIPT = """
import pybullet as p
p.connect(p.GUI)
p.setGravity(0, 0, -3)
flags = p.URDF_USE_INERTIA_FROM_FILE
here = {folder!r}
p.setAdditionalSearchPath(here)
robot = p.loadURDF("four_bar.urdf", [0, 1, 0], p.getQuaternionFromEuler([0, 0, 0.5]),
                   useFixedBase=True, flags=flags, globalScaling=2)
other = p.loadURDF(here + "/five_bar.urdf", [0, 3, 1], flags=flags)
p.createMultiBody(1)
for body, count in ((robot, 3), (other, p.getNumJoints(other))):
    for j in range(count):
        p.setJointMotorControl2(body, j, p.VELOCITY_CONTROL, force=0)
for j, angle in enumerate((1.0, -1.0, 0.0)):
    p.resetJointState(robot, j, angle)
# the pin: rocker (1.4, 0, 0) to ground (2, 0, 0), less the centres of mass
rocker, ground = p.getDynamicsInfo(robot, 2), p.getDynamicsInfo(robot, -1)
p.createConstraint(robot, 2, robot, -1, p.JOINT_POINT2POINT, [0, 0, 0],
                   [1.4 - rocker[3][0], 0, 0], [2 - ground[3][0], -ground[3][1], -ground[3][2]])
gear = p.createConstraint(other, 0, other, 1, p.JOINT_GEAR, [0, 1, 0], [0, 0, 0], [0, 0, 0])
p.changeConstraint(gear, gearRatio=-1.5, erp=0.2, relativePositionTarget=0.1)
for _ in range(20):
    p.stepSimulation()
p.disconnect()
"""


@pytest.fixture
def saved(tmp_path, capfd):
    """A script that was run, and the model that was saved of it."""
    from bulletbridge.cli import run

    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=find("four_bar").parent.as_posix()))
    code = run(["run", "--headless", "--save-loops", str(tmp_path / "saved"), str(script)])
    assert code == 0, capfd.readouterr()
    return tmp_path / "saved.loops.yaml"


def test_a_program_is_saved_with_robots_places_frames_and_gears(saved):
    spec = read_model(saved)
    first, second = spec.bodies
    assert (first.fixed_base, first.scale, second.fixed_base) == (True, 2.0, False)
    assert first.xyz == pytest.approx((0.0, 1.0, 0.0), abs=1e-12)
    assert first.rpy == pytest.approx((0.0, 0.0, 0.5), abs=1e-12)
    assert first.urdf == find("four_bar").parent / "four_bar.urdf"
    assert spec.gravity == (0.0, 0.0, -3.0)
    pin, gear = spec.constraints
    assert pin.model is JointModel.BALL
    assert {pin.a.link, pin.b.link} == {f"{first.name}/rocker", f"{first.name}/ground"}
    ends = {pin.a.link: pin.a.xyz, pin.b.link: pin.b.xyz}
    assert ends[f"{first.name}/rocker"] == pytest.approx((1.4, 0.0, 0.0), abs=1e-12)
    assert ends[f"{first.name}/ground"] == pytest.approx((2.0, 0.0, 0.0), abs=1e-12)
    assert isinstance(gear, Coupling) and gear.offset == 0.1
    assert list(gear.coefficients.values()) == [1.0, -1.5]
    with load(spec) as loaded:
        gaps = loaded.system.evaluate().gaps
        assert max(gap.metres for gap in gaps) < 1e-12
        # it stands where the program had it after its first step: nothing had to move to close
        start = np.array(list(spec.start_guess.values()))
        names = list(spec.start_guess)
        q = [loaded.system.q[loaded.system.mechanism.joint(n).q.start] for n in names]
        np.testing.assert_allclose(q, start, atol=1e-11)


def test_a_program_without_constraints_saves_nothing(tmp_path, capfd):
    from bulletbridge.cli import run

    script = tmp_path / "script.py"
    steps = ("import pybullet as p", "p.connect(p.DIRECT)", "p.stepSimulation()", "p.disconnect()")
    script.write_text("\n".join(steps))
    assert run(["run", "--save-loops", str(tmp_path / "saved"), str(script)]) == 0
    assert "is not written: no step had a constraint" in capfd.readouterr().err
    assert run(["run", "--compare", "--save-loops", "x", str(script)]) == 2
