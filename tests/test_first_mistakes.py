"""What people get wrong in their first hour, and whether they are told what to do instead."""

import errno
import pickle
import re
import threading
import warnings
from pathlib import Path

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_allclose
from support.planar import assembled, four_bar
from support.urdf_builder import inertial, joint, link, robot

import bulletbridge as bb
from bulletbridge.bullet.worlds import _ours
from bulletbridge.comparison.inspection import inspect_model
from bulletbridge.console import deliver, require_places, require_writable, unwritable
from bulletbridge.errors import (
    AssemblyError,
    BulletBridgeError,
    BulletBridgeWarning,
    LoopFileError,
    ModelError,
    StepError,
    UnknownNameError,
    WorldError,
)
from bulletbridge.models.formats.convert import convert
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.loops_file import FLOATS, read_loops


def pendulum(folder: Path, said: str = "", upper: float | None = None) -> Path:
    """A loops file of one arm on a base, from zero to an upper limit if there is one."""
    kind = "continuous" if upper is None else "revolute"
    (folder / "robot.urdf").write_text(
        robot(
            link("base", inertial(1.0, (0.01, 0.01, 0.01))),
            link("arm", inertial(2.0, (0.01, 0.05, 0.05), (0.25, 0, 0))),
            joint("hip", kind, "base", "arm", limits=(0.0, upper or 0.0)),
        )
    )
    path = folder / "robot.loops.yaml"
    path.write_text(f"bulletbridge: 1\nurdf: robot.urdf\n{said}\n")
    return path


def flat_parallelogram(folder: Path, turned: float) -> Path:
    """Cranks of 0.5 m and a coupler of 1 m, which may start in one line."""
    weight = inertial(1.0, (0.01, 0.01, 0.01))
    (folder / "flat.urdf").write_text(
        robot(
            link("ground"),
            *(link(name, weight) for name in ("crank", "coupler", "rocker")),
            joint("j1", "continuous", "ground", "crank", axis="0 1 0"),
            joint("j2", "continuous", "crank", "coupler", (0.5, 0, 0), axis="0 1 0"),
            joint("j3", "continuous", "coupler", "rocker", (1, 0, 0), axis="0 1 0"),
        )
    )
    path = folder / "flat.loops.yaml"
    path.write_text(
        "bulletbridge: 1\nurdf: flat.urdf\nfixed_base: true\nloops:\n  - {name: pin, type: ball,"
        " a: {link: rocker, xyz: [-0.5, 0, 0]}, b: {link: ground, xyz: [1, 0, 0]}}\n"
        f"start: {{q: {{j1: {turned}}}, guess: {{j2: {-turned}, j3: {turned}}}}}\n"
    )
    return path


def test_a_forgotten_fixed_base_is_told_wherever_a_file_is_read(tmp_path):
    path = pendulum(tmp_path)
    assert read_loops(path).notes == (FLOATS,)
    with pytest.warns(BulletBridgeWarning, match="fixed_base: true"):
        bb.load(path, "new").close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for fixed in (True, False):  # whoever says it has not forgotten it
            bb.load(path, "new", fixed_base=fixed).close()
    for said in (
        "fixed_base: false",
        "fixed_base: true",
        "start: {q: {base: [0, 0, 1, 0, 0, 0, 1]}}",
        "scenery: [{name: floor, urdf: pybullet_data/plane.urdf}]",
    ):
        assert read_loops(pendulum(tmp_path, said)).notes == ()


def test_a_pose_of_the_base_in_start_is_told_where_it_goes(tmp_path):
    with pytest.raises(LoopFileError, match=r"q: \{base: \[x, y, z, qx, qy, qz, qw\]\}"):
        read_loops(pendulum(tmp_path, "start: {base: {xyz: [0, 0, 1]}}"))


