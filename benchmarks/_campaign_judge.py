"""An independent judge of closed mechanisms: numpy on the raw joint data, and Pinocchio.

Nothing of it is the package's but the descriptions that it is given: poses and twists of all bodies
by recursion, gaps and rates of all rows of every constraint from what the constraint means, their
rates by complex steps, Jacobians from the twists of unit rates. M and h are Pinocchio's.

Arrays have one line for each state first, so that a whole run is judged at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _mechanisms import oracle
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE
from bulletbridge.system.evaluation import Reaction

Values = NDArray[Any]
"""Real numbers, or complex ones a step away from them."""
M = bb.JointModel
Closing = bb.LoopJoint | bb.Distance | bb.Coupling
ROLLING = M.ROLLING, M.PURE_ROLLING, M.SOFT_FINGER
"""Models with rows of velocity."""
POINTS = M.BALL, M.WELD, M.REVOLUTE, M.UNIVERSAL, M.SOFT_FINGER
"""Models that hold a point."""
BESIDE_AN_AXIS = M.PRISMATIC, M.CYLINDRICAL, M.SCREW, M.POINT_ON_LINE
"""Models that hold a point on a line."""
ON_A_PLANE = M.PLANAR, M.POINT_ON_PLANE, M.ROLLING, M.PURE_ROLLING
PARALLEL = M.REVOLUTE, M.CYLINDRICAL, M.PLANAR, M.SCREW
"""Models whose axes stay parallel."""
WEAK = 1e-9
"""Rows below this, relative to the strongest, are dependent; rates below it [m/s, rad/s] none."""
LEFT = 0.1
"""Of accelerations of rows: what no v̇ takes away, where rows contradict each other."""
ROUNDED = 1e-6
"""Of a product of rates: what is below it has lost so many digits to round-off."""
FILTERED = 1e-10
"""Rows above this, relative to the strongest, count where a step takes rates to be admissible."""
TURNING = 1e-6
"""Singular value, of the largest, up to which a row may follow from others: next to turning points,
where gaps are half its square, that is what positions closed to 1e-12 leave of it. Rates along it
are obeyed to as much of the fastest one."""
SHUT, FLAT, MOST_PASSES = 1e-11, 1e-5, 200
"""Gap [m or rad] that counts as closed; rows that do not close it, of the strongest; passes."""
Z = np.array([0.0, 0.0, 1.0])
TINY = 1e-100  # a complex step: its square vanishes


@dataclass(frozen=True)
class Moving:
    """All bodies at n states: rotations (n, nb, 3, 3), origins [m] and twists (n, nb, 3) there."""

    R: Values
    p: Values
    w: Values
    u: Values


def dot(a: Values, b: Values) -> Values:
    """Products of vectors (..., 3), without conjugation."""
    return np.sum(a * b, axis=-1)


def cross(a: Values, b: Values) -> Values:
    """Vector products of vectors (..., 3); several times as fast as numpy's."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def norm(a: Values) -> Values:
    """Lengths of vectors (..., 3), without conjugation."""
    return np.sqrt(dot(a, a))


def turned(R: Values, a: Values) -> Values:
    """Rotations (..., 3, 3) of vectors (..., 3)."""
    return np.einsum("...ij,...j->...i", R, a)


def rotation(quaternion: Values) -> Values:
    """Rotations (n, 3, 3) of quaternions xyzw (n, 4) of any length."""
    x, y, z, w = (quaternion / np.sqrt(np.sum(quaternion**2, axis=-1))[:, None]).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def about(axis: Values, angle: Values) -> Values:
    """Rotations (n, 3, 3) about a unit axis (3,) by angles (n,), by Rodrigues' formula."""
    K = cross(np.eye(3), axis)
    sine, cosine = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    return np.eye(3) + sine * K + (1 - cosine) * (K @ K)


def angles(R: Values) -> Values:
    """Rotation vectors (n, 3) [rad] of rotations (n, 3, 3)."""
    vee = np.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], 1)
    sine, cosine = norm(vee) / 2, (np.trace(R, axis1=1, axis2=2) - 1) / 2
    scale = np.where(sine > 1e-12, np.arctan2(sine, cosine) / np.where(sine > 0, sine, 1), 1.0)
    return vee / 2 * scale[:, None]


