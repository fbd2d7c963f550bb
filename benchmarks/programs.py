"""Every program of PyBullet's wheel that creates constraints, headless, on both solvers.

    python benchmarks/programs.py [--steps N] [--mode MODE] [--json FILE] [NAME ...]

Prints a table in Markdown; our gaps are those of constraints that we close. Kept gaps are without
directions that are redundant by design. The classes under pybullet_envs/minitaur/robots need
absl-py, gin-config, attrs and protobuf, which PyBullet does not bring; gym is stood in for.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pybullet_data

from bulletbridge.console import write_json

WHEEL = Path(pybullet_data.getDataPath()).parent
HERE = Path(__file__).parent
TIME_LIMIT = 900  # [s] of both runs
STAND_INS = HERE / "stand_ins"
CLASSES = HERE / "wheel_classes.py"
PROGRAMS: dict[str, tuple[str, ...]] = {
    "pybullet_examples/constraint.py": (),
    "pybullet_examples/mimicJointConstraint.py": (),
    "pybullet_examples/vr_kuka_setup.py": (),
    "pybullet_examples/humanoidMotionCapture.py": (),
    "pybullet_examples/inverse_kinematics_husky_kuka.py": (),
    "pybullet_robots/panda/loadpanda_grasp.py": (),
    "pybullet_envs/examples/kuka_setup.py": (),
    "pybullet_envs/examples/minitaur_gym_env_example.py": ("--env", "0"),
    "pybullet_envs/examples/racecarGymEnvTest.py": (),
    "pybullet_envs/deep_mimic/env/testLaikago.py": (),
    "envs_minitaur": (),
    "envs_derpy": (),
    "envs_rainbow_dash": (),
    "racecar": (),
    "robots_minitaur": (),
    "robots_minitaur_rack": (),
    "robots_minitaur_v2": (),
    "autonomous_object": (),
}
"""Arguments by path in the wheel, or by name in wheel_classes.py."""

HEADINGS = (
    *("program", "constraints", "steps", "largest gap, Bullet", "kept, Bullet"),
    *("largest gap, ours", "kept, ours", "time ratio", "remarks"),
)


def command_of(name: str) -> list[str]:
    """Path of a program, and its arguments."""
    return [str(WHEEL / name), *PROGRAMS[name]] if "/" in name else [str(CLASSES), name]


def compare(name: str, steps: int, mode: str) -> dict[str, Any]:
    """What ``bulletbridge run --compare`` found, or an error."""
    places = (str(STAND_INS), *os.environ.get("PYTHONPATH", "").split(os.pathsep))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(Path(place).resolve()) for place in places if place),
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python",
    }
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "found.json"
        options = ["--headless", "--steps", str(steps), "--mode", mode]
        options += ["--compare", "--json", str(file)]
        command = [sys.executable, "-m", "bulletbridge", "run", *options, *command_of(name)]
        try:
            subprocess.run(
                command,
                cwd=directory,
                env=environment,
                capture_output=True,
                timeout=TIME_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"failure": f"not done after {TIME_LIMIT} s"}
        return json.loads(file.read_text()) if file.exists() else {"failure": "no result"}


def row(name: str, found: dict[str, Any]) -> str:
    """A line of the table."""
    if "failure" in found:
        return line(name, *[""] * (len(HEADINGS) - 2), found["failure"])
    ours, native = found["ours"], found["native"]
    closed = [seen for seen in ours["seen"] if seen["exact"]]
    alone = {(seen["client"], seen["number"]): seen for seen in native["seen"]}
    remarks = sorted(
        {remark(seen, alone.get((seen["client"], seen["number"]))) for seen in ours["seen"]} - {""}
    )
    if native["error"]:
        remarks.append(f"natively: {native['error']}")
    if ours["error"] and ours["error"] != native["error"]:
        remarks.append(f"ours: {ours['error']}")
    if not ours["ended"] and not ours["error"]:
        remarks.append("ends by itself")
    ratio = found["time_ratio"]
    return line(
        name,
        counts(ours["seen"]),
        str(ours["steps"]),
        largest(native["seen"], "gap"),
        largest(native["seen"], "kept"),
        largest(closed, "gap"),
        largest(closed, "kept"),
        "" if ratio is None else f"{ratio:.2f}",
        "; ".join(remarks),
    )


def counts(seen: list[dict[str, Any]]) -> str:
    """Constraints by kind."""
    kinds = [one["kind"] for one in seen]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))


def largest(seen: list[dict[str, Any]], what: str) -> str:
    """Largest gaps and gear errors; what: gap or kept."""
    found: list[str] = []
    for key, unit in ((f"{what}_m", "m"), (f"{what}_rad", "rad"), ("rate", "rad/s")):
        values = [one[key] for one in seen if one[key] is not None]
        if any(values):
            found.append(f"{max(values):.1e} {unit}")
    measured = any(one[f"{what}_m"] is not None for one in seen)
    return ", ".join(found) or ("0" if measured else "")


def remark(seen: dict[str, Any], native: dict[str, Any] | None) -> str:
    """What is approximated of a constraint; how far one that may give way is open at the end."""
    if not seen["exact"]:
        return f"{seen['kind']} is Bullet's own: {seen['reason']}"
    if seen["limit"] is None:
        return ""
    limited = f"{seen['kind']} with maxForce {seen['limit']:g}"
    if seen["kind"] == "gear" or native is None:
        return limited
    return f"{limited}: at the end {seen['last_m']:.1e} m, Bullet {native['last_m']:.1e} m"


def line(*cells: str) -> str:
    """Cells of a Markdown table."""
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def main() -> None:
    """Run all or the named ones, print the table, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *PROGRAMS], metavar="NAME")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--mode", choices=["filter", "exact"], default="filter")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(line(*HEADINGS))
    print(line(*["---"] * len(HEADINGS)))
    results: dict[str, Any] = {}
    for name in options.names or PROGRAMS:
        results[name] = compare(name, options.steps, options.mode)
        print(row(name, results[name]), flush=True)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