def test_limits_without_room_are_told(tmp_path):
    """As exporters of drawing programs write them: all four numbers of <limit> zero."""
    path = pendulum(tmp_path, "fixed_base: true", 0.0)
    assert sum("'hip' cannot move" in said for said in inspect_model(path).warnings) == 1
    with pytest.warns(BulletBridgeWarning, match=r"'hip' cannot move: its limits are \[0, 0\]"):
        bb.load(path, "new").close()
    bb.load(path, "new", limits=False).close()  # it does move
    assert not inspect_model(pendulum(tmp_path, "fixed_base: true", 1.0)).warnings


@pytest.mark.parametrize(("turned", "singular"), [(0.0, True), (0.3, False)])
def test_a_singular_start_is_told_by_inspect(tmp_path, turned, singular):
    """In one line the cranks of a parallelogram may go on as an antiparallelogram."""
    found = inspect_model(flat_parallelogram(tmp_path, turned))
    assert found.dof == 1
    assert any("singular position" in said for said in found.warnings) is singular


def test_holding_too_much_is_told_as_that():
    system = four_bar()
    system.assemble()
    joints = list(system.mechanism.joints)
    with pytest.raises(AssemblyError, match="were not held where they were put") as told:
        system.assemble({name: 0.7 for name in joints})
    assert all(f"'{name}'" in str(told.value) for name in joints)


def test_a_measure_of_gaps_that_does_not_exist_is_told_with_the_nearest():
    system = four_bar()
    system.assemble()
    with pytest.raises(UnknownNameError, match="did you mean 'metres'"):
        system.evaluate().largest("meters")


def test_what_a_joint_bears_is_shown_in_a_line(tmp_path):
    with bb.load(pendulum(tmp_path, "fixed_base: true"), "new") as model:
        shown = repr(model.system.joint_reactions()["hip"])
    assert shown.startswith("<JointReaction of 'hip' on 'arm': [")
    assert shown.endswith("world axes>")


def test_a_saved_state_is_shown_in_a_line():
    system = four_bar()
    system.assemble()
    assert len(repr(system.save())) < 100


def test_places_are_tried_before_long_work_and_left_as_they_were(tmp_path):
    kept, new = tmp_path / "kept.json", tmp_path / "new.json"
    kept.write_text("mine")
    require_places(str(kept), tmp_path / "report")
    require_writable(new)
    assert kept.read_text() == "mine" and not new.exists()
    assert list((tmp_path / "report").iterdir()) == []
    with pytest.raises(ModelError, match="cannot write"):
        require_writable(tmp_path)  # a folder is no file
    for code, remedy in ((errno.ENOSPC, "free some space"), (errno.EROFS, "yours to write")):
        assert remedy in str(unwritable(new, OSError(code, "why")))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_results_are_shown_though_the_disk_is_full():
    shown = list[int]()
    with pytest.raises(ModelError, match="free some space"):
        deliver("/dev/full", {"a": 1}, lambda: shown.append(1))
    assert shown == [1]


def test_robots_without_colours_have_some_in_the_viewer(tmp_path):
    from bulletbridge.viewer.visuals import visuals_of

    box = '<visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>'
    painted = '<material name="m"><color rgba="0 0 1 1"/></material></visual>'
    for paint in (False, True):
        own = box.replace("</visual>", painted) if paint else box
        path = tmp_path / f"{paint}.urdf"
        path.write_text(
            robot(
                link("base", own),
                link("arm", inertial() + own),
                joint("hip", "continuous", "base", "arm"),
            )
        )
        with bb.load(read_model(path, fixed_base=True), "new", limits=False) as model:
            colours = {v.link[1]: v.colour[:3] for v in visuals_of(model.client)}
        if paint:
            assert set(colours.values()) == {(0.0, 0.0, 1.0)}
        else:
            assert len(set(colours.values())) == 2 and not np.allclose(colours[0], 1.0)


