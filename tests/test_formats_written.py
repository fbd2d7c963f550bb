"""Models written as MJCF and SDF: MuJoCo, or our own reader, finds the same equations."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support import urdf_builder
from support.mujoco_models import Oracle, apart, random_state, terms_at, unassembled

import bulletbridge as bb
from bulletbridge.errors import ModelError
from bulletbridge.models.formats.convert import convert
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.formats.urdf_scene import scene_of
from bulletbridge.models.load import load
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array

pin: Any = import_module("pinocchio")
TO_MUJOCO, ROUND_TRIP = 1e-10, 1e-12
"""Relative: MuJoCo's own frames, and round-off of poses that pass through Euler angles."""
MUJOCO = (
    "four_bar",
    "minitaur",
    "two_arms",
    "gripper",
    "stewart",
    "triple_slider_crank",
    "leaf_leg",
    "biped",
)
SDF = (
    "four_bar",
    "space_arm",
    "two_arms",
    "stewart",
    "bricard",
    "gripper",
    "ball_chain",
    "excavator",
    "biped",
)


@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
@pytest.mark.parametrize("name", ["leaf_leg", "excavator"])
def test_bundled_robots_in_other_formats_stay_closed(name: str) -> None:
    with load(name, dt=1 / 240) as model:
        model.system.run(1.0)
        gaps = model.system.evaluate().gaps
    assert max(max(gap.kept_metres, gap.kept_radians) for gap in gaps) < 1e-12


@pytest.mark.parametrize("name", MUJOCO)
def test_mujoco_reads_what_we_mean(name: str, tmp_path: Path) -> None:
    spec = read_model(name)
    (file,) = convert(name, tmp_path / name, "mjcf").files
    system = unassembled(spec)
    oracle = Oracle(file, system, spec)
    found = oracle.compare(*random_state(system, np.random.default_rng(2)))
    assert max(found) < TO_MUJOCO, found


@pytest.mark.parametrize("name", SDF)
def test_sdf_reads_back_as_the_same_equations(name: str, tmp_path: Path) -> None:
    spec = read_model(name)
    (file,) = convert(name, tmp_path / name, "sdf").files
    again = read_model(file)
    with load(spec) as model:
        start = model.system.q
    ours, theirs = unassembled(spec), unassembled(again)
    rng = np.random.default_rng(3)
    # near closed poses alone: two frames that coincide there may differ by a free motion
    q = start
    v = rng.uniform(-1.0, 1.0, ours.mechanism.nv)
    other_q, T = counted_from(start, q, ours, theirs)
    a, b = terms_at(ours, q, v), terms_at(theirs, other_q, T @ v)
    assert apart(T.T @ b.M @ T, a.M) < ROUND_TRIP
    assert apart(T.T @ (b.h - b.forces), a.h - a.forces) < ROUND_TRIP
    rows = row_order(spec.constraints, again.constraints, ours, theirs)
    assert apart(b.g[rows], a.g) < ROUND_TRIP
    assert apart((b.J @ T)[rows], a.J) < ROUND_TRIP


@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
def test_what_is_rounded_stays_so_in_sdf(tmp_path: Path) -> None:
    """SDF closes loops by its very form; that Minitaur's were rounded must not be lost in it."""
    known = {loop.name: loop for loop in read_model("minitaur").constraints}
    (file,) = convert("minitaur", tmp_path / "minitaur", "sdf").files
    spec = read_model(file)
    for loop in spec.constraints:
        other = known[loop.name]
        assert isinstance(loop, bb.LoopJoint) and isinstance(other, bb.LoopJoint)
        found = (*loop.a.xyz, *loop.b.xyz, *loop.a.rpy, *loop.b.rpy)
        given = (*other.a.xyz, *other.b.xyz, *other.a.rpy, *other.b.rpy)
        np.testing.assert_allclose(found, given, rtol=0.0, atol=ROUND_TRIP)
    with load(spec, dt=1 / 240) as model:
        model.system.run(0.2)
        assert model.system.evaluate().largest("kept_metres") < 1e-12


