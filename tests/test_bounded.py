"""Constraints that give way, motors, limits and friction of loop joints, loads of a step."""

import sys
from dataclasses import replace

import numpy as np
import pybullet
import pybullet_data
import pytest
from planar import four_bar, planar_chain
from pybullet_utils.bullet_client import BulletClient as Native
from test_client import BOX, FLAGS, linkage, tips

import bulletbridge as bb
from bulletbridge import Freedom, Motor
from bulletbridge.errors import LoopFileError, ModelError
from bulletbridge.mechanism.bullet import read_bullet
from bulletbridge.mechanism.layout import TOUCH_COLUMNS
from bulletbridge.numerics.mixed import solve_mixed_problem
from bulletbridge.numerics.mixed_rows import BOUND
from bulletbridge.simulation.bounded_kernel import PUSHED
from bulletbridge.surface.describe import loop_reports
from bulletbridge.surface.drop_in.session import session_of
from bulletbridge.surface.loops_file import read_loops, write_loops
from bulletbridge.surface.models import find
from bulletbridge.surface.native_twins import NoNativeTwinError, require_native_twin

G = 9.81
DT = 1 / 240
TIP, PIN = bb.Frame("l2", (0.7, 0, 0)), bb.Frame("world", (1.0, 0, 0))
Y_UP = (0.0, 1.0, 0.0)


def hinged(dt=DT, **options) -> bb.System:
    """The four-bar of ``planar`` whose last pin is a hinge about the linkage's normal."""
    tip = bb.Frame("l2", (0.7, 0, 0))
    pin = bb.Frame("world", (1.0, 0, 0), (-np.pi / 2, 0, 0))  # z along y, as the joints
    joint = bb.LoopJoint("pin", bb.JointModel.REVOLUTE, pin, tip, **options)
    return bb.System(planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4]), [joint], dt=dt)


def assembled(system: bb.System, angle=1.0) -> bb.System:
    system.assemble({"j0": angle}, guess={"j0": angle, "j1": -1.0, "j2": -1.5})
    return system


def pendulum(**options) -> bb.System:
    """A rod of 1 m and 1 kg that hangs from the world."""
    return bb.System(planar_chain([1.0], [1.0]), **options)


def test_a_constraint_gives_way_at_its_force_and_is_pulled_shut_again():
    """A weight on a string: up to max_force it hangs still, beyond it falls at g - F/m."""
    mechanism = planar_chain([], [], floating=2.0)
    for force, falls in ((25.0, 0.0), (10.0, G - 5.0)):
        hold = bb.LoopJoint(
            "hold",
            bb.JointModel.BALL,
            bb.Frame("world"),
            bb.Frame("base"),
            max_force=force,
        )
        system = bb.System(mechanism, [hold])
        system.set_state(np.array([0, 0, 0, 0, 0, 0, 1.0]))
        for _ in range(10):
            system.step()
        assert system.v[5] == pytest.approx(-falls * 10 * DT, abs=1e-12)
        pull = min(force, 2 * G)
        assert system.reactions()["hold"].force == pytest.approx([0, 0, pull], abs=1e-9)
    system.set_max_force("hold", 1e4)
    gaps = []
    for _ in range(20):
        system.step()
        gaps.append(system.q[2])
    # velocity -erp gap/dt at the end of each step leaves 1 - erp of the gap
    assert np.allclose(np.array(gaps[1:]) / gaps[:-1], 0.8, rtol=1e-9)


def test_the_motor_of_a_loop_joint_holds_by_the_moment_of_virtual_work():
    """At rest, along the one free motion: gravity's work and the motor's add up to nothing."""
    system = assembled(hinged(turn=Freedom(motor=Motor(1e3, velocity_gain=1.0))))
    for _ in range(20):
        system.step()
    assert np.abs(system.v).max() < 1e-13
    terms = system.terms()
    free = np.linalg.svd(terms.J)[2][-1]  # the motion that is left, of rank 2 in five rows
    moment = system.joint_loads["pin"].motor
    turn = free.sum()  # of l2 against the world, about y
    assert moment * turn == pytest.approx(free @ terms.h, rel=1e-9)
    # the reaction on l2 has it too: all moments about y and forces hold l2 and what pulls on it
    assert abs(system.reactions()["pin"].torque[1]) == pytest.approx(abs(moment), rel=1e-9)


