"""Constraints with a force limit are rigid while it is not reached, and exert just it when it is.

Forces against statics, trajectories against the same mechanisms without force limits.
"""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pybullet
import pytest
from support.planar import PIN, planar_chain
from support.small_models import four_bar
from test_client import BOX, FLAGS, linkage, tips

import bulletbridge as bb
from bulletbridge.models.loops_file import read_loops

G, DT, MASS = 9.81, 1 / 240, 2.0
CLOSED = 1e-12
TIP = bb.Frame("l2", (0.7, 0, 0))
RESTING = np.array([0, 0, 0, 0, 0, 0, 1.0])


def pin(name="pin", force=None, **given):
    """The loop of a four-bar."""
    return bb.LoopJoint(name, bb.JointModel.BALL, TIP, PIN, max_force=force, **given)


def bar(*constraints, **options):
    """A four-bar of 0.4, 0.9 and 0.7 m at a closed pose, with its loop or loops."""
    mechanism = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4])
    rigid = bb.System(mechanism, [pin()], dt=DT)
    rigid.assemble({"j0": 1.0})
    system = bb.System(
        mechanism, list(constraints), dt=DT, integrator="semi_implicit_euler", **options
    )
    system.set_state(rigid.q, rigid.v)
    return system


def gap(system, *constraints):
    """Largest distance of the points that constraints join [m]."""
    kinematics = system.kinematics()
    return max(
        np.linalg.norm(kinematics.point(c.b).p_W - kinematics.point(c.a).p_W)
        for c in constraints or system.constraints
    )


def hold(name, x=0.0, force=None, model=bb.JointModel.BALL, **given):
    """A constraint of a floating body to the world."""
    ends = bb.Frame("world", (x, 0, 0)), bb.Frame("base", (x, 0, 0))
    return bb.LoopJoint(name, model, *ends, max_force=force, **given)


def load(*constraints, **options):
    """A body of 2 kg."""
    system = bb.System(planar_chain([], [], floating=MASS), list(constraints), dt=DT, **options)
    system.set_state(RESTING)
    return system


def run(system, steps):
    """Bits of all states on the way."""
    found = []
    for _ in range(steps):
        system.step()
        found.append(system.q.tobytes() + system.v.tobytes())
    return found


@pytest.mark.parametrize("force", [9999.0, 1e20])
def test_what_is_never_reached_changes_nothing(force):
    """As many steps of the same loop without a force limit."""
    limited, rigid = bar(pin(force=force)), bar(pin(), limits="always")
    for _ in range(120):
        limited.step()
        rigid.step()
        assert gap(limited) < CLOSED
    assert np.abs(limited.q - rigid.q).max() < 1e-12
    assert np.abs(limited.v - rigid.v).max() < 1e-11
    assert limited.holding == {"pin"}
    assert limited.status.rank == 2


def test_a_load_just_above_what_holds_it_falls_and_one_below_does_not_move():
    weight = MASS * G
    for share, falls in ((1.0 + 1e-6, False), (1.0 - 1e-6, True)):
        system = load(hold("hold", force=share * weight))
        for _ in range(240):
            system.step()
            assert (system.holding == set()) == falls
        force = system.reactions()["hold"].force
        assert np.abs(force - [0, 0, min(share, 1.0) * weight]).max() < 1e-9
        if falls:  # semi-implicit: v = a t, x = a t (t + dt) / 2
            a, t = 1e-6 * G, 240 * DT
            assert system.v[5] == pytest.approx(-a * t, rel=1e-6)
            assert system.q[2] == pytest.approx(-a * t * (t + DT) / 2, rel=1e-6)
        else:
            assert np.abs(system.q - RESTING).max() < CLOSED


def test_what_it_cannot_hold_falls_from_any_height():
    """5 N hold back 2 kg, whatever energy was known of where they were before."""
    for height in (3.0, -2.0):
        ends = bb.Frame("world", (0, 0, height)), bb.Frame("base")
        system = load(bb.LoopJoint("string", bb.JointModel.BALL, *ends, max_force=5.0))
        system.set_state([0, 0, 10.0, 0, 0, 0, 1.0])
        system.rollout(2)  # 10 m away, of another energy
        for _ in range(2):
            system.set_state([0, 0, height, 0, 0, 0, 1.0], np.zeros(6))
            for n in range(4):
                system.step()
                assert system.complementarity.taken == 0.0
                assert system.v[5] == pytest.approx(-(n + 1) * DT * (G - 5.0 / MASS), rel=1e-9)


def test_it_gives_way_under_a_load_and_holds_again_without():
    """A push of 30 N for a tenth of a second; the weight takes 19.62 N of 25."""
    system = load(hold("hold", force=25.0))
    seen = set()
    for n in range(450):
        pushed = 20 <= n < 44
        system.tau = np.array([0, 0, 0, 0, 0, -30.0 if pushed else 0.0])
        system.step()
        force = system.reactions()["hold"].force[2]
        if "hold" in system.holding:
            assert gap(system) < CLOSED
            assert force == pytest.approx(MASS * G, abs=1e-8)
        elif pushed:
            assert force == pytest.approx(25.0, abs=1e-9)
        assert force < 25.0 + 1e-9
        seen.add((pushed, "hold" in system.holding))
    assert seen == {(False, True), (True, False), (False, False)}
    assert system.holding == {"hold"}