class Judge:
    """Measures states of a mechanism.

    Args:
        mechanism: Its joints, inertias and gravity.
        constraints: Loop joints, rods and couplings.
    """

    def __init__(self, mechanism: Mechanism, constraints: Sequence[Closing]) -> None:
        self.mechanism, self.constraints = mechanism, tuple(constraints)
        self.oracle = oracle(mechanism)
        names = "joint", "parent", "q", "v", "R", "p"  # numpy takes long over single records
        self.tree = list(zip(*(mechanism.bodies[name].copy() for name in names), strict=True))[1:]
        self.frames: dict[bb.Frame, tuple[int, Values, Values]] = {}

    def moving(self, q: Values, v: Values) -> Moving:
        """Poses and twists of all bodies at states (n, nq), (n, nv)."""
        n, bodies = len(q), self.mechanism.bodies
        kind = np.result_type(q, v)
        R, p = np.zeros((n, len(bodies), 3, 3), kind), np.zeros((n, len(bodies), 3), kind)
        w, u = np.zeros_like(p), np.zeros_like(p)
        R[:, 0] = np.eye(3)
        for i, (joint, parent, first, rate, R_j, p_j) in enumerate(self.tree, start=1):
            if joint == FREE:
                R[:, i] = rotation(q[:, first + 3 : first + 7])
                p[:, i] = q[:, first : first + 3]
                w[:, i], u[:, i] = v[:, rate : rate + 3], v[:, rate + 3 : rate + 6]
                continue
            before = R[:, parent] @ R_j
            way, z = turned(R[:, parent], p_j), before[:, :, 2]
            w[:, i] = w[:, parent]
            if joint == REVOLUTE:
                R[:, i] = before @ about(Z, q[:, first])
                w[:, i] += z * v[:, rate, None]
            elif joint == PRISMATIC:
                R[:, i] = before
                way = way + z * q[:, first, None]
            else:
                R[:, i] = before @ rotation(q[:, first : first + 4])
                w[:, i] += turned(R[:, i], v[:, rate : rate + 3])
            p[:, i] = p[:, parent] + way
            u[:, i] = u[:, parent] + cross(w[:, parent], way)
            if joint == PRISMATIC:
                u[:, i] += z * v[:, rate, None]
        return Moving(R, p, w, u)

    def frame(self, m: Moving, frame: bb.Frame) -> tuple[Values, Values, Values, Values]:
        """Rotation, origin, angular velocity and velocity of a frame on a link, n of each."""
        if frame not in self.frames:
            link = self.mechanism.links[frame.link]
            R_l = link.R @ Rotation.from_euler("xyz", frame.rpy).as_matrix()
            self.frames[frame] = link.body, R_l, link.p + link.R @ np.array(frame.xyz)
        body, R_l, offset = self.frames[frame]
        way = turned(m.R[:, body], offset)
        w = m.w[:, body]
        return m.R[:, body] @ R_l, m.p[:, body] + way, w, m.u[:, body] + cross(w, way)

    def relative(self, m: Moving, loop: bb.LoopJoint | bb.Distance, t: Values) -> "Relative":
        """Frame b seen from frame a after its prescribed motion, and the change of a length."""
        R_a, p_a, w_a, u_a = self.frame(m, loop.a)
        R_b, p_b, w_b, u_b = self.frame(m, loop.b)
        z = np.zeros((2, len(t)))
        if isinstance(loop, bb.Distance):
            z = prescribed(loop.motion, t)[:, 2]
        elif loop.motion is not None:
            place, rate = np.moveaxis(prescribed(loop.motion, t), 1, 2)
            axis = unit(loop.motion.axis or loop.axis)  # of general ones only where given
            way = turned(R_a, place[:, :3])
            p_a, u_a = p_a + way, u_a + cross(w_a, way) + turned(R_a, rate[:, :3])
            R_a = R_a @ about(axis, place[:, 3])
            w_a = w_a + turned(R_a, axis * rate[:, 3, None])
        back = np.swapaxes(R_a, 1, 2)
        apart = p_b - p_a
        return Relative(
            back @ R_b,
            turned(back, apart),
            turned(back, w_b - w_a),
            turned(back, u_b - u_a - cross(w_a, apart)),
            z,
        )

    def look(self, q: Values, v: Values, t: Values) -> tuple[list[Values], list[Values]]:
        """Gaps and rates of each constraint at n states, as below."""
        m = self.moving(q, v)
        return self.gaps(q, v, t, m), self.rates(q, v, t, m)

    def gaps(self, q: Values, v: Values, t: Values, m: Moving | None = None) -> list[Values]:
        """Gaps of each constraint at n states, along all its rows: (n, rows) each [m or rad]."""
        m = m or self.moving(q, v)
        return [
            self.coupled(c, q, t, 0)
            if isinstance(c, bb.Coupling)
            else gaps_of(c, self.relative(m, c, t))
            for c in self.constraints
        ]

    def rates(self, q: Values, v: Values, t: Values, m: Moving | None = None) -> list[Values]:
        """Rates of all rows, those of velocity too: (n, rows) each [m/s or rad/s]."""
        m = m or self.moving(q, v)
        return [
            self.coupled(c, v, t, 1)
            if isinstance(c, bb.Coupling)
            else rates_of(c, self.relative(m, c, t))
            for c in self.constraints
        ]

    def coupled(self, gear: bb.Coupling, x: Values, t: Values, order: int) -> Values:
        """Gap (n, 1) or rate of a coupling from positions or rates."""
        total = -prescribed(gear.motion, t)[order, 2]
        for name, factor in gear.coefficients.items():
            joint = self.mechanism.joints[name]
            total = total + factor * x[:, (joint.v if order else joint.q).start]
        return (total - (0 if order else gear.offset))[:, None]

    def jacobian(self, q: Values, t: float) -> Values:
        """All rows (nc, nv) at one state: rates of unit velocities less those of none."""
        nv = self.mechanism.nv
        v = np.vstack([np.zeros(nv), np.eye(nv)])
        rates = np.hstack(self.rates(np.tile(q, (nv + 1, 1)), v, np.full(nv + 1, t)))
        return (rates[1:] - rates[0]).T

    def accelerations_of_rows(self, q: Values, v: Values, vdot: Values, t: float) -> Values:
        """J v̇ + γ (nc,) of all rows at one state, by a complex step along the motion."""
        moved = q[None] + 1j * TINY * self.position_rates(q, v)
        faster = v[None] + 1j * TINY * vdot
        return np.hstack(self.rates(moved, faster, np.array([t + 1j * TINY])))[0].imag / TINY

    def position_rates(self, q: Values, v: Values) -> Values:
        """Rate (nq,) of the position coordinates at one state."""
        rate = np.zeros(len(q))
        for joint in self.mechanism.joints.values():
            at, of = joint.q, joint.v
            if joint.kind in ("revolute", "prismatic"):
                rate[at] = v[of]
                continue
            x, s = q[at.stop - 4 : at.stop - 1], q[at.stop - 1]
            w = v[of][:3]
            if joint.kind == "free":  # angular velocity in world axes
                rate[at.start : at.start + 3] = v[of][3:]
                w_of_s = s * w - cross(x, w)
            else:  # in body axes
                w_of_s = s * w + cross(x, w)
            rate[at.stop - 4 : at.stop - 1], rate[at.stop - 1] = w_of_s / 2, -x @ w / 2
        return rate

    def energies(self, q: Values, v: Values) -> tuple[Values, Values]:
        """Kinetic and potential energy (n,) [J]."""
        m, bodies = self.moving(q, v), self.mechanism.bodies
        way = turned(m.R, bodies["com"])
        speed, own = m.u + cross(m.w, way), turned(np.swapaxes(m.R, 2, 3), m.w)
        spin = np.einsum("nbi,bij,nbj->n", own, bodies["J"], own)
        kinetic = (dot(speed, speed) @ bodies["mass"] + spin) / 2
        return kinetic, -((m.p + way) @ self.mechanism.gravity) @ bodies["mass"]

    def exerted(self, q: Values, t: float, reactions: Mapping[str, Reaction]) -> Values:
        """Forces (nv,) on the rates by reactions: each on the link of b, and back on that of a."""
        nv = self.mechanism.nv
        m = self.moving(np.tile(q, (nv, 1)), np.eye(nv))
        total = np.zeros(nv)
        for c in self.constraints:
            said = reactions[c.name]
            if isinstance(c, bb.Coupling):
                for name, factor in c.coefficients.items():
                    total[self.mechanism.joints[name].v.start] += factor * said.multipliers[0]
                continue
            for frame, sign in ((c.b, 1.0), (c.a, -1.0)):
                body = self.mechanism.links[frame.link].body
                at = m.u[:, body] + cross(m.w[:, body], said.point - m.p[:, body])
                total += sign * (at @ said.force + m.w[:, body] @ said.torque)
        return total

    def unbalanced(
        self, q: Values, v: Values, t: float, forces: Sequence[Values]
    ) -> tuple[float, float]:
        """|M v̇ + h - τ - Jᵀλ| relative to the largest of its terms, in the metric of M⁻¹.

        Args:
            q: (nq,)
            v: (nv,)
            t: Time [s].
            forces: Acceleration (nv,), applied forces (nv,), forces of reactions (nv,).

        Returns:
            That, and the condition number of M, which limits it.
        """
        vdot, tau, exerted = forces
        Mass = self.oracle.mass_matrix(q)
        terms = [Mass @ vdot, self.oracle.bias(q, v), -tau, -exerted]
        L = np.linalg.cholesky(Mass)
        whitened = [np.linalg.solve(L, term) for term in terms]
        # what no force makes at rest is round-off of products of rates
        fastest = float(np.abs(v).max(initial=0.0))
        least = ROUNDED * fastest * float(np.linalg.norm(L.T @ v))
        size = max(least, *(float(np.linalg.norm(term)) for term in whitened))
        left = float(np.linalg.norm(np.sum(whitened, axis=0)))
        return (left / size if size > 0 else 0.0), float(np.linalg.cond(Mass))

    def missing(self, q: Values, v: Values, vdot: Values, t: float) -> float:
        """Largest J v̇ + γ of all rows, relative to their terms; zero where no v̇ fulfils them.

        Rows may follow from others at a position and not beside it, as of a wheel whose axle may
        rock at a turning point alone: velocities are admissible there that no motion goes on with.
        The terms of J v̇ are, in the metric of M, its longest row times v̇.
        """
        left, J = self.accelerations_of_rows(q, v, vdot, t), self.jacobian(q, t)
        gamma = self.accelerations_of_rows(q, v, 0 * vdot, t)
        L = np.linalg.cholesky(self.oracle.mass_matrix(q))
        longest = float(np.linalg.norm(np.linalg.solve(L, J.T), 2))
        fastest = float(np.abs(v).max(initial=0.0))
        sizes = np.abs(gamma).max(initial=0.0), longest * np.linalg.norm(L.T @ vdot)
        size = max(1.0, ROUNDED * fastest**2, *(float(x) for x in sizes))
        U, s, _ = np.linalg.svd(J, full_matrices=False)
        U = U[:, s > WEAK * s.max(initial=0.0)]
        beyond_reach = float(np.abs(left - U @ (U.T @ left)).max(initial=0.0))
        largest = float(np.abs(left).max(initial=0.0))
        return 0.0 if beyond_reach > LEFT * largest else largest / size

    def admissible(self, q: Values, v: Values, t: float, weak: float = WEAK) -> Values:
        """Rates (nv,) that all rows allow at one state, the nearest in the metric of M."""
        rates = np.hstack(self.rates(q[None], v[None], np.array([t])))[0]
        L = np.linalg.cholesky(self.oracle.mass_matrix(q))
        W = np.linalg.solve(L, self.jacobian(q, t).T).T
        off = np.asarray(np.linalg.lstsq(W, rates, rcond=weak)[0], np.float64)
        return np.asarray(v - np.linalg.solve(L.T, off), np.float64)

    def closed(self, q: Values, v: Values, dt: float, t: float) -> Values:
        """Rates (nv,) at the end of a step that rates v lead to from time t, with loops closed.

        The nearest closed configuration by Gauss and Newton, in the metric of M; what that takes is
        part of the rates, of which the nearest admissible ones are left.
        """
        end, still = t + dt, np.zeros((1, self.mechanism.nv))
        there, taken = self.displaced(q, dt * v), np.zeros(len(v))
        for _ in range(MOST_PASSES):
            gaps = np.hstack(self.gaps(there[None], still, np.array([end])))[0]
            if float(np.abs(gaps).max(initial=0.0)) < SHUT:
                break
            L = np.linalg.cholesky(self.oracle.mass_matrix(there))
            W = np.linalg.solve(L, self.gap_jacobian(there, end).T).T
            way = np.asarray(np.linalg.lstsq(W, -gaps, rcond=FLAT)[0], np.float64)
            moved = np.asarray(np.linalg.solve(L.T, way), np.float64)
            there, taken = self.displaced(there, moved), taken + moved
        return self.admissible(there, v + taken / dt, end, FILTERED)

    def displaced(self, q: Values, way: Values) -> Values:
        """Configuration (nq,) that is a way (nv,) from q, to third order in what it turns."""
        moved = q + self.position_rates(q, way)
        for joint in self.mechanism.joints.values():
            if joint.kind not in ("revolute", "prismatic"):
                turn = slice(joint.q.stop - 4, joint.q.stop)
                moved[turn] /= np.linalg.norm(moved[turn])
        return moved

    def gap_jacobian(self, q: Values, t: float) -> Values:
        """Rates (rows, nv) of all gaps by differences, good to 1e-9."""
        nv, h = self.mechanism.nv, 1e-6
        ways = np.array([self.position_rates(q, e) for e in np.eye(nv)])
        there = q + h * np.vstack([ways, -ways])
        moved = np.hstack(self.gaps(there, np.zeros((2 * nv, nv)), np.full(2 * nv, t)))
        return np.asarray(((moved[:nv] - moved[nv:]) / (2 * h)).T, np.float64)

    def can_follow(self, q: Values, t: float) -> bool:
        """Whether some velocity is what prescribed motions ask for."""
        still = np.zeros((1, self.mechanism.nv))
        J, asked = self.jacobian(q, t), np.hstack(self.rates(q[None], still, np.array([t])))[0]
        best = np.asarray(np.linalg.lstsq(J, -asked, rcond=WEAK)[0], np.float64)
        return float(np.abs(J @ best + asked).max(initial=0.0)) < WEAK

    def movable(self, q: Values, t: float, gaps: Values) -> float:
        """Largest part of gaps (nc,) of all rows along directions that some joint moves."""
        U, s, _ = np.linalg.svd(self.gap_jacobian(q, t), full_matrices=False)
        U = U[:, s > 1e-5 * s[0]]  # differences are good to 1e-9
        return float(np.abs(U @ (U.T @ gaps)).max(initial=0.0))

    def spectrum(self, q: Values, t: float) -> Values:
        """Singular values of all rows in the metric of M, relative to the largest."""
        L = np.linalg.cholesky(self.oracle.mass_matrix(q))
        s = np.linalg.svd(np.linalg.solve(L, self.jacobian(q, t).T), compute_uv=False)
        return s / s[0] if len(s) and s[0] > 0 else s


