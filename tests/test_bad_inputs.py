"""Bad input gets one clear error that names the thing and the remedy, and changes nothing."""

import re
from functools import partial

import numpy as np
import pybullet
import pytest
from support.planar import planar_chain
from support.small_models import four_bar

import bulletbridge as bb
from bulletbridge.engine.whitened import whiten
from bulletbridge.errors import (
    AssemblyError,
    BulletBridgeWarning,
    LoopFileError,
    ModelError,
    StepError,
    WorldError,
)
from bulletbridge.models.bundled import find
from bulletbridge.models.loops_file import read_loops
from bulletbridge.system.options import ELSEWHERE

PIN = bb.LoopJoint(
    "pin", bb.JointModel.BALL, bb.Frame("coupler", (0, 0, -1.2)), bb.Frame("rocker", (0, 0, -0.9))
)


@pytest.fixture
def client(client_on_earth):
    return client_on_earth


@pytest.fixture
def robot(client, tmp_path):
    path = four_bar(tmp_path).parent / "four_bar.urdf"
    flags = pybullet.URDF_USE_INERTIA_FROM_FILE
    body = pybullet.loadURDF(str(path), useFixedBase=True, flags=flags, physicsClientId=client)
    pybullet.resetJointState(body, 0, 0.3, 0.1, physicsClientId=client)
    return body


def snapshot(client):
    """Everything that a failed call must not touch."""
    seen = [pybullet.getPhysicsEngineParameters(client), pybullet.getNumConstraints(client)]
    for i in range(pybullet.getNumBodies(client)):
        body = pybullet.getBodyUniqueId(i, client)
        joints = range(pybullet.getNumJoints(body, physicsClientId=client))
        seen.append(pybullet.getJointStatesMultiDof(body, list(joints), physicsClientId=client))
        seen.append(pybullet.getBasePositionAndOrientation(body, physicsClientId=client))
        seen.append([pybullet.getDynamicsInfo(body, j, physicsClientId=client) for j in joints])
    return repr(seen)


def reach(system, frame):
    return bb.inverse_kinematics(system, frame, (0.0, 0.0, 0.0))


def attach(robot, client, *constraints, **options):
    return bb.attach(robot, constraints, client, **options)


def attempt(error, message, client, call):
    """The call fails with this message and leaves the world alone."""
    before = snapshot(client)
    with pytest.raises(error, match=message):
        call()
    assert snapshot(client) == before


def test_an_unknown_link(robot, client):
    loop = bb.LoopJoint("pin", bb.JointModel.BALL, bb.Frame("roker"), bb.Frame("ground"))
    message = "loop 'pin': unknown link 'roker'; did you mean 'rocker'"
    attempt(ModelError, message, client, lambda: attach(robot, client, loop))


def test_a_misspelt_key(client, tmp_path):
    path = four_bar(tmp_path)
    path.write_text(path.read_text().replace("gravity", "gravty"))
    message = r":\d+: unknown key 'gravty'; did you mean 'gravity'\?"
    attempt(LoopFileError, message, client, lambda: bb.load(path, client))


def test_loops_that_cannot_close_are_named_the_widest_first(robot, client):
    far = [
        bb.LoopJoint(name, PIN.model, PIN.a, bb.Frame("rocker", (0, 0, z)))
        for name, z in (("near", 5), ("far", -9))
    ]
    message = (
        r"loop '\w+' cannot close: gap [\d.]+ m \(limit .* m\), with '\w+' [\d.]+ m, the least"
    )
    attempt(AssemblyError, message, client, attach(robot, client, *far).assemble)


def test_a_loop_that_cannot_close(robot, client):
    far = bb.LoopJoint("pin", PIN.model, PIN.a, bb.Frame("rocker", (0, 0, -9)))
    system = attach(robot, client, far)
    message = (
        r"loop 'pin' cannot close: gap 5.69 m .*, the least that was found downhill .* 18 others"
        r".*check 'xyz': frame b of 'pin' is 9 m from the origin of 'rocker'"
    )
    attempt(AssemblyError, message, client, system.assemble)
    assert system.q[0] == 0.3