def test_of_two_one_gives_way_and_the_other_holds():
    """A rod on a body that a weld holds; a weak point holds the rod's end, but not its weight.

    The weld's force is that of both weights less what the weak point takes.
    """
    mechanism = planar_chain([0.5], [1.0], floating=MASS)
    strong = hold("strong", force=9999.0, model=bb.JointModel.WELD)
    weak = bb.LoopJoint(
        "weak", bb.JointModel.BALL, bb.Frame("world", (0.5, 0, 0)), bb.Frame("l0", (0.5, 0, 0))
    )
    system = bb.System(mechanism, [strong, replace(weak, max_force=1.0)], dt=DT)
    system.set_state(np.array([*RESTING, 0.0]))  # level
    for n in range(60):
        system.step()
        assert gap(system, strong) < CLOSED
        assert system.holding == {"strong"}
        if n == 0:  # inertia m L²/3 about the pivot, weight m g L/2, the weak point's force L
            spin = 3 * (1.0 * G / 2 - 1.0) / (1.0 * 0.5)
            assert np.abs(system.v[6]) == pytest.approx(spin * DT, rel=1e-9)
        assert np.abs(system.reactions()["weak"].force).max() == pytest.approx(1.0, abs=1e-9)
    assert gap(system, weak) > 0.01


def test_constraints_that_share_a_load_hold_it_together():
    """Each alone is too weak; a third of the weight more than both can carry is let fall."""
    weight = MASS * G
    for share, holds in ((0.6, True), (0.49, False)):
        system = load(hold("one", force=share * weight), hold("two", force=share * weight))
        for _ in range(60):
            system.step()
        assert (system.q[2] == pytest.approx(0.0, abs=CLOSED)) == holds
        if holds:
            forces = [system.reactions()[name].force[2] for name in ("one", "two")]
            assert forces == pytest.approx([weight / 2, weight / 2], abs=1e-8)
        else:
            assert system.v[5] == pytest.approx(-0.02 * G * 60 * DT, rel=1e-6)


def test_what_rigid_constraints_carry_is_left_to_them():
    """A weak point beside a rigid one carries nothing, and holds."""
    system = load(hold("rigid"), hold("weak", force=1e-3))
    for _ in range(60):
        system.step()
    assert system.holding == {"weak"}
    assert np.abs(system.q - RESTING).max() < CLOSED


