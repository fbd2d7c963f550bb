"""Whether every restore of a state goes on with the same bits, whatever was simulated in between.

    python benchmarks/restores.py [--mode MODE ...] [--restores N] [--steps N] [NAME ...]

Everyday scenes, scenes and programs of ``drop_in.py``, and flexible arms as systems. Each is left
at two points: there its state is saved, and restored time and again after other things were done
(pushes, resets, steps); the same steps, with all that the scene does in them, follow. ``first``:
restored runs that end otherwise than the one that came after ``saveState`` (at the second point,
after a restore); in brackets where the scene has other constraints or frames by then, which no
state holds: that is no fault. The other columns count different ends of restores alike: of this
state, of a file, of the state at the point before. Exits with 1 where one was to be the same and is
not. The order in which Bullet lists contacts does not count: none of its states holds it. Where
``--mode native`` differs too, it is Bullet's fault.
"""

import argparse
import copy
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import daily_scenes
import drop_in
import numpy as np
import programs
import pybullet
from _processes import Line, run_all
from rich.console import Console
from rich.table import Table

import bulletbridge as bb
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.scripts.script import Outcome, Run, Script, run_script
from bulletbridge.drop_in.scripts.step_limit import Ended
from bulletbridge.drop_in.session import REAL_TIME, Session
from bulletbridge.drop_in.settings import Mode
from bulletbridge.errors import BulletBridgeError

MODES: tuple[Mode, ...] = ("native", "filter", "exact")
POINTS = (12, 130)
"""Steps of a scene after which its state is saved."""
LIMIT = 7200.0
"""Processor time that all of a scene may take [s]."""
HINGES = pybullet.JOINT_REVOLUTE, pybullet.JOINT_PRISMATIC
ORDERED = {"deterministicOverlappingPairs": 1}
"""Without which Bullet itself does not go on alike."""
Act = Callable[[int], object]
"""Makes one step, with all that comes before it, by how many were made since ``saveState``."""


class Job(NamedTuple):
    """What is tried: a scene in a mode, so many restores, so many steps after each."""

    kind: str
    name: str
    mode: Mode
    restores: int
    steps: int


class Trial:
    """Saves the state of a client at several points of what it simulates, and restores it.

    Args:
        job: What is tried.

    Attributes:
        rows: What was found, a row for each point.
    """

    def __init__(self, job: Job) -> None:
        self.rows: list[Line] = []
        self._job, self._last = job, -1

    def at(self, p: Any, act: Act, rewind: Callable[[], object] = lambda: None) -> None:
        """Try it here; the client is left where it was.

        Args:
            p: A client, ours or PyBullet's.
            act: Makes a step.
            rewind: Puts back what the program itself remembers.
        """
        job, earlier = self._job, self._last
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file = str(Path(folder) / "world.bullet")
            kept, frames = p.saveState(), constraints(p)
            p.saveBullet(file)

            def again(count: int, **given: Any) -> list[str]:
                found = list[str]()
                for turn in range(count):
                    wander(p, turn)
                    p.restoreState(**given)
                    rewind()
                    found.append(self._run(p, act))
                return found

            from_file = list[str]()
            if earlier >= 0:  # where little has happened to be forgotten
                from_file = again(1, fileName=file)
                p.restoreState(stateId=kept)
                rewind()
            first = self._run(p, act)
            same = constraints(p) == frames
            ends = again(job.restores, stateId=kept)
            from_file += again(job.restores, fileName=file)
            before = again(job.restores, stateId=earlier) if earlier >= 0 else []
            p.restoreState(stateId=kept)
            rewind()
        astray = sum(end != first for end in ends)
        different = [len(set(found)) for found in (ends, from_file, before)]
        self.rows.append(
            {
                "met": len(p.getContactPoints()),
                "first": f"{astray}" if same else f"({astray})",
                "different": [different[0], different[1], different[2] or ""],
                "fault": (same and astray > 0) or max(different) > 1,
                "end": first if len(first) < 64 else "",
            }
        )
        self._last = kept

    def _run(self, p: Any, act: Act) -> str:
        """Hash of all states of the steps to come, and of what bodies bore in the last one."""
        found = sha256()
        for k in range(self._job.steps):
            try:
                act(k)
            except BulletBridgeError as error:
                return f"{type(error).__name__} at {k}: {found.hexdigest()[:8]}"
            found.update(state(p))
        forces = [p.getConstraintState(p.getConstraintUniqueId(k)) for k in count(p)]
        forces += [(point[8], point[9]) for point in sorted(p.getContactPoints())]
        found.update(np.array([x for force in forces for x in force]).tobytes())
        return found.hexdigest()


