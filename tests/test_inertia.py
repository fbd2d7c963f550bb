"""Inertias from shapes against closed forms, and what Bullet then makes of them."""

import numpy as np
import pybullet
import pytest
import trimesh
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.errors import ModelError
from bulletbridge.models.inertia import repair

IMPOSSIBLE = '<inertia ixx="1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
POSSIBLE = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
PLACE = '<origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/>'


def robot(*links: str) -> str:
    """Links on hinges, one after the other."""
    joints = [
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="0.5 0 0"/><axis xyz="0 1 0"/></joint>'
        for i in range(len(links) - 1)
    ]
    named = [f'<link name="l{i}">{link}</link>' for i, link in enumerate(links)]
    return "\n".join(["<robot name='r'>", *named, *joints, "</robot>"])


def heavy(tensor: str, shape: str = "", mass: float = 2.0) -> str:
    """An inertial of this mass, and shapes."""
    return f'<inertial><mass value="{mass}"/>{tensor}</inertial>{shape}'


def shape(geometry: str, place: str = PLACE, kind: str = "collision") -> str:
    return f"<{kind}>{place}<geometry>{geometry}</geometry></{kind}>"


def read(path, link):
    """Mass, centre and tensor of a link in a file."""
    from xml.etree import ElementTree

    inertial = ElementTree.parse(path).getroot().find(f"link[@name='{link}']/inertial")
    tensor = inertial.find("inertia")
    entry = {n: float(tensor.get(n)) for n in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")}
    J = np.array(
        [
            [entry["ixx"], entry["ixy"], entry["ixz"]],
            [entry["ixy"], entry["iyy"], entry["iyz"]],
            [entry["ixz"], entry["iyz"], entry["izz"]],
        ]
    )
    com = [float(x) for x in inertial.find("origin").get("xyz").split()]
    return float(inertial.find("mass").get("value")), np.array(com), J


SHAPES = {
    "box": ('<box size="1 2 3"/>', [(4 + 9) / 12, (1 + 9) / 12, (1 + 4) / 12], 1e-8),
    # polygons of 32 sides and a sphere of 20480 faces fall short of the round ones
    "cylinder": (
        '<cylinder radius="0.5" length="2"/>',
        [1 / 16 + 1 / 3, 1 / 16 + 1 / 3, 1 / 8],
        2e-2,
    ),
    "sphere": ('<sphere radius="0.5"/>', [0.1, 0.1, 0.1], 1e-3),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_get_the_inertia_of_the_book(tmp_path, name):
    geometry, moments, rtol = SHAPES[name]
    (tmp_path / "r.urdf").write_text(robot(heavy(IMPOSSIBLE, shape(geometry))))
    (change,) = repair(tmp_path / "r.urdf", tmp_path / "new.urdf")
    assert "are those of no body" in str(change)
    mass, com, J = read(tmp_path / "new.urdf", "l0")
    R = Rotation.from_euler("xyz", [0.4, -0.5, 0.6]).as_matrix()
    assert mass == 2.0
    assert_allclose(com, [0.1, -0.2, 0.3], atol=1e-8)
    assert_allclose(J, R @ np.diag(2.0 * np.array(moments)) @ R.T, rtol=rtol, atol=rtol)


def test_two_shapes_are_one_body(tmp_path):
    halves = [shape('<box size="1 1 1"/>', f'<origin xyz="{x} 0 0"/>') for x in (-0.5, 0.5)]
    (tmp_path / "r.urdf").write_text(robot("".join(halves)))
    repair(tmp_path / "r.urdf", tmp_path / "new.urdf", density=3.0)
    mass, com, J = read(tmp_path / "new.urdf", "l0")
    assert_allclose(mass, 6.0)
    assert_allclose(com, 0.0, atol=1e-12)
    assert_allclose(J, np.diag([2.0, 5.0, 5.0]) * 6.0 / 12, atol=1e-9)


@pytest.mark.parametrize("name", ["meshes/bar.stl", "package://r/meshes/bar.stl"])
def test_meshes_are_found_scaled_and_weighed(tmp_path, name):
    (tmp_path / "meshes").mkdir()
    trimesh.creation.box((1, 2, 3)).export(tmp_path / "meshes" / "bar.stl")
    geometry = f'<mesh filename="{name}" scale="0.1 0.1 0.1"/>'
    (tmp_path / "r.urdf").write_text(robot(shape(geometry, "", "visual")))
    repair(tmp_path / "r.urdf", tmp_path / "new.urdf")
    mass, _, J = read(tmp_path / "new.urdf", "l0")
    assert_allclose(mass, 6.0, rtol=1e-6)
    assert_allclose(J, np.diag([13.0, 10.0, 5.0]) * 6.0 * 0.01 / 12, rtol=1e-6, atol=1e-9)


def test_what_is_possible_stays_unless_asked(tmp_path):
    box = shape('<box size="1 2 3"/>')
    (tmp_path / "r.urdf").write_text(robot(heavy(POSSIBLE, box), heavy(IMPOSSIBLE)))
    (change,) = repair(tmp_path / "r.urdf", tmp_path / "new.urdf")
    assert "no shape to compute one from" in str(change)
    assert read_tensor(tmp_path / "new.urdf") == "1"
    assert len(repair(tmp_path / "r.urdf", tmp_path / "new.urdf", everything=True)) == 2
    assert read_tensor(tmp_path / "new.urdf") != "1"


def read_tensor(path):
    from xml.etree import ElementTree

    return ElementTree.parse(path).getroot().find("link/inertial/inertia").get("ixx")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<robot", "cannot read"),
        (robot(shape('<mesh filename="gone.stl"/>')), "mesh gone.stl, which is not near"),
        (robot(shape('<box size="0 1 1"/>')), "'l0' has a box without volume"),
        (robot(shape("<cone/>")), "'l0' has the shape 'cone'"),
    ],
)
def test_what_cannot_be_repaired_is_named(tmp_path, text, message):
    (tmp_path / "r.urdf").write_text(text)
    with pytest.raises(ModelError, match=message):
        repair(tmp_path / "r.urdf", tmp_path / "new.urdf")
    assert not (tmp_path / "new.urdf").exists()


def test_a_refused_robot_can_be_attached_after_repair(tmp_path):
    box = shape('<box size="0.5 0.1 0.1"/>')
    (tmp_path / "r.urdf").write_text(robot(heavy(POSSIBLE), heavy(IMPOSSIBLE, box)))
    repair(tmp_path / "r.urdf", tmp_path / "new.urdf")
    client = pybullet.connect(pybullet.DIRECT)
    try:
        flags = pybullet.URDF_USE_INERTIA_FROM_FILE
        pybullet.setAdditionalSearchPath(str(tmp_path), client)
        bad, good = (
            pybullet.loadURDF(name, useFixedBase=True, flags=flags, physicsClientId=client)
            for name in ("r.urdf", "new.urdf")
        )
        with pytest.raises(ModelError, match="moves no inertia|made the inertia of link 'l1' zero"):
            bb.attach(bad, client=client)
        bb.attach(good, client=client).step()
    finally:
        pybullet.disconnect(client)
