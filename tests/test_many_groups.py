"""Groups of one client, closed in one compiled call, beside each of them alone."""

from pathlib import Path

import numpy as np
import pybullet
import pytest

import bulletbridge as bb
from bulletbridge.bullet.state import LOOKS
from bulletbridge.errors import AssemblyError, BulletBridgeWarning

FOUR_BAR = Path(__file__).parent.parent / "urdf" / "four_bar.urdf"
CONTRADICTION = 0.3  # [m] between two places where one point is to be


def pendulums(lengths, broken=()):
    """States after 50 steps of boxes on pins to the world; broken ones on two that differ."""
    p = bb.BulletClient(pybullet.DIRECT)
    p.setGravity(0, 0, -9.81)
    bodies = []
    for k, length in lengths:
        bodies.append(p.createMultiBody(1.0, -1, -1, (length, 3.0 * k, 0)))
        p.changeDynamics(bodies[-1], -1, localInertiaDiagonal=(0.1, 0.2, 0.3))
        pins = [(0, 3.0 * k, 0)]
        if k in broken:
            pins.append((CONTRADICTION, 3.0 * k, 0))
        for pin in pins:
            kind, pivot = pybullet.JOINT_POINT2POINT, (-length, 0, 0)
            p.createConstraint(bodies[-1], -1, -1, -1, kind, (0, 0, 0), pivot, pin)
    for _ in range(50):
        p.stepSimulation()
    found = [(p.getBasePositionAndOrientation(b), p.getBaseVelocity(b)) for b in bodies]
    p.disconnect()
    return found


def test_groups_take_the_same_steps_together_and_alone():
    lengths = list(enumerate((0.5, 0.7, 1.1)))
    together = pendulums(lengths)
    assert together == [pendulums([one])[0] for one in lengths]


def test_a_group_that_cannot_be_closed_leaves_the_others_alone():
    """The second one hangs on two pins that contradict each other; Bullet's state stays there."""
    lengths = list(enumerate((0.5, 0.7, 1.1)))
    with pytest.warns(BulletBridgeWarning, match="Bullet's own state stays"):
        found = pendulums(lengths, broken={1})
    alone = pendulums(lengths)
    assert (found[0], found[2]) == (alone[0], alone[2])
    assert found[1] != alone[1]
    for ((position, _), _), (k, length) in zip(found[::2], lengths[::2], strict=True):
        # of a box at its length from the pin, whatever way it hangs: round-off of these numbers
        away = np.linalg.norm(np.subtract(position, (0, 3.0 * k, 0)))
        assert away == pytest.approx(length, abs=1e-12)


def test_exact_mode_says_what_a_program_can_do_about_constraints_that_cannot_close():
    p = bb.BulletClient(pybullet.DIRECT, mode="exact")
    ball = p.createMultiBody(1.0, p.createCollisionShape(p.GEOM_SPHERE, radius=0.1))
    for x in (0.0, 0.5):
        p.createConstraint(ball, -1, -1, -1, p.JOINT_POINT2POINT, (0, 0, 0), (0, 0, 0), (x, 0, 0))
    before = p.getBasePositionAndOrientation(ball)
    with pytest.raises(AssemblyError, match=r"^exact mode of .*'constraint \d' cannot .*; put"):
        p.stepSimulation()
    assert p.getBasePositionAndOrientation(ball) == before
    p.disconnect()


def four_bars(count):
    """A client with four-bars side by side on fixed bases, let go; its bodies and constraints."""
    p = bb.BulletClient(pybullet.DIRECT)
    p.setGravity(0, 0, -9.81)
    bodies, pins = list[int](), list[int]()
    for place in range(count):
        body = p.loadURDF(str(FOUR_BAR), [0, 2.0 * place, 0], useFixedBase=True)
        for joint in range(3):
            p.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
        p.resetJointState(body, 0, 0.5 + 0.2 * place)
        com = p.getDynamicsInfo(body, 2)[3][0]
        kind, end = pybullet.JOINT_POINT2POINT, [0.7 - com, 0, 0]
        place_of_pin = [1, 2.0 * place, 0]
        pins.append(p.createConstraint(body, 2, -1, -1, kind, [0] * 3, end, place_of_pin))
        bodies.append(body)
    return p, bodies, pins


def test_forces_and_states_do_not_depend_on_who_asked_for_forces_before():
    """Groups that nobody asks anything of are read and written without a look at them."""
    told = []
    for asks in (False, True):
        p, bodies, pins = four_bars(3)
        for k in range(40):
            p.stepSimulation()
            if asks:
                p.getConstraintState(pins[k % 3])
            if k == 20:
                p.resetJointState(bodies[1], 0, 0.9, 0.5)
            if k == 30:
                p.changeConstraint(pins[2], [1.0, 4.0, 0.001])
        told.append([p.getConstraintState(pin) for pin in pins])
        told[-1] += [p.getJointStates(body, range(3)) for body in bodies]
        p.disconnect()
    assert told[0] == told[1]


