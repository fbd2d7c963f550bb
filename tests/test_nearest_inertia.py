"""Inertias that no body can have, and the nearest that one can."""

import warnings
from pathlib import Path

import numpy as np
import pybullet
import pybullet_data
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning, ModelError
from bulletbridge.models.formats.convert import convert
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.nearest_inertia import LEAST, nearest_inertia

ROBOT = """<robot name="arm"><link name="world"/>
<link name="upper"><inertial><origin xyz="0.2 0 0" rpy="0.3 0.2 0.1"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.05" izz="0.09" ixy="0.002" ixz="0" iyz="0.001"/></inertial></link>
<joint name="shoulder" type="continuous"><parent link="world"/><child link="upper"/>
<axis xyz="0 1 0"/></joint></robot>"""


def seconds(J):
    """Second moments of a tensor: positive for every body."""
    return 0.5 * np.trace(J) - np.linalg.eigvalsh(J)


def test_the_nearest_possible_tensor_is_what_a_search_finds():
    rng = np.random.default_rng(3)
    for _ in range(10):
        axes = Rotation.random(random_state=rng).as_matrix()
        J = axes @ np.diag(rng.uniform(-0.3, 1.0, 3)) @ axes.T
        found = nearest_inertia(J)
        if seconds(J).min() >= 0.0:
            assert found is J
            continue
        least = LEAST * np.abs(np.linalg.eigvalsh(J)).max()
        assert seconds(found).min() >= least * (1.0 - 1e-6)

        def distance(x, J=J, least=least):  # any positive second moments, not only along J's axes
            root = np.zeros((3, 3))
            root[np.tril_indices(3)] = x
            second = root @ root.T + least * np.eye(3)
            return np.sum((np.trace(second) * np.eye(3) - second - J) ** 2)

        starts = rng.normal(size=(3, 6))
        best = min(minimize(distance, x, tol=1e-14).fun for x in starts)
        ours = np.sum((found - J) ** 2)
        assert ours <= best + 1e-9  # what BFGS leaves with these tolerances


def test_impossible_inertias_are_errors_unless_they_are_repaired(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ROBOT)
    with pytest.raises(ModelError, match="repair_inertia=True"):
        bb.load(path)
    with (
        pytest.warns(BulletBridgeWarning, match=r"link 'upper': no body can have .* % away"),
        bb.load(path, repair_inertia=True) as loaded,
    ):
        R = Rotation.from_euler("xyz", [0.3, 0.2, 0.1]).as_matrix()
        J = np.array([[0.01, 0.002, 0.0], [0.002, 0.05, 0.001], [0.0, 0.001, 0.09]])
        expected = 1.0 * 0.2**2 + (R @ nearest_inertia(J) @ R.T)[1, 1]
        # Bullet finds principal axes to 1e-6
        assert loaded.system.terms().M[0, 0] == pytest.approx(expected, rel=1e-6)
    assert "upper" in read_model(path, repair_inertia=True).notes[0]


ROUNDED = """<robot name="finger"><link name="base"/><link name="tip"><inertial><mass value="0.05"/>
<inertia ixx="1e-05" iyy="2.0e-05" izz="{}" ixy="-0.0" ixz="0" iyz="0"/></inertial></link>
<joint name="pin" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/>
</joint></robot>"""


def test_inertias_that_rounding_made_impossible_are_those_that_were_rounded(tmp_path):
    """A third of a unit in the last digit of each moment is within rounding, a whole one is not."""
    path = tmp_path / "finger.urdf"
    path.write_text(ROUNDED.format("3.1e-05"))
    with (
        pytest.warns(BulletBridgeWarning, match="'tip': .* and the same in the file's digits"),
        bb.load(path, "new", fixed_base=True) as loaded,
    ):
        M = float(loaded.system.terms().M[0, 0])
        assert abs(M - 2.0e-5) <= 0.5e-6 and M != 2.0e-5
    path.write_text(ROUNDED.format("3.3e-05"))
    with pytest.raises(ModelError, match="repair_inertia=True"):
        bb.load(path, "new", fixed_base=True)


FRAME = """<robot name="dog"><link name="base"><inertial><mass value="0.001"/>
<inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="1e-6" ixz="1e-6" iyz="1e-6"/></inertial></link>
<link name="trunk"><inertial><origin xyz="0.1 0 0"/><mass value="5"/>
<inertia ixx="{0}" iyy="{1}" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="fixed" type="fixed"><parent link="base"/><child link="trunk"/>
<origin rpy="0.3 -0.2 0.5"/></joint></robot>"""


