"""Loops drawn side by side: refused, or moved together where no joint can, on request."""

import warnings
from dataclasses import replace

import numpy as np
import pybullet
import pytest

import bulletbridge as bb
from bulletbridge.errors import AssemblyError, StepError
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.meeting_frames import with_meeting_frames


def moved(spec, way, end):
    """A model whose first loop has a frame off by a way [m]; frame b is that on the link named."""
    loop, *others = spec.constraints
    if loop.b.link != end:
        loop = replace(loop, a=loop.b, b=loop.a)
    off = tuple(x + d for x, d in zip(loop.b.xyz, way, strict=True))
    return replace(spec, constraints=(replace(loop, b=replace(loop.b, xyz=off)), *others))


@pytest.mark.parametrize("end", ["ground", "rocker"])
def test_a_frame_off_along_the_pins_of_a_linkage_is_moved_back(end):
    """Pins of the four-bar are along y: what is off by 5 mm there and 1 mm in the plane is moved
    by the 5 mm alone, in the axes of its link, which turn with the rocker about y."""
    spec = read_model("four_bar")
    wrong = moved(spec, (1e-3, 5e-3, 0.0), end)
    with pytest.raises(AssemblyError, match="repair_frames=True"), bb.load(wrong, "new"):
        pass
    right = with_meeting_frames(wrong)
    expected = moved(spec, (1e-3, 0.0, 0.0), end).constraints[0].b
    assert right.constraints[0].b.xyz == pytest.approx(expected.xyz, abs=1e-12)
    assert "(0 -0.005 0) m" in right.notes[-1]
    with bb.load(right, "new") as model:
        model.system.run(0.1)
        assert model.system.evaluate().largest("metres") < 1e-12


def test_frames_that_joints_bring_together_stay():
    spec = read_model("stewart")
    wrong = moved(spec, (1e-3, -2e-3, 1e-3), spec.constraints[0].b.link)
    assert with_meeting_frames(wrong) == wrong


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_the_drop_in_lets_pivots_meet_that_lie_side_by_side(mode):
    """A four-bar whose pin is off by 5 mm along it moves as one whose pin is not, and says so."""
    flags, found = pybullet.URDF_USE_INERTIA_FROM_FILE, []
    for off in (0.0, 5e-3):
        client = bb.BulletClient(pybullet.DIRECT, mode=mode)
        client.setGravity(0, 0, -9.81)
        urdf = f"{bb.models_folder()}/four_bar.urdf"
        body = client.loadURDF(urdf, useFixedBase=True, flags=flags)
        joints = range(client.getNumJoints(body))
        links = {client.getJointInfo(body, k)[12].decode(): k for k in joints}
        com = client.getDynamicsInfo(body, links["rocker"])[3]
        tip = np.subtract((0.7, off, 0.0), com).tolist()
        client.createConstraint(
            body, links["rocker"], -1, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], tip, [1, 0, 0]
        )
        for k in joints:
            client.setJointMotorControl2(body, k, pybullet.VELOCITY_CONTROL, force=0)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(20):
                client.stepSimulation()
        assert [str(each.message) for each in said if "0.005 m" in str(each.message)] == [
            "frames are apart where no joint brings them together: constraint 1 by 0.005 m; there"
            " Bullet would pull in vain, and loops are closed as if they met"
        ] * bool(off)
        found.append([client.getJointState(body, k)[:2] for k in joints])
        client.disconnect()
    # filter mode has Bullet's step as predictor, which the vain pull disturbs by its erp
    assert np.abs(np.subtract(*found)).max() < (1e-3 if mode == "filter" else 1e-12)


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_pivot_that_is_moved_out_of_reach_is_told(mode):
    """A four-bar's pin, moved along itself by a fifth of a millimetre, where nothing can follow."""
    client = bb.BulletClient(pybullet.DIRECT, mode=mode)
    urdf, flags = f"{bb.models_folder()}/four_bar.urdf", pybullet.URDF_USE_INERTIA_FROM_FILE
    body = client.loadURDF(urdf, useFixedBase=True, flags=flags)
    joints = range(client.getNumJoints(body))
    rocker = next(k for k in joints if client.getJointInfo(body, k)[12] == b"rocker")
    tip = np.subtract((0.7, 0.0, 0.0), client.getDynamicsInfo(body, rocker)[3]).tolist()
    pin = client.createConstraint(
        body, rocker, -1, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], tip, [1, 0, 0]
    )
    client.stepSimulation()
    client.changeConstraint(pin, [1, 2e-4, 0])
    with pytest.warns(bb.errors.BulletBridgeWarning, match=r"stay 0\.0002 m apart"):
        client.stepSimulation()
    client.stepSimulation()  # once is enough
    if mode == "exact":
        kind, zero = pybullet.JOINT_POINT2POINT, [0, 0, 0]
        client.createConstraint(body, rocker, -1, -1, kind, zero, zero, [9, 0, 0])
        with pytest.raises(AssemblyError, match="^exact mode of body .* cannot close.* maxForce"):
            client.stepSimulation()
    client.disconnect()


