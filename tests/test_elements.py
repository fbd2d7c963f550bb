"""Springs, dampers, bushings and tendons: forces, energies, every integrator, islands."""

from dataclasses import replace

import numpy as np
import pytest
from _mechanisms import random_mechanism, random_state
from numpy.testing import assert_allclose
from support.planar import four_bar, planar_chain

import bulletbridge as bb
from bulletbridge.errors import ModelError
from bulletbridge.formulations.registry import FORMULATIONS
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.models.loops_file import read_loops

EPS = np.finfo(float).eps
A = bb.Frame("link2", (0.1, 0.2, -0.1), (0.3, -0.2, 0.5))
B = bb.Frame("link4", (-0.2, 0.1, 0.3), (-0.4, 0.6, 0.1))
VIA = (
    bb.Frame("link3", (0.3, 0.1, 0.2)),
    bb.Frame("link3", (-0.4, 0.2, 0.1)),
    bb.Frame("world", (0.5, -1.0, 0.7)),
    bb.Frame("link5"),
)
"""Points that a line goes through, two of them of one link."""
BALL = bb.Round(bb.Frame("link1", (0.5, 0.0, -0.4), (0.6, 0.8, -0.5)), 0.3, side=(0.6, 0.6, 0.8))
DRUM = bb.Round(bb.Frame("link5", (0.6, 0.6, 0.5), (0.8, -0.2, -0.1)), 0.3, True, (0.4, 0.6, 0.6))
RING = bb.Round(bb.Frame("link3", (0.6, -0.8, -0.5), (1.0, 0.2, -0.7)), 0.1, True, (0, 0.01, 0))
HOLE = bb.Round(bb.Frame("link3", (-0.5, 0.1, 0.1), (0.3, 0.5, -0.8)), 0.3, side=(0.1, -0.1, 0.1))
BRANCHES = (
    bb.Frame("link3"),
    bb.Pulley(2.0),
    *(bb.Frame("link4", (0.5, -1.0, 0.7)), BALL, bb.Frame("link2")),
    bb.Pulley(3.0),
    bb.Frame("link5"),
)
ROUND = {"round a ball": (BALL,), "round a cylinder": (DRUM,)}
ROUND |= {"drawn through a ring": (RING,), "drawn through a ball": (HOLE,)}
ROUND |= {"over pulleys": BRANCHES}
"""What lines go round, are drawn through, and over."""
SPRINGS = {
    "spring": bb.Spring("e", A, B, 30.0, 0.7, 0.4),
    "to the world": bb.Spring("e", bb.Frame("world", (1.0, 2.0, 0.5)), B, 30.0, 0.7),
    "rope": bb.Spring("e", A, B, 30.0, 0.7, 0.3, slack=0.3),
    "slack rope": bb.Spring("e", A, B, 30.0, 0.7, 9.0, slack=9.0),
    "through points": bb.Spring("e", A, B, 30.0, 0.7, 0.4, via=VIA),
    "slack through points": bb.Spring("e", A, B, 30.0, 0.7, 9.0, slack=9.0, via=VIA),
    "stretched through points": bb.Spring("e", A, B, 30.0, 0.7, 0.4, slack=0.1, via=VIA[1:3]),
    "torsion": bb.TorsionSpring("e", A, B, (0, 1, 1), (1, 0, 0.2), 5.0, 0.7, 0.3),
    "bushing": bb.Bushing("e", A, B, (10, 20, 30), (1, 2, 3), (4, 5, 6), (0.1, 0.2, 0.3)),
    "tendon": bb.Tendon("e", {"joint2": 1.5, "joint5": -0.7}, 30.0, 0.7, 0.2),
    "slack tendon": bb.Tendon("e", {"joint2": 1.5, "joint5": -2.0}, 30.0, 0.7, 9.0, slack=0.4),
} | {name: bb.Spring("e", A, B, 30.0, 0.7, 0.4, via=via) for name, via in ROUND.items()}


def oscillator(elements, stiffness=0.0, **options):
    """A mass of 2 kg on a slide along x of the world."""
    mechanism = with_joint(
        empty_mechanism(), "slide", "prismatic", "mass", rpy=(0, np.pi / 2, 0), load=Load(2.0)
    )
    mechanism.axes["stiffness"] = stiffness
    return bb.System(mechanism, elements, **options)


