"""Contacts that stick, slide, bounce and lift off, against closed forms."""

from dataclasses import dataclass

import numpy as np
import pytest
from _mechanisms import random_mechanism
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from support.planar import four_bar, planar_chain
from support.small_trees import GRAVITY, free_body, slider

import bulletbridge as bb
from bulletbridge.errors import ModelError, StepError
from bulletbridge.events.contact import ContactMode, contact_geometry
from bulletbridge.events.impact import impact
from bulletbridge.events.sliding import SlidingFormulation
from bulletbridge.formulations.equations import SINGULAR_RTOL
from bulletbridge.formulations.quasi_velocities import basis_of
from bulletbridge.mechanism.records import FREE, REVOLUTE, SPHERICAL

BODY, WORLD = bb.Frame("body"), bb.Frame("world")


def on_slope(angle):
    """Gravity in axes of a slope that falls along x."""
    return GRAVITY * np.sin(angle), 0.0, -GRAVITY * np.cos(angle)


@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
def test_a_block_slides_down_a_slope_with_friction(integrator):
    """Class II: held on the plane, g (sin - mu cos) along it."""
    plane = bb.LoopJoint("plane", bb.JointModel.PLANAR, WORLD, BODY)
    system = bb.System(
        free_body(2.0, gravity=on_slope(0.5)),
        [plane],
        integrator=integrator,
        dt=0.05,
        formulation=bb.sliding(bb.Friction(plane, 0.3)),
    )
    way = np.array([np.cos(0.4), np.sin(0.4)])
    system.set_state(v=np.array([0, 0, 0, *(1e-3 * way), 0]))
    system.set_state(v=np.array([0, 0, 0, 1.0, 0, 0]))
    system.rollout(40)
    acceleration = GRAVITY * (np.sin(0.5) - 0.3 * np.cos(0.5))
    assert_allclose(system.v[3], 1 + 2 * acceleration, rtol=1e-10)
    assert_allclose(system.q[0], 2 + 2 * acceleration, rtol=1e-10)


def test_a_ball_bounces_when_it_should():
    """Restitution 1 and 0.8: instants of all impacts to 1e-9 s, energy to 1e-9."""
    height, radius = 1.0, 0.1
    for restitution in (1.0, 0.8):
        contact = bb.Contact("floor", WORLD, BODY, radius=radius, restitution=restitution)
        motion = bb.ContactMotion(free_body(), [], [contact], integrator="dop853", dt=0.1)
        motion.system.set_state(q=np.array([0, 0, height + radius, 0, 0, 0, 1.0]))
        energy = motion.system.evaluate().energy
        motion.run(3.0)
        fall = np.sqrt(2 * height / GRAVITY)
        times, flight = [fall], 2 * fall
        while times[-1] + restitution * flight < 3.0:
            flight *= restitution
            times.append(times[-1] + flight)
        assert [event.what for event in motion.events] == ["bounce"] * len(times)
        assert_allclose([event.t for event in motion.events], times, atol=1e-9)
        left = motion.system.evaluate().energy - 9.81 * radius
        kept = restitution ** (2 * len(times))
        assert_allclose(left, kept * (energy - 9.81 * radius), rtol=1e-9)
        lost = sum(event.energy_lost for event in motion.events)
        assert_allclose(lost, (1 - kept) * GRAVITY * height, atol=1e-8)


@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
def test_a_block_that_is_pushed_ever_harder_slides_from_mu_n_on(integrator):
    mass, mu, rate = 2.0, 0.4, 7.0
    contact = bb.Contact("floor", WORLD, BODY, friction=mu)
    motion = bb.ContactMotion(
        slider("xz", mass),
        [],
        [contact],
        integrator=integrator,
        dt=0.05,
        forces={"x": lambda t: rate * t},
    )
    breaks = mu * mass * GRAVITY / rate
    motion.run(2.0)
    assert [(e.contact, e.what) for e in motion.events] == [("floor", "slide")]
    assert_allclose(motion.events[0].t, breaks, atol=1e-8)
    assert_allclose(motion.system.q[0], rate * (2.0 - breaks) ** 3 / (6 * mass), rtol=1e-8)
    assert motion.mode["floor"] is ContactMode.SLIDE
    assert_allclose(motion.forces()["floor"].normal, mass * GRAVITY, rtol=1e-12)