def counted_from(start: Array, q: Array, ours: bb.System, theirs: bb.System) -> tuple[Array, Array]:
    """Coordinates of a system whose positions are counted from the start; its rates by ours."""
    found = np.zeros(theirs.mechanism.nq)
    T = np.zeros((theirs.mechanism.nv, ours.mechanism.nv))
    for name, joint in ours.mechanism.joints.items():
        known = theirs.mechanism.joints
        if not {name, f"{name}_joint"} & known.keys():
            name = name.replace("/", "::")
        other = known[name if name in known else f"{name}_joint"]
        T[other.v, joint.v] = np.eye(joint.v.stop - joint.v.start)
        if joint.kind == "free":
            found[other.q] = q[joint.q]
        elif joint.kind == "spherical":
            zero = Rotation.from_quat(start[joint.q])
            found[other.q] = (zero.inv() * Rotation.from_quat(q[joint.q])).as_quat()
        else:
            found[other.q] = q[joint.q] - start[joint.q]
    return found, T


def row_order(mine: tuple, others: tuple, ours: bb.System, theirs: bb.System) -> list[int]:
    """Which row of the other system each of ours is, constraint by constraint."""
    gears = iter([c.name for c in others if isinstance(c, bb.Coupling)])
    names = {c.name: next(gears) if isinstance(c, bb.Coupling) else c.name for c in mine}
    places = theirs.encoded.rows
    return [k for c in mine for k in range(*places[names[c.name]].indices(10**6))]


