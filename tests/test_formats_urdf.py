"""Robots in their own formats: what a URDF and the files beside it say of loops."""

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np
import pinocchio as pin
import pybullet
import pytest
from scipy.spatial.transform import Rotation
from support.mujoco_models import terms_at, unassembled

import bulletbridge as bb
from bulletbridge.bullet.xml_file import read_xml
from bulletbridge.constraints.joints import Coupling, JointModel, LoopJoint
from bulletbridge.engine.whitened import whiten
from bulletbridge.errors import AssemblyError, BulletBridgeWarning, LoopFileError, ModelError
from bulletbridge.mechanism.frames import matrix_rpy, rpy_matrix
from bulletbridge.models.bundled import bundled, find
from bulletbridge.models.formats.convert import convert
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.formats.urdf_tree import UrdfTree
from bulletbridge.models.load import load
from bulletbridge.models.loops_file import read_loops
from bulletbridge.models.model_spec import JointForce

INERTIAL = (
    '<inertial><origin xyz="0.1 0.02 0"/><mass value="1"/>'
    '<inertia ixx="0.01" iyy="0.02" izz="0.025" ixy="0" ixz="0.001" iyz="0"/></inertial>'
)
FOUR_BAR = find("four_bar").with_suffix("").with_suffix(".urdf").read_text()
LOOPS = """
<loop_joint name="pin" type="{kind}">
  <link1 link="rocker" xyz="0.7 0 0" rpy="0 0 0"/>
  <{second} link="ground" xyz="1 0 0" rpy="0 0 0"/>{axis}
</loop_joint>
"""


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, parent: str, child: str, inside: str = "", kind: str = "continuous") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.3 0 0.1" rpy="0 0 0.2"/><axis xyz="0 1 0"/>{inside}</joint>'
    )


def chain(*inside: str, root: str = "world") -> str:
    """A fixed chain of as many links as there are joints, with what is inside these."""
    names = [root, *(f"l{k}" for k in range(len(inside)))]
    links = [link(root, "" if root == "world" else INERTIAL), *map(link, names[1:])]
    joints = [
        joint(f"j{k}", *names[k : k + 2], text, "revolute" if "limit" in text else "continuous")
        for k, text in enumerate(inside)
    ]
    return f'<robot name="chain">{"".join(links)}{"".join(joints)}</robot>'


@pytest.fixture
def put(tmp_path):
    """Puts text into a file; its path."""

    def write(text: str, name: str = "robot.urdf") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def four_bar_with(text: str) -> str:
    """The bundled four-bar's URDF with more in it."""
    meshes = find("four_bar").parent.as_posix()
    text = FOUR_BAR.replace("</robot>", f"{text}</robot>")
    return text.replace('filename="meshes', f'filename="{meshes}/meshes')


@pytest.mark.parametrize("kind", ["fixed", "revolute"])
def test_what_stands_in_the_world_beside_a_robot_is_left_out(put, kind) -> None:
    """As the floor of Drake's strandbeest; what moves there is a second robot, which is told."""
    text = chain("", root="base")
    limit = '<limit lower="0" upper="1" effort="1" velocity="1"/>'
    floor = link("floor") + joint("weld", "world", "floor", limit, kind)
    path = put(text.replace("</robot>", f"{floor}</robot>"))
    if kind == "revolute":
        with pytest.raises(ModelError, match="several links are no child of a joint"):
            read_model(path)
        return
    spec = read_model(path)
    assert any("beside the robot is left out: floor" in note for note in spec.notes)
    with load(spec, "new") as ours, load(read_model(put(text, "alone.urdf")), "new") as theirs:
        a, b = (model.system.terms() for model in (ours, theirs))
        assert np.array_equal(a.M, b.M) and np.array_equal(a.h, b.h)


def test_a_joint_may_hang_on_a_world_that_is_no_link(put) -> None:
    text = chain("", "")
    spec = read_model(put(text.replace('<link name="world"></link>', "")))
    assert spec.bodies[0].fixed_base and "'j0' hangs on, is no link: the world" in spec.notes[0]
    with load(spec, "new") as ours, load(put(text, "said.urdf"), "new") as theirs:
        a, b = (model.system.terms() for model in (ours, theirs))
        assert np.array_equal(a.M, b.M) and np.array_equal(a.h, b.h)


def terms(spec, seed: int = 1):
    """M, h, and g, J of all rows over their largest entry, at a random state of a model."""
    with load(spec) as loaded:
        system, rng = loaded.system, np.random.default_rng(seed)
        q, v = system.q, rng.normal(size=system.mechanism.nv)
        for one in system.mechanism.joints.values():
            if one.kind in ("revolute", "prismatic"):
                q[one.q] = rng.uniform(-1.0, 1.0)
        found = system._active.full.terms(q, v, 0.0)
        # a coupling may be written from its other joint, which multiplies its row by a number
        unit = np.take_along_axis(found.J, np.abs(found.J).argmax(axis=1)[:, None], axis=1)
        unit[np.abs(unit) < 1e-12] = 1.0  # a row that nothing moves
        return found.M, found.h, found.g / unit[:, 0], found.J / unit


def assert_same(spec, other):
    """Models have the same terms at random states, to round-off over the largest of a kind."""
    for seed in (1, 2):
        for mine, theirs in zip(terms(spec, seed), terms(other, seed), strict=True):
            size = float(np.abs(theirs).max(initial=1.0))
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12 * size)


@pytest.mark.parametrize("second", ["link1", "link2"])
def test_a_loop_joint_is_the_loop_of_the_loops_file(put, second):
    path = put(four_bar_with(LOOPS.format(kind="spherical", second=second, axis="")))
    spec = read_model(path, fixed_base=True)
    assert [loop.model for loop in spec.constraints] == [JointModel.BALL]
    assert_same(spec, replace(read_loops(find("four_bar")), start_q={}))


@pytest.mark.parametrize(
    ("ends", "x"),
    [
        ('<link1 link="rocker">{}</link1><link2 link="ground" xyz="1 0 0"/>', 1.0),
        ('<parent link="rocker">{}</parent><child link="ground"/><child_origin xyz="1 0 0"/>', 1.0),
        ('<parent link="rocker"/><child link="ground"/>{}', 0.0),
    ],
)
def test_places_of_a_loop_joint_stand_where_people_write_them(put, ends, x):
    ends = ends.format('<origin xyz="0.7 0 0"/>')
    text = four_bar_with(f'<loop_joint name="pin" type="Spherical">{ends}</loop_joint>')
    (loop,) = read_model(put(text), fixed_base=True).constraints
    assert (loop.model, loop.a.xyz, loop.b.xyz) == (JointModel.BALL, (0.7, 0.0, 0.0), (x, 0.0, 0.0))