def test_a_motor_of_a_loop_joint_turns_it_at_its_rate():
    """The rate is that at the end of the step but for its curvature, an error of order one."""
    errors = []
    for dt in (1 / 240, 1 / 2400):
        system = assembled(hinged(dt=dt, turn=Freedom(motor=Motor(1e4, 0.7))))
        for _ in range(round(0.2 / dt)):
            system.step()
        errors.append(abs(abs(sum(system.v)) - 0.7))
        assert system.evaluate().largest("metres") < 1e-12
    assert errors[0] < 1e-2
    assert errors[1] < 0.15 * errors[0]


def test_limits_of_a_loop_joint_stop_the_linkage():
    """The linkage swings down until the pin's limit; then it rests, held by the limit's moment."""
    free = assembled(hinged(turn=Freedom()))
    free.motors.set("pin", force=1e-9)
    free.step()
    start = free._bounded.positions["g"][0]
    for side in (-1, 1):
        limits = (start - 0.05, np.inf) if side < 0 else (-np.inf, start + 0.05)
        system = assembled(hinged(turn=Freedom(limits=limits)))
        for _ in range(480):
            system.step()
        at = system._bounded.positions["g"][0]
        if abs(at - start) < 0.2:  # this is the side to which it swings
            assert abs(at - start) == pytest.approx(0.05, abs=1e-4)
            assert np.abs(system.v).max() < 1e-3
            break
    else:
        pytest.fail("neither limit stopped it")


@pytest.mark.parametrize("where", ["tree", "loop"])
def test_joint_friction_sticks_below_its_torque_and_slides_above(where):
    """A pendulum at 90 degrees has a moment m g l/2; friction above it holds it, below does not."""
    moment = 1.0 * G * 0.5
    for share in (1.01, 0.5):
        if where == "tree":
            system = pendulum()
            system.motors.set_friction("j0", share * moment)
            q = np.zeros(1)
        else:
            mechanism = planar_chain([], [], floating=1.0)
            bodies = mechanism.bodies.copy()
            bodies[1]["com"] = 0.5, 0, 0
            joint = bb.LoopJoint(
                "j0",
                bb.JointModel.REVOLUTE,
                bb.Frame("world"),
                bb.Frame("base"),
                axis=Y_UP,
                turn=Freedom(friction=share * moment),
            )
            system = bb.System(replace(mechanism, bodies=bodies), [joint])
            q = np.array([0, 0, 0, 0, 0, 0, 1.0])
        system.set_state(q)
        system.step()
        friction = system.joint_loads["j0"].friction
        if share > 1:
            assert np.abs(system.v).max() < 1e-13
            assert abs(friction) == pytest.approx(moment, rel=1e-9)
        else:
            inertia = 1 / 12 + 0.25 if where == "tree" else 1.0 + 0.25
            rate = np.abs(system.v).max() if where == "tree" else abs(system.v[1])
            assert rate == pytest.approx((1 - share) * moment / inertia * DT, rel=1e-9)
            assert abs(friction) == pytest.approx(share * moment, rel=1e-9)