def count(p: Any) -> range:
    """Places of constraints."""
    return range(p.getNumConstraints())


def constraints(p: Any) -> list[tuple[Any, ...]]:
    """All constraints as they are."""
    return [p.getConstraintInfo(p.getConstraintUniqueId(k)) for k in count(p)]


def bodies(p: Any) -> list[int]:
    """Ids of all bodies."""
    return [p.getBodyUniqueId(k) for k in range(p.getNumBodies())]


def state(p: Any) -> bytes:
    """Positions and velocities of everything."""
    numbers = list[float]()
    for body in bodies(p):
        for part in (*p.getBasePositionAndOrientation(body), *p.getBaseVelocity(body)):
            numbers += part
        for joint in p.getJointStatesMultiDof(body, range(p.getNumJoints(body))) or ():
            numbers += (*joint[0], *joint[1])
    return np.array(numbers).tobytes()


def wander(p: Any, turn: int) -> None:
    """Simulate something else, in every turn otherwise: nothing, pushes, resets, and some steps."""
    rng = np.random.default_rng(turn)
    for body in bodies(p) if turn % 4 else ():
        if p.getDynamicsInfo(body, -1)[0] > 0.0 and turn % 4 == 2:
            p.resetBaseVelocity(body, *rng.normal(size=(2, 3)).tolist())
        if turn % 4 == 1:
            p.applyExternalForce(
                body, -1, (30.0 * rng.normal(size=3)).tolist(), (0, 0, 0), pybullet.LINK_FRAME
            )
        for joint in range(p.getNumJoints(body)) if turn % 4 == 3 else ():
            if p.getJointInfo(body, joint)[2] in (
                pybullet.JOINT_REVOLUTE,
                pybullet.JOINT_PRISMATIC,
            ):
                angle, rate = p.getJointState(body, joint)[:2]
                p.resetJointState(body, joint, angle + 0.01 * rng.normal(), rate + rng.normal())
    for _ in range((0, 5, 1, 20)[turn % 4]):
        try:
            p.stepSimulation()
        except BulletBridgeError:
            return


class Stage(daily_scenes.Stage):
    """A scene's world, left at some points."""

    def __init__(self, job: Job, trial: Trial) -> None:
        super().__init__(job.mode)
        self.p.setPhysicsEngineParameter(**ORDERED)
        self._trial, self._made = trial, 0

    def steps(self, count: int, each: Callable[[int], None] | None = None) -> None:
        """As of a scene; states are saved and restored at points on the way."""
        do: Act = each or (lambda _: None)

        def act(k: int) -> None:
            do(k)
            self.p.stepSimulation()

        here = 0
        for point in [n - self._made for n in POINTS if self._made < n <= self._made + count]:
            super().steps(point - here, lambda k, here=here: do(here + k))
            here = point
            self._trial.at(self.p, lambda k, here=here: act(here + k))
        super().steps(count - here, lambda k: do(here + k))
        self._made += count


def play_daily(job: Job, trial: Trial) -> None:
    """A scene of ``daily_scenes.py``."""
    stage = Stage(job, trial)
    try:
        daily_scenes.SCENES[job.name](stage)
    finally:
        stage.end()