def test_redundant_rows_press_against_nothing():
    """A hinge that is askew by 1e-5 closes a planar loop: five rows where two are needed."""
    skew = (1e-5, 0.0, 0.0)
    ends = bb.Frame("world", PIN.xyz, skew), TIP
    hinge = bb.LoopJoint("pin", bb.JointModel.REVOLUTE, *ends, (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    limited, rigid = bar(replace(hinge, max_force=1e4)), bar(pin(), limits="always")
    for _ in range(240):
        limited.step()
        rigid.step()
    assert limited.holding == {"pin"}
    assert np.abs(limited.q - rigid.q).max() < 1e-9
    force, expected = limited.reactions()["pin"].force, rigid.reactions()["pin"].force
    assert np.abs(force + expected).max() < 1e-6  # frames the other way round


@pytest.mark.parametrize("force", [1e4, 6.0])
def test_saved_and_copied_systems_go_on_with_the_same_bits(force):
    """While it holds, while it has given way, and from one to the other."""
    system = bar(pin(force=force))
    changes = set()
    for _ in range(8):
        run(system, 15)
        kept = system.save()
        others = [copy.deepcopy(system), pickle.loads(pickle.dumps(system))]
        fresh = bar(pin(force=force))
        fresh.restore(pickle.loads(pickle.dumps(kept)))
        changes.add(system.holding)
        expected = run(system, 15)
        for other in (*others, fresh):
            assert run(other, 15) == expected
        system.restore(kept)
        assert run(system, 15) == expected
    assert changes == ({frozenset({"pin"})} if force > 100.0 else {frozenset()})


def test_it_is_pulled_shut_by_a_larger_force_and_holds_again():
    system = load(hold("hold", force=1e3))
    system.step()
    assert system.holding == {"hold"}
    for force in (0.0, 1.0):
        system.set_max_force("hold", force)
        system.step()
        assert system.holding == set()
        assert system.reactions()["hold"].force[2] == pytest.approx(force, abs=1e-12)
    system.set_max_force("hold", 1e3)
    run(system, 120)
    assert system.holding == {"hold"}
    assert gap(system) < CLOSED


def test_constraints_come_and_go_beside_one_that_holds():
    system = load(hold("hold", force=1e3), allow_structure=True)
    run(system, 5)
    system.connect(bb.LoopJoint("weld", bb.JointModel.WELD, *(bb.Frame("world"), bb.Frame("base"))))
    run(system, 5)
    assert np.abs(system.q - RESTING).max() < CLOSED
    system.disconnect("weld")
    run(system, 5)
    assert system.holding == {"hold"} and gap(system) < CLOSED


def test_a_gear_slips_at_its_torque_and_meshes_again():
    """Without erp it holds the rate, and where it is when it stops slipping."""
    mechanism = planar_chain([0.3, 0.3], [1.0, 1.0])
    mechanism = replace(mechanism, gravity=np.zeros(3))
    gear = bb.Coupling("gear", {"j0": 1.0, "j1": 2.0}, max_force=1.0, erp=0.0)
    system = bb.System(mechanism, [gear], dt=DT)
    slipped = 0.0
    for n in range(240):
        system.tau = np.array([20.0, 0.0]) if n < 12 else np.zeros(2)
        system.step()
        ratio = abs(system.q[0] + 2.0 * system.q[1] - slipped)
        if "gear" in system.holding:
            slipped = slipped if ratio < 1e-11 else system.q[0] + 2.0 * system.q[1]
            assert abs(system.v[0] + 2.0 * system.v[1]) < 1e-12
    assert system.holding == {"gear"} and abs(slipped) > 1e-3


@pytest.mark.parametrize("force", [9999.0, 1e20])
def test_bullets_constraints_hold_in_exact_mode(connect, tmp_path, force):
    """The four-bar of the tests with changeConstraint(maxForce=), beside one without."""
    ends = []
    for limit in (None, force):
        client = connect()
        body, made = linkage(client, tmp_path)
        client.setBridgeMode("exact", body)
        client.stepSimulation()
        if limit is not None:
            client.changeConstraint(made, maxForce=limit)
        for _ in range(120):
            client.stepSimulation()
            assert tips(client, body) < CLOSED
        states = [client.getJointState(body, joint)[:2] for joint in range(3)]
        ends.append((np.array(states), np.array(client.getConstraintState(made))))
    assert np.abs(ends[0][0] - ends[1][0]).max() < 1e-11
    assert np.abs(ends[0][1] - ends[1][1]).max() < 1e-8


@pytest.mark.parametrize("by_base", [False, True])
def test_it_follows_what_it_hangs_on_and_holds_there(connect, tmp_path, by_base):
    """A box on a point that is moved by a millimetre a step, by its pivot or with what bears it."""
    path = tmp_path / "box.urdf"
    path.write_text(BOX.format(0))
    client = connect()
    client.setGravity(0, 0, -G)
    box, plate = client.loadURDF(str(path), [0, 0, 1], flags=FLAGS), -1
    if by_base:
        plate = client.createMultiBody(0, basePosition=[0, 0, 1])
    point = pybullet.JOINT_POINT2POINT
    pivot = [0, 0, 0] if by_base else [0, 0, 1]
    made = client.createConstraint(box, -1, plate, -1, point, [0, 0, 0], [0, 0, 0], pivot)
    client.changeConstraint(made, maxForce=1e3)
    client.setBridgeMode("exact", box)
    for n in range(150):
        x = 1e-3 * min(n, 30)
        if 0 < n <= 30 and by_base:
            client.resetBasePositionAndOrientation(plate, [x, 0, 1], [0, 0, 0, 1])
        elif 0 < n <= 30:
            client.changeConstraint(made, [x, 0, 1])
        client.stepSimulation()
    assert (
        np.abs(np.array(client.getBasePositionAndOrientation(box)[0]) - [0.03, 0, 1]).max() < 1e-8
    )
    force = np.array(client.getConstraintState(made))
    assert np.linalg.norm(force) == pytest.approx(1.5 * G, rel=1e-9)


def test_states_are_restored_while_it_holds_and_after_it_gave_way(connect, tmp_path):
    client = connect()
    body, made = linkage(client, tmp_path)
    client.setBridgeMode("exact", body)
    client.stepSimulation()
    for force in (9999.0, 2.0):
        client.changeConstraint(made, maxForce=force)
        for _ in range(20):
            client.stepSimulation()
        assert (tips(client, body) < CLOSED) == (force > 100.0)
        kept, ends = client.saveState(), []
        for _ in range(2):
            client.restoreState(kept)
            for _ in range(20):
                client.stepSimulation()
            ends.append([client.getJointState(body, joint)[:2] for joint in range(3)])
        assert ends[0] == ends[1]
        client.restoreState(kept)


def test_a_start_after_steps_is_that_of_a_new_system(tmp_path):
    """Which rows are redundant was kept from where that was decided, and the rows with it."""
    spec = read_loops(four_bar(tmp_path))
    limited = [replace(loop, max_force=500.0) for loop in spec.constraints]
    spec, states = replace(spec, constraints=tuple(limited)), list[list[bytes]]()
    for before in (0, 230):
        with bb.load(spec) as model:
            system = model.system
            q, v = system.q, system.v
            for _ in range(before):
                system.step()
            system.set_state(q, v, 0.0)
            states.append([])
            for _ in range(30):
                system.step()
                states[-1].append(system.q.tobytes() + system.v.tobytes())
    assert states[0] == states[1]
