"""Bushings that stand for loops and are drawn open are told: no assembly closes them."""

import warnings

import pytest

import bulletbridge as bb
from bulletbridge.comparison.inspection import inspect_model

MASS = 0.5  # [kg] of each of two bars
LONG = 0.3  # [m]
ABOVE = 0.4  # [m] where the second one hangs
G = 9.81  # [m/s²]


def bars(stiffness: float, way: float) -> str:
    """URDF of two bars that swing side by side, with a bushing between points ``way`` apart."""
    links = "".join(
        f'<link name="{name}"><inertial><origin xyz="0 0 {LONG / 2}"/><mass value="{MASS}"/>'
        '<inertia ixx="0.004" iyy="0.004" izz="0.0001" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name in ("left", "right")
    )
    joints = "".join(
        f'<joint name="{child}_hinge" type="continuous"><parent link="world"/>'
        f'<child link="{child}"/><origin xyz="{x} 0 {ABOVE}"/><axis xyz="0 1 0"/></joint>'
        for child, x in (("left", 0.0), ("right", way))
    )
    frames = "".join(
        f'<frame name="{n}_tip" link="{n}" xyz="0 0 {LONG}"/>' for n in ("left", "right")
    )
    numbers = "".join(
        f'<drake:bushing_{what} value="{values}"/>'
        for what, values in (
            ("torque_stiffness", "0 0 0"),
            ("torque_damping", "0 0 0"),
            ("force_stiffness", f"{stiffness} {stiffness} {stiffness}"),
            ("force_damping", "0 0 0"),
        )
    )
    return (
        f'<robot name="bars"><link name="world"/>{links}{joints}{frames}<drake:linear_bushing_rpy>'
        '<drake:bushing_frameA name="left_tip"/><drake:bushing_frameC name="right_tip"/>'
        f"{numbers}</drake:linear_bushing_rpy></robot>"
    )


def told(urdf: str) -> list[str]:
    """What load says of bushings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bb.load(urdf, "new").close()
    return [str(w.message) for w in caught if str(w.message).startswith("bushings start")]


def test_what_a_bushing_holds_at_the_start_is_told_as_energy_and_fall():
    """k d²/2 over the weight of both bars."""
    stiffness, way = 1e5, 0.2
    (said,) = told(bars(stiffness, way))
    energy = 0.5 * stiffness * way**2
    assert f"({way:.2g} m) hold {energy:.2g} J" in said
    assert f"fallen {energy / (2.0 * MASS * G):.2g} m" in said
    assert "loop joints" in said
    found = inspect_model(bars(stiffness, way))
    assert sum("bushings start" in each for each in found.warnings) == 1


@pytest.mark.parametrize(("stiffness", "way"), [(1e5, 1e-3), (100.0, 0.2)])
def test_a_bushing_that_is_shut_or_soft_is_not_told(stiffness: float, way: float):
    """0.05 J and 2 J, where a fall through 0.7 m is 7 J."""
    assert told(bars(stiffness, way)) == []
