"""The flexible arms: their references, free modules, and what Bullet shows of them."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_allclose

import bulletbridge as bb
from bulletbridge.bullet.worlds import link_ids
from bulletbridge.comparison.native import NoNativeTwinError, require_native_twin
from bulletbridge.errors import LoopFileError, ModelError, UnsupportedError
from bulletbridge.formulations.classics.flexible_arms import SYSTEMS
from bulletbridge.formulations.classics.flexible_trees import tree_of
from bulletbridge.models.bundled import bundled
from bulletbridge.models.loops_file import read_loops, write_loops
from bulletbridge.papers.references import reference

ROOT = Path(__file__).parents[1]
REFERENCES = reference("flexible_arms")
PROMISE = 1e-12
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
ROUNDED = 5e-11
"""Half of the last digit of angles of 100 degrees in the references."""


def started(name, **options):
    tree = tree_of(SYSTEMS[name], **options)
    system = bb.System(
        tree.mechanism, tree.constraints, forces=tree.forces, dt=2.5e-4, integrator="rk4"
    )
    system.assemble(tree.start)
    return tree, system


def seen(tree, system):
    """Angles [deg], rates, deflections of all links, and the last tip."""
    kinematics, found = system.kinematics(), []
    for root, end in tree.ends:
        a, b = kinematics.point(root), kinematics.point(end)
        angle = np.degrees(np.arctan2(a.R_W[1, 0], a.R_W[0, 0]))
        rate = (a.J_angular @ system.v)[2]
        found.append((angle, rate, (a.R_W.T @ (b.p_W - a.p_W))[1]))
    return *np.array(found).T, b.p_W[:2]


def loop_force(name, system):
    part = slice(1, 2) if SYSTEMS[name].closed == "line" else slice(0, 2)
    return system.reactions()["line" if SYSTEMS[name].closed == "line" else "tips"].force[part]


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_first_rows_are_those_of_the_reference(name):
    """The same modes, step and method in other coordinates: equal but for the digits printed."""
    tree, system = started(name)
    rows = REFERENCES[name]["rows"][:2]
    for row in rows:
        if steps := round((row["t"] - system.t) / system.dt):
            system.rollout(steps, every=steps)
        angles, rates, deflections, tip = seen(tree, system)
        turned = (angles - row["ang"] + 180.0) % 360.0 - 180.0
        assert_allclose(turned, 0.0, atol=2 * ROUNDED)
        # 13 digits of rates up to 3 rad/s; modes filtered by loops carry 1e-10 of round-off
        assert_allclose(rates, row["rate"], atol=2e-10)
        assert_allclose(deflections, row["defl"], atol=1e-12)
        assert_allclose(tip, row["tip"], atol=2e-12)
        if SYSTEMS[name].closed:
            assert_allclose(loop_force(name, system), row["lam"], atol=1e-10)
        here = system.evaluate()
        assert here.largest("metres") < PROMISE
        assert here.largest("rate_metres") < PROMISE


@pytest.mark.parametrize("name", ["3", "4", "5b", "6b"])
def test_links_as_free_modules_move_like_the_whole_tree(name):
    """They integrate the same equations; the loops take what round-off there is."""
    (tree, whole), (parts, modules) = started(name), started(name, modules=True)
    assert modules.dof == whole.dof
    for _ in range(4):
        for system in (whole, modules):
            system.rollout(500, every=500)
        here = modules.evaluate()
        assert here.largest("metres") < PROMISE
        assert here.largest("rate_metres") < PROMISE
    for a, b in zip(seen(tree, whole), seen(parts, modules), strict=True):
        assert_allclose(a, b, atol=1e-9)


def test_hinge_forces_of_modules_are_those_of_the_whole_tree():
    """From the accelerations of a tree with slides that do not move, at its own state."""
    tree, whole = started("2a")
    _, modules = started("2a", modules=True)
    for system in (whole, modules):
        system.rollout(2000, every=2000)
    cut = tree_of(SYSTEMS["2a"], slides=True).mechanism
    q, v, vdot = np.zeros(cut.nq), np.zeros(cut.nv), np.zeros(cut.nv)
    for name, joint in tree.mechanism.joints.items():
        place = cut.joint(name)
        q[place.q], v[place.v] = whole.q[joint.q], whole.v[joint.v]
        vdot[place.v] = whole.acceleration()[joint.v]
    still = bb.System(cut)
    still.set_state(q, v)
    terms = still.terms()
    needed = terms.M @ vdot + terms.h - terms.forces
    for k in (1, 2):
        slides = [cut.joint(f"{c}{k}").v.start for c in "xy"]
        force = np.linalg.solve([terms.axes[i]["v"][:2] for i in slides], needed[slides])
        assert_allclose(modules.reactions()[f"hinge{k}"].force[:2], force, atol=1e-12)


def test_segments_converge_to_the_beam():
    """Against three modes, errors of 4 and 8 springs are as one to the square of their number."""
    ends = []
    for options in ({"modes": [3]}, {"segments": 4}, {"segments": 8}):
        tree, system = started("1", **options)
        system.rollout(4000, every=4000)
        ends.append(seen(tree, system)[3])
    coarse, fine = (np.linalg.norm(end - ends[0]) for end in ends[1:])
    assert 3.0 < coarse / fine < 6.0


@pytest.mark.parametrize("name", ["2b", "3", "4", "6b"])
def test_bullet_shows_the_beams(name):
    """The model from files moves as the tree built in Python, and segments reach the tips."""
    tree, built = started(name)
    built.rollout(800, every=800)
    with bb.load(f"system_{name}", dt=2.5e-4, integrator="rk4") as model:
        system = model.system
        system.run(0.2)
        prefix = "right/" if len(SYSTEMS[name].arms) > 1 else ""
        link, reach = f"{prefix}link{len(SYSTEMS[name].arms[-1])}", SYSTEMS[name].links[-1].length
        tip = system.kinematics().point(bb.Frame(link, (reach, 0, 0)))
        assert_allclose(tip.p_W[:2], seen(tree, built)[3], atol=1e-11)
        q, v = model.bodies.state()
        assert_allclose(q, system.q, atol=1e-15)
        assert_allclose(v, system.v, atol=1e-14)
        body, index = link_ids(model.ids, model.client)[link]
        drawn = pybullet.getLinkState(
            body, index, computeForwardKinematics=1, physicsClientId=model.client
        )
        R = np.reshape(pybullet.getMatrixFromQuaternion(drawn[5]), (3, 3))
        assert_allclose(R, tip.R_W, atol=1e-9)  # Bullet has links' orientations to 7 digits
        # per link: single precision of Bullet's link frames, chords that miss 4 / n² of the
        # shortening, the cube of slopes in sines
        slope = max(1.5 * np.abs(seen(tree, built)[2] / reach).max(), 1e-9)
        missed = np.linalg.norm(drawn[4] + R @ [reach, 0, 0] - tip.p_W)
        assert missed < len(SYSTEMS[name].links) * (1e-7 + slope**2 / 2 * 4 / 8**2 + slope**3)
        with pytest.raises(UnsupportedError, match="contacts"):
            model.bodies.sticking_points()
        with pytest.raises(NoNativeTwinError, match="beam"):
            require_native_twin(model.spec)


def test_every_system_comes_as_beams_and_as_segments(tmp_path):
    for name, system in SYSTEMS.items():
        beams = read_loops(bundled()[f"system_{name}"])
        chain = read_loops(bundled()[f"system_{name}_segments"])
        assert [beam.modes for beam in beams.beams] == [x.modes for x in system.links if x.modes]
        springs = [force for force in chain.forces if force.stiffness]
        assert len(springs) == 8 * len(beams.beams)
        for spec in (beams, chain):
            write_loops(spec, tmp_path / f"{spec.name}.loops.yaml")
            assert read_loops(tmp_path / f"{spec.name}.loops.yaml") == spec


def test_a_beam_needs_its_chain(tmp_path):
    urdf = bundled()["system_1"].parent / "flexible_1.urdf"
    text = bundled()["system_1"].read_text().replace("flexible_1.urdf", str(urdf))
    path = tmp_path / "bad.loops.yaml"
    path.write_text(text.replace("link: link1,", "link: ground,"))
    with pytest.raises(LoopFileError, match="no chain"):
        read_loops(path)
    path.write_text(text.replace("modes: 2", "modes: 4"))
    with pytest.raises(LoopFileError, match="modes"):
        read_loops(path)


def test_springs_of_a_chain_may_stay_when_it_is_a_beam(tmp_path):
    chain = bundled()["system_1_segments"].read_text()
    beams = bundled()["system_1"].read_text()
    urdf = bundled()["system_1"].parent / "flexible_1.urdf"
    path = tmp_path / "both.loops.yaml"
    both = chain + beams[beams.index("beams:") :]
    path.write_text(both.replace("flexible_1.urdf", str(urdf)))
    with bb.load(path) as model, bb.load("system_1") as plain:
        model.system.rollout(5), plain.system.rollout(5)
        assert_allclose(model.system.q, plain.system.q, atol=1e-15)


def test_a_chain_has_to_have_as_many_joints_as_modes():
    from bulletbridge.mechanism.beams import FlexibleBeam

    angles = FlexibleBeam(1.0, 1.0, 1.0, 3).hinge_angles([0.5])
    assert np.linalg.matrix_rank(angles) < 3
    with bb.load("system_1") as model, pytest.raises(ModelError, match="numbers"):
        model.bodies.write(np.zeros(9), np.zeros(9))


def test_running_the_script_again_gives_the_same_files(tmp_path):
    folder = ROOT / "urdf" / "flexible"
    subprocess.run([sys.executable, folder / "make_systems.py", "--into", tmp_path], check=True)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
    del kept["make_systems.py"]
    assert written.keys() == kept.keys()
    for name, text in written.items():
        assert NUMBER.split(text) == NUMBER.split(kept[name]), name
        numbers, others = (np.array(NUMBER.findall(x), float) for x in (text, kept[name]))
        # all digits are written: other processors and versions of NumPy have other last ones
        assert_allclose(numbers, others, rtol=PROMISE, atol=0, err_msg=name)
