"""numba's structures as values, not as places in memory.

Whatever reads a field of an array, a range or a pair had numba put the whole of it into memory
first: a fourth of what it translated, all of which LLVM then cleared away. Here a field is taken
out of the value, and put into it. Where that cannot be, since a field is set in one branch alone or
its address is asked for, the structure is in memory as before, from where it was made. None of
numba's functions that kernels use reads in a loop what it sets there afterwards.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np import arrayobj

known: Any = types
llvm: Any = ir
code: Any = cgutils
like_arrays: Any = arrayobj
structures: Any = code._StructProxy
values: Any = code.ValueStructProxy
text_of: Any = llvm.LiteralStructType._to_string
_taken: Any = llvm.IRBuilder.extract_value
_arrays: dict[Any, Any] = {}
"""Classes of arrays by their type."""

_begin: Any = structures.__init__
_field, _put_field = structures.__getitem__, structures.__setitem__
_pointer, _place = structures._get_ptr_by_index, structures._getpointer
_value, _put_value = structures._getvalue, structures._setvalue


def begin(self: Any, context: Any, builder: Any, value: Any = None, ref: Any = None) -> None:
    """Make a structure: of a value, of zeros, or of what is in memory already."""
    if ref is not None or not isinstance(self, values):
        _begin(self, context, builder, value, ref)
        return
    self._context, self._builder = context, builder
    self._datamodel = context.data_model_manager[self._fe_type]
    self._be_type = self._get_be_type(self._datamodel)
    if value is None:
        value = llvm.Constant(self._be_type, None)
    assert value.type == self._be_type
    self._whole, self._set, self._made_in = value, dict[int, Any](), builder.block


def is_value(self: Any) -> bool:
    """Whether a structure is not in memory."""
    return "_whole" in vars(self)


def whole_of(self: Any) -> Any:
    """The value with the fields that were set."""
    found = self._whole
    for index, value in self._set.items():
        found = self._builder.insert_value(found, value, index)
    return found


def into_memory(self: Any) -> None:
    """Have it in memory, from the end of the block where it was made."""
    if not is_value(self):
        return
    self._value = self._outer_ref = found = code.alloca_once(self._builder, self._be_type)
    with self._builder.goto_block(self._made_in):
        self._builder.store(whole_of(self), found)
    del self._whole


def field(self: Any, index: int) -> Any:
    """A field."""
    if not is_value(self):
        return _field(self, index)
    found = self._set.get(index)
    return self._builder.extract_value(self._whole, index) if found is None else found


def put_field(self: Any, index: int, value: Any) -> None:
    """Set a field."""
    if is_value(self) and self._builder.block is self._made_in:
        if value.type == self._be_type.elements[index]:
            self._set[index] = value
            return
    into_memory(self)
    _put_field(self, index, value)


def pointer(self: Any, index: int) -> Any:
    """Where a field is in memory."""
    into_memory(self)
    return _pointer(self, index)


def place(self: Any) -> Any:
    """Where it is in memory."""
    into_memory(self)
    return _place(self)


def value_of(self: Any) -> Any:
    """The value."""
    return whole_of(self) if is_value(self) else _value(self)


def put_value(self: Any, value: Any) -> None:
    """Set all fields."""
    into_memory(self)
    _put_value(self, value)


_make: Any = like_arrays.make_array


def make_array(kind: Any) -> Any:
    """The structure of an array; what is like an array is numba's."""
    if type(kind) is not known.Array:
        return _make(kind)
    found = _arrays.get(kind)
    if found is None:
        found = _arrays[kind] = code.create_struct_proxy(kind)
    return found


def taken(self: Any, whole: Any, index: Any, name: str = "") -> Any:
    """Part of a structure: what was put there, where that is seen."""
    place = index if isinstance(index, int) else index[0] if len(index) == 1 else None
    while place is not None and isinstance(whole, llvm.instructions.InsertValue):
        if whole.indices[0] == place:
            if len(whole.indices) == 1:
                return whole.value
            break
        whole = whole.aggregate
    if place is not None and isinstance(whole, llvm.Constant) and whole.constant is None:
        return llvm.Constant(whole.type.elements[place], None)
    return _taken(self, whole, index, name)


def text(self: Any) -> str:
    """A structure's text, put together once: it is repeated wherever a part is taken out."""
    if not hasattr(self, "_text"):
        self._text = text_of(self)
    return self._text


CHANGES: list[tuple[Any, str, Any]] = [
    (structures, "__init__", begin),
    (structures, "__getitem__", field),
    (structures, "__setitem__", put_field),
    (structures, "_get_ptr_by_index", pointer),
    (structures, "_getpointer", place),
    (structures, "_getvalue", value_of),
    (structures, "_setvalue", put_value),
    (arrayobj, "make_array", make_array),
    (llvm.IRBuilder, "extract_value", taken),
    (llvm.LiteralStructType, "_to_string", text),
]
"""What stands in place of what: owner, name, and the function."""
