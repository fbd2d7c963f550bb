"""One run of a model in a study, and what is measured of it."""

import hashlib
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock

from bulletbridge.errors import ModelError
from bulletbridge.models.bundled import ENDING
from bulletbridge.models.formats.recognise import Reading, read_model
from bulletbridge.models.load import LoadedModel, load
from bulletbridge.models.model_spec import ModelSpec, Triple
from bulletbridge.system.options import Integrator
from bulletbridge.system.parameters import (
    changed_constraints,
    changed_mechanism,
    parameters_of,
    require_known,
    require_numbers,
)
from bulletbridge.system.system import System

OF_JOINTS = ("final", "min", "max", "speed")
OF_LOOPS = ("force", "torque")
NO_MODEL = ("dt",)
"""Parameters of the run, not of the model."""
_bullet = Lock()  # threads of a cluster's worker share it


@dataclass(frozen=True)
class ModelRun:
    """A function of parameters that runs a model; processes can receive it.

    Attributes:
        model: Bundled name or path of a robot's file.
        duration: Simulated time [s].
        measures: ``gap`` [m] and ``energy_drift`` [J], the largest ones; ``force.LOOP`` [N] and
            ``torque.LOOP`` [N m], the largest reactions; ``final``, ``min`` and ``max`` ``.JOINT``,
            its position, and ``speed.JOINT``, its largest rate. All but those of joints, unless
            given.
        dt: Step [s], unless it is a parameter.
        every: Steps from one look at the state to the next.
        integrator: As in ``System``, its default unless given.
        reading: How the file is read: ``fixed_base`` and others of ``bulletbridge.load``.
    """

    model: str
    duration: float = 1.0
    measures: tuple[str, ...] = ()
    dt: float = 1 / 240
    every: int = 1
    integrator: Integrator | None = None
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        """Refuse one name for several.

        Raises:
            ModelError: The measures are no sequence of names.
        """
        if isinstance(self.measures, str):
            one = self.measures
            raise ModelError(f"measures is '{one}'; give a sequence of names, as ('{one}',)")

    def __call__(self, parameters: Mapping[str, float]) -> dict[str, float]:
        """What is measured of one run.

        Raises:
            ModelError: A parameter or measure does not exist.
            BulletBridgeError: The run failed.
        """
        with self._loaded(parameters) as model:
            _require_parameters(model, parameters)
            measures = self.measures or standard(model)
            return observe(model.system, measures, self._steps(parameters), self.every)

    def check(self, parameters: Mapping[str, float]) -> tuple[str, ...]:
        """Check settings, parameters and measures before a long study; return the measures.

        Raises:
            ModelError: A parameter or measure does not exist, or a number is impossible.
        """
        if not self.duration > 0.0 or self.every < 1:
            raise ModelError(
                f"a duration of {self.duration:g} s and a look every {self.every} steps are not"
                " possible; give a positive duration, and one or more"
            )
        with load(self._spec(), "new") as model:
            _require_parameters(model, parameters)
            available = measures_of(model)
            for name in self.measures:
                require_known("measure", name, available)
            return self.measures or standard(model)

    @property
    def about(self) -> str:
        """Settings of the run, contents of its files, and loops in files beside these."""
        spec = self._spec()
        files = [spec.path, *(body.urdf for body in (*spec.bodies, *spec.scenery))]
        digests = [hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files]
        beside = "" if spec.path.name.endswith(ENDING) else f" {spec.constraints}"
        return f"{asdict(self)} {digests}{beside}"

    def _spec(self) -> ModelSpec:
        return read_model(self.model, **self.reading)

    def _steps(self, parameters: Mapping[str, float]) -> int:
        return max(1, round(self.duration / parameters.get("dt", self.dt)))

    @contextmanager
    def _loaded(self, parameters: Mapping[str, float]) -> Generator[LoadedModel, None, None]:
        """The model with these parameters."""
        spec = changed_spec(self._spec(), parameters)
        with _bullet:
            model = load(
                spec,
                "new",
                adjust=lambda mechanism: changed_mechanism(mechanism, spec.elements, parameters),
                dt=parameters.get("dt", self.dt),
                integrator=self.integrator,
            )
        try:
            yield model
        finally:
            with _bullet:
                model.close()


