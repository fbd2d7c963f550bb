"""How functions are compiled that only kernels call.

numba optimises every function with all that it calls, makes it native and wraps it for Python, and
then does all of that again for each caller: two thirds of the time that a large kernel takes. Here
such functions stay in LLVM's language, tidied up as far as inlining wants them, until the kernel
that they are linked into is optimised as a whole.
"""

from typing import Any, cast

from numba.core import compiler_machinery
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.typed_passes import NativeLowering

machinery: Any = compiler_machinery  # numba has no types


class LinkedCode(cast(Any, JITCodeLibrary)):
    """Code that is linked into other code and never becomes native by itself."""

    def _optimize_final_module(self) -> None:
        """Do the first, cheap part of what numba does."""
        codegen = self._codegen
        passes, builder = codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=codegen._opt_level, cost="cheap"
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalized = True


class OutlinedCode(LinkedCode):
    """Linked code that is never inlined: what is rarely run, or called from many places."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Note which functions are its own, before others are linked to them."""
        super().add_ir_module(ir_module)
        self._own = [f.name for f in self._final_module.functions if not f.is_declaration]

    def _optimize_final_module(self) -> None:
        super()._optimize_final_module()
        for function in self._own:
            self._final_module.get_function(function).add_function_attribute("noinline")


class NotNative(dict[Any, Any]):
    """Its ``__getitem__`` is what numba has for the native code: a built-in function, one each."""

    def __missing__(self, arguments: Any) -> None:
        """Refuse a call from Python."""
        raise TypeError("this function is compiled for kernels only")


@machinery.register_pass(mutates_CFG=True, analysis_only=False)
class LinkedLowering(cast(Any, NativeLowering)):
    """numba's translation of a function to LLVM, into ``LinkedCode``."""

    _name = "linked_lowering"
    code: type[LinkedCode] = LinkedCode

    def run_pass(self, state: Any) -> bool:
        """Translate, and tell others where to find the code."""
        state.library = self.code(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        key, lowered = NotNative().__getitem__, state["cr"]
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=key)
        return True


@machinery.register_pass(mutates_CFG=True, analysis_only=False)
class OutlinedLowering(LinkedLowering):
    """numba's translation of a function to LLVM, into ``OutlinedCode``."""

    _name = "outlined_lowering"
    code = OutlinedCode


class LinkedCompiler(cast(Any, CompilerBase)):
    """numba's passes with ``LinkedLowering``."""

    lowering: type[LinkedLowering] = LinkedLowering

    def define_pipelines(self) -> list[Any]:
        """The passes, in order."""
        usual = cast(Any, DefaultPassBuilder).define_nopython_pipeline(self.state)
        usual.passes = [
            (self.lowering if step is NativeLowering else step, text) for step, text in usual.passes
        ]
        usual._finalized = False
        usual.finalize()
        return [usual]


class OutlinedCompiler(LinkedCompiler):
    """numba's passes with ``OutlinedLowering``."""

    lowering = OutlinedLowering


LINKED: dict[str, Any] = {
    "pipeline_class": LinkedCompiler,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""Options of ``numba.njit``."""
OUTLINED: dict[str, Any] = {**LINKED, "pipeline_class": OutlinedCompiler}
"""Likewise, for functions that are not to be inlined."""
