"""Energy that steps with inequalities would add by their length alone, taken back or left."""

from dataclasses import replace

import numpy as np
import pytest
from support.contact_planes import ContactPlanes
from support.planar import planar_chain

import bulletbridge as bb
from bulletbridge.errors import ModelError
from bulletbridge.inequalities.energy_budget import TOLERATED
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint

DT, SHORT, STEPS = 1 / 240, 240, 2400
SPIN = (3.0, 20.0, 4.0)  # [rad/s], about the middle axis of inertia: it turns over and over


def tumbling(**options):
    """A free brick in empty space, whose world knows contacts though there are none."""
    mechanism = with_joint(
        replace(empty_mechanism(), gravity=np.zeros(3)), "base", "free", "brick", "world",
        load=Load(1.0, inertia=(0.01, 0.02, 0.03)),
    )  # fmt: skip
    nothing = ContactPlanes(np.zeros((0, 3)), (0.0, 0.0), (0, 0, 1))
    world = {"world": nothing, "contacts": True} if "energy_budget" in options else {}
    system = bb.System(mechanism, dt=DT, integrator="semi_implicit_euler", **world, **options)
    system.set_state(v=[*SPIN, 0.0, 0.0, 0.0])
    return system


def test_without_it_a_step_that_nothing_touches_is_the_one_without_contacts():
    system, plain = tumbling(energy_budget=False), tumbling()
    first = system.evaluate().energy
    for _ in range(SHORT):
        system.step()
        plain.step()
        assert system.complementarity.taken == 0.0
    # both do the same arithmetic, up to round-off of 1e-16 a step, which tumbling amplifies
    np.testing.assert_allclose(system.v, plain.v, rtol=0, atol=1e-6 * np.linalg.norm(SPIN))
    assert system.evaluate().energy > 1.1 * first  # what the budget is for


def test_with_it_the_energy_of_tumbling_stays():
    system = tumbling(energy_budget=True)
    first, taken = system.evaluate().energy, 0.0
    kept = []
    for _ in range(STEPS):
        system.step()
        taken += system.complementarity.taken
        kept.append(system.evaluate().energy)
    assert taken > 0.0
    # K is bounded by the budget; E differs from it by dt v·c, a share of dt |w| of the energy
    assert max(kept) < (1.0 + TOLERATED + DT * np.linalg.norm(SPIN)) * first


def test_links_that_whirl_by_a_third_of_a_radian_a_step_keep_their_energy():
    """Three rods on a floating body in empty space, which came to rest after a few steps.

    Nothing acts, so that their energy is what it was. What E and K differ by is the square of a
    share of the rates that is some third where they turn as fast as that, either way.
    """
    chain = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4], floating=5.0)
    system = bb.System(replace(chain, gravity=np.zeros(3)), dt=DT, limits="always")
    rates = np.array([0.0, 82.0, 0.0, -130.0, 0.0, 45.0, -54.0, 58.0, 36.0])
    system.set_state(v=rates * 0.37 / (DT * np.abs(rates).max()))
    first, kept = system.evaluate().energy, []
    for _ in range(SHORT):
        system.step()
        kept.append(system.evaluate().energy / first)
    assert (2 / 3) ** 2 < np.mean(kept) < (4 / 3) ** 2
    assert 0.1 < min(kept)


def test_gravity_that_is_turned_round_on_the_way_takes_no_rates():
    """The energy of the old weights is no bound under others: all rates became zero."""
    chain = planar_chain([0.4, 0.9], [0.8, 1.8])
    kept, free = (
        bb.System(chain, dt=DT, limits="always", energy_budget=budget) for budget in (True, False)
    )
    for system in (kept, free):
        for _ in range(7):
            system.step()
        system.gravity = -system.gravity
        for _ in range(3):
            system.step()
    # the same arithmetic but for the order of a few sums, at rates of some rad/s
    np.testing.assert_allclose(kept.v, free.v, rtol=0, atol=1e-13)
    assert kept.complementarity.taken == 0.0
    assert np.abs(kept.v).max() > 0.1


def test_what_is_neither_on_nor_off_is_refused():
    with pytest.raises(ModelError, match="energy_budget is 'no'; give True or False"):
        bb.System(empty_mechanism(), energy_budget="no")


@pytest.mark.parametrize("drive", ["servo", "motor"])
def test_forces_work_along_the_rates_that_motors_leave(drive):
    """Nothing is taken from a slider that a force and a motor brake together, in long steps."""
    mass, damping, force, tau, v, dt = 2.0, 0.5, 3.0, 2.0, -2.0, 0.05
    mechanism = with_joint(
        empty_mechanism((0.0, 0.0, 0.0)), "slide", "prismatic", "cart", load=Load(mass)
    )
    system = bb.System(mechanism, dt=dt)
    system.set_state(v=[v])
    system.tau[:] = tau
    if drive == "servo":
        system.motors.servo("slide", damping=damping)
    else:
        system.motors.set("slide", force=force)
    while v < 0.0:
        if drive == "servo":  # a damper acts by the rate of the end
            v = (mass * v + dt * tau) / (mass + dt * damping)
        else:  # what would not stop within its force pushes with all of it
            v = min(v + dt * (tau + force) / mass, 0.0)
        system.step()
        assert system.complementarity.taken == 0.0
        assert abs(system.v[0] - v) < 1e-13  # a few roundings of rates of 2 m/s
