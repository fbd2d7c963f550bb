"""Compilation of kernels, and of the functions that only kernels call.

numba optimises every function with all that it calls, makes it native and wraps it for Python, and
then does all of that again for each caller: two thirds of the time that a large kernel takes. Here
such functions stay in LLVM's language, tidied up as far as inlining wants them, until the kernel
that they are linked into is optimised as a whole.
"""

import gc
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from llvmlite import binding
from numba.core import compiler_machinery, transforms, typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder

from bulletbridge.compilation import bookkeeping, indices, inference, keys, lowering, structures
from bulletbridge.compilation.adapters import BODY, WORDS, adapters, takes_tuples
from bulletbridge.compilation.bookkeeping import replacing
from bulletbridge.compilation.claims import claim, give_up, go_inside
from bulletbridge.compilation.inference import in_turn
from bulletbridge.compilation.keys import is_there, key_of, place_of

llvm: Any = binding  # no types, nor has numba any
DYNAMIC = "numba.dynamic.globals"
"""Beginning of the names of variables by which numba notes addresses of this process."""
CHANGES = [
    *bookkeeping.CHANGES,
    *indices.CHANGES,
    *inference.CHANGES,
    *keys.CHANGES,
    *lowering.CHANGES,
    *structures.CHANGES,
]
"""What stands in the place of parts of numba, while kernels are compiled."""
machinery: Any = compiler_machinery
loops: Any = transforms
typed: Any = typed_passes
untyped: Any = untyped_passes
NEEDED = (
    untyped.TranslateByteCode,
    untyped.FixupArgs,
    untyped.IRProcessing,
    untyped.DeadBranchPrune,
    untyped.InlineInlinables,
    untyped.GenericRewrites,
    untyped.ReconstructSSA,
    typed.NopythonTypeInference,
    typed.PreLowerStripPhis,
    typed.NativeLowering,
    typed.NoPythonBackend,
)
"""Those of numba's passes that kernels take."""
LEFT_OUT = {
    "WithLifting",
    "InlineClosureLikes",
    "RewriteSemanticConstants",
    "RewriteDynamicRaises",
    "MakeFunctionToJitFunction",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "InlineOverloads",
    "PreParforPass",
    "NopythonRewrites",
    "ParforPass",
    "ParforFusionPass",
    "ParforPreLoweringPass",
    "NoPythonSupportedFeatureValidation",
    "AnnotateTypes",
    "IRLegalization",
    "NativeParforLowering",
    "DumpParforDiagnostics",
}
"""The others, which look for what kernels do not have: closures, contexts, errors that are raised,
expressions of whole arrays; or clear variables where they end, for those who count references."""


def run_cheap_passes(codegen: Any, module: Any) -> None:
    """Do the first, cheap part of what numba does: inlining."""
    passes, builder = codegen._module_pass_manager(
        loop_vectorize=False, slp_vectorize=False, opt=codegen._opt_level, cost="cheap"
    )
    passes.run(module, builder)


def leave_out_arguments(module: Any, builder: Any) -> None:
    """Leave out arguments that hidden functions never use; the pass keeps what it saw, so once."""
    once = llvm.create_new_module_pass_manager()
    once.add_dead_arg_elimination_pass()
    once.run(module, builder)


def optimise(codegen: Any, module: Any) -> None:
    """Optimise a kernel with all that it calls for the processor of a code generator.

    What is never inlined takes every number of its tuples, and most of them in vain. LLVM leaves
    those out late, and until then they are a fourth of its time: here they go first.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.slp_vectorization = True, False
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(codegen._tm, options)
    leave_out_arguments(module, builder)
    run_cheap_passes(codegen, module)
    leave_out_arguments(module, builder)
    builder.getModulePassManager().run(module, builder)


def has_addresses(module: Any) -> bool:
    """Whether a module has addresses of this process."""
    return any(one.name.startswith(DYNAMIC) for one in module.global_variables)


def joined(modules: list[Any]) -> Any:
    """One module of several, halves first: for each that it links LLVM looks through all others.

    What may be left out LLVM links only where it is called by then: here it may not.
    """
    if len(modules) > 1:
        half = len(modules) // 2
        found = joined(modules[:half])
        found.link_in(joined(modules[half:]))
        return found
    found = modules[0].clone()
    for function in found.functions:
        if function.linkage.name == "linkonce_odr":
            function.linkage = "weak_odr"
    return found


SOON = 0.3
"""Time [s] to wait for another process's helper: most take less, and to share those is in vain."""


