"""Couplings by polynomials: cams, fingers, knees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bulletbridge as bb
from bulletbridge.errors import LoopFileError, ModelError
from bulletbridge.models.loops_file import read_loops

LINK = """<link name="{0}"><inertial><origin xyz="0.1 0.02 -0.15"/><mass value="{1}"/>
<inertia ixx="0.02" iyy="0.03" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
ROBOT = (
    '<robot name="cam"><link name="base"/>'
    + "".join(LINK.format(f"l{k}", 1.0 + 0.5 * k) for k in range(3))
    + """<joint name="turn" type="continuous"><parent link="base"/><child link="l0"/>
<axis xyz="0 1 0"/></joint>
<joint name="slide" type="prismatic"><parent link="l0"/><child link="l1"/>
<origin xyz="0.2 0 0" rpy="0.3 0 0.2"/><axis xyz="1 0 0"/><limit lower="-9" upper="9"/></joint>
<joint name="swing" type="continuous"><parent link="l1"/><child link="l2"/>
<origin xyz="0 0 -0.3"/><axis xyz="0 1 0"/></joint></robot>"""
)
FILE = """bulletbridge: 1
urdf: cam.urdf
fixed_base: true
loops:
  - {name: cam, type: coupling, joints: {turn: [0.1, 0.3, -0.2, 0.05], slide: -1, swing: [0, 0.1]}}
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "cam.urdf").write_text(ROBOT)
    (tmp_path / "cam.loops.yaml").write_text(FILE)
    return tmp_path / "cam.loops.yaml"


def cam(turn, swing):
    """Where the slider belongs."""
    return 0.1 * turn + 0.3 * turn**2 - 0.2 * turn**3 + 0.05 * turn**4 + 0.1 * swing**2


def test_rows_are_the_derivatives_of_the_polynomial(path):
    with bb.load(path) as model:
        system, rng = model.system, np.random.default_rng(5)
        solver = system._active.solver
        for _ in range(5):
            q, v = rng.uniform(-1.0, 1.0, (2, 3))
            terms = solver.terms(q, v, 0.0)
            assert_allclose(terms.g * 1.0, cam(q[0], q[2]) - q[1], atol=1e-15)
            h = 1e-5  # central differences of a quartic: h² times the third derivative
            slopes = [
                (solver.terms(q + h * e, v, 0.0).g - solver.terms(q - h * e, v, 0.0).g) / (2 * h)
                for e in np.eye(3)
            ]
            assert_allclose(terms.J[0], np.ravel(slopes), atol=1e-9)
            ahead, behind = (solver.terms(q + s * h * v, v, 0.0).J @ v for s in (1.0, -1.0))
            assert_allclose(terms.gamma, (ahead - behind) / (2 * h), atol=1e-9)


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "verlet", "rk4", "dop853"])
def test_a_cam_is_followed_to_round_off(path, integrator):
    with bb.load(path, dt=1 / 240, integrator=integrator) as model:
        system = model.system
        system.assemble(q={"turn": 0.4, "swing": 0.2})
        start = system.evaluate(system.q, system.v).energy
        for _ in range(240):
            system.step(write=False)
            q, v = system.q, system.v
            assert abs(q[1] - cam(q[0], q[2])) < 1e-12
            slope = 0.1 + 0.6 * q[0] - 0.6 * q[0] ** 2 + 0.2 * q[0] ** 3
            assert abs(v[1] - slope * v[0] - 0.2 * q[2] * v[2]) < 1e-12 * max(1.0, abs(v).max())
        moved = 20.0  # J, of 4 kg that fall by half a metre
        if integrator in ("rk4", "dop853"):
            # error of a step dt⁵ of motions at some 10 rad/s: (10 / 240)⁴ of what moves
            assert abs(system.evaluate(system.q, system.v).energy - start) < (10 / 240) ** 4 * moved


def test_formulations_agree(path):
    with bb.load(path) as model:
        system = model.system
        system.assemble(q={"turn": 0.4, "swing": 0.2}, v={"turn": 1.5, "swing": -2.0})
        accelerations = [system.acceleration()]
        state = system.q, system.v
        for name in ("modular", "multipliers"):
            other = bb.System(system.mechanism, list(system.constraints), formulation=name)
            other.set_state(*state)
            accelerations.append(other.acceleration())
        assert_allclose(accelerations[1:], [accelerations[0]] * 2, rtol=1e-10, atol=1e-10)


def test_files_say_it_as_it_is_read(path, tmp_path):
    bb.load(path).close()
    (gear,) = read_loops(path).constraints
    assert gear.polynomial("turn") == (0.1, 0.3, -0.2, 0.05)
    assert gear.polynomial("slide") == (-1.0,)
    for wrong, said in (
        ("[]", "one to 4 factors"),
        ("[0, 0]", "not all zero"),
        ("[1, 2, 3, 4, 5]", "one to 4 factors"),
    ):
        path.write_text(FILE.replace("[0, 0.1]", wrong))
        with pytest.raises(LoopFileError, match=said):
            read_loops(path)


@pytest.mark.parametrize(
    ("higher", "said"),
    [
        ({"elbow": (1.0,)}, "no coefficient of it"),
        ({"turn": (1.0, 2.0, 3.0, 4.0)}, "fourth power at most"),
        ({"turn": (np.nan,)}, "finite numbers"),
    ],
)
def test_wrong_powers_are_named(path, higher, said):
    with bb.load(path) as model:
        system = model.system
        gear = bb.Coupling("x", {"turn": 1.0, "slide": 0.0}, higher=higher)
        with pytest.raises(ModelError, match=said):
            bb.System(system.mechanism, [gear])
