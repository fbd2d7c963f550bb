"""Results of a study on disk: a journal while it runs, one parquet file when it is done.

A parquet file is written once and as a whole, and a file of HDF5 that is open when its process is
killed may be lost. So each run is a transaction in an SQLite file beside the result, which a kill
at any time leaves whole; the key of its table is the number of the run, so that none is there
twice. When all runs are there the parquet file is written under another name, put in place in one
operation, and the journal deleted.
"""

import json
import os
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from bulletbridge.errors import BulletBridgeError, ModelError
from bulletbridge.numerics.records import Array
from bulletbridge.studies.study import Study
from bulletbridge.system.recording import require_pyarrow

COLUMNS = "run", "error", "seconds"
"""Columns of the result, besides parameters and measures."""
PART = ".part"
"""After the name of the result: its journal."""


class Outcome(NamedTuple):
    """What became of one run: results, or why there are none."""

    results: dict[str, float]
    error: str
    seconds: float


class Results(NamedTuple):
    """A study as far as it has got."""

    names: tuple[str, ...]  # of the parameters
    measures: tuple[str, ...]  # of the results
    columns: dict[str, Array]  # (n,) values of both by name; NaN where a run failed
    errors: list[str]  # why each run failed; empty for those that did not
    runs: list[int]  # their numbers, ascending