def test_armature_of_a_free_joint_is_written_back(tmp_path: Path) -> None:
    """What is mass, inertia and a lifting force here has MuJoCo's M and bias forces again."""
    given = """<mujoco><worldbody><body name="box" pos="0 0 1"><joint type="free" armature="0.4"
damping="0.2"/><geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0.05" mass="2"/></body></worldbody>
</mujoco>"""
    (tmp_path / "box.xml").write_text(given)
    done = convert(tmp_path / "box.xml", tmp_path / "again", "mjcf")
    assert not any("wrench" in note and "left out" in note for note in done.notes)
    mujoco: Any = import_module("mujoco")
    found: list[Array] = []
    for file in (tmp_path / "box.xml", done.files[0]):
        model = mujoco.MjModel.from_xml_path(str(file))
        data = mujoco.MjData(model)
        data.qpos[:] = (0.1, 0.2, 0.3, 0.5, 0.5, -0.5, 0.5)
        data.qvel[:] = (1.0, -2.0, 0.5, 0.3, 2.0, -1.0)
        mujoco.mj_forward(model, data)
        M = np.zeros((6, 6))
        mujoco.mj_fullM(model, data, M)
        found.append(np.vstack([M, data.qfrc_bias, data.qfrc_passive]))
    np.testing.assert_allclose(found[1], found[0], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("factors", [(1.0, -2.0), (-0.5, 0.5), (3.0,), (-2.0, 1.0)])
def test_a_coupling_keeps_its_row_in_mjcf(factors: tuple[float, ...], tmp_path: Path) -> None:
    """MuJoCo's equality of joints has the factor one for one of them, that of tendons any."""
    gear = bb.Coupling("gear", dict(zip(("crank", "rocker"), factors, strict=False)), 0.3)
    spec = replace(read_model("four_bar"), constraints=(gear,), start_q={})
    (file,) = (x for x in convert(spec, tmp_path / "w", "mjcf").files if x.suffix == ".xml")
    (found,) = read_model(file).constraints
    assert isinstance(found, bb.Coupling) and found.coefficients == gear.coefficients
    assert found.offset == pytest.approx(gear.offset, abs=1e-15)


@pytest.mark.parametrize(("to", "ending"), [("mjcf", ".xml"), ("sdf", ".sdf")])
@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
def test_a_floating_robot_keeps_its_root_and_what_weighs_nothing(
    to: str, ending: str, tmp_path: Path
) -> None:
    """A root lighter than what it carries, and a fixed frame with an inertia but no mass."""
    text = urdf_builder.robot(
        urdf_builder.link("trunk", urdf_builder.inertial(0.5, (0.02, 0.03, 0.04))),
        urdf_builder.link("leg", urdf_builder.inertial(3.0, (0.2, 0.3, 0.4), (0.0, 0.1, -0.2))),
        urdf_builder.link("frame", urdf_builder.inertial(0.0, (0.1, 0.1, 0.1))),
        urdf_builder.joint("hip", "continuous", "trunk", "leg", (0.1, 0.0, 0.0)),
        urdf_builder.joint("at", "fixed", "leg", "frame", (0.0, 0.0, -0.3)),
    )
    (tmp_path / "r.urdf").write_text(text)
    before = unassembled(read_model(tmp_path / "r.urdf"))
    convert(tmp_path / "r.urdf", tmp_path / "written", to)
    after = unassembled(read_model(tmp_path / f"written{ending}"))
    assert list(after.mechanism.joints) == list(before.mechanism.joints)
    np.testing.assert_allclose(after.terms().M, before.terms().M, rtol=0.0, atol=ROUND_TRIP)


SUMS = """<mujoco><worldbody>
<body><joint name="a" axis="0 1 0"/><geom size="0.1" pos="0.3 0 0"/>
<body pos="0.3 0 0"><joint name="b" axis="0 1 0.2"/><geom size="0.1" pos="0.2 0 0.1"/>
<body pos="0.3 0 0"><joint name="c" axis="0 1 0"/><geom size="0.1" pos="0.1 0 0"/>
<site name="s" pos="0.1 0 0.1"/></body></body></body><site name="w" pos="0 0 1"/></worldbody>
<tendon>
<fixed name="f"><joint joint="a" coef="1"/><joint joint="b" coef="2"/><joint joint="c" coef="-1"/>
</fixed><fixed name="g" stiffness="5" springlength="-.1 .3"><joint joint="b" coef="1"/>
<joint joint="c" coef="-1.5"/></fixed><fixed name="h" limited="true" range="-1 2">
<joint joint="a" coef="1"/><joint joint="c" coef="1"/></fixed>
<spatial name="k" stiffness="3" damping=".2" springlength=".2"><site site="w"/><site site="s"/>
</spatial></tendon><equality><tendon tendon1="f" polycoef=".1 0 0 0 0"/>
<joint joint1="c" polycoef=".2 0 0 0 0"/></equality></mujoco>"""


@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
@pytest.mark.parametrize(("to", "ending"), [("loop_joint", ".urdf"), ("sdf", ".sdf")])
def test_sums_of_joints_and_springs_are_written_in_drakes_words(
    to: str, ending: str, tmp_path: Path
) -> None:
    (tmp_path / "sums.xml").write_text(SUMS)
    spec = read_model(tmp_path / "sums.xml")
    _, first, *_, last = scene_of(spec).robots[0].links
    a, b = bb.Frame(first, (0.1, 0.2, 0.3), (0.1, -0.2, 0.3)), bb.Frame(last, (0.0, 0.1, 0.0))
    six = (7.0, 8.0, 9.0), (0.1, 0.2, 0.3), (4.0, 5.0, 6.0), (0.4, 0.5, 0.6)
    spec = replace(spec, elements=(*spec.elements, bb.Bushing("pad", a, b, *six)))
    done = convert(spec, tmp_path / "written", to)
    assert not any("left out" in note.lower() for note in done.notes)
    again = read_model(tmp_path / f"written{ending}")
    with load(spec) as model, load(again) as written:
        start = model.system.q
        limits = [each.limits for each in again.elements if isinstance(each, bb.Tendon)]
        shift = start[0] + start[2] if to == "sdf" else 0.0
        assert limits[1] == pytest.approx((-1.0 - shift, 2.0 - shift), abs=ROUND_TRIP)
        assert written.system.evaluate().energy == pytest.approx(
            model.system.evaluate().energy, abs=ROUND_TRIP
        )
    ours, theirs = unassembled(spec), unassembled(again)
    q, v = random_state(ours, np.random.default_rng(5))
    other_q, T = counted_from(start if to == "sdf" else 0.0 * q, q, ours, theirs)
    a, b = terms_at(ours, q, v), terms_at(theirs, other_q, T @ v)
    assert apart(T.T @ b.M @ T, a.M) < ROUND_TRIP
    assert apart(T.T @ (b.h - b.forces), a.h - a.forces) < ROUND_TRIP
    assert apart(b.g, a.g) < ROUND_TRIP and apart(b.J @ T, a.J) < ROUND_TRIP


FORMATS = {"loops": ".loops.yaml", "loop_joint": ".urdf", "mjcf": ".xml", "sdf": ".sdf"}
CHAIN = """
bulletbridge: 1
urdf: chain.urdf
fixed_base: true
actuated: [j0, j2]
joints:
  j0: {armature: 0.02}
  j3: {armature: 0.3, damping: 0.4}
loops:
  - {name: pin, type: ball, a: {link: l4, xyz: [0.1, 0.2, 0.3]}, b: {link: world, xyz: PLACE}}
  - {name: pair, type: gear, joints: {j0: 1.0, j2: -1.5}, offset: 0.1}
forces:
  - {joint: j1, stiffness: 2.0, rest: 0.3, damping: 0.1}
"""


def on_circles(q: Array) -> Array:
    """Angles as Pinocchio has those of continuous joints."""
    return np.column_stack([np.cos(q), np.sin(q)]).ravel()


def rough_chain(folder: Path) -> ModelSpec:
    """Five hinges whose links have inertias with products, a loop, a gear, a spring, rotors."""
    rng = np.random.default_rng(5)
    tree = urdf_builder.random_tree(rng, 5, ("continuous",), full_tensors=True, branching=0.0)
    (folder / "chain.urdf").write_text(tree)
    model = pin.buildModelFromUrdf(str(folder / "chain.urdf"))
    data = model.createData()
    pin.forwardKinematics(model, data, on_circles(np.array([0.4, 0.3, 0.2, -0.4, 0.5])))
    place = data.oMi[4].act(np.array([0.1, 0.2, 0.3])).tolist()
    (folder / "chain.loops.yaml").write_text(CHAIN.replace("PLACE", str(place)))
    return read_model(folder / "chain.loops.yaml")


@pytest.mark.parametrize("to", FORMATS)
def test_every_format_keeps_the_equations(to: str, tmp_path: Path) -> None:
    spec = rough_chain(tmp_path)
    files = convert(spec, tmp_path / "written", to).files
    again = read_model(next(file for file in files if file.name.endswith(FORMATS[to])))
    start = np.zeros(5)
    if to == "sdf":
        with load(spec) as model:
            start = model.system.q
    ours, theirs = unassembled(spec), unassembled(again)
    q, v = random_state(ours, np.random.default_rng(6))
    at, T = counted_from(start, q, ours, theirs)
    a, b = terms_at(ours, q, v), terms_at(theirs, at, T @ v)
    assert apart(T.T @ b.M @ T, a.M) < ROUND_TRIP
    assert apart(T.T @ (b.h - b.forces), a.h - a.forces) < ROUND_TRIP
    rows = row_order(spec.constraints, again.constraints, ours, theirs)
    gear = -1.5 if abs(b.J[rows][-1, 0] + 1 / 1.5) < 0.1 else 1.0  # which of the two mimics
    scale = np.array([[1.0], [1.0], [1.0], [gear]])
    assert apart(scale[:, 0] * b.g[rows], a.g) < ROUND_TRIP
    assert apart(scale * (b.J @ T)[rows], a.J) < ROUND_TRIP


def test_products_of_inertia_are_taken_to_round_off(tmp_path: Path) -> None:
    """Bullet's own diagonalisation leaves a millionth of them."""
    ours = unassembled(rough_chain(tmp_path))
    model = pin.buildModelFromUrdf(str(tmp_path / "chain.urdf"))
    q, _ = random_state(ours, np.random.default_rng(7))
    M = pin.crba(model, model.createData(), on_circles(q))
    M = np.triu(M) + np.triu(M, 1).T + np.diag([0.02, 0.0, 0.0, 0.3, 0.0])
    assert apart(terms_at(ours, q, np.zeros(5)).M, M) < ROUND_TRIP


def test_couplings_of_one_of_several_robots_are_mimics_in_sdf(tmp_path: Path) -> None:
    arm = urdf_builder.random_tree(np.random.default_rng(8), 2, ("continuous",), name="arm")
    (tmp_path / "arm.urdf").write_text(arm)
    (tmp_path / "arms.loops.yaml").write_text(
        "bulletbridge: 1\nbodies:\n"
        "  - {name: a, urdf: arm.urdf, fixed_base: true}\n"
        "  - {name: b, urdf: arm.urdf, fixed_base: true}\n"
        "loops:\n  - {name: g, type: gear, joints: {b/j0: 1.0, b/j1: -2.0}, offset: 0.1}\n"
    )
    done = convert(tmp_path / "arms.loops.yaml", tmp_path / "written", "sdf")
    assert not any("LEFT OUT" in note for note in done.notes)
    (gear,) = read_model(done.files[0]).constraints
    assert isinstance(gear, bb.Coupling)
    rows = [gear.coefficients[name] for name in sorted(gear.coefficients)]
    np.testing.assert_allclose(np.array(rows) / rows[0], [1.0, -2.0], rtol=1e-15)


@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
def test_mjcf_keeps_links_that_weigh_nothing_or_are_points(tmp_path: Path) -> None:
    """MuJoCo wants mass and inertia of all that moves; so little that no equation feels it."""
    points = urdf_builder.inertial(2.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.2))
    no_size = '<collision><geometry><sphere radius="0"/></geometry></collision>'
    text = urdf_builder.robot(
        urdf_builder.link("trunk", points),
        urdf_builder.link("arm", urdf_builder.inertial(1.0, (0.1, 0.2, 0.25), (0.3, 0.1, 0.0))),
        urdf_builder.link("leg", urdf_builder.inertial(1.0, (0.2, 0.1, 0.25), (0.3, 0.2, 0.1))),
        urdf_builder.link("tip", urdf_builder.inertial(0.0, (0.0, 0.0, 0.0)) + no_size),
        urdf_builder.joint("j0", "continuous", "trunk", "arm", (0.5, 0.0, 0.0)),
        urdf_builder.joint("j1", "continuous", "trunk", "leg", (0.0, 0.5, 0.0), axis="1 0 0"),
        urdf_builder.joint("j2", "continuous", "arm", "tip", (0.0, 0.4, 0.0), axis="0 1 0"),
        # which no body can have, nor the leg, and Bullet makes zero: as far off as it is, both can
        urdf_builder.link("mark", urdf_builder.inertial(1.0, (1e-6, 1e-6, 0.2))),
        urdf_builder.joint("at", "fixed", "leg", "mark", (0.3, 0.2, 1.0)),
    )
    (tmp_path / "r.urdf").write_text(text)
    before = unassembled(read_model(tmp_path / "r.urdf"))
    done = convert(tmp_path / "r.urdf", tmp_path / "written", "mjcf")
    assert any("1e-14 kg and kg m² added" in note for note in done.notes)
    assert any("that no body can have, of mark, are zero" in note for note in done.notes)
    assert any("shapes of tip with a size of zero" in note for note in done.notes)
    after = unassembled(read_model(done.files[0]))
    np.testing.assert_allclose(after.terms().M, before.terms().M, rtol=0.0, atol=ROUND_TRIP)


