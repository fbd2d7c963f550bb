"""Contacts of bodies tied to one another, by elimination of links: as with D formed."""

# by what a step was made is not for users
# pyright: reportPrivateUsage=false

import numpy as np
import pybullet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_filter import Given

import bulletbridge as bb
from bulletbridge.compilation import mode
from bulletbridge.errors import ModelError
from bulletbridge.inequalities import stepper
from bulletbridge.inequalities.arrays import BY_LINKS
from bulletbridge.inequalities.steps_kernel import step_with_contacts
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.records import STICKING_POINT

RADIUS, LINK, DT = 0.03, 0.1, 1 / 240
ROLLS = 0.006
"""Most that resists rolling and spinning [m]: what both bodies of a contact have."""
SAME = 1e-9
"""Difference of velocities [m/s, rad/s] per unit of them; both solve to 1e-12 of what rows sum, and
where impulses depend on each other these are known to a hundred-thousandth."""


def assert_as_near_as_solved(one, other):
    """Velocities differ by what both have left of their rows times what they push with, no more.

    Impulses x and y of a problem of D differ by a motion d with d^T M d = (x - y)^T D (x - y).
    Where rows that give way stand beside rigid ones, x - y may be all of what is pushed with, and
    of D (x - y) each has left its residual. Where faces share a load otherwise, Coulomb's law may
    have several solutions: friction f against slip s makes f.s = -mu n |s|, and of others at most
    that of their own load, so that a contact adds mu (n - m) (|s'| - |s|) for loads n, m.
    """
    d, terms = one.v - other.v, one._active.solver.terms(one.q, one.v, one.t)
    round_off = np.finfo(float).eps * max(1.0, np.abs(other.v).max())
    left = sum(each.complementarity.residual + round_off for each in (one, other))
    pushed = sum(DT * np.abs(c.force).sum() for each in (one, other) for c in each.contacts())
    moved, most = d @ terms.M @ d, left * pushed
    if moved > most:  # no mu is above 1
        for x, y in zip(one.contacts(), other.contacts(), strict=True):
            most += DT * abs(x.normal_force - y.normal_force) * slip_of(one, x, d)
    assert moved <= most


def slip_of(system, contact, v):
    """Rate at which bodies that move by v slide over and roll on each other, in m/s at most."""
    slip, turn = np.zeros(3), np.zeros(3)
    for link, sign in ((contact.a, -1.0), (contact.b, 1.0)):
        if link == "world":
            continue
        R, p = system.link_pose(link)
        at = bb.Frame(link, xyz=R.T @ (contact.point - p))
        for k, way in enumerate(np.eye(3)):
            slip[k] += sign * system.wrench(at, way) @ v
            turn[k] += sign * system.wrench(at, np.zeros(3), way) @ v
    return np.linalg.norm(slip) + ROLLS * np.linalg.norm(turn)


