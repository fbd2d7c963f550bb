"""Inertias that no body can have, and the nearest that one can."""

import warnings

import numpy as np
import pybullet
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning, ModelError
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

        starts = rng.normal(size=(6, 6))
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