@dataclass(frozen=True)
class Relative:
    """Frame b in axes of a: rotation, origin, its twist, and what is added to a length: n each."""

    R: Values
    s: Values
    w: Values
    u: Values
    z: Values  # (2, n) [m], [m/s]


def unit(axis: Any) -> Values:
    """A vector of length one."""
    return np.asarray(axis, float) / np.linalg.norm(axis)


def prescribed(motion: bb.Motion | None, t: Values) -> Values:
    """Value and rate (2, 4, n) of x, y, z [m] and angle [rad]; t may be a complex step away."""
    if motion is None:
        return np.zeros((2, 4, len(t)))
    value, rate, acceleration = np.moveaxis(motion.over(np.real(t)), (2, 1), (0, 1))
    if not np.iscomplexobj(t):
        return np.array([value, rate])
    away = 1j * np.imag(t)
    return np.array([value + away * rate, rate + away * acceleration])


def normals(n: Values) -> Values:
    """Two unit vectors (2, 3) at right angles to n and each other."""
    across: Values = null_space(n[None])
    return across.T


def tilts(n: Values, R: Values) -> Values:
    """Turns (n, 3) [rad] that take an axis n of a (3,) to the same axis of b."""
    there = turned(R, n)
    across = cross(n, there)
    sine = norm(across)
    angle = np.arctan2(sine, there @ n)
    return across * np.where(sine > 1e-300, angle / np.where(sine > 0, sine, 1), 1.0)[:, None]