def test_frames_of_loops_that_close_are_not_blamed(robot, client):
    """Points on planes in which the linkage moves, far off their links, beside a pin out of it."""
    plane = bb.LoopJoint(
        "plane",
        bb.JointModel.PLANAR,
        bb.Frame("rocker", (0, 0, -9)),
        bb.Frame("world"),
        axis=(0, 1, 0),
    )
    off = bb.LoopJoint("pin", PIN.model, PIN.a, bb.Frame("rocker", (0, 0.02, -0.9)))
    with pytest.raises(AssemblyError, match="loop 'pin' cannot close: gap 0.02 m") as caught:
        attach(robot, client, plane, off).assemble()
    assert "'plane'" not in str(caught.value)


OPEN = [  # another frame b, another model or axis, and what is said of it; hinges are along y
    ({"b": ((0, 0.02, -0.9), (0, 0, 0))}, "no joint moves it in that direction, so a frame is off"),
    (
        {"b": ((0, 0, -900), (0, 0, 0))},
        "times the size of what it joins: give .* in metres, not in",
    ),
    ({"axis": (0, 0, 1)}, "its points can meet, but not with its axes aligned: check 'axis'"),
    ({"b": ((0, 0, -0.9), (0.05, 0, 0)), "axis": (0, 1, 0)}, "so an axis is tilted so far: check"),
]


@pytest.mark.parametrize(("change", "message"), OPEN)
def test_what_keeps_a_loop_open_is_told(robot, client, change, message):
    b = bb.Frame("rocker", *change.get("b", ((0, 0, -0.9), (0, 0, 0))))
    model = bb.JointModel.REVOLUTE if "axis" in change else PIN.model
    loop = bb.LoopJoint("pin", model, PIN.a, b, change.get("axis", (0, 0, 1)))
    system = attach(robot, client, loop)
    attempt(AssemblyError, f"loop 'pin' cannot close: .*{message}", client, system.assemble)


def test_pybullets_words_are_told_with_ours(robot, client):
    system = attach(robot, client, PIN)
    for name, remedy in (
        ("targetVelocity", "write velocity="),
        ("maxForce", "write force="),
        ("torque", r"system.tau\['crank'\] = "),
        ("stiffness", r"write motors.servo\('crank'"),
        ("velocty", "did you mean 'velocity'"),
    ):
        message = f"a motor has no '{name}'; {remedy}"
        attempt(ModelError, message, client, lambda n=name: system.motors.set("crank", **{n: 1.0}))
    attempt(ModelError, "did you mean 'dt'", client, lambda: attach(robot, client, timeStep=0.01))


def test_what_other_programs_have_is_told_with_ours(robot, client):
    system = attach(robot, client, PIN)
    system.assemble()
    for name, remedy in (
        ("mass_matrix", "write system.dynamics"),
        ("joints", "write system.mechanism.joints"),
        ("inverse_kinematics", r"write bb.inverse_kinematics\(system"),
        ("joint_names", r"write list\(system.mechanism.joints\)"),
        ("set_q", "write system.set_state"),
        ("no_such", "$"),
    ):
        with pytest.raises(AttributeError, match=f"a system has no '{name}'.*{remedy}"):
            getattr(system, name)
    for name, remedy in ELSEWHERE.items():  # each of them works
        written = re.sub("'(link|joint)'", "'crank'", remedy.format(name)).split(", ")
        if written[0].startswith("bb."):
            assert name in bb.__all__
        elif written[0].startswith("system.") and "where" not in remedy:
            eval(", ".join(written), {"system": system, "bb": bb})
    with (
        bb.load("four_bar", "new") as model,
        pytest.raises(AttributeError, match="a LoadedModel has no 'step'; write model.system.step"),
    ):
        model.step()
    attempt(ModelError, "7 is no frame; give a link's name", client, lambda: reach(system, 7))
    attempt(ModelError, r"no recording; give .* plot\(system.run", client, lambda: bb.plot(system))
    law = bb.Tracking(bb.plant_of(system), lambda t: (0.0, 0.0), 1.0, 1.0)
    attempt(ModelError, "give bb.Desired", client, lambda: law(system.q, system.v, 0.0))
    law = bb.Tracking(bb.plant_of(system), lambda t: bb.Desired([0.0], [0.0], [0.0]), 1.0, 1.0)
    attempt(ModelError, "needs 3 positions", client, lambda: law(system.q, system.v, 0.0))