def test_what_sdf_has_no_word_for_at_ball_joints_is_kept_or_told(tmp_path: Path) -> None:
    inertial = urdf_builder.inertial(1.0, (0.01, 0.01, 0.01), (0.1, 0.0, 0.0))
    text = urdf_builder.robot(
        '<link name="world"/>',
        urdf_builder.link("rod", inertial),
        urdf_builder.joint("hang", "spherical", "world", "rod", (0.0, 0.0, 1.0)),
    )
    (tmp_path / "ball.urdf").write_text(text)
    (tmp_path / "ball.loops.yaml").write_text(
        "bulletbridge: 1\nurdf: ball.urdf\nfixed_base: true\n"
        "joints: {hang: {damping: 0.1, friction: 0.2, armature: 0.3, limits: [0, 0.7]}}\n"
    )
    done = convert(tmp_path / "ball.loops.yaml", tmp_path / "written", "sdf")
    assert "largest turns of ball joints hang: left out, SDF has no word for it" in done.notes
    (kept,) = done.files
    there = scene_of(read_model(kept)).robots[0].joints["hang"]
    assert (there.damping, there.friction, there.armature) == (0.1, 0.2, 0.3)
    (file,) = convert(tmp_path / "ball.loops.yaml", tmp_path / "mjcf", "mjcf").files
    again = read_model(file)
    assert again.joints["hang"].limits == (0.0, 0.7) and again.joints["hang"].armature == 0.3
    joint = scene_of(again).robots[0].joints["hang"]
    assert joint.friction == 0.2 and joint.damping == 0.1


