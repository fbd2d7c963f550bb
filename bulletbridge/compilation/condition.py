"""What kernels are compiled for, and what of them is kept: for ``bulletbridge doctor``."""

from typing import Any, NamedTuple

from bulletbridge.compilation.cache import UnsafeFolderError, open_folder, wanted_place
from bulletbridge.compilation.objects import SHELF

WIDE = "avx512f", "avx2", "avx", "sse4.2", "neon"
"""Vector instructions by which processors differ, the best first."""


class Condition(NamedTuple):
    """Of the compiler and of what it has left on disk.

    Attributes:
        brought: Level of processors of the machine code that the package brings and that is used;
            empty where kernels are compiled here.
        processor: As LLVM calls it, with the best vector instructions that it has; empty where
            nothing is compiled.
        llvmlite: Its version, likewise.
        plain: Whether numba is used without its private parts.
        folder: Of compiled kernels.
        refused: Why it is not used; empty if it is.
        kernels, bytes: How many kernels of any version are kept there, and their size.
    """

    brought: str
    processor: str
    llvmlite: str
    plain: bool
    folder: str
    refused: str
    kernels: int
    bytes: int


def condition() -> Condition:
    """The condition as it is now; the folder of kernels is made if it can be."""
    folder, refused, sizes = "none", "", list[int]()
    try:
        folder = str(wanted_place())
        found = open_folder()
        sizes = [file.stat().st_size for file in found.glob("*/*.kernel")]
    except (UnsafeFolderError, OSError) as error:
        refused = str(error)
    kept = folder, refused, len(sizes), sum(sizes)
    if SHELF is not None:
        return Condition(SHELF.level, "", "", False, *kept)
    return Condition("", *compiler(), *kept)


def compiler() -> tuple[str, str, bool]:
    """The processor as LLVM calls it, llvmlite's version, and whether numba is used plainly."""
    import llvmlite
    import llvmlite.binding

    from bulletbridge.compilation.mode import LINKED

    llvm: Any = llvmlite.binding
    has = llvm.get_host_cpu_features()
    best = next((name for name in WIDE if has.get(name)), "")
    processor = " ".join(filter(None, (llvm.get_host_cpu_name(), best)))
    return processor, str(llvmlite.__version__), not LINKED