def test_names_and_frames_of_the_wrong_kind_are_told_with_the_right_one():
    system = four_bar()
    system.assemble()
    with pytest.raises(ModelError, match=r"give a list of names, as \['j0'\]"):
        bb.inverse_dynamics(system, np.zeros(3), actuated="j0")
    with pytest.raises(ModelError, match=r"give a link's name, or bb\.Frame"):
        system.kinematics().point(0.3)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match=r"system\.linearise"):
        bb.linearise  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"it is bulletbridge\.errors\.StepError"):
        bb.StepError  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ModelError, match="no option 'thread'; did you mean 'threads'"):
        bb.rollout(system, [system.q], steps=1, **{"thread": 2})
    with pytest.raises(AssemblyError, match="ask for a place within reach"):
        bb.inverse_kinematics(system, bb.Frame("l1"), (50.0, 0.0, 0.0))
    system.motors.set("j0", velocity=0.0, force=1.0)
    with pytest.raises(ModelError, match="motors are no part of this"):
        bb.modes(system)


def test_a_column_of_a_recording_is_found_by_name():
    system = four_bar()
    system.assemble()
    run = system.run(0.1)
    assert np.array_equal(run["j0"], run.position("j0"))
    assert np.array_equal(run["j0.rate"], run.rate("j0"))
    with pytest.raises(UnknownNameError, match="did you mean 'j0"):
        run["j0.velocity"]


def test_tasks_that_cannot_be_meant_are_refused():
    pytest.importorskip("gymnasium")
    from bulletbridge.gym import Action, LoopEnv, Task

    with pytest.raises(UnknownNameError, match="kind of the action on 'crank' 'force'"):
        Action("crank", "force", -1.0, 1.0)  # type: ignore[arg-type]
    for low, high in ((1.0, 1.0), (-np.inf, 1.0)):
        with pytest.raises(ModelError, match="two different finite numbers"):
            Action("crank", "torque", low, high)
    seen = {"crank": lambda view: view.position("crank")}
    before = len(_ours)
    with pytest.raises(ModelError, match=r"give Observation\(function, low, high\)"):
        LoopEnv(Task("four_bar", observations=seen))  # type: ignore[arg-type]
    assert len(_ours) == before  # no world is left behind


FOUR_BAR = {"crank": "0 1 0", "coupler": "0 1 0", "rocker": "0 1 0"}


def written_four_bar(folder: Path, axes: dict[str, str], end: float = 0.5) -> Path:
    """A square of four bars of 0.5 m, closed at the start, by a ball at the end of the rocker."""
    rod = inertial(1.0, (0.001, 0.02, 0.02), (0.25, 0, 0))
    turned = {"crank": (0.0, -np.pi / 2, 0.0)}
    parts, parent = [link("ground", inertial(1.0, (0.1, 0.1, 0.1)))], "ground"
    for name, axis in axes.items():
        place, rpy = (0.0 if parent == "ground" else 0.5, 0, 0), turned.get(name, (0, np.pi / 2, 0))
        parts.append(link(name, rod))
        parts.append(joint(f"{name}_pin", "continuous", parent, name, place, rpy, axis=axis))
        parent = name
    (folder / "bars.urdf").write_text(robot(*parts))
    path = folder / "bars.loops.yaml"
    path.write_text(
        "bulletbridge: 1\nurdf: bars.urdf\nfixed_base: true\nloops:\n"
        f"  - {{name: pin, type: ball, a: {{link: rocker, xyz: [{end}, 0, 0]}},"
        " b: {link: ground, xyz: [0.5, 0, 0]}}\n"
    )
    return path


@pytest.mark.parametrize("odd", ["coupler", "rocker"])
def test_a_joint_that_leaves_the_plane_of_its_loop_is_named(tmp_path, odd):
    """Its axis is wrong: what moves in a plane is a structure then."""
    good = written_four_bar(tmp_path, FOUR_BAR)
    bb.load(good, "new").close()
    with pytest.raises(bb.errors.OverconstrainedError, match=f"<axis> .* of '{odd}_pin'"):
        bb.load(written_four_bar(tmp_path, FOUR_BAR | {odd: "1 0 0"}), "new")