def play_drop_in(job: Job, trial: Trial) -> None:
    """A scene of ``drop_in.py``, whose step may count angles in a closure."""
    p: Any = BulletClient(pybullet.DIRECT, mode=job.mode)
    p.setPhysicsEngineParameter(**ORDERED)
    step, _ = drop_in.SCENES[job.name](p)
    cells: Sequence[Any] = getattr(step, "__closure__", None) or ()
    counters = [cell for cell in cells if isinstance(cell.cell_contents, float)]
    made = 0
    for point in POINTS:
        for _ in range(point - made):
            step()
        made, kept = point, [cell.cell_contents for cell in counters]

        def rewind(kept: list[float] = kept) -> None:
            for cell, value in zip(counters, kept, strict=True):
                cell.cell_contents = value

        trial.at(p, lambda _k: step(), rewind)
    p.disconnect()


class View:
    """The client of a program, as one of our own."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        """A function of the module that the program has for PyBullet."""
        return partial(getattr(sys.modules["pybullet"], name), physicsClientId=self._session.client)

    def stepSimulation(self) -> Any:  # noqa: N802  as PyBullet's
        """A step that the program knows nothing of."""
        return self._session.advance()


def play_program(job: Job, trial: Trial) -> None:
    """A program of PyBullet's wheel; what it does at each step is left out."""
    made = 0

    def after_step(session: Session) -> None:
        nonlocal made
        made += 1
        p, goes_by_itself = View(session), session in REAL_TIME
        REAL_TIME.discard(session)
        if made == 1:
            p.setPhysicsEngineParameter(**ORDERED)
        if made in POINTS:
            trial.at(p, lambda _k: p.stepSimulation())
        if goes_by_itself:
            REAL_TIME.add(session)
        if made >= POINTS[-1]:
            raise Ended

    target, *arguments = programs.command_of(job.name)
    outcomes = list[Outcome]()
    sys.path.append(str(programs.STAND_INS))
    run = Run(Script(target, tuple(arguments)), job.mode, headless=True)
    run_script(run, watched=False, deliver=outcomes.append, after_step=after_step)
    if outcomes[0].error:
        raise BulletBridgeError(outcomes[0].error)


# flexible arms


def arm(name: str) -> bb.System:
    """A flexible arm in a world of its own.

    By modes with its own forces; shaken, with a motor and limits; or of segments, which its motor
    and its weight lay down on a plate.
    """
    client = pybullet.connect(pybullet.DIRECT)
    if name == "system_5b":
        return bb.load(name, client, dt=1e-3).system
    if name == "system_3":
        system = bb.load(name, client, dt=1e-3, limits="always").system
        system.motors.set("joint1", velocity=2.0, force=0.05)
        return system
    plate = pybullet.createCollisionShape(
        pybullet.GEOM_BOX, halfExtents=(3, 0.1, 1), physicsClientId=client
    )
    pybullet.createMultiBody(0.0, plate, -1, (0, -0.2, 0), physicsClientId=client)
    system = bb.load(name, client, dt=1e-3, contacts=True).system
    system.gravity = (0.0, -9.81, 0.0)
    system.motors.set("joint1", velocity=-1.0, force=0.3)
    return system


NOTHING: Line = {"met": "", "first": "", "different": [""] * 3, "end": "", "fault": True}
"""Found of a scene that came to no point."""
ARMS = "system_5b", "system_3", "system_2a_segments"


def go_on(system: bb.System, steps: int) -> str:
    """Hash of all states to come."""
    found = sha256()
    for _ in range(steps):
        system.step()
        found.update(system.q.tobytes() + system.v.tobytes())
    return found.hexdigest()


