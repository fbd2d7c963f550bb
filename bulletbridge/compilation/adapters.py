"""What stands between tuples as one value each and functions that take every number by itself.

Code that is never inlined takes numbers, so that LLVM leaves out those that it never uses: a tuple
of the arrays of a system is five hundred. To have numba take tuples apart at every call, and put
them together in every function, was most of what it wrote. Here that is said once for each function
and left to LLVM.
"""

from typing import Any, NamedTuple

from llvmlite import ir

AGGREGATES: Any = ir.LiteralStructType, ir.ArrayType
WORDS, BODY = ".words", ".body"
"""Ends of the names of a function that takes numbers, and of what it is to do with tuples."""
NAME = "#"
"""Stands for the name of an argument."""


class Unpacked(NamedTuple):
    """How an argument of some type is taken apart and put together, in LLVM's language.

    Attributes:
        apart: Instructions that make numbers of the argument.
        numbers: Types and names of these.
        whole: Instructions that make the argument of numbers.
        value: Its name then.
    """

    apart: str
    numbers: str
    whole: str
    value: str

    def of(self, name: str) -> "Unpacked":
        """The same for an argument that has a name."""
        return Unpacked(*(text.replace(NAME, name) for text in self))


_known: dict[str, Unpacked] = {}
"""By the text of the type."""


def takes_tuples(function: Any) -> bool:
    """Whether a function takes tuples, each as one value."""
    return any(isinstance(one.type, AGGREGATES) for one in function.args)


def unpacked(kind: Any) -> Unpacked:
    """How arguments of a type are taken apart and put together."""
    text = str(kind)
    if text not in _known:
        apart, numbers, whole = list[str](), list[str](), list[str]()

        def visit(kind: Any, text: str, place: str) -> str:
            """Write of a part; its name once it is put together."""
            name = f'%"{place}"'
            if not isinstance(kind, AGGREGATES):
                numbers.append(f"{text} {name}")
                return name
            found = "undef"
            for k, part in enumerate(kind.elements):
                of_part, inside = str(part), f"{place}.{k}"
                apart.append(f'%"{inside}" = extractvalue {text} {name}, {k}')
                value = visit(part, of_part, inside)
                whole.append(f'%"{place}:{k}" = insertvalue {text} {found}, {of_part} {value}, {k}')
                found = f'%"{place}:{k}"'
            return found

        value = visit(kind, text, NAME)
        parts = "\n".join(apart), ", ".join(numbers), "\n".join(whole)
        _known[text] = Unpacked(*parts, f"{text} {value}")
    return _known[text]


def adapters(function: Any) -> str:
    """The function under its name, inlined, that of numbers, never inlined, and its body's head.

    Args:
        function: As numba has written it for llvmlite, with tuples as one value each.
    """
    name, result = function.name, function.ftype.return_type
    takes = ", ".join(map(str, function.args))
    apart, given, heads, whole, values = (list[str]() for _ in range(5))
    for one in function.args:
        if isinstance(one.type, AGGREGATES):
            found = unpacked(one.type).of(one.name)
            apart.append(found.apart)
            given.append(found.numbers)
            heads.append(found.numbers)
            whole.append(found.whole)
            values.append(found.value)
        else:
            given.append(f"{one.type} {one.get_reference()}")
            heads.append(str(one))
            values.append(given[-1])
    return "\n".join(
        (
            f'define {result} @"{name}"({takes}) alwaysinline {{',
            *apart,
            f'%status = call {result} @"{name}{WORDS}"({", ".join(given)})',
            f"ret {result} %status",
            "}",
            f'define {result} @"{name}{WORDS}"({", ".join(heads)}) noinline {{',
            *whole,
            f'%status = call {result} @"{name}{BODY}"({", ".join(values)})',
            f"ret {result} %status",
            "}",
            f'declare {result} @"{name}{BODY}"({takes})',
        )
    )