def test_a_frame_far_off_its_link_is_named_where_a_loop_does_not_close(tmp_path):
    with pytest.raises(AssemblyError, match=r"frame a of 'pin' is 3 m from .* of 'rocker'"):
        bb.load(written_four_bar(tmp_path, FOUR_BAR, end=3.0), "new")


def test_assembly_asks_whether_degrees_are_meant(tmp_path):
    """Not of joints that are turned as far already, nor of angles within a turn."""
    model = bb.load(written_four_bar(tmp_path, FOUR_BAR), "new")
    system = model.system
    with pytest.warns(BulletBridgeWarning, match="if degrees are meant, write 1.0472"):
        system.assemble({"crank_pin": 60.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        system.assemble({"crank_pin": 62.0})
        system.assemble({"crank_pin": 61.0})
    model.close()
    path = written_four_bar(tmp_path, FOUR_BAR)
    path.write_text(path.read_text() + "start: {q: {crank_pin: 60}}\n")
    found = inspect_model(path)
    assert sum("60 rad" in said for said in (*found.notes, *found.warnings)) == 1  # and once


FIVE_BAR = """bulletbridge: 1
urdf: flat.urdf
fixed_base: true
loops:
  - {{name: pin, type: {kind}, a: {{link: rocker, xyz: [{far}, 0, 0]}},
     b: {{link: {link}, xyz: [{to}, {off}, 0]{more}}}}}
start: {{q: {{j1: 1.0}}, guess: {{j2: -1.0, j3: 1.0}}}}
"""


def pinned(folder: Path, **said: object) -> Path:
    """The parallelogram, 1 rad from flat, with a pin that is told otherwise."""
    usual = {"kind": "ball", "link": "ground", "far": -0.5, "to": 1.0, "off": 0.0, "more": ""}
    path = flat_parallelogram(folder, 1.0)
    path.write_text(FIVE_BAR.format(**usual | said))
    return path


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"link": "j1"}, "'j1' is a joint, not a link: its link is 'crank'"),
        ({"more": ", axis: [0, 1, 0]"}, "'axis_b' stands beside 'type', in the axes of frame b"),
        # about z: aligned in no posture but flat ones, while the points meet at any
        ({"kind": "revolute"}, "can meet, but not with its axes aligned: check 'axis', which is z"),
        ({"off": 0.3}, "no joint moves it in that direction, so a frame is off by the gap"),
    ],
)
def test_a_loop_that_is_told_wrong_is_told_what_to_change(tmp_path, said, told):
    with pytest.raises(BulletBridgeError, match=re.escape(told)):
        bb.load(pinned(tmp_path, **said), "new")


def test_a_link_in_the_place_of_a_joint_is_told_with_its_joint(tmp_path):
    path = pinned(tmp_path)
    path.write_text(path.read_text() + "actuated: [crank]\n")
    with pytest.raises(LoopFileError, match="'crank' is a link, not a joint: its joint is 'j1'"):
        bb.load(path, "new")


def test_lengths_in_millimetres_are_told_where_the_loop_closes_all_the_same(tmp_path):
    """A point half a kilometre out on a bar is in the plane of the linkage as well."""
    with (
        pytest.warns(BulletBridgeWarning, match="give lengths in metres, not in mm"),
        bb.load(pinned(tmp_path, kind="point_on_plane, axis: [0, 1, 0]", far=-500.0), "new"),
    ):
        pass


def test_a_model_in_the_place_of_its_system_is_told_as_that(tmp_path):
    with bb.load(pinned(tmp_path), "new") as model:
        for use in (bb.view, bb.modes, lambda m: bb.record(m, tmp_path / "run.gif", 1.0)):
            with pytest.raises((AttributeError, ModelError), match="give its system, model.system"):
                use(model)
        with pytest.raises(AttributeError, match="write model.system.step"):
            model.step()


