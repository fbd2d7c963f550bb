"""One flexible link driven through half a turn, as chains of 4 to 20 segments.

    python benchmarks/segments.py [--json FILE]

System 1 of the modular paper: 1 m, EI 3.73333 N m², 0.448 kg/m, joint torque 0.02948 sin(2 pi t/10)
N m for 10 s. Each line has the largest difference to the modal model with two modes at whole
seconds, of the angle of the joint [deg] and of the tip [m], the largest deflection of the tip [m],
and the time a step takes [µs]. The difference stops falling where that of the two modes to the beam
begins: 4.9e-4 deg and 2.6e-6 m against three modes.
"""

import argparse
import math
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

import bulletbridge as bb
from bulletbridge.bullet.silence import silenced_bullet
from bulletbridge.console import write_json
from bulletbridge.models.flexible.make_flexible import Flexibility, make_flexible
from bulletbridge.models.loops_file import read_loops

EI, MASS, LENGTH = 3.73333, 0.448, 1.0  # [N m²], [kg], [m]
TORQUE, PERIOD = 0.02948, 10.0  # [N m], [s]
ACROSS = 1e-9  # [kg m²] second moment of the sections, which the beam neglects
MODAL = {  # t [s]: angle of the root [deg], tip [m], its deflection [m], by two modes
    2: (8.85575022116, (0.988391845092, 0.151924028591), -0.0020473395),
    4: (55.2284464859, (0.5713409432, 0.820712666302), -0.0012607943),
    6: (124.788160747, (-0.571586475117, 0.820541681552), 0.0012701453),
    8: (171.161216828, (-0.98843690936, 0.151630562653), 0.0020481145),
    10: (180.017248542, (-0.999999956424, -0.000295163884186), -5.879965e-06),
}
RUNS = (  # segments, integrator, step [s]
    (4, "rk4", 2.5e-4),
    (6, "rk4", 2.5e-4),
    (8, "rk4", 2e-4),
    (10, "rk4", 1e-4),
    (20, "rk4", 2.5e-5),
    (8, "semi_implicit_euler", 1e-3),
    (8, "semi_implicit_euler", 1 / 240),
)


@dataclass(frozen=True)
class Line:
    """One run against the modal model; see the head of the file."""

    segments: int
    integrator: str
    dt: float
    angle_deg: float
    tip_m: float
    largest_deflection_m: float
    end_deg: float
    step_us: float


def write_beam(folder: Path) -> Path:
    """The link on its joint, a rod along x."""
    inertia = MASS * LENGTH**2 / 12
    path = folder / "beam.urdf"
    path.write_text(
        f"""<robot name="system_1"><link name="base"/>
<link name="beam"><inertial><origin xyz="{LENGTH / 2} 0 0"/><mass value="{MASS}"/>
<inertia ixx="{ACROSS}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><origin xyz="{LENGTH / 2} 0 0"/>
<geometry><box size="{LENGTH} 0.01 0.04"/></geometry></visual>
</link><joint name="shoulder" type="continuous"><parent link="base"/><child link="beam"/>
<axis xyz="0 0 1"/></joint></robot>""",
        encoding="utf-8",
    )
    return path


def run(segments: int, integrator: str, dt: float, duration: float = PERIOD) -> Line:
    """Drive the chain, the torque held at what it is at the middle of each step."""
    how = Flexibility("beam", segments, EI_z=EI, direction=(LENGTH, 0.0, 0.0))
    with silenced_bullet(), tempfile.TemporaryDirectory() as folder:
        made = make_flexible(write_beam(Path(folder)), how, Path(folder, "flexible.urdf"))
        spec = replace(read_loops(made.loops), gravity=(0.0, 0.0, 0.0))
        options = {"integrator": integrator, "dt": dt}
        with bb.load(spec, **options) as model:  # type: ignore[arg-type]
            return _drive(model.system, segments, integrator, dt, duration)


def _drive(system: bb.System, segments: int, integrator: str, dt: float, duration: float) -> Line:
    joint = system.mechanism.joint("shoulder")
    angle_error = tip_error = largest = angle = 0.0
    count = round(duration / dt)
    begun = perf_counter()
    for n in range(count):
        system.tau[joint.v] = TORQUE * math.sin(2.0 * math.pi * (n + 0.5) * dt / PERIOD)
        system.step(write=False)
        t = (n + 1) * dt
        if (n + 1) % 200 and abs(t - round(t)) > 0.25 * dt:
            continue
        angle = float(system.q[joint.q][0])
        tip = system.kinematics().point(bb.Frame("beam", (LENGTH, 0.0, 0.0))).p_W
        largest = max(largest, abs(tip[1] * math.cos(angle) - tip[0] * math.sin(angle)))
        whole = round(t)
        if abs(t - whole) < 0.25 * dt and whole in MODAL:
            expected, place, _ = MODAL[whole]
            angle_error = max(angle_error, abs(math.degrees(angle) - expected))
            tip_error = max(tip_error, float(np.hypot(tip[0] - place[0], tip[1] - place[1])))
    step_us = 1e6 * (perf_counter() - begun) / count
    end = math.degrees(angle)
    return Line(segments, integrator, dt, angle_error, tip_error, largest, end, step_us)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="System 1 as chains of segments.")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    lines: list[Line] = []
    print("segments integrator           dt [s]   angle [deg]  tip [m]  largest [m]  end [deg]  µs")
    for segments, integrator, dt in RUNS:
        line = run(segments, integrator, dt)
        lines.append(line)
        print(
            f"{segments:8} {integrator:20} {dt:.2e} {line.angle_deg:12.2e} {line.tip_m:8.1e}"
            f" {line.largest_deflection_m:12.7f} {line.end_deg:10.5f} {line.step_us:5.1f}",
            flush=True,
        )
    if given.json:
        content = {"system": "System 1, two modes", "runs": [asdict(line) for line in lines]}
        write_json(given.json, content)


if __name__ == "__main__":
    main()
