"""Stages in link coordinates: orders, prescribed motions, error control."""

import numpy as np
import pytest
from hypothesis import given
from support.planar import windows
from test_links import both, decidedly_alike, ladder, row, several_loops

import bulletbridge as bb
from bulletbridge.constraints.motion import Motion, Sine

FIXED = {
    "verlet": {"integrator": "verlet"},
    "rk4": {"integrator": "rk4"},
    "dop853": {"integrator": "dop853", "rtol": None},
}
fixed_steps = pytest.mark.parametrize("options", FIXED.values(), ids=FIXED)


@pytest.mark.filterwarnings("ignore:a damper between two links is strong")
@fixed_steps
@given(several_loops)
def test_random_mechanisms_move_as_in_joint_coordinates(options, case):
    decidedly_alike(case, **options)


def driven_ladder(**options) -> bb.System:
    """Three four-bars on top of each other; one pin and one torque are functions of time."""
    mechanism, joints = ladder(3)
    joints[1] = bb.LoopJoint(
        "pin1", joints[1].model, joints[1].a, joints[1].b,
        motion=Motion(x=Sine(0.05, 2.0, 0.3)),
    )  # fmt: skip
    system = bb.System(mechanism, joints, forces={"left0": Sine(5.0, 1.5, 0.2)}, **options)
    system.assemble({"left0": 0.3})
    return system


def alone(system: bb.System, monkeypatch) -> None:
    """Have every step fail that link coordinates leave to others."""
    monkeypatch.setattr(system._active.solver, "run_whole", None)


@pytest.mark.parametrize(
    ("name", "order", "steps"),
    [("verlet", 2, (40, 80, 160)), ("rk4", 4, (40, 80, 160)), ("dop853", 8, (8, 12, 16))],
)
def test_correction_and_filter_keep_the_order(monkeypatch, name, order, steps):
    """What is prescribed is asked for at the times of the stages; 0.4 s."""
    ends = []
    for n in (*steps, 200 if name == "dop853" else 1000):
        one, _ = both(lambda n=n, **way: driven_ladder(dt=0.4 / n, **way, **FIXED[name]))
        alone(one, monkeypatch)
        one.rollout(n)
        ends.append(np.concatenate([one.q, one.v]))
    errors = [np.abs(end - ends[-1]).max() for end in ends[:-1]]
    slope = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.5)


@fixed_steps
def test_every_step_ends_closed_and_as_in_joint_coordinates(monkeypatch, options):
    one, other = both(lambda **way: driven_ladder(dt=2e-3, **way, **options))
    alone(one, monkeypatch)
    for _ in range(50):
        one.step()
        other.step()
        seen = one.evaluate()
        assert max(gap.metres for gap in seen.gaps) < 1e-12
        assert seen.largest("rate_metres") < 1e-12
    np.testing.assert_allclose(one.q, other.q, atol=1e-11)
    np.testing.assert_allclose(one.v, other.v, atol=1e-10)


@fixed_steps
@pytest.mark.parametrize("make", [row, ladder])
def test_energy_of_many_loops(make, options):
    """As in joint coordinates, over half a second; some is lost to the order of the method."""
    mechanism, joints = make(8)

    def system(solver):
        found = bb.System(mechanism, joints, dt=1e-3, solver=solver, **options)
        found.assemble({"rod0": 0.9} if make is row else {"left0": 0.3, "left3": -0.5})
        return found

    one, other = both(system)
    recordings = [s.rollout(500, every=50) for s in (one, other)]
    np.testing.assert_allclose(recordings[0].q, recordings[1].q, atol=1e-9)
    energies = [s.evaluate().energy for s in (one, other)]
    assert abs(energies[0] - energies[1]) < 1e-8


@pytest.mark.parametrize("rtol", [1e-6, 1e-10])
def test_error_control_in_link_coordinates(monkeypatch, rtol):
    """Sub-steps are those of joint coordinates, up to what round-off does to the estimate."""
    options = {"integrator": "dop853", "rtol": rtol, "atol": 0.1 * rtol, "dt": 0.1}
    one, other = both(lambda **way: driven_ladder(**way, **options))
    alone(one, monkeypatch)
    for _ in range(5):
        one.step()
        other.step()
        assert one.status.sub_steps == other.status.sub_steps
        assert one.status.rejected == other.status.rejected
        assert one.evaluate().largest("metres") < 1e-12
    np.testing.assert_allclose(one.q, other.q, atol=rtol)


@pytest.mark.parametrize(
    "options", [FIXED["rk4"], FIXED["dop853"], {"integrator": "dop853", "rtol": 1e-8}]
)
@pytest.mark.parametrize("count", [1, 2])
def test_singular_passages(monkeypatch, count, options):
    """Two passages in two seconds: on the branch, and energy as exact as in joint coordinates."""
    one, _ = both(lambda **way: windows(count, dt=1 / 240, **way, **options))
    alone(one, monkeypatch)
    start = one.evaluate().energy
    for _ in range(48):
        one.rollout(10)
        seen = one.evaluate()
        assert seen.largest("metres") < 1e-12 and seen.largest("rate_metres") < 1e-12
        cranks = one.q[::2]
        np.testing.assert_allclose(np.cos(cranks - cranks[0]), 1.0, atol=1e-12)
    assert abs(one.evaluate().energy - start) < 1e-6 * seen.kinetic
