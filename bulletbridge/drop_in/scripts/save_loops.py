"""Constraints of a running program as a loops file: its robots, how they stand, what joins them."""

from dataclasses import replace
from pathlib import Path

import pybullet

from bulletbridge.bullet.constraints import CreatedConstraint, as_it_stands
from bulletbridge.bullet.reader import BulletBodies, name_bodies, read_body, read_bullet
from bulletbridge.bullet.worlds import gravity, joint_ids, link_ids
from bulletbridge.console import write_text
from bulletbridge.constraints.joints import Coupling, LoopJoint
from bulletbridge.drop_in.session import LoadedRobot, Session
from bulletbridge.errors import BulletBridgeError, ModelError
from bulletbridge.mechanism.frames import matrix_rpy
from bulletbridge.models.bundled import ENDING
from bulletbridge.models.formats.bullet_body import robot_of
from bulletbridge.models.formats.robot import Robot
from bulletbridge.models.formats.urdf_text import urdf_text
from bulletbridge.models.loops_file import write_loops
from bulletbridge.models.model_spec import BodySpec, ModelSpec


class LoopsSaver:
    """Takes note of the constraints of a program, and writes them when it has ended.

    What is written is how things stood when the program had most constraints: after the first step
    with these.

    Args:
        name: Of the file, with or without its ending.
    """

    def __init__(self, name: str | Path) -> None:
        path = Path(name)
        self.path = path.with_name(path.name.removesuffix(ENDING) + ENDING)
        self.spec: ModelSpec | None = None
        self._robots: dict[Path, Robot] = {}
        self._seen: frozenset[tuple[int, int]] = frozenset()
        self._problem = ""

    def __call__(self, session: Session) -> None:
        """Look at a client after a step."""
        loops = session.loops()
        seen = frozenset((session.client, number) for number in loops)
        if len(seen) <= len(self._seen):
            return
        self._seen = seen
        try:
            robots: dict[Path, Robot] = {}
            self.spec = spec_of(session, list(loops.values()), self.path, robots)
            self._robots = robots
        except BulletBridgeError as error:
            self._problem = str(error)

    def write(self) -> Path:
        """Write the file, and URDFs of bodies that have none.

        Raises:
            ModelError: There were no constraints, or bodies that cannot be read.
        """
        if self.spec is None:
            raise ModelError(
                f"{self.path} is not written: {self._problem or 'no step had a constraint'}"
            )
        said = [f"Saved from a running program by bulletbridge: {len(self._seen)} constraints."]
        if self.spec.notes:
            said += ["What was lost or assumed:", *(f"- {note}" for note in self.spec.notes)]
        for urdf, robot in self._robots.items():
            write_text(urdf, urdf_text(robot, urdf.parent))
        write_loops(self.spec, self.path, said)
        return self.path


def spec_of(
    session: Session, loops: list[CreatedConstraint], path: Path, made: dict[Path, Robot]
) -> ModelSpec:
    """The bodies that constraints join, where they stand, and these constraints.

    Args:
        session: What is known of a client.
        loops: Its constraints.
        path: Where it will be written.
        made: Gets the robots that no URDF describes, by where theirs will be written.

    Raises:
        ModelError: A body cannot be read.
    """
    client, notes = session.client, list[str]()
    joined = {body for loop in loops for body in loop.bodies}
    ids = name_bodies(sorted(joined), client)
    bodies = tuple(
        _body(name, body, session.robots[body], client)
        if body in session.robots
        else _described(robot_of(name, body, client, notes), path, made)
        for name, body in ids.items()
    )
    if len(bodies) == 1:
        bodies = (replace(bodies[0], name="robot"),)
    world = read_bullet(sorted(joined), client)
    links = {place: name for name, place in link_ids(ids, client).items()}
    joints = {place: name for name, place in joint_ids(ids, client).items()}
    constraints: list[LoopJoint | Coupling] = []
    for loop in loops:
        if loop.reason:
            notes.append(f"{loop.name} is left out: {loop.reason}")
            continue
        if loop.kind == pybullet.JOINT_GEAR and loop.erp == 0.0:
            notes.append(f"{loop.name} holds rates alone: its offset is that of the moment")
        if loop.kind != pybullet.JOINT_GEAR and loop.moving:
            notes.append(f"{loop.name}: its frame moved; it is where it was then")
        joint = as_it_stands(loop, links, joints, client)
        constraints.append(replace(joint, name=f"constraint_{loop.number}"))
    return ModelSpec(
        path.name.removesuffix(ENDING),
        path,
        bodies,
        tuple(constraints),
        gravity=gravity(client),
        start_guess=_positions(world),
        notes=tuple(notes),
    )


def _body(name: str, body: int, robot: LoadedRobot, client: int) -> BodySpec:
    """A robot, and where its base link is."""
    raw = read_body(name, body, client)
    R = raw.R @ raw.links[0].R.T
    x, y, z = (float(c) for c in raw.p - R @ raw.links[0].com)
    return BodySpec(name, robot.path, not raw.floating, (x, y, z), matrix_rpy(R), robot.scale)


def _described(robot: Robot, path: Path, made: dict[Path, Robot]) -> BodySpec:
    """A body that came from no URDF, or from none that is found: its own will be written."""
    stem = path.name.removesuffix(ENDING)
    urdf = path.with_name(f"{stem}_{robot.name.replace('/', '_')}.urdf").resolve()
    made[urdf] = robot
    return BodySpec(robot.name, urdf, robot.fixed, robot.place.xyz, robot.place.rpy)


def _positions(world: BulletBodies) -> dict[str, float | list[float]]:
    """Positions of joints that are not at zero; bases are placed elsewhere."""
    q, found = world.state()[0], dict[str, float | list[float]]()
    for name, joint in world.mechanism.joints.items():
        position: list[float] = q[joint.q].tolist()
        if joint.kind == "free" or position in ([0.0], [0.0, 0.0, 0.0, 1.0]):
            continue
        found[name] = position[0] if len(position) == 1 else position
    return found