def test_a_frame_fixed_to_a_body_may_have_any_tensor(tmp_path):
    """Rigidly joined links have one inertia, the sum of theirs, which may be possible."""
    path = tmp_path / "dog.urdf"
    path.write_text(FRAME.format(0.08, 0.05))
    model = bb.load(path, fixed_base=False)
    system = model.system
    M = system._active.solver.terms(system.q, system.v, 0.0).M
    R = Rotation.from_euler("xyz", [0.3, -0.2, 0.5]).as_matrix()
    arm = R @ [0.1, 0.0, 0.0]  # of the trunk's centre from the base
    own = R @ np.diag([0.08, 0.05, 0.1]) @ R.T + 1e-6 * np.ones((3, 3))
    about_base = own + 5.0 * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    model.close()
    # round-off of poses that pass through Euler angles, of moments of 0.15
    assert np.abs(M[:3, :3] - about_base).max() < 1e-14
    convert(path, tmp_path / "written", "mjcf", fixed_base=False)  # MuJoCo refuses the frame's
    with bb.load(tmp_path / "written.xml") as written:
        assert np.abs(written.system.terms().M[:3, :3] - about_base).max() < 1e-14
    path.write_text(FRAME.format(0.2, 0.05))  # a trunk that nobody can build, with the frame or not
    with pytest.raises(ModelError, match="inertia of link 'base' zero"):
        bb.load(path, fixed_base=False)


def test_loaded_bodies_are_repaired_in_the_axes_that_bullet_has(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ROBOT)
    client = pybullet.connect(pybullet.DIRECT)
    flags = pybullet.URDF_USE_INERTIA_FROM_FILE
    body = pybullet.loadURDF(str(path), flags=flags, physicsClientId=client)
    try:
        with pytest.raises(ModelError, match="repair_inertia=True"):
            bb.attach(body, client=client)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            system = bb.attach(body, client=client, repair_inertia=True)
        assert "in Bullet's axes: no body can have" in str(caught[0].message)
        moments = np.array(pybullet.getDynamicsInfo(body, 0, physicsClientId=client)[2])
        assert seconds(np.diag(moments)).min() > 0.0
        before = system.evaluate()
        system.run(0.5)
        after = system.evaluate()
        assert after.kinetic + after.potential == pytest.approx(
            before.kinetic + before.potential,
            abs=1e-3,  # Verlet, 1/240 s: (dt w)² of 2 J
        )
    finally:
        pybullet.disconnect(client)


def test_a_line_gets_a_thickness_and_a_plate_keeps_its_inertia():
    axes = Rotation.from_euler("xyz", [0.4, -0.7, 1.1]).as_matrix()
    line = axes @ np.diag([1.0, 1.0, 0.0]) @ axes.T
    # two second moments at LEAST, the third as much less: of (1, 1, 0) only the zero has to go
    expected = axes @ np.diag([1.0, 1.0, 2.0 * LEAST]) @ axes.T
    np.testing.assert_allclose(nearest_inertia(line), expected, atol=1e-15)
    for moments in ([1.0, 2.0, 3.0], [1.0, 1.0, 1e-9], [0.0, 0.0, 0.0]):  # plate, thread, point
        kept = np.diag(moments)
        assert nearest_inertia(kept) is kept


@pytest.mark.filterwarnings("ignore:.*Bullet does not use the inertia of .*000.urdf")
def test_bullets_own_blobs_without_thickness_are_repaired():
    """They scale their inertia by three, as their files say and Bullet does."""
    blob = Path(pybullet_data.getDataPath()) / "random_urdfs" / "000" / "000.urdf"
    with pytest.raises(ModelError, match=r"moves no inertia.*repair_inertia=True"):
        bb.load(blob, fixed_base=False)
    with (  # 1 kg m² for a tenth of a kilogram of 15 mm is odd besides
        pytest.warns(BulletBridgeWarning, match=r"'random_obj_000' \(.*in other units"),
        pytest.warns(BulletBridgeWarning, match="link 'random_obj_000': only a line has"),
    ):
        loaded = bb.load(blob, fixed_base=False, repair_inertia=True)
    with loaded:
        system = loaded.system
        J = system.terms().M[:3, :3]
        np.testing.assert_allclose(J, 3.0 * np.diag([1.0, 1.0, 2.0 * LEAST]), rtol=1e-6, atol=1e-9)
        before, spin = system.q, np.array([0.3, 0.2, 5.0])
        system.set_state(before, np.concatenate([spin, np.zeros(3)]), 0.0)
        system.run(0.5)
        assert np.all(np.isfinite(system.q))
    (note,) = read_model(blob, fixed_base=False, repair_inertia=True).notes
    assert "[1 1 2e-05 0 0 0]" in note
    client = pybullet.connect(pybullet.DIRECT)
    try:
        flags = pybullet.URDF_USE_INERTIA_FROM_FILE
        body = pybullet.loadURDF(str(blob), flags=flags, physicsClientId=client)
        with pytest.warns(BulletBridgeWarning, match="in Bullet's axes: only a line has"):
            bb.attach(body, client=client, repair_inertia=True)
        moments = pybullet.getDynamicsInfo(body, -1, physicsClientId=client)[2]
        np.testing.assert_allclose(moments, [3.0, 3.0, 6.0 * LEAST], rtol=1e-12)
    finally:
        pybullet.disconnect(client)