@pytest.mark.parametrize(("slope", "ends"), [(0.2, ["stick"]), (0.6, ["stick", "slide"])])
def test_a_block_thrown_up_a_slope_stops_or_comes_back(slope, ends):
    """It stops at v / g (sin + mu cos), and stays if the slope is below atan(mu)."""
    mu, speed = 0.4, 2.0
    motion = bb.ContactMotion(
        slider("xyz", gravity=on_slope(slope)),
        [],
        [bb.Contact("slope", WORLD, BODY, friction=mu)],
        dt=0.05,
    )
    motion.system.set_state(v=np.array([-speed, 0.0, 0.0]))
    motion.run(1.0)
    down, rub = GRAVITY * np.sin(slope), GRAVITY * mu * np.cos(slope)
    stops = speed / (down + rub)
    assert_allclose(motion.events[0].t, stops, atol=1e-9)
    back = 0.0 if slope < np.arctan(mu) else 0.5 * (down - rub) * (1.0 - stops) ** 2
    assert_allclose(motion.system.q[0], back - speed**2 / (2 * (down + rub)), atol=1e-9)
    assert motion.mode["slope"] is (ContactMode.STICK if back == 0.0 else ContactMode.SLIDE)


def test_a_ball_that_slides_begins_to_roll():
    """A bowling ball rolls from 2 v / 7 mu g on, with 5/7 of its speed."""
    radius, mu, speed = 0.11, 0.2, 3.0
    moment = 0.4 * radius**2
    contact = bb.Contact("lane", WORLD, BODY, radius=radius, friction=mu)
    motion = bb.ContactMotion(free_body(1.0, (moment,) * 3), [], [contact], dt=0.02)
    start = np.array([0, 0, radius, 0, 0, 0, 1.0])
    motion.system.set_state(q=start, v=np.array([0, 0, 0, speed, 0, 0]))
    motion.run(1.0)
    rolls = 2 * speed / (7 * mu * GRAVITY)
    assert [event.what for event in motion.events] == ["stick"]
    assert_allclose(motion.events[0].t, rolls, atol=1e-9)
    assert_allclose(motion.system.v[3], 5 / 7 * speed, rtol=1e-9)
    slid = 0.5 * (speed + 5 / 7 * speed) * rolls
    assert_allclose(motion.system.q[0], slid + 5 / 7 * speed * (1 - rolls), rtol=1e-9)
    assert motion.system.evaluate().largest("metres") < 1e-12


def test_a_body_that_is_pulled_up_and_let_go_lifts_off_and_lands():
    """A force F sin(w t): off where it reaches the weight, down where the flight ends."""
    mass, top, w = 1.0, 15.0, 4.0
    motion = bb.ContactMotion(
        slider("xz", mass),
        [],
        [bb.Contact("floor", WORLD, BODY, friction=0.5)],
        dt=0.02,
        integrator="dop853",
        forces={"z": lambda t: top * np.sin(w * t)},
    )
    motion.run(1.3)
    off = np.arcsin(mass * GRAVITY / top) / w

    def height(t):
        flight = t - off
        rise = top / w * (np.cos(w * off) * flight - (np.sin(w * t) - np.sin(w * off)) / w)
        return rise / mass - 0.5 * GRAVITY * flight**2

    first, second = motion.events[:2]
    assert (first.what, second.what) == ("lift-off", "land")
    assert_allclose(first.t, off, atol=1e-8)
    assert abs(height(second.t)) < 1e-8 and second.t > off + 0.1
    assert motion.mode["floor"] is ContactMode.STICK and abs(motion.system.q[1]) < 1e-12