def test_what_results_lack_is_told_with_where_it_is():
    system = four_bar()
    moved = system.assemble()
    run, seen = system.run(0.05), system.evaluate()
    (name,) = system.reactions()
    for result, lacks, told in [
        (system.status, "gap", r"system.evaluate\(\).gaps"),
        (seen, "gap", r"\.largest\('metres'\)"),
        (seen.gaps[0], "value", "\\.metres"),
        (moved, "q", "write system.q"),
        (system.reactions()[name], "moment", "\\.torque"),
        (system.kinematics(), "position", r"\.point\(bb.Frame\('link'\)\).p_W"),
        (run, "time", "write .t"),
        (run, "j0", r"write run\['j0'\]"),
    ]:
        with pytest.raises(AttributeError, match=told):
            getattr(result, lacks)
        copied = pickle.loads(pickle.dumps(result))
        assert type(copied) is type(result)
    assert seen.gaps[name] is seen.gaps[0]
    with pytest.raises(UnknownNameError, match=f"did you mean '{name}'"):
        seen.gaps[name.upper()]


def test_links_joints_and_rates_of_steps_are_not_taken_for_each_other(tmp_path):
    with bb.load(pinned(tmp_path), "new") as model:
        system = model.system
        said = "'crank' is a link, not a joint: its joint is 'j1'"
        with pytest.raises(UnknownNameError, match=said):
            system.motors.set("crank", velocity=1.0)
        with pytest.raises(UnknownNameError, match="'j1' is a joint, not a link"):
            system.link_pose("j1")
        with pytest.warns(BulletBridgeWarning, match="give 1/240"):
            system.dt = 240.0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda s: s.step(0.01),
            r"a step takes no 0.01, it is of system.dt = 0.004.*run\(duration\)",
        ),
        (lambda s: s.run(steps=10), r"'steps'; .*system.rollout\(steps\) a number"),
        (lambda s: s.rollout(duration=1.0), r"'duration'; .*system.run\(duration\) seconds"),
        (lambda s: s.run(1.0, dt=1e-3), r"'dt'; .*dt is system.dt"),
        (lambda s: s.assemble(q1=1.0), r"'q1'; give positions by joint name"),
        (lambda s: bb.record(s, "run.gif", steps=10), "is told seconds"),
        (
            lambda s: s.motors.set("j0", 1.0),
            r"targets go by name, as motors.set\('j0', position=1.0",
        ),
        (lambda s: s.save("state.pickle"), r"pickle.dump\(state, file\)"),
    ],
)
def test_pythons_refusals_are_told_with_what_to_call(call, said):
    system = four_bar()
    before = system.q
    with pytest.raises(TypeError, match=said):
        call(system)
    assert np.array_equal(system.q, before)


def test_errors_from_within_a_call_are_not_told_as_wrong_calls():
    def wrong(t: float) -> float:
        return t + "s"  # pyright: ignore[reportOperatorIssue]

    system = four_bar(forces={"j1": wrong})
    with pytest.raises(TypeError, match="unsupported operand") as caught:
        assembled(system)
    assert "give positions" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.restore(s.q), "is no state; give what save"),
        (lambda s: s.restore("run.npz"), "'run.npz' is no state"),
        (lambda s: bb.view("four_bar"), "'four_bar' is no system: give what attach returned"),
        (lambda s: bb.record("four_bar", "run.gif", 1.0), "is no system"),
        (lambda s: four_bar(contacts="no"), "contacts is 'no'; give True, False or 'compliant'"),
        (lambda s: four_bar(forces=[1.0]), r"forces are \[1.0\]; give them by name"),
        (lambda s: s.recorded().reactions["loop"], r"ask for them: .*reactions=\['loop'\]"),
    ],
)
def test_what_is_given_in_the_place_of_something_else_is_told(call, said):
    with pytest.raises(ModelError, match=said):
        call(four_bar())


