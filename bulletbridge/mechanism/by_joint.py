"""Coordinates of a mechanism as arrays that also know the names of its joints."""

from collections.abc import Mapping, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike

from bulletbridge.errors import ModelError, require_kind
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Mask, array_of

Values = Mapping[str, float | Sequence[float]]
"""Numbers by joint name."""


class Counted:
    """Tells how many references Python counts to what has entries set."""

    def __setitem__(self, counts: list[int], _: None) -> None:
        """Note the count."""
        counts.append(getrefcount(self))


def references_without_name() -> int:
    """References to an array that no name holds while an entry is set; 0 if that does not show.

    Measured, since it is the interpreter's matter: from Python 3.14 on a name may count as none.
    """
    counts: list[int] = []
    held = Counted()
    held[counts] = None
    Counted()[counts] = None
    return counts[1] if counts[1] < counts[0] else 0


NAMELESS = references_without_name()


class ByJoint(np.ndarray[Any, np.dtype[np.float64]]):
    """An array of positions, rates or forces, whose entries go by number or by joint name.

    ``x["crank"]`` is a number, or an array for joints with several coordinates, ``x[["a", "b"]]``
    those of several joints. What is calculated from it is a plain array.

    Attributes:
        of: The mechanism that has the names.
        what: ``q``, ``v`` or ``tau``; what is assigned by name to ``tau`` acts, the others are
            copies.
    """

    of: Mechanism | None = None
    what = ""

    if not TYPE_CHECKING:  # a checker is to know which attributes there are

        def __getattr__(self, name: str) -> NoReturn:
            """Refuse an attribute; a joint goes by its name in brackets."""
            there = self.of is not None and name in self.of.joints
            hint = f"; write {self.what}['{name}']" if there else ""
            raise AttributeError(f"an array has no '{name}'{hint}", name=name, obj=self)

    def __getitem__(self, key: Any) -> Any:
        """Entries, by a joint's name or as of any array; plain ones."""
        plain: Any = np.asarray(self)
        if self.of is not None and are_names(key):
            return np.concatenate([np.atleast_1d(self[name]) for name in key])
        if not isinstance(key, str) or self.of is None:
            return plain[key]
        joint = self.of.joint(key)
        part = plain[joint.q if self.what == "q" else joint.v]
        return float(part[0]) if len(part) == 1 else part

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set entries; by name where they act.

        Raises:
            ModelError: There is no such joint, a number is missing or not finite, or the array is a
                copy and by name, or nothing holds it, so that nothing would come of it.
        """
        by_name = isinstance(key, str)
        lost = by_name or getrefcount(self) <= NAMELESS
        if self.of is not None and self.what != "tau" and lost:
            name = key if by_name else next(iter(self.of.joints), "joint")
            raise ModelError(
                f"{self.what} is a copy of the state: set it with set_state({self.what}=...), or"
                f" assemble({{{name!r}: ...}}), which closes the loops;"
                f" {self.what}.copy() is yours to change"
            )
        plain: Any = np.asarray(self)
        if self.of is not None and are_names(key):
            numbers: Array = np.broadcast_to(np.asarray(value, float), len(key))
            for name, number in zip(key, numbers.tolist(), strict=True):
                self[name] = number
        elif not by_name or self.of is None:
            plain[key] = value
        else:
            put_values(self.of, {key: value}, plain, self.what)

    def __array_wrap__(self, array: Any, *_: Any) -> Any:
        """What is calculated is plain."""
        return np.asarray(array)[()]

    def __repr__(self) -> str:
        """As an array."""
        return repr(np.asarray(self))

    def __reduce__(self) -> Any:
        """Copies in other processes are plain."""
        return np.asarray(self).__reduce__()


def are_names(key: Any) -> TypeGuard[list[str]]:
    """Whether these are several joints by name."""
    names = cast(list[Any], key)
    return isinstance(key, list) and bool(names) and all(isinstance(x, str) for x in names)


def put_values(mechanism: Mechanism, values: Values, x: Array, coordinates: str) -> Mask:
    """Write named joint values into q, v or tau; return the mask (nv,) of the rates they belong to.

    Raises:
        ModelError: No values by name, unknown joint, wrong number of values, or a value that is
            not finite.
    """
    held = np.zeros(mechanism.nv, bool)
    known = next(iter(mechanism.joints), "joint")
    said = f"{coordinates} is {values!r}; give values by joint name, as {{{known!r}: 0.5}}"
    require_kind(values, Mapping, said)
    for name, value in values.items():
        joint = mechanism.joint(name)
        part = joint.q if coordinates == "q" else joint.v
        numbers = np.atleast_1d(array_of(f"{coordinates} of joint '{name}'", value))
        if numbers.shape != (part.stop - part.start,) or not np.all(np.isfinite(numbers)):
            raise ModelError(
                f"{coordinates} of joint '{name}' must be {part.stop - part.start} finite "
                f"number(s), not {value}"
            )
        if coordinates == "q" and joint.kind in ("spherical", "free"):
            length = float(np.linalg.norm(numbers[-4:]))
            if not length > 1e-9:
                raise ModelError(f"the quaternion xyzw of joint '{name}' is zero")
            numbers[-4:] /= length
        x[part] = numbers
        held[joint.v] = True
    return held


def forces_of(mechanism: Mechanism, given: ArrayLike | Values) -> Array:
    """Forces (nv,) on the rates: all of them, or those of some joints by name, the others zero.

    Raises:
        ModelError: A joint does not exist, or a number is missing or not finite.
    """
    forces = np.zeros(mechanism.nv)
    if isinstance(given, Mapping):
        put_values(mechanism, given, forces, "tau")
        return forces
    found = np.asarray(given, float)
    if found.shape != forces.shape or not np.all(np.isfinite(found)):
        raise ModelError(
            f"tau is {given!r}; give {len(forces)} finite numbers, or some by joint name"
        )
    return found


def by_joint(numbers: Array, mechanism: Mechanism, what: str) -> ByJoint:
    """The same memory with names."""
    named = numbers.view(ByJoint)
    named.of, named.what = mechanism, what
    return named


def rate_names(mechanism: Mechanism) -> tuple[str, ...]:
    """Names of the rates (nv,): the joint's, with a number where it has several."""
    names = [""] * mechanism.nv
    for name, joint in mechanism.joints.items():
        several = joint.v.stop - joint.v.start > 1
        for k in range(joint.v.start, joint.v.stop):
            names[k] = f"{name}[{k - joint.v.start}]" if several else name
    return tuple(names)