def test_a_group_that_fails_later_leaves_the_others_alone():
    """A joint that is no number from the 30th step on, past our client."""
    states = []
    for broken in (False, True):
        p, bodies, _ = four_bars(3)
        for k in range(40):
            if k == 30 and broken:
                with pytest.warns(BulletBridgeWarning, match="resetJointState of PyBullet's own"):
                    pybullet.resetJointState(bodies[1], 0, np.nan, physicsClientId=p._client)
                with pytest.warns(BulletBridgeWarning, match="not a number"):
                    p.stepSimulation()
            else:
                p.stepSimulation()
        states.append([p.getJointStates(body, range(3)) for body in (bodies[0], bodies[2])])
        p.disconnect()
    assert states[0] == states[1]


def test_masses_that_are_changed_past_the_client_are_told_now_and_then():
    p, bodies, _ = four_bars(2)
    for _ in range(3):
        p.stepSimulation()
    with pytest.warns(BulletBridgeWarning, match="changeDynamics of PyBullet's own module"):
        pybullet.changeDynamics(bodies[1], 1, mass=3.0, physicsClientId=p._client)
    with pytest.warns(BulletBridgeWarning, match="had mass .* when it was read and has 3.0"):
        for _ in range(LOOKS):
            p.stepSimulation()
    p.disconnect()


def leg(p, side):
    """Half of a five-bar that hangs on a floating base; its id."""
    bars = {"linkMasses": [0.2] * 2, "linkPositions": [(0, 0, 0), (0, 0, -0.3)]}
    bars |= {"linkInertialFramePositions": [(0, 0, -0.15)] * 2, "linkParentIndices": [0, 1]}
    for turned in ("linkOrientations", "linkInertialFrameOrientations"):
        bars[turned] = [(0, 0, 0, 1)] * 2
    for shapes in ("linkCollisionShapeIndices", "linkVisualShapeIndices"):
        bars[shapes] = [-1] * 2
    bars |= {"linkJointTypes": [pybullet.JOINT_REVOLUTE] * 2, "linkJointAxis": [(0, 1, 0)] * 2}
    body = p.createMultiBody(0.2, -1, -1, (0.1 * side, 0, 1), **bars)
    for link in (-1, 0, 1):
        p.changeDynamics(body, link, localInertiaDiagonal=[2e-3] * 3)
    for joint, angle in enumerate((-0.6 * side, 1.0 * side)):
        p.resetJointState(body, joint, angle)
        p.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
    return body


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_what_leaves_a_plane_does_not_become_subnormal(mode):
    """A five-bar on a slide falls in a plane; processors take long with subnormal numbers."""
    p = bb.BulletClient(pybullet.DIRECT, mode=mode)
    p.setGravity(0, 0, -9.81)
    bodies = left, right = leg(p, -1), leg(p, 1)
    still, end = [0] * 3, [0, 0, -0.15]
    p.createConstraint(left, -1, right, -1, p.JOINT_FIXED, still, [0.1, 0, 0], [-0.1, 0, 0])
    p.createConstraint(left, 1, right, 1, p.JOINT_POINT2POINT, still, end, end)
    p.createConstraint(left, -1, -1, -1, p.JOINT_PRISMATIC, [0, 0, 1], still, [-0.1, 0, 1])
    for step in range(100):
        for body, side in zip(bodies, (-1, 1), strict=True):
            angle, rate, *_ = p.getJointState(body, 0)
            force = 20 * (-side * (0.6 + 0.2 * np.sin(0.03 * step)) - angle) - 0.5 * rate
            p.setJointMotorControl2(body, 0, pybullet.TORQUE_CONTROL, force=force)
        p.stepSimulation()
        told = [
            (*p.getBasePositionAndOrientation(body), *p.getBaseVelocity(body)) for body in bodies
        ]
        sizes = np.abs(np.concatenate([part for body in told for part in body]))
        assert not np.any((sizes > 0.0) & (sizes < np.finfo(float).tiny))
    p.disconnect()


def states_in(modes):
    """States of four-bars side by side, each in its mode, of which one is asked now and then."""
    p, bodies, pins = four_bars(len(modes))
    for body, mode in zip(bodies, modes, strict=True):
        p.setBridgeMode(mode, body)
    for step in range(40):
        p.stepSimulation()
        if step % 3 == 0:
            p.getConstraintState(pins[step % len(pins)])
    found = [p.getJointStates(body, range(3)) for body in bodies]
    p.disconnect()
    return [[state[:2] for state in states] for states in found]


def test_groups_of_both_modes_take_the_same_steps_together_and_alone():
    """Who has no more to do than to be read and written is so with others of its mode alone."""
    modes = ("filter", "exact", "filter", "exact", "filter")
    together = states_in(modes)
    for mode in ("filter", "exact"):
        alike = states_in((mode,) * len(modes))
        assert [together[k] == alike[k] for k in range(len(modes)) if modes[k] == mode] == [
            True
        ] * modes.count(mode)