def test_closing_frames_with_a_second_pair_on_an_axis_are_hinges(put):
    frames = "".join(
        f'<link name="closing_pin_{n}"/><joint name="closing_pin_{n}_frame" type="fixed">'
        f'<parent link="{on}"/><child link="closing_pin_{n}"/><origin xyz="{x} {y} 0"/></joint>'
        for on, k, x in (("rocker", 1, 0.7), ("ground", 2, 1.0))
        for n, y in ((k, 0.0), (f"{k}_z", 0.1))
    )
    (loop,) = read_model(put(four_bar_with(frames)), fixed_base=True).constraints
    assert (loop.name, loop.model) == ("pin", JointModel.REVOLUTE)
    for axis in (loop.axis, loop.axis_b):
        np.testing.assert_allclose(axis, (0.0, 0.1, 0.0), rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("root", ["world", "l6"])
def test_a_further_parent_of_a_link_is_a_loop(put, root):
    text = chain(*[""] * 7).replace("0 0 0.2", "0.5 0.1 0.2")
    tree = UrdfTree(put(text), read_xml(put(text)))
    place, child = tree.poses["l6"], "l6" if root == "world" else "world"
    R, p = place.R, place.p
    if root == "l6":  # the loop ends at the root, and no link is without a parent
        R, p = R.T, -R.T @ p
    xyz, rpy = " ".join(map(repr, p.tolist())), " ".join(map(repr, matrix_rpy(R)))
    again = (
        f'<joint name="again" type="continuous"><parent link="{root}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="1 0 0"/></joint>'
    )
    same = (
        f'<loop_joint name="again" type="continuous"><link1 link="{root}" xyz="{xyz}"'
        f' rpy="{rpy}"/><link2 link="{child}"/><axis xyz="1 0 0"/></loop_joint>'
    )
    spec = read_model(put(text.replace("</robot>", f"{again}</robot>"), "a.urdf"))
    assert any(f"further joints are loops: 'again' of '{child}'" in note for note in spec.notes)
    assert_same(spec, read_model(put(text.replace("</robot>", f"{same}</robot>"), "b.urdf")))
    with load(spec) as loaded:
        assert not loaded.assembly.moved and loaded.system.dof == 2


@pytest.mark.parametrize(
    "element",
    [
        '<constraint name="pin" type="continuous"><parent link="rocker"/>'
        '<parent_origin xyz="0.7 0 0"/><parent_axis xyz="0 1 0"/><child link="ground"/>'
        '<child_origin xyz="1 0 0"/><child_axis xyz="0 1 0"/></constraint>',
        '<loop_joint name="pin" type="revolute"><parent link="rocker"/><child link="ground"/>'
        '<parent_origin xyz="0.7 0 0"/><child_origin xyz="1 0 0"/>'
        '<axis xyz="0 1 0" frame="parent"/></loop_joint>',
        LOOPS.format(kind="revolute", second="link2", axis='<axis xyz="0 1 0"/>'),
        '<loop name="pin" type="revolute"><predecessor link="rocker"><origin xyz="0.7 0 0"/>'
        '</predecessor><successor link="ground"><origin xyz="1 0 0"/></successor>'
        '<axis xyz="0 1 0"/></loop>',
    ],
)
def test_hinges_of_all_dialects_move_as_the_ball_joint_does(put, element):
    with load(put(four_bar_with(element)), fixed_base=True) as loaded:
        loaded.system.run(1.0)
        hinged = loaded.system.q
        assert loaded.system.encoded.nc == 5
        assert loaded.system.dof == 1
    plain = replace(read_loops(find("four_bar")), start_q={})
    with load(plain) as loaded:
        loaded.system.run(1.0)
        np.testing.assert_allclose(hinged, loaded.system.q, atol=1e-9)  # 240 steps of round-off


@pytest.mark.parametrize(
    "element",
    [
        '<constraint name="pin" type="position"><predecessor link="rocker">'
        '<origin xyz="0.7 0 0"/></predecessor><successor link="ground"><origin xyz="1 0 0"/>'
        "</successor></constraint>",
        '<loop_constraint name="pin"><parent link="rocker"/><parent_origin xyz="0.7 0 0"/>'
        '<child link="ground"/><child_origin xyz="1 0 0"/></loop_constraint>',
        '<constraint_joint name="pin" type="position"><parent link="rocker"/><child link="ground"/>'
        '<parent_origin xyz="0.7 0 0"/><child_origin xyz="1 0 0"/><axis xyz="0 0 1"/>'
        "</constraint_joint>",
        '<constraint name="pin" type="spherical_joint"><parent link="rocker"/><parent_origin'
        ' xyz="0.7 0 0"/><child link="ground"/><child_origin xyz="1 0 0"/></constraint>',
    ],
)
def test_earlier_words_of_urdf_plus_are_ball_joints(put, element):
    spec = read_model(put(four_bar_with(element)), fixed_base=True)
    assert_same(spec, replace(read_loops(find("four_bar")), start_q={}))


def test_elements_that_join_links_in_unknown_words_are_told(put):
    """They would be loops that are left open without a word."""
    pin = '<closure name="pin"><body name="rocker"/><body name="ground"/></closure>'
    filters = '<disable_collisions link1="rocker" link2="ground"/><note on="rocker"/>'
    spec = read_model(put(four_bar_with(pin + filters)), fixed_base=True)
    assert not spec.constraints
    (told,) = (note for note in spec.notes if "not known" in note)
    assert told.startswith("left out, since the element is not known: <closure> 'pin' of 'rocker',")
    assert "note" not in told and "collisions" not in told


@pytest.mark.parametrize(
    "element",
    [
        '<coupling name="belt"><predecessor link="{}"/><successor link="{}"/><ratio value="2"/>'
        "</coupling>",
        '<constraint name="belt" type="rolling"><predecessor link="{}"/><successor link="{}"/>'
        '<ratio value="2"/></constraint>',
        '<joint_constraint name="belt"><parent link="{}"/><child link="{}"/>'
        '<gear_ratio value="2"/></joint_constraint>',
    ],
)
def test_couplings_of_urdf_plus_are_of_angles_below_what_both_hang_on(put, element):
    """Chignoli et al. 2024: ratio times the sum of the one line's angles is that of the other."""
    more = link("m0") + link("m1") + link("bolted") + joint("k0", "l0", "m0")
    more += joint("k1", "m0", "m1") + joint("held", "m1", "bolted", kind="fixed")

    def read(*ends: str):
        added = f"{more}{element.format(*ends)}</robot>"
        return read_model(put(chain("", "").replace("</robot>", added))).constraints

    assert read("l1", "bolted") == (Coupling("belt", {"k0": 1.0, "k1": 1.0, "j1": -2.0}),)
    assert read("m0", "m1") == (Coupling("belt", {"k1": 1.0}),)
    with pytest.raises(ModelError, match="'belt' couples links between which no joint moves"):
        read("m1", "bolted")


def test_drakes_ball_constraint_and_closing_frames_are_ball_joints(put):
    drake = (
        '<drake:ball_constraint><drake:ball_constraint_body_A name="rocker"/>'
        '<drake:ball_constraint_body_B name="ground"/><drake:ball_constraint_p_AP value="0.7 0 0"/>'
        '<drake:ball_constraint_p_BQ value="1 0 0"/></drake:ball_constraint>'
    )
    frames = "".join(
        f'<link name="closing_pin_{n}"/><joint name="closing_pin_{n}_frame" type="fixed">'
        f'<parent link="{on}"/><child link="closing_pin_{n}"/><origin xyz="{x} 0 0"/></joint>'
        for n, on, x in ((1, "rocker", 0.7), (2, "ground", 1.0))
    )
    plain = replace(read_loops(find("four_bar")), start_q={})
    assert_same(read_model(put(four_bar_with(drake), "a.urdf"), fixed_base=True), plain)
    closing = read_model(put(four_bar_with(frames), "b.urdf"), fixed_base=True)
    assert_same(closing, plain)  # the frames weigh nothing
    assert any("no mass" in note for note in closing.notes)
    assert any("ball joints, as PlaCo does" in note for note in closing.notes)


def drakes(tag: str, **values: str) -> str:
    """An element of Drake's in a URDF: children with an attribute each."""
    inside = "".join(f"<drake:{tag}_{key} {value}/>" for key, value in values.items())
    return f"<drake:{tag}>{inside}</drake:{tag}>"


def test_springs_and_tendons_in_drakes_words_act(put):
    """Against the forces that Drake's documentation gives them, at a random state."""
    ends = {
        "body_A": 'name="crank"', "p_AP": 'value="0.1 0.2 0.3"',
        "body_B": 'name="ground"', "p_BQ": 'value="1 0 1"',
    }  # fmt: skip
    strut = {"free_length": "0.2", "stiffness": "30", "damping": "2"}
    values = {key: f'value="{value}"' for key, value in strut.items()}
    tendon = (
        '<drake:tendon_constraint><drake:tendon_constraint_joint name="crank" a="2"/>'
        '<drake:tendon_constraint_joint name="rocker" a="-1"/>{}</drake:tendon_constraint>'
    )
    bounds = "".join(
        f'<drake:tendon_constraint_{key} value="{value}"/>'
        for key, value in (("offset", 0.5), ("lower_limit", -0.1), ("upper_limit", 0.3))
    )
    soft = '<drake:tendon_constraint_stiffness value="7"/>'
    equal = bounds.replace("-0.1", "0.3")
    text = drakes("linear_spring_damper", **ends, **values) + tendon.format(bounds + soft)
    plain = read_model(put(four_bar_with(""), "plain.urdf"), fixed_base=True)
    spec = read_model(put(four_bar_with(text)), fixed_base=True)
    rng = np.random.default_rng(3)
    with load(plain) as without, load(spec) as loaded:
        system, q = loaded.system, rng.uniform(-1.0, 1.0, 3)
        v = rng.normal(size=3)
        mechanism = system.mechanism
        where = {name: mechanism.joint(name).q.start for name in ("crank", "rocker")}
        P, Q = bb.Frame("crank", (0.1, 0.2, 0.3)), np.array([1.0, 0.0, 1.0])

        def distance(at):
            system.set_state(at, np.zeros(3))
            R, p = system.link_pose("crank")
            return float(np.linalg.norm(p + R @ np.array(P.xyz) - Q))

        h = 1e-6
        row = np.array([distance(q + h * e) - distance(q - h * e) for e in np.eye(3)]) / (2 * h)
        force = -(30.0 * (distance(q) - 0.2) + 2.0 * row @ v) * row
        way = 2.0 * q[where["crank"]] - q[where["rocker"]] + 0.5
        pull = -7.0 * (way - np.clip(way, -0.1, 0.3))
        assert pull != 0.0
        force[where["crank"]] += 2.0 * pull
        force[where["rocker"]] -= pull
        bias = [each._active.full.terms(q, v, 0.0).h for each in (system, without.system)]
        np.testing.assert_allclose(bias[1] - bias[0], force, atol=1e-7)  # of central differences
    hard = read_model(put(four_bar_with(tendon.format(bounds))), fixed_base=True)
    assert hard.elements == (
        bb.Tendon("tendon_crank_rocker", {"crank": 2.0, "rocker": -1.0}, limits=(-0.6, -0.2)),
    )
    tied = read_model(put(four_bar_with(tendon.format(equal))), fixed_base=True)
    assert tied.constraints == (
        Coupling("tendon_crank_rocker", {"crank": 2.0, "rocker": -1.0}, -0.2),
    )


def test_bushings_in_drakes_words_may_be_between_frames(put):
    kinds = [(kind, what) for kind in ("force", "torque") for what in ("stiffness", "damping")]
    numbers = "".join(
        f'<drake:bushing_{kind}_{what} value="{n} {n + 1} {n + 2}"/>'
        for n, (kind, what) in enumerate(kinds)
    )
    ends = '<drake:bushing_frameA name="f"/><drake:bushing_frameC name="ground"/>'
    element = f"<drake:linear_bushing_rpy>{ends}{numbers}</drake:linear_bushing_rpy>"
    frame = '<frame name="f" link="rocker" xyz="0.7 0 0" rpy="0 0 0.1"/>'
    spec = read_model(put(four_bar_with(frame + element)))
    a, b = bb.Frame("rocker", (0.7, 0.0, 0.0), (0.0, 0.0, 0.1)), bb.Frame("ground")
    triples = [tuple(float(n + k) for k in range(3)) for n in range(4)]
    assert spec.elements == (bb.Bushing("bushing_rocker_ground", a, b, *triples),)
    assert any("as long as turns are small" in note for note in spec.notes)


def drawn_closed(put) -> str:
    """The four-bar without its last pin, whose links meet there with joints at zero."""
    loop = LOOPS.format(kind="continuous", second="link2", axis='<axis xyz="0 1 0"/>')
    with load(read_model(put(four_bar_with(loop), "a.urdf")), fixed_base=True) as known:
        q = known.system.q
    robot = Xml.fromstring(FOUR_BAR)
    for name, turned in zip(("crank", "coupler", "rocker"), q[-3:], strict=True):
        origin = robot.find(f"joint[@name='{name}']/origin")
        assert origin is not None
        rpy = matrix_rpy(Rotation.from_euler("y", turned).as_matrix())
        origin.set("rpy", " ".join(map(repr, rpy)))
    return Xml.tostring(robot, encoding="unicode")


def test_a_loop_for_gazebo_that_mimics_and_transmissions_of_no_joint_are_told(put):
    """Neither the gear of a loop's own turn nor PR2's gripper is acted on."""
    said = """<gazebo><joint name="pin" type="ball"><parent>rocker</parent><child>ground</child>
<pose>1 0 0 0 0 0</pose><axis><xyz>0 1 0</xyz><mimic joint="crank"/></axis></joint></gazebo>
<transmission name="jaws" type="pr2_mechanism_model/PR2GripperTransmission"><actuator name="m"/>
<gap_joint name="crank"/></transmission></robot>"""
    spec = read_model(put(drawn_closed(put).replace("</robot>", said), "b.urdf"))
    assert spec.actuated == () and len(spec.constraints) == 1
    for told in (
        "<mimic> of joints in <gazebo>, which close loops, is LEFT OUT: pin;",
        "transmissions without <joint>, which make no joint actuated: 'jaws' (PR2GripperTr",
    ):
        assert any(told in note for note in spec.notes)


@pytest.mark.parametrize("frame", ["", "model", "expressed"])
def test_joints_for_gazebo_close_loops(put, frame):
    """The four-bar's last pin in SDF's words, closed with joints at zero."""
    axes = {
        "": "<xyz>0 0 1</xyz>",
        "model": "<xyz>0 2 0</xyz><use_parent_model_frame>1</use_parent_model_frame>",
        "expressed": '<xyz expressed_in="ground">0 1 0</xyz>',
    }
    pin = (
        '<gazebo><joint name="pin" type="revolute"><parent>rocker</parent><child>ground</child>'
        f"<pose>1 0 0 {-np.pi / 2} 0 0</pose><axis>{axes[frame]}<limit><lower>-9</lower>"
        "<upper>1.79769e+308</upper></limit><dynamics><damping>0.3</damping></dynamics></axis></joint>"
        '<joint name="gears" type="gearbox"><parent>rocker</parent><child>ground</child></joint>'
        '<plugin name="p"/></gazebo><gazebo reference="crank"><mu1>1</mu1></gazebo>'
        '<gazebo><joint name="feet" type="fixed"><parent>world</parent>'
        '<child>ground</child></joint><joint name="idle" type="fixed"><parent>ground</parent>'
        "<child>ground</child></joint></gazebo>"
    )
    spec = read_model(put(drawn_closed(put).replace("</robot>", f"{pin}</robot>"), "b.urdf"))
    assert any("joints in <gazebo> close loops, joints at zero: pin" in x for x in spec.notes)
    assert any("kinds that are not read: gears (gearbox)" in x for x in spec.notes)
    assert any("idle in <gazebo> join what is one rigid body: left out" in x for x in spec.notes)
    (hinge,) = spec.constraints
    assert hinge.model is JointModel.REVOLUTE
    assert hinge.turn == bb.LoopAxis((-9.0, np.inf), damping=0.3)
    with load(spec) as loaded:
        assert loaded.system.dof == 1 and loaded.system.mechanism.nv == 3  # the base is held
        loaded.system.run(0.5)
        assert max(gap.kept_metres for gap in loaded.system.evaluate().gaps) < 1e-12


@pytest.mark.parametrize(
    "words",
    [
        "DetachableJoint'><parent_link>ground</parent_link><child_model>four_bar</child_model>"
        "<child_link>end</child_link>",
        "AttachLinks'><parent>ground</parent><child>end</child>",
    ],
)
def test_plugins_that_fix_a_link_where_it_stands_close_loops(put, words):
    """A link on the rocker's pin, fixed to the ground, leaves the rocker that pin.

    What it weighs is the ground's, so the other three links move as with the pin alone.
    """
    text = drawn_closed(put)
    pin = "<gazebo><joint name='pin' type='revolute'><parent>rocker</parent><child>ground</child>"
    pin += "<pose>1 0 0 0 0 0</pose><axis><xyz>0 1 0</xyz></axis></joint></gazebo>"
    (hinge,) = read_model(put(text.replace("</robot>", f"{pin}</robot>"), "pin.urdf")).constraints
    xyz, rpy = (" ".join(map(repr, numbers)) for numbers in (hinge.a.xyz, hinge.a.rpy))
    end = link("end") + (
        '<joint name="pin" type="continuous"><parent link="rocker"/><child link="end"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 1 0"/></joint>'
    )
    plugin = f"<gazebo><plugin name='gz::sim::systems::{words}</plugin></gazebo>"
    found: list[list[float]] = []
    for more in (pin, end + plugin):
        path = put(text.replace("</robot>", f"{more}</robot>"), f"{len(found)}.urdf")
        with load(read_model(path, fixed_base=True)) as loaded:
            system = loaded.system
            system.run(0.3)
            assert system.dof == 1
            assert system.evaluate().largest("kept_metres") < 1e-12
            joints = system.mechanism.joints
            found.append([float(system.q[joints[n].q][0]) for n in ("crank", "rocker")])
    np.testing.assert_allclose(*found, atol=1e-9)  # 72 steps of round-off
    elsewhere = plugin.replace("four_bar", "crate")
    spec = read_model(put(text.replace("</robot>", f"{end}{elsewhere}</robot>"), "x.urdf"))
    if "crate" in elsewhere:
        assert not spec.constraints
        assert any("'end' of 'crate', which is not in this file" in note for note in spec.notes)


WHEELS = """<robot name="r"><link name="box"/>{wheels}<gazebo>
<joint name="gears" type="gearbox"><parent>r::w1</parent><child>w2</child>
<pose relative_to="box">0 0 0 0 0 0</pose><gearbox_reference_body>box</gearbox_reference_body>
<gearbox_ratio>2</gearbox_ratio><axis><xyz>0 0 1</xyz></axis></joint></gazebo></robot>"""


def wheel(name, axis, more="", rpy="0 0 0"):
    return (
        f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"'
        f' ixz="0" iyz="0"/></inertial></link><joint name="{name}_turn" type="continuous"><parent'
        f' link="box"/><child link="{name}"/><origin xyz="1 0 0" rpy="{rpy}"/><axis xyz="{axis}"/>'
        f"{more}</joint>"
    )


def test_gearboxes_for_gazebo_couple_turns_about_a_third_link(put):
    """The child turns by -ratio times what the parent does, whatever the joints' own axes are."""
    turned = wheel("w2", "0 1 0", rpy=f"{np.pi / 2} 0 0")  # about z of the box
    for second, turn in ((wheel("w2", "0 0 -1"), 2.0), (turned, -2.0)):
        spec = read_model(put(WHEELS.format(wheels=wheel("w1", "0 0 1") + second), f"{turn}.urdf"))
        (gears,) = spec.constraints
        assert isinstance(gears, bb.Coupling) and gears.offset == 0.0
        assert gears.value({"w1_turn": 1.0, "w2_turn": turn}) == 0.0
    bare = WHEELS.replace("<axis><xyz>0 0 1</xyz></axis>", "")  # about the parent's hinge
    spec = read_model(
        put(bare.format(wheels=wheel("w1", "1 0 0") + wheel("w2", "-1 0 0")), "b.urdf")
    )
    (gears,) = spec.constraints
    assert isinstance(gears, bb.Coupling) and gears.value({"w1_turn": 1.0, "w2_turn": 2.0}) == 0.0
    mimic = wheel("w2", "0 0 1", '<mimic joint="w1_turn" multiplier="-2"/>')
    spec = read_model(put(WHEELS.format(wheels=wheel("w1", "0 0 1") + mimic)))
    assert any("'gears' is left out: 'w2_turn' is a mimic already" in note for note in spec.notes)
    assert [each.name for each in spec.constraints] != ["gears"] and len(spec.constraints) == 1


def test_links_for_gazebo_are_links_of_the_robot(put):
    """Two links in SDF's words on an arm, and as URDF's; one hangs on the child of its joint."""
    sdf = """<gazebo><link name="far"><pose relative_to="l0">0.5 0 0 0 0 0.3</pose><inertial>
    <pose>0.1 0.02 0 0 0 0</pose><mass>2</mass><inertia><ixx>0.01</ixx><iyy>0.02</iyy>
    <izz>0.025</izz><ixz>0.001</ixz><ixy>0</ixy><iyz>0</iyz></inertia></inertial></link>
    <link name="tip"><pose relative_to="far">0.2 0 0 0 0 0</pose><gravity>0</gravity><inertial>
    <mass>1</mass></inertial></link><link name="lost"/>
    <joint name="slide" type="prismatic"><parent>tip</parent><child>far</child>
    <axis><xyz>1 0 0</xyz></axis></joint><joint name="hinge" type="revolute"><parent>l0</parent>
    <child>far</child><pose>-0.3 0 0 0 0 0</pose><axis><xyz>0 2 0</xyz><limit><lower>-1</lower>
    <upper>2</upper></limit><dynamics><damping>0.3</damping><friction>0.1</friction>
    <spring_stiffness>4</spring_stiffness><spring_reference>0.2</spring_reference></dynamics>
    </axis></joint></gazebo></robot>"""
    x, y = float(0.5 - 0.3 * np.cos(0.3)), float(-0.3 * np.sin(0.3))
    joints = (
        f'<joint name="hinge" type="revolute"><origin xyz="{x!r} {y!r} 0" rpy="0 0 0.3"/><parent '
        'link="l0"/><child link="far"/><axis xyz="0 1 0"/><limit lower="-1" upper="2" effort="1" '
        'velocity="1"/></joint><joint name="slide" type="prismatic"><parent link="far"/><child '
        'link="tip"/><origin xyz="0.5 0 0"/><axis xyz="-1 0 0"/></joint></robot>'
    )
    far = INERTIAL.replace("0.1 0.02", "0.4 0.02").replace('mass value="1"', 'mass value="2"')
    one = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    off = '<gazebo reference="tip"><turnGravityOff>1</turnGravityOff></gazebo>'
    arm = chain("").removesuffix("</robot>")
    twin = f"{arm}{link('far', far)}{link('tip', one + '</inertial>')}{off}{joints}"
    ours, theirs = (read_model(put(x, f"{k}.urdf")) for k, x in enumerate((arm + sdf, twin)))
    assert any("links in <gazebo> are links of the robot: far, tip" in x for x in ours.notes)
    assert any("that no joint holds are left out: lost" in x for x in ours.notes)
    assert ours.forces == (JointForce("hinge", stiffness=4.0, rest=0.2, friction=0.1),)
    for found, known in zip(terms(ours), terms(theirs), strict=True):
        np.testing.assert_allclose(found, known, rtol=0.0, atol=1e-13)  # some hundred roundings
    hinge = UrdfTree(ours.bodies[0].urdf, read_xml(ours.bodies[0].urdf)).joints["hinge"]
    assert float(hinge.find("dynamics").get("damping")) == 0.3
    with pytest.raises(ModelError, match="link 'far' hangs on no fixed or .* ball joint"):
        read_model(put(arm + sdf.replace("revolute", "universal"), "u.urdf"))


def test_poses_for_gazebo_may_be_relative_to_other_links(put):
    """The same pin from both sides; universal joints and screws there."""
    robot = FOUR_BAR.replace("</robot>", "{}</robot>")
    joint = (
        '<gazebo><joint name="pin" type="{}"><parent>{}</parent><child>{}</child>{}</joint>'
        "</gazebo>"
    )
    axes = "<axis><xyz>0 1 0</xyz></axis><axis2><xyz>1 0 0</xyz></axis2>"
    pose, relative = (
        f"<pose{x}>1 0 0 0.3 0.1 0.2</pose>{axes}" for x in ("", ' relative_to="ground"')
    )
    pins = [
        read_model(put(robot.format(joint.format(*said)), f"{k}.urdf")).constraints[0]
        for k, said in enumerate(
            [
                ("universal", "rocker", "ground", pose),
                ("revolute2", "ground", "rocker", relative),
                ("screw", "rocker", "ground", f"{pose}<thread_pitch>-20</thread_pitch>"),
            ]
        )
    ]
    one, other, screw = pins
    assert (other.a, other.b) == (one.b, one.a)
    assert one.model is other.model is JointModel.UNIVERSAL
    assert (one.axis, one.axis_b) == ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    assert screw.model is JointModel.SCREW and screw.pitch == pytest.approx(2 * np.pi / 20)
    with pytest.raises(ModelError, match="x.urdf: <gazebo> joint 'pin': unknown frame 'nowhere'"):
        lost = relative.replace("ground", "nowhere")
        read_model(put(robot.format(joint.format("ball", "ground", "rocker", lost)), "x.urdf"))


def test_planar_joints_are_two_slides_and_a_turn(put):
    """Against Pinocchio's, which moves along x and y of the joint and turns about z."""
    pin = import_module("pinocchio")
    flat = joint("flat", "world", "l0", kind="planar").replace('"0 1 0"', '"0 0 1"')
    parts = (link("world", ""), link("l0"), link("l1"), flat, joint("arm", "l0", "l1"))
    path = put(f'<robot name="r">{"".join(parts)}</robot>')
    spec = read_model(path)
    assert any("'flat' is planar: two slides and a turn, 'flat_x'" in note for note in spec.notes)
    model = pin.buildModelFromUrdf(str(path))
    x, y, turn, arm = q = np.array([0.3, -0.7, 0.4, -0.9])
    M = pin.crba(
        model,
        model.createData(),
        np.array([x, y, np.cos(turn), np.sin(turn), np.cos(arm), np.sin(arm)]),
    )
    M = np.triu(M) + np.triu(M, 1).T
    R = np.eye(4)  # Pinocchio's rates of a planar joint are in its turned axes
    R[:2, :2] = [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]
    with load(spec) as loaded:
        loaded.system.set_state(q, np.zeros(4))
        np.testing.assert_allclose(loaded.system.terms().M, R.T @ M @ R, rtol=0.0, atol=1e-13)
    with pytest.raises(ModelError, match="'flat' needs joints and links .* 'flat_cross' is taken"):
        read_model(put(path.read_text().replace('"l1"', '"flat_cross"'), "b.urdf"))


def test_a_pose_in_which_joints_together_move_nothing_gets_a_trace(put):
    """A stretched double pendulum with all its mass at its end, a point: turned against each other,
    both joints leave that where it is. Against Pinocchio with the armature that is told."""
    pin = import_module("pinocchio")
    zero = '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
    none, point = (
        f'<inertial><origin xyz="0.3 0 0.1"/><mass value="{mass}"/>{zero}' for mass in (0, 1)
    )
    text = chain("", "").replace(link("l0"), link("l0", none))
    text = text.replace(link("l1"), link("l1", point)).replace('"0 0 0.2"', '"0 0 0"')
    model = pin.buildModelFromXML(text)
    own = pin.crba(model, model.createData(), pin.neutral(model))
    armature = 1e-6 * own[0, 0]
    with pytest.warns(
        BulletBridgeWarning, match="joint 'j1' .* no inertia of its own at the start"
    ):
        loaded = load(put(text), "new")
    with loaded:
        M = np.triu(own) + np.triu(own, 1).T + np.diag([0.0, armature])
        np.testing.assert_allclose(loaded.system.terms().M, M, rtol=1e-12, atol=0.0)
    flat = loaded.system.terms().M - np.diag([0.0, armature])
    with pytest.raises(ModelError, match="Here joints 'j0', 'j1' can move so .* armature"):
        whiten(flat - 1e-15 * np.eye(2), np.zeros((0, 2)), loaded.system.mechanism)


def test_springs_for_gazebo_act(put):
    spring = "<springStiffness>3</springStiffness><springReference>0.2</springReference>"
    said = (
        f'<gazebo reference="crank">{spring}</gazebo><gazebo reference="ground">{spring}</gazebo>'
    )
    spec = read_model(put(four_bar_with(said)), fixed_base=True)
    assert spec.forces == (JointForce("crank", stiffness=3.0, rest=0.2),)
    assert any("springs of ground, no joints with one axis" in x for x in spec.notes)
    with pytest.raises(ModelError, match="'crank'>: the stiffness of its spring is -3; give"):
        read_model(put(four_bar_with(said.replace(">3<", ">-3<")), "b.urdf"))


def test_armature_and_springs_of_dynamics_act(put, tmp_path) -> None:
    """As attributes, which others' exporters write, alone too, where Bullet has a word required."""
    said = '<dynamics armature="0.2" spring_stiffness="3" spring_reference="0.1"/>'
    path = put(chain(said, '<dynamics damping="0.4"/>'))
    spec = read_model(path)
    assert spec.joints["j0"].armature == 0.2 and set(spec.joints) == {"j0"}
    assert spec.forces == (JointForce("j0", stiffness=3.0, rest=0.1),)
    assert not any("not known" in note for note in spec.notes)
    with load(spec, "new") as ours, load(put(chain("", ""), "bare.urdf"), "new") as bare:
        more = ours.system.terms().M - bare.system.terms().M
        np.testing.assert_allclose(more, [[0.2, 0.0], [0.0, 0.0]], atol=1e-15)
    for to, ending in (("loops", "loops.yaml"), ("loop_joint", "urdf")):
        convert(spec, tmp_path / to, to)
        again = read_model(tmp_path / f"{to}.{ending}")
        assert again.joints["j0"].armature == 0.2 and again.forces[0].stiffness == 3.0
    for word in ("armature", "spring_stiffness"):
        with pytest.raises(ModelError, match="joint 'j0'.* -2"):
            read_model(put(chain(f'<dynamics {word}="-2"/>'), "bad.urdf"))


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ('<limits lower="-1" upper="1"/>', r"<limits> \(did you mean 'limit'\?\) in joint 'j0'"),
        (
            '<mimic joint="j1" multipler="2"/>',
            "multipler of <mimic> .*'multiplier'.* in joint 'j0'",
        ),
        ('<dynamics damping="1" K="7"/>', "K of <dynamics> in joint 'j0'"),
        ('<safety_controller k_velocity="1"/><drake:x/>', ""),
    ],
)
def test_words_of_joints_that_are_not_known_are_told(put, inside, told) -> None:
    text = chain(inside, "").replace("<robot ", '<robot xmlns:drake="http://drake.mit.edu" ')
    notes = [note for note in read_model(put(text)).notes if "not known" in note]
    assert bool(notes) == bool(told) and all(re.search(told, note) for note in notes)


