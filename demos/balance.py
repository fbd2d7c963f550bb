"""A pendulum on the rocker of a four-bar, balanced by its crank alone: LQR on closed loops.

Like Furuta's pendulum, but the arm is driven through a linkage. In one turn of the rocker x and one
of the pendulum y the linearised motion is M (x'', y'') = (u, m g l y): the rate at which the
pendulum falls, and how fast it comes back under the gains, follow in closed form.
"""

from pathlib import Path

import numpy as np
from _show import play, run, show, window
from numpy.typing import NDArray
from scipy.linalg import expm

import bulletbridge as bb

Array = NDArray[np.float64]

MODEL = Path(__file__).parent / "balance.loops.yaml"
DT, TILT, DURATION = 1 / 240, 0.02, 4.0  # [s], [rad], [s]
ARM, LEVER, MASS, GRAVITY = 0.3, 0.2, 0.2, 9.81  # [m], [m], [kg], [m/s²]
BARS = 0.2, 0.45, 0.25  # crank, coupler, rocker up to the pin [m]
CENTRES = 0.1, 0.225, 0.15  # [m]
MASSES, INERTIAS = np.array([0.4, 0.3, 0.5]), np.array([0.0014, 0.0051, 0.0038])


def linear(q: Array) -> tuple[Array, float]:
    """M (2, 2) of the turns of rocker and pendulum, and the rate of the crank by the rocker's."""
    turns = np.array([q[0], q[0] + q[1], q[2]])  # from the world
    across = np.column_stack([-np.sin(turns), np.cos(turns)])
    # crank tip + coupler = pivot + rocker, differentiated by the turn of the rocker
    legs = np.array([BARS[0] * across[0], BARS[1] * across[1]]).T
    driven: Array = np.asarray(np.linalg.solve(legs, BARS[2] * across[2]), np.float64)
    rates = np.append(driven, 1.0)
    centres = np.array([[CENTRES[0], 0, 0], [BARS[0], CENTRES[1], 0], [0, 0, CENTRES[2]]])
    speeds = centres @ (rates[:, None] * across)
    carried = float(MASSES @ (speeds**2).sum(axis=1) + INERTIAS @ rates**2)
    arm = carried + MASS * ARM**2 + 0.0001  # and the pendulum about its own length
    swing = MASS * LEVER**2 + 0.0027
    M = np.array([[arm, -MASS * ARM * LEVER], [-MASS * ARM * LEVER, swing]])
    return M, float(rates[0])


def main(gui: bool = False) -> float:
    """Let the pendulum tilt and bring it back; return how far off its decay is, relative."""
    with window(gui, str(MODEL)) as client:
        system = bb.load(MODEL, client, dt=DT).system
        show(system, gui)
        M, ratio = linear(system.q)
        falls = np.sqrt(MASS * GRAVITY * LEVER * M[0, 0] / np.linalg.det(M))
        found = bb.modes(system).eigenvalues.real.max()
        regulator = bb.lqr(
            system,
            {"rocker": 4.0, "pendulum": 40.0, "rocker.rate": 0.2, "pendulum.rate": 0.2},
            {"crank": 1.0},
            inputs=["crank"],
            states=["rocker", "pendulum"],
        )
        A, B = np.zeros((4, 4)), np.zeros((4, 1))
        A[:2, 2:] = np.eye(2)
        A[2:, 1] = np.linalg.solve(M, [0.0, MASS * GRAVITY * LEVER])
        B[2:, 0] = np.linalg.solve(M, [ratio, 0.0])
        whole = np.block([[A, B], [np.zeros((1, 5))]]) * DT
        step = expm(whole)
        slowest = np.abs(np.linalg.eigvals(step[:4, :4] - step[:4, 4:] @ regulator.K)).max()
        system.assemble({"crank": np.pi / 2, "pendulum": TILT})
        errors = list[Array]()
        for _ in range(round(DURATION / DT)):
            errors.append(regulator.error(system.q, system.v))
            system.tau[:] = regulator(system.q, system.v)
            play(system, DT, gui)
        tilt = abs(system.q["pendulum"])
        gap = system.evaluate().largest("metres")
    cost = np.sqrt([x @ regulator.P @ x for x in errors])
    first, last = len(cost) // 2, len(cost) - 1
    decay = float((cost[last] / cost[first]) ** (1.0 / (last - first)))
    error = abs(np.log(decay) / np.log(slowest) - 1.0)
    print(
        f"falls by e in {1 / found:.3f} s, closed form {1 / falls:.3f} s; comes back by e in"
        f" {-DT / np.log(decay):.3f} s, {error:.1e} off theory; tilt at the end"
        f" {tilt:.0e} rad, gap {gap:.0e} m"
    )
    return float(error)


if __name__ == "__main__":
    run(main, __doc__)
