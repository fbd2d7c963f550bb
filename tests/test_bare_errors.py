"""What is no number, no function or no array is refused by name, and nothing has changed then."""

import re

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_array_equal
from support.planar import planar_chain
from support.users_constraints import PointOnSphere

import bulletbridge as bb
from bulletbridge.constraints.user import Rows
from bulletbridge.errors import AssemblyError, ModelError, WorldError

TIP = bb.Frame("l2", (0.7, 0, 0))
ROD = bb.Distance("rod", bb.Frame("world"), TIP, 0.9)


def chain():
    return planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4])


def closed(**options) -> bb.System:
    system = bb.System(chain(), [ROD], dt=2e-3, **options)
    system.assemble({"j0": 1.0, "j1": -1.0})
    return system


@pytest.mark.parametrize("name", ["x", "y", "z", "angle"])
@pytest.mark.parametrize("given", [3.0, "3", (0.0, 0.0, 0.0), None])
def test_a_motion_that_is_no_function_is_refused(name, given):
    with pytest.raises(ModelError, match=f"{name} of a motion is .*give a function of time"):
        bb.Motion(**{name: given})


@pytest.mark.parametrize("axis", [(0, 0, 0), (0, 0), (0, 0, np.nan), "z", 1.0])
def test_an_axis_of_a_motion_that_is_none_is_refused(axis):
    with pytest.raises(ModelError, match="axis of a motion is .*give three finite numbers"):
        bb.Motion(angle=lambda t: (t, 1.0, 0.0), axis=axis)


@pytest.mark.parametrize(
    "given", [(1.0, 2.0), "abc", 1.0, None, (1.0, "x", 2.0), ((1.0,), (2.0,), (3.0,))]
)
def test_a_signal_that_gives_no_three_numbers_is_told_with_its_constraint(given):
    moved = bb.Distance("rod", ROD.a, ROD.b, 0.9, bb.Motion(z=lambda t: given))
    with pytest.raises(ModelError, match=r"'rod': a signal gave .* at t = 0 s; return three"):
        bb.System(chain(), [moved])


def test_a_signal_that_fails_later_undoes_the_step_and_names_its_constraint():
    def late(t):
        return (0.01 * t, 0.01, 0.0) if t < 0.05 else (np.nan, 0.0, 0.0)

    moved = bb.Distance("rod", ROD.a, ROD.b, 0.9, bb.Motion(z=late))
    system = bb.System(chain(), [moved], dt=0.01)
    system.assemble({"j0": 1.0, "j1": -1.0})
    with pytest.raises(ModelError, match=r"'rod': a prescribed motion is not finite at t = 0\.05"):
        for _ in range(10):
            before = system.q, system.v
            system.step()
    assert_array_equal(system.q, before[0])
    assert_array_equal(system.v, before[1])


@pytest.mark.parametrize("given", [3.0, "abc", None, [3.0]])
def test_a_scripted_force_that_is_no_function_is_refused(given):
    with pytest.raises(ModelError, match="scripted force of joint 'j0' is .*give a function"):
        bb.System(chain(), [ROD], forces={"j0": given})


@pytest.mark.parametrize("given", ["abc", None, (1.0, 2.0), np.nan, [1.0]])
def test_a_scripted_force_that_gives_no_number_is_told_with_its_joint(given):
    forces = {"j0": lambda t: given if t > 0.0 else 0.0}
    system = closed(forces=forces, integrator="semi_implicit_euler")
    before = system.q
    told = r"scripted force of joint 'j0' is .* at t = 0.002 s; cor"
    with pytest.raises(ModelError, match=told):
        system.rollout(3)
    assert_array_equal(system.q, before)


