"""Loading models into Bullet worlds, and leaving these as they were."""

import os
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pybullet
import pytest
from pybullet_utils.bullet_client import BulletClient as Native
from scipy.spatial.transform import Rotation
from support.small_models import four_bar

from bulletbridge.constraints.joints import Frame, JointModel, LoopJoint
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.errors import (
    AssemblyError,
    BulletBridgeError,
    BulletBridgeWarning,
    ModelError,
    WorldError,
)
from bulletbridge.models import load as load_module
from bulletbridge.models.attach import attach
from bulletbridge.models.bundled import find
from bulletbridge.models.load import load
from bulletbridge.models.loops_file import read_loops
from bulletbridge.models.model_spec import JointForce

LONG = """<robot name="r"><link name="world"/><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="b">
<inertial><mass value="1"/>
<inertia ixx="{moment}" iyy="{moment}" izz="{moment}" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="first" type="continuous"><parent link="world"/><child link="a"/>
</joint><joint name="far" type="continuous"><parent link="a"/><child link="b"/>
<origin xyz="300 0 0"/></joint></robot>"""
"""Two links of which one is 300 m from the other."""


LINK = """<link name="{}"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
HINGE = """<joint name="{}" type="continuous"><parent link="{}"/><child link="{}"/>
<origin xyz="{} 0 0"/><axis xyz="0 1 0"/></joint>"""


def world_of(client: int) -> tuple[int, float]:
    """Number of bodies and gravity."""
    parameters = pybullet.getPhysicsEngineParameters(client)
    return pybullet.getNumBodies(client), parameters["gravityAccelerationZ"]


def test_own_client_is_closed(tmp_path):
    with load(four_bar(tmp_path)) as loaded:
        assert pybullet.isConnected(loaded.client)
        loaded.system.step()
        q, _ = loaded.bodies.state()
        assert np.array_equal(q, loaded.system.q)
    assert not pybullet.isConnected(loaded.client)


def test_a_state_set_in_bullet_is_read_when_asked(tmp_path):
    with load(four_bar(tmp_path)) as loaded:
        system, body = loaded.system, next(iter(loaded.ids.values()))
        system.run(0.5)
        there = system.q, system.v
        system.assemble({"crank": 0.9})
        joints = list(range(len(there[0])))
        positions, rates = ([[x] for x in values.tolist()] for values in there)
        pybullet.resetJointStatesMultiDof(
            body, joints, positions, rates, physicsClientId=loaded.client
        )
        system.read()
        assert np.abs(system.q - there[0]).max() < 1e-12
        assert np.abs(system.v - there[1]).max() < 1e-12
        pybullet.resetJointState(body, 0, 0.1, physicsClientId=loaded.client)
        with pytest.raises(AssemblyError, match=r"call assemble\(\)"):
            system.read()


def test_given_client_is_left_as_it_was(tmp_path, client):
    pybullet.setGravity(0, 0, -1.5, client)
    before = world_of(client)
    spec = replace(read_loops(four_bar(tmp_path)), gravity=None)
    with load(spec, client) as loaded:
        assert world_of(client) == (1, -1.5)
        assert loaded.client == client
        assert loaded.system.gravity.tolist() == [0.0, 0.0, -1.5]
    assert world_of(client) == before


def test_the_client_that_is_connected_is_taken(tmp_path, client, capsys):
    with load(four_bar(tmp_path)) as loaded:
        assert loaded.client == client
        assert world_of(client) == (1, -9.81)
        assert "in the given world, client" in repr(loaded)
    assert world_of(client) == (0, 0.0)
    with load(four_bar(tmp_path), "new") as loaded:
        assert loaded.client != client
        with load(four_bar(tmp_path)) as second:  # the first one is ours, not the user's
            assert second.client == client
    assert "client is connected" not in capsys.readouterr().err


def test_with_several_clients_it_is_asked_which(tmp_path, client):
    other = pybullet.connect(pybullet.DIRECT)
    try:
        with pytest.raises(WorldError, match=rf"clients {client}, {other} are connected; say"):
            load(four_bar(tmp_path))
    finally:
        pybullet.disconnect(other)


def test_a_world_of_its_own_is_said_once(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(load_module, "_told", [])
    for _ in range(2):
        with load(four_bar(tmp_path)) as loaded:
            assert "in a world of its own" in repr(loaded)
    said = capsys.readouterr().err
    assert (
        said.count("client is connected") == 1
        and "'four_bar' is in a new one without a window" in said
    )


@pytest.mark.parametrize("stated", [None, (0.0, 0.0, -9.81), (0.0, 0.0, -1.5)])
@pytest.mark.parametrize("there", [0.0, -1.5])
@pytest.mark.parametrize("bodies", [0, 1])
def test_gravity_of_a_world_is_contradicted_by_no_model(tmp_path, client, stated, there, bodies):
    """The model's where nothing was set yet, else the world's; two that differ are named."""
    pybullet.setGravity(0, 0, there, client)
    for _ in range(bodies):
        pybullet.createMultiBody(1.0, physicsClientId=client)
    spec = replace(read_loops(four_bar(tmp_path)), gravity=stated)
    untouched = not there and not bodies
    if not untouched and stated is not None and stated[2] != there:
        both = rf"gravity \(0, 0, {stated[2]}\) m/s² and client {client} has \(0, 0, {there:g}\)"
        with pytest.raises(ModelError, match=both):
            load(spec, client)
        assert world_of(client) == (bodies, there)
        return
    expected = (stated or (0.0, 0.0, -9.81))[2] if untouched else there
    with load(spec, client) as loaded:
        assert loaded.system.gravity[2] == expected
        assert world_of(client) == (bodies + 1, expected)
    assert world_of(client) == (bodies, there)


def test_warnings_show_the_line_that_called(tmp_path):
    path = four_bar(tmp_path)
    path.write_text(path.read_text() + "joints:\n  crank: {limits: [1.5, 2.0]}\n")
    with pytest.warns(BulletBridgeWarning, match="beyond") as caught, load(path):
        pass
    assert {warning.filename for warning in caught} == {__file__}


def broken(spec):
    """Specs that fail at different stages, and what they fail with."""
    body = spec.bodies[0]
    pin = spec.constraints[0]
    far = replace(pin, b=Frame("rocker", (0.0, 5.0, 0.0)))
    weld = LoopJoint("pin", JointModel.WELD, pin.a, pin.b)
    yield replace(spec, bodies=(body, replace(body, name="b", urdf=body.urdf / "none"))), ModelError
    yield replace(spec, constraints=(replace(pin, a=Frame("nolink")),)), ModelError
    yield replace(spec, constraints=(far,)), AssemblyError
    yield replace(spec, constraints=(weld,)), BulletBridgeError
    yield replace(spec, start_q={"crank": float("nan")}), ModelError
    yield replace(spec, forces=(JointForce("nojoint"),)), ModelError


@pytest.mark.parametrize("case", range(6))
def test_failure_leaves_the_world_as_it_was(tmp_path, client, case):
    before = world_of(client)
    spec, error = list(broken(read_loops(four_bar(tmp_path))))[case]
    with pytest.raises(error):
        load(spec, client)
    assert world_of(client) == before
    clients = [k for k in range(16) if pybullet.isConnected(k)]
    with pytest.raises(error):
        load(spec, "new")
    assert [k for k in range(16) if pybullet.isConnected(k)] == clients


def test_missing_client_is_said():
    with pytest.raises(WorldError, match="no Bullet client 99"):
        load("four_bar", 99)


@pytest.mark.parametrize("kind", [BulletClient, Native])
def test_clients_are_given_as_objects_too(kind):
    world = kind(pybullet.DIRECT)
    try:
        world.setGravity(0, 0, -9.81)
        with load("four_bar", world) as model:
            assert model.client == world._client
            assert world.getNumBodies() == 1
        body = world.loadURDF(str(find("four_bar").with_name("four_bar.urdf")), useFixedBase=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BulletBridgeWarning)  # of inertias
            assert attach(body, [], client=world).world.client == world._client
    finally:
        world.disconnect()
    with pytest.raises(WorldError, match="no Bullet client -1"):
        load("four_bar", world)


def test_rewritten_file_is_read_again(tmp_path):
    path = four_bar(tmp_path)
    urdf = tmp_path / "four_bar.urdf"
    with load(path) as loaded:
        before = loaded.system.mechanism.bodies["mass"].sum()
    urdf.write_text(urdf.read_text().replace('<mass value="2.0"/>', '<mass value="3.0"/>'))
    with load(path) as loaded:
        assert loaded.system.mechanism.bodies["mass"].sum() == pytest.approx(before + 1.0)


POOL = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from bulletbridge.models.formats.scratch import scratch_folder

if __name__ == "__main__":
    with ProcessPoolExecutor(1, get_context("forkserver")) as pool:
        made = pool.submit(scratch_folder, Path(__file__), ()).result()
    print(made)
"""