def between(**numbers):
    """A spring from 1 m behind the origin of the slide to the mass."""
    return bb.Spring("e", bb.Frame("world", (-1, 0, 0)), bb.Frame("mass"), **numbers)


@pytest.mark.parametrize("name", SPRINGS)
def test_forces_are_the_gradient_of_the_energy_and_dampers_take_power(name):
    """Central differences: h² of the third derivative, and the round-off of energies over h."""
    rng = np.random.default_rng(3)
    mechanism = random_mechanism(rng, [FREE, REVOLUTE, SPHERICAL, PRISMATIC, REVOLUTE])
    q, v = random_state(rng, mechanism)
    element = SPRINGS[name]
    system = bb.System(mechanism, [element])
    without = bb.System(mechanism)

    def potential(at):
        return system.evaluate(at).potential - without.evaluate(at).potential

    def force(v):
        return without._active.solver.terms(q, v, 0.0).h - system._active.solver.terms(q, v, 0.0).h

    h, gradient = 1e-5, np.zeros(mechanism.nv)
    for k in range(mechanism.nv):
        ends = []
        for side in (h, -h):
            moved = np.empty_like(q)
            displace(mechanism.bodies, q, side * np.eye(mechanism.nv)[k], 1.0, moved)
            ends.append(potential(moved))
        gradient[k] = (ends[0] - ends[1]) / (2 * h)
    elastic = force(np.zeros(mechanism.nv))
    assert_allclose(elastic, -gradient, atol=1e-8 * np.abs(gradient).max())

    damping = force(v) - elastic
    taken = -float(damping @ v)
    system.set_state(q, v)
    found = system.spring_forces()["e"]
    used = [element.damping] if name != "bushing" else [*element.turning_damping, *element.damping]
    assert taken == pytest.approx(float(np.array(used) @ np.atleast_1d(found.rate) ** 2), rel=1e-12)


def test_a_line_that_a_body_is_in_the_way_of_is_longer_for_it():
    """So that what else is asked of them is asked of lines that do go round something."""
    rng = np.random.default_rng(3)
    mechanism = random_mechanism(rng, [FREE, REVOLUTE, SPHERICAL, PRISMATIC, REVOLUTE])
    q, v = random_state(rng, mechanism)

    def length(via):
        system = bb.System(mechanism, [replace(SPRINGS["spring"], via=via)])
        system.set_state(q, v)
        return system.spring_forces()["e"].position

    for via in ROUND.values():
        points = tuple(point for point in via if not isinstance(point, bb.Round))
        assert length(via) > length(points) + 0.1


def test_a_rope_round_a_drum_is_its_tangents_and_an_arc():
    """Points 2 m from the axis and 3 m along it, on opposite sides; closed form."""
    mechanism = with_joint(
        empty_mechanism(), "turn", "revolute", "bob", xyz=(0, 0, 0.5), load=Load(1.0, (2, 0, 0))
    )
    drum = bb.Round(bb.Frame("world", (0, 0, 0.3)), 0.5, True)
    rope = bb.Spring("rope", bb.Frame("world", (-2, 0, -2.5)), bb.Frame("bob", (2, 0, 0)), 7.0,
                     length=1.0, via=(drum,))  # fmt: skip
    system = bb.System(mechanism, [rope])
    system.set_state([0.3])
    found = system.spring_forces()["rope"]
    plane = 2 * np.sqrt(2**2 - 0.5**2) + 0.5 * (np.pi - 0.3 - 2 * np.arccos(0.25))
    assert found.position == pytest.approx(np.hypot(plane, 3.0), rel=1e-14)
    # the pull across the axis acts at the drum's radius, and turns the bob on
    torque = 7.0 * (found.position - 1.0) * plane / found.position * 0.5
    assert float(system.terms().h[0]) == pytest.approx(-torque, rel=1e-12)


def test_a_spring_of_axes_that_do_not_meet_conserves_energy():
    """Order 4: halving the step leaves a sixteenth of the drift."""
    drifts = []
    for dt in (2e-3, 1e-3):
        mechanism = planar_chain([0.5, 0.4], [1.0, 2.0])
        undamped = [
            replace(SPRINGS["bushing"], a=bb.Frame("world", (0.1, 0.2, 0.3)), b=bb.Frame("l1"),
                    damping=(0, 0, 0), turning_damping=(0, 0, 0)),
            bb.TorsionSpring("t", bb.Frame("l0"), bb.Frame("l1"), stiffness=5.0, rest=0.3),
        ]  # fmt: skip
        system = bb.System(mechanism, undamped, dt=dt, integrator="rk4")
        system.set_state([0.3, 0.7], [1.0, -2.0])
        before = system.evaluate().energy
        system.rollout(round(1.0 / dt))
        drifts.append(abs(system.evaluate().energy - before))
    assert drifts[1] < drifts[0] / 10 < 1e-6


