"""From a model's files to a system in a Bullet world, assembled and ready to step."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, NoReturn, cast

import numpy as np
from typing_extensions import Unpack

from bulletbridge.bullet.checks import with_idle_joints
from bulletbridge.bullet.coordinates import matrix
from bulletbridge.bullet.idle_calls import tell_of_idle_calls
from bulletbridge.bullet.reader import BulletBodies
from bulletbridge.bullet.worlds import (
    ClientObject,
    connect_direct,
    disconnect,
    gravity,
    is_untouched,
    only_client,
    remove_bodies,
    require_client,
    time_step,
)
from bulletbridge.constraints.force_elements import Wrench
from bulletbridge.constraints.joints import Triple
from bulletbridge.constraints.motion import Signal, Sum
from bulletbridge.engine.force_signals import JointFunctions
from bulletbridge.errors import PACKAGE, AssemblyError, ModelError, nearest, warn_user
from bulletbridge.inequalities.constraints import beyond_limits, joints_beyond, without_room
from bulletbridge.inequalities.motor_limit_rows import FASTEST_RECOVERY
from bulletbridge.mechanism.frames import matrix_rpy, triple
from bulletbridge.mechanism.joint_properties import with_joint_properties
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.models.bodies import load_bodies, load_scenery
from bulletbridge.models.folding import with_folded_names
from bulletbridge.models.formats.recognise import Reading, read_model
from bulletbridge.models.loops_file import OF_START
from bulletbridge.models.modal_beams import read_world, without_chains
from bulletbridge.models.model_spec import ORIGIN, JointForce, ModelSpec
from bulletbridge.models.odd_inertias import tell_of_odd_inertias
from bulletbridge.models.odd_starts import (
    tell_of_far_robots,
    tell_of_overlap,
    tell_of_shapeless,
    tell_of_strained_bushings,
)
from bulletbridge.models.urdf_names import BASE
from bulletbridge.numerics.records import Array, are_numbers
from bulletbridge.system.assembly import Assembly
from bulletbridge.system.options import Options, SystemOptions, how_to_read
from bulletbridge.system.system import System


class LoadOptions(SystemOptions, total=False):
    """Keyword arguments of ``System`` that ``load`` and ``attach`` pass on.

    The ``forces`` act besides those of the model, or in the place of scripted ones of a joint.
    """

    forces: Mapping[str, JointFunctions | Wrench] | None
    dt: float
    allow_structure: bool


class ReadingAndLoadOptions(Reading, LoadOptions, total=False):
    """Keyword arguments of ``load`` that ``read_model`` takes, and those of ``System``."""


@dataclass(frozen=True)
class LoadedModel:
    """A model in a Bullet world, and the system that moves it.

    A context manager: leaving it closes the client that ``load`` opened, or removes the bodies from
    the client that it was given.

    Attributes:
        spec: What was read from the file.
        client: Bullet's client id.
        ids: Bullet's body ids by body name.
        bodies: Reader and writer of the bodies.
        system: The constrained mechanism, assembled at the start of the model.
        assembly: What assembling moved.
        scenery: Bullet's body ids of what stands in the world beside them, by name.
        gravity_before: Of the client that ``load`` was given [m/s²]; None in one of its own.
    """

    spec: ModelSpec
    client: int
    ids: dict[str, int]
    bodies: BulletBodies
    system: System
    assembly: Assembly
    scenery: dict[str, int] = field(default_factory=lambda: {})
    gravity_before: tuple[float, float, float] | None = None

    def __repr__(self) -> str:
        """What it is, and in whose world."""
        whose = "a world of its own" if self.gravity_before is None else "the given world"
        return f"<LoadedModel: {self.spec.name} in {whose}, client {self.client}: {self.system!r}>"

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what it has not, of which most is its system's."""
        hint = f"; write model.system.{name}" if hasattr(System, name) else ""
        if name in ("disconnect", "unload", "remove"):
            hint = "; write model.close()"
        elif name in ("id", "body", "body_id", "robot", "uid"):
            hint = "; write " + " or ".join(f"model.ids['{body}']" for body in self.ids)
        elif not hint:
            hint = how_to_read(name).replace("system.", "model.system.")
        frame = inspect.currentframe()
        asking = frame.f_back if frame is not None else None
        if hint and asking is not None and asking.f_code.co_filename.startswith(PACKAGE):
            # a function of ours that it was given to
            hint = ": give its system, model.system"
        raise AttributeError(f"a LoadedModel has no '{name}'{hint}", name=name, obj=self)

    def close(self) -> None:
        """Leave the world as it was before ``load``; what is gone already is left alone."""
        if self.gravity_before is None:
            disconnect(self.client)
        elif there := self.scenery | self.bodies.there():
            remove_bodies(there, self.client, self.gravity_before)
            self.scenery.clear()

    def __enter__(self) -> "LoadedModel":
        """The model itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()


def notes_besides_start(spec: ModelSpec) -> tuple[str, ...]:
    """What reading a file has noted, but for angles at the start, of which assembly warns."""
    return tuple(note for note in spec.notes if not note.startswith(OF_START))


def load(
    model: str | Path | ModelSpec,
    client: int | ClientObject | Literal["new"] | None = None,
    *,
    adjust: Callable[[Mechanism], Mechanism] | None = None,
    base_position: Sequence[float] | Array | None = None,
    base_orientation: Sequence[float] | Array | None = None,
    **options: Unpack[ReadingAndLoadOptions],
) -> LoadedModel:
    """Load a model into a Bullet world and assemble it.

    Args:
        model: Bundled name, path of a loops file or of a robot in another format
            (docs/formats.md), the text of one in XML, or what was read from one.
        client: Bullet client to load into, by its number or as a ``BulletClient``. None for the one
            that is connected, or, if there is none, for a new one without a window, which is said
            on stderr; ``"new"`` for a new one in any case.
        adjust: Changes the mechanism that was read, such as its masses; Bullet keeps its own.
        base_position: Where the base link of a robot is put in the world [m], as by ``loadURDF``;
            unless given where its file says. A floating base is held there by assembly.
        base_orientation: How it is turned there, a quaternion xyzw.
        options: How the file is read: ``fixed_base``, ``repair_inertia``, ``repair_frames``,
            ``inside``, ``servos`` and ``keyframe``, as ``read_model`` takes them; where it
            includes other files, nothing outside of its folder, or ``inside``, is opened. All
            others are keyword arguments of ``System``. Joint limits act unless
            ``limits=False``, but with other formulations and integrators than the compiled ones.
            ``springs`` are explicit unless given or too stiff for that at the start, and so the
            integrator is ``verlet`` unless given.

    Gravity is the model's, or Earth's, in a new client and in one that has neither bodies nor
    gravity yet. In any other it is that of the client, which the model must not contradict. The
    step is the client's, 1/240 s in a new one, unless ``dt`` is given.

    Raises:
        LoopFileError: The loops file cannot be understood.
        ModelError: No such model, something in it that cannot be modelled, another gravity than
            the client's, or a place for the base of several robots.
        AssemblyError: The loops cannot close.
        WorldError: There is no such client, or there are several and none was given.

    Warns:
        BulletBridgeWarning: A joint starts beyond its limits, or has no room in them, and these
            act, or loops were not found to close within them; contacts act, and a robot has no
            shape that could touch, or starts deep inside what stands there; one starts as far away
            as if its place were in millimetres; links have inertias as of other units than
            their masses and sizes; or something of the file was lost, changed or assumed.
    """
    how, system_options = _told_apart(options)
    steps = Options.of(
        cast(SystemOptions, {n: x for n, x in system_options.items() if n not in OF_LOAD})
    )
    if isinstance(model, ModelSpec):
        spec = model
    else:
        spec = read_model(model, **how)
        notes = notes_besides_start(spec)
        if notes:
            warn_user(f"{spec.path}: {'; '.join(notes)}")
    placed = base_position is not None or base_orientation is not None
    if placed:
        spec = with_base_at(spec, base_position, base_orientation)
    if client is None:
        client = only_client()
        if client is None:
            _tell_of_new_world(spec.name)
    own = client is None or client == "new"
    client = connect_direct() if client is None or client == "new" else require_client(client)
    before: tuple[float, float, float] | None = None
    ids: dict[str, int] = {}
    scenery: dict[str, int] = {}
    try:
        if not own:
            before = gravity(client)
            system_options.setdefault("dt", time_step(client))
        ids = load_bodies(spec, client, spec.own_gravity if own else gravity_there(spec, client))
        bodies = read_world(spec, ids, client)
        scenery = load_scenery(spec, client)
        spec = without_chains(spec, bodies.mechanism)
        mechanism = _as_said(spec, bodies)
        if adjust is not None:
            mechanism = adjust(mechanism)
        springs = system_options.get("springs")
        system_options["limits"] = limits = system_options.get("limits", steps.know_limits)
        system_options["springs"] = springs or "explicit"
        system_options.setdefault("allow_structure", spec.allow_structure)
        system_options["forces"] = forces_of(spec) | dict(system_options.get("forces") or {})
        joining = (*spec.constraints, *spec.elements)
        system = System(mechanism, joining, world=bodies, **system_options)
        asked = start_of(spec, mechanism, system.q)
        assembly = _assemble(system, spec, placed=placed, within_limits=bool(limits))
        if springs is None:
            system.take_stiff_springs_implicitly()
        if limits:
            _tell_of_limits(system, asked)
    except BaseException:
        if own:
            disconnect(client)
        elif before is not None:
            remove_bodies(ids | scenery, client, before)
        raise
    loaded = LoadedModel(spec, client, ids, bodies, system, assembly, scenery, before)
    _tell_of_likely_mistakes(loaded, bool(system_options.get("contacts")))
    return loaded


OF_READING = frozenset(Reading.__annotations__)
"""Keyword arguments of ``read_model``."""
OF_LOAD = frozenset(LoadOptions.__annotations__) - frozenset(SystemOptions.__annotations__)
"""Keyword arguments of ``System`` that are no choice of how it steps."""


def _told_apart(options: ReadingAndLoadOptions) -> tuple[Reading, LoadOptions]:
    """How a file is read, and how what it has is stepped.

    Raises:
        ModelError: A name is none of these, and near to one of ``load``'s own.
    """
    how = {name: x for name, x in options.items() if name in OF_READING}
    others = {name: x for name, x in options.items() if name not in OF_READING}
    for name in others.keys() - LoadOptions.__annotations__.keys():
        hint = nearest(name, (*OF_READING, "base_position", "base_orientation"), 1, cutoff=0.75)
        if hint:
            raise ModelError(f"load has no option '{name}'; {hint}")
    return cast(Reading, how), cast(LoadOptions, others)


def _as_said(spec: ModelSpec, bodies: BulletBodies) -> Mechanism:
    """The mechanism that Bullet has, with what the model's file says of it besides."""
    mechanism = with_folded_names(bodies.mechanism, spec.folded)
    mechanism = with_joint_properties(mechanism, spec.joints)
    mechanism = with_forces(mechanism, spec.forces)
    if not spec.constraints:
        start = start_of(spec, mechanism, bodies.state()[0])
        mechanism = with_idle_joints(mechanism, trusted=True, start=start)
    driven = tuple(name for name in spec.actuated if name in mechanism.joints)
    return replace(mechanism, actuated=driven)


