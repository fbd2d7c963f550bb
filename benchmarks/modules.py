"""Robots in series: the modular formulation against the dense projector and the default step.

Each module is a free body with two hinges, held by the one before with a ball joint. Times are the
medians of single calls at one random state, those of steps of `rk4` with correction and filter the
medians of processor time, the ways taking turns; exponents are fits of log time over log modules
for the last three sizes. The compiled projector's time is that of one evaluation as the step makes
it.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.console import write_json
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.formulations.modular import Modular
from bulletbridge.formulations.projector import Projector
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.mechanism.model import Joint, Link, Mechanism, empty_arrays
from bulletbridge.mechanism.records import FREE, REVOLUTE
from bulletbridge.numerics.range_space import open_blocks
from bulletbridge.numerics.records import Array
from bulletbridge.system.carrying import where_it_is

SIZES = (5, 10, 20, 50, 100)


def robots(count: int, rng: np.random.Generator) -> Mechanism:
    """Free bodies that carry two links on hinges each, with random sizes."""
    bodies, axes = empty_arrays(3 * count + 1, 8 * count)
    links, joints = dict[str, Link](), dict[str, Joint]()
    q = v = 0
    for i in range(1, 3 * count + 1):
        free = i % 3 == 1
        parent, positions, rates = (0, 7, 6) if free else (i - 1, 1, 1)
        body = bodies[i]
        body["parent"], body["joint"] = parent, FREE if free else REVOLUTE
        body["q"], body["v"], body["axis"] = q, v, v + rates - 1
        body["R"] = np.eye(3) if free else Rotation.random(rng=rng).as_matrix()
        body["p"] = np.zeros(3) if free else rng.normal(0, 0.4, 3)
        body["mass"], body["com"] = rng.uniform(0.5, 3.0), rng.normal(0, 0.2, 3)
        body["J"] = float(body["mass"]) * np.diag(rng.uniform(0.05, 0.07, 3))
        for k in range(v, v + rates):
            axes[k]["body"], axes[k]["q"] = i, -1 if free else q
            axes[k]["below"] = -1 if free and k == v else k - 1
        links[f"link{i}"] = Link(f"link{i}", i, np.eye(3), rng.normal(0, 0.2, 3))
        kind = "free" if free else "revolute"
        joints[f"joint{i}"] = Joint(f"joint{i}", kind, slice(q, q + positions), slice(v, v + rates))
        q, v = q + positions, v + rates
    return Mechanism(bodies, axes, links, joints, np.array([0.0, 0.0, -9.81]))


def series(count: int) -> tuple[list[Constraint], Solver, Array, Array]:
    """``count`` modules in series, closed at a random state."""
    rng = np.random.default_rng(0)
    mechanism = robots(count, rng)
    q, v = rng.normal(0, 0.8, mechanism.nq), rng.normal(0, 1.0, mechanism.nv)
    for k in range(count):
        q[9 * k + 3 : 9 * k + 7] = Rotation.random(rng=rng).as_quat()
    state = q, v
    system = bb.System(mechanism)
    system.set_state(*state)
    kinematics = system.kinematics()
    joints = [
        where_it_is(
            bb.LoopJoint(
                f"joint {k}",
                bb.JointModel.BALL,
                bb.Frame(f"link{3 * k}"),
                bb.Frame(f"link{3 * k + 1}"),
            ),
            kinematics,
        )
        for k in range(1, count)
    ]
    solver = Solver(mechanism, encode_closed(mechanism, joints), Tolerances())
    solver.q[:], solver.v[:] = state
    return joints, solver, *state


def steps(joints: list[Constraint], solver: Solver, turns: int = 15) -> dict[str, float]:
    """Processor time [s] of a step of `rk4` by modules and by default, from one state."""
    found: dict[str, list[float]] = {"modular": [], "projector": []}
    systems: dict[str, bb.System] = {}
    for name in found:
        own = bb.System(solver.mechanism, joints, dt=1e-3, integrator="rk4", formulation=name)
        own.set_state(solver.q.copy(), solver.v.copy())
        own.step()
        systems[name] = own
    for _ in range(turns):
        for name, own in systems.items():
            begun = process_time()
            for _ in range(4):
                own.step()
            found[name].append((process_time() - begun) / 4)
    return {name: float(np.median(times)) for name, times in found.items()}


def median(call: Callable[[], object], seconds: float = 1.0) -> float:
    """Median time of a call [s]."""
    call()
    times: list[float] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(times) < 5:
        begun = perf_counter()
        call()
        times.append(perf_counter() - begun)
    return float(np.median(times))


def exponent(sizes: list[int], times: list[float]) -> float:
    """Slope of log time over log size of the last three."""
    return float(np.polyfit(np.log(sizes[-3:]), np.log(times[-3:]), 1)[0])


def threads(solver: Solver, q: Array, v: Array) -> dict[str, float]:
    """Times [s] of evaluating all modules by themselves, in one thread and in two."""
    e = SystemDynamics(solver).modular_equations(q, v, 0.0)
    parts = list(zip(e.blocks, e.connectivity.pattern.slots, strict=True))
    room = [np.zeros(len(e.connectivity.pattern.indices)) for _ in range(2)]

    def evaluate(half: int, of: int) -> None:
        for b, slots in parts:
            part = slice(half * len(slots) // of, (half + 1) * len(slots) // of)
            open_blocks(b.M[part].copy(), b.J[part].copy(), slots[part], room[half])

    with ThreadPoolExecutor(2) as pool:
        two = median(lambda: list(pool.map(evaluate, (0, 1), (2, 2))))
    return {"one": median(lambda: evaluate(0, 1)), "two": two}


def measure(sizes: list[int]) -> dict[str, object]:
    """Times and differences of every size."""
    rows: list[dict[str, object]] = []
    modular, dense, compiled = list[float](), list[float](), list[float]()
    for count in sizes:
        joints, solver, q, v = series(count)
        tree = SystemDynamics(solver)
        one, other = Modular(tree), Projector(tree)
        a, b = one(q, v, 0.0), other(q, v, 0.0)
        modular.append(median(lambda one=one, q=q, v=v: one(q, v, 0.0)))
        dense.append(median(lambda other=other, q=q, v=v: other(q, v, 0.0)))
        compiled.append(median(solver.acceleration))
        rows.append(
            {
                "modules": count,
                "rates": len(v),
                "rows": solver.encoded.nc,
                "modular_us": round(1e6 * modular[-1], 1),
                "projector_us": round(1e6 * dense[-1], 1),
                "compiled_projector_us": round(1e6 * compiled[-1], 1),
                "vdot_difference": float(np.abs(a.vdot - b.vdot).max() / np.abs(b.vdot).max()),
                "lam_difference": float(np.abs(a.lam - b.lam).max() / np.abs(b.lam).max()),
                "step_us": {k: round(1e6 * s, 1) for k, s in steps(joints, solver).items()},
                "threads_us": {k: round(1e6 * s, 1) for k, s in threads(solver, q, v).items()},
            }
        )
        print(rows[-1])
    names = {"modular": modular, "projector": dense, "compiled_projector": compiled}
    fitted = {name: round(exponent(sizes, times), 2) for name, times in names.items()}
    slope, fixed = np.polyfit(sizes, modular, 1)
    line = {"fixed": round(1e6 * float(fixed), 1), "per_module": round(1e6 * float(slope), 2)}
    return {"series": rows, "exponents": fitted, "modular_line_us": line}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    arguments = parser.parse_args()
    result = measure(arguments.sizes)
    print(result["exponents"], result["modular_line_us"])
    write_json(arguments.json, result)


if __name__ == "__main__":
    main()