def test_impulses_and_reactions_balance_momentum():
    """M dv = (tau - h) dt + all impulses: motors, friction, limits, pulls and reactions."""
    pull = bb.Distance("string", PIN, bb.Frame("l1", (0.5, 0, 0)), 0.3, max_force=3.0)
    system = assembled(four_bar(extra=[pull]))
    system.motors.set("j0", force=2.0, velocity=3.0)
    system.motors.set_friction("j1", 0.5)
    for _ in range(30):
        q, v, t = system.q, system.v, system.t
        terms = system.terms()
        system.step()
        step = system._bounded
        reactions = system.reactions()
        # pulls, by their own force on b and the opposite on a
        push = np.zeros(3)
        for name, load in system.joint_loads.items():
            push[system.mechanism.joints[name].v] += load.motor + load.friction
        kinematics = bb.Kinematics(system.mechanism, terms.poses, terms.axes, q, v, t)
        for name, (a, b) in {"string": (pull.a, pull.b)}.items():
            force = reactions[name].force
            push += (kinematics.point(b).J - kinematics.point(a).J).T @ force
        lam = reactions["loop"].multipliers
        f = terms.forces - terms.h + push
        vdot = np.linalg.solve(terms.M, f + terms.J.T @ lam)
        assert np.abs(terms.J @ vdot + terms.gamma).max() < 1e-10  # a consistent acceleration
        # what the step gave, before the loops are closed, is the same without their curvature
        gave = (step.impulses[PUSHED, :3] - v) / DT
        left = terms.M @ gave - f
        part = left - terms.J.T @ np.linalg.lstsq(terms.J.T, left, rcond=None)[0]
        assert np.abs(part).max() < 1e-10 * np.abs(terms.M @ gave).max()


@pytest.mark.parametrize("model", ["prismatic", "cylindrical", "screw"])
def test_travel_and_turn_are_counted_and_stopped(model):
    """A nut on a fixed spindle that is driven: it stops at its limit, turns or travel."""
    travel, pitch = model != "screw", 0.5 if model == "screw" else 0.0
    limit = 0.7 if travel else 9.0  # beyond one turn
    freedom = Freedom((-1.0, limit), motor=Motor(5.0, 2.0))
    joint = bb.LoopJoint(
        "nut",
        bb.JointModel(model),
        bb.Frame("world"),
        bb.Frame("base"),
        pitch=pitch,
        **{"travel" if travel else "turn": freedom},
    )
    mechanism = replace(planar_chain([], [], floating=1.0), gravity=np.zeros(3))
    system = bb.System(mechanism, [joint])
    system.set_state(np.array([0, 0, 0, 0, 0, 0, 1.0]))
    name = "nut/travel" if model == "cylindrical" else "nut"
    for _ in range(240 * 6):
        system.step()
    assert np.abs(system.v).max() < 1e-11  # the limit's rounding in one step
    expected = limit if travel else limit * pitch / (2 * np.pi)
    assert system.q[2] == pytest.approx(expected, abs=1e-9)
    load = system.joint_loads[name]
    assert (load.motor, load.limit) == pytest.approx((5.0, -5.0), abs=1e-9)


def test_elliptic_friction_slides_along_the_normal_of_the_ellipse():
    """A block pushed aslant on a plane: the force of friction is mu_k² v_k / |mu v| per load."""
    touch = np.zeros((1, TOUCH_COLUMNS))
    touch[0] = 0, 1, 0, 0, 0, 0, 0, 1, 0, 0.5, 0, 0, 0, 0.2, 1, 0, 0
    mechanism = replace(planar_chain([], [], floating=1.0), gravity=np.array([6.0, 3.0, -10.0]))

    class Plane:
        """A world with one contact below the body's centre."""

        def state(self):
            return np.array([0, 0, 0, 0, 0, 0, 1.0]), np.zeros(6)

        def write(self, q, v):
            pass

        def check(self):
            pass

        def touches(self, q, v):
            touch[0, 2:5], touch[0, 8] = q[:3], q[2]
            return touch

    # about the centre, so that it does not turn
    system = bb.System(mechanism, world=Plane(), contacts=True)
    for _ in range(200):
        system.step()
    (contact,) = system.contacts()
    v = system.v[3:5]
    mu = np.array([0.5, 0.2])
    assert contact.state == "sliding"
    assert contact.normal_force == pytest.approx(10.0, rel=1e-9)
    expected = -10.0 * mu**2 * v / np.linalg.norm(mu * v)
    assert contact.friction[:2] == pytest.approx(expected, rel=1e-9)
    # at the rim of the ellipse
    assert np.linalg.norm(contact.friction[:2] / mu) == pytest.approx(10.0, rel=1e-9)


