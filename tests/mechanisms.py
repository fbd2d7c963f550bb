"""Random mechanisms without files, and the same in Pinocchio as an independent oracle."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.mechanism.layout import FREE, PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.mechanism.model import Joint, Link, Mechanism, empty_arrays

POSITIONS = {REVOLUTE: 1, PRISMATIC: 1, SPHERICAL: 4, FREE: 7}
RATES = {REVOLUTE: 1, PRISMATIC: 1, SPHERICAL: 3, FREE: 6}
NAMES = {REVOLUTE: "revolute", PRISMATIC: "prismatic", SPHERICAL: "spherical", FREE: "free"}


def random_mechanism(
    rng: np.random.Generator, kinds: list[int], branching: float = 0.3, gravity: bool = True
) -> Mechanism:
    """Tree with joints of the given kinds, offset rotated frames, full inertias, random parents."""
    nv = sum(RATES[kind] for kind in kinds)
    bodies, axes = empty_arrays(len(kinds) + 1, nv)
    links = {"world": Link("world", 0, np.eye(3), np.zeros(3))}
    joints = {}
    q = v = 0
    for i, kind in enumerate(kinds, start=1):
        parent = 0 if kind == FREE else i - 1
        if kind != FREE and rng.random() < branching:
            # an ancestor of the last body: depth first, as Pinocchio wants its joints
            for _ in range(int(rng.integers(0, 3))):
                parent = int(bodies[parent]["parent"]) if parent > 0 else 0
        body = bodies[i]
        body["parent"], body["joint"], body["q"], body["v"] = parent, kind, q, v
        if kind != FREE:
            body["R"], body["p"] = Rotation.random(rng=rng).as_matrix(), rng.normal(0, 0.4, 3)
        body["mass"], body["com"] = rng.uniform(0.5, 3.0), rng.normal(0, 0.2, 3)
        a = rng.normal(0, 0.2, (3, 3))
        body["J"] = body["mass"] * (np.trace(a @ a.T) * np.eye(3) - a @ a.T + 0.01 * np.eye(3))
        below = int(bodies[parent]["axis"])
        for k in range(v, v + RATES[kind]):
            axes[k]["body"], axes[k]["below"] = i, below
            axes[k]["q"] = q if RATES[kind] == 1 else -1
            below = k
        body["axis"] = below
        R, p = Rotation.random(rng=rng).as_matrix(), rng.normal(0, 0.2, 3)
        links[f"link{i}"] = Link(f"link{i}", i, R, p)
        part = slice(q, q + POSITIONS[kind]), slice(v, v + RATES[kind])
        joints[f"joint{i}"] = Joint(f"joint{i}", NAMES[kind], *part)
        q, v = part[0].stop, part[1].stop
    g = rng.normal(0, 6, 3) if gravity else np.zeros(3)
    return Mechanism(bodies, axes, links, joints, g)


def random_state(rng: np.random.Generator, mechanism: Mechanism, speed: float = 1.0):
    """Configuration with unit quaternions, and velocity."""
    q = rng.normal(0, 0.8, mechanism.nq)
    for joint in mechanism.joints.values():
        if joint.kind in ("spherical", "free"):
            q[joint.q.stop - 4 : joint.q.stop] = Rotation.random(rng=rng).as_quat()
    return q, speed * rng.normal(0, 1.0, mechanism.nv)


@dataclass
class Oracle:
    """The same mechanism in Pinocchio; rates of a free base are linear first, in body axes."""

    model: pin.Model
    data: pin.Data
    ids: list[int]
    mechanism: Mechanism

    def rates(self, q: np.ndarray) -> np.ndarray:
        """T (nv, nv) with v_pin = T v."""
        T = np.eye(self.mechanism.nv)
        for joint in self.mechanism.joints.values():
            if joint.kind == "free":
                k = joint.v.start
                R = Rotation.from_quat(q[joint.q][3:]).as_matrix()
                T[k : k + 6, k : k + 6] = 0
                T[k : k + 3, k + 3 : k + 6] = T[k + 3 : k + 6, k : k + 3] = R.T
        return T

    def bias_rates(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Pinocchio accelerations when ours are zero: dT/dt v."""
        a = np.zeros(self.mechanism.nv)
        for joint in self.mechanism.joints.values():
            if joint.kind == "free":
                k = joint.v.start
                R = Rotation.from_quat(q[joint.q][3:]).as_matrix()
                a[k : k + 3] = -R.T @ np.cross(v[k : k + 3], v[k + 3 : k + 6])
        return a

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """M in our rates."""
        T = self.rates(q)
        M = pin.crba(self.model, self.data, q)
        M = np.triu(M) + np.triu(M, 1).T
        return T.T @ M @ T

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """H in our rates."""
        T = self.rates(q)
        return T.T @ pin.rnea(self.model, self.data, q, T @ v, self.bias_rates(q, v))


def oracle(mechanism: Mechanism) -> Oracle:
    """Pinocchio's model of a mechanism."""
    model = pin.Model()
    model.gravity.linear = np.array(mechanism.gravity)
    kinds = {
        REVOLUTE: pin.JointModelRZ,
        PRISMATIC: pin.JointModelPZ,
        SPHERICAL: pin.JointModelSpherical,
        FREE: pin.JointModelFreeFlyer,
    }
    ids = [0]
    for i, body in enumerate(mechanism.bodies[1:], start=1):
        placement = pin.SE3(np.array(body["R"]), np.array(body["p"]))
        joint = kinds[int(body["joint"])]()
        ids.append(model.addJoint(ids[int(body["parent"])], joint, placement, f"joint{i}"))
        inertia = pin.Inertia(float(body["mass"]), np.array(body["com"]), np.array(body["J"]))
        model.appendBodyToJoint(ids[-1], inertia, pin.SE3.Identity())
    return Oracle(model, model.createData(), ids, mechanism)


def decided(system) -> bool:
    """Whether all rows as written are either strong or zero, so that no threshold matters."""
    terms = system._full.terms(system.q, system.v, system.t)
    J = system.encoded.scale[:, None] * terms.J
    s = np.linalg.svd(np.linalg.solve(np.linalg.cholesky(terms.M), J.T), compute_uv=False)
    return bool(np.all((s > 1e-3 * s[0]) | (s < 1e-9 * s[0])))


def closed_system(case, **options):
    """A random tree with a loop through its last link, closed at a random pose."""
    seed, floating, kinds, model, twice = case
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, ([FREE] if floating else []) + kinds, branching=0.0)
    system = bb.System(mechanism, dt=1e-3)
    q, v = random_state(rng, mechanism)
    system.set_state(q, v)
    first, last = "link1" if floating else "world", list(mechanism.links)[-1]
    point = system.kinematics().point
    a, b = point(bb.Frame(first)), point(bb.Frame(last))
    rpy = tuple(Rotation.from_matrix(a.R_W.T @ b.R_W).as_euler("xyz"))
    frame = bb.Frame(first, tuple(a.R_W.T @ (b.p_W - a.p_W)), rpy)
    joints = [bb.LoopJoint("loop", bb.JointModel(model), frame, bb.Frame(last))]
    if twice:
        joints.append(bb.LoopJoint("again", bb.JointModel(model), frame, bb.Frame(last)))
    constrained = bb.System(mechanism, joints, dt=1e-3, **options)
    constrained.set_state(q, v)
    constrained.step()
    return constrained