NUMBERS = st.floats(-2.0, 2.0)


@given(
    v=st.tuples(*[NUMBERS] * 3),
    friction=st.floats(0.0, 3.0),
    restitution=st.floats(0.0, 1.0),
    q=st.tuples(*[st.floats(-1.5, 1.5)] * 3),
)
@example(v=(0.0, 2.2e-313, 0.0), friction=1.0, restitution=0.0, q=(0.0, 0.0, 0.5))
@example(v=(0.0, 1.0, 0.0), friction=2.0, restitution=0.0, q=(1.4375, 0.0, -0.0625))
@example(v=(1.0, 0.0, 0.0), friction=0.75, restitution=0.0, q=(1.0, 1e-5, 0.0))
@example(v=(0.0, 0.75, 0.98), friction=1.48, restitution=0.0, q=(0.36, 0.004, 0.0))
def test_impacts_give_no_energy_and_end_all_approach(v, friction, restitution, q):
    """A chain of three rods meets a floor in any attitude: with its tip, or smooth with two joints.

    Newton's restitution alone would give energy in some of these. A chain that is all but straight
    can hardly give way along itself. Round-off of its impulses grows as the condition number of
    what impulses do to the velocities; beyond 1e12 what it approaches by along itself is left.
    """
    ends = (bb.Frame("l2", (0.4, 0, 0)), bb.Frame("l1", (0.3, 0.0, 0.0)))[: 1 if friction else 2]
    system = bb.System(planar_chain([0.5, 0.3, 0.4], [1.0, 2.0, 0.5]))
    system.set_state(q=np.array(q), v=np.array(v))
    contacts = [
        bb.Contact(f"c{k}", WORLD, end, friction=friction, restitution=restitution)
        for k, end in enumerate(ends)
    ]
    seen = system.kinematics()
    closed = [(c, contact_geometry(c.joint(ContactMode.SLIDE), seen)) for c in contacts]
    e = system.dynamics.equations(system.q, system.v, 0.0)
    after = impact(e, system.v, closed, 1e-3)
    # what impulses act along: normals, and with friction the tangents, of which one moves nothing
    along = [np.vstack([at.normal, at.tangents][: 2 if friction else 1]) for _, at in closed]
    rows = np.vstack([way @ at.jacobian for way, (_, at) in zip(along, closed, strict=True)])
    rows = rows[np.linalg.norm(rows, axis=1) > 1e-12]
    mobility = np.linalg.eigvalsh(rows @ np.linalg.solve(e.M, rows.T))
    condition = mobility[-1] / max(mobility[0], np.finfo(float).eps * mobility[-1])
    size = max(1e-3, 0.5 * system.v @ e.M @ system.v)
    allowed = (1e-10 + 10 * np.finfo(float).eps * min(condition, SINGULAR_RTOL**-2)) * size
    left = SINGULAR_RTOL * np.abs(rows @ system.v).max() if condition > SINGULAR_RTOL**-2 else 0.0
    gained = 0.5 * (after.v @ e.M @ after.v - system.v @ e.M @ system.v)
    assert_allclose(gained, after.work, atol=allowed)
    assert gained <= allowed
    for (contact, at), push in zip(closed, after.impulses, strict=True):
        assert at.normal @ at.jacobian @ after.v > -max(left, 1e-8)
        assert push[0] >= 0.0
        slack = 1e-9 * max(1.0, push[0])
        assert np.linalg.norm(push[1:]) <= contact.friction * push[0] + slack


