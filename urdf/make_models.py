"""Write the bundled models: meshes, URDFs, loops files, and the table in README.md.

Needs trimesh, SciPy, ruamel.yaml and PyBullet's data. Running it again gives the same files, byte
for byte; ``--into FOLDER`` writes elsewhere, for comparison.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from generator import arms, grippers, legs, planar, platforms, sliders, spatial  # noqa: E402
from generator.table import readme  # noqa: E402
from generator.urdf_writer import Model, write  # noqa: E402


def models() -> list[Model]:
    """All bundled models."""
    return [
        planar.four_bar(),
        planar.parallelogram(),
        planar.five_bar(),
        sliders.slider_crank(),
        sliders.triple_slider_crank(),
        platforms.stewart(),
        platforms.delta(),
        spatial.bricard(),
        arms.space_arm(),
        spatial.ball_chain(),
        spatial.minitaur(),
        arms.two_arms(),
        grippers.gripper(),
        legs.biped(),
    ]


def main(arguments: list[str] | None = None) -> int:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=HERE, help="folder to write to")
    folder = parser.parse_args(arguments).into
    everything = models()
    for model in everything:
        write(model, folder)
    (folder / "README.md").write_text(readme(everything, folder), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
