"""A second process for one kernel: it translates the kernel's helpers from the other end.

numba meets the helpers of a kernel one after the other, in the order in which they are called, and
each must be known before the next. Another process that takes calls in the opposite order meets
others first. Both keep what they have made, and take what they find, until they meet in the middle.
Nothing depends on it: whatever it does not do, the first process does.
"""

from collections.abc import Callable
from itertools import chain
from typing import Any, cast

import numba
from numba.core import compiler_machinery

from bulletbridge.compilation.deferred import Target, called_in
from bulletbridge.compilation.helper_cache import OUTLINED
from bulletbridge.compilation.linking import KernelCompiler, KernelLowering

machinery: Any = compiler_machinery


class MetError(BaseException):
    """All helpers are known; no ``Exception``, of which numba makes others."""


@machinery.register_pass(mutates_CFG=False, analysis_only=False)
class NoLowering(KernelLowering):
    """The end, in place of a kernel's translation, which is the other process's."""

    _name = "no_lowering"

    def run_pass(self, state: Any) -> bool:
        """Stop.

        Raises:
            MetError: Always.
        """
        raise MetError


class HelpersCompiler(KernelCompiler):
    """The same with ``NoLowering``, last calls first."""

    lowering = NoLowering

    def last_calls_first(self, _function: Any) -> bool:
        """Yes: the other process takes them in their order."""
        return True


class FromTheEnd:
    """What a kernel has in place of its cache, so that nobody waits for it.

    Args:
        function: The kernel in Python.
        options: Of ``numba.njit`` for kernels.
    """

    cache_path = None

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self._function = function
        self._options: dict[str, Any] = {**options, "pipeline_class": HelpersCompiler}

    def holds(self, _target: Any) -> bool:
        """Yes, so that nothing is announced."""
        return True

    def load_overload(self, sig: Any, _target_context: Any) -> None:
        """Translate all that it calls, last calls first.

        Raises:
            MetError: That is done.
        """
        cast(Any, numba.njit(**self._options)(self._function)).compile(sig)


def translate_helpers(
    kernel: Any, options: dict[str, Any], compile_it: Callable[[], None]
) -> list[Target]:
    """Translate what a kernel calls; what it calls that is deferred.

    Args:
        kernel: As numba knows it.
        options: Of ``numba.njit`` for kernels.
        compile_it: Has it compiled for the arguments that it takes.
    """
    kept = kernel._cache
    kernel._cache = FromTheEnd(kernel.py_func, options)
    try:
        compile_it()
    except MetError:
        pass
    finally:
        kernel._cache = kept
    met: list[Any] = list(OUTLINED.values())
    return list(chain(*(called_in(code._final_module).values() for code in met)))