class Tied:
    """Balls or boxes on a plane, joined as a rope or as a net, from one drawn start."""

    def __init__(self, seed, count, kind, *, compliant=False):
        self.compliant = compliant
        self.rng = np.random.default_rng(seed)
        self.client = pybullet.connect(pybullet.DIRECT)
        self.names, self.joints = {}, []
        pybullet.setGravity(0, 0, -9.81, physicsClientId=self.client)
        self.body(0.0, pybullet.GEOM_PLANE, [0, 0, 0])
        self.friction = float(self.rng.choice([0.2, 0.5, 1.0]))
        self.straight = kind == "straight"
        self.pushed = self.rng.normal(size=3) * [1.0, 1.0, 0.3] * (not self.straight)
        self.height = RADIUS + 0.002 + self.rng.uniform(0.0, 0.02)
        if kind == "net":
            self.tie_net(count)
        elif kind == "sprung":
            self.tie_rope(count, pybullet.GEOM_SPHERE)
            ends = [(bb.Frame(joint.a.link), bb.Frame(joint.b.link)) for joint in self.joints]
            self.joints = [bb.Spring(f"s{n}", *ab, 40.0, 1.0, 0.08) for n, ab in enumerate(ends)]
        elif kind == "tower":
            self.pile_up(count)
        else:
            self.tie_rope(count, pybullet.GEOM_BOX if kind == "boxes" else pybullet.GEOM_SPHERE)

    def body(self, mass, shape, place, yaw=0.0):
        """One body; with resistance to rolling and spinning now and then."""
        world = {"physicsClientId": self.client}
        sizes = {"radius": RADIUS, "halfExtents": [0.03, 0.025, RADIUS]}
        kept = {pybullet.GEOM_SPHERE: "radius", pybullet.GEOM_BOX: "halfExtents"}
        size = {kept[shape]: sizes[kept[shape]]} if shape in kept else {}
        made = pybullet.createMultiBody(
            mass,
            pybullet.createCollisionShape(shape, **size, **world),
            basePosition=place,
            baseOrientation=pybullet.getQuaternionFromEuler([0, 0, yaw]),
            **world,
        )
        if mass:
            resists = self.rng.random() < 0.3
            pybullet.changeDynamics(
                made,
                -1,
                lateralFriction=self.friction,
                rollingFriction=0.002 * resists,
                spinningFriction=0.003 * resists,
                **world,
            )
            if self.compliant and self.rng.random() < 0.6:  # others are rigid on rigid ones
                k, d = self.rng.choice([300.0, 1e4]), self.rng.choice([0.5, 30.0])
                pybullet.changeDynamics(made, -1, contactStiffness=k, contactDamping=d, **world)
            pybullet.resetBaseVelocity(made, self.pushed.tolist(), [0, 0, 0], **world)
            self.names[f"b{len(self.names)}"] = made
        return made

    def join(self, a, b, at_a, at_b):
        """A point joint between the numbered bodies."""
        ends = bb.Frame(f"b{a}/link0", at_a), bb.Frame(f"b{b}/link0", at_b)
        self.joints.append(bb.LoopJoint(f"p{len(self.joints)}", bb.JointModel.BALL, *ends))

    def tie_rope(self, count, shape):
        """Bodies one after the other, in a crooked line."""
        place, yaw = np.array([0.0, 0.0, self.height]), 0.0
        for n in range(count):
            yaw += self.rng.normal() * 0.5 * (not self.straight)
            half = LINK / 2 * np.array([np.cos(yaw), np.sin(yaw), 0.0])
            self.body(self.rng.uniform(0.03, 0.1), shape, (place + half).tolist(), yaw)
            place += 2 * half
            if n:
                self.join(n - 1, n, (LINK / 2, 0, 0), (-LINK / 2, 0, 0))

    def tie_net(self, side):
        """Balls in a square."""
        for n in range(side * side):
            i, j = divmod(n, side)
            mass = self.rng.uniform(0.03, 0.1)
            self.body(mass, pybullet.GEOM_SPHERE, [i * LINK, j * LINK, self.height])
            if i:
                self.join(n - side, n, (LINK / 2, 0, 0), (-LINK / 2, 0, 0))
            if j:
                self.join(n - 1, n, (0, LINK / 2, 0), (0, -LINK / 2, 0))

    def pile_up(self, count):
        """Boxes on one another, none quite straight."""
        for n in range(count):
            place = [*self.rng.uniform(-0.01, 0.01, 2), RADIUS + n * (2 * RADIUS + 0.001)]
            self.body(self.rng.uniform(0.03, 0.1), pybullet.GEOM_BOX, place, self.rng.normal())

    def system(self, solver):
        """All of it, closed."""
        contacts = "compliant" if self.compliant else True
        system = bb.attach(self.names, self.joints, self.client, contacts=contacts, solver=solver)
        system.assemble()
        return system


