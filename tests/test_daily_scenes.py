"""What people do every day with constraints, in filter and exact mode: what a person expects."""

import pytest
from daily_scenes import play

GAP = 1e-6
"""[m]; ``getConstraintInfo`` tells pivots in single precision."""
EXPECTED = {
    # scene: figure, what is expected, within what
    "hand_over": (("moved", 0.0, 2e-3),),  # m, motors let go of two kilograms a little
    "tray": (("z", 0.15, 1e-3), ("tilt", 0.15, 2e-3), ("yaw", 0.2, 2e-3)),
    "drawer": (("opened", 0.2, 1e-3), ("aside", 0.0, 1e-12), ("turned", 0.0, 1e-12)),
    # a hinge is created with a world pivot that Bullet keeps in single precision
    "door": (("angle", 0.4, 2e-3), ("hinge", 0.0, 1e-6)),
    "drag": (("z", 0.05, 1e-3), ("y", 0.55, 0.02), ("x", 0.18, 0.02)),
    "platform": (("z", 1.5, 1e-2), ("x", 1.0, 0.1)),  # it swings
    "panda": (("lifted", 0.1485, 2e-3), ("fingers", 0.0, 1e-8)),  # m, 0.25 rad at 0.6 m
    # rad/s, at rates of 40; rad, of motors that wheels on the ground pull at
    "car": (("gears", 0.0, 1e-10), ("steering", 0.0, 2e-2)),
    "husky": (("gears", 0.0, 1e-9), ("y", 0.0, 1e-3)),  # rad/s, also where not all is solved
    # g t²/2 of 60 Euler steps, less what Bullet's damping 0.04 v (1 + v) takes in that time
    "drop": (("fell", 0.31167 - 0.0023, 1e-3),),
    "lift_by_torque": (("z", None, 1e-3),),  # springs of joints sag; as far as natively
    "lift_by_velocity": (("z", 0.055, 2e-3),),
    "change_tool": (("lifted", 0.14, 1e-3), ("back", 0.0, 1e-3)),
    # m g; in filter mode Bullet's motor knows of 2 kg alone, at the winch, of 10.5 that it bears:
    # it sags by 10.5 g dt² / (0.1 · 2) at most, its gain being 0.1. In exact mode it still swings
    "hoist": (("lifted", 0.3, 9.2e-3), ("force", 78.48, 0.1)),
}


@pytest.mark.parametrize("mode", ["filter", "exact"])
@pytest.mark.parametrize("name", EXPECTED)
def test_a_scene_ends_as_a_person_expects(name, mode):
    found = play(name, mode)
    assert not found.error
    assert found.gap < GAP
    assert found.rate < 10.0  # rad/s, of an arm that moves by half a radian in a second
    for figure, expected, within in EXPECTED[name]:
        if expected is None:
            expected = play(name, "native").figures[figure]
        assert abs(found.figures[figure] - expected) < within, (figure, found.figures)


def test_skidding_wheels_turn_a_vehicle_as_coulombs_friction_does():
    """Forces in balance along what each wheel slips by, at the loads that contacts tell.

    Rims are polygons, whose radius and speed vary by 1.5 % each; how four wheels that chatter share
    the load changes the balance by another 1 %, if gravity differs by a billionth.
    """
    found = play("skid", "exact").figures
    assert abs(found["turn"] / found["balance"] - 1.0) < 0.04
