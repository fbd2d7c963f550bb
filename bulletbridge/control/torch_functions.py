"""Steps of a system as differentiable functions of PyTorch's tensors."""

from collections.abc import Sequence
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


def to_torch(system: System, parameters: Sequence[str] = ()) -> StepFunctions:
    """Steps of a system as functions of tensors, with the derivatives of ``rollout_gradient``.

    ``step`` and ``rollout`` are ``torch.autograd.Function`` of copies of the system, on the
    processor. q, v and tau may have leading dimensions of many worlds, which run one after another;
    parameters are those of all.

    Args:
        system: What steps; it is not touched later.
        parameters: Names of ``system.parameters`` that are arguments too.

    Raises:
        MissingExtraError: PyTorch is not installed.
        ModelError: A parameter does not exist.

    The functions raise ``ModelError`` for numbers that do not fit, ``AssemblyError`` for a start
    that is open, ``StepError`` for a step that could not be finished, ``UnsupportedError`` as they
    are differentiated by parameters where steps have no derivatives.
    """
    with naming_the_extra("functions of tensors need PyTorch", "bulletbridge[torch]"):
        torch: Any = import_module("torch")
    steps = DifferentiableSteps(system, parameters)

    def array(x: Any) -> np.ndarray:
        return x.detach().cpu().numpy().astype(np.float64)

    class Rollout(torch.autograd.Function):
        """The states of a trajectory, and their pull-back."""

        @staticmethod
        def forward(ctx: Any, q: Any, v: Any, tau: Any, p: Any, t: float) -> tuple[Any, Any]:
            ctx.save_for_backward(q, v, tau, p)
            ctx.t = t
            found = steps.run(Arguments(*map(array, (q, v, tau, p))), t)
            return tuple(torch.as_tensor(x, dtype=q.dtype, device=q.device) for x in found)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, by_q: Any, by_v: Any) -> tuple[Any, ...]:
            given = ctx.saved_tensors
            found = steps.pull_back(Arguments(*map(array, given)), ctx.t, array(by_q), array(by_v))
            pairs = zip(found, given, strict=True)
            return (*(torch.as_tensor(x, dtype=y.dtype, device=y.device) for x, y in pairs), None)

    def rollout(
        q: Any, v: Any, tau: Any, parameters: Any = None, t: float | None = None
    ) -> tuple[Any, Any]:
        if parameters is None:
            parameters = torch.as_tensor(steps.values, dtype=q.dtype, device=q.device)
        return Rollout.apply(q, v, tau, parameters, steps.t if t is None else float(t))

    def step(
        q: Any, v: Any, tau: Any, parameters: Any = None, t: float | None = None
    ) -> tuple[Any, Any]:
        Q, V = rollout(q, v, tau[..., None, :], parameters, t)
        return Q[..., -1, :], V[..., -1, :]

    return StepFunctions(step, rollout)