INTEGRATORS = ["semi_implicit_euler", "rk4", "dop853", "heun", "nystrom4", "trapezoidal"]


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("how", ["implicit", "explicit"])
def test_a_spring_along_a_slide_is_the_spring_of_its_joint(integrator, how):
    """The same force from points and from the joint: equal but for round-off, in every method."""
    springs = how if integrator == "semi_implicit_euler" else None  # others have no choice
    options = {"dt": 1 / 240, "integrator": integrator, "springs": springs}
    one = oscillator([between(stiffness=50.0, length=1.0)], **options)
    other = oscillator([], 50.0, **options)
    for system in (one, other):
        system.set_state([0.3], [-0.4])
        system.rollout(24)
    assert_allclose(one.q, other.q, atol=24 * 40 * EPS)
    assert_allclose(one.v, other.v, atol=24 * 400 * EPS)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("how", ["implicit", "explicit"])
def test_a_tendon_of_one_joint_is_the_spring_of_that_joint(integrator, how):
    """Stiffness c² k at rest / c, in every method; and beyond its slack as a stretched one."""
    springs = how if integrator == "semi_implicit_euler" else None
    options = {"dt": 1 / 240, "integrator": integrator, "springs": springs}
    found = []
    for element, stiffness in (
        (bb.Tendon("t", {"slide": -2.0}, 12.5), 0.0),
        (bb.Tendon("t", {"slide": -2.0}, 12.5, rest=3.0, slack=3.0), 0.0),
        (bb.Tendon("t", {"slide": 1.0}, 0.0, force=0.0, damping=1e-300), 50.0),
    ):
        system = oscillator([element], stiffness, **options)
        system.set_state([0.3], [-0.4])
        system.rollout(12)
        found.append([*system.q, *system.v])
    assert found[0][0] > 0.1
    assert_allclose(found[0], found[2], atol=24 * 400 * EPS)
    assert_allclose(found[1], found[2], atol=24 * 400 * EPS)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_every_formulation_takes_springs(formulation):
    """Accelerations of a sprung four-bar by each are those of the compiled projector."""
    spring = bb.Spring("s", bb.Frame("l0"), bb.Frame("l2", (0.2, 0, 0)), 40.0, 2.0, 0.1)
    found = []
    for name in ("projector", formulation):
        system = four_bar(extra=[spring], formulation=name, integrator="rk4", dt=1e-3)
        system.assemble({"j0": 1.0}, {"j0": 2.0})
        system.rollout(20)
        found.append(system.q)
    # Baumgarte's gains are no part of the equations: they act on the gaps, which are corrected
    assert_allclose(found[1], found[0], atol=1e-11)


def test_a_damped_oscillator_and_a_scripted_force_follow_their_closed_forms():
    """m x'' + c x' + k x = F sin(w t), and the work of a constant force."""
    k, c, w, m, F = 50.0, 3.0, 7.0, 2.0, 4.0
    force = bb.Sine(F, w / (2 * np.pi))
    errors = []
    for dt in (0.01, 0.005):
        element = between(stiffness=k, damping=c, length=1.0, force=force)
        system = oscillator([element], dt=dt, integrator="rk4")
        system.set_state([0.0], [0.0])
        system.rollout(round(2.0 / dt))
        particular = np.imag(F * np.exp(1j * w * system.t) / (k - m * w * w + 1j * c * w))
        start = F / (k - m * w * w + 1j * c * w)
        roots = np.roots([m, c, k])
        weights = np.linalg.solve([[1, 1], roots], [-start.imag, -(1j * w * start).imag])
        exact = particular + float(np.real(weights @ np.exp(roots * system.t)))
        errors.append(abs(system.q[0] - exact))
        assert system.spring_forces()["e"].position == pytest.approx(1.0 + system.q[0])
    assert errors[1] < errors[0] / 12 and errors[1] < 1e-8


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "dop853"])
def test_scripted_forces_are_taken_at_their_times(integrator):
    """m v = ∫ F: a force of t gives t² / (2 m); the Euler step takes it at its start."""
    element = between(force=bb.Polynomial((0.0, 1.0)))
    system = oscillator([element], dt=0.01, integrator=integrator)
    system.set_state([0.0], [0.0])
    system.rollout(50)
    late = 0.5 * 0.5 * 0.01 / 2.0 if integrator == "semi_implicit_euler" else 0.0
    assert system.v[0] == pytest.approx(0.5**2 / 4.0 - late, abs=1e-10)
    assert system.spring_forces()["e"].force == pytest.approx(0.5)