def test_rates_that_decay_in_gazebo_are_told(put) -> None:
    said = "<dampingFactor>{}</dampingFactor>"
    for number, told in ((0.1, True), (0.0, False)):
        text = f'<gazebo reference="crank">{said.format(number)}</gazebo>'
        notes = read_model(put(four_bar_with(text), f"{told}.urdf")).notes
        assert any("<dampingFactor> of crank: rates" in note for note in notes) == told


def test_actuated_joints_that_are_coupled_become_mimics(put, tmp_path):
    """Rather one without a drive, and one behind the other where both ends have a joint already."""
    put(FOUR_BAR, "four_bar.urdf")
    gears = "".join(
        f"  - {{name: g_{b}, type: gear, joints: {{{a}: 1.0, {b}: -2.0}}, offset: 0.1}}\n"
        for a, b in (("crank", "coupler"), ("coupler", "rocker"))
    )
    head = "bulletbridge: 1\nurdf: four_bar.urdf\nfixed_base: true\nactuated: [crank, coupler]\n"
    file = put(f"{head}loops:\n{gears}", "geared.loops.yaml")
    done = convert(file, tmp_path / "copy", "loop_joint")
    assert any(
        "'coupler' mimics 'crank' and is not listed" in n or "'crank'" in n for n in done.notes
    )
    found, known = read_model(done.files[0]).constraints, read_loops(file).constraints
    names = ("crank", "coupler", "rocker")
    rows = [[each.coefficients.get(n, 0.0) for n in names] + [each.offset] for each in found]
    others = [[each.coefficients.get(n, 0.0) for n in names] + [each.offset] for each in known]
    assert np.linalg.matrix_rank(np.array(rows + others), tol=1e-12) == len(rows) == 2