class KernelCode(cast(Any, JITCodeLibrary)):
    """Native code of a kernel with all that is linked into it."""

    own: list[str]

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.apart: dict[OutlinedCode, None] = {}
        """What it calls that is never inlined, in the order in which it was met."""

    def add_linking_library(self, library: Any) -> None:
        """Note what is to be linked; what is never inlined comes last, and once."""
        if isinstance(library, OutlinedCode):
            self.apart[library] = None
        else:
            super().add_linking_library(library)
        if isinstance(library, LinkedCode) and not isinstance(library, OutlinedCode):
            self.apart |= library.apart

    def link_what_is_apart(self) -> None:
        """Link all that is never inlined, and all that this calls."""
        if self.apart:
            outlined: list[Any] = callers_first(self.apart)
            each = [one._get_module_for_linking() for one in outlined]
            self._final_module.link_in(joined(each))

    def add_ir_module(self, ir_module: Any) -> None:
        """Note which functions are its own, before others are linked to them."""
        super().add_ir_module(ir_module)
        self.own = [f.name for f in self._final_module.functions if not f.is_declaration]

    def _optimize_functions(self, ll_module: Any) -> None:
        """Tidy up what a module defines, so that it is short; the rest is done in kernels."""
        ll_module.data_layout = self._codegen._data_layout
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        builder = llvm.create_pass_builder(self._codegen._tm, options)
        passes = llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        """Optimise as numba does, but for two things.

        Nobody else calls what is linked, so that arguments in vain can go. Loops are as long as a
        mechanism has joints or rows, and mostly too short to gain from being unrolled: that made
        kernels a third longer, slower to compile and, if anything, slower.
        """
        self.link_what_is_apart()
        self.require_linked()
        self.hide_others()
        optimise(self._codegen, self._final_module)

    def require_linked(self) -> None:
        """See that what is never inlined is there: a call of what is not ends the process."""
        named = set[str]().union(*(one.named or one.own for one in callers_first(self.apart)))
        functions = self._final_module.functions
        missing = [one.name for one in functions if one.is_declaration and one.name in named]
        assert not missing, f"{self.name} calls {missing}, which are not linked"

    def hide_others(self) -> None:
        """Keep what is linked to itself."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in self.own:
                function.linkage = "internal"

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Native code, and in place of its bitcode only the names that it defines.

        Nothing links it, see ``jit.kernel``: reading its bodies would take as long as loading it.
        """
        self._ensure_finalized()
        names = [f.name for f in self._final_module.functions if not f.is_declaration]
        stubs = "\n".join(f'define void @"{name}"() {{ unreachable }}' for name in names)
        named = llvm.parse_assembly(stubs)
        return self.name, "object", (self._get_compiled_object(), named.as_bitcode())


class LinkedCode(KernelCode):
    """Code that is linked into other code and never becomes native by itself.

    What it calls that is never inlined is linked into the kernel alone: each helper on the way
    would else hold a copy of it.

    Attributes:
        place: Where it is kept on disk, if it is.
        named: Functions in it that have the same name in all processes, see ``keys``; None where
            one that others are to find has not.
    """

    named: set[str] | None = None
    key: str | None = None
    place: Path | None = None

    def _optimize_final_module(self) -> None:
        """Inline, and let others have it without a copy of their own to change."""
        run_cheap_passes(self._codegen, self._final_module)
        for name in self.own:
            function = self._final_module.get_function(name)
            if function.linkage.name == "external":
                function.linkage = "linkonce_odr"
        libraries = (*self._linking_libraries, *self.apart)
        linked = [x.named for x in libraries if isinstance(x, LinkedCode)]
        if self.key is None or None in linked:
            return
        self.named = set(self.own).union(*(x for x in linked if x is not None))
        for function in self._final_module.functions:  # what is left of numba's own
            if not function.is_declaration and function.name not in self.named:
                function.linkage = "internal"

    def to_bitcode(self) -> bytes | None:
        """What another process can link; None for what holds names or addresses of this one."""
        self._ensure_finalized()
        if self.named is None or not all(is_there(one.place) for one in self.apart):
            return None
        final = self._final_module
        if has_addresses(final):  # often of functions that were arguments, and used no more
            final = self._what_is_used()
        return None if has_addresses(final) else final.as_bitcode()

    def _what_is_used(self) -> Any:
        """A copy without variables and functions that nothing refers to."""
        kept = [self._final_module.get_function(name) for name in self.own]
        before = [function.linkage for function in kept]
        for function in kept:
            function.linkage = "external"
        found = llvm.parse_assembly("")
        found.link_in(self._final_module, preserve=True)
        for function, linkage in zip(kept, before, strict=True):
            function.linkage = linkage
            found.get_function(function.name).linkage = linkage
        return found

    def take_bitcode(
        self, bitcode: bytes, place: Path, named: set[str], apart: Iterable["OutlinedCode"]
    ) -> None:
        """Be what another process has made, and kept there."""
        self.apart, self.place = dict.fromkeys(apart), place
        self._final_module = llvm.parse_bitcode(bitcode)
        self.named, self._finalized = named, True

    def _get_module_for_linking(self) -> Any:
        """The module itself, which others are given copies of."""
        self._ensure_finalized()
        return self._final_module

    def _finalize_final_module(self) -> None:
        self._finalized = True


