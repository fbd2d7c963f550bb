"""Bodies beside a robot: what does not touch it has problems of its own, by closed forms."""

import numpy as np
import pybullet
import pytest
from support.solid_worlds import FLAGS, G

import bulletbridge as bb

MASS, MU = 2.0, 0.5
ROUND_OFF = 1e-12
CUBE = '<box size="0.2 0.2 0.2"/>'
PUSHER = """<robot name="pusher"><link name="rail"/><link name="plate"><inertial><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial><collision>
<geometry><box size="0.2 0.2 0.1"/></geometry></collision></link><joint name="slide"
type="prismatic"><parent link="rail"/><child link="plate"/><axis xyz="1 0 0"/>
<limit lower="-5" upper="5" effort="1000" velocity="10"/></joint></robot>"""
SPEED = 0.3  # [m/s]


def pusher(solids, place):
    """A plate on a rail along x, of friction that nothing has."""
    path = solids.folder / "pusher.urdf"
    path.write_text(PUSHER)
    body = pybullet.loadURDF(
        str(path), place, useFixedBase=True, flags=FLAGS, physicsClientId=solids.client
    )
    solids.rub(body, 0.0)
    return body


def cube(solids, place):
    return solids.solid(CUBE, place, mass=MASS, moments=[MASS * 0.04 / 6] * 3, friction=MU)


def driven(solids, bodies, speed):
    """A system whose plate moves at a speed, and the name of its motor."""
    system = solids.system(bodies)
    (motor,) = [name for name in system.motors.names if name.endswith("slide")]
    system.motors.set(motor, velocity=speed, force=500.0)
    return system, motor


def force_of(system, motor):
    return system.motors.forces[list(system.motors.names).index(motor)]


def forces_from_the_ground(system):
    """Sum over the contacts with the ground (3,) [N], by the name of the body."""
    found = {}
    for contact in system.contacts():
        if contact.a == "world":
            found[contact.b] = found.get(contact.b, 0.0) + contact.force
    return found


def test_what_does_not_touch_a_robot_moves_as_without_it(solids):
    """A stack rests on the weights of its cubes, one cube slides with g mu, the plate is alone."""
    solids.ground(plane=True)
    robot = pusher(solids, [0, 5, 1])
    stack = [cube(solids, [0, 0, z]) for z in (0.1, 0.3)]
    sliding = cube(solids, [1, 0, 0.1])
    system, motor = driven(solids, [robot, *stack, sliding], SPEED)
    v = system.v.copy()
    v[-3] = 1.5
    system.set_state(v=v)
    for _ in range(48):
        system.step()
        assert system.complementarity.residual < 1.6 * ROUND_OFF  # times 1.5 m/s and g dt
    assert system.v[-3] == pytest.approx(1.5 - MU * G * system.t, abs=1e-9)
    ground = forces_from_the_ground(system)
    weights = sorted(force[2] for force in ground.values())
    assert weights == pytest.approx([MASS * G, 2 * MASS * G], rel=1e-9)
    assert sorted(force[0] for force in ground.values())[0] == pytest.approx(
        -MU * MASS * G, rel=1e-9
    )
    assert force_of(system, motor) == pytest.approx(0.0, abs=1e-9)
    assert system.v[0] == pytest.approx(SPEED, abs=ROUND_OFF)


def test_a_row_of_cubes_that_is_pushed_takes_the_friction_of_all(solids):
    """The motor carries mu g of the cubes before the plate, not of the one beside them."""
    solids.ground(plane=True)
    robot = pusher(solids, [-0.2, 0, 0.1])
    row = [cube(solids, [0.2 * k, 0, 0.1]) for k in range(2)]
    beside = cube(solids, [0, 1, 0.1])
    system, motor = driven(solids, [robot, *row, beside], SPEED)
    for _ in range(60):
        system.step()
    assert system.v[[0, 4, 10]] == pytest.approx(SPEED, abs=1e-9)
    assert np.abs(system.v[-6:]).max() < ROUND_OFF
    assert force_of(system, motor) == pytest.approx(MU * 2 * MASS * G, rel=1e-6)
    weight = sum(force[2] for force in forces_from_the_ground(system).values())
    assert weight == pytest.approx(3 * MASS * G, rel=1e-9)


def test_equal_steps_among_cubes_are_equal_to_the_bit(solids):
    """The same start leads to the same end, whatever was stepped before."""
    solids.ground(plane=True)
    robot = pusher(solids, [-0.2, 0, 0.1])
    cubes = [cube(solids, [0.2 * k, 0.01 * k, 0.1]) for k in range(2)]
    cubes.append(cube(solids, [0, 1, 0.1]))
    system, _ = driven(solids, [robot, *cubes], SPEED)
    start = system.save()
    ends = []
    for _ in range(2):
        system.restore(start)
        for _ in range(30):
            system.step()
        ends.append(np.concatenate([system.q, system.v]))
    assert np.array_equal(*ends)


