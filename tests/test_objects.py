"""Kernels brought as machine code: called without numba, compiled here where they do not fit."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_jit import environment, put_package

from bulletbridge.compilation import objects
from bulletbridge.engine.dop853_tables import A8, C8, FIFTH, STAGES8, THIRD

CALLEE = """
from small.compilation.jit import helper

@helper
def f(x: float) -> float:
    return x + {step}
"""
CALLER = """
import sys
import numpy as np
from small.callee import f
from small.compilation.jit import call_stored, caller, deferred, kernel
from small.compilation.stored_calls import StoredCall

RECORD = np.dtype((np.record, [("k", "i8"), ("p", "f8", (3,)), ("R", "f8", (2, 2))]))

@kernel
def gather(records, line, table, n, m):
    line[0] = f(0.25 * m) + records[n].p[1] + records[n].R[1, 0] + table[n, 1]
    table[n, 0] = 7.0
    return len(records) + 10 * table.shape[1]

@deferred
def count(record, pair, more: int) -> tuple[int, float]:
    return pair[0] + int(record.k) + more, len(pair[1])

@kernel
def both(x, pair, records):
    number, length = count(records[0], pair, 1)
    return f(x), (number, int(length))

@kernel
def nothing(line):
    line[0] = 3.0

@caller
def twice(blocks, given, n, m):
    return call_stored(blocks[:1], (given, n, m)) + call_stored(blocks[1:], (given, n, m))

def arguments():
    records = np.zeros(4, RECORD)
    records["p"], records["R"] = np.arange(12.0).reshape(4, 3), 0.5
    return records, np.zeros(1), np.arange(6.0).reshape(3, 2), 2, 1

def use():
    records, line, table, n, m = arguments()
    one = StoredCall(gather, (records, line), (table, n, m))
    blocks = np.concatenate([one.block, one.block])
    told = [gather(records, line, table, n, m), float(line[0]), one.call((table, n, m))]
    told += [StoredCall(twice, (blocks,), (table, n, m)).call((table, n, m))]
    whole, again = one.with_rest((table, n, m)).call, ((table, n, m),)
    told += [StoredCall(call_stored, (one.block,), again).call(again)]
    told += [whole(()), both(0.25, (n, line), records), nothing(line), float(line[0])]
    return told

if __name__ == "__main__":
    exec(sys.argv[1]) if len(sys.argv) > 1 else print(use())
    print(*(name for name in ("numba", "llvmlite") if name in sys.modules))
"""
MAKE = """
import sys
from pathlib import Path
from small.caller import use
from small.compilation.emit import CannotEmitError, emit
def make():
    emit(Path(sys.argv[1]), ["x86-64-v2"], processes=1, say=lambda text: None)
try:
    make()
except CannotEmitError as error:
    print(error)
print(use())
make()
"""
BLOCKED = "raise ModuleNotFoundError(f'no {__name__}', name=__name__)"
TOLD = "[24, 13.75, 24, 48, 24, 24, (1.25, (3, 1)), None, 3.0]"
"""Of ``use``: 0.25 + 1 + 7 + 0.5 + 5."""
DEFERRED = ["bulletbridge: compiling count", "bulletbridge: compiled count"]
"""Said by whoever has it compiled."""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not (shutil.which("cc") and shutil.which("readelf")),
    reason="machine code is made on Linux, with a linker",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of the small package, with byte code, and of objects of its kernels."""
    room = tmp_path_factory.mktemp("made")
    root = small(room)
    done = python(root, "-c", MAKE, str(room / "objects"), BULLETBRIDGE_KERNELS="compile")
    assert not done.returncode, done.stderr
    refused, told = done.stdout.splitlines()
    assert "nothing has called call_stored, gather, both, nothing, twice" in refused
    assert told == TOLD
    return room


def small(room):
    """The package in a folder, without objects."""
    root = put_package(room)
    emit = Path(__file__).parents[1] / "release" / "emit.py"
    of_small = emit.read_text().replace("bulletbridge", "small")
    (root / "compilation" / "emit.py").write_text(of_small)
    (root / "callee.py").write_text(CALLEE.format(step=1))
    (root / "caller.py").write_text(CALLER)
    return root


def python(root, *arguments, without_numba=False, **changes):
    """Run Python beside the package, with or without numba."""
    none = dict.fromkeys((objects.VARIABLE, "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"))
    changes = {**none, "BULLETBRIDGE_PLAIN_NUMBA": "0", **changes}
    variables = environment(root, **changes)
    if without_numba:
        blocked = root.parent / "blocked"
        blocked.mkdir(exist_ok=True)
        for name in ("numba", "llvmlite"):
            (blocked / f"{name}.py").write_text(BLOCKED)
        variables["PYTHONPATH"] = os.pathsep.join([str(blocked), variables["PYTHONPATH"]])
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True)


@pytest.fixture
def root(made, tmp_path):
    """The package with its objects."""
    found = tmp_path / "small"
    shutil.copytree(made / "small", found)
    shutil.copytree(made / "objects", found / "objects")
    return found


def run(root, *arguments, **changes):
    """What the caller prints, and says on stderr."""
    done = python(root, "-m", "small.caller", *arguments, **changes)
    return done.stdout.splitlines(), done.stderr


def test_kernels_are_called_without_numba(root):
    assert run(root, without_numba=True) == ([TOLD, ""], "")
    assert run(root) == ([TOLD, ""], "")
    assert run(root, BULLETBRIDGE_KERNELS="x86-64-v2") == ([TOLD, ""], "")


