"""Compiled kernels, kept on disk for all environments and processes of a user.

What is kept is read by ``pickle``, so a folder that somebody else could write to is refused. A file
is named after all that its content depends on: the sources of the kernel and of what it calls, the
versions of numba and llvmlite, the processor, and the types of the arguments. Whatever cannot be
read is compiled anew.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from time import time as now
from typing import IO, Any, cast

from bulletbridge.compilation.claims import claim, give_up

PACKAGE = Path(__file__).parents[1]
VARIABLE = "BULLETBRIDGE_CACHE_DIR"
"""Environment variable that says where the folder is to be."""
FORGOTTEN = 90 * 86_400.0
"""Age [s] at which kernels that nobody has loaded since are removed."""
DIGEST = hashlib.sha256().digest_size
IMPORT = re.compile(
    r"^\s*(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|.*)|import\s+(.*))", re.MULTILINE
)
"""An import: the module and its names, or modules."""
WORD = re.compile(r"[\w.]+")


def imported_files(source: Path) -> set[Path]:
    """Package files that ``source`` imports, itself included, followed to the end."""
    found: set[Path] = set()
    pending = [source]
    while pending:
        path = pending.pop()
        if path not in found:
            found.add(path)
            pending += imports_of(path)
    return found


@functools.cache
def imports_of(path: Path) -> tuple[Path, ...]:
    """Package files that a file names in its imports.

    Found in its text: a parser takes a sixth of a second for all files of the kernels.
    """
    found: list[Path] = []
    for module, names, modules in IMPORT.findall(path.read_text(encoding="utf-8")):
        named = [module, *(f"{module}.{name}" for name in WORD.findall(names))]
        for name in [*named, *WORD.findall(modules)]:
            head, _, tail = name.partition(".")
            candidate = f"{PACKAGE}{os.sep}{tail.replace('.', os.sep)}.py"
            if head == PACKAGE.name and candidate in AS_IMPORTED:
                found.append(Path(candidate))
    return tuple(found)


def written(folder: str) -> Generator[tuple[str, int]]:
    """When the Python files of a folder and those below it were written [ns], by path."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from written(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path, entry.stat().st_mtime_ns


AS_IMPORTED = dict(written(str(PACKAGE)))
"""What was on disk when this process began to import the package."""


@functools.cache
def digest_of(path: Path) -> bytes:
    """Hash of one file as this process has imported it; of one that was edited since, a number.

    Machine code of what runs here would else be kept under the name of what is on disk now, and
    call it with other arguments.
    """
    now_there = path.stat().st_mtime_ns
    if AS_IMPORTED.get(str(path), now_there) != now_there:
        return os.urandom(DIGEST)
    return hashlib.sha256(path.read_bytes()).digest()


@functools.cache
def source_hash(source: Path) -> str:
    """Hash over a kernel file and all package files it reaches."""
    contents = [digest_of(path) for path in sorted(imported_files(source))]
    return hashlib.sha256(b"".join(contents)).hexdigest()[:16]


@functools.cache
def stamp(source: Path, mode: str) -> str:
    """Hash over the sources of a kernel, and how they are compiled, by what."""
    import llvmlite
    import numba

    tag = sys.implementation.cache_tag
    versions = f"{mode} {tag} {numba.__version__} {llvmlite.__version__}"
    return short_hash(f"{versions} {source_hash(source)}")


class UnsafeFolderError(Exception):
    """A folder in which somebody else could put files; the text says why."""


def wanted_place() -> Path:
    """Where the user wants compiled kernels, or where the system keeps such things.

    Raises:
        UnsafeFolderError: No place is known, or it is not an absolute path.
    """
    for name in (VARIABLE, "NUMBA_CACHE_DIR"):
        if os.environ.get(name):
            place = Path(os.environ[name])
            if not place.is_absolute():
                raise UnsafeFolderError(f"{name} is '{place}', which is not an absolute path")
            return place if name == VARIABLE else place / PACKAGE.name
    for name in ("LOCALAPPDATA", "XDG_CACHE_HOME"):
        place = Path(os.environ.get(name, ""))
        if place.is_absolute():  # a relative one counts for nothing in the XDG specification
            return place / PACKAGE.name
    try:
        return Path.home() / ".cache" / PACKAGE.name
    except RuntimeError as error:
        raise UnsafeFolderError("this user has no home directory") from error


