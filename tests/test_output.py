"""JSON that is written: the same values, a row a line."""

import json
import subprocess
import sys
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from bulletbridge.console import WIDTH, json_text, write_json
from bulletbridge.errors import ModelError

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
FINITE = SCALARS.filter(lambda x: not isinstance(x, float) or abs(x) < float("inf"))
JSON = st.recursive(
    FINITE, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=60
)
ROWS = st.lists(st.dictionaries(st.text(), JSON), min_size=1)


@given(JSON, st.integers(0, 2 * WIDTH))
def test_text_holds_the_same_values(content, padding):
    content = [content, {"padding": "x" * padding, "content": content}]
    assert json.loads(json_text(content)) == content
    assert json.loads(json_text(content[1])) == content[1]


@given(ROWS)
def test_rows_stand_on_a_line_each(rows):
    first, *lines, last = json_text(rows).splitlines()
    assert (first, last) == ("[", "]")
    assert [json.loads(line.removesuffix(",")) for line in lines] == rows


def test_another_row_changes_no_line_but_that_before_it():
    rows = [{"row": k, "values": list(range(k))} for k in range(100)]
    before = json_text({"about": "rows", "rows": rows[:-1]}).splitlines()
    after = json_text({"about": "rows", "rows": rows}).splitlines()
    assert len(after) == len(before) + 1
    assert set(before) - set(after) == {before[-3]}


@pytest.mark.parametrize("file", sorted(BENCHMARKS.glob("*.json")), ids=lambda file: file.name)
def test_results_in_benchmarks_are_as_written_today(file, tmp_path):
    again = tmp_path / file.name
    write_json(again, json.loads(file.read_text()))
    assert again.read_bytes() == file.read_bytes()


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(ModelError, match="cannot write JSON to '.*missing"):
        write_json(tmp_path / "missing" / "file.json", {})


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes that end so")
def test_a_reader_that_has_seen_enough_is_no_error():
    """As under ``| head -1``; a console script lets the error through where ``-m`` does not."""
    script = "import sys; from bulletbridge.cli import main; sys.argv[1:] = ['models']; main()"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.close()  # before anything is written
        assert process.stderr.read() == b""