FLOOR = """<link name="ground"><collision name="c"><geometry><plane><normal>0 0 1</normal>
<size>1 1</size></plane></geometry></collision></link>"""
ROTOR = "<drake:rotor_inertia>0.01</drake:rotor_inertia>"


@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
@pytest.mark.parametrize("held", [True, False])
def test_names_of_several_sdf_models_are_written_so_that_they_can_be_read(
    held: bool, tmp_path: Path
) -> None:
    """What stands is one robot, whose names have their model's before them, which SDF takes apart.

    Robots that float have the name of their model, and keep it.
    """
    link = (
        '<link name="a"><inertial><mass>1</mass></inertial></link>'
        '<link name="b"><pose>1 0 0 0 0 0</pose><inertial><mass>2</mass></inertial></link>'
        '<joint name="j" type="revolute"><parent>a</parent><child>b</child>'
        "<axis><xyz>0 1 0</xyz></axis></joint>"
    )
    fixed = '<joint name="w" type="fixed"><parent>world</parent><child>a</child></joint>'
    link += fixed if held else ""
    models = "".join(f'<model name="{name}">{link}</model>' for name in ("left", "right"))
    if not held:
        models += f'<model name="floor"><static>true</static>{FLOOR}</model>'
        models = models.replace("</axis>", f"</axis>{ROTOR}")
    path = tmp_path / "two.sdf"
    path.write_text(f'<sdf version="1.9" xmlns:drake="d"><world name="w">{models}</world></sdf>')
    before = unassembled(read_model(path))
    done = convert(path, tmp_path / "again", "sdf")
    assert any("'::' in names is '_'" in note for note in done.notes) == held
    again = read_model(done.files[0])
    assert [each.name for each in again.scenery] == ["floor"] * (not held)
    after = unassembled(again)
    if not held:
        names = ["left/base", "left/j", "right/base", "right/j"]
        assert sorted(after.mechanism.joints) == sorted(before.mechanism.joints) == names
    np.testing.assert_allclose(after.terms().M, before.terms().M, rtol=0.0, atol=ROUND_TRIP)


