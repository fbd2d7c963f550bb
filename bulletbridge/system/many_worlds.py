"""Many worlds of one system that go on from call to call: what learning and sampling step."""

from collections.abc import Mapping, Sequence
from threading import Event

import numpy as np

from bulletbridge.constraints.joints import Frame
from bulletbridge.errors import BulletBridgeError, ModelError, require_kind
from bulletbridge.mechanism.by_joint import Values
from bulletbridge.mechanism.frames import rpy_matrix
from bulletbridge.numerics.records import Array, Ints, Mask, array_of
from bulletbridge.system.evaluation import Evaluation
from bulletbridge.system.options import check_counts, is_count
from bulletbridge.system.parameters import require_known, require_numbers
from bulletbridge.system.rollout_workers import threads_of
from bulletbridge.system.rollouts import on_threads
from bulletbridge.system.system import System
from bulletbridge.system.world_settings import MotorNumbers, MotorTable


class Worlds:
    """Worlds of one system that are stepped together, on all cores, and keep what steps remember.

    Each has a copy of the system, about a megabyte and some hundredths of a second with contacts,
    with motors as they were set, and finds contacts with the world as it stands. What comes out
    does not depend on the number of threads, nor on the other worlds.

    Args:
        system: Whose state each starts from.
        number: How many.
        threads: That step them; all cores unless given.

    Attributes:
        failures: Why worlds failed, by number. They stay where they were until they start again.

    Raises:
        ModelError: A number is none, or the system does not step compiled.
        AssemblyError: The loops of the system are open; call ``assemble`` first.
    """

    def __init__(self, system: System, number: int, *, threads: int | None = None) -> None:
        if not (is_count(number) and number >= 1):
            raise ModelError(f"number is {number!r}; give a whole number of worlds from one on")
        require_kind(system, System, f"{system!r} is no system; give one, as load(...).system")
        source, _ = system.compiled()
        self._system, self._threads = system, threads_of(source, threads, number)
        self._first = system.q, system.v, system.t
        self._copies, self._parameters = system.fork(number), tuple(system.parameters)
        self._table = np.zeros((number, len(source.state) + 3))
        self.failures: dict[int, str] = {}
        for world in range(number):
            self.start(world)

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<Worlds: {len(self)} of {self._system!r}{failed}>"

    def __len__(self) -> int:
        """Number of worlds."""
        return len(self._table)

    @property
    def q(self) -> Array:
        """Configurations (n, nq), a copy."""
        return self._table[:, : self._system.mechanism.nq].copy()

    @property
    def v(self) -> Array:
        """Velocities (n, nv), a copy."""
        return self._table[:, self._system.mechanism.nq : -4].copy()

    @property
    def t(self) -> Array:
        """Times (n,) [s], a copy."""
        return self._table[:, -4].copy()

    def start(
        self,
        world: int,
        state: tuple[Array, Array, float] | None = None,
        parameters: Mapping[str, float] | None = None,
        assemble: Values | None = None,
    ) -> None:
        """Start one world again; what was before is forgotten, and it has not failed.

        Args:
            world: Its number.
            state: q (nq,), v (nv,) and t [s]; what the system had when the worlds were made unless
                given.
            parameters: By name of ``system.parameters``; those of before stay.
            assemble: Positions by joint that are held while the loops are closed from that state;
                it begins at rest then.

        Raises:
            ModelError: Something does not exist, or a number is not possible.
            AssemblyError: The loops cannot be closed there.
        """
        if not (is_count(world) and 0 <= world < len(self)):
            raise ModelError(f"there is no world {world!r}; they are 0 to {len(self) - 1}")
        for name in parameters or ():
            require_known("parameter", name, self._parameters)
        require_numbers(parameters or {})
        own, start = self._copies[world], state or self._first
        own.start_from(start, parameters or {})
        if assemble:
            own.assemble(assemble)
            own.start_from((own.q, own.v, own.t), {})
        self.failures.pop(world, None)
        self._table[world] = [*own.snapshot(), 0.0, 0.0, 0.0]

    def step(
        self,
        steps: int = 1,
        *,
        motors: MotorNumbers | None = None,
        tau: Array | None = None,
        moving: Mask | None = None,
    ) -> None:
        """Advance by steps; worlds that have failed stay where they are.

        Args:
            steps: How many.
            motors: By joint what ``system.motors.set`` takes, one number or (n,); what is not given
                is as it was set in the system.
            tau: Forces on the rates [N m or N], (nv,) or (n, nv); those of the system unless given.
            moving: (n,) which are to be advanced; all unless given.

        Raises:
            ModelError: Shapes do not fit, a number is not finite, or a name does not exist.
        """
        check_counts(steps, 1)
        n, nv = len(self), self._system.mechanism.nv
        table = MotorTable(self._system.motors, motors or {}, n, 1)
        forces = array_of("tau", self._system.tau if tau is None else tau)
        if forces.shape not in ((nv,), (n, nv)) or not np.isfinite(forces).all():
            raise ModelError(
                f"tau {forces.shape} is neither ({nv},) nor ({n}, {nv}) finite numbers"
            )
        forces = np.broadcast_to(forces, (n, nv))
        wanted = np.ones(n, bool) if moving is None else np.asarray(moving)
        if wanted.shape != (n,) or wanted.dtype != bool:
            raise ModelError(f"moving is {wanted.dtype} {wanted.shape}; give booleans ({n},)")
        left = iter([k for k in np.flatnonzero(wanted).tolist() if k not in self.failures])
        stop = Event()

        def work(_: int) -> None:
            """Advance worlds until none is left."""
            while not stop.is_set() and (k := next(left, None)) is not None:
                own = self._copies[k]
                table.put(own.motors, k, 0)
                try:
                    own.roll(forces[k], (steps, steps), self._table[k : k + 1])
                except BulletBridgeError as error:
                    self.failures[k] = str(error)
                    self._table[k] = [*own.snapshot(), *self._table[k, -3:]]

        on_threads(work, range(self._threads), stop)

    def contact_forces(self, links: Sequence[str]) -> Array:
        """Sum of the contact forces (n, links, 3) [N] in the last step, world axes.

        What is rigidly joined to a link counts with it.

        Raises:
            ModelError: A link does not exist.
        """
        mechanism = self._system.mechanism
        bodies: Ints = np.array([mechanism.link(name).body for name in links], np.int64)
        return np.array([own.contact_forces(bodies) for own in self._copies])

    def points(self, frame: Frame) -> Array:
        """Places of a frame's origin (n, 3) [m] in the world.

        Raises:
            ModelError: Its link does not exist.
        """
        found = (own.link_pose(frame.link) for own in self._copies)
        return np.array([p + R @ np.asarray(frame.xyz, float) for R, p in found])

    def axes(self, frame: Frame) -> Array:
        """Axes of a frame (n, 3, 3) in the world, as columns.

        Raises:
            ModelError: Its link does not exist.
        """
        turn = rpy_matrix(frame.rpy)
        return np.array([own.link_pose(frame.link)[0] @ turn for own in self._copies])

    def evaluate(self, world: int) -> Evaluation:
        """Gaps, energy and momentum of a world."""
        return self._copies[world].evaluate()

    def show(self, world: int) -> None:
        """Show the state of a world in that of the system.

        Raises:
            WorldError: The bodies are gone.
        """
        if self._system.world is not None:
            own = self._copies[world]
            self._system.world.write(own.q, own.v)
