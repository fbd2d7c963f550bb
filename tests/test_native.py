"""The same models closed by Bullet's own constraints."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pybullet
import pytest
from scipy.spatial.transform import Rotation
from support.small_models import four_bar, geared

from bulletbridge.comparison.native import TUNED, NativeWorld, NoNativeTwinError
from bulletbridge.constraints.joints import Coupling, Distance, Frame, JointModel, LoopJoint
from bulletbridge.constraints.motion import Motion, Sine
from bulletbridge.models.load import LoadedModel, load
from bulletbridge.models.loops_file import read_loops
from bulletbridge.models.model_spec import JointForce, ModelSpec

NATIVE_MODELS = ("ball", "revolute")
SPACE = (0.3, -0.2, 0.4)


def native_of(loaded: LoadedModel, dt: float = 1 / 240, **settings: object) -> NativeWorld:
    """Bullet's twin of a loaded model, from the same start."""
    return NativeWorld(loaded.spec, loaded.system.q, loaded.system.v, dt, **settings)


def largest_gap(path: Path, dt: float, duration: float, **settings: object) -> float:
    """Largest gap [m] of Bullet's run."""
    with load(path) as loaded:
        world = native_of(loaded, dt, **settings)
        states = [world.step() for _ in range(round(duration / dt))]
        world.close()
        return max(loaded.system.evaluate(q, v, 0.0).largest("metres") for q, v in states)


@pytest.mark.parametrize(
    ("dt", "tuned", "measured"),
    [(1 / 240, False, 1.6e-4), (1 / 240, True, 4.0e-5), (1 / 1000, False, 9.1e-6)],
)
def test_gap_of_four_bar_is_what_was_measured(tmp_path, dt, tuned, measured):
    settings = {"settings": TUNED} if tuned else {}
    assert largest_gap(four_bar(tmp_path), dt, 2.0, **settings) == pytest.approx(measured, rel=0.2)


def pivot(body: int, link: int, xyz: list[float], quat: list[float], client: int):
    """World position and rotation of a frame given in a link's inertial frame, or in the world."""
    if body < 0:
        return np.array(xyz), Rotation.from_quat(quat)
    if link < 0:
        p, orientation = pybullet.getBasePositionAndOrientation(body, client)
    else:
        state = pybullet.getLinkState(body, link, 0, 1, client)
        p, orientation = state[0], state[1]
    R = Rotation.from_quat(orientation)
    return np.array(p) + R.apply(xyz), R * Rotation.from_quat(quat)


def tilted(spec: ModelSpec, kind: JointModel) -> ModelSpec:
    """The four-bar with its loop closed by frames that are turned, but coincide at the start."""
    return replace(
        spec,
        constraints=(
            LoopJoint(
                "pin",
                kind,
                Frame("coupler", (0.0, 0.0, -1.2), (-np.pi / 2, 0.0, 0.0)),
                Frame("rocker", (0.0, 0.0, -0.9), (-np.pi / 2, 0.0, 0.0)),
            ),
        ),
    )


@pytest.mark.parametrize("kind", [JointModel.BALL, JointModel.REVOLUTE])
def test_pivots_in_inertial_frames_coincide_at_the_start(tmp_path, kind):
    spec = tilted(read_loops(four_bar(tmp_path)), kind)
    with load(spec) as loaded:
        world = native_of(loaded)
        for made in world.constraint_ids:
            info = pybullet.getConstraintInfo(made, world.client)
            a, _ = pivot(info[0], info[1], info[6], info[8], world.client)
            b, _ = pivot(info[2], info[3], info[7], info[9], world.client)
            assert np.abs(a - b).max() < 1e-12
        world.close()


