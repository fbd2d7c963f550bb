"""Recordings: states and figures of a run, step by step, also in files."""

import csv
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.errors import (
    Hinting,
    ModelError,
    UnknownNameError,
    naming_the_extra,
    refuse_name,
)
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array

KINDS = ".npz", ".csv", ".parquet"
"""Endings of files that recordings are written to."""
OF_REACTIONS = "fx", "fy", "fz", "mx", "my", "mz"
"""Endings of columns of reactions."""


class Kept(dict[str, Array]):
    """Reactions that a run has kept, by name."""

    def __missing__(self, name: str) -> NoReturn:
        """Tell how they are kept.

        Raises:
            UnknownNameError: They are not.
        """
        raise UnknownNameError(
            f"the recording has no reactions of '{name}'; ask for them:"
            f" system.run(1.0, reactions=['{name}'])"
        )


@dataclass(frozen=True)
class Recording(Hinting):
    """A trajectory.

    Attributes:
        mechanism: Names the coordinates.
        t: (n,) [s].
        q: (n, nq).
        v: (n, nv).
        rank: (n,) independent rows.
        margin: (n,) weakest independent row over the strongest; small near a singular position.
        passes: (n,) correction passes of the step that ended there.
        reactions: (n, 6) of each constraint and joint that was asked for, by name: force [N], then
            torque [N m]. Those of a constraint are in the world's axes, as of
            ``System.reactions``; of a joint in the axes of the link that it carries, as of
            ``System.joint_reactions``.
        constraints: What else could have been asked for, by name.
    """

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        "time": ".t",
        "times": ".t",
        **dict.fromkeys(("positions", "qpos"), ".q, or run['joint']"),
        **dict.fromkeys(("rates", "velocities", "qvel", "qd"), ".v, or run['joint.rate']"),
        **dict.fromkeys(("gap", "gaps", "energy"), "system.evaluate(q, v, t), at each state"),
        **dict.fromkeys(("to_pandas", "dataframe", "df"), "pandas.DataFrame(run.columns())"),
        **dict.fromkeys(("to_csv", "to_parquet", "write"), "run.save('run.csv')"),
        **dict.fromkeys(("keys", "names", "items"), ".columns()"),
        "plot": "bb.plot(run)",
    }

    mechanism: Mechanism
    t: Array
    q: Array
    v: Array
    rank: np.ndarray
    margin: Array
    passes: np.ndarray
    reactions: dict[str, Array] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Have reactions that were not asked for told as that."""
        object.__setattr__(self, "reactions", Kept(self.reactions))

    def __repr__(self) -> str:
        """How many states of what, and when."""
        when = f", t = {self.t[0]:.6g} to {self.t[-1]:.6g} s" if len(self.t) else ""
        return f"<Recording: {len(self.t)} states of {len(self.mechanism.joints)} joints{when}>"

    def elsewhere(self, name: str) -> str:
        """As of all results; a joint's name is that of a column."""
        return f"run['{name}']" if name in self.mechanism.joints else super().elsewhere(name)

    @classmethod
    def joined(cls, parts: Sequence["Recording"]) -> "Recording":
        """One recording of several that follow each other."""
        columns = [(p.t, p.q, p.v, p.rank, p.margin, p.passes) for p in parts]
        reactions = {
            name: np.concatenate([part.reactions[name] for part in parts])
            for name in parts[0].reactions
        }
        joined = (np.concatenate(c) for c in zip(*columns, strict=True))
        names = parts[0].constraints
        return cls(parts[0].mechanism, *joined, reactions=reactions, constraints=names)

    def __getitem__(self, name: str) -> np.ndarray:
        """One of the columns (n,) by name, as ``run["crank"]`` or ``run["crank.rate"]``.

        Raises:
            UnknownNameError: There is none of that name.
        """
        columns = self.columns()
        if name not in columns:
            refuse_name("column", name, columns)
        return columns[name]

    def columns(self) -> dict[str, np.ndarray]:
        """All of it as columns (n,) by name, as for ``pandas.DataFrame(run.columns())``.

        ``t``, then of each joint ``NAME`` its position and ``NAME.rate`` its rate; joints with
        several coordinates have ``NAME.0`` and so on; then ``rank``, ``margin`` and ``passes``, and
        of each constraint and joint whose reactions were asked for ``NAME.fx`` to ``NAME.mz``.
        """
        found: dict[str, np.ndarray] = {"t": self.t}
        for numbers, end, parts in ((self.q, "", "q"), (self.v, ".rate", "v")):
            for name, joint in self.mechanism.joints.items():
                part = joint.q if parts == "q" else joint.v
                for k in range(part.start, part.stop):
                    several = f".{k - part.start}" if part.stop - part.start > 1 else ""
                    found[f"{name}{end}{several}"] = numbers[:, k]
        found |= {"rank": self.rank, "margin": self.margin, "passes": self.passes}
        for name, reaction in self.reactions.items():
            found |= {f"{name}.{end}": reaction[:, k] for k, end in enumerate(OF_REACTIONS)}
        return found

    def save(self, path: str | Path) -> None:
        """Write the columns to a ``.npz``, ``.csv``, or with the extra ``sweep`` a ``.parquet``.

        All three keep every bit; ``Recording.read`` reads them.

        Raises:
            ModelError: The name ends otherwise, or the file cannot be written.
            MissingExtraError: pyarrow, for parquet, is not installed.
        """
        path, columns = Path(path), self.columns()
        kind = _require_kind(path)
        try:
            if kind == ".npz":
                # not np.savez, whose own arguments joints may be called after
                with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
                    for name, x in columns.items():
                        with file.open(f"{name}.npy", "w") as part:
                            np.lib.format.write_array(part, np.asarray(x), allow_pickle=False)
            elif kind == ".csv":
                with path.open("w", newline="", encoding="utf-8") as file:
                    lines = csv.writer(file)
                    lines.writerow(columns)
                    lines.writerows(zip(*(x.tolist() for x in columns.values()), strict=True))
            else:
                pyarrow, parquet = require_pyarrow(", or write .npz or .csv")
                parquet.write_table(pyarrow.table(columns), path)
        except OSError as error:
            raise ModelError(f"cannot write the recording to '{path}': {error}") from None

    @classmethod
    def read(cls, path: str | Path, mechanism: Mechanism) -> "Recording":
        """Read what ``save`` has written, of a mechanism with the same joints.

        ``system.set_state(run.q[-1], run.v[-1], run.t[-1])`` goes on from its end.

        Raises:
            ModelError: There is no such file, it is none of a recording, or has other joints.
            MissingExtraError: pyarrow, for parquet, is not installed.
        """
        path = Path(path)
        columns = _read_columns(path)
        empty = np.zeros((0, mechanism.nq)), np.zeros((0, mechanism.nv))
        nothing = np.zeros(0)
        n = mechanism.nq + mechanism.nv
        borne = [name.removesuffix(".fx") for name in list(columns)[4 + n :: 6]]
        reactions = {name: np.zeros((0, 6)) for name in borne}
        wanted = cls(mechanism, nothing, *empty, nothing, nothing, nothing, reactions).columns()
        if list(columns) != list(wanted):
            other = sorted(set(columns) ^ set(wanted))[:3] or ["their order"]
            raise ModelError(
                f"'{path}' is not a recording of this mechanism: they differ in"
                f" {', '.join(other)}; take the one that was recorded"
            )
        t, *numbers = columns.values()
        table = np.column_stack([*numbers[:n], t, *numbers[n : n + 3]])
        for k, name in enumerate(borne):
            reactions[name] = np.column_stack(numbers[n + 3 + 6 * k :][:6])
        return replace(from_table(mechanism, table), reactions=reactions)

    def position(self, joint: str) -> Array:
        """Position of a joint over time: (n,), or (n, k) for spherical and free joints.

        Raises:
            ModelError: There is no such joint.
        """
        part = self.mechanism.joint(joint).q
        return self.q[:, part.start] if part.stop - part.start == 1 else self.q[:, part]

    def rate(self, joint: str) -> Array:
        """Rate of a joint over time: (n,), or (n, k) for spherical and free joints.

        Raises:
            ModelError: There is no such joint.
        """
        part = self.mechanism.joint(joint).v
        return self.v[:, part.start] if part.stop - part.start == 1 else self.v[:, part]