def test_a_loop_stays_closed_when_its_coupler_lands_and_bounces():
    """A four-bar falls on a floor: loops at round-off through impacts, energy never up."""
    loop = four_bar()
    tip = bb.Frame("l1", (0.45, 0.0, -0.1))
    loop.assemble({"j0": -0.4}, guess={"j1": 1.0, "j2": 1.5})
    floor = bb.Frame("world", (0, 0, float(loop.kinematics().point(tip).p_W[2]) - 0.1))
    contact = bb.Contact("floor", floor, tip, friction=0.3, restitution=0.5)
    motion = bb.ContactMotion(loop.mechanism, loop.constraints, [contact], dt=5e-3)
    motion.system.set_state(q=loop.q)
    energies, gaps = [motion.system.evaluate().energy], []
    for _ in range(200):
        motion.step()
        evaluation = motion.system.evaluate()
        energies.append(evaluation.energy)
        gaps.append(evaluation.largest("metres"))
        at = contact_geometry(contact.joint(ContactMode.SLIDE), motion.system.kinematics())
        assert at.gap > -1e-11
    assert max(gaps) < 1e-12
    assert np.diff(energies).max() < 1e-7
    said = {event.what for event in motion.events}
    assert "bounce" in said and "land" in said
    assert sum(event.energy_lost for event in motion.events) > 0.01


@pytest.mark.parametrize("model", ["point_on_plane", "point_on_sphere", "point_on_cylinder"])
def test_contact_geometry_is_what_its_joint_holds(model):
    """Gap and normal are those of the row, and the normal velocity there is its rate."""
    loop = bb.LoopJoint(
        "s",
        bb.JointModel(model),
        WORLD,
        bb.Frame("body", (0.1, 0.2, 0)),
        (0.3, 0.2, 0.9),
        radius=0.3,
    )
    system = bb.System(free_body(), [loop])
    system.assemble(guess={"base": [0.3, 0.2, 0.4, 0.1, 0.2, 0.3, 0.9]})
    rng = np.random.default_rng(0)
    v = rng.normal(size=6)
    seen = system.kinematics()
    at, terms = contact_geometry(loop, seen), system.terms()
    assert abs(at.gap) < 1e-12
    assert_allclose(at.normal @ at.jacobian @ v, terms.J[0] @ v, atol=1e-12)
    assert_allclose(np.vstack([at.tangents, at.normal]) @ at.normal, [0, 0, 1], atol=1e-14)


def test_friction_on_a_sphere_slows_as_much_as_the_normal_force_says():
    """A bead in a bowl at its lowest point: friction mu m (g + v²/r)."""
    bowl = bb.LoopJoint("bowl", bb.JointModel.POINT_ON_SPHERE, WORLD, BODY, radius=0.5)
    system = bb.System(
        slider("xyz"),
        [bowl],
        integrator="rk4",
        formulation=bb.sliding(bb.Friction(bowl, 0.2)),
    )
    system.set_state(q=np.array([0, 0, -0.5]), v=np.array([1.2, 0.5, 0.0]))
    f = bb.sliding(bb.Friction(bowl, 0.2))(system.dynamics)
    vdot = f(system.q, system.v, 0.0).vdot
    speed = np.hypot(1.2, 0.5)
    slows = 0.2 * (GRAVITY + speed**2 / 0.5)
    assert_allclose(vdot[:2], -slows * np.array([1.2, 0.5]) / speed, rtol=1e-12)


@dataclass
class InSteps:
    """Friction that compiled steps have to have: no formulation is made of it."""

    made: SlidingFormulation

    def __call__(self, dynamics):
        return lambda q, v, t: pytest.fail("a step in Python")

    def in_steps(self):
        return self.made.in_steps()


SLIDING = [
    ([REVOLUTE] * 7, {"point_on_plane": 0.05}),
    ([FREE, REVOLUTE, SPHERICAL, REVOLUTE], {"point_on_plane": 0.05, "point_on_sphere": 0.9}),
    ([REVOLUTE] * 3 + [FREE], {"planar": 0.0}),
    ([REVOLUTE] * 6, {"point_on_cylinder": 0.9, "planar": 0.0}),
]


