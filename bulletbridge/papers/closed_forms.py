"""Linearised flexible links in closed form: a link on a free base, and two links with a payload.

M v̇ + h = forces, to first order in the deflections f and their rates; coordinates without the
slopes of tips. A link along e1 from a point that moves, bent by w = σ f and shortened by ½ fᵀ B f:
all that is left of it are integrals over its modes. Two links follow by the motion of the tip that
carries the second.

Source: the equations of Bonaventura 2002, appendices A.1 (two links) and A.2 (a mobile link),
derived anew from the kinetic energy; the print was not available in full (docs/errata.md).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import bulletbridge as bb
from bulletbridge.formulations.classics.flexible_arms import (
    DENSITY,
    STIFFNESS,
    SYSTEMS,
    FlexibleLink,
    FlexibleSystem,
)
from bulletbridge.formulations.classics.flexible_trees import tree_of
from bulletbridge.mechanism.beams import FlexibleBeam
from bulletbridge.models.flexible.linearised import linearised, tip_slopes
from bulletbridge.numerics.records import Array
from bulletbridge.papers.example import Example, Outcome, Row, Table
from bulletbridge.papers.references import reference

MODES = 2
POINTS = 200  # of the quadrature of the modes


class First(NamedTuple):
    """A quantity to first order in the deflections: its value at none, and what is linear."""

    rest: Array
    bent: Array

    def __matmul__(self, other: "First") -> "First":  # type: ignore[override]
        """Product, without what is of second order."""
        return First(self.rest @ other.rest, self.rest @ other.bent + self.bent @ other.rest)

    def plus(self, other: "First") -> "First":
        """Sum."""
        return First(self.rest + other.rest, self.bent + other.bent)

    @property
    def T(self) -> "First":
        """Transposed."""
        return First(self.rest.T, self.bent.T)

    @property
    def sum(self) -> Array:
        """Both orders together."""
        return self.rest + self.bent


@dataclass(frozen=True)
class ModeIntegrals:
    """Integrals over the modes of a link of length L with a mass at its tip [SI]."""

    m: float  # mass
    s: float  # ∫ x dm
    J: float  # ∫ x² dm
    a12: Array  # ∫ x σ dm (modes,)
    a21: Array  # ∫ σ dm (modes,)
    a14: Array  # ∫ σ σ dm (modes, modes)
    a15: Array  # 2 ∫ x B dm, B = ∫ σ' σ' dx up to x
    a16: Array  # ∫ σ'' σ'' dx
    a23: Array  # ∫ B dm
    tip: Array  # σ there (modes,)
    B: Array  # there (modes, modes)


def integrals(link: FlexibleLink) -> ModeIntegrals:
    """Of a link of the thesis; those of unit length have the same values (Table of integrals)."""
    known = reference("modal")["constants"]
    L, M = link.length, link.tip_mass
    part, square = slice(0, MODES), np.ix_(range(MODES), range(MODES))
    a = {name: np.array(value) for name, value in known.items()}
    tip, B = a["sig_tip"][part], a["a13"][square] / L
    return ModeIntegrals(
        DENSITY * L + M, 0.5 * DENSITY * L**2 + M * L, DENSITY * L**3 / 3.0 + M * L**2,
        DENSITY * L**2 * a["a12"][part] + M * L * tip, DENSITY * L * a["a21"][part] + M * tip,
        DENSITY * L * a["a14"][square] + M * np.outer(tip, tip),
        DENSITY * L * a["a15"][square] + 2.0 * M * L * B, a["a16"][square] / L**3,
        DENSITY * a["a23"][square] + M * B, tip, B,
    )  # fmt: skip


def axes_at(angle: float) -> Array:
    """(2, 2): e1 and e2 of a link at an angle, as columns."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def mobile_link(
    link: ModeIntegrals, state: tuple[float, Array], rates: tuple[float, Array], sign: float = -1.0
) -> tuple[First, First]:
    """M (3 + modes, 3 + modes) and h of a link on a free base, rates (ẋ, ẏ, θ̇, ḟ).

    Args:
        link: Its integrals.
        state: Angle θ and amplitudes f.
        rates: θ̇ and ḟ.
        sign: Of the shortening in the rows of the base and the columns of the modes: the thesis
            prints H_f1,y with a plus.
    """
    (angle, f), (w, df), n = state, rates, len(state[1])
    E = axes_at(angle)
    rest, bent = np.zeros((3 + n, 3 + n)), np.zeros((3 + n, 3 + n))
    rest[:2, :2] = link.m * np.eye(2)
    rest[:2, 2], bent[:2, 2] = link.s * E[:, 1], -float(link.a21 @ f) * E[:, 0]
    rest[:2, 3:] = np.outer(E[:, 1], link.a21)
    bent[0, 3:], bent[1, 3:] = -E[0, 0] * (link.a23 @ f), sign * E[1, 0] * (link.a23 @ f)
    rest[2, 2], rest[2, 3:], rest[3:, 3:] = link.J, link.a12, link.a14
    for A in (rest, bent):
        A[2, :2] = A[:2, 2]
        A[3:, :3] = A[:3, 3:].T
    h_rest, h_bent = np.zeros(3 + n), np.zeros(3 + n)
    h_rest[:2] = -link.s * w**2 * E[:, 0]
    h_bent[:2] = -2.0 * float(link.a21 @ df) * w * E[:, 0] - float(link.a21 @ f) * w**2 * E[:, 1]
    h_bent[3:] = w**2 * (0.5 * link.a15 - link.a14) @ f
    return First(rest, bent), First(h_rest, h_bent)


