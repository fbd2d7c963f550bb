"""Three links whose tip follows an ellipse: modified integration with three metrics.

Eun and others' second application as a system of joints: springs and dampers in them, the tip held
on a frame that is led along the ellipse, disturbances on the ends of links 1 and 2 as wrenches in
the axes of the world. The modified integration keeps the velocity constraints whatever the metric;
the gap of the tip is then that of a quadrature, and a thousand times smaller than without.
"""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from _drawn import Array, Solid, between, plotted, run, show

import bulletbridge as bb
from bulletbridge.formulations.classics import three_link as paper
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.model import Mechanism

DURATION, STEPS = 5.0, 500
LENGTH = paper.LENGTH.tolist()
COLOURS = (0.7, 0.4, 0.2), (0.2, 0.5, 0.8), (0.2, 0.6, 0.35)
TO_ABSOLUTE = np.tril(np.ones((3, 3)))  # rates of the paper's angles, which are absolute
WEIGHTS = {"I": (1.0, 1.0, 1.0), "diag(7,3,7)": (7.0, 3.0, 7.0), "diag(1,3,5)": (1.0, 3.0, 5.0)}


def arm() -> Mechanism:
    """The three links in the plane x, y; joint angles are those between neighbours."""
    made, on, at = empty_mechanism((0.0, -paper.GRAVITY, 0.0)), "world", 0.0
    for k, length in enumerate(LENGTH):
        load = Load(float(paper.MASS[k]), (length / 2, 0, 0), (0, 0, float(paper.INERTIA[k])))
        link = f"link_{k + 1}"
        made = with_joint(made, f"joint_{k + 1}", "revolute", link, on, (at, 0, 0), load=load)
        on, at = link, length
    axes = made.axes.copy()
    axes["stiffness"], axes["damping"] = paper.STIFFNESS, paper.DAMPING
    return replace(made, axes=axes)


def led() -> bb.Motion:
    """The point of the world that the tip is held on."""

    def x(t: float) -> tuple[float, float, float]:
        a, w, phase = paper.SEMI_X, paper.RATE, math.pi - paper.RATE * t
        return a * math.cos(phase), a * w * math.sin(phase), -a * w * w * math.cos(phase)

    def y(t: float) -> tuple[float, float, float]:
        b, w, phase = paper.SEMI_Y, paper.RATE, math.pi - paper.RATE * t
        return b * math.sin(phase), -b * w * math.cos(phase), -b * w * w * math.sin(phase)

    return bb.Motion(x=x, y=y)


def first(t: float) -> tuple[float, float, float]:
    """Disturbance on the end of link 1 [N]."""
    return 20.0 * math.sin(5.0 * t), 50.0 * math.sin(3.0 * t), 0.0


def second(t: float) -> tuple[float, float, float]:
    """Disturbance on the end of link 2 [N]."""
    return 100.0 * math.sin(3.0 * t), 10.0 * math.sin(t), 0.0


def disturbances() -> dict[str, bb.Wrench]:
    """Forces on the ends of links 1 and 2, in the axes of the world."""
    ends = [bb.Frame(f"link_{k + 1}", (LENGTH[k], 0, 0)) for k in range(2)]
    world = bb.Frame("world")
    return {
        function.__name__: bb.Wrench(end, function, axes=world)
        for function, end in zip((first, second), ends, strict=True)
    }


def robot(weights: tuple[float, ...] | None, dt: float) -> bb.System:
    """The robot at the paper's start; without weights uncorrected RK4."""
    centre = paper.tip(paper.START) + [paper.SEMI_X, 0.0]
    frame = bb.Frame("world", (*centre.tolist(), 0.0))
    tip = bb.LoopJoint(
        "tip", bb.JointModel.BALL, frame, bb.Frame("link_3", (LENGTH[2], 0, 0)), motion=led()
    )
    joining, forces = [tip], disturbances()
    if weights is None:
        system = bb.System(
            arm(), joining, forces=forces, dt=dt,
            integrator="rk4", passes=0, velocity_filter=False,
        )  # fmt: skip
    else:
        H = TO_ABSOLUTE.T @ np.diag(weights) @ TO_ABSOLUTE
        system = bb.System(arm(), joining, forces=forces, dt=dt, weighting=H)
    angles, speeds = paper.START, paper.SPEED  # absolute
    system.set_state(np.diff(angles, prepend=0.0), np.diff(speeds, prepend=0.0))
    return system


def follow(weights: tuple[float, ...] | None, steps: int) -> tuple[Array, Array, Array]:
    """Times [s], absolute angles, and distance of the tip from the ellipse in x and y [m]."""
    system = robot(weights, DURATION / steps)
    start = system.q
    recording = system.rollout(steps)
    times = np.r_[0.0, recording.t]
    angles = np.vstack([start, recording.q]) @ TO_ABSOLUTE.T
    errors = [paper.ThreeLink().equations(q, q, t).g for t, q in zip(times, angles, strict=True)]
    return times, angles, np.array(errors)


def joints(q: Array) -> Array:
    """Ends of the links (4, 3) [m]."""
    x, y = np.cumsum(LENGTH * np.cos(q)), np.cumsum(LENGTH * np.sin(q))
    return np.vstack([np.zeros(3), np.column_stack([x, np.zeros(3), y])])


def main(gui: bool = False, plot: Path | None = None, steps: int = STEPS) -> float:
    """Follow the ellipse for 5 s with three metrics; return the largest gap of them [m]."""
    runs = {name: follow(weights, steps) for name, weights in [*WEIGHTS.items(), ("none", None)]}
    gaps = {name: np.linalg.norm(errors, axis=1) for name, (_, _, errors) in runs.items()}
    largest = {name: float(gap.max()) for name, gap in gaps.items()}
    plotted(plot, "gap of the tip [m]", {n: (runs[n][0][1:], gap[1:]) for n, gap in gaps.items()})
    path = runs["I"][1]

    def poses(t: float) -> list[tuple[Array, Array]]:
        points = joints(path[min(int(t / DURATION * steps), steps)])
        return [between(a, b) for a, b in zip(points[:-1], points[1:], strict=True)]

    solids = [Solid((0.04, size), colour) for size, colour in zip(LENGTH, COLOURS, strict=True)]
    ellipse = {"the tip's path": np.array([joints(q)[-1] for q in path[:: max(1, steps // 100)]])}
    show(gui, solids, DURATION, poses, (0.1, 0, 1.2), 3.5, trails=ellipse)
    print(", ".join(f"{name} {gap:.1e} m" for name, gap in largest.items()))
    return max(gap for name, gap in largest.items() if name != "none")


if __name__ == "__main__":
    run(main, __doc__)
