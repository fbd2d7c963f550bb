"""MuJoCo as an oracle for a model that was read from, or written to, MJCF."""

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.bullet.worlds import connect_direct, disconnect
from bulletbridge.constraints.joints import JointModel
from bulletbridge.constraints.user import Kinematics
from bulletbridge.engine.workspace import Terms
from bulletbridge.mechanism.joint_properties import with_joint_properties
from bulletbridge.models.bodies import load_bodies
from bulletbridge.models.load import forces_of, with_forces
from bulletbridge.models.modal_beams import read_world
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array

mujoco: Any = import_module("mujoco")


class Compared(NamedTuple):
    """Largest differences between ours and MuJoCo's, each against the largest entry."""

    M: float
    h: float
    g: float
    J: float


def unassembled(spec: ModelSpec) -> bb.System:
    """A system that may be put into any configuration, open ones too."""
    client = connect_direct()
    try:
        world = read_world(spec, load_bodies(spec, client), client)
        mechanism = with_joint_properties(world.mechanism, spec.joints)
        mechanism = with_forces(mechanism, spec.forces)
        joining = (*spec.constraints, *spec.elements)
        return bb.System(mechanism, joining, springs="explicit", forces=forces_of(spec))
    finally:
        disconnect(client)


def terms_at(system: bb.System, q: Array, v: Array) -> Terms:
    """The equations of a system with all its rows, at any state."""
    return system._active.solver.terms(q, v, 0.0)  # pyright: ignore[reportPrivateUsage]


def random_state(system: bb.System, rng: np.random.Generator) -> tuple[Array, Array]:
    """Positions with unit quaternions, and rates."""
    q, v = rng.uniform(-0.8, 0.8, system.mechanism.nq), rng.uniform(-1, 1, system.mechanism.nv)
    for joint in system.mechanism.joints.values():
        if joint.kind in ("spherical", "free"):
            quat = slice(joint.q.stop - 4, joint.q.stop)
            q[quat] /= np.linalg.norm(q[quat])
    return q, v