class Odd(PointOnSphere):
    """A constraint whose rows are changed before they are returned."""

    name = "odd"

    def __init__(self, change) -> None:
        super().__init__(TIP, 0.9)
        self.change = None
        self.later = change

    def rows(self, kinematics):
        rows = super().rows(kinematics)
        return rows if self.change is None else self.change(rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r._replace(g=np.array([np.nan])), "gave g that is not finite at t = 0.00"),
        (lambda r: r._replace(gamma=np.array([np.inf])), "gave gamma that is not finite"),
        (lambda r: r._replace(J=r.J[:, :2]), "gave J of shape (1, 2); its 1 units ask for (1, 3)"),
        (lambda r: r._replace(g=np.zeros(2)), "gave g of shape (2,); its 1 units ask for (1,)"),
        (lambda r: r._replace(g_t=0.0), "gave g_t of shape (); its 1 units ask for (1,)"),
        (lambda r: None, "gave rows that are not four arrays of numbers"),
        (lambda r: r[:3], "gave rows that are not four arrays of numbers"),
        (lambda r: Rows("a", "b", "c", "d"), "gave rows that are not four arrays of numbers"),
    ],
)
def test_rows_of_a_users_constraint_are_checked_and_the_step_undone(change, message):
    odd = Odd(change)
    system = bb.System(chain(), [odd], dt=2e-3)
    system.assemble({"j0": 1.0})
    system.step()
    before = system.q, system.v
    odd.change = odd.later
    with pytest.raises(ModelError, match="constraint 'odd' " + re.escape(message)):
        system.step()
    assert_array_equal(system.q, before[0])
    assert_array_equal(system.v, before[1])
    odd.change = None
    system.step()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("dt", x) for x in ("x", None, np.nan, np.inf, 0.0, -1.0, (1e-3,), 1j)),
        *(("rtol", x) for x in ("x", np.nan, 0.0, 2.0)),
        *(("atol", x) for x in ("x", np.nan, -1.0, None)),
        *(("passes", x) for x in ("x", 1.5, -1, np.nan)),
    ],
)
def test_options_that_are_no_numbers_are_refused(name, value):
    with pytest.raises(ModelError, match=f"^{name} is "):
        bb.System(chain(), [ROD], **{name: value})


@pytest.mark.parametrize("value", ["x", np.nan, (1e-3, 1e-3), None])
def test_a_step_that_is_no_number_is_refused_later_too(value):
    system = closed()
    with pytest.raises(ModelError, match="^dt is "):
        system.dt = value
    assert system.dt == 2e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 1.5}, r"threads is 1\.5; give a whole number"),
        ({"threads": "2"}, "threads is '2'; give a whole number"),
        ({"threads": True}, "threads is True; give a whole number"),
        ({"steps": 2.0}, r"steps is 2\.0; give a whole number"),
        ({"every": "1"}, "every is '1'; give a whole number"),
        ({"q": [[0.1, 0.2, 0.3], [0.1]]}, "q has parts of different lengths"),
        ({"q": [[1j, 0.2, 0.3]]}, "q is not an array of real numbers, but ..1j"),
        ({"q": [["a", "b", "c"]]}, "q is not an array of real numbers, but ..'a'"),
        ({"v": "fast"}, "v is not an array of real numbers"),
        ({"tau": [[1.0], [1.0, 2.0]]}, "tau has parts of different lengths"),
        ({"t": "now"}, "t is not an array of real numbers"),
    ],
)
def test_rollouts_refuse_what_is_no_array_of_numbers(arguments, message):
    system = closed()
    given = {"q": np.tile(system.q, (3, 1)), "steps": 2} | arguments
    with pytest.raises(ModelError, match=message):
        bb.rollout(system, **given)


@pytest.mark.parametrize("name", ["q", "v", "t"])
def test_a_world_that_starts_with_nan_is_named(name):
    system = closed()
    given = {"q": np.tile(system.q, (4, 1)), "v": np.zeros((4, 3)), "t": np.zeros(4)}
    given[name][2] = np.nan
    with pytest.raises(ModelError, match=f"world 2 starts with {name} = .*nan.*, which is not"):
        bb.rollout(system, **given, steps=1)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"q": [[0.1], [0.2, 0.3]]}, "q has parts of different lengths"),
        ({"q": np.array([1j, 0, 0])}, "q is not an array of real numbers"),
        ({"v": "abc"}, "v is not an array of real numbers"),
        ({"t": "now"}, "the time is 'now' s; give a finite number"),
        ({"t": np.nan}, "the time is nan s; give a finite number"),
    ],
)
def test_states_that_are_no_numbers_are_refused_and_not_taken(state, message):
    system = closed()
    before = system.q, system.v, system.t
    with pytest.raises(ModelError, match=message):
        system.set_state(**state)
    for old, new in zip(before, (system.q, system.v, system.t), strict=True):
        assert_array_equal(old, new)
    with pytest.raises(ModelError, match="q of joint 'j0' is not an array of real numbers"):
        system.assemble({"j0": "one"})