def test_what_workers_make_on_the_way_goes_with_them(tmp_path):
    program = tmp_path / "pool.py"
    program.write_text(POOL)
    there = {**os.environ, "TMPDIR": str(tmp_path)}
    run = subprocess.run([sys.executable, program], env=there, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    made = Path(run.stdout.strip())
    assert made.is_relative_to(tmp_path) and not made.parent.exists()


LAMP = """<robot name="lamp">
  <link name="foot">
    <inertial><origin xyz="0.1 0 0.2" rpy="0.3 0.2 0.1"/><mass value="2"/>
      <inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision>
  </link>
  <link name="head">
    <inertial><mass value="1"/>
      <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="neck" type="continuous">
    <parent link="foot"/><child link="head"/><origin xyz="0 0 0.5"/><axis xyz="0 1 0"/>
  </joint>
</robot>"""


@pytest.mark.parametrize("fixed", [False, True])
def test_a_robot_stands_where_it_is_put(client, fixed):
    """Its base link, whatever its inertial frame, as ``loadURDF`` would put it."""
    place, turn = (0.3, -0.2, 1.5), np.array([0.1, -0.4, 0.2, 0.8])
    turn /= np.linalg.norm(turn)
    with load(
        LAMP, client, fixed_base=fixed, base_position=place, base_orientation=2.0 * turn
    ) as loaded:
        (body,) = loaded.ids.values()
        head = pybullet.getLinkState(body, 0, computeForwardKinematics=1, physicsClientId=client)
        there = Rotation.from_quat(turn).apply([0.0, 0.0, 0.5]) + place
        # numbers of at most 2, which Bullet tells in single precision
        assert np.allclose(head[4], there, rtol=0.0, atol=2.0 * np.finfo(np.float32).eps)
        turned = Rotation.from_quat(head[5]) * Rotation.from_quat(turn).inv()
        assert turned.magnitude() < 4.0 * np.finfo(np.float32).eps


@pytest.mark.parametrize(
    "given",
    [{"base_position": (0, 0)}, {"base_position": (0, 0, np.nan)}, {"base_orientation": (0,) * 4}],
)
def test_a_place_that_is_none_is_refused(client, given):
    with pytest.raises(ModelError, match=next(iter(given))):
        load(LAMP, client, fixed_base=True, **given)
    assert world_of(client) == (0, 0.0)


def test_one_place_is_not_that_of_several_robots(tmp_path, client):
    spec = read_loops(four_bar(tmp_path))
    spec = replace(spec, bodies=(*spec.bodies, replace(spec.bodies[0], name="other")))
    with pytest.raises(ModelError, match="has 2 robots"):
        load(spec, client, base_position=(0, 0, 1))


@pytest.mark.parametrize(("height", "told"), [(0.1, False), (0.0999, False), (0.05, True)])
def test_a_robot_that_starts_in_the_floor_is_told(client, height, told):
    """The foot is a box of 0.2 m about the base link's origin: it ends 0.1 m below it."""
    floor = pybullet.createCollisionShape(
        pybullet.GEOM_BOX, halfExtents=[2, 2, 1], physicsClientId=client
    )
    pybullet.createMultiBody(0.0, floor, basePosition=[0, 0, -1], physicsClientId=client)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load(LAMP, client, contacts=True, fixed_base=False, base_position=(0, 0, height)).close()
        load(
            LAMP, client, fixed_base=False, base_position=(0, 0, height)
        ).close()  # nothing acts there
    said = [str(one.message) for one in caught]
    assert len(said) == told
    assert all("'foot' of" in one and "0.05 m inside" in one for one in said)


@pytest.mark.parametrize(("at", "told"), [((300.0, 0.0, 100.0), True), ((30.0, 0.0, 10.0), False)])
def test_a_robot_as_far_away_as_one_placed_in_millimetres_is_told(at, told):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load("four_bar", "new", base_position=at).close()
    said = [str(one.message) for one in caught]
    assert any("if millimetres are meant, write (0.3, 0, 0.1)" in one for one in said) == told


def test_joints_at_hundreds_of_metres_are_told_unless_links_are_as_large(client):
    with pytest.warns(BulletBridgeWarning, match="joint 'far' is 300 m from the link that carr"):
        load(LONG.format(moment=1.0), client)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(LONG.format(moment=100.0), client)  # radius of gyration 10 m: 300 is less than 1000


def test_a_guess_that_is_shaken_keeps_what_no_loop_has(client):
    # two links in a straight line, of which no small turn brings the tip nearer to its pin
    links = "".join(LINK.format(name) for name in ("base", "upper", "a", "b", "hand"))
    chain = [("shoulder", "base", "upper", 0), ("first", "upper", "a", 0), ("elbow", "a", "b", 1)]
    hinges = "".join(HINGE.format(*hinge) for hinge in (*chain, ("wrist", "b", "hand", 1)))
    pin = """<loop_joint name="pin" type="spherical"><link1 link="b" xyz="1 0 0"/>
    <link1 link="upper" xyz="0.5 0 0"/></loop_joint>"""
    model = load(f'<robot name="r">{links}{hinges}{pin}</robot>', client, fixed_base=True)
    assert {move.joint for move in model.assembly.moved} == {"first", "elbow"}
    assert model.system.q["shoulder"] == model.system.q["wrist"] == 0.0


ARM = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/>
<origin xyz="{3} 0 0" rpy="0 {4} 0"/><axis xyz="0 1 0"/>
<limit lower="{5}" upper="{6}" effort="9" velocity="9"/></joint>"""


def test_loops_that_are_shaken_leave_those_they_share_no_joint_with(client):
    # a pentagon that is closed, beside two links in a straight line that are to meet their pin
    side, fifth = 1.0, 2.0 * np.pi / 5.0
    names = ("base", *"abcd", "one", "two")
    links = "".join(LINK.format(name) for name in names)
    chain = [(f"j{k}", names[k], names[k + 1], side * (k > 0), -fifth, -9, 9) for k in range(4)]
    line = [("first", "base", "one", 5, 0, -9, 9), ("elbow", "one", "two", 1, 0, -9, 9)]
    hinges = "".join(ARM.format(*each) for each in (*chain, *line))
    pins = """<loop_joint name="closed" type="spherical"><link1 link="d" xyz="1 0 0"/>
    <link1 link="base" xyz="-1 0 0"/></loop_joint><loop_joint name="open" type="spherical">
    <link1 link="two" xyz="1 0 0"/><link1 link="base" xyz="5.5 0 0"/></loop_joint>"""
    model = load(f'<robot name="r">{links}{hinges}{pins}</robot>', client, fixed_base=True)
    assert {move.joint for move in model.assembly.moved} >= {"first", "elbow"}
    for k in range(4):  # closed to round-off as it was drawn
        assert abs(model.system.q[f"j{k}"]) < 1e-12


def test_loops_that_are_shaken_end_within_limits_and_not_at_one(client):
    names, pin = ("base", *"abc"), '<link1 link="base" xyz="2 0 0"/></loop_joint>'
    links = "".join(LINK.format(name) for name in names)
    limits = {"first": (-0.8, 3.0), "elbow": (-3.2, 0.5), "wrist": (-2.5, 1.6)}
    hinges = "".join(
        ARM.format(name, names[k], names[k + 1], int(k > 0), 0, *limits[name])
        for k, name in enumerate(limits)
    )
    pin = f'<loop_joint name="pin" type="spherical"><link1 link="c" xyz="1 0 0"/>{pin}'
    q = load(f'<robot name="r">{links}{hinges}{pin}</robot>', client, fixed_base=True).system.q
    for name, (lower, upper) in limits.items():
        assert lower + 0.1 < q[name] < upper - 0.1


@pytest.mark.parametrize(
    "motor, turn, swing", [(2.0, 0.1, 1.0), (-2.0, 0.8, -1.0), (1.0, 0.4, 1.0)]
)
def test_a_guess_is_closed_where_the_motor_moves(client, motor, turn, swing):
    # a rod on a universal joint of the motor's crank, to a ball on the foot: drawn out of their
    # plane it would next be closed along the first axis of the joint, about which it only spins
    links = "".join(LINK.format(name) for name in ("thigh", "crank", "cross", "rod", "foot"))
    joints = "".join(
        f'''<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>
        <origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/></joint>'''
        for name, parent, child, xyz, rpy, axis in (
            ("motor", "thigh", "crank", "-0.015 0 -0.11", f"0 {motor} 0", "0 1 0"),
            ("turn", "crank", "cross", "0 0 0.0825", f"{turn} 0 0", "1 0 0"),
            ("swing", "cross", "rod", "0 0 0", f"0 {swing} 0", "0 1 0"),
            ("ankle", "thigh", "foot", "0 0 -0.38", "0 0 0", "0 1 0"),
        )
    )
    pin = """<loop_joint name="pin" type="spherical"><link1 link="rod" xyz="0 0 0.2155"/>
    <link1 link="foot" xyz="-0.08 0 0.02"/></loop_joint>
    <transmission name="t"><joint name="motor"/><actuator name="a"/></transmission>"""
    system = load(f'<robot name="leg">{links}{joints}{pin}</robot>', client, fixed_base=True).system
    system.assemble(v={"motor": 1.0})  # which is refused where it is locked
    assert system.v["motor"] == pytest.approx(1.0, abs=1e-12)  # solved for to round-off