def test_an_edited_kernel_is_compiled_and_it_is_said(root):
    """Not by plain numba: it is tried as in a checkout."""
    (root / "callee.py").write_text(CALLEE.format(step=2))
    (told, loaded), said = run(root, BULLETBRIDGE_PLAIN_NUMBA=None)
    assert told == TOLD.replace("13.75", "14.75").replace("1.25", "2.25")
    assert loaded == "numba llvmlite"
    assert "caller.gather is of other sources" in said and "numba compiles it" in said
    assert "plain numba" not in said, said
    (), said = run(root, without_numba=True)
    assert "pip install 'small[compile]'" in said.splitlines()[-1]
    (), said = run(root, BULLETBRIDGE_KERNELS="objects")
    assert "asks for nothing else" in said.splitlines()[-1]


def test_without_objects_and_without_numba_one_line_says_what_to_install(root):
    shutil.rmtree(root / "objects")
    (), said = run(root, without_numba=True)
    assert "pip install 'small[compile]'" in said.splitlines()[-1]
    (), said = run(root, BULLETBRIDGE_KERNELS="objects")
    assert "there are none in" in said.splitlines()[-1]


def test_compilation_can_be_asked_for(root):
    told, said = run(root, BULLETBRIDGE_KERNELS="compile")
    assert told == [TOLD, "numba llvmlite"]
    assert [line.split(" (1 of 1)")[0] for line in said.splitlines()] == DEFERRED
    (), said = run(root, NUMBA_CPU_NAME="generic", without_numba=True)
    assert "the kernels of small have to be compiled here" in said.splitlines()[-1]
    assert run(root, NUMBA_DISABLE_JIT="1", BULLETBRIDGE_PLAIN_NUMBA=None)[0][0] == TOLD
    (), said = run(root, BULLETBRIDGE_KERNELS="sometimes")
    assert "it can be compile, objects, x86-64-v2" in said.splitlines()[-1]


@pytest.mark.parametrize("fault", ["cut", "format", "no manifest", "other level"])
def test_objects_that_cannot_be_used_are_left_and_it_is_said(root, fault):
    folder = root / "objects"
    manifest = json.loads((folder / "manifest.json").read_text())
    if fault == "cut":
        (folder / "x86-64-v2.so").write_bytes((folder / "x86-64-v2.so").read_bytes()[:100])
    elif fault == "no manifest":
        (folder / "manifest.json").unlink()
    else:
        manifest |= {"format": 0} if fault == "format" else {"levels": []}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    (), said = run(root, without_numba=True)
    assert said.count("kernels are compiled, not taken from those that are installed") == 1
    assert "the kernels of small have to be compiled here" in said.splitlines()[-1]


UNUSUAL = """
import copy, pickle
records, line, table, n, m = arguments()
plain = gather(records, line, table, n, m), line[0], table.tolist()
again = pickle.loads(pickle.dumps(records))  # an equal dtype, another object
assert again.dtype is not records.dtype
for given in (
    (again, line, arguments()[2], n, m),
    (records[:], line, np.asfortranarray(arguments()[2]), np.int64(n), np.True_ + 0),
    (records.view(np.recarray), line, np.repeat(arguments()[2], 2, 0)[::2], n, m),
):
    line[:] = 0.0
    assert (gather(*given), line[0], given[2].tolist()) == plain, given
"""


def test_arrays_that_lie_otherwise_are_taken_too(root):
    assert run(root, UNUSUAL, without_numba=True) == ([""], "")


@pytest.mark.parametrize(
    "given", ["records, line, table, 0.5, m", "records, line, table, n", "line, line, table, n, m"]
)
def test_other_arguments_are_compiled_for_or_refused(root, given):
    code = f"records, line, table, n, m = arguments(); gather({given})"
    (), said = run(root, code, without_numba=True)
    assert "caller.gather is not for such arguments" in said.splitlines()[-1]
    assert "pip install 'small[compile]'" in said.splitlines()[-1]


def test_the_level_is_that_of_the_processor(tmp_path, monkeypatch):
    flags = set()
    assert objects.level_of(flags) is None
    for name, needed in objects.LEVELS.items():
        assert objects.level_of(flags | (needed - {max(needed)})) != name
        flags |= needed
        assert objects.level_of(flags) == name
    assert objects.level_of(objects.LEVELS["x86-64-v4"]) is None
    told = tmp_path / "cpuinfo"
    monkeypatch.setattr(objects, "CPUINFO", told)
    assert objects.processor_flags() == set()
    told.write_text("model name\t: One\nflags\t\t: fpu ssse3 avx\nvmx flags\t: other\n\nflags: x\n")
    assert objects.processor_flags() == {"fpu", "ssse3", "avx"}


def test_this_python_and_this_numpy_have_the_layout_that_entries_read():
    objects.require_layout_of_python()


def test_dtypes_come_back_from_the_manifest():
    nested = np.dtype([("k", "i4"), ("p", "f8", (3,)), ("R", "f8", (2, 2))])
    for dtype in (nested, np.dtype((np.record, nested.descr)), np.dtype("f8"), np.dtype("?")):
        text = json.loads(json.dumps(objects.described(dtype)))
        assert objects.dtype_from(text) == dtype


def test_tables_of_order_eight_are_those_of_scipy():
    from scipy.integrate import DOP853

    assert np.array_equal(A8, np.vstack([DOP853.A, DOP853.B]))
    for ours, theirs in ((C8, DOP853.C), (FIFTH, DOP853.E5), (THIRD, DOP853.E3)):
        assert np.array_equal(ours, theirs[:STAGES8])