def test_a_client_is_asked_for_by_its_number(monkeypatch):
    with pytest.raises(ModelError, match="number of a client as client=..."):
        bb.load("four_bar", physicsClientId=0)  # pyright: ignore[reportCallIssue]
    monkeypatch.setattr(pybullet, "isConnected", lambda client: 0)
    for way in ("GUI", "DIRECT"):
        said = rf"pass what pybullet.connect\(pybullet.{way}\) returned"
        with pytest.raises(WorldError, match=said):
            bb.load("four_bar", getattr(pybullet, way))


def test_functions_of_pybullet_are_not_asked_of_us():
    with pytest.raises(AttributeError, match="it is PyBullet's: pybullet.loadURDF"):
        bb.loadURDF  # noqa: B018 # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda s: bb.Gear, "called bulletbridge.Coupling"),
        (lambda s: bb.Hinge, "called bulletbridge.LoopJoint, with a bulletbridge.JointModel"),
        (lambda s: s.applyExternalForce, r"system.wrench\(bb.Frame\('link'\), force\)"),
        (lambda s: bb.plot(s.rollout(2), "loop"), r"run\(1.0, reactions=\['loop'\]\)"),
        (lambda s: bb.plot(s.rollout(2), "jo"), r"constraint 'jo'; (did|there) [^;]*$"),
        (lambda s: bb.plot(s.rollout(2), "l2"), r"unknown joint 'l2'; did you mean 'j2'\?$"),
        (lambda s: s.motors.set_friction("j0", "dry"), "friction of 'j0' is 'dry'; give a"),
    ],
)
def test_words_of_others_are_answered_with_ours(ask, said):
    with pytest.raises((AttributeError, ModelError), match=said):
        ask(assembled(four_bar()))


def test_the_ending_of_another_format_is_no_name_for_this_one(tmp_path):
    for name, to, fits in (("a.xml", "loops", "mjcf"), ("a.sdf", "mjcf", "sdf")):
        with pytest.raises(ModelError, match=f"give --to {fits}, or a name without an ending"):
            convert("four_bar", tmp_path / name, to)
    assert not any(tmp_path.iterdir())
    convert("four_bar", tmp_path / "a.urdf")
    assert {file.name for file in tmp_path.iterdir()} == {"a.urdf", "a.loops.yaml"}


@pytest.mark.parametrize("motor", [False, True])
@pytest.mark.parametrize("call", ["step", "rollout"])
def test_one_call_at_a_time_makes_steps_of_a_system(call, motor):
    begun, refused = False, 0

    def others() -> None:
        nonlocal refused
        for advance in system.step, lambda: system.rollout(2):
            with pytest.raises(StepError, match="copy.deepcopy"):
                advance()
            refused += 1

    def meanwhile(t: float) -> float:
        if begun:
            others()  # in this thread, and in another
            thread = threading.Thread(target=others)
            thread.start()
            thread.join()
        return 0.0

    system = assembled(four_bar(forces={"j1": meanwhile}))
    alone = assembled(four_bar())
    if motor:
        for driven in system, alone:
            driven.motors.set("j1", velocity=1.0, force=1.0)
    begun = True
    for advanced in system, alone:
        if call == "step":
            advanced.step()
        else:
            advanced.rollout(3)
    assert refused >= 4
    assert_allclose(system.q, alone.q, rtol=0.0, atol=1e-15)
    begun = False
    system.step()  # afterwards as before


@pytest.mark.parametrize("axis", ["", ", axis: [0, 1, 0]"])
def test_a_hinge_that_closes_a_loop_in_its_plane_is_told(tmp_path, axis):
    """Its axis is z unless given: about that it holds a planar loop for good."""
    path = flat_parallelogram(tmp_path, 0.3 if axis else 0.0)  # elsewhere it cannot close
    said = path.read_text().replace("type: ball", f"type: revolute{axis}")
    path.write_text(f"{said}allow_structure: true\n")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with bb.load(path, "new") as model:
            assert model.system.dof == (1 if axis else 0)
    if axis:
        assert not told
    else:
        assert re.search(
            r"'pin' has the axis \[0, 0, 1\] .* is \[0, 1, 0\] meant", str(told[0].message)
        )