@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
@pytest.mark.parametrize("case", SLIDING, ids=lambda case: "+".join(case[1]))
def test_compiled_steps_have_the_friction_of_the_formulation(case, integrator, rng):
    """Its normal forces are found from geometry and multipliers in Python; round-off is left.

    What slides on another link too, and a contact that only pushes beside one that may pull.
    """
    kinds, models = case
    mechanism = random_mechanism(rng, kinds, branching=0.0, gravity=True)
    on = ["world", "world"] if FREE in kinds else ["world", "link1"]
    loops = [
        bb.LoopJoint(
            f"slide{n}",
            bb.JointModel(model),
            bb.Frame(on[n], (0.1, 0.2, 0.0), (0.3, -0.4, 0.0)),
            bb.Frame(f"link{len(kinds) - n}", (0.1, 0.0, 0.2)),
            radius=radius,
        )
        for n, (model, radius) in enumerate(models.items())
    ]
    made = bb.sliding(*(bb.Friction(k, 0.3 + 0.1 * n, n == 0) for n, k in enumerate(loops)))
    ends = []
    for formulation in (InSteps(made), lambda dynamics: made(dynamics), "projector"):
        system = bb.System(
            mechanism, loops, dt=1e-3, integrator=integrator, formulation=formulation, rtol=1e-12
        )
        system.assemble()
        basis = basis_of(system.dynamics.equations(system.q, system.v, 0.0))
        system.set_state(v=basis.expand(np.linspace(-0.5, 0.7, system.dof)))
        energy = system.evaluate().energy
        system.rollout(4)
        system.step()
        ends.append(np.concatenate([system.q, system.v]))
        if formulation != "projector" and len(loops) == 1:  # where loops pull, pushing slows not
            assert system.evaluate().energy < energy
    assert_allclose(ends[0], ends[1], rtol=0, atol=1e-11 * max(1.0, np.abs(ends[1]).max()))
    assert np.abs(ends[0] - ends[2]).max() > 1e-5


def test_a_painleve_rod_is_told():
    """A rod that slides on its tip with friction 3 has no normal force at some attitudes."""
    rod = slider("xz", 1.0, 1 / 12)
    tip = bb.Frame("body", (0.5 * np.cos(1.0), 0, -0.5 * np.sin(1.0)))
    plane = bb.LoopJoint("tip", bb.JointModel.POINT_ON_PLANE, WORLD, tip)
    system = bb.System(rod, [plane], formulation=bb.sliding(bb.Friction(plane, 3.0, False)))
    system.assemble({"turn": 0.0}, v={"x": 1.0})
    vdot = system.dynamics
    lam = bb.sliding(bb.Friction(plane, 3.0, False))(vdot)(system.q, system.v, 0.0).lam
    assert lam[0] < 0.0  # friction turns the tip into the ground: no force that pushes will do
    system = bb.System(rod, [plane], formulation=bb.sliding(bb.Friction(plane, 3.0)))
    system.assemble({"turn": 0.0}, v={"x": 1.0})
    before = system.q, system.v
    with pytest.raises(StepError, match="no normal forces agree with friction at t = 0 s"):
        system.step()
    assert_allclose([system.q, system.v], before, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bb.Contact("c", WORLD, BODY, friction=-1.0), "'c' has friction -1.0"),
        (lambda: bb.Contact("c", WORLD, BODY, restitution=1.5), "'c' has restitution 1.5"),
        (
            lambda: bb.ContactMotion(
                free_body(),
                [bb.LoopJoint("c", bb.JointModel.BALL, WORLD, BODY)],
                [bb.Contact("c", WORLD, BODY)],
            ),
            "a constraint is called 'c' like a contact",
        ),
        (
            lambda: bb.ContactMotion(
                free_body(), [], [bb.Contact("c", WORLD, BODY, radius=0.1)]
            ).step(),
            "'c' begins 0.1 m inside its plane",
        ),
        (
            lambda: bb.ContactMotion(free_body(), [], [], formulation="projector"),
            "contacts bring their own formulation",
        ),
    ],
)
def test_impossible_contacts_are_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()