def two_links(
    first: ModeIntegrals, second: ModeIntegrals, q: Array, v: Array
) -> tuple[Array, Array]:
    """M and h (2 + 2 modes) of two links, rates (θ̇1, ḟ1, θ̇2 against θ1, ḟ2)."""
    n = len(first.tip)
    t1, f1, t2, f2 = q[0], q[1 : 1 + n], q[0] + q[1 + n], q[2 + n :]
    w1, df1, w2, df2 = v[0], v[1 : 1 + n], v[0] + v[1 + n], v[2 + n :]
    M1, h1 = mobile_link(first, (t1, f1), (w1, df1))
    M2, h2 = mobile_link(second, (t2, f2), (w2, df2))
    E, L = axes_at(t1), SYSTEMS["2b"].links[0].length
    # columns of the rates of the first link: 2 of its base, θ, f; rows of the second: 2, θ, f
    own = np.zeros((3 + n, 2 + 2 * n))
    own[2, 0] = 1.0
    own[3:, 1 : 1 + n] = np.eye(n)
    rest, bent = np.zeros((3 + n, 2 + 2 * n)), np.zeros((3 + n, 2 + 2 * n))
    rest[:2, 0], bent[:2, 0] = L * E[:, 1], -float(first.tip @ f1) * E[:, 0]
    rest[:2, 1 : 1 + n] = np.outer(E[:, 1], first.tip)
    bent[:2, 1 : 1 + n] = -np.outer(E[:, 0], first.B @ f1)
    rest[2, 0] = rest[2, 1 + n] = 1.0
    rest[3:, 2 + n :] = np.eye(n)
    J, still = First(rest, bent), First(own, np.zeros_like(own))
    pull = np.zeros(3 + n), np.zeros(3 + n)  # what the tip accelerates by without v̇
    pull[0][:2] = -L * w1**2 * E[:, 0]
    pull[1][:2] = (
        -2.0 * float(first.tip @ df1) * w1 * E[:, 0] - float(first.tip @ f1) * w1**2 * E[:, 1]
    )
    M = (still.T @ M1 @ still).plus(J.T @ M2 @ J)
    h = (still.T @ h1).plus(J.T @ (M2 @ First(*pull)).plus(h2))
    return M.sum, h.sum


def expanded(system: FlexibleSystem, modules: bool, q: Array, v: Array) -> tuple[Array, Array]:
    """M and h of the exact equations, expanded numerically, at coordinates without slopes."""
    model = bb.System(tree_of(system, [MODES] * len(system.links), modules=modules).mechanism)
    slopes = tip_slopes(model.mechanism)
    change = np.eye(len(v)) - slopes
    M, h = linearised("first_order")(model.dynamics).terms(change @ q, change @ v)
    return change.T @ M @ change, change.T @ h


def random_states(size: int) -> list[tuple[Array, Array]]:
    """Angles of all directions, deflections of centimetres, and rates."""
    rng = np.random.default_rng(5)
    return [(q, v) for q, v in rng.uniform(-3.0, 3.0, (20, 2, size))]


