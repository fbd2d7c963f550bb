"""What derivatives cost, beside Pinocchio and MuJoCo on the same mechanisms, in one run.

    python benchmarks/derivatives.py

Ours and Pinocchio's (``computeConstraintDynamicsDerivatives``) are analytic, of acceleration and
multipliers, each with the acceleration itself. MuJoCo's are forward differences of a step
(``mjd_transitionFD``). In between stands what central differences of our acceleration would cost,
and how far they are from the derivatives. Models without actuators, at their start.
"""

from collections.abc import Callable
from time import process_time

import numpy as np

from bulletbridge.bench.cases import case
from bulletbridge.bench.peers.mujoco import Mujoco
from bulletbridge.bench.peers.ours import Ours
from bulletbridge.bench.peers.pinocchio import Pinocchio
from bulletbridge.bench.problem import Problem
from bulletbridge.engine.derivatives import Differentiator
from bulletbridge.mechanism.kinematics import displace

CASES = ("four_bar", "two_arms", "minitaur", "row5")
DT, REPEATS = 1e-3, 9
LEAST = 0.02  # [s] of a measurement
NUDGE = 1e-5


def cost(function: Callable[[], object]) -> float:
    """Microseconds of processor time a call, the least of several measurements."""
    function()
    begun, count = process_time(), 0
    while process_time() - begun < LEAST:
        function()
        count += 1
    times: list[float] = []
    for _ in range(REPEATS):
        begun = process_time()
        for _ in range(count):
            function()
        times.append((process_time() - begun) / count)
    return 1e6 * min(times)


def of_mujoco(made: Problem) -> tuple[float, float]:
    """A step, and its forward differences."""
    peer = Mujoco(made, DT)
    peer.reset()
    model, data, library = peer.model, peer.data, peer.library
    step = cost(lambda: library.mj_step(model, data))
    peer.reset()
    A = np.zeros((2 * model.nv, 2 * model.nv))
    return step, cost(lambda: library.mjd_transitionFD(model, data, 1e-6, 0, A, None, None, None))


def of_pinocchio(made: Problem) -> tuple[float, float]:
    """The acceleration, and it with its derivatives."""
    peer = Pinocchio(made, DT)
    pin, model, joints = peer.library, *peer._tree()  # pyright: ignore[reportPrivateUsage]
    models, datas = peer._loops(joints, 0.0)  # pyright: ignore[reportPrivateUsage]
    data, none = model.createData(), np.zeros(model.nv)
    settings = pin.ProximalSettings(1e-14, 1e-14, 1e-8, 10)
    pin.initConstraintDynamics(model, data, models, datas)

    def accelerate() -> None:
        pin.constraintDynamics(model, data, peer.q, peer.v, none, models, datas, settings)

    def differentiate() -> None:
        accelerate()
        pin.computeConstraintDynamicsDerivatives(model, data, models, datas, settings)

    return cost(accelerate), cost(differentiate)


def of_ours(made: Problem) -> tuple[float, ...]:
    """Acceleration; derivatives by kernel and by call; central differences, error; of a step."""
    system = Ours(made, DT).system
    solver = system._active.solver  # pyright: ignore[reportPrivateUsage]
    differentiator = Differentiator(solver)
    state = np.array(system.q), np.array(system.v), system.t
    found = differentiator.at(*state, solver.tau[0])
    call, rest = differentiator.call, (solver.still, solver.tau)
    kernel = cost(lambda: call(rest))
    exact = found.X[:, : 2 * len(solver.v)].copy()

    def differences() -> np.ndarray:
        q, v, t = state
        columns: list[np.ndarray] = []
        for way in np.eye(2 * len(v)):
            ends: list[np.ndarray] = []
            for side in (NUDGE, -NUDGE):
                moved = np.empty_like(q)
                displace(solver.bodies, q, side * way[: len(v)], 1.0, moved)
                solver.put(moved, v + side * way[len(v) :], t)
                ends.append(solver.acceleration())
            columns.append((ends[0] - ends[1]) / (2 * NUDGE))
        return np.array(columns).T

    error = float(np.abs(differences() - exact).max() / np.abs(exact).max())
    slow = cost(differences)
    solver.put(*state)
    times = [cost(f) for f in (system.acceleration, system.derivatives, system.step_derivatives)]
    return times[0], kernel, times[1], slow, error, times[2]


def main() -> None:
    """Print a table [µs]."""
    print(
        f"{'':10}{'nv':>4} | {'accel.':>7}{'kernel':>8}{'call':>8}{'differ.':>9}{'error':>9}"
        f"{'step':>8} | {'Pinocchio':>10}{'derivs':>8} | {'mj_step':>8}{'FD':>8} [us]"
    )
    for name in CASES:
        made = case(name)
        accelerate, kernel, call, slow, error, of_step = of_ours(made)
        constrained, derivatives = of_pinocchio(made)
        step, differences = of_mujoco(made)
        print(f"{name:10}{made.mechanism.nv:4} | {accelerate:7.1f}{kernel:8.1f}{call:8.1f}"
              f"{slow:9.0f}{error:9.0e}{of_step:8.0f} | {constrained:10.1f}{derivatives:8.1f} |"
              f" {step:8.1f}{differences:8.1f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
