"""URDF files with a flexible link as a chain: shapes, files, bad input."""

from dataclasses import replace
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.segmented_beams import BEAM, arm, uniform
from support.urdf_builder import inertial, joint, link

from bulletbridge.cli import run
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.segments import second_moments
from bulletbridge.models.flexible.commands import section_moments
from bulletbridge.models.flexible.make_flexible import make_flexible
from bulletbridge.models.loops_file import read_loops


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    """Files without a name given go into the working directory."""
    monkeypatch.chdir(tmp_path)


PLACE = '<origin xyz="0.5 0 0" rpy="{}"/>'


def test_shapes_are_cut_and_meshes_become_boxes(tmp_path):
    straight, oblique = PLACE.format("0 0 0"), PLACE.format("0.1 0 0.3")
    turned = PLACE.format("0 1.5707963267948966 0")
    shapes = (
        f"<visual>{straight}<geometry><box size='1.1 0.05 0.04'/></geometry></visual>"
        f"<collision>{turned}<geometry><cylinder radius='0.02' length='1'/></geometry></collision>"
        f"<visual>{oblique}<geometry><box size='0.5 0.1 0.1'/></geometry></visual>"
        "<collision><origin xyz='0.9 0 0'/><geometry><sphere radius='0.1'/></geometry></collision>"
    )
    made = make_flexible(arm(tmp_path, uniform(shapes)), BEAM)
    tree = Xml.parse(made.urdf).getroot()
    assert made.notes == ("beam: a visual box cannot be cut: the segments have boxes in its place",)
    boxes = [
        [float(box.get("size").split()[0]) for box in segment.iterfind("visual/geometry/box")]
        for segment in tree.iterfind("link")
        if segment.get("name").startswith("beam") and segment.find("visual") is not None
    ]
    assert_allclose([b[0] for b in boxes], [0.175, 0.25, 0.25, 0.25, 0.175])
    lengths = [float(c.get("length")) for c in tree.iter("cylinder")]
    assert_allclose(lengths, [0.125, 0.25, 0.25, 0.25, 0.125])
    own = tree.find("link[@name='beam']")
    assert own.find("collision/geometry/sphere") is not None
    assert_allclose(float(own.find("visual/origin").get("xyz").split()[0]), 0.875 + 0.175 / 2)


def test_the_joint_at_its_end_gives_the_length(tmp_path):
    wrist = joint("wrist", "continuous", "beam", "hand", (0, 0, -0.8))
    tensor = inertial(1.0, (0.06, 0.06, 1e-3), (0, 0, -0.4))
    path = arm(tmp_path, tensor, "continuous", (link("hand"), wrist))
    made = make_flexible(path, replace(BEAM, direction=None, segments=2))
    tree = Xml.parse(made.urdf).getroot()
    assert made.beam.length == pytest.approx(0.8)
    bend = tree.find("joint[@name='beam_bend_1']")
    assert bend.find("axis").get("xyz") == "1.0 0.0 0.0"  # z is along the beam
    assert bend.find("origin").get("xyz") == "0.0 0.0 -0.2"
    parents = {j.get("name"): j.find("parent").get("link") for j in tree.iterfind("joint")}
    children = {j.get("name"): j.find("child").get("link") for j in tree.iterfind("joint")}
    assert parents["wrist"] == "beam" and children["shoulder"] == "beam_segment_1"