def test_the_implicit_step_follows_its_discrete_solution_with_dampers():
    """M (v₁ - v) = dt (-c v₁ - k (x + dt v₁)), at a stiffness that explicit steps cannot bear."""
    k, c, h, x, v = 1e7, 1e4, 1 / 240, 0.1, 0.0
    system = oscillator([between(stiffness=k, damping=c, length=1.0)])
    system.set_state([x], [v])
    for _ in range(100):
        v = (2.0 * v - h * k * x) / (2.0 + h * c + h * h * k)
        x += h * v
    system.rollout(100)
    assert_allclose([system.q[0], system.v[0]], [x, v], atol=1e-12)


@pytest.mark.parametrize("limits", [False, True])
def test_springs_along_free_motions_of_loop_joints(limits):
    """A revolute loop joint with a spring is the four-bar with that spring between its links."""
    end, pin = bb.Frame("l2", (0.7, 0, 0)), bb.Frame("world", (1.0, 0, 0), (-np.pi / 2, 0, 0))
    how = {"stiffness": 3.0, "damping": 0.2, "rest": 0.3, "force": bb.Sine(1.0, 2.0)}
    mechanism = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4])
    runs = []
    for turn in (bb.LoopAxis(**how, limits=(-9.0, 9.0) if limits else None), None):
        loop = bb.LoopJoint("loop", bb.JointModel.REVOLUTE, end, pin, axis=(0, 0, 1), turn=turn)
        force = how["force"]
        beside = bb.TorsionSpring("t", end, pin, stiffness=3.0, damping=0.2, rest=0.3, torque=force)
        options = {"springs": "explicit", "integrator": "semi_implicit_euler"}
        system = bb.System(mechanism, [loop] if turn else [loop, beside], **options)
        system.assemble({"j0": 1.0}, {"j0": 2.0})
        system.rollout(60)
        runs.append(system)
    assert_allclose(runs[0].q, runs[1].q, atol=1e-10 if limits else 1e-13)
    forces = runs[0].spring_forces()["loop"], runs[1].spring_forces()["t"]
    assert forces[0].force == pytest.approx(forces[1].force, abs=1e-9)


def test_springs_of_loop_joints_leave_all_integrators_open():
    joint = bb.JointModel.REVOLUTE
    end, pin = bb.Frame("l2", (0.7, 0, 0)), bb.Frame("world", (1.0, 0, 0), (-np.pi / 2, 0, 0))
    loop = bb.LoopJoint("loop", joint, end, pin, turn=bb.LoopAxis(stiffness=3.0))
    mechanism = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4])
    system = bb.System(mechanism, [loop], integrator="rk4", dt=1e-3)
    system.assemble({"j0": 1.0}, {"j0": 2.0})
    before = system.evaluate().energy
    system.rollout(300)
    assert system.evaluate().energy == pytest.approx(before, abs=1e-8)