def with_base_at(
    spec: ModelSpec,
    position: Sequence[float] | Array | None,
    orientation: Sequence[float] | Array | None,
) -> ModelSpec:
    """The model of one robot with its base link elsewhere [m], turned by a quaternion xyzw.

    Raises:
        ModelError: It has several robots, or these are no finite numbers.
    """
    if len(spec.bodies) != 1:
        raise ModelError(
            f"'{spec.name}' has {len(spec.bodies)} robots, and base_position and base_orientation"
            f" are of one: give each a 'base' in {spec.path.name}"
        )
    body = spec.bodies[0]
    if position is not None:
        if not are_numbers(position, (3,)):
            raise ModelError(f"base_position is {position!r}; give x, y, z [m]")
        body = replace(body, xyz=triple(position))
    if orientation is not None:
        if not are_numbers(orientation, (4,)) or not np.any(orientation):
            raise ModelError(f"base_orientation is {orientation!r}; give a quaternion x, y, z, w")
        turned = np.asarray(orientation) / np.linalg.norm(orientation)
        body = replace(body, rpy=matrix_rpy(matrix(turned.tolist())))
    held = {name: x for name, x in spec.start_q.items() if name != BASE}
    guess = {name: x for name, x in spec.start_guess.items() if name != BASE}
    return replace(spec, bodies=(body,), start_q=held, start_guess=guess)