def from_table(
    mechanism: Mechanism, table: Array, constraints: Iterable[Constraint] = ()
) -> Recording:
    """Recording from rows of (q, v, t, rank, margin, passes), of what closes these loops."""
    nq, nv = mechanism.nq, mechanism.nv
    q, v = table[:, :nq], table[:, nq : nq + nv]
    t, rank, margin, passes = table[:, nq + nv :].T
    names = tuple(constraint.name for constraint in constraints)
    figures = rank.astype(int), margin, passes.astype(int)
    return Recording(mechanism, t, q, v, *figures, constraints=names)


def _require_kind(path: Path) -> str:
    """The ending of a file of a recording."""
    if path.suffix not in KINDS:
        raise ModelError(f"'{path}' is no recording; give a name that ends in {', '.join(KINDS)}")
    return path.suffix


def _read_columns(path: Path) -> dict[str, np.ndarray]:
    """Columns of a file, by name; nothing in it is run."""
    kind = _require_kind(path)
    reader: Any = require_pyarrow(", or write .npz or .csv")[1] if kind == ".parquet" else None
    try:
        if kind == ".npz":
            with np.load(path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        if kind == ".csv":
            with path.open(newline="", encoding="utf-8") as file:
                head, *lines = csv.reader(file)
            table = np.array(lines, float).reshape(len(lines), len(head))
            return dict(zip(head, table.T, strict=True))
        found = reader.read_table(path)
        return {name: found[name].to_numpy() for name in found.column_names}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ModelError(f"cannot read a recording from '{path}': {error}") from None


def require_pyarrow(otherwise: str = "") -> tuple[Any, Any]:
    """pyarrow, and its part for parquet.

    Args:
        otherwise: What the error says that can be done without it.
    """
    with naming_the_extra("parquet needs pyarrow", "bulletbridge[sweep]", otherwise):
        return import_module("pyarrow"), import_module("pyarrow.parquet")