def test_friction_that_differs_by_direction_is_bullets(connect):
    """A block on the plane with anisotropicFriction, pushed along each axis, sticks and slides."""
    speeds = {}
    for direction in (0, 1):
        client = connect()
        client.setAdditionalSearchPath(pybullet_data.getDataPath())
        client.setGravity(0, 0, -10)
        client.loadURDF("plane.urdf")
        shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.3, 0.3, 0.05])
        block = client.createMultiBody(1.0, shape, basePosition=[0, 0, 0.05])
        client.changeDynamics(
            block, -1, lateralFriction=1.0, anisotropicFriction=[1.0, 0.1, 1.0],
            linearDamping=0, angularDamping=0,
        )  # fmt: skip
        client.changeDynamics(0, -1, lateralFriction=0.5)
        client.setBridgeMode("exact", block)
        push = [2.0 * (direction == 0), 2.0 * (direction == 1), 0]
        for _ in range(120):
            at = client.getBasePositionAndOrientation(block)[0]
            client.applyExternalForce(block, -1, push, at, pybullet.WORLD_FRAME)
            client.stepSimulation()
        speeds[direction] = client.getBaseVelocity(block)[0][direction]
    assert abs(speeds[0]) < 1e-6  # 2 N against 5 N
    assert speeds[1] == pytest.approx((2.0 - 0.5) * 0.5, rel=1e-6)  # against 0.5 N


def box_pulled(client, path, kind, force, two, erp):
    """A box, off its pivot by a little, at a constraint with a force limit."""
    client.setGravity(0.3, -1, -9.81)
    client.setPhysicsEngineParameter(
        numSolverIterations=2000, solverResidualThreshold=0, erp=erp
    )  # fmt: skip
    box = client.loadURDF(str(path), [0, 0, 1], flags=FLAGS)
    turn = client.getDynamicsInfo(box, -1)[4]
    other, pivot = -1, [0.1, 0.002, 1.05]
    if two:
        other, pivot = client.loadURDF(str(path), [0.5, 0, 1], flags=FLAGS), [-0.3, 0.002, 0.05]
        turn = [0, 0, 0, 1]
    for body in {box, other} - {-1}:
        client.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
    axis = [0, 0.3, 1] if kind == pybullet.JOINT_PRISMATIC else [0, 0, 0]
    made = client.createConstraint(
        box, -1, other, -1, kind, axis, [0.1, 0, 0.05], pivot, [0, 0, 0, 1], turn
    )
    client.changeConstraint(made, maxForce=force)
    return box, made


KINDS = {"point": pybullet.JOINT_POINT2POINT, "fixed": pybullet.JOINT_FIXED, "slider": 1}


@pytest.mark.parametrize("erp", [0.2, 0.5])
@pytest.mark.parametrize("force", [0.3, 9.0, 1e3])
@pytest.mark.parametrize(
    ("kind", "two"), [("point", False), ("point", True), ("fixed", False), ("slider", False)]
)
def test_constraints_give_way_as_bullets_do(connect, tmp_path, kind, two, force, erp):
    """Saturated and not, against converged native, step by step."""
    path = tmp_path / "box.urdf"
    path.write_text(BOX.format(0))
    ours, native = connect(), connect(Native)
    runs = [
        (client, *box_pulled(client, path, KINDS[kind], force, two, erp))
        for client in (ours, native)
    ]
    ours.setBridgeMode("exact")
    for _ in range(30):
        states = []
        for client, box, made in runs:
            client.stepSimulation()
            velocity = np.ravel(client.getBaseVelocity(box))
            states.append((velocity, np.array(client.getConstraintState(made))))
        (velocity, force_on), (expected, expected_force) = states
        assert np.abs(velocity - expected).max() < 1e-9
        if kind != "slider":  # whose rows Bullet has in another order
            assert np.abs(force_on - expected_force).max() < 1e-6