_told: list[str] = []
"""Models of which it was said that they are in worlds of their own; the first one is enough."""


def _tell_of_new_world(name: str) -> None:
    """Say once a process that nobody will see a model in a window that is opened later."""
    if not _told:
        print(
            f"bulletbridge: no PyBullet client is connected, so '{name}' is in a new one without a"
            ' window; connect before load to choose, or say load(..., "new")',
            file=sys.stderr,
        )
    _told.append(name)


def gravity_there(spec: ModelSpec, client: int) -> Triple:
    """Gravity of a model in somebody else's world [m/s²].

    Raises:
        ModelError: The world has another one than the model.
    """
    there = gravity(client)
    if is_untouched(client):
        return spec.own_gravity
    if spec.gravity is not None and not np.allclose(spec.gravity, there, rtol=1e-12, atol=0.0):
        wanted = ", ".join(f"{value:g}" for value in spec.gravity)
        found = ", ".join(f"{value:g}" for value in there)
        raise ModelError(
            f"'{spec.name}' has gravity ({wanted}) m/s² and client {client} has ({found}): call"
            f" setGravity({wanted}, physicsClientId={client}) before, change or leave out 'gravity'"
            f' in {spec.path.name}, or load it into a world of its own with load(..., "new")'
        )
    return there


def start_of(spec: ModelSpec, mechanism: Mechanism, q: Array) -> Array:
    """Positions (nq,) in which a model is to start, loops aside: q where it names none."""
    start = q.copy()
    for name, value in (spec.start_guess | spec.start_q).items():
        if name in mechanism.joints:  # the system says which are none
            start[mechanism.joints[name].q] = value
    return start


