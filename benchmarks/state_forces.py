"""Forces of the state and modified integration: orders, errors, costs.

    python benchmarks/state_forces.py

The first table has the order of each integrator on a four-bar whose crank and coupler are pushed by
functions of the state; the second the cost of a step without forces, with compiled functions and
with Python's; the third the docking of the space arm against a reference of twelve digits, with
loads taken at every stage and with ``tau`` set before each step; the last the modified integration
of Eun and others beside RK4 with correction and filter.
"""

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import bulletbridge as bb
from bulletbridge.papers.docking import ANGLES, DURATION, loads_on_station, wrenches

Array = NDArray[np.float64]
SPAN = 0.4  # [s]
MODELS = ("four_bar", "stewart", "minitaur", "space_arm", "ball_chain")


def swing(t: float, q: Array, v: Array) -> float:
    """Torque on the crank [N m]."""
    return -2.0 * np.sin(q[0]) * (1.0 + 0.3 * np.cos(3.0 * t)) - 0.2 * v[0] * abs(v[0])


def push(t: float, q: Array, v: Array) -> tuple[float, float, float]:
    """Force on the coupler [N]."""
    return 0.5 * np.cos(q[0]) - 0.3 * v[0], 0.4 * np.sin(2.0 * t), 0.2 * q[0] * v[0]


def end_of(steps: int, **options: Any) -> Array:
    """Where the pushed four-bar ends after SPAN."""
    forces = {"crank": swing, "blow": bb.Wrench(bb.Frame("coupler", (0.3, 0.1, 0)), push)}
    with bb.load("four_bar", "new", forces=forces, dt=SPAN / steps, limits=False, **options) as m:
        m.system.rollout(steps)
        return np.concatenate([m.system.q, m.system.v])


def show_orders() -> None:
    """Order of each integrator."""
    exact = end_of(1, integrator="dop853", rtol=1e-13, atol=1e-13)
    print(f"{'integrator':22} {'error, 64 steps':>16} {'order':>6}")
    for name in ("euler", "semi_implicit_euler", "verlet", "heun", "trapezoidal", "symmetric",
                 "rk4", "nystrom4"):  # fmt: skip
        coarse, fine = (np.abs(end_of(n, integrator=name) - exact).max() for n in (64, 128))
        print(f"{name:22} {coarse:16.1e} {np.log2(coarse / fine):6.2f}", flush=True)
    for name, steps in (("dop853", (8, 16)), ("radau", (32, 64))):
        coarse, fine = (np.abs(end_of(n, integrator=name, rtol=None) - exact).max() for n in steps)
        said = f"{name}, {steps[0]} steps"
        print(f"{said:22} {coarse:16.1e} {np.log2(coarse / fine):6.2f}", flush=True)


def cost(run: Callable[[], object], steps: int) -> float:
    """Cost of a step [µs], the least of five runs."""
    times: list[float] = []
    for _ in range(5):
        begun = perf_counter()
        run()
        times.append(perf_counter() - begun)
    return 1e6 * min(times) / steps


def show_costs() -> None:
    """Cost of a step of each kind of function."""
    place = bb.Frame("coupler", (0.3, 0.1, 0))
    kinds: dict[str, dict[str, Any]] = {
        "none": {},
        "compiled": {"crank": numba.njit(swing), "blow": bb.Wrench(place, numba.njit(push))},
        "python": {"crank": swing, "blow": bb.Wrench(place, push)},
    }
    print(f"\n{'four_bar, a step [us]':22}" + "".join(f"{kind:>10}" for kind in kinds))
    for name in ("semi_implicit_euler", "verlet", "rk4", "dop853", "radau", "heun"):
        cells = ""
        for forces in kinds.values():
            options: Any = {"rtol": None} if name in ("dop853", "radau") else {}
            with bb.load("four_bar", "new", integrator=name, dt=1e-3, limits=False, forces=forces,
                         **options) as model:  # fmt: skip
                steps = 50 if name == "heun" else 1000
                cells += f"{cost(lambda: model.system.rollout(steps), steps):10.1f}"  # noqa: B023
        print(f"{name:22}{cells}", flush=True)


def show_docking() -> None:
    """Error of the joint angles at the end."""
    print(f"\n{'docking, h':22} {'every stage':>12} {'tau held':>12}  [rad]")
    for name, h in (("rk4", 0.2), ("rk4", 0.1), ("rk4", 0.05), ("nystrom4", 0.1), ("verlet", 0.05),
                    ("dop853", 1.0), ("radau", 1.0)):  # fmt: skip
        asked = dock(name, h, wrenches(), held=False)
        held = f"{dock(name, h, {}, held=True):12.1e}" if name in ("rk4", "verlet") else ""
        print(f"{f'{name} {h:g}':22} {asked:12.1e} {held}", flush=True)


def dock(name: Any, h: float, forces: dict[str, Any], held: bool) -> float:
    """Largest error of a joint angle [rad], loads at every stage or by ``tau`` before each step."""
    with bb.load("space_arm", "new", integrator=name, dt=h, forces=forces) as model:
        system = model.system
        system.set_state(v=np.zeros(system.mechanism.nv))
        if not held:
            system.run(DURATION)
        for _ in range(round(DURATION / h) if held else 0):
            force, torque, joints = loads_on_station(system.t)
            frame = bb.Frame("station", (15.0, 0.0, -4.0))
            R = system.kinematics().point(frame).R_W
            tau = system.wrench(frame, R @ force, R @ torque)
            tau[6:] += joints
            system.tau[:] = tau
            system.step()
        return float(np.abs(system.q[7:] - ANGLES).max())


def show_modified() -> None:
    """Gap, energy, order and cost with each weighting."""
    print(f"\n{'0.4 s by RK4, 2 ms':14} {'weighting':11} {'gap [m]':>9} {'J v':>8} {'energy':>9}"
          f" {'error':>9} {'order':>6} {'us':>6}")  # fmt: skip
    for model in MODELS:
        with bb.load(model, "new", integrator="dop853", dt=0.1, rtol=1e-13, atol=1e-13,
                     limits=False) as exact:  # fmt: skip
            begun = exact.system.evaluate().energy
            exact.system.run(SPAN)
            truth = np.concatenate([exact.system.q, exact.system.v])
            change = exact.system.evaluate().energy - begun
        for weighting in (None, "condensed", "mass", "identity"):
            errors: list[float] = []
            line, each = "", 0.0
            for h in (4e-3, 2e-3):
                options: Any = {"weighting": weighting} if weighting else {"integrator": "rk4"}
                with bb.load(model, "new", dt=h, limits=False, **options) as made:
                    system, start = made.system, process_time()
                    system.run(SPAN)
                    each = 1e6 * (process_time() - start) / (SPAN / h)
                    end = system.evaluate()
                    errors.append(float(np.abs(np.concatenate([system.q, system.v]) - truth).max()))
                    gap, rate = end.largest("kept_metres"), end.largest("kept_rate_metres")
                    line = f"{gap:9.1e} {rate:8.0e} {abs(end.energy - begun - change):9.1e}"
            order = np.log2(errors[0] / errors[1])
            print(f"{model:18} {weighting or 'none':11} {line} {errors[1]:9.1e} {order:6.2f}"
                  f" {each:6.0f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    show_orders()
    show_costs()
    show_docking()
    show_modified()