def _require_parameters(model: LoadedModel, parameters: Iterable[str]) -> None:
    known = names_of(model)
    for name in parameters:
        require_known("parameter", name, known)


def standard(model: LoadedModel) -> tuple[str, ...]:
    """What is measured unless something is asked for."""
    encoded = model.system.encoded  # only loops have a force at a point, and come first
    names = list(encoded.rows)[: len(encoded.loops)]
    return ("gap", "energy_drift", *(f"{field}.{name}" for name in names for field in OF_LOOPS))


def measures_of(model: LoadedModel) -> list[str]:
    """All that can be measured."""
    joints = [n for n, joint in model.system.mechanism.joints.items() if joint.is_single]
    return [*standard(model), *(f"{what}.{joint}" for what in OF_JOINTS for joint in joints)]


def observe(system: System, measures: tuple[str, ...], steps: int, every: int) -> dict[str, float]:
    """Advance by steps and measure at the start and after every so many."""
    found = dict.fromkeys(measures, 0.0)
    start = system.evaluate().energy
    look(system, found, start, True)
    for done in range(0, steps, every):
        part = min(every, steps - done)
        system.rollout(part, part)
        look(system, found, start, False)
    return found


def look(system: System, found: dict[str, float], start: float, first: bool) -> None:
    """Bring measures up to the present state.

    Args:
        system: In that state.
        found: Measures by name, of the states before; changed in place.
        start: Energy at the start [J].
        first: Whether the present state is the start, from which least and largest positions go.
    """
    reactions = system.reactions() if any(m.split(".")[0] in OF_LOOPS for m in found) else {}
    seen = system.evaluate() if "gap" in found or "energy_drift" in found else None
    for measure, before in found.items():
        what, _, name = measure.partition(".")
        if what in OF_LOOPS:
            force = reactions[name].force if what == "force" else reactions[name].torque
            value = max(before, float((force @ force) ** 0.5))
        elif what == "gap" and seen is not None:
            value = max(before, seen.largest("metres"))
        elif what == "energy_drift" and seen is not None:
            value = max(before, abs(seen.energy - start))
        else:
            joint = system.mechanism.joint(name)
            q, rate = float(system.q[joint.q.start]), abs(float(system.v[joint.v.start]))
            if what == "speed":
                value = max(before, rate)
            elif what == "final" or first:
                value = q
            else:
                value = min(before, q) if what == "min" else max(before, q)
        found[measure] = value


def names_of(model: LoadedModel) -> list[str]:
    """All parameters of a model: those of ``parameters_of``, and its start.

    ``start.JOINT`` and ``rate.JOINT`` are held at the start, ``dt`` is the step [s].
    """
    mechanism, spec = model.system.mechanism, model.spec
    single = [name for name, joint in mechanism.joints.items() if joint.is_single]
    return [
        *parameters_of(mechanism, (*spec.constraints, *spec.elements)),
        *(f"{when}.{name}" for when in ("start", "rate") for name in single),
        *NO_MODEL,
    ]


def changed_spec(spec: ModelSpec, parameters: Mapping[str, float]) -> ModelSpec:
    """The model with what its file says changed.

    Raises:
        ModelError: A number is not possible.
    """
    require_numbers(parameters)
    gravity, start_q, start_v = list(spec.own_gravity), dict(spec.start_q), dict(spec.start_v)
    guess = dict(spec.start_guess)
    for name, value in parameters.items():
        owner, _, field = name.rpartition(".")
        when, _, joint = name.partition(".")
        if owner == "gravity":
            gravity["xyz".index(field)] = value
        elif when == "start":
            start_q[joint] = value
            guess.pop(joint, None)
        elif when == "rate":
            start_v[joint] = value
    pulled: Triple = (gravity[0], gravity[1], gravity[2])
    return replace(
        spec,
        gravity=pulled,
        start_q=start_q,
        start_v=start_v,
        start_guess=guess,
        constraints=changed_constraints(spec.constraints, parameters),
        elements=changed_constraints(spec.elements, parameters),
    )
