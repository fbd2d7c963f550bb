"""Systems that fall into islands: each steps by itself, and all move as one solver moves them."""

import numpy as np
import pytest

import bulletbridge as bb
from bulletbridge.constraints.motion import Motion, Sine
from bulletbridge.engine import islands
from bulletbridge.errors import StepError
from bulletbridge.mechanism.beams import FlexibleBeam
from bulletbridge.mechanism.build import Load, empty_mechanism, with_beam, with_joint


def bar(mass, length):
    """A uniform bar along x."""
    moment = mass * length**2 / 12
    return Load(mass, (length / 2, 0.0, 0.0), np.diag([1e-4, moment, moment]))


def four_bar(mechanism, k):
    """A crank-rocker k metres along y, and its loop."""
    at = (0.0, float(k), 0.0)
    mechanism = with_joint(
        mechanism, f"crank{k}", "revolute", f"c{k}", "world", at, (np.pi / 2, 0, 0), bar(1.0, 0.3)
    )
    for name, link, on, length, of in (
        ("coupler", "l", "c", 0.3, 0.8),
        ("rocker", "r", "l", 0.8, 0.7),
    ):
        mechanism = with_joint(
            mechanism, f"{name}{k}", "revolute", f"{link}{k}", f"{on}{k}", (length, 0, 0),
            load=bar(1.0, of),
        )  # fmt: skip
    pin = bb.LoopJoint(
        f"pin{k}",
        bb.JointModel.BALL,
        bb.Frame(f"r{k}", (0.7, 0, 0)),
        bb.Frame("world", (1.0, float(k), 0)),
    )
    return mechanism, pin


def several():
    """Four-bars, two of them geared, a free body, a bending pendulum, a driven rod."""
    mechanism = empty_mechanism((0.3, 0.0, -9.81))
    constraints = []
    for k in range(4):
        mechanism, pin = four_bar(mechanism, k)
        constraints.append(pin)
        if k == 1:
            mechanism = with_joint(mechanism, "base", "free", "stone", "world", load=bar(2.0, 0.5))
    mechanism = with_joint(
        mechanism, "swing", "revolute", "arm", "world", (0, 9, 0), (np.pi / 2, 0, 0), bar(0.5, 0.2)
    )
    beam = FlexibleBeam(0.8, 3.0, 0.4, modes=2)
    mechanism = with_beam(mechanism, "bend", beam, "tip", "arm", xyz=(0.2, 0, 0))
    mechanism.axes["damping"][3] = 0.1
    constraints += [
        bb.Coupling("gear", {"crank0": 1.0, "crank2": 2.0}, 3.0),
        bb.Coupling("drive", {"crank3": 1.0}, 1.0, Motion(z=Sine(0.3, 0.5))),
    ]
    return mechanism, constraints


def both(**options):
    """The same system with islands and without."""
    found = []
    for solver in ("islands", "dense"):
        mechanism, constraints = several()
        forces = {"crank1": Sine(0.4, 0.7), "rocker2": Sine(0.2, 1.1)}
        system = bb.System(mechanism, constraints, dt=2e-3, forces=forces, solver=solver, **options)
        system.assemble({"crank0": 1.0, "crank1": 0.7}, {"crank0": 1.0, "crank1": 2.0})
        system.tau[:] = np.linspace(-0.3, 0.3, mechanism.nv)
        found.append(system)
    assert found[0]._active.solver.stepper is not None and found[1]._active.solver.stepper is None
    return found


def test_what_asks_python_stage_by_stage_is_one_system():
    ends = []
    for solver in ("islands", "dense"):
        mechanism, constraints = several()
        how = {"solver": solver, "integrator": "dop853", "dt": 2e-3}
        system = bb.System(mechanism, constraints, forces={"crank1": Sine(0.4, 0.7)}, **how)
        system.assemble({"crank0": 1.0, "crank1": 0.7}, {"crank0": 1.0, "crank1": 2.0})
        assert system._active.solver.stepper is None
        system.rollout(5)
        ends.append(system.snapshot())
    np.testing.assert_array_equal(*ends)


def test_what_constraints_join_is_one_island():
    parted, _ = both()
    parts = islands.find_islands(parted.mechanism, parted._active.solver.encoded)
    assert [len(part.v) for part in parts] == [6, 3, 6, 3, 3]  # the gear joins two four-bars
    for numbers, size in (("v", parted.mechanism.nv), ("rows", parted._active.solver.encoded.nc)):
        every = np.sort(np.concatenate([getattr(part, numbers) for part in parts]))
        assert np.array_equal(every, np.arange(size))


@pytest.mark.parametrize(
    ("integrator", "options"),
    [
        ("semi_implicit_euler", {}),
        ("verlet", {"correction": "current"}),
        ("rk4", {}),
        ("rk4", {"passes": 2}),
    ],
)
def test_islands_move_as_the_whole(integrator, options):
    """To round-off, which half a second of fast motion amplifies by less than 1e5."""
    parted, whole = both(integrator=integrator, **options)
    ends = []
    for system in (parted, whole):
        recording = system.rollout(60, every=20)
        for _ in range(20):
            system.step()
        ends.append((recording.q[-1], system.q, system.v, system.t, system.status.rank))
        closed = max(gap.kept_metres for gap in system.evaluate().gaps)
        assert closed < 1e-12 or "passes" in options
    for one, other in zip(*ends, strict=True):
        assert np.abs(np.subtract(one, other)).max() < 1e-10


def test_settings_reach_the_islands():
    """Gravity, forces, a state set, a constraint connected and taken away."""
    ends = []
    for system in both():
        system.rollout(20)
        system.gravity = (0.0, 0.0, -1.6)
        system.tau[0] = 0.5
        system.set_offset(
            "gear", float(system.q[0] + 2 * system.q[system.mechanism.joint("crank2").q][0])
        )
        system.rollout(20)
        system.set_state(v=0.5 * system.v)
        link = system.connect(
            bb.Distance("rod", bb.Frame("c0", (0.1, 0, 0)), bb.Frame("c1", (0.1, 0, 0)), 0.0),
            as_is=True,
        )
        assert link.energy_lost >= 0.0
        system.rollout(20)
        system.disconnect("rod")
        system.rollout(20)
        ends.append(np.concatenate([system.q, system.v]))
    assert np.abs(ends[0] - ends[1]).max() < 1e-9


def test_a_step_that_fails_leaves_every_island():
    parted, _ = both()
    parted.rollout(5)
    before, t = (parted.q, parted.v), parted.t
    parted.tau[-1] = np.nan
    with pytest.raises(StepError, match="not finite"):
        parted.step()
    assert parted.t == t
    assert np.array_equal(parted.q, before[0]) and np.array_equal(parted.v, before[1])
    parted.tau[-1] = 0.0
    parted.step()
