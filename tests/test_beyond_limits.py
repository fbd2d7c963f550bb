"""Joints that start beyond their limits: told, and taken back at a bounded speed, loops closed."""

import warnings
from dataclasses import replace

import numpy as np
import pybullet
import pybullet_data
import pytest
from _campaign_cases import Closer
from _campaign_conserved import Conserved
from _campaign_judge import Judge
from _campaign_spheres import Sphere, Spheres, Wall
from _mechanisms import random_mechanism, random_state
from support.planar import four_bar, parallelogram, planar_chain

import bulletbridge as bb
from bulletbridge.comparison.bullet_warnings import bullet_warnings
from bulletbridge.errors import BulletBridgeWarning
from bulletbridge.inequalities.impulses import FASTEST_FOLLOWING
from bulletbridge.inequalities.motor_limit_rows import FASTEST_RECOVERY, SHALLOW
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.records import FREE, REVOLUTE
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.system.inequality_steps import InequalitySteps
from bulletbridge.system.stepping import WatchedSteps


def limited(model: str, joint: str, beyond: float, **options):
    """A model with an upper limit so far below where a joint starts, and no gravity."""
    with bb.load(model) as as_it_is:
        start = as_it_is.system.q[as_it_is.system.mechanism.joint(joint).q.start]

    def adjust(mechanism):
        joints = dict(mechanism.joints)
        joints[joint] = replace(joints[joint], upper=float(start) - beyond)
        return replace(mechanism, joints=joints, gravity=np.zeros(3))

    return bb.load(model, adjust=adjust, **options)