def test_a_force_limit_may_come_go_and_change(connect, tmp_path):
    """The four-bar's loop gives way when it gets a limit, and is pulled shut by a larger one."""
    client = connect()
    body, made = linkage(client, tmp_path)
    client.setBridgeMode("exact", body)
    client.stepSimulation()
    assert tips(client, body) < 1e-12
    client.changeConstraint(made, maxForce=0.5)
    for _ in range(20):
        client.stepSimulation()
    assert tips(client, body) > 1e-3
    client.changeConstraint(made, maxForce=1e5)
    for _ in range(200):
        client.stepSimulation()
    assert tips(client, body) < 1e-3
    assert len(client.getConstraintState(made)) == 3


def test_a_block_rests_on_forces_that_carry_its_weight(connect):
    """Normal forces sum to the weight, and are those of Bullet's own contacts."""
    total = []
    for kind in (None, Native):
        client = connect(kind)
        client.setAdditionalSearchPath(pybullet_data.getDataPath())
        client.setGravity(0, 0, -10)
        client.loadURDF("plane.urdf")
        shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.3, 0.2, 0.05])
        box = client.createMultiBody(3.0, shape, basePosition=[0, 0, 0.05])
        if kind is None:
            client.setBridgeMode("exact", box)
        for _ in range(240):
            client.stepSimulation()
        if kind is None:
            (group,) = session_of(client._client).groups.values()
            contacts = group.system.contacts()
            total.append(sum(c.normal_force for c in contacts))
            assert all(c.state == "sticking" for c in contacts if c.normal_force > 0)
        else:
            total.append(sum(c[9] for c in client.getContactPoints(box)))
    assert total[0] == pytest.approx(30.0, rel=1e-9)
    assert total[1] == pytest.approx(30.0, rel=1e-3)


def test_minitaur_lands_and_stands_on_forces_that_balance_its_momentum(connect):
    """In every step: the change of linear momentum is that of weight and contacts, to round-off.

    Loops, motors and limits are internal and must not appear. Standing, the load is the weight.
    """
    client = connect(Native)
    client.loadURDF(f"{pybullet_data.getDataPath()}/plane.urdf")
    spec = read_loops(find("minitaur"))
    start = spec.start_q | {"base": [0, 0, 0.2, 0, 0, 0, 1.0]}
    spec = replace(spec, gravity=(0, 0, -10.0), start_q=start, start_v={}, forces=())
    system = bb.load(spec, client._client, dt=DT, contacts=True).system
    for leg in ("front_left", "back_left", "front_right", "back_right"):
        side = -1 if "left" in leg else 1
        for end in "LR":
            name = f"motor_{leg}{end}_joint"
            angle = side * np.pi / 2
            system.motors.set(name, force=3.5, position=angle, position_gain=1.0)
    mass = float(system.mechanism.bodies["mass"].sum())
    base = system.mechanism.joints["base"].v
    linear = slice(base.start + 3, base.stop)
    touched = 0
    loads = []
    for _ in range(600):
        terms = system.terms()
        before = system.v
        system.step()
        gave = (system._bounded.impulses[PUSHED, : len(before)] - before) / DT
        load = sum((contact.force for contact in system.contacts()), np.zeros(3))
        touched += bool(load[2] > 0)
        loads.append(load[2])
        left = terms.M[linear] @ gave + terms.h[linear] - load
        assert np.abs(left).max() < 1e-9 * mass * max(1.0, np.abs(gave).max())
    assert 500 < touched < 600  # it has fallen, landed and stood
    assert np.mean(loads[-120:]) == pytest.approx(10.0 * mass, rel=1e-3)  # it still sways a little
    # at rest motors hold what the loops pass on: consistent accelerations vanish
    reactions = system.reactions()
    lam = np.concatenate([reactions[name].multipliers for name in system.encoded.rows])
    assert np.isfinite(lam).all()
    assert np.abs(lam).max() > 1.0


def random_problem(rng, contacts, boxes, nv):
    """Contacts with elliptic friction, spinning resistance, and motors, of unit masses."""
    rows = 4 * contacts + boxes
    C = rng.normal(size=(rows, nv))
    bounds = np.zeros(rows, BOUND)
    for i in range(0, 4 * contacts, 4):
        bounds[i] = 0, np.inf, -1, 1, 1, 0
        bounds[i + 1] = 0, 0, i, 1, 2, rng.uniform(0.1, 0.8)
        bounds[i + 2] = 0, 0, i, 0, 2, rng.uniform(0.1, 0.8)
        bounds[i + 3] = 0, 0, i, 1, 1, 0.05
    bounds[4 * contacts :] = -0.3, 0.3, -1, 1, 1, 0
    return C @ C.T, C @ rng.normal(size=nv), bounds