class OutlinedCode(LinkedCode):
    """Linked code that is never inlined: what is rarely run, or called from many places."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Mark its functions; llvmlite before 0.48 cannot once they are parsed.

        Those that take tuples become what functions of numbers are to do, see ``adapters``.
        """
        own = [one for one in ir_module.functions if not one.is_declaration]
        for one in own:
            one.attributes.add("alwaysinline" if takes_tuples(one) else "noinline")
        super().add_ir_module(ir_module)
        module = self._final_module
        for one in filter(takes_tuples, own):
            body = module.get_function(one.name)
            body.name = one.name + BODY
            module.link_in(llvm.parse_assembly(adapters(one)))
            body.linkage = "internal"
            self.own.append(one.name + WORDS)


def callers_first(apart: Iterable[OutlinedCode]) -> list[OutlinedCode]:
    """Code that is never inlined and all such code that it calls, each after all that call it."""
    done = dict[OutlinedCode, None]()

    def finish(one: OutlinedCode) -> None:
        if one not in done:
            for called in one.apart:
                finish(called)
            done[one] = None

    for one in apart:
        finish(one)
    return list(reversed(done))


class FoundError(BaseException):
    """A helper is on disk by now; no ``Exception``, of which numba makes others."""


class NotNative(dict[Any, Any]):
    """Its ``__getitem__`` is what numba has for the native code: a built-in function, one each."""

    def __missing__(self, arguments: Any) -> None:
        """Refuse a call from Python."""
        raise TypeError("this function is compiled for kernels only")


@machinery.register_pass(mutates_CFG=False, analysis_only=False)
class KernelLowering(typed.NativeLowering):
    """numba's translation of a function to LLVM, into ``KernelCode``."""

    _name = "kernel_lowering"
    code: type[KernelCode] = KernelCode
    lowering_class = lowering.KernelLower

    def key_of(self, state: Any) -> str | None:
        """Digits that stand for sources and types, by which the function is then named."""
        function = state.func_id.func
        made = key_of(function, self.code.__name__, tuple(state.args))
        if made is not None:
            state.func_id.unique_id = int(made, 16)
            state.func_id.unique_name = f"{state.func_id.func_qualname}${made}"
        return made

    def run_pass(self, state: Any) -> bool:
        """Translate."""
        self.key_of(state)
        state.library = self.code(state.targetctx.codegen(), state.func_id.func_qualname)
        if not state.flags.no_compile:
            state.library.enable_object_caching()
        super().run_pass(state)
        return True


@machinery.register_pass(mutates_CFG=False, analysis_only=False)
class LinkedLowering(KernelLowering):
    """numba's translation of a function to LLVM, into ``LinkedCode``."""

    _name = "linked_lowering"
    code = LinkedCode
    lowering_class = lowering.HelperLower

    def run_pass(self, state: Any) -> bool:
        """Translate a function that kernels call to an object of its own, kept on disk.

        Its name ends with the key of its sources and types, so that kernels that call it are
        linked with that object, whichever process made it. Nothing is made ready to be called
        from Python: numba gets a stand-in for the address.

        Raises:
            FoundError: Another process has done so meanwhile.
        """
        state.flags.no_compile = True
        made = self.key_of(state)
        place = place_of(state.func_id.func, made, state.targetctx)
        if place is not None:
            claim(place)
        if place is not None and is_there(place):
            give_up(place)
            raise FoundError
        super().run_pass(state)
        state.library.key, state.library.place = made, place
        key, lowered = NotNative().__getitem__, state["cr"]
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=key)
        return True