@pytest.mark.parametrize(("lower", "reached"), [(0.2, False), (0.05, True)])
def test_loops_that_close_beyond_limits_alone_say_so(lower, reached):
    """A crank of 0.15 m and a rod of 0.5 m reach 0.65 m, where the slider is at 0.092 m."""
    spec = replace(
        read_model("slider_crank"),
        start_q={},
        start_v={},
        start_guess={"slider": 0.25},
        joints={"slider": bb.JointProperties(limits=(lower, 0.3))},
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with bb.load(spec, "new") as loaded:
            slider = float(loaded.system.q[loaded.system.mechanism.joint("slider").q.start])
    told = [str(w.message) for w in caught if "the limits of 'slider'" in str(w.message)]
    assert (lower <= slider <= 0.0922) == reached
    assert len(told) == (not reached)


@pytest.mark.parametrize(
    ("model", "joint", "beyond", "dt"),
    [
        ("four_bar", "crank", 0.5, 1 / 240),
        ("four_bar", "crank", 0.5, 1 / 1000),
        ("slider_crank", "crank", 0.5, 1 / 240),
        ("stewart", "u1_0", 0.1, 1 / 240),
        ("delta", "motor_1", 0.5, 1 / 240),
    ],
)
def test_a_joint_beyond_its_limit_is_taken_back_at_a_bounded_speed(model, joint, beyond, dt):
    with pytest.warns(BulletBridgeWarning, match=rf"joint '{joint}' is at .* beyond its limits"):
        loaded = limited(model, joint, beyond, limits=True, dt=dt)
    with loaded:
        system = loaded.system
        system.set_state(v=np.zeros(system.mechanism.nv))
        part, upper = system.mechanism.joint(joint).q.start, system.mechanism.joint(joint).upper
        before = system.q[part] - upper
        assert before == pytest.approx(beyond)
        # at the bounded speed, and the last of it by a fifth a step, with as much time again
        steps = int(2 * (beyond / FASTEST_RECOVERY / dt + np.log(beyond / SHALLOW) / 0.2))
        for _ in range(steps):
            rate = abs(system.v[part])
            system.step()
            now = system.q[part] - upper
            # loops and springs may move it meanwhile, besides what takes it back
            moving = max(rate, abs(system.v[part]))
            assert abs(now - before) <= dt * (1.5 * FASTEST_RECOVERY + 2.0 * moving)
            assert system.evaluate().largest("kept_metres") < 1e-12 * system.encoded.length * 10
            before = now
        assert before <= 10 * SHALLOW


def test_loops_are_closed_within_limits_where_they_can_be():
    """The nearest closure leaves the rocker's range; another does not, unless the crank is held."""
    with bb.load("four_bar") as as_it_is:
        q = as_it_is.system.q
        rocker, crank = (as_it_is.system.mechanism.joint(n).q.start for n in ("rocker", "crank"))
    low, high = q[rocker] + 0.2, q[rocker] + 0.6

    def adjust(mechanism):
        joints = dict(mechanism.joints)
        joints["rocker"] = replace(joints["rocker"], lower=low, upper=high)
        return replace(mechanism, joints=joints)

    with pytest.warns(BulletBridgeWarning, match="beyond its limits"):
        loaded = bb.load("four_bar", adjust=adjust, limits=True)
    with loaded:
        system, guess = loaded.system, {"rocker": low + 0.01}
        system.assemble(guess=guess)
        assert system.q[rocker] < low - SHALLOW
        before = system.q
        system.set_state(q)
        system.assemble(guess=guess, within_limits=True)
        assert low <= system.q[rocker] <= high
        assert system.evaluate().largest("metres") < 1e-12
        system.set_state(q)
        system.assemble({"crank": float(q[crank])}, guess=guess, within_limits=True)
        assert system.q[rocker] < low and system.q[crank] == q[crank]
        system.set_state(before)


def test_a_slide_stays_within_its_limits_where_hinges_that_have_none_turn():
    """An arm with a slide, and two ways to reach what its end is pinned to: by a slide of -0.354 m,
    just beyond its range, from where it is drawn, and by one of -0.271 m from elsewhere."""
    load = Load(1.0, (0.1, 0.0, 0.0), 0.01 * np.eye(3))
    ram = with_joint(empty_mechanism(), "first", "revolute", "barrel", load=load)
    place = (0.49, -0.333, 0.0), (np.pi / 2, 0.0, 1.989)
    ram = with_joint(ram, "slide", "prismatic", "rod", "barrel", *place, load)
    place = (-0.393, 0.213, 0.0), (0.0, 0.0, 2.999)
    ram = with_joint(ram, "last", "revolute", "end", "rod", *place, load)
    end = bb.Frame("world", (-0.78495981, 0.43464698, 0.213))
    loop = bb.LoopJoint("pin", bb.JointModel.BALL, bb.Frame("end"), end)
    slide = ram.joints["slide"]
    joints = {**ram.joints, "slide": replace(slide, lower=-0.353, upper=-0.239)}
    for guess, within_limits, inside in [
        ({"slide": -0.239}, False, False),
        ({"first": -2.541, "slide": -0.271}, False, True),
        ({"slide": -0.239}, True, True),
    ]:
        system = bb.System(replace(ram, joints=joints), [loop])
        system.assemble(guess=guess, within_limits=within_limits)
        assert system.evaluate().largest("metres") < 1e-12
        assert (-0.353 - SHALLOW <= system.q["slide"] <= -0.239 + SHALLOW) is inside


def test_hinges_are_not_wound_up_by_closing():
    """From a guess that is far off the way leads round; whole turns are taken back."""
    with bb.load("four_bar") as loaded:
        system = loaded.system
        for far in (0.7, 1.4, 2.0, -1.9):
            guess = {name: far * (k + 1) for k, name in enumerate(("crank", "coupler", "rocker"))}
            system.assemble(guess=guess)
            for name, given in guess.items():
                assert abs(system.q[system.mechanism.joint(name).q.start] - given) <= np.pi


@pytest.mark.parametrize("dt", [1 / 240, 1 / 1000])
def test_a_limit_that_loops_keep_out_of_reach_throws_nothing(dt):
    """The angle between coupler and rocker is least where the crank lies along the ground.

    The joint is taken back as far as that and stays; by the law of cosines, with lengths of 0.4,
    0.9, 0.7 and 1 m and the crank at 60 degrees, 0.399 rad below the start.
    """

    def between(diagonal_squared):
        return np.arccos((0.9**2 + 0.7**2 - diagonal_squared) / (2 * 0.9 * 0.7))

    way = between(1.0 + 0.4**2 - 2 * 0.4 * 0.5) - between((1.0 - 0.4) ** 2)
    with (
        pytest.warns(BulletBridgeWarning, match="'rocker' is at .* beyond its limits"),
        limited("four_bar", "rocker", 0.5, limits=True, dt=dt) as loaded,
    ):
        system = loaded.system
        rocker = system.mechanism.joint("rocker").q
        start = system.q[rocker]
        for _ in range(round(4.0 / dt)):
            before = system.q
            system.step()
            # closing the loop takes some more, of second order in what the joints turn by
            assert np.abs(system.q - before).max() < 1.5 * dt * FASTEST_FOLLOWING
            # nothing acts; what the filter takes for rates is of second order over the step
            assert np.abs(system.v).max() < dt * FASTEST_FOLLOWING**2
        # near the turning point the rest falls by the square of what the crank is off by
        assert start - system.q[rocker] == pytest.approx(way, rel=1e-3)


def test_a_start_beyond_limits_is_told_by_inspect_and_where_limits_act_by_load(recwarn):
    with limited("four_bar", "crank", 0.5, limits=False) as loaded:
        said = [line for line in bullet_warnings(loaded) if "beyond its limits" in line]
        assert len(said) == 1 and "0.5 rad beyond" in said[0] and said[0].endswith("at the start")
    assert not [w for w in recwarn if "beyond" in str(w.message)]
    with pytest.warns(BulletBridgeWarning, match="0.5 rad beyond its limits"):
        limited("four_bar", "crank", 0.5).close()
    with bb.load("four_bar") as inside:
        assert not [line for line in bullet_warnings(inside) if "beyond its limits" in line]


@pytest.mark.parametrize("dt", [1 / 240, 1 / 480, 1 / 1000])
def test_steps_in_which_limits_may_act_pass_where_free_ones_do(dt):
    """A parallelogram swings through where it is flat; none of its joints has a limit.

    With 9 rad/s at its lowest point it comes there with 6, and twice a swing, of about a second.
    """
    system, *_ = parallelogram(dt=dt, limits="always")
    system.assemble({"j0": np.pi / 2}, {"j0": 9.0})
    flat, above = 0, False
    for _ in range(round(2.0 / dt)):
        system.step()
        assert system.evaluate().largest("metres") < 1e-12
        assert abs(np.sin(system.q[0] + system.q[1])) < 1e-8  # the coupler stays level
        if above != (np.sin(system.q[0]) < 0):
            above, flat = not above, flat + 1
    assert flat >= 2


@pytest.mark.parametrize("limits", [True, "always"])
@pytest.mark.parametrize("model", ["four_bar", "delta"])
def test_no_motor_drives_a_joint_past_its_limit_within_a_step(model, limits):
    """Where forces alone would leave a joint alone, its motor would take it far beyond."""
    dt, joint = 1 / 240, {"four_bar": "crank", "delta": "motor_1"}[model]
    with bb.load(model, dt=dt, limits=limits) as loaded:
        start = float(loaded.system.q[loaded.system.mechanism.joint(joint).q.start])

    def adjust(mechanism):
        joints = dict(mechanism.joints)
        joints[joint] = replace(joints[joint], lower=start - 0.02, upper=start + 0.03)
        return replace(mechanism, joints=joints)

    with bb.load(model, adjust=adjust, dt=dt, limits=limits) as loaded:
        system = loaded.system
        system.set_state(v=np.zeros(system.mechanism.nv))
        own = system.mechanism.joint(joint)
        for rate in (50.0, -50.0):  # some 0.2 rad a step
            system.motors.set(joint, force=1e5, velocity=rate)
            beyond = 0.0
            for n in range(4):
                before = system.v.copy()
                system.step()
                # what loops take back of a step that they bend, of the second order in it
                bent = (dt * max(np.abs(before).max(), np.abs(system.v).max())) ** 2
                x = system.q[own.q.start]
                last, beyond = beyond, max(own.lower - x, x - own.upper)
                assert beyond <= max(last, bent) + SHALLOW, (rate, n)
            assert x == pytest.approx(own.upper if rate > 0 else own.lower, abs=1e-3)
            load = system.joint_loads[joint]
            assert load.limit * rate < 0.0
            assert abs(load.limit) > 0.5 * abs(load.motor)
            assert system.evaluate().largest("kept_metres") < 1e-12


@pytest.mark.parametrize(
    ("places", "motors"),
    [
        (
            (
                (1.0853109, -0.8961578, -1.0377641, -2.1579037),
                (0.0337264, 0.0496677, 0.0130794, 0.0047537),
                (0.0124304, 0.0230431, 0.0162406, 0.2110839),
            ),
            {"j1": (43.0, -0.652), "j3": (86.5, -0.528)},
        ),
        (
            (
                (1.3241127, -1.0466829, -0.9775645, -1.9455701),
                (0.2219028, 0.0047309, 0.0285366, 0.0050889),
                (0.0037281, 0.0056416, 0.0177825, 0.0552879),
            ),
            {"j1": (1.67, 0.28), "j2": (80.7, 0.355), "j0": (56.6, 0.4)},
        ),
    ],
)
def test_limits_stop_what_motors_drive_against_more_of_them_than_there_are_freedoms(places, motors):
    """Five bars have two freedoms: of four limits two stop them at most, and nobody passes any.

    In one step from rest, by as much as loops bend it: of the second order in its angle.
    """
    chain = planar_chain([0.3, 0.4, 0.4, 0.3], [0.3, 0.4, 0.4, 0.3])
    pin = bb.LoopJoint(
        "pin", bb.JointModel.BALL, bb.Frame("l3", (0.3, 0, 0)), bb.Frame("world", (0.5, 0, 0))
    )
    names = list(chain.joints)
    start, below, above = (dict(zip(names, numbers, strict=True)) for numbers in places)
    joints = {
        name: replace(joint, lower=start[name] - below[name], upper=start[name] + above[name])
        for name, joint in chain.joints.items()
    }
    system = bb.System(replace(chain, joints=joints, gravity=np.zeros(3)), [pin], limits="always")
    system.assemble(guess=start)
    system.set_state(v=np.zeros(4))
    for name, (force, way) in motors.items():
        system.motors.set(name, force=force, position=start[name] + way, position_gain=1.0)
    system.step()
    bent = 2.0 * (system.dt * np.abs(system.v).max()) ** 2
    for name, joint in joints.items():
        x = system.q[joint.q.start]
        assert joint.lower - bent - SHALLOW < x < joint.upper + bent + SHALLOW, name
    assert system.complementarity.residual < 1e-9
    assert sum(load.limit != 0.0 for load in system.joint_loads.values()) > 0


def test_bodies_that_are_led_into_each_other_are_told_once():
    """A drive pushes a ball down to a wall and on: the step in which it gets there is known."""
    dt, speed, height = 1e-3, 0.1, 2.55e-3
    load = Load(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    mechanism = with_joint(
        empty_mechanism((0.0, 0.0, -9.81)), "slide", "prismatic", "head", load=load
    )
    drive = bb.Coupling("press", {"slide": 1.0}, 0.0, bb.Motion(z=bb.Polynomial((0, -speed))))
    start = np.zeros(1), np.array([-speed])
    ball = Sphere(1, np.zeros(3), 0.1)
    wall = Wall(np.array([0.0, 0.0, 1.0]), -0.1 - height)
    world = Spheres(mechanism, start, [ball], [wall])
    system = bb.System(mechanism, [drive], world=world, dt=dt, contacts=True)
    system.set_state(*start)
    last = int(height / (speed * dt))
    with warnings.catch_warnings():
        warnings.simplefilter("error", BulletBridgeWarning)
        for _ in range(last):
            system.step()
    with pytest.warns(BulletBridgeWarning, match="'world' and 'head' are led.*'press'") as told:
        for _ in range(5):
            system.step()
    assert len(told) == 1
    assert f"t = {(last + 1) * dt:.6g} s" in str(told[0].message)
    assert system.q[0] == pytest.approx(-speed * system.t, abs=1e-12)


def test_a_drive_that_starts_into_a_wall_is_told_in_its_first_step():
    """A ball rests at a wall, where forces alone would leave it: z = -t² ends 1e-6 m beyond."""
    dt = 1e-3
    load = Load(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    mechanism = with_joint(
        empty_mechanism((0.0, 0.0, -9.81)), "slide", "prismatic", "head", load=load
    )
    drive = bb.Coupling("press", {"slide": 1.0}, 0.0, bb.Motion(z=bb.Polynomial((0, 0, -1.0))))
    start = np.zeros(1), np.zeros(1)
    wall = Wall(np.array([0.0, 0.0, 1.0]), -0.1)
    world = Spheres(mechanism, start, [Sphere(1, np.zeros(3), 0.1)], [wall])
    system = bb.System(mechanism, [drive], world=world, dt=dt, contacts=True)
    with pytest.warns(BulletBridgeWarning, match="'world' and 'head' are led.*'press'"):
        system.step()
    assert system.q[0] == pytest.approx(-(dt**2), rel=1e-9)


@pytest.mark.parametrize("stop", ["limit", "wall"])
def test_a_drive_with_a_force_limit_is_stopped_by_limits_and_walls(stop):
    """It holds rigidly on the way, as if nothing could stop it; there it presses with 5 N."""
    dt, speed, way, force = 1e-3, 0.1, 2.55e-3, 5.0
    load = Load(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    mechanism = with_joint(empty_mechanism((0.0, 0.0, 0.0)), "slide", "prismatic", "a", load=load)
    if stop == "limit":
        joints = {"slide": replace(mechanism.joints["slide"], lower=-way, upper=1.0)}
        mechanism = replace(mechanism, joints=joints)
    motion = bb.Motion(z=bb.Polynomial((0, -speed)))
    drive = bb.Coupling("press", {"slide": 1.0}, 0.0, motion, max_force=force)
    start, below = (np.zeros(1), np.array([-speed])), way if stop == "wall" else 1.0
    wall = Wall(np.array([0.0, 0.0, 1.0]), -0.1 - below)
    world = Spheres(mechanism, start, [Sphere(1, np.zeros(3), 0.1)], [wall])
    made = {"world": world, "dt": dt, "contacts": True, "limits": "always"}
    system = bb.System(mechanism, [drive], **made)
    system.set_state(*start)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BulletBridgeWarning)
        for n in range(1, 40):
            system.step()
            wanted = max(-speed * n * dt, -way)
            assert system.q[0] == pytest.approx(wanted, abs=SHALLOW), n
    limit, contacts = system.joint_loads["slide"].limit, system.contacts()
    pressed = limit + sum(contact.normal_force for contact in contacts)
    assert pressed == pytest.approx(force, rel=1e-9)


def test_a_wedge_that_is_shut_stays_shut():
    """Two slides sink at a ratio of 1 to 20, the slow one onto a wall.

    Of what its contact would do to it alone loops leave a 400th, and yet it holds both: by virtual
    work with g (m + 20 m).
    """
    ratio, g = 0.05, 9.81
    load = Load(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    mechanism = empty_mechanism((0.0, 0.0, -g))
    for k in range(2):
        at = 2.0 * k, 0.0, 0.0
        mechanism = with_joint(mechanism, f"j{k}", "prismatic", f"l{k}", xyz=at, load=load)
    gear = bb.Coupling("gear", {"j0": 1.0, "j1": -ratio})
    start, wall = (np.zeros(2), np.zeros(2)), Wall(np.array([0.0, 0.0, 1.0]), -0.1)
    world = Spheres(mechanism, start, [Sphere(1, np.zeros(3), 0.1)], [wall])
    system = bb.System(mechanism, [gear], world=world, dt=1 / 240, contacts=True)
    for _ in range(20):
        system.step()
        assert abs(system.q[0]) < SHALLOW
    (contact,) = system.contacts()
    assert contact.normal_force == pytest.approx(g * (1.0 + 1.0 / ratio), rel=1e-9)


def test_what_is_moved_out_of_others_passes_no_limit():
    """A ball on a slide at its limit is 0.3 mm within a wall, another one beside it 1 cm.

    The limit leaves the first no way out; the second is moved out by 1 m/s, the most there is.
    """
    dt, deep = 1e-3, 1e-2
    mechanism, load = empty_mechanism((0.0, 0.0, 0.0)), Load(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    for k in range(2):
        at = 2.0 * k, 0.0, 0.0
        mechanism = with_joint(mechanism, f"j{k}", "prismatic", f"l{k}", xyz=at, load=load)
    joints = mechanism.joints | {"j0": replace(mechanism.joints["j0"], lower=-1.0, upper=0.0)}
    mechanism, start = replace(mechanism, joints=joints), (np.zeros(2), np.zeros(2))
    balls = [Sphere(k + 1, np.zeros(3), 0.1 + depth) for k, depth in enumerate((3e-4, deep))]
    world = Spheres(mechanism, start, balls, [Wall(np.array([0.0, 0.0, 1.0]), -0.1)])
    system = bb.System(mechanism, [], world=world, dt=dt, contacts=True, limits=True)
    system.set_state(*start)
    for n in range(1, 4):
        system.step()
        assert system.q[0] <= SHALLOW
        assert system.q[1] == pytest.approx(n * dt * FASTEST_RECOVERY, rel=1e-9)
        assert np.abs(system.v).max() < 1e-12


def test_a_limit_that_closing_cannot_keep_is_told_once_and_the_loop_is_closed():
    """A slide is geared to 1 cm beyond its limit at once; an upper limit of the other is not met.

    The block only makes the way long that a pass of the correction may go.
    """
    mechanism = empty_mechanism((0.0, 0.0, 0.0))
    for k, mass in enumerate((1.0, 1.0, 1e6)):
        load = Load(mass, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        at = float(k), 0.0, 0.0
        mechanism = with_joint(mechanism, f"j{k}", "prismatic", f"l{k}", xyz=at, load=load)
    joints = {name: replace(joint, upper=0.01) for name, joint in mechanism.joints.items()}
    gear = bb.Coupling("gear", {"j0": 1.0, "j1": 1e-3})
    system = bb.System(replace(mechanism, joints=joints), [gear], dt=1e-3, limits="always")
    system.set_state(np.zeros(3), np.array([0.0, 0.0, 1.0]))
    system.step()
    system.set_offset("gear", 0.02)
    with pytest.warns(BulletBridgeWarning, match="closing loops leads joint 'j0' past") as told:
        for _ in range(3):
            system.step()
    assert len(told) == 1
    assert system.evaluate().largest("metres") < 1e-12
    # the rows' shortest way, to which j1 adds a thousandth: nothing that is free takes it back
    assert system.q[0] == pytest.approx(0.02, rel=1e-5)


@pytest.mark.parametrize(
    "limits",
    [
        {"rod2": (-4e-4, 2e-3), "rod0": (-0.09, 0.01)},
        {"rod2": (-0.03, 0.003), "bar2": (-2e-4, 0.015), "bar3": (-1.0, 1.0)},
    ],
)
def test_no_joint_passes_a_limit_where_ways_of_flat_parallelograms_part(limits):
    """A row of them starts flat at 3.4 rad/s, along the way on which bars stay parallel.

    There impulses of limits lead on along other ways, from which closing takes joints back. None is
    led past by more than a step bends: three times the square of its angle.
    """
    row, count, dt = empty_mechanism((0.0, -9.81, 0.0)), len(limits), 1 / 60
    load = Load(1.0, (0.5, 0.0, 0.0), (1e-3, 1 / 12, 1 / 12))
    for k in range(count + 1):
        at = float(k), 0.0, 0.0
        row = with_joint(row, f"rod{k}", "revolute", f"rod{k}", xyz=at, load=load)
        if k < count:
            bar, end = f"bar{k + 1}", (1.0, 0.0, 0.0)
            row = with_joint(row, bar, "revolute", bar, f"rod{k}", end, load=load)
    pins = [
        bb.LoopJoint(
            f"pin{k}",
            bb.JointModel.BALL,
            bb.Frame(f"bar{k}", (1.0, 0.0, 0.0)),
            bb.Frame(f"rod{k}", (1.0, 0.0, 0.0)),
        )
        for k in range(1, count + 1)
    ]
    joints = dict(row.joints)
    for name, (lower, upper) in limits.items():
        joints[name] = replace(joints[name], lower=lower, upper=upper)
    system = bb.System(replace(row, joints=joints), pins, dt=dt, limits="always")
    rates = np.array([-3.4 if name.startswith("rod") else 3.4 for name in joints])
    system.set_state(np.zeros(row.nv), rates)
    system.step()
    bent = 3.0 * (dt * max(3.4, float(np.abs(system.v).max()))) ** 2 + SHALLOW
    for name, (lower, upper) in limits.items():
        x = float(system.q[joints[name].q.start])
        assert lower - bent < x < upper + bent, name
    assert system.evaluate().largest("metres") < 1e-12


@pytest.mark.parametrize("integrator", ["verlet", "semi_implicit_euler"])
def test_a_joint_that_is_led_past_its_limit_is_told_once(integrator):
    """A driven crank leaves a four-bar no freedom; the first step past the limit is in closed form.

    With a motor in the place of the drive the same limit holds, and nothing is told.
    """
    free, speed = four_bar(dt=1 / 240), 0.5
    free.assemble(guess={"j0": 1.0, "j1": -0.5, "j2": -1.5})
    start, mechanism, loop = free.q.copy(), free.mechanism, free.constraints[0]
    upper = float(start[2]) + 0.05
    joints = dict(mechanism.joints, j2=replace(mechanism.joint("j2"), upper=upper))
    mechanism = replace(mechanism, joints=joints)
    drive = bb.Coupling(
        "drive", {"j0": 1.0}, float(start[0]), bb.Motion(z=bb.Polynomial((0, speed)))
    )
    led = bb.System(mechanism, [loop, drive], limits=True, dt=1 / 240, integrator=integrator)
    led.set_state(start)
    passed = 0
    with pytest.warns(BulletBridgeWarning, match="upper limit of joint 'j2'.*'drive'") as told:
        for n in range(1, 61):
            led.step()
            free.assemble(
                {"j0": start[0] + n / 240 * speed},
                guess=dict(zip(joints, led.q.tolist(), strict=True)),
            )
            assert np.abs(led.q - free.q).max() < 1e-9
            passed = passed or (n if free.q[2] > upper else 0)
    assert len(told) == 1
    assert 1 < passed < 60
    assert f"t = {passed / 240:.6g} s" in str(told[0].message)
    stopped = bb.System(mechanism, [loop], limits=True, dt=1 / 240)
    stopped.set_state(start)
    stopped.motors.set("j0", force=1e3, velocity=speed)
    for _ in range(60):
        stopped.step()
    assert stopped.q[2] == pytest.approx(upper, abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_what_flies_keeps_its_momentum_while_joints_are_taken_back_to_their_limits(seed):
    """Two robots that a ball joins tumble; joints of both start far beyond their limits.

    Links that are moved and keep their rates would change it by some tenth, whatever the step;
    what is left goes with the step, as semi-implicit Euler's errors do.
    """
    rng = np.random.default_rng(seed)
    kinds = FREE, REVOLUTE, REVOLUTE, FREE, REVOLUTE
    mechanism = random_mechanism(rng, kinds, 0.0, gravity=False)
    q, v = random_state(rng, mechanism)
    joints = dict(mechanism.joints)
    for name in ("joint2", "joint5"):
        joints[name] = replace(joints[name], upper=float(q[joints[name].q.start]) - 0.3)
    mechanism = replace(mechanism, joints=joints)
    hold = bb.LoopJoint("hold", bb.JointModel.BALL, bb.Frame("link3"), bb.Frame("link5"))
    hold = Closer(mechanism, q).joint(rng, hold)
    judge = Judge(mechanism, [hold])
    drifts = []
    for dt in (1e-3, 2.5e-4):
        system = bb.System(mechanism, [hold], dt=dt, limits="always")
        system.set_state(q, v)
        conserved, t = Conserved(judge, False, 0 * v), np.zeros(1)
        before, sizes, _ = conserved.measure(system.q.copy()[None], system.v.copy()[None], t)
        while system.t < 0.4:  # they are taken back at one radian per second
            system.step()
        after, _, _ = conserved.measure(system.q.copy()[None], system.v.copy()[None], t)
        drifts.append(np.linalg.norm(after - before, axis=2)[0] / sizes[0])
        for name in ("joint2", "joint5"):
            assert system.q[joints[name].q.start] < joints[name].upper + 1e-2
    assert (drifts[0] < 5e-3).all()
    assert (drifts[1] < 0.3 * drifts[0]).all()


ARM = """<robot name="arm"><link name="world"/>
<link name="upper"><inertial><origin xyz="0.25 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.25 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="world"/><child link="upper"/>
<axis xyz="0 1 0"/><limit lower="0.2" upper="2" effort="10" velocity="10"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
<origin xyz="0.5 0 0"/><axis xyz="0 1 0"/><limit lower="{}" upper="2" effort="10" velocity="10"/>
</joint></robot>"""


@pytest.mark.parametrize("mode", ["filter", "exact"])
@pytest.mark.parametrize("lowest", [-2.0, 0.0])
def test_the_drop_in_closes_what_begins_open_within_limits(tmp_path, mode, lowest):
    """Two links of 0.5 m reach a point 0.9055 m away by an elbow up or down: cosine rule."""
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.format(lowest))
    client = bb.BulletClient(pybullet.DIRECT, mode=mode)
    body = client.loadURDF(str(path), useFixedBase=True)  # the shoulder is at 0, below its limit
    inertial, target = [0.25, 0.0, 0.0], [0.9, 0.0, -0.1]  # the tip, from the centre of mass
    client.createConstraint(
        body, 1, -1, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], inertial, target
    )
    distance = np.hypot(0.9, 0.1)
    bend, aim = 2.0 * np.arccos(distance), np.arctan2(0.1, 0.9)
    if lowest < -bend:  # up, which both limits let be
        client.stepSimulation()
        expected = aim + bend / 2.0, -bend
    else:  # down alone, which the shoulder's limit does not
        with pytest.warns(BulletBridgeWarning, match="beyond limits alone: joint 'shoulder' is at"):
            client.stepSimulation()
        expected = aim - bend / 2.0, bend
    found = [client.getJointState(body, joint)[0] for joint in (0, 1)]
    client.disconnect()
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_two_arms_stay_as_they_are_where_a_grasp_is_closed_but_for_rounding(tmp_path, mode):
    """Two arms hold each other by their tips; the shoulder of one begins 0.1 rad beyond its limit.

    The gap of 1e-6 m is one of printed figures. The shoulder is taken back, by FASTEST_RECOVERY or
    Bullet's fifth of what is left in a step, which is 0.02 rad at most, and other joints by no more
    than twice as much; put within its limit at once it would turn by 0.1 rad.
    """
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.format(-2.0))
    client = bb.BulletClient(pybullet.DIRECT, mode=mode)
    one = client.loadURDF(str(path), useFixedBase=True)
    poses = (0.1, 0.9), (0.4, 0.8)  # the shoulder's lower limit is 0.2
    ends = [
        np.array([np.cos(a) + np.cos(a + b), 0.0, -np.sin(a) - np.sin(a + b)]) / 2.0
        for a, b in poses
    ]
    # the other one faces it, turned by half a turn about the vertical axis
    base = ends[0] + ends[1] * [1.0, 1.0, -1.0]
    turned = pybullet.getQuaternionFromEuler([0, 0, np.pi])
    other = client.loadURDF(str(path), base.tolist(), turned, useFixedBase=True)
    before = []
    for body, angles in zip((one, other), poses, strict=True):
        for joint, angle in enumerate(angles):
            client.resetJointState(body, joint, angle)
            client.setJointMotorControl2(body, joint, pybullet.POSITION_CONTROL, angle, force=100.0)
        before += angles
    tip = [0.25, 0.0, 0.0]  # from the centre of mass
    printed = [0.25 + 1e-6, 0.0, 0.0]
    client.createConstraint(one, 1, other, 1, pybullet.JOINT_POINT2POINT, [0] * 3, tip, printed)
    for _ in range(20):
        client.stepSimulation()
        now = [client.getJointState(body, joint)[0] for body in (one, other) for joint in (0, 1)]
        assert now == pytest.approx(before, abs=0.04)
        before = now
    client.disconnect()


@pytest.mark.parametrize("place", [(0.0, 0.0, 1.0), (1.15, -0.2, 2.1)])
def test_fingers_that_are_to_meet_do_so_where_their_gripper_is_carried(
    place: tuple[float, float, float],
) -> None:
    """PyBullet's WSG 50, held 2 or 0.25 m from where it was loaded, fingers open by 0.11 m.

    Its base goes there; each finger slides half the way, being as heavy as the other, and nothing
    else moves. Their limits of 0.05 m do not let them meet, which is said.
    """
    client = bb.BulletClient(pybullet.DIRECT, mode="exact")
    path = f"{pybullet_data.getDataPath()}/gripper/wsg50_one_motor_gripper_new_free_base.sdf"
    (body,) = client.loadSDF(path)
    fingers, tip = (4, 6), [0, 0, 0.05]
    client.createConstraint(body, -1, -1, -1, pybullet.JOINT_FIXED, [0] * 3, [0] * 3, place)
    ends = body, fingers[0], body, fingers[1]
    client.createConstraint(*ends, pybullet.JOINT_POINT2POINT, [0] * 3, tip, tip)
    with pytest.warns(
        BulletBridgeWarning, match=r"beyond limits alone: joint 'gripper_left.*0\.05"
    ):
        client.stepSimulation()
    at = client.getBasePositionAndOrientation(body)[0]
    assert np.abs(np.subtract(at, place)).max() < 1e-7  # told in single precision
    for joint in range(client.getNumJoints(body)):
        expected = 0.055 if joint in fingers else 0.0
        # limits begin to take them back, within a step by no more than a fiftieth of a radian
        assert client.getJointState(body, joint)[0] == pytest.approx(expected, abs=1e-4)
    client.disconnect()


def skewed(upper: float, gap: float = 0.0) -> str:
    """A parallelogram that a ball joint closes, skewed by the digits of single precision."""
    inertia = '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    inertial = f'<inertial><origin xyz="0 0 0.2"/><mass value="1"/>{inertia}</inertial>'
    limit = f'<limit lower="0" upper="{upper}" effort="1" velocity="1"/>'

    def joint(name, parent, child, at, axis):
        return (
            f'<joint name="{name}" type="revolute"><parent link="{parent}"/>'
            f'<child link="{child}"/><origin xyz="{at}"/><axis xyz="{axis}"/>'
            f"{limit if name == 'a' else limit.replace('0', '-9', 1)}</joint>"
        )

    return (
        '<robot name="skewed"><link name="world"/>'
        + "".join(f'<link name="{n}">{inertial}</link>' for n in ("crank", "coupler", "rocker"))
        + joint("a", "world", "crank", "0 0 0", "1e-7 1 0")
        + joint("b", "crank", "coupler", "0 0 0.5", "0 1 1e-7")
        + joint("d", "world", "rocker", "1 0 0", "0 1 0")
        + '<loop_joint name="pin" type="spherical">'
        f'<link1 link="coupler" xyz="{1 + gap} 1e-7 0" rpy="0 0 0"/>'
        '<link2 link="rocker" xyz="0 0 0.5" rpy="0 0 0"/></loop_joint></robot>'
    )


def test_rows_redundant_but_for_single_precision_do_not_move_the_start():
    """They lead along the free motion, which they hardly resist: this started 0.59 rad away.

    As it moves its pin is told to open by what its axes are skewed by.
    """
    with (
        pytest.warns(BulletBridgeWarning, match="'pin' opens where its bodies move"),
        bb.load(skewed(upper=9)) as loaded,
    ):
        assert np.abs(loaded.system.q).max() < 1e-6


def test_a_joint_that_closing_takes_beyond_its_limit_starts_at_it():
    with bb.load(skewed(upper=1, gap=1e-3), limits=True) as loaded:
        system = loaded.system
        part = system.mechanism.joint("a").q.start
        assert system.q[part] == 0
        assert np.abs(system.q).max() < 5e-3


@pytest.mark.parametrize("every", [1, 7, 50])
def test_steps_at_limits_are_made_in_few_calls(every, monkeypatch):
    """And are, kept or not, those made one by one; a step is made alone where a limit is met."""
    chain = planar_chain([0.5, 0.5, 0.5], [1.0, 1.0, 1.0])
    chain = replace(chain, gravity=np.array([0.0, 0.0, -9.81]))
    for name in ("j1", "j2"):
        joint = replace(chain.joints[name], lower=-0.05, upper=0.3)
        chain = replace(chain, joints={**chain.joints, name: joint})
    rolled, alone = (bb.System(chain, limits=True, dt=1 / 240) for _ in range(2))
    steps, kept, pushed, single = 700, list[np.ndarray](), 0, list[int]()
    limited = InequalitySteps.step
    monkeypatch.setattr(InequalitySteps, "step", lambda own: single.append(1) or limited(own))
    for system in (rolled, alone):
        system.set_state([0.0, 0.0, 0.0])
    for n in range(steps):
        alone.step()
        loads = alone.joint_loads.values()
        pushed += any(load.limit != 0.0 for load in loads)
        if (n + 1) % every == 0:
            kept.append(np.r_[alone.q, alone.v])
    assert 100 < pushed < steps - 100
    assert len(single) == 1  # the first, by which it is known what they work on
    step = WatchedSteps.step
    monkeypatch.setattr(WatchedSteps, "step", lambda own: single.append(1) or step(own))
    recording = rolled.rollout(steps, every=every)
    assert np.array_equal(np.hstack([recording.q, recording.v]), kept)
    assert np.array_equal(np.r_[rolled.q, rolled.v], np.r_[alone.q, alone.v])
    assert len(single) < pushed / 2