def turns(n: Values, R: Values, near: Values) -> Values:
    """Turns (n,) [rad] of b about an axis n, of all that differ by whole ones the nearest."""
    e = normals(n)
    e = e if np.linalg.det(np.vstack([e, n])) > 0 else e[::-1]
    x, y = turned(R, e[0]), turned(R, e[1])
    turn: Values = np.arctan2(x @ e[1] - y @ e[0], x @ e[0] + y @ e[1])
    return turn + 2 * np.pi * np.round((near - turn) / (2 * np.pi))


def gaps_of(c: bb.LoopJoint | bb.Distance, r: Relative) -> Values:
    """Gaps (n, rows) of a loop [m or rad]."""
    if isinstance(c, bb.Distance):
        return (norm(r.s) - c.length - r.z[0])[:, None]
    if c.model is M.GENERAL:
        return general_gaps(c, r)
    n, found = unit(c.axis), list[Values]()
    along = r.s @ n
    across = r.s - along[:, None] * n
    if c.model in POINTS:
        found.append(r.s)
    if c.model in BESIDE_AN_AXIS:
        found.append(across)
    if c.model in ON_A_PLANE:
        found.append((along - c.radius)[:, None])
    if c.model in (M.POINT_ON_SPHERE, M.POINT_ON_CYLINDER):
        arm = r.s if c.model is M.POINT_ON_SPHERE else across
        found.append((norm(arm) - c.radius)[:, None])
    if c.model in PARALLEL:
        found.append(tilts(n, r.R))
    if c.model in (M.WELD, M.PRISMATIC):
        found.append(angles(r.R))
    if c.model is M.UNIVERSAL:
        assert c.axis_b is not None
        found.append(np.arcsin(turned(r.R, unit(c.axis_b)) @ n)[:, None])
    if c.model is M.SCREW:
        advance = c.pitch / (2 * np.pi)
        found.append((along - advance * turns(n, r.R, along / advance))[:, None])
    return np.hstack(found)