def test_gepettos_file_names_frames_by_link_or_joint(put):
    frames = "".join(
        f'<link name="tip_{n}"/><joint name="{n}_frame" type="fixed"><parent link="{on}"/>'
        f'<child link="tip_{n}"/><origin xyz="{x} 0 0"/></joint>'
        for n, on, x in (("a", "rocker", 0.7), ("b", "ground", 1.0))
    )
    path = put(four_bar_with(frames))
    put("closed_loop: [[a_frame, tip_b]]\ntype: ['3D']\nname_mot: [crank]\n", "robot.yaml")
    spec = read_model(path)
    assert any("the base is held, as Gepetto's loader has it" in note for note in spec.notes)
    assert spec.actuated == ("crank",)
    assert_same(spec, replace(read_loops(find("four_bar")), start_q={}))
    put("closed_loop: [[a_frame, tip_c]]\ntype: ['3d']\n", "robot.yaml")
    with pytest.raises(LoopFileError, match=r"robot\.yaml:1:25: .*did you mean 'tip_b'"):
        read_model(path)


def test_gepettos_file_retypes_joints(put):
    path = put(chain("", "", ""))
    put("joint_name: [j0, j1, j2]\njoint_type: [SPHERICAL, UJOINT_XZ, FIXED]\n", "robot.yaml")
    with pytest.warns(BulletBridgeWarning, match="two hinges"), load(path) as loaded:
        kinds = {name: one.kind for name, one in loaded.system.mechanism.joints.items()}
        assert kinds == {"j0": "spherical", "j1_x": "revolute", "j1_z": "revolute"}
        loaded.system.run(0.2)
    # the cross weighs nothing: the arm as a body on two hinges, whatever their order is made of
    assert loaded.system.dof == 5


def test_what_gepettos_loader_passes_over_is_told(put):
    """It goes through the joints that move, and takes every type but 3d for 6d."""
    text = chain("", "", "").replace('name="j2" type="continuous"', 'name="j2" type="fixed"')
    path = put(text)
    put(
        "closed_loop: [[j0, j2]]\ntype: planar\nname_mot: [j1, j11, j0]\n"
        "joint_name: [j0, j2, gone]\njoint_type: [SPHERICAL, SPHERICAL, UJOINT_XY]\n",
        "robot.yaml",
    )
    spec = read_model(path)
    (weld,) = spec.constraints
    assert isinstance(weld, LoopJoint) and weld.model is JointModel.WELD
    said = " ".join(spec.notes)
    assert "loops of type 'planar' are 6d" in said
    assert "'joint_name' of robot.yaml" in said and ": j2, gone" in said
    assert "'name_mot' of robot.yaml" in said and ": j11, j0; did you mean 'j1'?" in said
    assert spec.actuated == ("j1",)
    with load(replace(spec, constraints=())) as loaded:
        kinds = {name: one.kind for name, one in loaded.system.mechanism.joints.items()}
    assert kinds == {"j0": "spherical", "j1": "revolute"}


@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
@pytest.mark.parametrize("tag", ["drake:joint", "joint"])
def test_ball_and_universal_joints_are_damped_about_each_axis(put, tag):
    """With Drake's prefix or, as people write them, without; turns about x, then about y."""
    head = '<robot name="arm" xmlns:drake="https://drake.mit.edu">'
    links = link("world", "") + link("upper") + link("lower")
    loss = '<dynamics damping="0.5"/>'
    ball = joint("j0", "world", "upper", loss, "ball")
    universal = joint("j1", "upper", "lower", loss, "universal")
    plain = (ball + universal).replace('<axis xyz="0 1 0"/>', "")
    given = re.sub(r"(</?)joint\b", rf"\1{tag}", ball + universal if ":" in tag else plain)
    text = f"{head}{links}{given}</robot>"
    with load(put(text)) as loaded:
        system = loaded.system
        kinds = {name: one.kind for name, one in system.mechanism.joints.items()}
        assert kinds == {"j0": "spherical", "j1_x": "revolute", "j1_y": "revolute"}
        rates = np.array((0.3, -0.2, 0.5, 1.0, -0.7))
        system.set_state(system.q, rates)
        np.testing.assert_allclose(system.terms().forces, -0.5 * rates, rtol=0.0, atol=1e-15)
    assert loaded.spec.notes == ("joint 'j1' is universal: two hinges, 'j1_x' and 'j1_y'",)
    with pytest.raises(ModelError, match="'j1' is universal and has an axis; it turns about x, "):
        read_model(put(head + links + ball + universal + "</robot>"))


@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
def test_screws_and_planar_joints_in_drakes_words_lose_what_theirs_do(put):
    """A nut of 1 kg goes by its pitch a turn, and dampers act on what Drake has them act on."""
    pitch, turned = 0.05, 0.7
    thread = f'<dynamics damping="0.4"/><drake:screw_thread_pitch value="{pitch}"/>'
    flat = '<dynamics damping="0.1 0.2 0.3"/>'
    text = (
        '<robot name="press" xmlns:drake="https://drake.mit.edu">'
        + (link("world", "") + link("nut") + link("plate"))
        + joint("screw", "world", "nut", thread, "screw")
        + joint("flat", "nut", "plate", flat, "planar")
    )
    text = re.sub(r"(</?)joint\b", r"\1drake:joint", text) + "</robot>"
    with load(put(text)) as loaded:
        system = loaded.system
        _, before = system.link_pose("nut")
        system.assemble({"screw": turned}, {"screw": 1.0, "flat_x": 1.0, "flat_turn": 1.0})
        way = system.link_pose("nut")[1] - before
        axis = np.array((0.0, 1.0, 0.0)) @ rpy_matrix((0.0, 0.0, 0.2)).T
        np.testing.assert_allclose(way, pitch * turned / (2.0 * np.pi) * axis, rtol=0, atol=1e-12)
        lost = {
            name: system.terms().forces[one.v][0] for name, one in system.mechanism.joints.items()
        }
    lost = {name: x for name, x in lost.items() if abs(x) > 1e-15}
    assert lost == pytest.approx({"screw": -0.4, "flat_x": -0.1, "flat_turn": -0.3}, rel=1e-14)
    with pytest.raises(ModelError, match="'screw' is a screw without <drake:screw_thread_pitch"):
        read_model(put(text.replace(f'value="{pitch}"', "")))


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("ball", JointModel.BALL),
        ("drake:ball", JointModel.BALL),
        ("drake:universal", JointModel.UNIVERSAL),
    ],
)
def test_balls_and_universal_joints_whose_child_has_a_parent_are_loops(put, kind, model):
    prefix, _, kind = kind.rpartition(":")
    tag = f"{prefix}:joint" if prefix else "joint"
    closing = (
        f'<{tag} name="pin" type="{kind}"><parent link="rocker"/><child link="ground"/>'
        f'<origin xyz="0.7 0 0"/></{tag}></robot>'
    )
    head = '<robot xmlns:drake="https://drake.mit.edu" '
    text = FOUR_BAR.replace("<robot ", head).replace("</robot>", closing)
    (loop,) = read_model(put(text)).constraints
    assert isinstance(loop, LoopJoint) and loop.model is model and loop.name == "pin"
    assert (loop.a.link, loop.a.xyz, loop.b.link) == ("rocker", (0.7, 0.0, 0.0), "ground")
    if model is JointModel.UNIVERSAL:  # turns about x, then about y
        assert (loop.axis, loop.axis_b) == ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


def test_older_files_of_gepetto_name_loops_and_spherical_joints_by_a_word(put):
    tips = "".join(
        f'<link name="closing1_{n}"/><joint name="closing1_{n}_frame" type="fixed">'
        f'<parent link="{on}"/><child link="closing1_{n}"/><origin xyz="{x} 0 0"/></joint>'
        for n, on, x in (("A", "rocker", 0.7), ("B", "ground", 1.0))
    )
    path = put(four_bar_with(tips), "another_name.urdf")
    put(
        "name_mot: cra\nname_closedloop: closing\nclosed_loop_number: 1\ntype: '3D'\nLidmot: [0]\n",
        "robot.yaml",
    )
    spec = read_model(path)
    assert spec.actuated == ("crank",)
    assert any("left out of robot.yaml, for it is not known: Lidmot" in x for x in spec.notes)
    assert_same(spec, replace(read_loops(find("four_bar")), start_q={}))
    put("closed_loop: [[closing1_A, closing1_B]]\nrotule_name: coup\n", "robot.yaml")
    spec = read_model(path)
    (weld,) = spec.constraints
    assert weld.model is JointModel.WELD and any("gives no 'type'" in x for x in spec.notes)
    with load(replace(spec, constraints=())) as loaded:
        assert loaded.system.mechanism.joints["coupler"].kind == "spherical"
    put("closed_lop: []\nrotule_name: coup\n", "robot.yaml")
    with pytest.raises(LoopFileError, match="did you mean 'closed_loop'"):
        read_model(path)


def test_scikit_robots_closures_are_hinges_in_the_roots_frame(put):
    path = put(four_bar_with(""))
    with load(read_model(path), fixed_base=True) as loaded:
        mechanism = loaded.system.mechanism
        assert mechanism.nv == 9  # no loops
    put(
        "closures:\n- {link_a: rocker, link_b: ground, point: [1, 0, 0], axis: [0, 1, 0]}\n"
        "independent: [crank]\ndependent: [coupler, rocker]\n",
        "loop_closures.yaml",
    )
    spec = read_model(path, fixed_base=True)
    (hinge,) = spec.constraints
    assert hinge.model is JointModel.REVOLUTE and spec.actuated == ("crank",)
    with load(spec) as loaded:
        assert loaded.system.dof == 1
        assert max(gap.metres for gap in loaded.system.evaluate().gaps) < 1e-12


def test_closures_by_points_of_both_links_are_balls_and_pins(put, capfd):
    path = put(four_bar_with(""))
    at = "parent: rocker, parent_xyz: [0.7, 0, 0], child: ground, child_xyz: [1, 0, 0]"
    more = "actuated_joints: [crank, knee_actuator]\nball_limit_deg: 15.0\n"
    put(f"pin_loops: [{{name: pin, {at}, axis: [0, 1, 0]}}]\n{more}", "loop_closures.yaml")
    spec = read_model(path, fixed_base=True)
    (pin,) = spec.constraints
    assert (pin.name, pin.model) == ("pin", JointModel.REVOLUTE) and spec.actuated == ("crank",)
    assert any("ball_limit_deg" in x for x in spec.notes)
    assert any("knee_actuator" in x for x in spec.notes)
    put(f"ball_loops: [{{name: pin, {at}}}]\nball_upgrades: [coupler]\n", "loop_closures.yaml")
    spec = read_model(path, fixed_base=True)
    (ball,) = spec.constraints
    assert ball.model is JointModel.BALL
    with load(spec) as loaded:
        assert loaded.system.mechanism.joints["coupler"].kind == "spherical"
        assert max(gap.metres for gap in loaded.system.evaluate().gaps) < 1e-12
    assert "no axis" not in "".join(capfd.readouterr())  # Bullet's warning
    put("ball_loop: []\n", "loop_closures.yaml")
    with pytest.raises(LoopFileError, match="did you mean 'ball_loops'"):
        read_model(path)


def test_mimics_are_couplings_with_chains_resolved(put):
    path = put(
        chain(
            "",
            '<mimic joint="j0" multiplier="-2" offset="0.3"/>',
            '<mimic joint="j1" multiplier="0.5" offset="0.1"/>',
        )
    )
    spec = read_model(path)
    assert spec.notes == ()  # the root is called world
    assert spec.constraints == (
        Coupling("j1_mimic", {"j1": 1.0, "j0": 2.0}, 0.3),
        Coupling("j2_mimic", {"j2": 1.0, "j0": 1.0}, 0.25),
    )
    assert spec.start_guess == {"j1": 0.3, "j2": 0.25}
    with load(spec) as loaded:
        system = loaded.system
        assert loaded.assembly.iterations == 0  # it starts where the followers belong
        system.run(2.0)
        q = system.q
        assert abs(q[1] - (0.3 - 2.0 * q[0])) < 1e-13
        assert abs(q[2] - (0.25 - q[0])) < 1e-13
        assert system.dof == 1


