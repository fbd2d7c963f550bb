"""Use of numba: private parts of it, or ``numba.njit`` alone where these have changed.

Kernels are linked and called through parts of numba that it promises to nobody. What they look like
is compared whenever the package is imported; what they do is tried by a process of its own, once
for every version of numba and of the files here, since a wrong guess can end a process. Where
anything differs kernels are compiled by plain ``numba.njit``: slower to start, and right.
"""

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import llvmlite
import numba

from bulletbridge.compilation import cache, objects

VARIABLE = "BULLETBRIDGE_PLAIN_NUMBA"
"""Environment variable: 1 asks for plain numba, 0 for its private parts without trying them."""
OLDEST, NEWEST = (0, 62), (0, 68)
"""Versions of numba with which the private parts have been tried by the tests."""
PROBE = "bulletbridge.compilation.probe"
"""The module that tries them."""
PATIENCE = 300.0
"""Time [s] that this may take: only a hang takes longer."""
PASSED = "all is as it was"
SCRIPT = f"import sys; sys.path.insert(0, sys.argv[1]); import {PROBE}; {PROBE}.main(); " + (
    f"print({PASSED!r})"
)

TOUCHED: dict[str, tuple[str, ...] | None] = {
    "numba.core.codegen:JITCodeLibrary._optimize_final_module": ("self",),
    "numba.core.codegen:JITCodeLibrary._get_module_for_linking": ("self",),
    "numba.core.codegen:JITCodeLibrary._finalize_final_module": ("self",),
    "numba.core.codegen:JITCodeLibrary._ensure_finalized": ("self",),
    "numba.core.codegen:JITCodeLibrary._get_compiled_object": ("self",),
    "numba.core.codegen:JITCodeLibrary.add_ir_module": ("self", "ir_module"),
    "numba.core.codegen:JITCodeLibrary.add_linking_library": ("self", "library"),
    "numba.core.codegen:JITCodeLibrary.finalize": ("self",),
    "numba.core.codegen:JITCodeLibrary.enable_object_caching": ("self",),
    "numba.core.codegen:JITCodeLibrary.get_pointer_to_function": ("self", "name"),
    "numba.core.codegen:JITCodeLibrary.serialize_using_object_code": ("self",),
    "numba.core.codegen:JITCodeLibrary._optimize_functions": ("self", "ll_module"),
    "numba.core.codegen:JITCPUCodegen._module_pass_manager": ("self",),
    "numba.core.compiler:CompilerBase.compile_extra": ("self", "func"),
    "numba.core.compiler:CompilerBase.define_pipelines": ("self",),
    "numba.core.compiler:CompileResult._rebuild": None,
    "numba.core.compiler:CompileResult._reduce": ("self",),
    "numba.core.compiler:compile_result": None,
    "numba.core.bytecode:FunctionIdentity.from_function": None,
    "numba.core.compiler:DefaultPassBuilder.define_nopython_pipeline": None,
    "numba.core.compiler_machinery:PassManager._runPass": None,
    "numba.core.compiler_machinery:PassManager.add_pass": ("self", "pss", "description"),
    "numba.core.compiler_machinery:PassManager.finalize": ("self",),
    "numba.core.compiler_machinery:_pass_registry.get": ("self", "clazz"),
    "numba.core.compiler_machinery:register_pass": ("self", "mutates_CFG", "analysis_only"),
    "numba.core.typed_passes:NativeLowering.run_pass": ("self", "state"),
    "numba.core.transforms:canonicalize_cfg": ("blocks",),
    "numba.core.byteflow:_logger.debug": None,
    "numba.core.ssa:_logger.debug": None,
    "numba.core.postproc:PostProcessor.run": ("self", "emit_dels", "extend_lifetimes"),
    "numba.core.base:_has_loc": ("fn",),
    "numba.core.base:BaseContext.insert_user_function": ("self", "func", "fndesc", "libs"),
    "numba.core.base:BaseContext.get_arg_packer": ("self", "fe_args"),
    "numba.core.base:BaseContext.mangler": ("self", "name", "types"),
    "numba.core.base:BaseContext.refresh": ("self",),
    "numba.core.typing.context:BaseContext.refresh": ("self",),
    "numba.core.typing.templates:BaseRegistryLoader.new_registrations": ("self", "name"),
    "numba.core.ir:Inst._rec_list_vars": ("self", "val"),
    "numba.core.ir:Inst.list_vars": ("self",),
    "numba.core.errors:termcolor": (),
    "numba.core.itanium_mangler:mangle": ("ident", "argtys"),
    "numba.np.arrayobj:fix_integer_index": ("context", "builder", "idxty", "idx", "size"),
    "numba.cpython.slicing:guard_invalid_slice": ("context", "builder", "typ", "slicestruct"),
    "numba.cpython.slicing:fix_slice": ("builder", "slice", "size"),
    "numba.cpython.slicing:get_slice_length": ("builder", "slicestruct"),
    "numba.core.cgutils:do_boundscheck": ("context", "builder", "ind", "dimlen"),
    "numba.core.base:BaseContext.enable_boundscheck": None,
    "numba.core.callconv:CPUCallConv.call_function":
        ("self", "builder", "callee", "resty", "argtys", "args"),
    "numba.core.callconv:CPUCallConv.get_function_type": ("self", "restype", "argtypes"),
    "numba.core.callconv:CPUCallConv.return_status_propagate": ("self", "builder", "status"),
    "numba.core.callconv:CPUCallConv.return_user_exc": ("self", "builder", "exc", "exc_args"),
    "numba.core.cgutils:gep_inbounds": ("builder", "ptr"),
    "numba.core.cgutils:alloca_once": ("builder", "ty"),
    "numba.core.cgutils:create_struct_proxy": ("fe_type",),
    "numba.core.cgutils:ValueStructProxy": None,
    "numba.core.cgutils:_StructProxy.__init__": ("self", "context", "builder", "value", "ref"),
    "numba.core.cgutils:_StructProxy.__getitem__": ("self", "index"),
    "numba.core.cgutils:_StructProxy.__setitem__": ("self", "index", "value"),
    "numba.core.cgutils:_StructProxy._get_be_type": ("self", "datamodel"),
    "numba.core.cgutils:_StructProxy._get_ptr_by_index": ("self", "index"),
    "numba.core.cgutils:_StructProxy._getpointer": ("self",),
    "numba.core.cgutils:_StructProxy._getvalue": ("self",),
    "numba.core.cgutils:_StructProxy._setvalue": ("self", "value"),
    "numba.np.arrayobj:make_array": ("array_type",),
    "numba.core.ir_utils:guard": ("func",),
    "numba.core.ir_utils:find_const": ("func_ir", "var"),
    "numba.core.lowering:Lower.lower_binop": ("self", "resty", "expr", "op"),
    "numba.core.types:Type.__hash__": ("self",),
    "numba.core.types.functions:BaseFunction.get_call_type": ("self", "context", "args", "kws"),
    "numba.core.typeinfer:ConstraintNetwork.propagate": ("self", "typeinfer"),
    "numba.core.typeinfer:CallConstraint": None,
    "numba.core.analysis:compute_use_defs": ("blocks",),
    "numba.core.analysis:must_use_alloca": ("blocks",),
    "numba.core.analysis:compute_cfg_from_blocks": ("blocks",),
    "numba.core.datamodel:ArgPacker.__init__": ("self", "dmm", "fe_args"),
    "numba.core.datamodel.packer:_Unflattener.__init__": ("self", "pattern"),
    "numba.core.datamodel.packer:_flatten": ("iterable",),
    "numba.core.lowering:Lower._find_singly_assigned_variable": ("self",),
    "numba.core.lowering:BaseLower.setup_function": ("self", "fndesc"),
    "numba.core.event:start_event": ("kind",),
    "numba.core.event:end_event": ("kind",),
    "numba.core.dispatcher:Dispatcher.compile": ("self", "sig"),
    "numba.core.dispatcher:Dispatcher.get_call_template": ("self", "args", "kws"),
    "numba.core.dispatcher:Dispatcher.get_overload": ("self", "sig"),
    "numba.core.options:DefaultOptions._nrt": None,
    "numba.core.options:DefaultOptions.forceinline": None,
    "numba.core.options:DefaultOptions.no_cfunc_wrapper": None,
    "numba.core.options:DefaultOptions.no_cpython_wrapper": None,
    "numba.core.serialize:dumps": ("obj",),
    "llvmlite.ir:IRBuilder.extract_value": ("self", "agg", "idx"),
    "llvmlite.ir:IRBuilder.goto_block": None,
    "llvmlite.ir:LiteralStructType._to_string": ("self",),
    "llvmlite.binding:add_symbol": ("name", "address"),
    "llvmlite.binding:create_new_function_pass_manager": (),
    "llvmlite.binding:create_new_module_pass_manager": (),
    "llvmlite.binding:create_pass_builder": ("tm", "pto"),
    "llvmlite.binding:create_pipeline_tuning_options": ("speed_level",),
    "llvmlite.binding:ModuleRef.link_in": ("self", "other", "preserve"),
    "llvmlite.binding.newpassmanagers:ModulePassManager.add_dead_arg_elimination_pass": ("self",),
    "llvmlite.binding.newpassmanagers:FunctionPassManager.add_instruction_combine_pass": ("self",),
    "llvmlite.binding.newpassmanagers:FunctionPassManager.add_simplify_cfg_pass": ("self",),
    "llvmlite.binding.newpassmanagers:FunctionPassManager.add_sroa_pass": ("self",),
    "llvmlite.binding:parse_assembly": ("llvmir",),
    "llvmlite.binding:parse_bitcode": ("bitcode",),
}  # fmt: skip
"""Parts used or overridden, with the first of their parameters where they take any."""