def test_frames_too_far_away_to_calculate_with_are_refused():
    for far in ((1e300, 0, 0), (np.inf, 0, 0), (0, 0), "abc", (1j, 0, 0)):
        with pytest.raises(ModelError, match=r"loop 'rod': frame on link 'l2' has xyz .*1e\+100"):
            bb.System(chain(), [bb.Distance("rod", bb.Frame("l2", far), bb.Frame("world"), 1.0)])


def test_a_universal_joint_on_axes_that_are_not_perpendicular_says_what_helps():
    system = bb.System(chain(), allow_structure=True)  # it holds the link's place and its turn
    system.assemble()
    joint = bb.LoopJoint(
        "cross",
        bb.JointModel.UNIVERSAL,
        bb.Frame("world"),
        bb.Frame("l2"),
        axis=(1.0, 0.0, 0.0),
        axis_b=(0.5, np.sqrt(0.75), 0.0),
    )
    q = system.q
    with pytest.raises(AssemblyError, match="axes are at 60° to each other now instead of 90°"):
        system.connect(joint, as_is=True)
    assert_array_equal(system.q, q)
    assert not system.constraints
    system.connect(joint, as_is=True, assemble=True)
    assert system.evaluate().largest("radians") < 1e-12


ENDS = {"a": bb.Frame("world"), "b": TIP}
WRONG = [
    (
        bb.LoopJoint,
        {**ENDS, "model": "ball"},
        "LoopJoint 'c' has model 'ball'; give bb.JointModel.BALL",
    ),
    (bb.LoopJoint, {**ENDS, "axis": 1.0}, "has axis 1.0; give three numbers"),
    (bb.LoopJoint, {**ENDS, "a": "world"}, "has a 'world'; give a Frame on a link by name"),
    (bb.LoopJoint, {**ENDS, "a": bb.Frame(3)}, "give a Frame on a link by name"),
    (bb.LoopJoint, {**ENDS, "motion": 3.0}, "has motion 3.0; give a Motion or None"),
    (bb.LoopJoint, {**ENDS, "turn": (0, 1)}, "has turn (0, 1); give a LoopAxis or None"),
    (bb.LoopJoint, {**ENDS, "free": (1.0,)}, "has free (1.0,); give twists of six numbers"),
    (bb.LoopJoint, {**ENDS, "max_force": "x"}, "has max_force 'x'; give a number or None"),
    (bb.LoopJoint, {**ENDS, "turn": bb.LoopAxis(limits=1.0)}, "turn of LoopJoint 'c' has limits"),
    (bb.Distance, {**ENDS, "length": (1, 2)}, "Distance 'c' has length (1, 2); give a number"),
    (bb.Distance, {**ENDS, "length": 1j}, "Distance 'c' has length 1j; give a number"),
    (bb.Coupling, {"coefficients": {"j0": "x"}}, "give numbers by joint"),
    (bb.Coupling, {"coefficients": [1.0]}, "has coefficients [1.0]; give numbers by joint"),
    (bb.Coupling, {"coefficients": {"j0": np.inf}}, "give finite numbers, none above 1e+100"),
    (bb.Coupling, {"coefficients": {"j0": 1.0}, "offset": 1e300}, "give finite numbers, none abo"),
    (bb.Spring, {**ENDS, "stiffness": (1, 2)}, "Spring 'c' has stiffness (1, 2); give a number"),
    (bb.Spring, {**ENDS, "force": "x"}, "has force 'x'; give a number or a function of time"),
    (bb.Bushing, {**ENDS, "stiffness": 1.0}, "Bushing 'c' has stiffness 1.0; give three numbers"),
]