@pytest.mark.parametrize("seed", range(6))
def test_the_compiled_solver_agrees_with_a_cone_solver(seed):
    pytest.importorskip("clarabel")
    from bulletbridge.numerics.mixed_reference import ReferenceSolver

    rng = np.random.default_rng(seed)
    contacts, boxes = seed % 4, 4 * (seed % 3 == 0)
    D, b, bounds = random_problem(rng, contacts, boxes, 30)
    n = len(b)
    if n == 0:
        return
    x, w = np.zeros(n), np.zeros(n)
    residual, *_ = solve_mixed_problem(
        D, b, bounds, x, w, np.zeros((n, n)), np.zeros((4, n)), 1e-13
    )
    found, left = ReferenceSolver()(D, b, bounds)
    assert residual < 1e-11
    assert left < 1e-7
    assert np.abs(x - found).max() < 1e-8


def test_a_step_by_the_cone_solver_is_the_compiled_one():
    pytest.importorskip("clarabel")
    runs = []
    for solver in ("compiled", "clarabel"):
        pull = bb.Distance("string", PIN, bb.Frame("l1", (0.5, 0, 0)), 0.3, max_force=3.0)
        system = assembled(four_bar(extra=[pull], bounded_solver=solver))
        system.motors.set("j0", force=2.0, velocity=3.0)
        system.motors.set_friction("j1", 0.5)
        for _ in range(20):
            system.step()
        runs.append(np.concatenate([system.q, system.v]))
        assert system.complementarity.residual < 1e-9
    assert np.abs(runs[0] - runs[1]).max() < 1e-8


def test_without_the_cone_solver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(ModelError, match=r"pip install 'bulletbridge\[conic\]'"):
        four_bar(bounded_solver="clarabel")
    with pytest.raises(ModelError, match="unknown bounded_solver 'exact'; there are compiled"):
        four_bar(bounded_solver="exact")


def test_what_the_cone_solver_raises_undoes_the_step(monkeypatch):
    pytest.importorskip("clarabel")
    system = assembled(four_bar(bounded_solver="clarabel"))
    system.motors.set("j0", force=2.0, velocity=3.0)
    system.step()
    before = system.q, system.v

    class Broken(Exception):
        pass

    def fail(*_):
        raise Broken

    monkeypatch.setattr(system._bounded, "_reference", fail)
    with pytest.raises(Broken):
        system.step()
    assert np.array_equal(before, (system.q, system.v))
    monkeypatch.undo()
    system.step()


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
        (lambda m: m.set("j0", force=1.0, fastest=0.0), "motor of 'j0'"),
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
        (dict(turn=Freedom(limits=(1.0, -1.0))), "limits of 'pin' are 1.0 and -1.0"),
        (dict(turn=Freedom(limits=(NAN, 1.0))), "limits of 'pin'"),
        (dict(turn=Freedom(friction=-1.0)), "friction of 'pin' is -1.0"),
        (dict(turn=Freedom(motor=Motor(-1.0))), "motor of 'pin'"),
        (dict(travel=Freedom()), "is revolute and has no free travel; it has turn"),
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
    match = "leave integrator, formulation and velocity_filter out"
    string = bb.Distance("string", PIN, bb.Frame("l1"), 0.3, max_force=3.0)
    for wanted in ({"limits": True}, {"extra": [string]}):
        with pytest.raises(ModelError, match=match):
            four_bar(**wanted, **options)
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
    assert pin.turn == Freedom((-0.3, 0.5), 0.1, Motor(2.0, 1.0))
    assert pin.travel == Freedom(friction=0.2)
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
        ("    max_force: 20\n", "", "erp: closes nothing that does not give way"),
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