def test_what_newcomers_write_is_told_in_our_words(robot, client):
    system = attach(robot, client, PIN)
    for call, message in (
        (lambda: system.evaluate().gaps.items(), "write for gap in gaps: gap.name"),
        (lambda: system.evaluate().total_energy, r"write \.energy"),
        (lambda: system.q.crank, r"write q\['crank'\]"),
        (lambda: system.motors.position("crank", 1.0), r"write motors.set\('joint', position="),
        (lambda: bb.compare("four_bar"), "it is a command: bulletbridge compare"),
    ):
        with pytest.raises(AttributeError, match=message):
            call()
    for call, message in (
        (lambda: system.motors["crank"], r"write motors.set\('crank', velocity="),
        (lambda: system.motors.servo("crank", kp=1.0), "stiffness=..., damping=..."),
    ):
        attempt(TypeError, message, client, call)
    for option, message in (
        ("gravity", "setGravity"),
        ("base_pos", "base_position"),
        ("repair_inertias", "'repair_inertia'"),
    ):
        attempt(
            ModelError, message, client, lambda o=option: bb.load("four_bar", "new", **{o: True})
        )
    wrong = partial(bb.attach, robot, client=client, loops=[PIN])
    attempt(ModelError, "second argument", client, wrong)
    with bb.load("four_bar", "new") as model, pytest.raises(AttributeError, match="model.close"):
        model.disconnect()


def test_a_property_of_a_system_that_raises_keeps_its_own_message():
    class Told(bb.System):
        @property
        def friction(self):
            return self.mechanism.friction

    with pytest.raises(AttributeError, match="'Mechanism' object has no attribute 'friction'"):
        _ = Told(planar_chain([0.5], [1.0])).friction


def test_parts_of_a_system_print_as_a_line(robot, client):
    system = attach(robot, client, PIN)
    assert re.match(
        "<Assembly: moved coupler by -2.*; crank by .*, gap .*>$",
        repr(system.assemble({"crank": 1.0})),
    )
    assert "1 constraint, " in repr(system)
    assert repr(system.evaluate()).endswith(f"energy {system.evaluate().energy:.6g} J>")
    assert repr(bb.Worlds(system, 2)) == f"<Worlds: 2 of {system!r}>"
    assert repr(bb.plant_of(system, ["crank"])) == "<Plant: crank act, of 3 rates>"
    system.motors.set("crank", velocity=1.0, force=1.0)
    others = len(system.mechanism.joints) - 1
    assert repr(system.motors) == f"<Motors: crank on, {others} off>"
    assert "2 of 3 rows of 1 constraints kept, 2 of them" in repr(system.decision)


def test_a_start_that_is_not_a_number(robot, client):
    system = attach(robot, client, PIN)
    attempt(
        ModelError, "'crank' must be 1 finite", client, lambda: system.assemble({"crank": np.nan})
    )
    pybullet.resetJointState(robot, 1, np.nan, physicsClientId=client)
    message = r"joint 'coupler': position \[nan\] .* is not a number; reset it"
    attempt(WorldError, message, client, lambda: attach(robot, client, PIN))


def test_a_link_without_mass(client, tmp_path):
    path = four_bar(tmp_path).parent / "four_bar.urdf"
    text = path.read_text()
    start = text.index('<link name="rocker"')
    mass = text.index("<mass value=", start)
    text = text[:mass] + '<mass value="0"/>' + text[text.index("/>", mass) + 2 :]
    inertia = text.index("<inertia ", start)
    zero = '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
    text = text[:inertia] + zero + text[text.index("/>", inertia) + 2 :]
    path.write_text(text)
    pybullet.setPhysicsEngineParameter(enableFileCaching=0, physicsClientId=client)
    flags = pybullet.URDF_USE_INERTIA_FROM_FILE
    body = pybullet.loadURDF(str(path), useFixedBase=True, flags=flags, physicsClientId=client)
    with pytest.warns(BulletBridgeWarning, match="'rocker'.* moves no inertia.*<inertial>"):
        system = attach(body, client, PIN)  # a rod without mass: its loop says how it moves
    assert np.count_nonzero(system.mechanism.axes["armature"]) == 1


def test_contradictory_driven_loops(robot, client):
    def drive(name, rate):
        motion = bb.Motion(z=bb.Polynomial((1.0, rate)))
        return bb.Coupling(name, {"crank": 1.0}, motion=motion)

    system = attach(robot, client, PIN, drive("one", 0.5), drive("two", 0.6))
    attempt(AssemblyError, "contradict the constraint '(one|two)'", client, system.assemble)