@settings(max_examples=6, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([("rope", 9), ("boxes", 4), ("net", 3), ("sprung", 6)]),
)
def test_steps_are_those_with_the_operator_formed(seed, drawn):
    """Falling, sliding, rolling and at rest, from where the steps by links have led."""
    kind, count = drawn
    tied = [Tied(seed, count, kind) for _ in range(2)]
    one, other = tied[0].system("sparse"), tied[1].system("dense")
    touched = 0
    for _ in range(40):
        other._active.solver.put(one.q, one.v, one.t)
        one.step()
        other.step()
        fast = max(1.0, np.abs(other.v).max())
        assert np.abs(one.v - other.v).max() < SAME * fast
        assert one.evaluate().largest("kept_metres") < 1e-12
        touched += one.complementarity.rows > 0
    for each in tied:
        pybullet.disconnect(each.client)
    assert touched > 5


@pytest.mark.skipif(not mode.LINKED, reason="Python makes the calls")
def test_what_calls_either_way_is_compiled_once():
    """Two seconds of compilation for each way more, if it were by how many arrays that has."""
    for way in ("sparse", "dense"):
        tied = Tied(1, 2, "rope")
        tied.system(way).step()
        pybullet.disconnect(tied.client)
    ways = {signature[0] for signature in step_with_contacts.signatures}
    assert len(ways) == 1


def test_a_long_rope_comes_to_rest_by_links():
    """The last steps without the operator; the plane carries what the rope weighs."""
    tied = Tied(1, 40, "straight")
    system, weight = tied.system("auto"), 0.0
    for body in tied.names.values():
        weight += 9.81 * pybullet.getDynamicsInfo(body, -1, physicsClientId=tied.client)[0]
    for _ in range(30):
        system.step()
    before = system.status.handed_over
    for _ in range(5):
        system.step()
    pybullet.disconnect(tied.client)
    assert system.status.handed_over == before and system.complementarity.residual < 1e-10
    carried = sum(contact.force for contact in system.contacts())
    assert np.abs(carried - [0, 0, weight]).max() < 1e-6 * weight


def test_a_rope_on_springs_sinks_by_its_weight():
    """Each ball alone on its contact, m g/k deep: all have the same k/m and d/m, and sink alike.

    Oscillations fall by exp(-t d/2m), t d/2m = 100.
    """
    tied = Tied(1, 12, "straight", compliant=True)
    for body in tied.names.values():
        world = {"physicsClientId": tied.client}
        mass = pybullet.getDynamicsInfo(body, -1, **world)[0]
        spring = {"contactStiffness": 9.81 * mass / 1e-3, "contactDamping": 100.0 * mass - 0.1}
        pybullet.changeDynamics(body, -1, **spring, **world)
    system = tied.system("sparse")
    for _ in range(480):
        system.step()
    pybullet.disconnect(tied.client)
    assert system.complementarity.residual < 1e-12 and system.complementarity.taken == 0.0
    for contact in system.contacts():
        assert contact.gap == pytest.approx(-1e-3, abs=1e-10)


@pytest.mark.parametrize(("seed", "compliant"), [(2, False), (2, True), (10, True)])
def test_boxes_that_have_met_are_solved_for_by_links(monkeypatch, seed, compliant):
    """As with the operator formed; from a start or a saved state again with the same bits."""
    monkeypatch.setattr(stepper, "PLANNED_FOR", 0)  # plan at once
    tied = [Tied(seed, 5, "tower", compliant=compliant) for _ in range(2)]
    one, other = tied[0].system("sparse"), tied[1].system("dense")
    start, states = (one.q.copy(), one.v.copy()), []
    mass = float(one.mechanism.bodies["mass"].sum())
    for n in range(60):
        other._active.solver.put(one.q, one.v, one.t)
        had = one.evaluate().momentum[3:]
        one.step()
        other.step()
        # also in the step after which it was planned anew, contacts tell what they have done
        carried = sum(each.force for each in one.contacts() if each.a == "world")
        gained = (one.evaluate().momentum[3:] - had) / DT + [0.0, 0.0, 9.81 * mass]
        assert np.abs(carried - gained).max() < SAME * max(1.0, np.abs(gained).max()) / DT
        if compliant:
            assert_as_near_as_solved(one, other)
        else:
            assert np.abs(one.v - other.v).max() < SAME * max(1.0, np.abs(other.v).max())
        if n == 40:
            saved, before = one.save(), one.status.handed_over
        states.append(np.concatenate([one.q, one.v]))
    assert one.status.handed_over == before and one.complementarity.rows > 40
    one.restore(saved)
    for then in states[41:]:
        one.step()
        assert np.array_equal(np.concatenate([one.q, one.v]), then)
    runs = []
    for _ in range(2):  # who collides with whom is known by now
        one.set_state(*start)
        for _ in range(20):
            one.step()
        runs.append(np.concatenate([one.q, one.v]))
    assert np.array_equal(*runs)
    for each in tied:
        pybullet.disconnect(each.client)