def go_on_elsewhere(system: bb.System, job: Job) -> str:
    """The same of a pickle, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "system.pickle"
        file.write_bytes(pickle.dumps(system))
        command = [sys.executable, __file__, "--pickle", str(file), "--steps", str(job.steps)]
        done = subprocess.run([*command, job.name], capture_output=True, text=True, check=True)
        return done.stdout.split()[-1]


def play_arm(job: Job, trial: Trial) -> None:
    """A flexible arm: restores, copies with worlds of their own, and a pickle elsewhere."""
    system, made = arm(job.name), 0
    for point in POINTS:
        for _ in range(point - made):
            system.step()
        made, kept = point, system.save()
        twins = copy.deepcopy(system), pickle.loads(pickle.dumps(system))
        elsewhere = go_on_elsewhere(system, job)
        first, ends = go_on(system, job.steps), list[str]()
        for turn in range(job.restores):
            for _ in range(7 * turn):
                system.step()
            if turn % 2:
                system.set_state(system.q, 0.9 * system.v)
                system.step()
            system.restore(kept)
            ends.append(go_on(system, job.steps))
        for twin in twins:
            twin.world = arm(job.name).world
        copies = [*(go_on(twin, job.steps) for twin in twins), elsewhere]
        astray = sum(end != first for end in (*ends, *copies))
        trial.rows.append(
            {
                "met": sum(bool(contact.force.any()) for contact in system.contacts()),
                "first": f"{astray}",
                "different": [len(set(ends)), "", len(set(copies))],
                "fault": astray > 0,
                "end": "",
            }
        )
        system.restore(kept)


PLAYS = {
    "daily": (play_daily, tuple(daily_scenes.SCENES)),
    "scene": (play_drop_in, tuple(name for name in drop_in.SCENES if name != "restored")),
    "program": (play_program, drop_in.WHEEL),
    "arm": (play_arm, ARMS),
}
"""How a kind of what is tried is played, and what there is of it."""


def do(job: Job) -> Line:
    """What was found of a scene."""
    trial, error = Trial(job), ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            PLAYS[job.kind][0](job, trial)
    except BulletBridgeError as failed:
        error = f"{type(failed).__name__}: {failed}"
    return {"job": list(job), "rows": trial.rows, "error": error}


def lost(job: Job, how: str, why: str) -> Line:
    """A scene whose process ended."""
    return {"job": list(job), "rows": [], "error": f"{how}: {why}"}


def main() -> None:
    """Try it, print a table; exits with 1 where something differs that was to be the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="scenes, or kinds of these; all unless given")
    parser.add_argument("--mode", choices=MODES, action="append", help="filter and exact, if none")
    parser.add_argument("--restores", type=int, default=10)
    parser.add_argument("--steps", type=int, default=480)
    parser.add_argument("--pickle", type=Path, help="go on from a system, and print the hash")
    given = parser.parse_args()
    if given.pickle:
        system: bb.System = pickle.loads(given.pickle.read_bytes())
        system.world = arm(given.names[0]).world
        print(go_on(system, given.steps))
        return
    jobs = [
        Job(kind, name, mode, given.restores, given.steps)
        for kind, (_, names) in PLAYS.items()
        for name in names
        for mode in (given.mode or MODES[1:] if kind != "arm" else ("exact",))
        if not given.names or {kind, name} & set(given.names)
    ]
    table = Table("scene", "mode", "contacts", "first", "state", "file", "before", "")
    faults = 0
    for line in run_all(do, jobs, lost, 1, LIMIT):
        _, name, mode, *_ = line["job"]
        rows: list[Line] = line["rows"] or [NOTHING]
        for row in rows:
            fault: bool = row["fault"]
            faults += fault
            what = [row["end"], line["error"], "differs" if fault else ""]
            cells: list[Any] = [row["met"], row["first"], *row["different"], " ".join(what).strip()]
            table.add_row(name.rpartition("/")[2], mode, *map(str, cells))
            print(name, mode, *cells, file=sys.stderr, flush=True)
    Console(width=140).print(table)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
