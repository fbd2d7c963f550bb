"""The bundled models: their loops close, their figures and inertias are what they say.

Checked with Pinocchio on the written files, apart from the package's own kernels and from the
generator's own evaluation.
"""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pinocchio as pin
import pytest
import trimesh
from numpy.testing import assert_allclose
from support.pinocchio_models import URDF, WEAK, Closed, load, numbers, pose, tensor

NAMES = sorted(path.name.removesuffix(".loops.yaml") for path in URDF.glob("*.loops.yaml"))
OWN = [name for name in NAMES if (URDF / f"{name}.urdf").exists()]
FROM_MESHES = ["five_bar", "slider_crank", "delta", "ball_chain", "gripper", "biped"]
SIDES = ("left", "right")
TOUCHED = {("gripper", f"{side}_finger") for side in SIDES} | {("biped", "pelvis")}
TOUCHED |= {("biped", f"{side}_{part}") for side in SIDES for part in ("thigh", "shin", "foot")}
ROUNDED = {"minitaur": 1.1e-5}
"""Gap [m] that rounded angles leave in redundant directions."""


def split_gap(closed: Closed, q: np.ndarray) -> tuple[float, float]:
    """Largest residual in independent directions, and in all."""
    g, J = closed.rows(q)
    U, s, _ = np.linalg.svd(J)
    kept = U[:, : int(np.count_nonzero(s > WEAK * s[0]))].T @ g
    return float(np.abs(kept).max()), float(np.abs(g).max())


@pytest.mark.parametrize("name", NAMES)
def test_starts_closed(name):
    kept, full = split_gap(closed := load(name), closed.q)
    if name in ROUNDED:
        # what counts as independent turns with the pose by the rounding, 5e-5 rad times 1e-5 m
        assert kept < 1e-9 and full < ROUNDED[name]
    else:
        # numbers end at 1e-12: half of that in two dozen of them at most, with levers of this size
        assert full < 24 * 0.5e-12 * max(1.0, float(np.abs(closed.q).max()))