BAD = {
    "unknown link 'bean'": replace(BEAM, link="bean"),
    "segments is 0": replace(BEAM, segments=0),
    "direction of the flexible link is zero": replace(BEAM, direction=(0, 0, 0)),
    "length is 0": replace(BEAM, length=0.0),
    "EI_z is -1": replace(BEAM, EI_z=-1.0),
    "nothing bends": replace(BEAM, EI_z=None),
    "no mass or no inertia": replace(BEAM, link="bare"),
    "name the joint at its end": replace(BEAM, direction=None),
    "joint 'elbow' is not on link 'beam'": replace(BEAM, direction=None, end="elbow"),
    "cannot lie between 0 and 0.3": replace(BEAM, direction=(0.3, 0, 0)),
    "normal is along": replace(BEAM, normal=(2.0, 0, 0)),
    "damping is -0.1": replace(BEAM, damping=-0.1),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_one_clear_error(tmp_path, message):
    more = (link("bare", ""), joint("side", "fixed", "beam", "bare"))
    path = arm(tmp_path, more=more)
    with pytest.raises(ModelError, match=message):
        make_flexible(path, BAD[message])
    assert [p.name for p in tmp_path.iterdir()] == ["arm.urdf"]


def test_the_command_writes_both_files(tmp_path, capsys):
    path = arm(tmp_path)
    common = ["flexible", str(path), "--link", "beam", "--direction", "1", "0", "0"]
    common += ["--segments", "5", "-o", str(tmp_path / "new.urdf")]
    section = ["--E", "7e10", "--G", "2.6e10", "--section", "rect:0.004,0.02"]
    assert run([*common, *section, "--directions", "yz", "--damping", "0.01"]) == 0
    assert "5 springs" in capsys.readouterr().out
    forces = read_loops(tmp_path / "new.loops.yaml").forces
    assert len(forces) == 15
    named = {force.joint: force.stiffness for force in forces}
    assert_allclose(named["beam_bend_3"], 7e10 * 0.02 * 0.004**3 / 12 * 5)
    assert_allclose(named["beam_bend_y_1"], 7e10 * 0.004 * 0.02**3 / 12 * 5)
    assert "beam_twist_5" in named
    for wrong in ([], ["--EI", "1", "--E", "2", "--section", "round:0.1"], ["--E", "1"]):
        assert run([*common, *wrong]) == 2
        assert "give either --EI" in capsys.readouterr().err
    assert run([*common, "--EI", "1", "--directions", "x"]) == 2
    assert "give z, y or yz" in capsys.readouterr().err


def test_sections():
    """A square's torsion is 0.1406 a⁴; a tube is a round bar less another."""
    assert_allclose(section_moments("rect:2,2"), (16 / 12, 16 / 12, 0.1406 * 16), rtol=2e-3)
    assert_allclose(section_moments("round:2"), np.pi / 4 * np.array([1, 1, 2]))
    assert_allclose(section_moments("tube:2,1"), np.pi / 4 * np.array([1, 1, 2]) * 15 / 16)
    with pytest.raises(ModelError, match="unknown section 'tube:1,2'"):
        section_moments("tube:1,2")


def test_an_impossible_inertia_is_sent_to_repair(tmp_path):
    path = arm(tmp_path, inertial(1.0, (1.0, 0.1, 0.1), (0.5, 0, 0)))
    with pytest.raises(ModelError, match="bulletbridge inertia"):
        make_flexible(path, BEAM)
    assert second_moments(np.diag([1.0, 0.1, 0.1]))[0, 0] < 0


@pytest.mark.parametrize("axis, stiffness, told", [("y", "EI_z", "y"), ("z", "EI_y", "z")])
def test_bending_across_the_plane_of_its_hinge_is_told(tmp_path, axis, stiffness, told):
    path = arm(tmp_path, carrier="continuous")
    along = {"y": "0 1 0", "z": "0 0 1"}[axis]
    path.write_text(path.read_text().replace('<axis xyz="0 0 1"/>', f'<axis xyz="{along}"/>'))
    how = replace(BEAM, **{"EI_z": None, stiffness: 1.0})
    (note,) = make_flexible(path, how).notes
    assert "across the plane in which 'shoulder' turns it" in note and f"about {told}" in note
    both = replace(how, EI_y=1.0, EI_z=1.0)
    assert not make_flexible(path, both, tmp_path / "both.urdf").notes
