"""Motors, limits, friction and force limits as they are written down, and what is refused."""

import numpy as np
import pytest
from support.planar import PIN, assembled, four_bar, hinged

import bulletbridge as bb
from bulletbridge import LoopAxis, Motor
from bulletbridge.bullet.reader import read_bullet
from bulletbridge.comparison.describe import loop_reports
from bulletbridge.comparison.native import NoNativeTwinError, require_native_twin
from bulletbridge.errors import LoopFileError, ModelError
from bulletbridge.models.loops_file import read_loops, write_loops

NAN = float("nan")


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda m: m.set("j0", force=1.0, velocity=NAN), "give finite numbers"),
        (lambda m: m.set("j0", force=1.0, position=NAN), "give finite numbers"),
        (lambda m: m.set("j0", force=1.0, velocity_gain=NAN), "give finite numbers"),
        (lambda m: m.set("j0", force=-1.0), "a force that is not negative"),
        (lambda m: m.set("j0", force=NAN), "a force that is not negative"),
        (lambda m: m.set("j0", force=np.inf), "a force that is not negative"),
        (lambda m: m.set("j0", force=1.0, max_velocity=0.0), "motor of 'j0'"),
        (lambda m: m.set("j9", force=1.0), "unknown joint 'j9'; did you mean"),
        (lambda m: m.off("j9"), "unknown joint 'j9'"),
        (lambda m: m.set_friction("j0", -0.1), "friction of 'j0' is -0.1"),
        (lambda m: m.set_friction("j0", NAN), "friction of 'j0' is nan"),
    ],
)
def test_motors_refuse_what_means_nothing(call, match):
    system = assembled(four_bar())
    with pytest.raises(ModelError, match=match):
        call(system.motors)
    assert not system.motors.any_on


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(turn=LoopAxis(limits=(1.0, -1.0))), "limits of 'pin' are 1.0 and -1.0"),
        (dict(turn=LoopAxis(limits=(NAN, 1.0))), "limits of 'pin'"),
        (dict(turn=LoopAxis(friction=-1.0)), "friction of 'pin' is -1.0"),
        (dict(turn=LoopAxis(motor=Motor(-1.0))), "motor of 'pin'"),
        (dict(travel=LoopAxis()), "is revolute and has no free travel; it has turn"),
        (dict(max_force=-1.0), "constraint 'pin' has max_force -1.0"),
        (dict(max_force=NAN), "constraint 'pin' has max_force nan"),
        (dict(max_force=1.0, erp=2.0), "constraint 'pin' has erp 2.0"),
    ],
)
def test_impossible_descriptions_are_refused(options, match):
    with pytest.raises(ModelError, match=match):
        hinged(**options)


@pytest.mark.parametrize("options", [{"integrator": "rk4"}, {"formulation": "multipliers"}])
def test_other_integrators_refuse_bounded_forces(options):
    match = "leave integrator, formulation, weighting and velocity_filter out"
    string = bb.Distance("string", PIN, bb.Frame("l1"), 0.3, max_force=3.0)
    with pytest.raises(ModelError, match=match):
        four_bar(extra=[string], **options)
    if "formulation" in options:  # with compiled integrators limits act where they are met
        with pytest.raises(ModelError, match=match):
            four_bar(limits=True, **options)
    system = assembled(four_bar(**options))
    system.motors.set_friction("j0", 1.0)
    before = system.q
    with pytest.raises(ModelError, match=match):
        system.step()
    assert np.array_equal(system.q, before)


URDF = """<robot name="arm"><link name="base"/><link name="bar"><inertial>
<origin xyz="0.5 0 0"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="bar"/>
<axis xyz="0 1 0"/><dynamics friction="0.4"/></joint></robot>"""
LOOPS = """bulletbridge: 1
urdf: arm.urdf
fixed_base: true
joint_friction: true
loops:
  - name: string
    type: distance
    a: {link: world}
    b: {link: bar, xyz: [1, 0, 0]}
    length: 1.0
    max_force: 20
    erp: 0.5
  - name: pin
    type: cylindrical
    a: {link: world, rpy: [-1.5707963267948966, 0, 0]}
    b: {link: bar, rpy: [-1.5707963267948966, 0, 0]}
    turn: {limits: [-0.3, 0.5], friction: 0.1, motor: {force: 2, velocity: 1}}
    travel: {friction: 0.2}
forces:
  - {joint: hinge, friction: 0.25}
"""


def test_loops_files_hold_all_of_it(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    path = tmp_path / "arm.loops.yaml"
    path.write_text(LOOPS)
    spec = read_loops(path)
    string, pin = spec.constraints
    assert (string.max_force, string.erp) == (20.0, 0.5)
    assert pin.turn == LoopAxis((-0.3, 0.5), 0.1, Motor(2.0, 1.0))
    assert pin.travel == LoopAxis(friction=0.2)
    write_loops(spec, tmp_path / "again.loops.yaml")
    assert read_loops(tmp_path / "again.loops.yaml") == spec
    with bb.load(path) as model:
        assert model.system.mechanism.joints["hinge"].friction == 0.65  # the file's and the URDF's
        assert model.system.motors.any_on
        model.system.step()
        assert [report.name for report in loop_reports(model)] == ["pin"]  # closed to round-off
        with pytest.raises(NoNativeTwinError, match="'string' has no native twin"):
            require_native_twin(spec)
        assert set(model.system.joint_loads) == {"hinge", "pin/turn", "pin/travel"}
        plain = read_bullet({"arm": model.ids["robot"]}, model.client)
        assert plain.mechanism.joints["hinge"].friction == 0.0  # which Bullet ignores


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("[-0.3, 0.5]", "[0.5, -0.3]", "limits: must be two numbers, the lower one first"),
        ("friction: 0.1", "friction: -0.1", "friction: must not be negative"),
        ("max_force: 20", "max_force: -2", "max_force: must not be negative"),
        ("    max_force: 20\n", "", "erp: has no effect without .max_force."),
        ("erp: 0.5", "erp: 1.5", "erp: must be a share from 0 to 1"),
        ("force: 2, velocity", "velocity", "key 'force' is missing"),
        ("cylindrical", "revolute", "unknown key 'travel'"),
        ("friction: 0.25", "friction: -0.25", "must not be negative"),
    ],
)
def test_wrong_entries_are_named_with_their_place(tmp_path, old, new, match):
    (tmp_path / "arm.urdf").write_text(URDF)
    path = tmp_path / "arm.loops.yaml"
    assert old in LOOPS
    path.write_text(LOOPS.replace(old, new))
    with pytest.raises(LoopFileError, match=match):
        read_loops(path)