@machinery.register_pass(mutates_CFG=False, analysis_only=False)
class OutlinedLowering(LinkedLowering):
    """numba's translation of a function to LLVM, into ``OutlinedCode``."""

    _name = "outlined_lowering"
    code = OutlinedCode


class Passes(machinery.PassManager):
    """Passes in order; numba writes down besides what takes how long, and types of arguments."""

    def _runPass(self, _index: int, step: Any, state: Any) -> None:  # noqa: N802
        """Do one; what follows takes loops to have one way back."""
        step.analysis = self._analysis
        step.run_initialization(state)
        step.run_pass(state)
        step.run_finalizer(state)
        if machinery._pass_registry.get(type(step)).mutates_CFG:
            state.func_ir.blocks = loops.canonicalize_cfg(state.func_ir.blocks)


class KernelCompiler(cast(Any, CompilerBase)):
    """Those of numba's passes that are needed, with ``KernelLowering``."""

    lowering: type[KernelLowering] = KernelLowering
    state: Any

    def define_pipelines(self) -> list[Any]:
        """The passes, in order, each once.

        Raises:
            NotImplementedError: numba has others than those that are known.
        """
        usual = cast(Any, DefaultPassBuilder).define_nopython_pipeline(self.state)
        given = [step for step, _ in usual.passes]
        gone = {step.__name__ for step in NEEDED if step not in given}
        new = {step.__name__ for step in given if step not in NEEDED} - LEFT_OUT
        if gone or new:
            raise NotImplementedError(f"numba's passes are others: {', '.join(gone | new)}")
        needed = {step: text for step, text in usual.passes if step in NEEDED}
        passes = Passes(usual.pipeline_name)
        for step, text in needed.items():
            passes.add_pass(self.lowering if step is typed.NativeLowering else step, text)
        passes.finalize()
        return [passes]

    def compile_extra(self, func: Any) -> Any:
        """Compile, with garbage left for later: hardly any arises among millions of objects."""
        collected = gc.isenabled()
        gc.disable()
        try:
            with replacing(CHANGES), in_turn(self.last_calls_first(func)):
                return cast(Any, CompilerBase).compile_extra(self, func)
        finally:
            if collected:
                gc.enable()

    def last_calls_first(self, _function: Any) -> bool:
        """Whether what it calls is to be translated from its end to its beginning."""
        return False


CLAIMED: list[Path] = []
"""Helpers that this process is at, each called by the one before."""


class LinkedCompiler(KernelCompiler):
    """The same with ``LinkedLowering``.

    Where another process is at what the same function calls, this one starts from the other end:
    each takes what the other has made, until they meet, and who is first there translates the
    function.
    """

    lowering = LinkedLowering

    def last_calls_first(self, function: Any) -> bool:
        """Whether another process is at what it calls, or has much to do.

        Raises:
            FoundError: That process is done.
        """
        arguments = tuple(self.state.args)
        made = key_of(function, self.lowering.code.__name__, arguments)
        place = place_of(function, made, self.state.targetctx)
        if place is None:
            return False
        mine = claim(place, SOON, to_share=True)
        if is_there(place):
            give_up(place)
            raise FoundError
        if mine:
            CLAIMED.append(place)
        return not mine

    def compile_extra(self, func: Any) -> Any:
        """Compile, and tell other processes that this one is at what the last claimed one calls."""
        if CLAIMED:
            go_inside(CLAIMED[-1])
        count = len(CLAIMED)
        try:
            return super().compile_extra(func)
        finally:
            del CLAIMED[count:]


class OutlinedCompiler(KernelCompiler):
    """The same with ``OutlinedLowering``."""

    lowering = OutlinedLowering


NATIVE: dict[str, Any] = {"pipeline_class": KernelCompiler, "no_cfunc_wrapper": True}
"""Options of ``numba.njit``."""
LINKED: dict[str, Any] = {
    "pipeline_class": LinkedCompiler,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""Likewise, for functions that only kernels call."""
OUTLINED: dict[str, Any] = {**LINKED, "pipeline_class": OutlinedCompiler}
"""Likewise, for those that are not to be inlined."""