def test_limits_that_end_each_others_range_are_told(put):
    limit = '<limit lower="{}" upper="{}" effort="1" velocity="1"/>'
    path = put(chain(limit.format(0.2, 0.8), '<mimic joint="j0"/>' + limit.format(0, 0.5)))
    spec = read_model(path)
    assert "range takes it from 0.2 to 0.8, but its own limits are 0 to 0.5" in spec.notes[0]
    assert spec.start_guess == {"j0": 0.2, "j1": 0.2}
    wide = chain(limit.format(0.2, 0.8), '<mimic joint="j0"/>' + limit.format(0, 1.5))
    assert read_model(put(wide)).notes == ()


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ('<mimic joint="j0"/>', "", r"in a circle: j0 -> j0"),
        ('<mimic joint="j1"/>', '<mimic joint="j0"/>', r"in a circle: j0 -> j1 -> j0"),
        ('<mimic joint="j1" multiplier="two"/>', "", r'multiplier="two"; give a number'),
    ],
)
def test_mimics_that_lead_nowhere_are_named(put, first, second, message):
    with pytest.raises(ModelError, match=message):
        read_model(put(chain(first, second)))


def test_mimics_of_ros2_control_couple_as_those_of_joints(put, tmp_path):
    """Its parameters, as grippers have them that are driven by ros2_control alone."""
    control = (
        '<ros2_control><joint name="j0"><command_interface name="position"/></joint>'
        '<joint name="j1"><param name="mimic">j0</param><param name="multiplier">-2</param>'
        '<param name="offset"> 0.1 </param><command_interface name="position"/></joint>'
        "</ros2_control></robot>"
    )
    bare = chain("", "").replace("</robot>", control)
    spec = read_model(put(bare), fixed_base=True)
    assert spec.constraints == (Coupling("j1_mimic", {"j1": 1.0, "j0": 2.0}, 0.1),)
    assert spec.actuated == ("j0",)
    own = chain("", '<mimic joint="j0" multiplier="3"/>').replace("</robot>", control)
    (coupling,) = read_model(put(own), fixed_base=True).constraints
    assert coupling == Coupling("j1_mimic", {"j1": 1.0, "j0": -3.0}, 0.0)  # the joint's own counts
    done = convert(put(bare), tmp_path / "written", to="loop_joint")
    assert read_model(done.files[0], fixed_base=True).constraints == spec.constraints  # once


@pytest.mark.parametrize(
    ("said", "offset"),
    [
        ('<mimic joint="j0" multiplier="-2" offset="0.1"/>', 0.1),
        ('<mimic joint="j0"><multiplier>-2</multiplier><offset>0.1</offset></mimic>', 0.1),
        (
            '<axis><mimic joint="j0"><multiplier> -2 </multiplier><offset>0.1</offset>'
            "<reference>0.25</reference></mimic></axis>",
            0.6,
        ),
    ],
)
def test_mimics_for_gazebo_couple_as_those_of_joints(put, tmp_path, said, offset):
    """In URDF's words or SDF's: multiplier * (position - reference) + offset."""
    gazebo = f'<gazebo reference="j1">{said}</gazebo></robot>'
    bare = chain("", "").replace("</robot>", gazebo)
    spec = read_model(put(bare), fixed_base=True)
    assert spec.constraints == (Coupling("j1_mimic", {"j1": 1.0, "j0": 2.0}, offset),)
    own = chain("", '<mimic joint="j0" multiplier="3"/>').replace("</robot>", gazebo)
    (coupling,) = read_model(put(own), fixed_base=True).constraints
    assert coupling == Coupling("j1_mimic", {"j1": 1.0, "j0": -3.0}, 0.0)  # the joint's own counts
    done = convert(put(bare), tmp_path / "written", to="loop_joint")
    assert read_model(done.files[0], fixed_base=True).constraints == spec.constraints  # once
    assert done.files[0].read_text().count("<mimic") == 1


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            '<mujoco><compiler discardvisual="true"/><equality><joint joint1="j1" joint2="j0"/>'
            '</equality><actuator><motor joint="j0"/></actuator></mujoco>',
            "MuJoCo leaves it out of a URDF: <equality>, <actuator> in <mujoco>",
        ),
        ('<mujoco><option gravity="0 0 -3"/></mujoco>', 'gravity="0 0 -3" in <mujoco> is left out'),
    ],
)
def test_what_other_simulators_are_told_alone_is_noted(put, more, told):
    """What would move the robot otherwise; what would not, is not."""
    text = chain("", "").replace("</robot>", f"{more}</robot>")
    (note,) = read_model(put(text)).notes
    assert told in note
    harmless = '<gazebo reference="l0"><kinematic>0</kinematic></gazebo><mujoco><size/></mujoco>'
    assert read_model(put(chain("").replace("</robot>", f"{harmless}</robot>"))).notes == ()


def test_mujoco_reads_no_equality_in_a_urdf(put):
    """On which the note above rests; it does read a mimic."""
    mujoco = pytest.importorskip("mujoco")
    more = '<mujoco><equality><joint joint1="j1" joint2="j0"/></equality></mujoco></robot>'
    path = put(chain("", "").replace("</robot>", more))
    assert mujoco.MjModel.from_xml_path(str(path)).neq == 0
    path = put(chain("", '<mimic joint="j0"/>'))
    assert mujoco.MjModel.from_xml_path(str(path)).neq == 1


@pytest.mark.parametrize("said", ["false", "False", "true"])
def test_ros2_control_takes_a_mimic_back(put, said):
    """Its attribute mimic="false": the joint has a drive of its own, and follows none."""
    control = (
        f'<ros2_control><joint name="j1" mimic="{said}"><command_interface name="position"/>'
        "</joint></ros2_control></robot>"
    )
    spec = read_model(put(chain("", '<mimic joint="j0"/>').replace("</robot>", control)))
    alone = said.lower() == "false"
    assert len(spec.constraints) == (0 if alone else 1)
    assert spec.actuated == (("j1",) if alone else ())
    assert any("'j1' has a <mimic>, which mimic=" in note for note in spec.notes) == alone


def test_ros2_control_says_where_joints_start(put):
    """Within limits, and with what mimics them; a loop is closed from there, in the same branch."""
    state = (
        '<joint name="{}"><state_interface name="velocity"><param name="initial_value">9</param>'
        '</state_interface><state_interface name="position"><param name="initial_value"> {} '
        "</param></state_interface></joint>"
    )
    limit = '<limit lower="-0.5" upper="0.5" effort="1" velocity="1"/>'
    control = f"<ros2_control>{state.format('j0', -0.7)}{state.format('j2', 0.25)}</ros2_control>"
    text = chain(limit, '<mimic joint="j2" multiplier="2" offset="0.1"/>', "", "")
    spec = read_model(put(text.replace("</robot>", f"{control}</robot>")))
    assert spec.start_guess == {"j0": -0.5, "j2": 0.25, "j1": 0.6}
    assert any("as <ros2_control> has it, within limits: j0 at -0.7" in n for n in spec.notes)
    with pytest.raises(
        ModelError, match="'j0' in <ros2_control> has an initial_value 'half'; give"
    ):
        read_model(put(text.replace("</robot>", f"{control}</robot>").replace(" -0.7 ", "half")))


def test_static_robots_of_gazebo_are_held(put):
    free = chain("", "", root="trunk").replace("</robot>", "<gazebo>{}</gazebo></robot>")
    for said, held in (("<static>true</static>", True), ("<static>0</static>", False), ("", False)):
        spec = read_model(put(free.format(said)))
        assert spec.bodies[0].fixed_base is held
        assert any("the base is held: <gazebo> has <static>" in n for n in spec.notes) == held


def test_kinematic_bases_of_gazebo_are_held(put):
    """As a link that is fixed to one is; a link that moves on a joint is told and moves."""
    free = chain("", "", root="trunk").replace("</robot>", link("cap") + "{}</robot>")
    free = free.replace("{}", joint("glue", "trunk", "cap", kind="fixed") + "{}")
    for name, held in (("trunk", True), ("cap", True), ("l0", False)):
        said = f'<gazebo reference="{name}"><kinematic>true</kinematic></gazebo>'
        spec = read_model(put(free.format(said)))
        assert spec.bodies[0].fixed_base is held
        assert ("the base is held: <gazebo> has it <kinematic>" in spec.notes) == held
        told = "<kinematic> of l0 in <gazebo> is left out: forces move what it names"
        assert (told in spec.notes) != held
    assert not read_model(put(free.format(""))).bodies[0].fixed_base


def test_plugins_that_couple_joints_couple_or_are_told(put):
    """``joint`` leads in all plugins called mimic_joint; a mimic of the file's own counts first."""
    plugin = (
        "<gazebo><plugin><joint>j0</joint><mimicJoint>j1</mimicJoint><multiplier>-2</multiplier>"
        "<offset>0.1</offset></plugin></gazebo></robot>"
    )
    said = "a Gazebo plugin couples 'j0' and 'j1' and is left out: give the joint that follows a"
    spec = read_model(put(chain("", "").replace("</robot>", plugin)), fixed_base=True)
    assert spec.constraints == () and any(said in note for note in spec.notes)
    known = chain("", '<mimic joint="j0"/>').replace("</robot>", plugin)
    assert not any("Gazebo plugin" in note for note in read_model(put(known)).notes)
    named = plugin.replace("<plugin>", '<plugin filename="libgroup_gazebo_mimic_joint_plugin.so">')
    spec = read_model(put(chain("", "").replace("</robot>", named)), fixed_base=True)
    assert spec.constraints == (Coupling("j1_mimic", {"j1": 1.0, "j0": 2.0}, 0.1),)
    assert any("'j1' follow as Gazebo's plugin mimic_joint" in note for note in spec.notes)
    cobs = named.replace("mimicJoint>j1", "jointName>j1").replace("</mimicJoint>", "</jointName>")
    cobs = cobs.replace("<joint>j0</joint>", "<mimicJoint>j0</mimicJoint>")  # Care-O-bot's words
    turned = read_model(put(chain("", "").replace("</robot>", cobs)), fixed_base=True)
    assert turned.constraints == spec.constraints
    for own in (chain("", '<mimic joint="j0"/>'), chain('<mimic joint="j1"/>', "")):
        (coupling,) = read_model(put(own.replace("</robot>", named))).constraints
        assert isinstance(coupling, Coupling) and sorted(coupling.coefficients.values()) == [-1, 1]


OFF = "<turnGravityOff>true</turnGravityOff>"


@pytest.mark.parametrize(
    "off", [OFF, "<gravity> 0 </gravity>", f'{OFF}</gazebo><gazebo reference="l0">{OFF}']
)
def test_links_that_gazebo_turns_gravity_off_for_have_no_weight(put, off):
    """An arm of one such link hangs wherever it is left; on another link it weighs nothing."""
    light = f'<gazebo reference="l0">{off}</gazebo></robot>'
    spec = read_model(put(chain("").replace("</robot>", light)))
    assert "gravity does not act on l0: forces take their weight (wrenches)" in spec.notes
    with load(replace(spec, notes=()), "new") as model:
        model.system.set_state([0.3], [0.0])
        model.system.run(0.5)
        assert model.system.q == pytest.approx([0.3], abs=1e-12)
        assert model.system.evaluate().kinetic < 1e-20
        done = convert(model.spec, spec.path.parent / "light", "loop_joint")
    assert not any("wrench" in note for note in done.notes)
    assert read_model(done.files[0]).wrenches == spec.wrenches
    other = read_model(put(chain("").replace("</robot>", light.replace("true", "false"))))
    assert bool(other.wrenches) == ("turn" not in off)


def test_what_stands_on_a_held_base_needs_no_force_against_gravity(put):
    """Links that are one body with it, by the file or by what is asked; one that moves has one."""
    flags = "".join(f'<gazebo reference="{name}">{OFF}</gazebo>' for name in ("foot", "l0", "tip"))
    more = link("foot") + link("tip") + joint("tip_to_l0", "l0", "tip", kind="fixed")
    for root in ("world", "stand"):
        text = chain("", root=root) + more + joint("foot_to", root, "foot", kind="fixed")
        path = put(text.replace("</robot>", "") + flags + "</robot>")
        with load(replace(read_model(path, fixed_base=True), notes=()), "new") as model:
            assert [each.frame.link for each in model.spec.wrenches] == ["l0", "tip"]
            model.system.set_state([0.3], [0.0])
            model.system.run(0.2)
            assert model.system.q == pytest.approx([0.3], abs=1e-12)
    assert "foot" in [each.frame.link for each in read_model(path, fixed_base=False).wrenches]


