"""Constraints of a running program, saved as a loops file."""

from typing import Any

import numpy as np
import pybullet
import pytest
from support.mujoco_models import terms_at

from bulletbridge.constraints.joints import Coupling, JointModel
from bulletbridge.models.attach import attach
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


MADE = """
import pybullet as p
p.connect(p.DIRECT)
p.setGravity(0, 0, -9.8)
box = p.createCollisionShape(p.GEOM_BOX, halfExtents=[0.2, 0.05, 0.03])
seen = p.createVisualShape(p.GEOM_BOX, halfExtents=[0.2, 0.05, 0.03], rgbaColor=[1, 0, 0, 1])
rod = p.createCollisionShape(p.GEOM_CAPSULE, radius=0.04, height=0.3)
turn = p.getQuaternionFromEuler
arm = p.createMultiBody(
    0.0, -1, -1, [0, 0, 1], linkMasses=[1.0, 0.5], linkCollisionShapeIndices=[box, rod],
    linkVisualShapeIndices=[seen, -1], linkPositions=[[0.1, 0, 0], [0.3, 0, 0]],
    linkOrientations=[[0, 0, 0, 1], turn([0.3, 0.2, 0.1])],
    linkInertialFramePositions=[[0.15, 0, 0], [0.1, 0.02, 0]],
    linkInertialFrameOrientations=[turn([0.1, 0.4, -0.2]), [0, 0, 0, 1]],
    linkParentIndices=[0, 1], linkJointTypes=[p.JOINT_REVOLUTE, p.JOINT_PRISMATIC],
    linkJointAxis=[[0, 1, 0], [0.6, 0, 0.8]])
p.changeDynamics(arm, 1, lateralFriction=0.3)
ball = p.createMultiBody(0.3, p.createCollisionShape(p.GEOM_SPHERE, radius=0.05))
p.setCollisionFilterPair(arm, ball, 1, -1, 0)
p.resetBasePositionAndOrientation(
    ball, p.getLinkState(arm, 1, computeForwardKinematics=1)[0], [0, 0, 0, 1])
for j in range(2):
    p.setJointMotorControl2(arm, j, p.VELOCITY_CONTROL, force=0)
p.createConstraint(arm, 1, ball, -1, p.JOINT_POINT2POINT, [0, 0, 0], [0, 0, 0], [0, 0, 0])
p.stepSimulation()
p.disconnect()
"""


@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
def test_bodies_that_no_file_describes_get_one(tmp_path, capfd):
    """Made by createMultiBody: the same equations, frames, shapes and friction come back."""
    from bulletbridge.cli import run

    script = tmp_path / "script.py"
    script.write_text(MADE)
    assert run(["run", "--save-loops", str(tmp_path / "saved"), str(script)]) == 0
    capfd.readouterr()
    spec = read_model(tmp_path / "saved.loops.yaml")
    assert not spec.notes and [body.fixed_base for body in spec.bodies] == [True, False]
    before, _ = MADE.split("p.createConstraint")
    program: dict[str, Any] = {}
    exec(before.replace("p.connect", "client = p.connect"), program)  # noqa: S102
    client = program["client"]
    try:
        mine = attach([0, 1], (), client)
        with load(spec, "new") as again:
            q, v = again.system.q, np.linspace(-1.0, 1.0, again.system.mechanism.nv)
            meant, found = (terms_at(system, q, v) for system in (mine, again.system))
            np.testing.assert_allclose(found.M, meant.M, rtol=0.0, atol=1e-12)
            np.testing.assert_allclose(found.h, meant.h, rtol=0.0, atol=1e-12)
            body = again.bodies.body_ids["body_0"]
            told = [
                pybullet.getCollisionShapeData(at, 1, world)[0][2:4]
                for at, world in ((body, again.bodies.client), (0, client))
            ]
            assert told[0] == told[1]
            assert pybullet.getDynamicsInfo(body, 1, again.bodies.client)[1] == 0.3
    finally:
        pybullet.disconnect(client)