def test_names_that_sdf_would_make_one_are_refused(tmp_path):
    """'a::b' is written as 'a_b', which is another link here; neither may be lost."""
    joint = (
        '<joint name="{0}" type="revolute"><parent link="base"/><child link="{0}"/>'
        '<axis xyz="0 0 1"/><limit effort="1" velocity="1" lower="-1" upper="1"/></joint>'
    )
    link = (
        '<link name="{0}"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )
    names = "a::b", "a_b"
    text = link.format("base") + "".join(link.format(n) + joint.format(n) for n in names)
    path = tmp_path / "two.urdf"
    path.write_text(f'<robot name="two">{text}</robot>')
    with pytest.raises(ModelError, match="not unique in SDF"):
        convert(read_model(path), tmp_path / "again", "sdf")


TWO = """<mujoco><worldbody>
<body name="a" pos=".1 0 1"><freejoint/><geom size=".1 .2 .3" type="box"/></body>
<body name="b" pos="0 .2 1"><freejoint/><geom size=".3 .1 .2" type="box"/></body>
</worldbody></mujoco>"""
SLIDING = ("prismatic", "universal", "cylindrical", "planar", "point_on_line")
ON_PLANES = (*SLIDING, "point_on_plane", "point_on_sphere")


def row_space(J: Array) -> tuple[Array, int]:
    """Projector (n, n) on what rows span, and how many of them count."""
    _, sizes, rows = np.linalg.svd(J, full_matrices=False)
    rank = int((sizes > 1e-9 * sizes[0]).sum())
    return rows[:rank].T @ rows[:rank], rank


def slanted(kind: str, folder: Path) -> ModelSpec:
    """Two free bodies whose joint has another axis in each of two frames that lie anyhow."""
    (folder / "two.xml").write_text(TWO)
    given: dict[str, Any] = {"radius": 0.2} if kind in ON_PLANES[-2:] else {}
    given |= {} if kind == "point_on_sphere" else {"axis": (0.3, -0.5, 0.8)}
    given |= {} if kind.startswith("point") else {"axis_b": (-0.6, 0.4, 0.3)}
    a = bb.Frame("a/a", (0.1, -0.2, 0.15), (0.3, -0.8, 0.5))
    b = bb.Frame("b/b", (-0.2, 0.1, 0.05), (-0.4, 0.6, 0.9))
    loop = bb.LoopJoint("pair", bb.JointModel(kind), a, b, **given)
    return replace(read_model(folder / "two.xml"), constraints=(loop,))


@pytest.mark.parametrize("kind", ON_PLANES)
@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
def test_what_slides_or_keeps_an_angle_spans_the_same_rows_in_mujoco(
    kind: str, tmp_path: Path
) -> None:
    """By points on planes: rows of other lengths, but where they close they span the same."""
    spec = slanted(kind, tmp_path)
    (file,) = convert(spec, tmp_path / "w", "mjcf").files
    again = read_model(file)
    ours, theirs = unassembled(spec), unassembled(again)
    with load(spec, "new") as model:
        q = model.system.q
    v = np.linspace(-1.0, 1.0, 12)
    P, rank = row_space(terms_at(ours, q, v).J)
    read = terms_at(theirs, q, v)
    oracle = Oracle(file, theirs, again)
    T, _ = oracle.put(q, v)
    data = oracle.data
    for g, J in ((read.g, read.J), (data.efc_pos, data.efc_J.reshape(data.nefc, 12) @ T)):
        assert row_space(J)[1] == rank and apart(row_space(J)[0], P) < ROUND_TRIP
        assert np.abs(g).max() < ROUND_TRIP


@pytest.mark.parametrize("kind", SLIDING[:2])
@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
def test_loops_with_another_axis_in_each_frame_come_back_from_sdf(
    kind: str, tmp_path: Path
) -> None:
    spec = slanted(kind, tmp_path)
    (file,) = convert(spec, tmp_path / "w", "sdf").files
    ours, theirs = unassembled(spec), unassembled(read_model(file))
    with load(spec, "new") as model:
        q = model.system.q
    mine, read = (terms_at(system, q, np.zeros(12)) for system in (ours, theirs))
    assert apart(row_space(read.J)[0], row_space(mine.J)[0]) < ROUND_TRIP
    assert np.abs(read.g).max() < ROUND_TRIP