def table(end: float | None) -> Outcome:
    """Largest differences of the closed forms to the numerical expansion over random states."""
    arm = SYSTEMS["2b"]
    first, second = (integrals(link) for link in arm.links)
    flexible = np.array([False, True, True, False, True, True])
    worst = dict.fromkeys(("M", "h", "h printed"), 0.0)
    for q, v in random_states(6):
        q, v = np.where(flexible, 0.02 * q, q), np.where(flexible, 0.2 * v, v)
        M, h = expanded(arm, False, q, v)
        slipped = np.append(v[:4], q[4:])  # amplitudes of the second link for its rates
        ours, printed = two_links(first, second, q, v), two_links(first, second, q, slipped)
        scale = np.abs(M).max(), np.abs(h).max()
        worst["M"] = max(worst["M"], float(np.abs(ours[0] - M).max()) / scale[0])
        worst["h"] = max(worst["h"], float(np.abs(ours[1] - h).max()) / scale[1])
        worst["h printed"] = max(worst["h printed"], float(np.abs(printed[1] - h).max()) / scale[1])
    rows = [
        Row("A.1, two links and a payload of 0.5 kg: M", worst["M"], 0.0, 1e-9, "theory"),
        Row("A.1, the same: h", worst["h"], 0.0, 1e-9, "theory"),
        Row("A.1 with q_f2 for q̇_f2, as y_2 is printed: h", worst["h printed"]),
    ]
    single = FlexibleSystem("mobile", 1.0, ((arm.links[1],),), "one link on a free base")
    worst = dict.fromkeys(("M", "h", "M printed"), 0.0)
    for q, v in random_states(5):
        mask = np.array([False, False, False, True, True])
        q, v = np.where(mask, 0.02 * q, q), np.where(mask, 0.2 * v, v)
        M, h = expanded(single, True, q, v)
        states = (float(q[2]), q[3:]), (float(v[2]), v[3:])
        A, b = mobile_link(second, *states)
        wrong, _ = mobile_link(second, *states, sign=1.0)
        scale = np.abs(M).max(), np.abs(h).max()
        worst["M"] = max(worst["M"], float(np.abs(A.sum - M).max()) / scale[0])
        worst["h"] = max(worst["h"], float(np.abs(b.sum - h).max()) / scale[1])
        worst["M printed"] = max(worst["M printed"], float(np.abs(wrong.sum - M).max()) / scale[0])
    rows += [
        Row("A.2, a mobile link with a payload: M", worst["M"], 0.0, 1e-9, "theory"),
        Row("A.2, the same: h", worst["h"], 0.0, 1e-9, "theory"),
        Row("A.2 with H_f1,y as printed: M", worst["M printed"]),
    ]
    beam = FlexibleBeam(1.0, STIFFNESS, DENSITY, 3)
    own = beam.stations(POINTS)
    mine = {
        "a12, ∫ x σ": np.einsum("n,n,ni->i", own["mass"], own["x"], own["sigma"]) / DENSITY,
        "a21, ∫ σ": np.einsum("n,ni->i", own["mass"], own["sigma"]) / DENSITY,
        "a23, ∫ (1 - x) σ' σ'": np.einsum("n,nij->ij", own["mass"], own["S"]) / DENSITY,
        "a15, ∫ (1 - x²) σ' σ'": 2.0
        * np.einsum("n,n,nij->ij", own["mass"], own["x"], own["S"])
        / DENSITY,
    }
    values = list[Row]()
    for name, found in mine.items():
        other = np.array(reference("modal")["constants"][name.split(",")[0]])
        k = int(np.abs(found - other).argmax())
        pair = float(found.ravel()[k]), float(other.ravel()[k])
        values.append(Row(f"{name}, worst", *pair, 1e-9))
    return Outcome(
        [
            Table("Largest difference, as part of the largest entry", rows),
            Table("Integrals", values),
        ]
    )


EXAMPLES = (
    Example(
        "bonaventura-appendix",
        "Bonaventura 2002",
        "Appendix A.1 and A.2: linearised flexible modules in closed form",
        "Mass matrix and velocity terms of two flexible links with a payload (A.1) and of a mobile"
        " flexible link (A.2), to first order in the deflections and their rates, beside the"
        " numerical expansion of"
        ' the exact equations (`linearised("first_order")`), over 20 random states each.',
        "The closed forms are derived anew; entries of the thesis that differ from them (y_2,"
        " H_f1,y) are shown as they would act. In the first-order form all blocks are kept: the"
        " thesis's consistent form drops the products of deflections and their accelerations,"
        " which is why it breaks down ([linearisations](../linearisations.md)).",
        table,
    ),
)