@pytest.mark.parametrize("name", NAMES)
def test_closes_from_a_perturbed_start(name, rng):
    closed = load(name)
    disturbed = pin.integrate(closed.model, closed.q, rng.normal(0, 0.02, closed.model.nv))
    kept, full = split_gap(closed, closed.closed_near(disturbed))
    assert full < ROUNDED.get(name, 1e-12)
    assert kept < (1e-8 if name in ROUNDED else 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_table_says_what_the_model_is(name, rng):
    closed = load(name)
    row = next(r for r in (URDF / "README.md").read_text().splitlines() if f"| `{name}` |" in r)
    bodies, joints, loops, rows, rank, mobility = (int(x) for x in row.split("|")[2:8])
    assert closed.model.njoints - 1 == bodies
    assert closed.model.nv == joints
    assert len(closed.content["loops"]) == loops
    assert len(closed.rows(closed.q)[0]) == rows
    assert joints - rank == mobility
    found = closed.rank(closed.q)
    for _ in range(3):
        other = pin.integrate(closed.model, closed.q, rng.normal(0, 0.02, joints))
        found = max(found, closed.rank(closed.closed_near(other)))
    assert found == rank


@pytest.mark.parametrize("name", OWN)
def test_inertias_are_possible(name):
    for link in ElementTree.parse(URDF / f"{name}.urdf").getroot().findall("link"):
        moments = np.linalg.eigvalsh(tensor(link))
        assert moments[0] > 0
        assert moments[0] + moments[1] >= moments[2] * (1 - 1e-12)
        assert float(link.find("inertial/mass").get("value")) > 0
        assert link.find("visual") is not None
        assert (link.find("collision") is not None) == ((name, link.get("name")) in TOUCHED)


@pytest.mark.parametrize("name", FROM_MESHES)
def test_inertias_are_those_of_the_meshes(name):
    root = ElementTree.parse(URDF / f"{name}.urdf").getroot()
    for link in root.findall("link")[1:]:
        meshes = []
        for visual in link.findall("visual"):
            file = URDF / visual.find("geometry/mesh").get("filename")
            mesh = trimesh.load(file, process=False)
            assert mesh.is_watertight
            meshes.append(mesh.apply_transform(pose(visual.find("origin")).homogeneous))
        whole = trimesh.util.concatenate(meshes)
        mass = float(link.find("inertial/mass").get("value"))
        whole.density = mass / whole.volume
        assert_allclose(numbers(link.find("inertial/origin"), "xyz"), whole.center_mass, atol=1e-9)
        assert_allclose(tensor(link), whole.moment_inertia, rtol=1e-7, atol=1e-12)


def test_meshes_are_small_and_used():
    used = set()
    for name in OWN:
        for mesh in ElementTree.parse(URDF / f"{name}.urdf").getroot().iter("mesh"):
            used.add(URDF / mesh.get("filename"))
    assert used == set((URDF / "meshes").iterdir())
    assert max(file.stat().st_size for file in used) < 100_000


def test_generator_repeats_every_file(tmp_path):
    """Byte for byte on any processor: it writes no digits that round-off reaches, or refuses to."""
    subprocess.run([sys.executable, URDF / "make_models.py", "--into", tmp_path], check=True)
    for written in tmp_path.rglob("*.*"):
        assert written.read_bytes() == (URDF / written.relative_to(tmp_path)).read_bytes(), written


def test_bullet_loads_without_a_warning():
    script = (
        "import pybullet as p, sys\n"
        "p.connect(p.DIRECT)\n"
        "for f in sys.argv[1:]: p.loadURDF(f, flags=p.URDF_USE_INERTIA_FROM_FILE)\n"
    )
    files = [URDF / f"{name}.urdf" for name in OWN]
    done = subprocess.run(
        [sys.executable, "-c", script, *files], capture_output=True, text=True, check=True
    )
    assert "arning" not in done.stdout + done.stderr, done.stdout


def test_parallelogram_is_a_pendulum_with_the_stated_inertia():
    closed = load("parallelogram")
    assert 2 * closed.kinetic(np.array([1.0, -1, 1])) == pytest.approx(
        (2 / 3 + 2) * 0.25, rel=1e-14
    )


def test_triple_slider_crank_starts_with_the_energy_of_its_source():
    closed = load("triple_slider_crank")
    assert closed.kinetic(closed.start_rates()) == pytest.approx(272, rel=1e-14)


def test_stewart_starts_with_the_energy_of_the_benchmark():
    closed = load("stewart")
    assert closed.kinetic(closed.start_rates()) == pytest.approx(156.89684591604077, rel=1e-12)


def test_bricard_falls_with_the_acceleration_of_the_benchmark():
    closed = load("bricard")
    free = np.linalg.svd(closed.rows(closed.q)[1])[2][-1]
    M = pin.crba(closed.model, closed.data, closed.q)
    M = np.triu(M) + np.triu(M, 1).T
    weight = pin.computeGeneralizedGravity(closed.model, closed.data, closed.q)
    expected = 1.95808383233533 * np.array([1, -1, 1, -1, 1])
    assert_allclose(-free * (free @ weight) / (free @ M @ free), expected, rtol=1e-12)


def test_space_arm_is_its_table_of_parameters():
    sys.path.insert(0, str(URDF))
    from generator import arms

    closed = load("space_arm")
    pin.forwardKinematics(closed.model, closed.data, closed.q)
    X = pin.SE3(np.eye(3), np.array(arms.SHOULDER))
    for k, angle in enumerate(np.radians(arms.START)):
        turn = pin.SE3(pin.utils.rotate("z", angle), np.array([0, 0, arms.OFFSETS[k]]))
        twist = pin.utils.rotate("x", np.radians(arms.TWISTS[k]))
        X = X * turn * pin.SE3(twist, np.array([arms.LENGTHS[k], 0, 0]))
        joint = closed.model.getJointId(f"joint_{k + 1}")
        found = closed.data.oMi[joint].act(closed.model.inertias[joint])
        given = pin.Inertia(
            arms.MASSES[k], np.array(arms.CENTRES[k], float), np.diag(arms.MOMENTS[k])
        )
        assert_allclose(found.matrix(), X.act(given).matrix(), rtol=1e-11, atol=1e-9)
    assert_allclose(X.translation, arms.TIP, atol=1e-12)