def differences() -> Iterator[str]:
    """Parts that are gone, or that take something else; in words."""
    for name, parameters in TOUCHED.items():
        module, _, path = name.partition(":")
        try:
            found: Any = import_module(module)
            for part in path.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError):
            yield f"there is no {name.replace(':', '.')}"
            continue
        code = getattr(found, "__code__", None)
        if parameters is not None and code is not None:
            taken = code.co_varnames[: code.co_argcount]
            if taken[: len(parameters)] != parameters:
                yield f"{name.replace(':', '.')} takes ({', '.join(taken)})"


def trial() -> str | None:
    """Try the private parts in a process of its own; what differs, or None.

    That they have passed is kept beside the kernels.
    """
    folder = cache.kernel_folder()
    source = cache.PACKAGE.joinpath(*PROBE.split(".")[1:]).with_suffix(".py")
    key = cache.short_hash(cache.stamp(source, "linked") + platform.machine())
    passed = None if folder is None else folder / f"trial-{key}" / "passed"
    if passed is not None and passed.is_file():
        return None
    if not sys.executable or getattr(sys, "frozen", False):
        return untried()
    with tempfile.TemporaryDirectory() as kernels:
        command = [sys.executable, "-c", SCRIPT, str(cache.PACKAGE.parent)]
        try:
            done = subprocess.run(
                command,
                env=os.environ
                | {VARIABLE: "0", cache.VARIABLE: kernels, objects.VARIABLE: "compile"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PATIENCE,
            )
        except OSError:
            return untried()
        except subprocess.TimeoutExpired:
            return f"a trial of it did not end within {PATIENCE:.0f} s"
    if done.returncode or PASSED not in done.stdout:
        return (done.stderr.strip().splitlines() or [f"its trial ended by {done.returncode}"])[-1]
    if passed is not None:
        note(passed)
    return None


def untried() -> str | None:
    """Why numba is not used, judged by its version alone for want of a process; or None."""
    parts = numba.__version__.split(".")[:2]
    numbers = tuple(int(part) for part in parts if part.isdigit())
    return (
        None
        if OLDEST <= numbers <= NEWEST
        else "its version is untested, and no process could be started to try it"
    )


def note(file: Path) -> None:
    """Leave an empty file; a full disk is no error."""
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.touch()
    except OSError:
        pass


def decide() -> bool:
    """Whether numba's private parts are used; where they have changed stderr says what has."""
    asked = os.environ.get(VARIABLE, "")
    if asked not in ("", "0", "1"):
        raise ValueError(f"{VARIABLE} is '{asked}'; it can be 0 or 1")
    if cast(Any, numba).config.DISABLE_JIT:
        return False
    if asked:
        return asked == "0"
    found = next(differences(), None) or trial()
    if found is None:
        return True
    print(
        f"bulletbridge: numba {numba.__version__} (llvmlite {llvmlite.__version__}) is not what"
        f" kernels are built on: {found}. They are compiled by plain numba.njit: steps are right,"
        " but slower to start. Known to work: numba"
        f" {'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}",
        file=sys.stderr,
        flush=True,
    )
    return False


LINKED = decide()
"""Whether kernels are linked and called by private parts of numba."""
MODE = "linked" if LINKED else "plain"
"""The same in a word: part of the names of kernels that are kept."""