@pytest.mark.parametrize(("kind", "given", "message"), WRONG)
def test_fields_of_descriptions_are_checked_by_name(kind, given, message):
    more = {"model": bb.JointModel.BALL} if kind is bb.LoopJoint else {}
    more |= {"length": 0.9} if kind is bb.Distance else {}
    with pytest.raises(ModelError, match=re.escape(message)):
        bb.System(chain(), [kind("c", **(more | given))])
    if "a" in given:
        with pytest.raises(ModelError, match="has name 3; give a string"):
            bb.System(chain(), [kind(3, **(more | ENDS))])


@pytest.mark.parametrize(
    "wrong",
    [dict(velocity="fast"), dict(position="up"), dict(force="all"), dict(max_velocity=None)],
)
def test_a_motor_that_is_given_no_number_is_refused_by_its_joint(wrong):
    with pytest.raises(ModelError, match="motor of 'j0': .*give finite numbers"):
        closed().motors.set("j0", **wrong)


@pytest.mark.parametrize("duration", [0, -1.0, np.nan, np.inf, "1", None, [1.0]])
def test_a_run_of_no_duration_is_refused_and_makes_no_step(duration):
    system = closed()
    with pytest.raises(ModelError, match="a run of .* is not possible; give a positive duration"):
        system.run(duration)
    assert system.t == 0.0


def test_steps_are_not_counted_where_the_world_is_said_to_be_shown():
    """``step(5)`` made one step, and ``save("file")`` wrote none."""
    system = closed()
    with pytest.raises(TypeError, match="a step takes no 5"):
        system.step(5)
    with pytest.raises(TypeError, match="positional"):
        system.save("state.npz")
    assert system.t == 0.0


@pytest.mark.parametrize("given", [[1.0, 2.0, 3.0], 1.0, "j0"])
def test_values_without_names_are_refused_with_a_name_that_there_is(given):
    with pytest.raises(ModelError, match=r"q is .*; give values by joint name, as \{'j0': 0\.5\}"):
        closed().assemble(given)


def test_parameters_without_names_are_refused():
    with pytest.raises(ModelError, match="parameters are 3; give numbers by name"):
        closed().set_parameters(3)


@pytest.mark.parametrize(
    "wrong", [dict(damping="x"), dict(armature=np.nan), dict(limits=3.0), dict(limits="ab")]
)
def test_properties_of_a_joint_that_are_no_numbers_are_refused(wrong):
    with pytest.raises(ModelError, match="of a joint"):
        bb.JointProperties(**wrong)


def test_at_rest_limits_of_a_joint_are_taken():
    assert bb.JointProperties(limits=(-np.inf, 1.0)).limits == (-np.inf, 1.0)


class TestAttach:
    @pytest.fixture
    def body(self, world):
        return pybullet.loadURDF(
            f"{bb.models_folder()}/four_bar.urdf",
            useFixedBase=True,
            flags=pybullet.URDF_USE_INERTIA_FROM_FILE,
            physicsClientId=world.client,
        )

    @pytest.mark.parametrize(
        ("body_given", "said"),
        [
            ("four_bar.urdf", "'four_bar.urdf' is no body; .*bb.load"),
            (0.0, "0.0 is no body; pass the id"),
            ([None], "None is no body"),
            ({"robot": "0"}, "'0' is no body"),
        ],
    )
    def test_what_is_no_body_is_refused(self, world, body, body_given, said):
        with pytest.raises(ModelError, match=said):
            bb.attach(body_given, [], world.client)

    def test_a_client_that_is_not_connected_is_named(self, body):
        with pytest.raises(WorldError, match="no Bullet client 77; connect first"):
            bb.attach(body, [], 77)

    def test_one_constraint_for_a_list_is_refused(self, world, body):
        with pytest.raises(ModelError, match="constraints are one Distance.*give a list"):
            bb.attach(body, ROD, world.client)

    def test_properties_as_a_dict_are_refused_with_the_joint(self, world, body):
        with pytest.raises(ModelError, match="properties of joint 'crank' .*JointProperties"):
            bb.attach(body, [], world.client, joints={"crank": {"damping": 1.0}})

    def test_ids_in_an_array_are_taken(self, world, body):
        assert bb.attach(np.array([body]), [], world.client).mechanism.nv == 3