def test_small_nets_leave_links_where_they_touch():
    """As with the operator formed from the second such step on; alike from a saved state, and
    however many steps are asked for at once."""
    tied = [Tied(5, 4, "net") for _ in range(2)]
    one, other = tied[0].system("auto"), tied[1].system("dense")
    one.step()
    while one.complementarity.rows == 0:
        assert one._inequalities._stepper.report[BY_LINKS] and one.t < 1.0
        one.step()
    before, saved = one.status.handed_over, one.save()
    states = []
    for _ in range(10):
        other._active.solver.put(one.q, one.v, one.t)
        one.step()
        other.step()
        assert np.abs(one.v - other.v).max() < SAME * max(1.0, np.abs(other.v).max())
        states.append(np.concatenate([one.q, one.v]))
    assert one.status.handed_over == before and one.complementarity.rows > 0
    assert not one._inequalities._stepper.report[BY_LINKS]
    one.restore(saved)
    for then in states:
        one.step()
        assert np.array_equal(np.concatenate([one.q, one.v]), then)
    one.restore(saved)
    one.rollout(10)
    assert np.array_equal(np.concatenate([one.q, one.v]), states[-1])
    for each in tied:
        pybullet.disconnect(each.client)


def net_of_plates(side):
    """Plates in a square, joined by points, that fall onto a ball."""
    client, pitch = pybullet.connect(pybullet.DIRECT), 0.05
    world, names, joints = {"physicsClientId": client}, {}, []
    pybullet.setGravity(0, 0, -9.81, **world)
    ball = pybullet.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.15, **world)
    pybullet.createMultiBody(0.0, ball, basePosition=[0, 0, 0.15], **world)
    half = [0.02, 0.02, 0.005]
    plate = pybullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=half, **world)
    for k in range(side * side):
        i, j = divmod(k, side)
        middle = (side - 1) / 2
        place = [(i - middle) * pitch + 0.003, (j - middle) * pitch + 0.001, 0.32]
        names[f"b{k}"] = pybullet.createMultiBody(0.02, plate, basePosition=place, **world)
        for other, way in ((k - side, np.eye(3)[0]), (k - 1, np.eye(3)[1])):
            if (i if way[0] else j) == 0:
                continue
            at = 0.5 * pitch * way
            ends = bb.Frame(f"b{other}/link0", at), bb.Frame(f"b{k}/link0", -at)
            joints.append(bb.LoopJoint(f"p{len(joints)}", bb.JointModel.BALL, *ends))
    system = bb.attach(names, joints, client, contacts="compliant", limits="always", dt=DT)
    system.assemble()
    return system, client