class Oracle:
    """MuJoCo's model of a file, in our coordinates.

    Args:
        path: The MJCF file.
        system: Ours of it; its joints have MuJoCo's names, after the robot's if there are several.
    """

    def __init__(self, path: Path, system: bb.System, spec: ModelSpec) -> None:
        self.model: Any = mujoco.MjModel.from_xml_path(str(path))
        self.model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        self.data: Any = mujoco.MjData(self.model)
        self.system, self.spec = system, spec
        self.loops = spec.constraints

    def joint(self, name: str) -> int:
        """MuJoCo's number of one of our joints."""
        if name.split("/")[-1] == "base":
            return int(np.flatnonzero(self.model.jnt_type == 0)[self._floating().index(name)])
        known = [self.model.joint(k).name for k in range(self.model.njnt)]
        return known.index(name if name in known else name.split("/")[-1])

    def _floating(self) -> list[str]:
        return [n for n, j in self.system.mechanism.joints.items() if j.kind == "free"]

    def put(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Give MuJoCo our state; rates of it by ours (nv, nv), and what that changes of biases."""
        m, d, mechanism = self.model, self.data, self.system.mechanism
        T, drift = np.zeros((m.nv, m.nv)), np.zeros(m.nv)
        for name, joint in mechanism.joints.items():
            k = self.joint(name)
            at, dof = int(m.jnt_qposadr[k]), int(m.jnt_dofadr[k])
            if joint.kind == "free":
                R = Rotation.from_quat(q[joint.q][3:]).as_matrix()
                body = int(m.jnt_bodyid[k])
                # armature has a mass at the body's frame here
                mass, armature = float(m.body_mass[body]), float(m.dof_armature[dof])
                c = R @ m.body_ipos[body] * mass / (mass + armature)
                d.qpos[at : at + 3] = q[joint.q][:3] - c
                d.qpos[at + 3 : at + 7] = np.roll(q[joint.q][3:], 1)
                w = v[joint.v][:3]
                turn, way = (
                    slice(joint.v.start, joint.v.start + 3),
                    slice(joint.v.start + 3, joint.v.stop),
                )
                T[dof : dof + 3, way] = np.eye(3)
                T[dof : dof + 3, turn] = cross_matrix(c)
                T[dof + 3 : dof + 6, turn] = R.T
                drift[dof : dof + 3] = -np.cross(w, np.cross(w, c))
            elif joint.kind == "spherical":
                d.qpos[at : at + 4] = np.roll(q[joint.q], 1)
                T[dof : dof + 3, joint.v] = np.eye(3)
            else:
                d.qpos[at] = q[joint.q][0]
                T[dof, joint.v.start] = 1.0
        d.qvel[:] = T @ v
        mujoco.mj_forward(m, d)
        return T, drift

    def compare(self, q: Array, v: Array) -> Compared:
        """Both at one state."""
        m, d, system = self.model, self.data, self.system
        T, drift = self.put(q, v)
        ours = terms_at(system, q, v)
        M = np.zeros((m.nv, m.nv))
        full_mass(m, d, M)
        h = d.qfrc_bias - d.qfrc_passive + M @ drift
        kinematics = Kinematics(system.mechanism, ours.poses, ours.axes, q, v, 0.0)
        g, J = self._rows(ours, kinematics)
        J_all = d.efc_J.reshape(d.nefc, m.nv)
        held: Any = d.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        free: Any = (m.eq_type == mujoco.mjtEq.mjEQ_WELD) & (m.eq_data[:, 10] == 0.0)
        mine = [k for k in np.flatnonzero(held) if J_all[k].any() or not free[d.efc_id[k]]]
        theirs_J, theirs = J_all[mine] @ T, d.efc_pos[mine]
        turns = np.flatnonzero(np.isnan(J).any(axis=1))
        theirs_J[turns] = J[turns] = 0.0
        for turn in turns.reshape(-1, 3):  # a quaternion and its negative are the same turn
            theirs[turn] *= np.sign(theirs[turn] @ g[turn])
        h_ours = ours.h - ours.forces
        return Compared(
            apart(ours.M, T.T @ M @ T),
            apart(h_ours, T.T @ h),
            apart(g, theirs),
            apart(J, theirs_J),
        )

    def _rows(self, ours: Any, kinematics: Kinematics) -> tuple[Array, Array]:
        """Our rows as MuJoCo writes them; rows of turns of welds are not in J, as NaN."""
        g, J, at = list[float](), list[Array](), 0
        equalities = map(self.model.equality, range(self.model.neq))
        pairs = {x.name for x in equalities if x.type == mujoco.mjtEq.mjEQ_JOINT}
        for loop in self.loops:
            if not isinstance(loop, bb.LoopJoint):
                # that of joints is divided by the first one's coefficient, which is one as read
                factor = 1.0
                if isinstance(loop, bb.Coupling) and loop.name in pairs:
                    factor = next(iter(loop.coefficients.values()))
                g.append(float(ours.g[at]) / factor)
                J.append(ours.J[at] / factor)
                at += 1
                continue
            a, b = kinematics.point(loop.a), kinematics.point(loop.b)
            apart_ab = b.p_W - a.p_W
            g += list(-(a.R_W @ ours.g[at : at + 3]))
            J += list(-(a.R_W @ ours.J[at : at + 3]) + cross_matrix(apart_ab) @ a.J_angular)
            at += 3
            if loop.model is JointModel.WELD:
                r = ours.g[at : at + 3]
                angle = float(np.linalg.norm(r))
                g += list(-np.sinc(angle / 2 / np.pi) / 2 * r)
                J += [np.full(len(ours.M), np.nan)] * 3
                at += 3
        return np.array(g), np.array(J).reshape(len(g), len(ours.M))


def full_mass(m: Any, d: Any, M: Array) -> None:
    """MuJoCo's mass matrix; the function's arguments changed in version 4."""
    try:
        mujoco.mj_fullM(m, d, M)
    except TypeError:
        mujoco.mj_fullM(m, M, d.qM)


def cross_matrix(a: Array) -> Array:
    """Matrix (3, 3) of the product a x."""
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def apart(a: Array, b: Array) -> float:
    """Largest difference of entries against the largest entry."""
    if not a.size:
        return 0.0
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))


def stiff_model(path: Path) -> Any:
    """MuJoCo's model of a file, to be stepped by RK4 of 0.1 ms: loops as stiff as that bears.

    Their time constant is 1 ms. Contacts, limits and actuators do not act.
    """
    spec, off = mujoco.MjSpec.from_file(str(path)), mujoco.mjtDisableBit
    for equality in spec.equalities:
        equality.solref, equality.solimp = [1e-3, 1.0], [0.9999, 0.9999, 0.001, 0.5, 2.0]
    spec.option.integrator, spec.option.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-4
    spec.option.disableflags |= int(off.mjDSBL_CONTACT | off.mjDSBL_LIMIT | off.mjDSBL_ACTUATION)
    return spec.compile()