def test_a_plugin_that_hinges_two_links_closes_a_planar_loop(put):
    """Its axis is compiled into it; a ball moves a planar linkage as the hinge does."""
    text = drawn_closed(put)
    ends = "<parent>rocker</parent><child>ground</child>"
    hinge = (
        f"<gazebo><joint name='pin' type='revolute'>{ends}<pose>1 0 0 0 0 0</pose>"
        "<axis><xyz>0 1 0</xyz></axis></joint></gazebo>"
    )
    plugin = (
        "<gazebo><plugin name='p' filename='libpegasus_gazebo_closed_loop_plugin.so'>"
        f"<joint>pin</joint>{ends}<position>1 0 0</position><rotation>0 0 0</rotation>"
        "</plugin></gazebo>"
    )
    found: list[list[float]] = []
    for more in (hinge, plugin):
        path = put(text.replace("</robot>", f"{more}</robot>"), f"{len(found)}.urdf")
        with load(read_model(path, fixed_base=True)) as loaded:
            loaded.system.run(0.3)
            assert loaded.system.dof == 1
            found.append(loaded.system.q.tolist())
    assert found[1] == pytest.approx(found[0], abs=1e-11)
    (said,) = (note for note in loaded.spec.notes if "plugin" in note)
    assert "hinges 'ground' to 'rocker' about an axis that is not in the file: a ball" in said


@pytest.mark.parametrize(
    "said",
    [
        "<joint name='pin' type='revolute'>{ends}<pose>1 0 0 0 0 0</pose>"
        "<axis><xyz>0 1 0</xyz></axis></joint>",
        "<plugin name='p' filename='libpegasus_gazebo_closed_loop_plugin.so'>"
        "<joint>pin</joint>{ends}<position>1 0 0</position></plugin>",
    ],
)
def test_loops_of_gazebo_are_written_once(put, tmp_path, said):
    """As <loop_joint>, not there and in <gazebo>, which closed them twice in what was converted."""
    pin = said.format(ends="<parent>rocker</parent><child>ground</child>")
    end = f"<gazebo>{pin}</gazebo></robot>"
    path = put(drawn_closed(put).replace("</robot>", end), "b.urdf")
    before = read_model(path, fixed_base=True)
    (file,) = convert(path, tmp_path / "written", "loop_joint", fixed_base=True).files
    after = read_model(file)
    assert [c.name for c in before.constraints] == [c.name for c in after.constraints] == ["pin"]


def test_plugins_that_close_loops_are_told(put):
    """Their axes are compiled into them, so that the loop cannot be read from the file."""
    plugin = (
        "<gazebo><plugin><joint>{}</joint><parent>l0</parent><child>l1</child></plugin></gazebo>"
        "</robot>"
    )
    told = "a Gazebo plugin joins 'l0' and 'l1' by 'closing', and is left out, for how is not in"
    text = chain("", "")
    notes = read_model(put(text.replace("</robot>", plugin.format("closing")))).notes
    assert any(told in note for note in notes)
    notes = read_model(put(text.replace("</robot>", plugin.format("j1")))).notes
    assert not any("Gazebo plugin" in note for note in notes)


def test_mimics_without_a_leader_are_told_and_stop_no_robot(put):
    text = chain('<mimic joint="j9"/>', '<mimic joint="held" multiplier="3" offset="0.2"/>')
    text = text.replace("</robot>", link("tip") + joint("held", "l1", "tip", kind="fixed"))
    spec = read_model(put(text + "</robot>"))
    free, held = spec.notes
    assert "'j0' mimics 'j9', which is no joint: it moves freely; did you mean 'j1'?" in free
    assert "'j1' mimics 'held', which is fixed: it stays at its offset" in held
    assert spec.constraints == (Coupling("j1_mimic", {"j1": 1.0}, 0.2),)
    with load(spec) as loaded:
        loaded.system.run(0.5)
        assert loaded.system.dof == 1 and abs(loaded.system.q[1] - 0.2) < 1e-13


def test_mimics_that_lost_a_prefix_are_told_the_leader_of_their_own_side(put):
    """Where two hands are put together, names get a prefix and those in <mimic> do not."""
    hands = [link("base")]
    for side in ("Left", "Right"):
        hands += [link(f"{side}_a"), joint(f"{side}_q1", "base", f"{side}_a")]
        mimic = '<mimic joint="q1"/>'
        hands += [link(f"{side}_b"), joint(f"{side}_q2", f"{side}_a", f"{side}_b", mimic)]
    told = read_model(put(f"<robot>{''.join(hands)}</robot>")).notes
    for side in ("Left", "Right"):
        lost = f"'{side}_q2' mimics 'q1', which is no joint: it moves freely; did you mean"
        assert any(f"{lost} '{side}_q1'?" in each for each in told)


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ('<loop_joint name="p" type="bal"/>', "type 'bal'; known are fixed, revolute"),
        ('<loop_joint type="fixed"/>', "has no name"),
        ('<loop_joint name="p" type="fixed"><link1 link="l0"/></loop_joint>', "has 1 of <link1>"),
        (
            '<loop_joint name="p" type="fixed"><link1 link="l0"/><link2 link="l8"/></loop_joint>',
            "names the link 'l8', which does not exist",
        ),
        (
            '<loop_joint name="p" type="universal"><link1 link="l0"/><link2 link="l1"/>'
            "</loop_joint>",
            "universal and has one axis",
        ),
        ("<drake:ball_constraint/>", "lacks <drake:ball_constraint_body_A>"),
        ("<drake:tendon_constraint/>", "names no joint"),
        (
            '<drake:joint name="s" type="curvilinear"/>',
            "type 'curvilinear'; read are ball, universal, planar, screw",
        ),
        ('<xacro:include filename="a"/>', "declare xmlns:xacro="),
    ],
)
def test_elements_that_cannot_be_read_are_named(put, element, message):
    text = chain("", "").replace("</robot>", f"{element}</robot>")
    with pytest.raises(ModelError, match=re.escape(message)):
        read_model(put(text))


def test_a_robot_may_be_given_as_its_text(put, monkeypatch, tmp_path):
    """The same as that in a file, which may also be named from the home folder."""
    loop = '<loop_joint name="p" type="fixed"><link1 link="l0"/><link2 link="world"/></loop_joint>'
    text = chain("").replace("</robot>", f"{loop}</robot>")
    of_file, of_text = read_model(put(text)), read_model(f"\n{text}")
    assert of_text.constraints == of_file.constraints != ()
    assert of_text.name == "chain"
    assert of_text.bodies[0].urdf.read_text() == of_file.bodies[0].urdf.read_text()
    monkeypatch.setenv("HOME", str(tmp_path))
    put(text, "here.urdf")
    assert read_model("~/here.urdf").constraints == of_file.constraints
    for wrong in (3, None, b"arm.urdf", ["arm.urdf"]):
        with pytest.raises(ModelError, match="give a bundled name, the path of a robot's file, or"):
            read_model(wrong)


def test_entities_and_foreign_roots_are_refused(put):
    bomb = '<!DOCTYPE robot [<!ENTITY a "b">]>' + chain("")
    with pytest.raises(ModelError, match="declares the entity 'a'"):
        read_model(put(bomb))
    with pytest.raises(ModelError, match="part that MJCF files include; load the one that"):
        read_model(put("<mujocoinclude/>", "part.xml"))
    with pytest.raises(ModelError, match="begins with <svg>, which is no robot; known are <robot>"):
        read_model(put("<svg/>", "picture.svg"))


def test_a_loops_file_names_a_robot_whose_meshes_are_missing(put, tmp_path):
    """Written by hand beside a robot and scenery without their meshes, of a package renamed."""
    put("solid x\nendsolid x\n", "my clone/meshes/a.stl")
    gone, there = (
        f'<visual><geometry><mesh filename="package://robot/meshes/{name}.stl"/></geometry></visual>'
        for name in ("gone", "a")
    )
    text = four_bar_with("").replace('<link name="crank">', f'<link name="crank">{gone}{there}')
    put(text, "my clone/urdf/r.urdf")
    loops = "bulletbridge: 1\nurdf: r.urdf\nfixed_base: true\nloops:\n  - {name: pin, type: ball,"
    loops += " a: {link: rocker, xyz: [0.7, 0, 0]}, b: {link: ground, xyz: [1, 0, 0]}}\n"
    loops += "scenery:\n  - {name: table, urdf: table.urdf}\n"
    put(loops, "my clone/urdf/r.loops.yaml")
    put(
        f'<robot name="t"><link name="top">{gone}{there}</link></robot>', "my clone/urdf/table.urdf"
    )
    with pytest.warns(
        BulletBridgeWarning,
        match=r"r\.urdf: mesh 'package://robot/meshes/gone\.stl'.*table\.urdf: mesh",
    ):
        loaded = load(tmp_path / "my clone/urdf/r.urdf", "new")
    with loaded:
        kept = pybullet.getVisualShapeData(loaded.ids["robot"], physicsClientId=loaded.client)
        assert any("my clone/meshes/a.stl" in str(shape[4]) for shape in kept)
        assert list(loaded.scenery) == ["table"]
        for _ in range(20):
            loaded.system.step()
        assert loaded.system.evaluate().gaps[0].metres < 1e-12  # the promise


def test_robots_of_loops_files_are_mended_as_those_without(put):
    """What Bullet refuses, or takes for something else, is the same robot as written well."""
    loops = "bulletbridge: 1\nurdf: r.urdf\nfixed_base: true\nloops:\n  - {name: pin, type: ball,"
    loops += " a: {link: rocker, xyz: [0.7, 0, 0]}, b: {link: ground, xyz: [1, 0, 0]}}\n"
    well = four_bar_with("")
    assert well.count('<axis xyz="0 -1 0"/>') == 3
    badly = well.replace('<axis xyz="0 -1 0"/>', '<axis xyz="0 -3 0"/>', 1)
    badly = badly.replace('type="continuous"', 'type="revolute"', 1)
    badly = badly.replace('<axis xyz="0 -1 0"/>', '<axis xyz="0, -1, 0"/>')
    found = []
    for text, encoding in ((well, "utf-8"), (badly, "utf-16")):
        put("", "r.urdf").write_bytes(text.encode(encoding))
        spec = read_model(put(loops, "r.loops.yaml"))
        told = "; ".join(spec.notes)
        with load(spec, "new") as model:
            found.append((model.system.terms().M, model.system.q))
            assert not model.system.mechanism.axes["limited"].any()
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert "r.urdf: joints with no <limit>, which Bullet refuses" in told
    assert "have not length 1" in told and 'taken as "0 -1 0"' in told


def test_attributes_need_no_blank_between(put):
    """As for Bullet, and MuJoCo."""
    text = chain("").replace('<mass value="1"/>', '<mass value="1"unit="a=&quot;b"/>')
    loose = text.replace('name="l0">', 'name="l0"kind="x">').replace('"j0" type', '"j0"type')
    assert loose != text
    assert read_model(put(loose)).bodies[0].urdf.name == "robot.urdf"


def test_parts_that_stand_in_no_link_or_joint_are_told(put):
    """As behind a link that is closed too early, which then has no mass, without a word."""
    early = chain("").replace(link("l0"), '<link name="l0"/>' + 2 * INERTIAL + "<contact/>")
    (told,) = (note for note in read_model(put(early)).notes if "in no link" in note)
    assert told == (
        "left out, as they stand in no link or joint: <inertial> (2 times), <contact>;"
        " is a <link .../> closed too early?"
    )
    assert not any("in no link" in note for note in read_model(put(chain(""))).notes)