def test_who_found_the_contacts_of_a_step_that_leaves_links_is_not_told_by_it():
    """In the call of the step where there is room for them, by others where there is not yet."""
    (used, one), (new, other) = net_of_plates(5), net_of_plates(5)
    for _ in range(59):
        used.step()
    start = used.q, used.v, used.t
    used.run(0.1)
    for system in (used, new):
        system.set_state(*start)
        before = system.status.handed_over
        system.step()
        assert system.status.handed_over > before  # it did leave them
    for _ in range(5):
        assert np.array_equal(used.q, new.q) and np.array_equal(used.v, new.v)
        used.step()
        new.step()
    for client in (one, other):
        pybullet.disconnect(client)


def rope_on_points(solver):
    """Balls on point joints, one of them on the world, and material points of some of them."""
    mechanism, joints = empty_mechanism((0.0, 0.0, -9.81)), []
    ball = Load(0.05, (0.0, 0.0, 0.0), np.diag([2e-5] * 3))
    for k in range(6):
        mechanism = with_joint(mechanism, f"free{k}", "free", f"ball{k}", load=ball)
        a = bb.Frame(f"ball{k - 1}", (LINK / 2, 0, 0)) if k else bb.Frame("world")
        ends = a, bb.Frame(f"ball{k}", (-LINK / 2, 0, 0))
        joints.append(bb.LoopJoint(f"pin{k}", bb.JointModel.BALL, *ends))
    system = bb.System(mechanism, joints, solver=solver)
    system.assemble(guess={f"free{k}": [(k + 0.5) * LINK, 0, 0, 0, 0, 0, 1] for k in range(6)})
    points = np.zeros(2, STICKING_POINT)
    points["body_b"], points["count"], points["normal"] = (3, 6), (3, 1), (0, 0, 1)
    points["position"] = [[0.25, 0.01, -RADIUS], [0.55, 0.0, -RADIUS]]
    return system, points


def test_points_stick_while_links_are_closed():
    """Where all of them can, whichever way it is done, and so do the impulses on them."""
    rng, found = np.random.default_rng(3), []
    q0, v0 = rng.normal(size=42) * 1e-5, rng.normal(size=36) * 0.1
    for solver in ("sparse", "dense"):
        system, points = rope_on_points(solver)
        q = system.q + q0
        q.reshape(6, 7)[:, 3:] /= np.linalg.norm(q.reshape(6, 7)[:, 3:], axis=1)[:, None]
        system.world = Given(q, v0)
        impulses = system.filter(points)
        found.append((system.q, system.v, impulses.found, impulses.points))
        assert system.evaluate().largest("kept_metres") < 1e-13
    for one, other in zip(*found, strict=True):
        assert np.abs(one - other).max() < 1e-10 * max(1.0, np.abs(other).max())


def test_contacts_of_links_that_hang_on_one_another_are_not_eliminated_so():
    with pytest.raises(ModelError, match="hang from the world"):
        bb.load("four_bar", solver="sparse", contacts=True)


def test_ropes_and_single_joints_are_filtered_side_by_side():
    """One is closed link by link, the other in joint coordinates: two kernels."""
    client = bb.BulletClient(pybullet.DIRECT)
    client.setGravity(0, 0, -9.81)
    client.createMultiBody(0, client.createCollisionShape(pybullet.GEOM_PLANE))
    shape = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=RADIUS)
    last = []
    for count, y in ((12, 0.0), (2, 1.0)):
        balls = [
            client.createMultiBody(0.05, shape, basePosition=[LINK * (n + 0.5), y, 0.04])
            for n in range(count)
        ]
        point, ends = pybullet.JOINT_POINT2POINT, ([LINK / 2, 0, 0], [-LINK / 2, 0, 0])
        for a, b in zip(balls, balls[1:], strict=False):
            client.createConstraint(a, -1, b, -1, point, [0, 0, 0], *ends)
        last.append(balls)
    for _ in range(30):
        client.stepSimulation()
    for balls in last:
        places = np.array([client.getBasePositionAndOrientation(ball)[0] for ball in balls])
        assert np.abs(np.diff(places[:, 0]) - LINK).max() < 1e-3
        assert np.abs(places[:, 2] - RADIUS).max() < 2e-3
    client.disconnect()