@pytest.mark.parametrize("mode", ["exact", "filter"])
def test_a_turn_that_nothing_follows_is_told_in_radians(connect, mode):
    """Two hinges on one axis, that of one turned aside by 0.2 mrad: all points still meet."""
    client = connect()
    shape = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
    body = client.createMultiBody(1.0, shape, -1, [0.2, 0, 0.5])
    axis, kind = [0, 0, 1], pybullet.JOINT_REVOLUTE
    ends = axis, [-0.2, 0, 0], [0, 0, 0.5]
    _, hinge = (client.createConstraint(body, -1, -1, -1, kind, *ends) for _ in range(2))
    client.setBridgeMode(mode)
    client.stepSimulation()
    client.changeConstraint(hinge, [0, 0, 0.5], [1e-4, 0, 0, 1])
    with pytest.warns(bb.errors.BulletBridgeWarning, match=r"stay 0\.0002 rad apart"):
        client.stepSimulation()


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("mode", ["exact", "filter"])
def test_a_pin_that_another_ones_move_opens_is_told_by_its_own_number(connect, mode, which):
    """Two pins of one body to the world, 0.4 m apart: one is moved 0.2 mm away from the other."""
    client = connect()
    shape = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
    body = client.createMultiBody(1.0, shape, -1, [0, 0, 1])
    pins = [
        client.createConstraint(
            *(body, -1, -1, -1, pybullet.JOINT_POINT2POINT, [0] * 3, [x, 0, 0], [x, 0, 1])
        )
        for x in (-0.2, 0.2)
    ]
    client.setBridgeMode(mode)
    client.stepSimulation()
    ends = [-0.2, 0.2]
    ends[which] *= 1.001
    client.changeConstraint(pins[which], [ends[which], 0, 1])
    client.resetBaseVelocity(body, [0, 0, 0], [0, 0, 0])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            client.stepSimulation()
    said = [str(each.message) for each in told]
    gaps = []
    for pin, (x, end) in zip(pins, zip((-0.2, 0.2), ends, strict=True), strict=True):
        pose = client.getBasePositionAndOrientation(body)
        gaps.append(abs(client.multiplyTransforms(*pose, [x, 0, 0], [0, 0, 0, 1])[0][0] - end))
        named = [text for text in said if text.startswith(f"constraint {pin} ")]
        assert len(named) == (gaps[-1] > 1e-6)
    assert sum(gaps) == pytest.approx(2e-4, abs=1e-6)  # told in single precision


def test_pins_of_one_point_that_are_led_apart_are_named_with_the_remedy(connect):
    """Both lead a box sideways, a millimetre a step, until one jumps four: nothing follows both."""
    client = connect()
    shape = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
    body = client.createMultiBody(1.0, shape, -1, [0, 0, 1])
    kind, top = pybullet.JOINT_POINT2POINT, [0.0, 0.0, 0.1]
    pins = [
        client.createConstraint(body, -1, -1, -1, kind, [0] * 3, top, [0, 0, 1.1]) for _ in range(2)
    ]
    client.setBridgeMode("exact")
    for step in range(1, 5):
        for pin in pins:
            client.changeConstraint(pin, [0, 1e-3 * step, 1.1])
        client.stepSimulation()
    before = client.getBasePositionAndOrientation(body)
    for pin, y in zip(pins, (5e-3, 8e-3), strict=True):
        client.changeConstraint(pin, [0, y, 1.1])
    with pytest.raises(StepError) as told:
        client.stepSimulation()
    said = str(told.value)
    named = ", ".join(f"'constraint {pin}'" for pin in pins)
    assert f"{named} contradict each other" in said
    assert "maxForce" in said
    assert client.getBasePositionAndOrientation(body) == before


def test_what_a_led_pin_opens_step_by_step_is_told(connect):
    """A trolley with a load, pinned where it is, whose other pin is moved aside, then led on."""
    client = connect()
    shape = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
    still, zero, two = [0, 0, 0, 1], [0, 0, 0], 2
    body = client.createMultiBody(
        linkMasses=[1.0] * two,
        linkCollisionShapeIndices=[shape] * two,
        linkVisualShapeIndices=[-1] * two,
        linkPositions=[[0, 0, 1], zero],
        linkOrientations=[still] * two,
        linkInertialFramePositions=[zero, [0, 0, -0.3]],
        linkInertialFrameOrientations=[still] * two,
        linkParentIndices=[0, 1],
        linkJointTypes=[pybullet.JOINT_PRISMATIC, pybullet.JOINT_REVOLUTE],
        linkJointAxis=[[1, 0, 0], [0, 1, 0]],
    )
    point = body, 0, -1, -1, pybullet.JOINT_POINT2POINT, zero, zero, [0, 0, 1]
    led, held = (client.createConstraint(*point) for _ in range(two))
    client.setBridgeMode("exact")
    said, opened = list[str](), set[int]()
    for step in range(6):
        client.changeConstraint(led, [2e-5 * step, 2e-4, 1])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            client.stepSimulation()
        said += [str(each.message) for each in told]
        at = client.getJointState(body, 0)[0]
        opened |= {pin for pin, x in ((held, 0.0), (led, 2e-5 * step)) if abs(at - x) > 2e-6}
        assert opened <= {pin for pin in (held, led) if f"constraint {pin} " in " ".join(said)}
    assert opened == {held}