def _assemble(system: System, spec: ModelSpec, *, placed: bool, within_limits: bool) -> Assembly:
    """Assemble at the model's start.

    A single robot's floating base that was given a pose, by ``placed`` or the file, stays there,
    unless ``start`` names it; of several robots, which loops may join, bases move with the rest.
    """
    held: dict[str, float | list[float]] = {}
    body, joints = spec.bodies[0], system.mechanism.joints
    held_there = len(spec.bodies) == 1 and (placed or body.xyz != ORIGIN or body.rpy != ORIGIN)
    if held_there and BASE in joints and BASE not in spec.start_guess:
        held[BASE] = system.q[joints[BASE].q].tolist()
    try:
        return system.assemble(
            held | spec.start_q, spec.start_v, spec.start_guess, within_limits=within_limits
        )
    except AssemblyError as error:
        if not held.keys() - spec.start_q.keys():
            raise
        raise AssemblyError(
            f"{error}; the base was held where the file places it: name '{BASE}' under"
            " 'guess' of 'start' to let it move"
        ) from None


def _tell_of_limits(system: System, asked: Array) -> None:
    """Warn of joints that start beyond limits, where loops have led them there and where not."""
    mechanism = system.mechanism
    led = joints_beyond(mechanism, system.q) - joints_beyond(mechanism, asked)
    if led:
        names = ", ".join(f"'{name}'" for name in mechanism.joints if name in led)
        warn_user(
            f"the loops were not found to close within the limits of {names}, and may keep it"
            " beyond them: check limits, lengths and frames, or start the robot elsewhere"
        )
    for said in without_room(mechanism):
        warn_user(said)
    for said in beyond_limits(mechanism, system.q):
        warn_user(
            f"{said} at the start; it is taken back step by step, at no more than"
            f" {FASTEST_RECOVERY:g} rad/s or mechanism lengths per second"
        )


def _tell_of_likely_mistakes(loaded: LoadedModel, contacts: bool) -> None:
    """Warn of what a model's author can hardly have meant."""
    spec, system = loaded.spec, loaded.system
    tell_of_odd_inertias(system, loaded.bodies)
    tell_of_strained_bushings(system)
    tell_of_far_robots(system, spec)
    if contacts:
        names = loaded.ids if len(loaded.ids) > 1 else [spec.name]
        named = dict(zip(names, loaded.ids.values(), strict=True))
        tell_of_shapeless(named, loaded.client)
        tell_of_overlap(named, loaded.client)
    tell_of_idle_calls(loaded.bodies)


def with_forces(mechanism: Mechanism, forces: Sequence[JointForce]) -> Mechanism:
    """The mechanism with constant joint torques, springs, dampers and friction added.

    Raises:
        ModelError: A joint does not exist, has more than one rate, or has two springs.
    """
    axes, joints = mechanism.axes.copy(), dict(mechanism.joints)
    for force in forces:
        joint = mechanism.joint(force.joint)
        if not joint.is_single:
            raise ModelError(
                f"forces name the {joint.kind} joint '{force.joint}'; "
                f"only revolute and prismatic joints take them"
            )
        axis = axes[joint.v.start]
        if force.stiffness and axis["stiffness"]:
            raise ModelError(f"joint '{force.joint}' has two springs; give one with both's effect")
        axis["torque"] += 0.0 if callable(force.torque) else force.torque
        axis["damping"] += force.damping
        if force.stiffness:
            axis["stiffness"], axis["rest"] = force.stiffness, force.rest
        joint = joints[force.joint]
        joints[force.joint] = replace(joint, friction=joint.friction + force.friction)
    return replace(mechanism, axes=axes, joints=joints)


def forces_of(spec: ModelSpec) -> dict[str, JointFunctions | Wrench]:
    """What ``System`` takes as forces of a model: functions of time on joints, and wrenches.

    Raises:
        ModelError: A wrench has the name of a joint that has such a function.
    """
    functions = scripted(spec.forces)
    wrenches: dict[str, JointFunctions | Wrench] = {wrench.name: wrench for wrench in spec.wrenches}
    for name in functions.keys() & wrenches.keys():
        raise ModelError(f"a wrench and a joint with a force are both '{name}'; rename the wrench")
    return functions | wrenches


def scripted(forces: Sequence[JointForce]) -> dict[str, JointFunctions | Wrench]:
    """Torques that are functions of time, by joint; several of one joint add up."""
    found: dict[str, list[Signal]] = {}
    for force in forces:
        if callable(force.torque):
            found.setdefault(force.joint, []).append(force.torque)
    return {
        joint: several[0] if len(several) == 1 else Sum(tuple(several))
        for joint, several in found.items()
    }