def test_a_hinge_that_closes_a_loop_in_space_may_have_any_axis(tmp_path):
    """The Bricard linkage closes by a hinge whose axis no plane decides."""
    spec = read_model("bricard")
    assert any(joint.model is bb.JointModel.REVOLUTE for joint in spec.constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bb.load(spec, "new").close()


def test_a_model_that_is_closed_twice_removes_no_other_body(tmp_path):
    client = pybullet.connect(pybullet.DIRECT)
    try:
        model = bb.load(pendulum(tmp_path, "fixed_base: true"), client)
        model.close()
        pybullet.setGravity(0, 0, -1, physicsClientId=client)
        shape = pybullet.createCollisionShape(pybullet.GEOM_SPHERE, physicsClientId=client)
        other = pybullet.createMultiBody(1.0, shape, physicsClientId=client)
        assert other == model.ids["robot"]  # Bullet gives the id away
        model.close()
        assert pybullet.getNumBodies(client) == 1
    finally:
        pybullet.disconnect(client)


def test_what_a_model_and_its_system_lack_is_told_with_where_it_is(tmp_path):
    with bb.load(pendulum(tmp_path, "fixed_base: true"), "new") as model:
        for name, there in {
            "body": r"model\.ids\['robot'\]",
            "step": r"model\.system\.step",
            "joints": r"model\.system\.mechanism\.joints",
        }.items():
            with pytest.raises(AttributeError, match=there):
                getattr(model, name)
        system = model.system
        for name in ("pose", "limits"):
            with pytest.raises(AttributeError, match=r"; write system\."):
                getattr(system, name)
        with pytest.raises(ModelError, match=r"joint_reactions\(\)\['hip'\]"):
            system.joint_reactions("hip")
        with pytest.raises(TypeError, match=r"system\.reactions\(\)\['name'\]"):
            system.reactions("pin")


def test_motors_are_set_one_by_one_and_in_radians(tmp_path):
    with bb.load(pendulum(tmp_path, "fixed_base: true", 2.0), "new") as model:
        motors = model.system.motors
        with pytest.raises(ModelError, match="one motor after another"):
            motors.set(["hip"], position=0.5)
        with pytest.warns(BulletBridgeWarning, match=r"if degrees are meant, write 0\.523599"):
            motors.set("hip", position=30)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            motors.set("hip", position=7.5)
            for target in range(31, 40):  # a ramp is told of once
                motors.set("hip", position=target)
    with (
        bb.load(pendulum(tmp_path, "fixed_base: true"), "new") as wheel,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        wheel.system.motors.set("hip", position=10.0)  # it may turn as often as it likes


def test_joints_to_plot_are_named_one_by_one(tmp_path):
    with bb.load(pendulum(tmp_path, "fixed_base: true"), "new") as model:
        run = model.system.run(0.01)
    with pytest.raises(ModelError, match=r"plot\(run, 'a', 'b'\)"):
        bb.plot(run, ["hip"])


def test_a_file_without_its_ending_is_told_by_its_whole_name(tmp_path, monkeypatch):
    pendulum(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"'robot\.loops\.yaml'"):
        bb.load("robot", "new")


def test_what_a_constraint_does_is_shown_in_a_line():
    system = four_bar()
    system.assemble()
    (shown,) = map(repr, system.reactions().values())
    assert shown.startswith("<Reaction of '") and shown.endswith("share>")


def test_bodies_and_joints_that_attach_is_given_one_by_one_are_told(tmp_path):
    pendulum(tmp_path)
    client = pybullet.connect(pybullet.DIRECT)
    try:
        path = str(tmp_path / "robot.urdf")
        flags = pybullet.URDF_USE_INERTIA_FROM_FILE
        body = pybullet.loadURDF(path, flags=flags, physicsClientId=client)
        ball = bb.LoopJoint("pin", bb.JointModel.BALL, bb.Frame("arm"), bb.Frame("world"))
        for given, said in ((body, r"as \[1, 2\]"), (ball, "one LoopJoint 'pin'; give a list")):
            with pytest.raises(ModelError, match=said):
                bb.attach(body, given, client)
        turned = bb.Frame("world", rpy=(0, 0, 90))
        joint = bb.LoopJoint("pin", bb.JointModel.WELD, bb.Frame("arm"), turned)
        with pytest.warns(BulletBridgeWarning, match="rpy of 'pin' on 'world' is 90 rad"):
            bb.attach(body, [joint], client)
        with pytest.raises(ModelError, match="'mimic'; attach has mimic=True"):
            bb.load(path, client, mimic=True)
    finally:
        pybullet.disconnect(client)


def test_one_name_of_reactions_to_keep_is_one_name(tmp_path):
    with bb.load(pendulum(tmp_path, "fixed_base: true"), "new") as model:
        assert list(model.system.run(0.01, reactions="hip").reactions) == ["hip"]
        with pytest.raises(UnknownNameError, match="'hop'; did you mean 'hip'"):
            model.system.run(0.01, reactions="hop")


def test_a_root_that_is_the_world_stands_whatever_else_a_loops_file_leaves_out(tmp_path):
    """Bullet holds a ``world`` without inertia, so there is nothing to be told."""
    pendulum(tmp_path)
    text = (tmp_path / "robot.urdf").read_text()
    there = '<link name="world"/>' + joint("stand", "fixed", "world", "base")
    (tmp_path / "robot.urdf").write_text(text.replace("</robot>", f"{there}</robot>"))
    found = inspect_model(tmp_path / "robot.loops.yaml")
    assert found.floating == () and found.nv == 1 and FLOATS not in found.notes


def test_what_a_gear_bears_is_kept_by_one_of_its_joints(tmp_path):
    """A reaction of a coupling has no point; kept as one it would be zero."""
    with bb.load(pendulum(tmp_path, "fixed_base: true"), "new") as model:
        system = model.system
        drive = bb.Motion(z=bb.Spline((0.0, 1.0), (0.0, 0.5)))
        system.connect(bb.Coupling("drive", {"hip": 1.0}, motion=drive))
        asked = (
            lambda names: system.run(0.01, reactions=names),
            lambda names: system.linearise(reactions=names),
        )
        for ask in asked:
            with pytest.raises(ModelError, match=r"'drive' has no.*reactions=\['hip'\]"):
                ask(["hip", "drive"])
        told = system.reactions()["drive"]
        assert repr(told).startswith("<Reaction of 'drive': multipliers [")
        about_z = system.joint_reactions()["hip"].in_link[5]
        assert_allclose(about_z, told.multipliers[0], rtol=1e-12)


def test_what_a_spring_exerts_is_no_reaction(tmp_path):
    """It was a KeyError without a word."""
    coil = "{name: coil, type: torsion_spring, a: {link: base}, b: {link: arm}, stiffness: 1}"
    with bb.load(pendulum(tmp_path, f"fixed_base: true\nforces: [{coil}]"), "new") as model:
        with pytest.raises(ModelError, match=r"'coil' has no.*spring_forces\(\)\['coil'\]"):
            model.system.run(0.01, reactions=["coil"])


def test_several_joints_go_by_a_list_of_names(tmp_path):
    with bb.load("four_bar", "new") as model:
        system, names = model.system, ["rocker", "crank"]
        assert_allclose(system.q[names], [system.q["rocker"], system.q["crank"]], rtol=0)
        system.tau[names] = [1.0, 2.0]
        assert_allclose(system.tau, [2.0, 0.0, 1.0], rtol=0)
        with pytest.raises(UnknownNameError, match="'krank'; did you mean 'crank'"):
            system.tau[["krank"]] = 1.0
        system.tau[names] = 0.0
        assert not system.tau.any()
        closed = bb.forward_kinematics(system, {"crank": 0.9})
        assert closed["crank"] == 0.9
        with pytest.raises(AttributeError, match="bb.inverse_dynamics"):
            _ = system.gravity_compensation