def test_missing_meshes_do_not_stop_a_robot(put):
    shape = '<{0}><geometry><mesh filename="{1}"/></geometry></{0}>'
    inside = INERTIAL + shape.format("visual", "package://gone/a.stl")
    inside += shape.format("collision", "b.glb") + "<visual><geometry/></visual>"
    inside += shape.format("collision", "c.cdf").replace("<mesh", "<cdf")
    inside += "".join(shape.format("visual", f"{name}.stl") for name in "def")
    inside += '<collision><geometry><sphere radius="-0.1"/></geometry></collision>'
    put("", "b.glb")
    put("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "d.stl")
    put("", "e.stl")
    put("\0" * 80 + "\2\0\0\0" + "\0" * 60, "f.stl")  # two facets announced, and one there
    path = put(chain("").replace(INERTIAL, inside))
    with pytest.warns(BulletBridgeWarning) as caught, load(path):
        pass
    said = str(caught[0].message)
    assert "meshes 'package://gone/a.stl', 'c.cdf' are not found" in said
    assert "mesh 'b.glb' is of a kind that Bullet does not read" in said
    assert "left out of l0: save them as .obj or .stl with the axes of their links" in said
    assert "mesh 'd.stl' is only a pointer of Git LFS (git lfs pull fetches the mesh)" in said
    assert "mesh 'e.stl' is empty" in said and "mesh 'f.stl' is cut short (144 of 184" in said
    assert "shapes without geometry, or of a negative size, of l0 are left out" in said


UMLAUT = "F\N{LATIN SMALL LETTER U WITH DIAERESIS}\N{LATIN SMALL LETTER SHARP S}e"


@pytest.mark.parametrize(
    ("encoding", "declared", "ends"),
    [
        ("utf-8", "", "\n"),
        ("utf-8-sig", "utf-8", "\r\n"),
        ("latin-1", "", "\n"),
        ("latin-1", "utf-8", "\r\n"),
        ("koi8-r", "koi8-r", "\n"),
        ("utf-16", "utf-16", "\n"),
        ("utf-8", "", "\r"),
    ],
)
def test_names_are_those_that_were_written_in_any_encoding(tmp_path, encoding, declared, ends):
    """A robot of two links in every encoding that editors and CAD programs write."""
    name = UMLAUT if encoding != "koi8-r" else "\N{CYRILLIC SMALL LETTER EF}\u0443\u0442"
    encoded = f' encoding="{declared}"' if declared else ""
    said = f'<?xml version="1.0"{encoded}?>'
    text = f"{said}\n<!-- {name} -->\n{chain('').replace('l0', name).replace('j0', name)}\n"
    path = tmp_path / "r.urdf"
    path.write_bytes(text.replace("\n", ends).encode(encoding))
    with load(path, "new") as model:
        assert list(model.system.mechanism.joints) == [name]
        assert name in model.system.mechanism.links


def test_a_licence_may_stand_above_the_declaration(tmp_path):
    """Bullet refuses such a file, so it gets a copy."""
    path = tmp_path / "r.urdf"
    path.write_text(f"<!-- a licence -->\n<?xml version='1.0'?>\n{chain('')}")
    with load(path, "new") as model:
        assert list(model.system.mechanism.joints) == ["j0"]


def test_numbers_in_several_lines_are_those_of_one(put):
    """XML makes blanks of tabs and ends of lines, Bullet does not part numbers there: a copy."""
    path = put(chain("", "").replace('xyz="0.3 0 0.1"', 'xyz="\t0.3\n0\t0.1 "'))
    with load(path, "new") as ours, load(put(chain("", ""), "b.urdf"), "new") as theirs:
        q, v = np.array([0.3, 0.4]), np.array([1.0, 2.0])
        one, two = (terms_at(each.system, q, v) for each in (ours, theirs))
        np.testing.assert_array_equal(one.M, two.M)
        np.testing.assert_array_equal(one.h, two.h)


def test_a_mesh_of_one_scale_has_it_along_all_axes(tmp_path):
    """As Bullet takes it, which is asked for the shape of the file as it was written."""
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
    (tmp_path / "m.obj").write_text(f"{corners}f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    mesh = '<collision><geometry><mesh filename="m.obj" scale="0.1"/></geometry></collision></link>'
    path = tmp_path / "r.urdf"
    path.write_text(chain("").replace("</link>", mesh))
    client = pybullet.connect(pybullet.DIRECT)
    body = pybullet.loadURDF(str(path), physicsClientId=client)
    scale = pybullet.getCollisionShapeData(body, 0, client)[0][3]
    pybullet.disconnect(client)
    spec = read_model(path)
    assert any('scale="0.1", which is taken as "0.1 0.1 0.1"' in note for note in spec.notes)
    with load(spec) as loaded:
        (ours,) = pybullet.getCollisionShapeData(loaded.ids["robot"], 0, loaded.client)
    assert ours[3] == scale == (0.1, 0.1, 0.1)


def test_names_that_bullet_has_in_latin_1_are_read(tmp_path):
    """A program loads such a file by itself: Bullet keeps the bytes as they are."""
    path = tmp_path / "r.urdf"
    path.write_bytes(chain("").replace("l0", UMLAUT).replace("j0", UMLAUT).encode("latin-1"))
    client = pybullet.connect(pybullet.DIRECT)
    try:
        flags = pybullet.URDF_USE_INERTIA_FROM_FILE
        body = pybullet.loadURDF(str(path), useFixedBase=True, flags=flags, physicsClientId=client)
        system = bb.attach(body, client=client)
        assert list(system.mechanism.joints) == [UMLAUT] and UMLAUT in system.mechanism.links
    finally:
        pybullet.disconnect(client)


def test_turns_that_look_like_degrees_are_told(put):
    turned = chain("", "").replace('rpy="0 0 0.2"', 'rpy="0 -90 0.2"', 1)
    said = "rpy of <origin> is in radians, more than a turn in joint 'j0': 0 -90 0.2; if degrees"
    assert [note.startswith(said) for note in read_model(put(turned)).notes] == [True]


def test_packages_are_found_above_the_file_under_any_name(put, monkeypatch, tmp_path):
    put("solid x\nendsolid x\n", "clone/meshes/a.stl")
    shape = '<visual><geometry><mesh filename="package://robot/meshes/a.stl"/></geometry></visual>'
    path = put(chain("").replace(INERTIAL, INERTIAL + shape), "clone/urdf/r.urdf")
    spec = read_model(path)
    assert not spec.notes
    assert "clone/meshes/a.stl" in spec.bodies[0].urdf.read_text()
    put("solid x\nendsolid x\n", "ws/robot/meshes/b.stl")
    other = put(path.read_text().replace("a.stl", "b.stl"), "clone/urdf/s.urdf")
    assert "not found" in read_model(other).notes[0]
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ws"))
    assert not read_model(other).notes


def test_the_base_floats_unless_the_file_or_the_user_says_otherwise(put):
    loose = put(chain("", root="torso"))
    assert not read_model(loose).bodies[0].fixed_base
    assert "the base floats" in read_model(loose).notes[0]
    assert read_model(loose, fixed_base=True).bodies[0].fixed_base
    assert read_model(loose, fixed_base=True).notes == ()
    assert read_model(put(chain(""))).bodies[0].fixed_base
    with pytest.raises(ModelError, match="starts with a pose or velocity of the floating base"):
        read_model("space_arm", fixed_base=True)


@pytest.mark.parametrize(
    "name", ["four_bar", "stewart", "gripper", "two_arms", "space_arm", "biped"]
)
@pytest.mark.parametrize("to", ["loops", "loop_joint"])  # of others: test_formats_written
def test_what_is_written_reads_back_as_the_same_model(name, to, tmp_path):
    done = convert(name, tmp_path / "copy", to)
    back = read_model(done.files[0])
    spec = read_model(name)
    assert back.actuated == spec.actuated
    assert [b.fixed_base for b in back.bodies] == [b.fixed_base for b in spec.bodies]
    still = {"start_q": {}, "start_v": {}, "forces": (), "start_guess": {}}
    still |= {"gravity": spec.gravity}  # a URDF has no place for these
    assert_same(replace(spec, **still), replace(back, **still))


def test_rotors_and_gears_of_drake_are_armatures(put):
    def driven(name, inside):
        return (
            f'<transmission name="t_{name}"><type>SimpleTransmission</type><joint name="{name}"/>'
            f'<actuator name="m_{name}">{inside}</actuator></transmission>'
        )

    rotor = '<drake:rotor_inertia value="{}"/>'
    gear = '<drake:gear_ratio value="{}"/>'
    first = driven("crank", rotor.format(1e-4) + gear.format(-30))
    path = put(four_bar_with(first + driven("rocker", rotor.format(0.02)) + driven("coupler", "")))
    spec = read_model(path, fixed_base=True)
    armatures = {name: given.armature for name, given in spec.joints.items()}
    assert armatures == {"crank": pytest.approx(0.09, rel=1e-15), "rocker": 0.02}
    assert spec.actuated == ("crank", "rocker", "coupler")
    plain = read_model(put(four_bar_with(""), "plain.urdf"), fixed_base=True)
    M, M_plain = (terms(each, 1)[0] for each in (spec, plain))
    names = ("crank", "coupler", "rocker")
    with load(plain) as loaded:
        order = [loaded.system.mechanism.joint(name).v.start for name in names]
    more = np.diag((M - M_plain)[np.ix_(order, order)])
    np.testing.assert_allclose(more, [0.09, 0.0, 0.02], atol=1e-14)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ('<drake:rotor_inertia value="heavy"/>', "drake:rotor_inertia> has 'heavy'; give a number"),
        ('<drake:rotor_inertia value="-1"/>', "rotor inertia -1 with gear ratio 1 is no inertia"),
        ('<drake:rotor_inertia value="1"/><drake:gear_ratio value="inf"/>', "give finite numbers"),
    ],
)
def test_rotors_that_cannot_be_are_refused(inside, message, put):
    motor = f'<transmission name="t"><joint name="crank"/><actuator>{inside}</actuator>'
    with pytest.raises(ModelError, match=f"transmission 't': .*{message}"):
        read_model(put(four_bar_with(motor + "</transmission>")))


def test_drives_that_mix_joints_and_controllers_are_told(put):
    joints = '<joint name="crank"/><joint name="rocker"/>'
    kind = "transmission_interface/FourBarLinkageTransmission"
    mixed = f'<transmission name="t"><type>{kind}</type>{joints}<actuator/></transmission>'
    second = f'<transmission name="u"><plugin>a/Differential</plugin>{joints}</transmission>'
    gains = '<actuator><drake:controller_gains p="10" d="1"/></actuator>'
    kept = f'<transmission name="k"><joint name="coupler"/>{gains}</transmission>'
    text = f'{mixed}<ros2_control name="c" type="system">{second}</ros2_control>{kept}'
    notes = " ".join(read_model(put(four_bar_with(text)), fixed_base=True).notes)
    assert "'t' (FourBarLinkageTransmission: crank, rocker)" in notes
    assert "'u' (Differential: crank, rocker)" in notes
    assert "<drake:controller_gains> of coupler: no controller acts" in notes


def test_limits_and_losses_of_joints_are_what_they_mean(put):
    """Ranges that Bullet takes for none, or refuses, and damping that would feed energy."""
    said = (
        '<limit effort="1" velocity="1" lower="-0.3" upper="0.3"/>',  # of a continuous one
        '<limit effort="1" velocity="1" lower="0.5" upper="-0.5"/>',
        '<limit effort="1" velocity="1" lower="-90" upper="90"/>',
        '<dynamics damping="-1" friction="2"/>',
    )
    text = chain(*said).replace('name="j0" type="revolute"', 'name="j0" type="continuous"')
    text = text.replace('name="j3" type="continuous"', 'name="j3" type="revolute"')
    spec = read_model(put(text))
    notes = " ".join(spec.notes)
    fixed = read_model(put(chain(said[1]).replace("revolute", "fixed"), "fixed.urdf"))
    assert "limits" not in " ".join(fixed.notes)
    assert "limits though they are continuous: these count for nothing, as in Bullet (j0)" in notes
    assert "nothing limits them, as in Bullet (j1)" in notes
    assert (
        "a limit of joint 'j2' is 90 rad, 14.3 turns; if degrees are meant, write 1.5708" in notes
    )
    assert "no <limit>, which Bullet refuses: nothing limits them (j3)" in notes
    assert "negative damping or friction, which would feed energy: taken as zero (j3)" in notes
    assert "friction: it does not act, as in Bullet" in notes
    with load(spec) as loaded:
        mechanism = loaded.system.mechanism
        limited = {name: joint.lower > -np.inf for name, joint in mechanism.joints.items()}
        assert limited == {"j0": False, "j1": False, "j2": True, "j3": False}
        assert not mechanism.axes["damping"].any()


def test_rotors_that_move_no_joint_are_noted(put):
    both = '<joint name="crank"/><joint name="rocker"/>'
    rotor = '<actuator><drake:rotor_inertia value="1"/></actuator></transmission>'
    text = f'<transmission name="t">{both}{rotor}<transmission><joint name="gone"/>{rotor}'
    notes = " ".join(read_model(put(four_bar_with(text)), fixed_base=True).notes)
    assert "transmission 't': the rotors are left out, for it moves 2 joints" in notes
    assert "the rotor of joint 'gone' is left out, for the joint does not exist" in notes


def test_properties_of_joints_survive_as_a_urdf(tmp_path, put):
    put(FOUR_BAR, "four_bar.urdf")
    loops = find("four_bar").read_text()
    said = "{armature: 0.01, damping: 0.3, friction: 0.1, limits: [-3, 3]}"
    joints = f"\njoints:\n  crank: {said}\n  coupler: {{armature: 0.5}}\n"
    file = put(loops + joints, "four_bar.loops.yaml")
    done = convert(file, tmp_path / "copy", "loop_joint")
    back = read_model(done.files[0])
    assert back.joints == {  # the crank's is that of its motor
        "crank": bb.JointProperties(armature=0.01),
        "coupler": bb.JointProperties(armature=0.5),
    }
    with load(back, limits=False) as loaded:
        mechanism = loaded.system.mechanism
        assert mechanism.axes["damping"][mechanism.joint("crank").v] == 0.3
    text = done.files[0].read_text()
    assert 'friction="0.1"' in text
    assert 'lower="-3.0" upper="3.0"' in text


def test_converted_files_say_what_was_lost(put, tmp_path):
    path = put(chain('<mimic joint="j1"/>', "", root="torso"))
    done = convert(path, tmp_path / "new.loops.yaml")
    text = (tmp_path / "new.loops.yaml").read_text()
    assert text.startswith("# Converted from robot.urdf by bulletbridge.\n# What was lost")
    assert "the base floats" in text.replace("\n#  ", "")
    assert read_loops(done.files[0]).constraints == read_model(path).constraints
    with pytest.raises(ModelError, match="would be overwritten"):
        convert(path, path)
    with pytest.raises(ModelError, match="no format that is written; there are"):
        convert(path, tmp_path / "x", "usd")


@pytest.mark.parametrize(("to", "ending"), [("mjcf", ".xml"), ("sdf", ".sdf")])
def test_another_format_may_have_the_name_of_the_source(put, to, ending):
    path = put(chain('<mimic joint="j1"/>', "", root="torso"))
    before = path.read_bytes()
    done = convert(path, path.with_suffix(""), to)
    assert done.files[0] == path.with_suffix(ending)
    assert path.read_bytes() == before