def require_own(folder: Path) -> None:
    """Refuse a folder that somebody else could write to, or replace.

    Raises:
        UnsafeFolderError: It says whose it is, or who may write there.
    """
    if not hasattr(os, "geteuid"):  # Windows keeps such folders apart by itself
        return
    me = os.geteuid()
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise UnsafeFolderError(f"{folder} is not a folder")
    if found.st_uid != me:
        raise UnsafeFolderError(f"{folder} belongs to user {found.st_uid}, not to {me}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnsafeFolderError(f"others may write to {folder}; chmod 700 it, or remove it")
    for above in folder.resolve().parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise UnsafeFolderError(f"everybody may replace what lies in {above}")


def open_folder() -> Path:
    """The folder of compiled kernels, made if it is not there.

    Raises:
        UnsafeFolderError: It must not be used.
        OSError: It cannot be made.
    """
    place = wanted_place()
    place.parent.mkdir(parents=True, exist_ok=True)
    folder = place / "kernels"
    for each in (place, folder):
        each.mkdir(mode=0o700, exist_ok=True)
        require_own(each)
    return folder


@functools.cache
def kernel_folder() -> Path | None:
    """The folder of compiled kernels; None, and one line on stderr, where there can be none."""
    try:
        return open_folder()
    except (UnsafeFolderError, OSError) as error:
        say_not_kept(
            f"{error}. Every process compiles its own; set {VARIABLE} to a folder of yours"
        )
        return None


@functools.cache
def say_not_kept(why: str) -> None:
    """Say it on stderr, once."""
    print(f"bulletbridge: compiled kernels are not kept: {why}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def or_not_kept() -> Generator[None]:
    """Context of what is private to numba: where that has changed, every process compiles."""
    try:
        yield
    except Exception as error:  # whatever it is, the kernel can be compiled
        import numba

        say_not_kept(
            f"numba {numba.__version__} is not what they are kept by:"
            f" {type(error).__name__}: {error}. Every process compiles its own"
        )


class KernelCache:
    """The compiled forms of one kernel on disk, as numba's dispatchers use them.

    Processes that want the same kernel at once compile it once: the others wait for the first.

    Args:
        function: The kernel.
        mode: How it is compiled, see ``compilation.mode``.
    """

    def __init__(self, function: Any, mode: str) -> None:
        self._mode = mode
        self._source = Path(function.__code__.co_filename)
        self._name = f"{self._source.stem}.{function.__qualname__}"

    @property
    def cache_path(self) -> str | None:
        """The folder of this kernel's file, or None."""
        folder = self._folder()
        return None if folder is None else str(folder)

    def holds(self, target: Any) -> bool:
        """Whether there is anything for this processor."""
        folder = self._folder()
        if folder is not None:
            with or_not_kept():
                pattern = f"{self._name}-{self._processor(target)}-*.kernel"
                return any(folder.glob(pattern))
        return False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept for these types; None, with the right to compile it, if there is nothing.

        numba's definitions of all that it knows import a part of SciPy. To compile takes them, and
        so does what plain numba has compiled, which calls its runtime; linked code does not.
        """
        with or_not_kept():
            if self._mode == "plain":
                target_context.refresh()
            path = self._path(sig, target_context)
            if path is None:
                target_context.refresh()
                return None
            from numba.core.compiler import CompileResult

            rebuild = functools.partial(cast(Any, CompileResult)._rebuild, target_context)
            found = read(path, rebuild)
            if found is None:
                claim(path)
                found = read(path, rebuild)  # another process may have been quicker
                if found is not None:
                    give_up(path)
                else:
                    target_context.refresh()
            return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what has been compiled.

        Addresses of this process are in what plain numba compiles: it hands functions that are
        arguments on as Python objects, which compiled code does not look at. Linked code has none.
        """
        with or_not_kept():
            path = self._path(sig, data.target_context)
            if path is None:
                return
            try:
                if self._mode == "plain" or not data.library.has_dynamic_globals:
                    write(path, data._reduce())
                    forget_old(path.parent.parent)
            finally:
                give_up(path)

    def _folder(self) -> Path | None:
        folder = kernel_folder()
        if folder is None:
            return None
        return folder / f"{self._source.stem}-{stamp(self._source, self._mode)}"

    def _processor(self, target: Any) -> str:
        return short_hash(repr(target.codegen().magic_tuple()))

    def _path(self, sig: Any, target: Any) -> Path | None:
        folder = self._folder()
        if folder is None:
            return None
        types = short_hash(str(tuple(sig.args if hasattr(sig, "args") else sig)))
        return folder / f"{self._name}-{self._processor(target)}-{types}.kernel"


def short_hash(text: str) -> str:
    """Twelve digits that stand for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def read(path: Path, rebuild: Callable[..., Any]) -> Any:
    """What is made of the parts in a file; None if it is not there, not whole, or of no use."""
    try:
        content = path.read_bytes()
        digest, payload = content[:DIGEST], content[DIGEST:]
        if hashlib.sha256(payload).digest() != digest:
            return None
        found = rebuild(*pickle.loads(payload))
    except Exception:  # whatever a file from elsewhere holds, what is wanted can be compiled
        return None
    with contextlib.suppress(OSError):
        os.utime(path.parent)
    return found


def write(path: Path, parts: tuple[Any, ...]) -> None:
    """Put parts into a file, whole or not at all; where it cannot be, a line on stderr says why."""
    from numba.core import serialize

    payload = cast(Any, serialize).dumps(parts)
    try:
        with replacing(path) as file:
            file.write(hashlib.sha256(payload).digest())
            file.write(payload)
    except OSError as error:  # as of a full disk; one line for all files
        say_not_kept(
            f"{error.strerror}: {path.parents[1]}. Every process compiles its own; set {VARIABLE}"
            " to a folder where there is room, and that can be written to"
        )


@contextlib.contextmanager
def replacing(path: Path) -> Generator[IO[bytes]]:
    """A file that takes the place of another when all is written."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def forget_old(root: Path) -> None:
    """Remove kernels of sources that nobody has used for long."""
    limit = now() - FORGOTTEN
    with contextlib.suppress(OSError):
        for folder in root.iterdir():
            if folder.is_dir() and folder.stat().st_mtime < limit:
                for file in folder.iterdir():
                    file.unlink(missing_ok=True)
                folder.rmdir()