def test_a_step_that_fails(robot, client):
    system = attach(robot, client, PIN)
    system.assemble({"crank": 1.0})
    system.step()
    q, v, t = system.q, system.v, system.t
    system.tau[:] = np.nan
    attempt(
        StepError,
        "not finite, nor could it be done in parts, down to dt / 512, by verlet and"
        " semi_implicit_euler too, nor under error control by dop853; the state",
        client,
        system.step,
    )
    assert np.array_equal(system.q, q)
    assert np.array_equal(system.v, v)
    assert system.t == t


def test_a_body_removed_under_our_feet(robot, client):
    system = attach(robot, client, PIN)
    system.assemble({"crank": 1.0})
    q = system.q
    pybullet.removeBody(robot, physicsClientId=client)
    attempt(WorldError, "four_bar", client, system.step)
    attempt(WorldError, "four_bar", client, lambda: system.assemble({"crank": 0.9}))
    assert np.array_equal(system.q, q)


def test_what_is_no_constraint_no_client_and_no_option(robot, client):
    system = attach(robot, client, PIN)
    for call in (lambda: system.connect("weld"), lambda: bb.attach(robot, ["weld"], client)):
        with pytest.raises(ModelError, match="'weld' is no constraint; give one, such as"):
            call()
    with pytest.raises(ModelError, match="are one LoopJoint 'pin'; give a list"):
        bb.attach(robot, PIN, client)
    with pytest.raises(WorldError, match=r"'gui' is no Bullet client.*pybullet.connect\("):
        bb.load("four_bar", "gui")
    with pytest.raises(ModelError, match="no option 'useFixedBase'; load has fixed_base=True"):
        bb.load("four_bar", "new", useFixedBase=True)


def test_the_wrong_client(robot, client):
    other = pybullet.connect(pybullet.DIRECT)
    try:
        message = f"client {other} has no body {robot}; it has none"
        attempt(WorldError, message, other, lambda: attach(robot, other, PIN))
        system = attach(robot, client, PIN)
        pybullet.disconnect(client)
        attempt(WorldError, "connect", other, system.assemble)
    finally:
        pybullet.disconnect(other)


@pytest.mark.parametrize(
    ("said", "told"),
    [("HINGE", "JointModel.REVOLUTE"), ("ball", "JointModel.BALL"), ("ROD", "bb.Distance")],
)
def test_a_joint_model_that_is_called_otherwise_is_told(said, told):
    with pytest.raises(AttributeError, match=f"no JointModel.{said}; that is {told}"):
        getattr(bb.JointModel, said)


@pytest.mark.parametrize("said", ["hinge", "Revolute", "pin"])
def test_a_joint_model_by_another_name_is_told_by_ours(said):
    system = bb.System(planar_chain([0.5], [1.0]))
    loop = bb.LoopJoint("loop", said, bb.Frame("l0"), bb.Frame("world"))
    with pytest.raises(ModelError, match=r"'loop' has model .*; give bb.JointModel.REVOLUTE"):
        bb.System(system.mechanism, [loop])


@pytest.mark.parametrize(
    ("model", "right", "wrong", "told"),
    [
        ("four_bar", 'damping="0"', 'damping="inf"', 'has damping="inf"; give numbers'),
        ("four_bar", 'friction="0"', 'friction="nan"', 'has friction="nan"; give numbers'),
    ],
)
def test_numbers_of_a_urdf_that_cannot_be_calculated_with_are_told(
    tmp_path, model, right, wrong, told
):
    loops = find(model).read_text()
    urdf = read_loops(find(model)).bodies[0].urdf
    before, found, after = urdf.read_text().rpartition(right)
    assert found
    (tmp_path / urdf.name).write_text(before + wrong + after)
    (tmp_path / "wrong.loops.yaml").write_text(loops)
    (tmp_path / "meshes").symlink_to(urdf.parent / "meshes")
    with pytest.raises(ModelError, match=told):
        bb.load(tmp_path / "wrong.loops.yaml", "new")


def test_inertias_that_no_number_tells_apart_are_refused():
    """The second rate's own inertia, 1, is lost beside what it shares with the first."""
    far = 1e12
    M = np.array([[far**2 + 2, far**2 + 1], [far**2 + 1, far**2]])
    with pytest.raises(ModelError, match=r"span 1e\+24 to 1e\+24; correct the mass"):
        whiten(M, np.eye(2))