def test_what_rests_keeps_its_impulses_until_it_is_pushed(solids):
    """A stack bears its weight, mostly without a step of Newton's method, and slides if pushed.

    Round-off of places may ask for new impulses now and then. One step is that of the robot, which
    has no rows. Impulses are kept whose residual is 0.03 tolerances, far less than ROUND_OFF.
    """
    solids.ground(plane=True)
    bodies = [pusher(solids, [0, 5, 1]), *(cube(solids, [0, 0, z]) for z in (0.1, 0.3))]
    system = solids.system([*bodies, cube(solids, [1, 0, 0.1])])
    system.step()
    start, ends, steps, newtons = system.save(), [], 20, []
    for _ in range(2):
        system.restore(start)
        before = system.q.copy()
        for _ in range(steps):
            system.step()
            newtons.append(system.complementarity.newton)
            assert system.complementarity.residual < ROUND_OFF
        ends.append(np.concatenate([system.q, system.v]))
        assert np.abs(system.q - before)[1:].max() < steps * system.dt * ROUND_OFF
    assert np.array_equal(*ends)
    assert np.median(newtons) <= 1
    weights = sorted(force[2] for force in forces_from_the_ground(system).values())
    assert weights == pytest.approx([MASS * G, 2 * MASS * G], rel=1e-9)
    v, pushed = system.v.copy(), 1.5
    v[-3] = pushed
    system.set_state(v=v)
    system.step()
    assert system.complementarity.newton > 1
    assert system.v[-3] == pytest.approx(pushed - MU * G * system.dt, abs=1e-9)
    # the tolerance is a trillionth of the largest velocity, by what that is the sum of
    assert np.abs(system.v[1:-6]).max() < 10 * ROUND_OFF


@pytest.mark.parametrize("upside_down", [False, True])
@pytest.mark.parametrize("beside", [False, True])
def test_bodies_on_one_spring_at_the_end_of_a_step_are_not_loose(solids, upside_down, beside):
    """One stands, one swings above it, whichever is the first: implicit Euler of the upper one."""
    solids.ground(plane=True)
    places = {"lower": [0, 0, 0.1], "upper": [0, 0, 0.6]}
    names = sorted(places, reverse=upside_down)
    bodies = {name: cube(solids, places[name]) for name in names}
    if beside:
        bodies["robot"] = pusher(solids, [0, 5, 1])
    k, c = 1e5, 10.0
    ends = bb.Frame("lower/b"), bb.Frame("upper/b")
    spring = bb.Spring("spring", *ends, stiffness=k, damping=c, length=0.5)
    system = bb.attach(
        bodies, [spring], solids.client, dt=1 / 240, contacts=True, springs="implicit"
    )
    lower, upper = (system.mechanism.joints[f"{name}/base"].v for name in ("lower", "upper"))
    dt, x, v = system.dt, 0.0, 0.0
    for _ in range(60):
        system.step()
        v = (MASS * v - dt * (k * x + MASS * G)) / (MASS + dt * c + dt * dt * k)
        x += dt * v
        assert abs(system.v[lower]).max() < ROUND_OFF
        assert system.v[upper][5] == pytest.approx(v, abs=1e-11)
        carried = sum(contact.force[2] for contact in system.contacts())
        # round-off of v acts through the spring: (k dt + c) times 1e-11
        assert carried == pytest.approx(MASS * G - k * x - c * v, abs=1e-8)


def test_bodies_on_one_cable_through_eyes_are_not_loose(solids):
    """Two cubes on a cable that is as long as it may be, over two eyes, as Atwood's machine."""
    solids.ground(plane=True)
    heavy = solids.solid(CUBE, [0, 0, 1], mass=3.0, moments=[0.02] * 3)
    light = solids.solid(CUBE, [1, 0, 1], mass=1.0, moments=[0.02 / 3] * 3)
    rest = cube(solids, [3, 0, 0.1])
    names = [f"body{n}" for n in (1, 2, 3)]
    eyes = tuple(bb.Frame("world", (x, 0.0, 2.0)) for x in (0.0, 1.0))
    ends = [bb.Frame(f"{name}/b") for name in names[:2]]
    cable = bb.Spring("cable", *ends, via=eyes, limits=(0.0, 3.0))
    bodies = dict(zip(names, (heavy, light, rest), strict=True))
    system = bb.attach(bodies, [cable], client=solids.client, contacts=True, limits=True, dt=1e-3)
    for _ in range(100):
        system.step()
    # g (m1 - m2) / (m1 + m2); Euler's fall counts one step more than t
    assert -system.v[5] == pytest.approx(G / 2 * system.t, rel=1e-9)
    assert system.v[11] == pytest.approx(G / 2 * system.t, rel=1e-9)
