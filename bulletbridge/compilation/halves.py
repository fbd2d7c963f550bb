"""Two halves of a large kernel's machine code, written by two processes at once.

LLVM writes functions one by one, and looks at no other for it. So once a kernel is optimised a
process of its own writes some of them, and this one the rest. Nothing depends on that process:
where it comes to nothing this one writes those as well.
"""

import json
import re
import subprocess
import sys
from contextlib import suppress
from typing import Any

from llvmlite import binding
from numba.core import config

llvm: Any = binding
settings: Any = config
SMALL = 2500
"""Blocks of code, as helpers are linked, below which one process writes all of it in a second."""
KIND = re.compile(r"\b(constant|global)\b")
"""What LLVM's language says first of a variable, before its type and value."""
SCRIPT = """
import json, sys
from llvmlite import binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
target = llvm.Target.from_triple(llvm.get_process_triple())
machine = target.create_target_machine(**json.loads(sys.argv[1]))
module = llvm.parse_bitcode(sys.stdin.buffer.read())
sys.stdout.buffer.write(machine.emit_object(module))
"""


class Writer:
    """A process that writes machine code as this one does; it starts while that is optimised.

    Args:
        codegen: numba's code generator.
    """

    def __init__(self, codegen: Any) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if not sys.executable or getattr(sys, "frozen", False):
            return
        options: dict[str, Any] = {"opt": int(settings.OPT)}
        codegen._customize_tm_options(options)
        with suppress(OSError):  # where none can be started
            self._process = subprocess.Popen(
                [sys.executable, "-c", SCRIPT, json.dumps(options)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )

    def begin(self, module: Any) -> None:
        """Hand it what to write."""
        if self._process is None or self._process.stdin is None:
            return
        with suppress(OSError):  # it has ended: there will be no code
            self._process.stdin.write(module.as_bitcode())
            self._process.stdin.close()
        self._process.stdin = None

    def end(self) -> bytes:
        """What it has written; nothing where it could not."""
        if self._process is None:
            return b""
        written, _ = self._process.communicate()
        return b"" if self._process.returncode else written


def blocks_in(module: Any) -> dict[str, int]:
    """Blocks of code in each function of a module."""
    return {
        one.name: sum(1 for _ in one.blocks) for one in module.functions if not one.is_declaration
    }


def shared_out(blocks: dict[str, int], own: list[str]) -> list[str]:
    """Functions that another process is to write, so that both have as much to do.

    Args:
        blocks: In each function.
        own: Those that are called from elsewhere, which this one writes.
    """
    here, there = sum(blocks[one] for one in own), 0
    others = list[str]()
    for name in sorted(blocks.keys() - own, key=lambda name: (-blocks[name], name)):
        if there < here:
            others.append(name)
            there += blocks[name]
        else:
            here += blocks[name]
    return others


def is_hidden(variable: Any) -> bool:
    """Whether each object that refers to a variable has a copy of its own."""
    return variable.linkage.name in ("internal", "private")


def may_be_divided(module: Any) -> bool:
    """Whether variables of which there are two copies stay as they are, and all others are there.

    LLVM leaves those out that it may and that one of the objects does not need.
    """
    for one in module.global_variables:
        kind = KIND.findall(str(one).partition("=")[2])[:1]
        if (
            kind != ["constant"]
            if is_hidden(one)
            else one.linkage.name not in ("external", "common")
        ):
            return False
    return True


def write(machine: Any, module: Any, own: list[str], writer: Writer) -> tuple[bytes, bytes]:
    """Machine code of an optimised kernel, in two objects.

    Args:
        machine: LLVM's, that writes it.
        module: The kernel; its functions become such as another object can call.
        own: Its functions that are called from elsewhere.
        writer: The other process.

    Returns:
        Its code, all of it in the first where it may not be divided.
    """
    if not may_be_divided(module):
        writer.end()
        return machine.emit_object(module), b""
    blocks = blocks_in(module)
    others = shared_out(blocks, own)
    hidden = [name for name in blocks if name not in own]
    name_of = {name: f"{name}.{own[0]}" for name in hidden}
    for name, new in name_of.items():
        function = module.get_function(name)
        function.name, function.linkage = new, "external"
    there = [name_of[name] for name in others]
    here = [name_of.get(name, name) for name in blocks if name not in set(others)]
    writer.begin(half(module, here, shared=False))
    first = machine.emit_object(half(module, there))
    return first, writer.end() or machine.emit_object(half(module, here, shared=False))


def load(codegen: Any, written: bytes) -> None:
    """Have functions of an object at hand for what refers to them."""
    if written:
        codegen._engine._ee.add_object_file(llvm.ObjectFileRef.from_data(written))


def half(module: Any, elsewhere: list[str], shared: bool = True) -> Any:
    """A copy of a module for which some functions are known, and written elsewhere.

    Args:
        module: All of it.
        elsewhere: Names of these functions.
        shared: Whether variables that others may refer to are written.
    """
    found = module.clone()
    for name in elsewhere:
        found.get_function(name).linkage = "available_externally"
    for one in found.global_variables:
        if not (shared or one.is_declaration or is_hidden(one)):
            one.linkage = "available_externally"
    return found
