"""Draw docs/gaps.png: bundled models, and their loop gaps under both solvers.

python benchmarks/gaps.py
"""

import io
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import bulletbridge as bb
from bulletbridge.comparison.native import NativeWorld
from bulletbridge.viewer.pictures import photograph

MODELS = ("four_bar", "stewart", "two_arms", "minitaur")
DURATION = 4.0  # [s]


def main() -> None:
    """Run the models and draw."""
    figure, axes = plt.subplots(
        2, len(MODELS), figsize=(13, 5.2), height_ratios=(1.15, 1), layout="constrained"
    )
    for picture, graph, name in zip(*axes, MODELS, strict=True):
        with bb.load(name) as model:
            system = model.system
            native = NativeWorld(model.spec, system.q, system.v, system.dt)
            start = system.q
            times: list[float] = []
            ours: list[float] = []
            theirs: list[float] = []
            for _ in range(round(DURATION / system.dt)):
                system.step(write=False)
                times.append(system.t)
                ours.append(system.evaluate().largest("kept_metres"))
                theirs.append(system.evaluate(*native.step()).largest("kept_metres"))
            native.close()
            png = photograph(model.spec, [start], [start])[0]
        picture.imshow(plt.imread(io.BytesIO(png)))
        picture.axis("off")
        picture.set_title(name)
        graph.semilogy(times, np.maximum(theirs, 1e-17), color="#d1495b", label="Bullet")
        graph.semilogy(times, np.maximum(ours, 1e-17), color="#0b6e4f", label="bulletbridge")
        graph.set_ylim(1e-17, 1e-1)
        graph.set_xlabel("time [s]")
        graph.grid(alpha=0.3)
    axes[1, 0].set_ylabel("gap [m], step 1/240 s")
    axes[1, 0].legend(loc="center right")
    figure.savefig(Path(__file__).parents[1] / "docs" / "gaps.png", dpi=90)


if __name__ == "__main__":
    main()
