"""Vibration modes of a closed mechanism at rest."""

from dataclasses import dataclass

import numpy as np

from bulletbridge.control.equilibrium import sizes_of
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.system.linearisation import Complexes, Linearisation
from bulletbridge.system.system import System

RESTS = 1e-6
"""Acceleration, relative to that of one term alone, that counts as rest."""


@dataclass(frozen=True, eq=False)
class Modes:
    """Natural modes of a mechanism near a pose of rest, slowest first.

    Attributes:
        mechanism: Names the coordinates.
        eigenvalues: (n,) [1/s], of conjugate pairs the one with positive imaginary part. Those of
            an undamped way that nothing pulls back come in two that are zero to 1e-5.
        frequencies: (n,) |imaginary part| / 2 pi [Hz]: what is seen.
        damping: (n,) -real part / |eigenvalue|: 1 for what does not swing, negative for what grows.
        shapes: (nv, n) displacements of all rates, complex where parts of it lag, the largest 1.
        linearisation: Of the accelerations, reduced to the freedoms.
    """

    mechanism: Mechanism
    eigenvalues: Complexes
    frequencies: Array
    damping: Array
    shapes: Complexes
    linearisation: Linearisation

    def __repr__(self) -> str:
        """Frequencies and damping."""
        pairs = zip(self.frequencies, self.damping, strict=True)
        return f"<Modes: {', '.join(f'{f:.6g} Hz ({d:.2g})' for f, d in pairs)}>"

    def shape(self, joint: str) -> Complexes:
        """Amplitudes of one joint in each mode: (n,), or (k, n) of several rates.

        Raises:
            ModelError: There is no such joint.
        """
        part = self.shapes[self.mechanism.joint(joint).v]
        return part[0] if len(part) == 1 else part


def modes(system: System) -> Modes:
    """Eigenvalues, frequencies, damping ratios and shapes at the present pose of rest.

    Of the accelerations, whatever the integrator: what steps of a length dt make of them is told by
    ``system.linearise("step").poles``.

    Args:
        system: At rest in an equilibrium, see ``equilibrium``; its ``tau`` is held.

    Raises:
        ModelError: It moves, or is not in balance; or something acts by inequalities.
    """
    require_rest(system)
    linear = system.linearise("continuous", reduced=True)
    values, vectors = (np.asarray(x, np.complex128) for x in np.linalg.eig(linear.A))
    kept = np.flatnonzero(values.imag >= 0.0)
    order = kept[np.lexsort((values[kept].real, np.abs(values[kept])))]
    found: Complexes = values[order]
    shapes = np.asarray(linear.lift @ vectors[:, order], np.complex128)[: system.mechanism.nv]
    largest = np.abs(shapes).argmax(axis=0)
    shapes = shapes / shapes[largest, np.arange(len(order))]
    size = np.abs(found)
    damping = np.where(size > 0.0, -found.real / np.where(size > 0.0, size, 1.0), 0.0)
    frequencies = np.abs(found.imag) / (2.0 * np.pi)
    return Modes(system.mechanism, found, frequencies, damping, shapes, linear)


def require_rest(system: System) -> None:
    """Refuse a state that is no equilibrium."""
    q, t, still = np.array(system.q), system.t, np.zeros(system.mechanism.nv)
    e = system.dynamics.equations(q, still, t)
    split = e.split()
    pushed = split.unwhiten(split.free(split.whiten_force(e.f)))
    alone = np.abs(np.linalg.inv(e.M)) @ sizes_of(system.dynamics.solver, e)
    speed = float(np.abs(system.v).max(initial=0.0))
    if np.any(np.abs(pushed) > RESTS * np.maximum(alone, 1e-300)) or speed > RESTS:
        motors = "; motors are no part of this" if system.motors.any_on else ""
        raise ModelError(
            f"the system does not rest: it moves by {speed:.3g} rad/s or m/s and would accelerate"
            f" by {np.abs(pushed).max(initial=0.0):.3g} rad/s² or m/s²; take the pose of"
            f" equilibrium(system) with no velocity, or give tau that holds it{motors}"
        )
