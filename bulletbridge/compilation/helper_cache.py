"""Helpers, typed and translated, kept on disk beside the kernels that they are linked into.

Half of the time of a kernel is numba's for its two hundred helpers, and most kernels have most of
them in common. What one process has made of a helper another takes, though it compile another
kernel, or the same at the same time.
"""

import contextlib
import copy
from pathlib import Path
from typing import Any, NamedTuple, cast

from numba.core import compiler, types, typing

from bulletbridge.compilation.cache import or_not_kept, read, write
from bulletbridge.compilation.claims import give_up
from bulletbridge.compilation.keys import UNREADABLE, NoKeyError, key_of, place_of, type_text
from bulletbridge.compilation.linking import FoundError, LinkedCode, NotNative, OutlinedCode
from bulletbridge.compilation.lowering import Whole

known: Any = types
signature_of: Any = cast(Any, typing).signature
made_of: Any = cast(Any, compiler).compile_result
OUTLINED: dict[Path, OutlinedCode] = {}
"""Code that is never inlined, by its place on disk: whatever calls it is linked with one copy."""


class Kept(NamedTuple):
    """What a file says of a helper.

    Attributes:
        described: numba's description of it.
        returned: The type of what it returns.
        bitcode: Of what it is made of.
        named: The functions in that, see ``LinkedCode``.
        apart: Places, below the folder of kernels, of what it calls that is never inlined.
    """

    described: Any
    returned: Any
    bitcode: bytes
    named: set[str]
    apart: list[str]

    def linked(self, code: type[LinkedCode], path: Path, target_context: Any) -> LinkedCode:
        """The code, as it was kept there; of what is never inlined there is one in a process.

        Raises:
            LookupError: Something that it calls is not kept any more.
        """
        if path in OUTLINED:
            return OUTLINED[path]
        library = code(target_context.codegen(), self.described.qualname)
        called = [outlined_at(path.parents[1] / one, target_context) for one in self.apart]
        take(library, self.bitcode, path, self.named, called)
        return library


def take(library: LinkedCode, bitcode: bytes, path: Path, *others: Any) -> None:
    """Have code be what is kept, in the process that has made it too: LLVM's order of uses is not.

    Kernels would else differ by which of their helpers were on disk.
    """
    library.take_bitcode(bitcode, path, *others)
    if isinstance(library, OutlinedCode):
        OUTLINED[path] = library


def outlined_at(path: Path, target_context: Any) -> OutlinedCode:
    """Code that is never inlined, of which a helper says that it calls it.

    Raises:
        LookupError: There is none, or it is of no use.
    """

    def rebuild(*parts: Any) -> LinkedCode:
        return Kept(*parts).linked(OutlinedCode, path, target_context)

    found = OUTLINED.get(path) or read(path, rebuild)
    if found is None:
        raise LookupError(path)
    return found


class HelperCache:
    """The forms of one helper on disk, as numba's dispatchers use them.

    Two processes that want the same helper at once share the work, see ``LinkedCompiler``.

    Args:
        function: The helper.
        code: What it is compiled into.
    """

    cache_path = None

    def __init__(self, function: Any, code: type[LinkedCode]) -> None:
        self._function, self._code = function, code

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept for these types, or None."""
        with or_not_kept():
            arguments = tuple(sig.args if hasattr(sig, "args") else sig)
            path = place_of(self._function, self._key(arguments), target_context)
            if path is None:
                return None
            target_context.refresh()

            def rebuild(*parts: Any) -> Any:
                kept = Kept(*parts)
                kept.described.argtypes = Whole(arguments)
                return made_of(
                    typing_context=target_context.typing_context,
                    target_context=target_context,
                    signature=signature_of(kept.returned, *arguments),
                    entry_point=NotNative().__getitem__,
                    fndesc=kept.described,
                    library=kept.linked(self._code, path, target_context),
                    objectmode=False,
                )

            found = read(path, rebuild)
            if found is None and path.is_file():
                UNREADABLE.add(path)
            return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what has been translated, if another process can use it."""
        del sig
        with or_not_kept():
            path = place_of(self._function, self._key(data.signature.args), data.target_context)
            if path is None:
                return
            try:
                bitcode, returned = data.library.to_bitcode(), data.signature.return_type
                if bitcode is None or not is_the_same_elsewhere(returned):
                    return
                described = copy.copy(data.fndesc)
                described.typemap = described.calltypes = described.global_dict = None
                described.argtypes = ()
                library = data.library
                called = [str(one.place.relative_to(path.parents[1])) for one in library.apart]
                write(path, Kept(described, returned, bitcode, library.named, called))
                take(library, bitcode, path, library.named, library.apart)
            finally:
                give_up(path)

    def give_up(self, arguments: tuple[Any, ...], target_context: Any) -> None:
        """Let other processes make it, if this one has claimed to and has not."""
        place = place_of(self._function, self._key(arguments), target_context)
        if place is not None:
            give_up(place)

    def _key(self, arguments: tuple[Any, ...]) -> str | None:
        return key_of(self._function, self._code.__name__, arguments)


def keep(dispatcher: Any, code: type[LinkedCode]) -> None:
    """Have a helper looked for on disk before it is translated, and kept there.

    It is looked for once more when all that it calls is known: another process may have been
    quicker. A constant argument is one of its type, not a type of its own: inlined, it is constant
    again.
    """
    dispatcher._cache = kept = HelperCache(dispatcher.py_func, code)
    translate = dispatcher.compile

    def compile_or_find(sig: Any) -> Any:
        kinds = tuple(one.literal_type if isinstance(one, known.Literal) else one for one in sig)
        while True:
            try:
                return translate(kinds)
            except FoundError:  # of no use, it is not found again
                continue
            except BaseException:
                kept.give_up(kinds, dispatcher.targetctx)
                raise

    dispatcher.compile = compile_or_find


def is_the_same_elsewhere(kind: Any) -> bool:
    """Whether another process knows a type by the same words, and can be told of it."""
    if isinstance(kind, known.BaseTuple):
        return all(map(is_the_same_elsewhere, kind.types))
    with contextlib.suppress(NoKeyError):
        return not isinstance(kind, known.Dispatcher) and bool(type_text(kind))
    return False
