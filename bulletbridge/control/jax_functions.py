"""Steps of a system as differentiable functions of JAX's arrays."""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from bulletbridge.control.differentiable import (
    Arguments,
    DifferentiableSteps,
    StepFunctions,
)
from bulletbridge.errors import naming_the_extra
from bulletbridge.system.system import System


def to_jax(system: System, parameters: Sequence[str] = ()) -> StepFunctions:
    """Steps of a system as functions of JAX, with the derivatives of ``rollout_gradient``.

    ``step`` and ``rollout`` have a ``jax.custom_vjp`` and call copies of the system on the
    processor, also from what is compiled by ``jax.jit``; ``jax.vmap`` runs worlds one after
    another. JAX's numbers are single unless ``jax_enable_x64`` is set. The time t is a number, not
    an array that is traced.

    Args:
        system: What steps; it is not touched later.
        parameters: Names of ``system.parameters`` that are arguments too.

    Raises:
        MissingExtraError: JAX is not installed.
        ModelError: A parameter does not exist.

    What the steps raise, as of ``to_torch``, comes inside an error of JAX's.
    """
    with naming_the_extra("functions of JAX need it", "bulletbridge[jax]"):
        jax: Any = import_module("jax")
    steps = DifferentiableSteps(system, parameters)
    m, call = steps.mechanism, partial(jax.pure_callback, vmap_method="sequential")

    def run(t: float, *given: Any) -> tuple[np.ndarray, ...]:
        kind = np.asarray(given[0]).dtype
        found = steps.run(Arguments(*(np.asarray(x, np.float64) for x in given)), t)
        return tuple(x.astype(kind) for x in found)

    def pull_back(t: float, by: tuple[Any, Any], *given: Any) -> tuple[np.ndarray, ...]:
        plain = Arguments(*(np.asarray(x, np.float64) for x in given))
        found = steps.pull_back(plain, t, *(np.asarray(x, np.float64) for x in by))
        return tuple(x.astype(np.asarray(y).dtype) for x, y in zip(found, given, strict=True))

    @partial(jax.custom_vjp, nondiff_argnums=(4,))
    def states(q: Any, v: Any, tau: Any, p: Any, t: float) -> Any:
        shape = *q.shape[:-1], tau.shape[-2] + 1
        like = tuple(jax.ShapeDtypeStruct((*shape, n), q.dtype) for n in (m.nq, m.nv))
        return call(partial(run, t), like, q, v, tau, p)

    def forward(q: Any, v: Any, tau: Any, p: Any, t: float) -> Any:
        return states(q, v, tau, p, t), (q, v, tau, p)

    def backward(t: float, given: tuple[Any, ...], by: tuple[Any, Any]) -> Any:
        like = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in given)
        return call(partial(pull_back, t), like, by, *given)

    states.defvjp(forward, backward)

    def rollout(
        q: Any, v: Any, tau: Any, parameters: Any = None, t: float | None = None
    ) -> tuple[Any, Any]:
        q, v, tau = map(jax.numpy.asarray, (q, v, tau))
        p = jax.numpy.asarray(steps.values if parameters is None else parameters)
        return states(q, v, tau, p, steps.t if t is None else float(t))

    def step(
        q: Any, v: Any, tau: Any, parameters: Any = None, t: float | None = None
    ) -> tuple[Any, Any]:
        Q, V = rollout(q, v, jax.numpy.asarray(tau)[..., None, :], parameters, t)
        return Q[..., -1, :], V[..., -1, :]

    return StepFunctions(step, rollout)