def arms(count):
    """Pendulums of three rods each beside each other, and springs between neighbours."""
    mechanism = empty_mechanism((0, 0, -9.81))
    for k in range(count):
        on, at = "world", (0.0, 0.3 * k, 0.0)
        for n in range(3):
            link = f"l{k}{n}"
            bar = Load(1.0, (0.15, 0, 0), np.diag([1e-4, 0.01, 0.01]))
            turned = (np.pi / 2, 0, 0) if n == 0 else (0, 0, 0)
            mechanism = with_joint(mechanism, f"j{k}{n}", "revolute", link, on, at, turned, bar)
            on, at = link, (0.3, 0.0, 0.0)
    springs = [
        bb.Spring(f"s{k}", bb.Frame(f"l{k}2"), bb.Frame(f"l{k + 1}1"), 20.0, 0.5, 0.2)
        for k in range(0, count - 1, 2)
    ]
    return mechanism, [
        *springs,
        bb.Tendon("t", {"j02": 1.0, "j10": -0.5, "j11": 0.3}, 5.0, 0.1),
        bb.Spring("w", bb.Frame(f"l{count - 1}2"), bb.Frame("world"), 9.0, force=bb.Sine(3.0, 2.0)),
    ]


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "rk4"])
def test_islands_with_springs_move_as_one_solver_moves_them(integrator):
    mechanism, springs = arms(5)
    runs = []
    for solver in ("islands", "dense"):
        system = bb.System(mechanism, springs, dt=2e-3, integrator=integrator, solver=solver)
        system.set_state(np.linspace(-1, 1, 15), np.linspace(2, -1, 15))
        system._trim()
        system.rollout(100)
        runs.append(system)
    found = runs[0]._active.solver.stepper
    assert found is not None and found.count == 3 and runs[1]._active.solver.stepper is None
    assert_allclose(runs[0].q, runs[1].q, atol=1e-12)


def test_wrong_elements_are_named():
    mechanism = planar_chain([0.5, 0.4], [1.0, 2.0])
    ends = bb.Frame("l0"), bb.Frame("l1")
    cases = {
        "spring 'x': unknown link 'l9'": bb.Spring("x", bb.Frame("l9"), ends[1], 1.0),
        "spring 'x' has damping -1.0": bb.Spring("x", *ends, 1.0, -1.0),
        "spring 'x' has stiffness nan": bb.TorsionSpring("x", *ends, stiffness=np.nan),
        "spring 'x' has length -0.1": bb.Spring("x", *ends, 1.0, length=-0.1),
        "spring 'x' exerts nothing": bb.Spring("x", *ends),
        "one rigid body": bb.Spring("x", ends[0], bb.Frame("l0", (0.1, 0, 0)), 1.0),
        "has no direction": bb.TorsionSpring("x", *ends, (0, 0, 0), stiffness=1.0),
        "tendon 'x' has 0 joints": bb.Tendon("x", {}, 1.0),
        "unknown joint 'j9'": bb.Tendon("x", {"j9": 1.0}, 1.0),
        "tendon 'x' has coefficient inf of 'j0'": bb.Tendon("x", {"j0": np.inf}, 1.0),
        "spring 'x' has slack -1.0": bb.Tendon("x", {"j0": 1.0}, 1.0, slack=-1.0),
        "three numbers": bb.Bushing("x", *ends, (1.0, 2.0)),
        "two constraints are called": bb.Spring("y", *ends, 1.0),
    }
    again = bb.Spring("y", *ends, 1.0)
    for message, element in cases.items():
        with pytest.raises(ModelError, match=message.replace("(", r"\(")):
            bb.System(mechanism, [again, element])
    with pytest.raises(ModelError, match="'x' cannot come and go"):
        bb.System(mechanism).connect(bb.Spring("x", *ends, 1.0))
    with pytest.raises(ModelError, match="'x' has ends in one place"):
        system = bb.System(mechanism, [bb.Spring("x", *ends, 1.0, length=0.2)])
        system._active.full.q[:] = 0.0
        bb.System(mechanism, [replace(system.constraints[0], a=bb.Frame("l0", (0.5, 0, 0)))]).step()


def test_bullet_gets_the_same_forces_as_joint_torques():
    """At a fine step both simulators agree to their order: semi-implicit Euler, 1e-4 s."""
    from bulletbridge.comparison.native import NativeWorld

    spec = replace(read_loops_of("a05_governor"), constraints=())
    soft = tuple(replace(e, stiffness=800.0, damping=40.0) for e in spec.elements)
    push = bb.Wrench(soft[0].b, (3.0, 1.0, 20.0), (0.1, 0.2, 0.0), name="push")
    spec = replace(spec, elements=soft, wrenches=(push,))
    with bb.load(spec, dt=1e-4) as model:
        native = NativeWorld(spec, model.system.q, model.system.v, 1e-4)
        for _ in range(200):
            q, _ = native.step()
        native.close()
        model.system.rollout(200)
        assert_allclose(q, model.system.q, atol=1e-5)


def read_loops_of(name):
    """The file of a bundled model."""
    from bulletbridge.models.bundled import find

    return read_loops(find(name))
