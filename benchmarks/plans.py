"""What the gradient of a trajectory costs beside the trajectory, and an iteration of a plan.

    OPENBLAS_NUM_THREADS=1 python benchmarks/plans.py

The adjoint is that of 1000 steps of 1 ms with a quadratic cost that has its own derivatives, then
with one of the end alone, then with a derivative by a parameter; a plan has 100 knots of 10 ms,
with one step each and with ten. All by processor time, the least of some runs.
"""

from collections.abc import Callable
from time import process_time

import numpy as np

import bulletbridge as bb
from bulletbridge.control.ilqr import Search, Trajectory
from bulletbridge.control.trajectories import Trajectories

MODELS = {"four_bar": ("crank",), "two_arms": None, "minitaur": None}
STEPS, KNOTS, RUNS = 1000, 100, 5


def seconds(function: Callable[[], object]) -> float:
    """Processor time, the least of some runs."""
    function()
    times: list[float] = []
    for _ in range(RUNS):
        begun = process_time()
        function()
        times.append(process_time() - begun)
    return min(times)


def joints_of(system: bb.System, given: tuple[str, ...] | None) -> list[str]:
    """What is pushed: motors, or all joints with one axis."""
    single = [name for name, joint in system.mechanism.joints.items() if joint.is_single]
    motors = [name for name in single if name.startswith("motor")]
    return list(given or motors or single)


def cost_of(system: bb.System, joints: list[str]) -> bb.QuadraticCost:
    """To stay where it is with little force."""
    Q = dict.fromkeys(joints, 1.0)
    return bb.QuadraticCost(system.mechanism, system.q, Q=Q, R=dict.fromkeys(joints, 1e-3))


def main() -> None:
    """Print a table."""
    print(
        "model       rollout    adjoint, ratio   of the end   and by a mass [ms]"
        "   iteration of 1 step a knot, of 10 [s]"
    )
    for name, given in MODELS.items():
        system = bb.load(name, "new", dt=1e-3, limits=False).system
        joints = joints_of(system, given)
        cost, start = cost_of(system, joints), system.save()
        tau = np.zeros((STEPS, system.mechanism.nv))

        def roll(system: bb.System = system, start: bb.SavedState = start) -> None:
            system.restore(start)
            system.rollout(STEPS)

        forward = seconds(roll)
        system.restore(start)
        found = bb.rollout_gradient(system, tau, cost, cost)
        assert not len(found.differences), found.reasons
        mass = [name for name in system.parameters if name.endswith(".mass")][:1]
        none = list[str]()
        ways = (cost, none), (None, none), (cost, mass)
        back = [
            seconds(
                lambda s=system, c=cost, f=tau, r=running, p=names: bb.rollout_gradient(
                    s, f, r, c, parameters=p
                )
            )
            for running, names in ways
        ]
        taken = list[float]()
        for every in (1, 10):
            system.dt = 0.01 / every
            guess = {joint: np.zeros(KNOTS) for joint in joints}
            search = Search(Trajectories(system), guess, (cost, cost), None, every)
            best = search.follow(None, search.u, None, 0.0)

            def iterate(s: Search = search, best: Trajectory = best) -> None:
                knots, last = s.expand(best)
                better, _ = s.improve(knots, last, best.u, 0.0)
                s.follow(best, best.u, better, 1.0)

            taken.append(seconds(iterate))
        print(
            f"{name:10} {1e3 * forward:8.1f} {1e3 * back[0]:10.1f} {back[0] / forward:6.1f}"
            f" {1e3 * back[1]:12.1f} {1e3 * back[2]:12.1f}           {taken[0]:.2f} {taken[1]:.2f}"
        )


if __name__ == "__main__":
    main()