@pytest.mark.parametrize("kind", [JointModel.WELD, JointModel.PRISMATIC])
@pytest.mark.parametrize("swapped", [False, True])
def test_frames_in_the_world_coincide_at_the_start(tmp_path, kind, swapped):
    spec = read_loops(four_bar(tmp_path))
    with load(spec) as loaded:
        point = loaded.system.kinematics().point(Frame("coupler", SPACE, (0.1, 0.2, 0.3)))
        rpy = tuple(Rotation.from_matrix(point.R_W).as_euler("xyz"))
        ends = [Frame("coupler", SPACE, (0.1, 0.2, 0.3)), Frame("world", tuple(point.p_W), rpy)]
        a, b = reversed(ends) if swapped else ends
        held = LoopJoint("held", kind, a, b, axis=(1.0, 2.0, 3.0))
        start = loaded.system.q, loaded.system.v
        world = NativeWorld(replace(spec, constraints=(held,)), *start, 1 / 240)
        info = pybullet.getConstraintInfo(world.constraint_ids[0], world.client)
        (p_a, R_a), (p_b, R_b) = (
            pivot(info[k], info[k + 1], info[6 + k // 2], info[8 + k // 2], world.client)
            for k in (0, 2)
        )
        world.close()
    assert np.abs(p_a - p_b).max() < 1e-12
    assert (R_a.inv() * R_b).magnitude() < 1e-12


def test_gear_holds_its_offset(tmp_path):
    with load(geared(tmp_path)) as loaded:
        for settings in ({}, {"settings": TUNED}):
            world = native_of(loaded, **settings)
            for _ in range(240):
                q, v = world.step()
            world.close()
            seen = loaded.system.evaluate(q, v, 0.0)
            assert np.abs(v).max() > 0.1
            assert seen.largest("radians") < 1e-9


def test_joint_forces_act_as_ours(tmp_path):
    forces = (JointForce("left", torque=0.3), JointForce("right", 0.0, 4.0, 0.2))
    spec = replace(read_loops(geared(tmp_path)), forces=forces)
    how = {"springs": "explicit", "integrator": "semi_implicit_euler"}
    with load(spec, **how) as loaded:  # as they act between Bullet's steps
        world = native_of(loaded)
        for _ in range(240):
            loaded.system.step()
            q, v = world.step()
        world.close()
        assert np.abs(q - loaded.system.q).max() < 1e-9
        assert np.abs(v - loaded.system.v).max() < 1e-9


def test_drives_add_to_joint_forces_and_gravity_changes(tmp_path):
    """What is set on the way acts as what stands in the file, down to the order of additions."""
    spec = read_loops(four_bar(tmp_path))
    forces = (JointForce("crank", 0.2, damping=0.1),)
    given = replace(spec, forces=(JointForce("crank", 0.5, damping=0.1),), gravity=(1.0, 0.0, -2.0))
    with load(given) as loaded, load(replace(spec, forces=forces)) as other:
        expected, driven = native_of(loaded), native_of(other)
        driven.drive({"crank": 0.3}, np.array(given.gravity))
        for _ in range(50):
            expected.advance(), driven.advance()
        for a, b in zip(expected.state(), driven.state(), strict=True):
            assert np.abs(a - b).max() < 1e-12
        expected.close()
        driven.close()


def _label(constraint: LoopJoint | Distance | Coupling) -> str:
    kind = (
        constraint.model.value if isinstance(constraint, LoopJoint) else type(constraint).__name__
    )
    return f"{kind} driven" if constraint.motion else kind


FRAMES = Frame("coupler", (0.0, 0.0, -1.2)), Frame("rocker", (0.0, 0.0, -0.9))


@pytest.mark.parametrize(
    "constraint",
    [
        *(
            LoopJoint("c", kind, *FRAMES)
            for kind in JointModel
            if kind.value not in ("ball", "weld", "revolute", "prismatic")
        ),
        Distance("c", *FRAMES, 0.5),
        LoopJoint("c", JointModel.BALL, *FRAMES, motion=Motion(z=Sine(0.1, 1.0))),
        Coupling("c", {"crank": 1.0}),
        Coupling("c", {"crank": 1.0, "coupler": 1.0, "rocker": 1.0}),
    ],
    ids=_label,
)
def test_what_bullet_cannot_close_is_said(tmp_path, constraint):
    spec = replace(read_loops(four_bar(tmp_path)), constraints=(constraint,))
    with pytest.raises(NoNativeTwinError, match="'c' has no native twin"):
        NativeWorld(spec, np.zeros(3), np.zeros(3), 1 / 240)


def test_native_world_leaves_no_client_behind_when_it_fails(tmp_path):
    spec = replace(read_loops(four_bar(tmp_path)), constraints=())
    missing = replace(spec, bodies=(replace(spec.bodies[0], urdf=tmp_path / "none.urdf"),))
    before = [k for k in range(16) if pybullet.isConnected(k)]
    with pytest.raises(Exception, match=r"none\.urdf"):
        NativeWorld(missing, np.zeros(3), np.zeros(3), 1 / 240)
    assert [k for k in range(16) if pybullet.isConnected(k)] == before