def test_a_root_without_inertia_is_one_body_with_what_is_fixed_to_it(put):
    """As where the root itself has the mass; Bullet alone would add 1 kg."""
    text = chain("", root="torso")
    foot = '<link name="foot"/><joint name="sole" type="fixed"><parent link="foot"/>'
    foot += '<child link="torso"/><origin xyz="0.1 0.2 0.3" rpy="0.3 0.2 0.1"/></joint></robot>'
    plain, stood = read_model(put(text, "a.urdf")), read_model(put(text[:-8] + foot, "b.urdf"))
    assert "'foot' has no <inertial>; it gets that of 'torso'" in stood.notes[0]
    with load(plain) as one, load(stood) as other:
        R = Rotation.from_euler("xyz", [0.3, 0.2, 0.1])
        place = R.apply(one.system.q[:3]) + [0.1, 0.2, 0.3]
        np.testing.assert_allclose(other.system.q[:3], place, atol=1e-7)  # Bullet's float32
        for loaded in (one, other):
            loaded.system.assemble({"j0": 0.4})
        masses = [np.linalg.eigvalsh(loaded.system.terms().M) for loaded in (one, other)]
        # axes of the world differ, the motion does not; Bullet finds principal axes to 1e-6
        np.testing.assert_allclose(*masses, rtol=1e-6)


def test_axes_get_length_one(put):
    path = put(chain("").replace('<axis xyz="0 1 0"/>', '<axis xyz="0 2 0"/>'))
    spec = read_model(path)
    assert "the axes of joint 'j0' have not length 1" in spec.notes[0]
    assert_same(spec, read_model(put(chain(""), "unit.urdf")))
    with pytest.raises(ModelError, match="an axis without length"):
        read_model(put(path.read_text().replace("0 2 0", "0 0 0")))


def test_a_floating_joint_to_the_world_is_a_floating_base(put):
    floating = joint("free", "world", "torso", kind="floating")
    text = chain("", root="torso").replace("</robot>", f'<link name="world"/>{floating}</robot>')
    with pytest.warns(BulletBridgeWarning, match="a floating joint"), load(put(text)) as loaded:
        assert loaded.system.mechanism.nv == 7
        # the pose is that of the joint: assembly has nothing to move
        assert loaded.spec.bodies[0].xyz == (0.3, 0.0, 0.1)
        assert not any("FIXED" in note for note in loaded.spec.notes)


def test_a_floating_joint_elsewhere_is_fixed_and_told(put):
    floating = joint("free", "l0", "tool", kind="floating")
    text = chain("").replace("</robot>", f"{link('tool')}{floating}</robot>")
    with pytest.warns(BulletBridgeWarning, match="'free' is floating: its links are FIXED"):
        loaded = load(put(text))
    with loaded:
        assert loaded.system.mechanism.nv == 1


def test_a_base_that_was_given_a_pose_stays_there(tmp_path):
    """An arm pinned to a point of the world, within its reach and beyond it."""
    (tmp_path / "arm.urdf").write_text(chain("", "", root="torso"))
    base = Rotation.from_euler("xyz", [0.0, 0.3, 0.0])
    hinge = Rotation.from_euler("xyz", [0.0, 0.0, 0.2]) * Rotation.from_euler("y", 0.4)
    elbow = np.array([0.3, 0.0, 0.1])  # place of each joint on the link above
    tip = [0.0, 0.0, 1.0] + base.apply(elbow + hinge.apply(elbow))
    text = """bulletbridge: 1
urdf: arm.urdf
fixed_base: false
base: {xyz: [0, 0, 1], rpy: [0, 0.3, 0]}
loops: [{name: pin, type: ball, a: {link: l1}, b: {link: world, xyz: %s}}]
start: {guess: {%s}}
"""
    path = tmp_path / "arm.loops.yaml"
    path.write_text(text % (tip.tolist(), "j0: 0.1"))
    with load(path) as loaded:
        assert "base" not in {move.joint for move in loaded.assembly.moved}
    path.write_text(text % ([5.0, 0.0, 1.0], "j0: 0.1"))
    with pytest.raises(AssemblyError, match="the base was held where the file places it"):
        load(path)
    path.write_text(text % ([5.0, 0.0, 1.0], "base: [0, 0, 1, 0, 0, 0, 1]"))
    with load(path) as loaded:
        assert "base" in {move.joint for move in loaded.assembly.moved}


def test_the_bundled_gripper_follows_its_driver():
    with load("mimic_gripper", limits=True, contacts=True) as loaded:
        system = loaded.system
        assert loaded.spec.actuated == ("left_driver",) and system.dof == 1
        system.motors.set("left_driver", velocity=1.0, force=0.5)
        system.run(0.5)
        q = {name: system.q[one.q.start] for name, one in system.mechanism.joints.items()}
        lead = q["left_driver"]
        for name, position in q.items():
            sign = -1.0 if name.endswith("finger") else 1.0
            assert abs(position - sign * lead) < 1e-13
        assert 0.3 < lead <= 0.8 + 1e-9  # half a second at 1 rad/s, but for the pads that meet


def test_bundled_names_stay_names():
    assert {read_model(name).name for name in list(bundled())[:3]} == set(list(bundled())[:3])
    with bb.load("four_bar") as model:
        assert model.spec.notes == ()


def test_frames_turned_by_quaternions_are_those_of_urdf_1_1(put):
    """Held to Pinocchio, which reads them by urdfdom: in links, shapes and joints."""
    limit = '<limit lower="-3" upper="3" effort="1" velocity="1"/>'
    text = chain(limit, limit).replace("<robot", '<robot version="1.1"', 1)
    text = text.replace('<origin xyz="0.1 0.02 0"', '<origin xyz="0.1 0 0" quat_xyzw="1 2 0 3"')
    text = text.replace('rpy="0 0 0.2"', 'quat_xyzw="0.3 -0.4 1.2 0.5"')
    assert text.count("quat_xyzw") == 4
    path = put(text)
    spec = read_model(path, fixed_base=True)
    assert not any("quat" in note for note in spec.notes)
    system = unassembled(spec)
    model = pin.buildModelFromUrdf(str(path))
    q, v = np.array([0.4, -0.7]), np.array([0.9, 1.3])
    ours = terms_at(system, q, v)
    np.testing.assert_allclose(ours.M, pin.crba(model, model.createData(), q), rtol=1e-12)
    h = pin.nonLinearEffects(model, model.createData(), q, v)
    np.testing.assert_allclose(ours.h, h, rtol=1e-12)
    old = read_model(put(text.replace(' version="1.1"', "")))
    assert any("quat_xyzw counts for nothing before URDF 1.1" in note for note in old.notes)
    for wrong in ("0 0 0 0", "0 0 1", "0 0 x 1"):
        with pytest.raises(ModelError, match="'j0': <origin> has quat_xyzw=.*; give a turn"):
            read_model(put(text.replace("0.3 -0.4 1.2 0.5", wrong)))
    with pytest.raises(ModelError, match="'j0': <origin> has both rpy and quat_xyzw; leave one"):
        read_model(put(text.replace('1.2 0.5"', '1.2 0.5" rpy="0 0 0"')))


def test_numbers_are_read_as_they_look(put):
    """Characters of no width and typeset minus signs, which end a number for Bullet, as of web."""
    odd = chain("").replace('xyz="0.3 0 0.1"', 'xyz="\u200b0.3 0\u00ad \u22120.1\ufeff"')
    plain = chain("").replace('xyz="0.3 0 0.1"', 'xyz="0.3 0 -0.1"')
    assert len({odd, plain, chain("")}) == 3
    found = []
    for name, text in (("odd.urdf", odd), ("plain.urdf", plain)):
        spec = read_model(put(text, name))
        with load(spec) as loaded:
            found.append(pybullet.getJointInfo(loaded.ids["robot"], 0, loaded.client)[14])
        assert any('as it looks, "0.3 0 -0.1"' in note for note in spec.notes) == (text == odd)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ("0.3, 0,0.1", None),  # two pieces
        ("0.3, 0, 0.1", "0.3 0 0.1"),
        ("0.3 0. 0.1 7", "0.3 0. 0.1"),
        ("$(optenv X 0.3 0 0.1)", "0 0 0.3"),
        ("1e-1x -.5 +2.", "1e-1 -.5 +2."),
    ],
)
def test_numbers_are_what_bullet_takes_for_them(put, said, taken):
    """Held to where Bullet itself puts the joint of the file as it was written."""
    text = chain("").replace('xyz="0.3 0 0.1"', f'xyz="{said}"')
    assert text != chain("")
    path = put(text)
    if taken is None:
        with pytest.raises(ModelError, match="'j0': <origin> has xyz=.*; give 3 finite numbers"):
            read_model(path)
        return
    spec = read_model(path)
    assert any(f'is taken as "{taken}"' in note for note in spec.notes)
    client = pybullet.connect(pybullet.DIRECT)
    body = pybullet.loadURDF(str(path), physicsClientId=client)
    there = np.add(pybullet.getJointInfo(body, 0, client)[14], 0.0)
    pybullet.disconnect(client)
    with load(spec) as loaded:
        ours = np.add(pybullet.getJointInfo(loaded.ids["robot"], 0, loaded.client)[14], 0.0)
    np.testing.assert_allclose(ours, there, atol=1e-7)  # Bullet's float32


@pytest.mark.parametrize(
    ("lower", "upper", "found"),
    [
        ("-inf", "inf", (-np.inf, np.inf)),
        ("-Infinity", "+INF", (-np.inf, np.inf)),
        ("-0.5", "inf", (-0.5, 1e9)),
        ("-1.79769e+308", "1.79769e+308", (-np.inf, np.inf)),
    ],
)
def test_infinite_limits_are_none(put, lower, upper, found):
    """As in Bullet, which reads them so; a range from zero to zero would lock the joint."""
    limit = f'<limit lower="{lower}" upper="{upper}" effort="inf" velocity="1"/>'
    spec = read_model(put(chain(limit)))
    assert any("infinite limits of j0 are none" in note for note in spec.notes)
    with load(spec, "new") as model:
        joint = model.system.mechanism.joints["j0"]
        assert (joint.lower, joint.upper) == found
    with pytest.raises(ModelError, match="joint 'j0': <limit> has lower=\"nan\"; give numbers"):
        read_model(put(chain(limit.replace(lower, "nan"))))


def test_a_limit_that_ends_in_a_point_is_a_number(put):
    spec = read_model(put(chain('<limit lower="-1.57." upper="2" effort="1" velocity="1"/>')))
    assert any("<limit> has lower" in note for note in spec.notes)
    with load(spec) as loaded:
        assert loaded.system.mechanism.joints["j0"].lower == pytest.approx(-1.57)


def test_what_other_programs_say_of_a_link_is_no_shape(put):
    said = '<collision_checking><capsule name="shape"/></collision_checking>'
    plain = chain("")
    assert_same(
        read_model(put(plain.replace("</link>", f"{said}</link>", 1))), read_model(put(plain))
    )


def test_a_file_without_links_is_told(put):
    with pytest.raises(ModelError, match="has no <link>"):
        read_model(put('<robot name="soft"><deformable name="torus"/></robot>'))


def odd_shape(text: str) -> str:
    """A chain whose link has a shape as well."""
    return chain("").replace("</inertial>", f"</inertial>{text}")


REFUSED = [  # what Bullet ends with an error at, and what is said of it
    (chain("<dynamics/>"), ""),
    (chain("").replace(' name="chain"', ""), "the robot has no name; it is called 'robot'"),
    (
        odd_shape('<visual><geometry><sphere radius="0.1"/></geometry><material/></visual>'),
        "1 materials without a name",
    ),
    (
        odd_shape('<collision><geometry><ellipsoid size="1 2 3"/></geometry></collision>'),
        "shapes that Bullet does not know (<ellipsoid>), of l0, are left out",
    ),
    (chain("").replace('xyz="0.3 0 0.1"', 'xyz="0.3\xa00&#10;0.1"'), "<origin> has odd blanks in"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_bullet_refuses_and_others_read_is_put_right(put, text, said):
    spec = read_model(put(text))
    assert any(said in note for note in spec.notes) or not said
    with load(spec, "new") as ours, load(put(chain(""), "b.urdf"), "new") as theirs:
        q, v = np.array([0.3]), np.array([1.0])
        one, two = (terms_at(each.system, q, v) for each in (ours, theirs))
        np.testing.assert_array_equal(one.M, two.M)
        np.testing.assert_array_equal(one.h, two.h)


def test_drakes_capsule_is_bullets(put):
    shape = '<collision><geometry><drake:capsule radius="0.1" length="0.2"/></geometry></collision>'
    with load(put(odd_shape(shape)), "new") as model:
        (found,) = pybullet.getCollisionShapeData(model.ids["robot"], 0, model.client)
    assert found[2] == pybullet.GEOM_CAPSULE and found[3][:2] == (0.2, 0.1)
