"""Inertias in other units than masses and lengths are told once, by load and by inspect."""

import warnings

import pytest

import bulletbridge as bb
from bulletbridge.comparison.inspection import inspect_model
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.models.odd_inertias import odd_inertias

BAR = (0.04, 0.02, 0.3)  # [m]
MASS = 0.5  # [kg]


def arm(unit: float, shape: str = "collision", placeholder: bool = False) -> str:
    """URDF of two bars, hinge after hinge, whose inertias are written in a unit [kg m²]."""
    x, y, z = BAR
    own = [MASS / 12.0 * (b**2 + c**2) / unit for b, c in ((y, z), (x, z), (x, y))]
    own = [1.0, 1.0, 1.0] if placeholder else own
    tensor = " ".join(f'i{2 * "xyz"[k]}="{own[k]}"' for k in range(3))
    links = "".join(
        f'<link name="{name}"><inertial><origin xyz="0 0 {z / 2}"/><mass value="{MASS}"/>'
        f'<inertia {tensor} ixy="0" ixz="0" iyz="0"/></inertial><{shape}>'
        f'<origin xyz="0 0 {z / 2}"/><geometry><box size="{x} {y} {z}"/></geometry>'
        f"</{shape}></link>"
        for name in ("upper", "lower")
    )
    joints = "".join(
        f'<joint name="{name}" type="continuous"><parent link="{a}"/><child link="{b}"/>'
        f'<origin xyz="0 0 {place}"/><axis xyz="0 1 0"/></joint>'
        for name, a, b, place in (
            ("shoulder", "world", "upper", 0.0),
            ("elbow", "upper", "lower", z),
        )
    )
    return f'<robot name="arm"><link name="world"/>{links}{joints}</robot>'


def told(urdf: str) -> list[str]:
    """What load says of inertias."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bb.load(urdf, "new").close()
    return [str(w.message) for w in caught if str(w.message).startswith("inertias of")]


@pytest.mark.parametrize("unit", [1e-3, 1e-6, 1e-9, 1e3])
def test_inertias_in_other_units_are_told_once_with_how_far_off_they_are(unit: float):
    """The file says so many g m², kg mm² or g mm², or kg m² where it should say g m²."""
    (said,) = told(arm(unit))
    x, y, z = BAR
    ratio = (y**2 + z**2) / 12.0 / unit / ((x**2 + y**2 + z**2) / 4.0)
    # at the joint's end a bar is as far from its centre as half its length, less than its corner;
    # a box that is turned is wider, by no more than half here, and Bullet's have margins
    for name in ("upper", "lower"):
        number = float(said.split(f"'{name}' (")[1].split(")")[0])
        assert 0.4 * ratio < number < 1.1 * ratio
    assert "kg m²" in said and "bulletbridge inertia" in said


@pytest.mark.parametrize("shape", ["collision", "visual"])
def test_right_inertias_are_not_told(shape: str):
    assert told(arm(1.0, shape)) == []


def test_placeholders_of_one_kg_m2_are_not_told():
    """r2d2 and Minitaur have them: no unit is wrong."""
    assert told(arm(1.0, placeholder=True)) == []


def test_without_shapes_inertias_are_held_to_the_whole_robot():
    """1 g mm² for 1e-9 kg m² makes the radius of gyration 3e4 times a bar."""
    assert len(told(arm(1e-9, "visual"))) == 1


def test_inspect_tells_it_once():
    found = inspect_model(arm(1e-6))
    assert sum("inertias of" in said for said in found.warnings) == 1


def test_a_radius_of_gyration_beyond_the_mechanism_is_told():
    """100 m in a mechanism 0.3 m across, of equal moments, and 0.1 m, which may be."""
    found: list[dict[int, float]] = []
    for inertia in (0.01, 1e4):
        load = Load(1.0, (0.3, 0.0, 0.0), (inertia, inertia, inertia))
        tree = with_joint(empty_mechanism(), "hinge", "revolute", "arm", load=load)
        found.append(odd_inertias(tree, {}, 0.3))
    assert found[0] == {}
    assert found[1] == {1: pytest.approx(1e4 / 0.3**2, rel=1e-12)}