class Journal:
    """Outcomes of runs, each on disk when ``add`` returns.

    Args:
        file: The result; the journal is beside it.
        study: Whose runs.
        resume: Whether to go on with what is there.

    Raises:
        ModelError: There is a result already, of another study or not to be resumed; or another
            process is at it, or it cannot be written.
        MissingExtraError: pyarrow is not installed.
    """

    def __init__(self, file: Path, study: Study, resume: bool) -> None:
        require_pyarrow()
        if file.suffix != ".parquet":
            raise ModelError(f"results are written as parquet, not '{file}'; name it *.parquet")
        if not file.absolute().parent.is_dir():
            raise ModelError(f"cannot write results to '{file}': its directory does not exist")
        self.file, self.study = file, study
        self.part = file.with_name(file.name + PART)
        if not resume and (file.exists() or self.part.exists()):
            raise ModelError(
                f"'{file}' has results already; go on with them by --resume (resume=True), or"
                " choose another name"
            )
        self.is_complete = file.exists() and not self.part.exists()
        if self.is_complete:
            self._require_same(about(file)["key"])
            self.done = set(range(len(study.points)))
            return
        self._open()

    def _open(self) -> None:
        """Begin or go on; the lock goes with the process, however it ends."""
        try:
            self._database = sqlite3.connect(self.part, timeout=1.0, isolation_level=None)
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            raise ModelError(
                f"cannot write '{self.part}' ({error}); is another sweep writing it, or is it no"
                " journal of a sweep?"
            ) from None
        try:
            self._begin()
        except sqlite3.Error as error:
            self._database.close()
            raise ModelError(
                f"'{self.part}' is no journal of a sweep, or cannot be written ({error}); make"
                " room, or remove it"
            ) from None
        except BaseException:
            self._database.close()
            raise

    def _begin(self) -> None:
        """Take what is in the journal, or write down whose it is."""
        execute = self._database.execute
        execute("CREATE TABLE IF NOT EXISTS study (key TEXT, about TEXT)")
        execute(
            "CREATE TABLE IF NOT EXISTS runs"
            " (run INTEGER PRIMARY KEY, results TEXT, error TEXT, seconds REAL)"
        )
        found = execute("SELECT key FROM study").fetchall()
        if not found:
            execute("INSERT INTO study VALUES (?, ?)", (self.study.key, self.study.about))
        execute("COMMIT")
        if found:
            self._require_same(found[0][0])
        self.done = set[int]()
        for line in execute("SELECT run, results, error, seconds FROM runs"):
            if not self._is_own(*line):
                raise ModelError(
                    f"'{self.part}' has a run {line[0]!r} that is none of the"
                    f" {len(self.study.points)} of this study, or no numbers of it; remove that"
                    " journal, or choose another name for the results"
                )
            self.done.add(line[0])

    def _is_own(self, run: object, results: object, error: object, seconds: object) -> bool:
        """Whether a line of the journal is what ``add`` may have written."""
        if not (isinstance(run, int) and 0 <= run < len(self.study.points)):
            return False
        if not (isinstance(results, str) and isinstance(error, str) and isinstance(seconds, float)):
            return False
        try:
            found: object = json.loads(results)
        except ValueError:
            return False
        if not isinstance(found, dict):
            return False
        numbers = cast(dict[str, object], found).values()
        return all(isinstance(number, int | float) for number in numbers)

    def _require_same(self, key: str) -> None:
        """Refuse to mix two studies."""
        if key != self.study.key:
            raise ModelError(
                f"'{self.file}' has results of another study (parameters, settings or model files"
                " differ); choose another name, or remove it"
            )

    def add(self, run: int, outcome: Outcome) -> None:
        """Keep what became of a run, unless that is known already.

        Raises:
            BulletBridgeError: The disk is full, or the journal cannot be written any more.
        """
        try:
            self._database.execute(
                "INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)",
                (run, json.dumps(outcome.results), outcome.error, outcome.seconds),
            )
        except sqlite3.Error as error:
            raise self._unwritten(self.part, error) from None
        self.done.add(run)

    def _unwritten(self, file: Path, error: Exception) -> BulletBridgeError:
        """What is raised when there is no room for results."""
        return BulletBridgeError(
            f"cannot write '{file}' ({error}); the {len(self.done)} runs before are kept in"
            f" '{self.part}': make room, and go on with resume"
        )

    def results(self) -> Results:
        """All runs so far."""
        if self.is_complete:
            return read_study(self.file)
        lines = self._database.execute("SELECT * FROM runs ORDER BY run").fetchall()
        found = [json.loads(line[1]) for line in lines]
        measures = tuple(dict.fromkeys(name for result in found for name in result))
        runs = [int(line[0]) for line in lines]
        columns = {name: self.study.points[runs, k] for k, name in enumerate(self.study.names)}
        for name in measures:
            columns[name] = np.array([result.get(name, np.nan) for result in found])
        return Results(self.study.names, measures, columns, [line[2] for line in lines], runs)

    def finish(self) -> Results:
        """Put the result in place of the journal.

        Raises:
            BulletBridgeError: It cannot be written; the journal stays.
        """
        results = self.results()
        if not self.is_complete:
            lines = self._database.execute("SELECT seconds FROM runs ORDER BY run")
            try:
                self._write(results, [seconds for (seconds,) in lines])
            except OSError as error:
                raise self._unwritten(self.file, error) from None
            self.close()
            self.part.unlink(missing_ok=True)
            self.is_complete = True
        return results

    def _write(self, results: Results, seconds: list[float]) -> None:
        """The parquet file, whole or not at all."""
        arrow, files = require_pyarrow()
        columns: dict[str, Any] = {"run": results.runs, **results.columns}
        columns["error"] = [error or None for error in results.errors]
        columns["seconds"] = seconds
        table = arrow.table({**columns, "error": arrow.array(columns["error"], arrow.string())})
        told = {"names": results.names, "measures": results.measures, "key": self.study.key}
        told["about"] = self.study.about
        table = table.replace_schema_metadata({"bulletbridge": json.dumps(told)})
        new = self.file.with_name(self.file.name + ".new")
        try:
            with open(new, "wb") as stream:
                files.write_table(table, stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(new, self.file)
        finally:
            new.unlink(missing_ok=True)  # half a file

    def close(self) -> None:
        """Close the journal, so that others may open it; one without a run is removed."""
        if not self.is_complete:
            self._database.close()
            if not self.done:
                self.part.unlink(missing_ok=True)


def about(file: Path) -> dict[str, Any]:
    """What a result says of its study.

    Raises:
        ModelError: It is no result of a study.
    """
    _, files = require_pyarrow()
    if not file.exists():
        raise ModelError(f"there is no file '{file}'")
    try:
        return json.loads(files.read_schema(file).metadata[b"bulletbridge"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(f"'{file}' is no result of a study; choose another name") from None


def read_study(file: str | Path) -> Results:
    """A finished study.

    Raises:
        ModelError: It is no result of a study.
        MissingExtraError: pyarrow is not installed.
    """
    _, files = require_pyarrow()
    told = about(Path(file))
    try:
        table = files.read_table(file)
        names, measures = tuple(told["names"]), tuple(told["measures"])
        columns = {name: np.array(table[name], float) for name in (*names, *measures)}
        errors = [error or "" for error in table["error"].to_pylist()]
        return Results(names, measures, columns, errors, table["run"].to_pylist())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"'{file}' is no result of a study that can be read: {error}") from None