def rates_of(c: bb.LoopJoint | bb.Distance, r: Relative) -> Values:
    """Rates (n, rows) of a loop [m/s or rad/s]; they are those of its gaps where it is closed."""
    if isinstance(c, bb.Distance):
        return (dot(r.s, r.u) / norm(r.s) - r.z[1])[:, None]
    if c.model is M.GENERAL:
        held = null_space(np.array(c.free, float)) if c.free else np.eye(6)
        return np.concatenate([r.w, r.u], axis=1) @ held
    n, found = unit(c.axis), list[Values]()
    along = r.u @ n
    if c.model in POINTS:
        found.append(r.u)
    if c.model in BESIDE_AN_AXIS:
        found.append(r.u - along[:, None] * n)
    if c.model in (M.ROLLING, M.PURE_ROLLING):
        found.append(r.u - cross(r.w, c.radius * n))  # of the point that touches
    if c.model in (M.PLANAR, M.POINT_ON_PLANE):
        found.append(along[:, None])
    if c.model in (M.POINT_ON_SPHERE, M.POINT_ON_CYLINDER):
        s = r.s if c.model is M.POINT_ON_SPHERE else r.s - (r.s @ n)[:, None] * n
        found.append((dot(s, r.u) / norm(s))[:, None])
    if c.model in PARALLEL:
        found.append(r.w - (r.w @ n)[:, None] * n)
    if c.model in (M.WELD, M.PRISMATIC):
        found.append(r.w)
    if c.model in (M.PURE_ROLLING, M.SOFT_FINGER):
        found.append((r.w @ n)[:, None])
    if c.model is M.UNIVERSAL:
        assert c.axis_b is not None
        found.append(dot(cross(turned(r.R, unit(c.axis_b)), n), r.w)[:, None])
    if c.model is M.SCREW:
        found.append((along - c.pitch / (2 * np.pi) * (r.w @ n))[:, None])
    return np.hstack(found)


def general_gaps(c: bb.LoopJoint, r: Relative) -> Values:
    """Gaps (n, rows) of a general joint: what of its pose is not made of its free twists."""
    free = np.array(c.free, float).reshape(-1, 6)
    _, sizes, axes = np.linalg.svd(free[:, :3])
    count = int(np.sum(sizes > 1e-9 * np.abs(free).max(initial=0.0)))
    if count == 0:
        ways = null_space(free[:, 3:]) if len(free) else np.eye(3)
        return np.hstack([angles(r.R), r.s @ ways])
    if count == 3:
        held = null_space(free)
        assert np.abs(held[:3]).max(initial=0.0) < 1e-9  # forces alone
        return r.s @ held[3:]
    n = axes[0]
    flat = np.hstack([free[:, :3] @ n[:, None], free[:, 3:]])
    held = null_space(flat)  # (4, rows) of a turn about n and a way
    tied = held[0] @ held[0]
    near = -(r.s @ held[1:]) @ held[0] / tied if tied > 1e-18 else np.zeros(len(r.s))
    turn = turns(n, r.R, near)
    return np.hstack([tilts(n, r.R), np.column_stack([turn, r.s]) @ held])
