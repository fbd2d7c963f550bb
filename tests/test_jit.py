"""The kernel cache: what was edited is compiled anew, all else once for a user, from safe files."""

import ast
import os
import pickle
import pwd
import shutil
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from llvmlite import binding, ir
from numba.core.caching import NullCache
from support.forked import run_forked

import bulletbridge.engine.step_kernel  # noqa: F401  kernels are decorated on import
from bulletbridge.compilation import cache, mode
from bulletbridge.compilation.deferred import SAID, Target, called_in
from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.compilation.keys import DIGITS, key_of
from bulletbridge.engine.dense_backend import DENSE
from bulletbridge.engine.records import BY_SPARSE
from bulletbridge.engine.step_end import ending


class State(NamedTuple):
    """Arguments in a tuple of their own."""

    array: np.ndarray
    number: int


PACKAGE = Path(__file__).parents[1] / "bulletbridge"
CALLEE = """
from small.compilation.jit import helper

@helper
def f(x: float) -> float:
    return x + {step}
"""
CALLER = """
from small.callee import f
from small.compilation.jit import Callback, call_back, is_cached, kernel

@kernel
def g(x: float) -> float:
    return f(x)

if __name__ == "__main__":
    cached = is_cached(g)
    print(g(1.0), cached, sum(g.stats.cache_hits.values()) if hasattr(g, "stats") else "plain")
"""
OTHER = """
from small.callee import f
from small.caller import g
from small.compilation.jit import assist, kernel

@kernel
def h(x: float) -> float:
    return 2.0 * f(x)

def hits(function):
    return sum(function.stats.cache_hits.values())

if __name__ == "__main__":
    import sys
    if "assist" in sys.argv:
        assist(h, lambda: h(1.0))
        print(len(h.signatures), hits(f))
    else:
        print(h(1.0), hits(h), hits(f))
"""
APART = """
import numpy as np
from small.compilation.jit import helper, kernel, outlined

@outlined
def far(x):
    return x[0].position_with_a_name_that_is_long + 1.0

@helper
def near(x):
    return 2.0 * far(x)

@kernel
def one(x):
    return near(x)

@kernel
def other(x):
    return 1.0 + near(x)

def hits(function):
    return sum(function.stats.cache_hits.values())

if __name__ == "__main__":
    import sys
    x = np.ones(1, [(name, "f8") for name in (
        "position_with_a_name_that_is_long", "velocity_with_a_name_that_is_long"
    )])
    print(one(x) if "one" in sys.argv else other(x), hits(near), hits(far))
"""
RARE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
from small.compilation.deferred import DEFERRED
from small.compilation.jit import assist, deferred, is_compiled, kernel

@deferred
def rare(pair, n: int) -> tuple[float, int]:
    if n > 9:
        raise ValueError("far too many")
    return len(pair[0]) + n, pair[1]

@kernel
def often(pair, n):
    if n == 0:
        return 0.0
    x, more = rare(pair, n)
    return x + more

if __name__ == "__main__":
    (target,), pair = DEFERRED.values(), (np.ones(4)[::2], 3)
    if "assist" in sys.argv:
        for one in assist(often, lambda: often(pair, 0)):
            one.compiled()
        print(len(often.signatures), is_compiled(target))
        sys.exit()
    often(pair, 0)
    if len(sys.argv) > 1:  # two threads at once
        both = Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda n: (both.wait(), often(pair, n)), (5, 6)))
    for n in (0, 5, 10):
        try:
            print(often(pair, n), is_compiled(target), sum(target.stats.cache_hits.values()))
        except ValueError as error:
            print(error)
"""
CODE = """
import hashlib
from small.caller import g
from small.chain import whole

print(g(1.0), whole(1.0), sum(whole.stats.cache_hits.values()))
(code,) = whole.overloads.values()
print(hashlib.sha256(code.library._get_compiled_object()).hexdigest())
"""
READ = """
import sys
from pathlib import Path
from llvmlite import binding
from small.compilation.cache import read
from small.compilation.helper_cache import Kept

module = binding.parse_bitcode(read(Path(sys.argv[1]), Kept).bitcode)
for one in module.functions:
    print(f"{one.name}:{'declared' if one.is_declaration else 'defined'}")
"""
CHAIN = """
from small.compilation.jit import helper, kernel, outlined

@outlined
def far(x):
    return x + 1.0

@outlined
def near(x):
    return 2.0 * far(x)

@helper
def chosen(x, n):
    if n >= 2:
        return near(x)
    return far(x)

@helper
def begin(x):
    return chosen(x, 3)

@kernel
def whole(x):
    return begin(x)

if __name__ == "__main__":
    print(whole(1.0))
"""
STATE = [(f"{name}_with_a_name_that_is_long", "f8") for name in ("position", "velocity")]
LONG_AGO = 1e9
"""When a package of tests was written [s]: Python tells texts of one length apart by seconds."""
LONGEST = 100
"""Characters of the name of a function of a small module: place, name and two numbers."""


@pytest.fixture(scope="session")
def compiled_once(tmp_path_factory):
    """Where the package lies with what its caller has left in the cache."""
    folder = tmp_path_factory.mktemp("compiled")
    assert run(put_package(folder)) == ["2.0", "False", "0"]
    return folder


@pytest.fixture
def package(compiled_once, tmp_path):
    """A package of its own with the decorators, one callee and one caller; nothing in the cache."""
    shutil.copytree(compiled_once / "small", tmp_path / "small")
    return tmp_path / "small"


@pytest.fixture
def used(compiled_once, tmp_path):
    """The package whose caller has run: a copy, kernels and helpers with it."""
    shutil.copytree(compiled_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "small"


def put_package(folder):
    """The package of ``package`` in a folder."""
    root = folder / "small"
    for room in ("compilation", "numerics"):
        shutil.copytree(PACKAGE / room, root / room, ignore=shutil.ignore_patterns("__pycache__"))
    for path in root.rglob("*.py"):
        path.write_text(path.read_text().replace("bulletbridge.", "small."))
    shutil.copy(PACKAGE / "errors.py", root)
    (root / "__init__.py").write_text("")
    (root / "callee.py").write_text(CALLEE.format(step=1))
    (root / "caller.py").write_text(CALLER)
    (root / "other.py").write_text(OTHER)
    for path in root.rglob("*.py"):  # else byte code may be taken for that of a text edited at once
        os.utime(path, (LONG_AGO, LONG_AGO))
    return root


def environment(package, **changes):
    """Variables of a process that keeps its kernels beside the package; None removes one."""
    names = ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "LOCALAPPDATA", "PYTHONDONTWRITEBYTECODE")
    clean = {k: v for k, v in os.environ.items() if k not in (*names, cache.VARIABLE)}
    clean |= {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(package.parent / "cache")}
    clean[mode.VARIABLE] = "0"  # no trial of numba, which has tests of its own
    return {k: v for k, v in (clean | changes).items() if v is not None}


def run(package, said=None, module="caller", arguments=(), **changes):
    """What a module prints in a process of its own; what it says on stderr goes into the list."""
    own, name = environment(package, **changes), f"small.{module}"
    if (package.parent / "sitecustomize.py").exists():
        done = subprocess.run(
            [sys.executable, "-m", name, *arguments], env=own, capture_output=True, text=True
        )
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        code, out, err = run_forked(name, list(arguments), own, package.parent)
    assert code == 0, err
    if said is not None:
        said.append(err)
    return out.split()


def kept(package, kind="kernel"):
    """Files of compiled kernels, or of helpers."""
    return sorted((package.parent / "cache" / "small" / "kernels").rglob(f"*.{kind}"))


def test_an_edited_callee_is_seen_and_an_unchanged_one_is_kept(used):
    assert run(used) == ["2.0", "True", "1"]
    (used / "callee.py").write_text(CALLEE.format(step=2))
    assert run(used) == ["3.0", "False", "0"]
    (used / "numerics" / "projection.py").write_text("# not reached from the caller\n")
    assert run(used) == ["3.0", "True", "1"]


def test_imports_found_in_texts_are_those_of_the_language():
    """What a kernel depends on is complete: a file that was missed would leave it as it was."""
    kernels = cache.PACKAGE.rglob("*_kernel.py")
    reached = {path for kernel in kernels for path in cache.imported_files(kernel)}
    assert len(reached) > 100
    for path in reached:
        named = set()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom):
                named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
        files = {cache.PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in named
                 if name.startswith("bulletbridge.")}  # fmt: skip
        assert set(cache.imports_of(path)) == {file for file in files if file.is_file()}


def test_another_environment_of_the_user_compiles_nothing_again(used, tmp_path):
    moved = tmp_path / "elsewhere" / "small"
    shutil.copytree(used, moved)
    cached = str(used.parent / "cache")
    assert run(moved, XDG_CACHE_HOME=cached) == ["2.0", "True", "1"]


def test_kernels_of_another_processor_are_not_taken(used):
    other = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert run(used, **other) == ["2.0", "False", "0"]
    assert run(used, **other) == ["2.0", "True", "1"]
    assert run(used) == ["2.0", "True", "1"]


DAMAGES = (
    lambda x: b"",
    lambda x: x[: len(x) // 2],
    lambda x: x[:-1] + bytes([x[-1] ^ 1]),
    bytes.upper,
)
"""Empty, cut, one bit, garbled."""


def test_a_file_that_is_not_whole_is_not_read(tmp_path):
    """By the one function that reads kernels and helpers."""
    file = tmp_path / "some.kernel"
    cache.write(file, ("one", 2))
    whole = file.read_bytes()
    assert cache.read(file, lambda *parts: parts) == ("one", 2)
    for damage in DAMAGES:
        file.write_bytes(damage(whole))
        assert cache.read(file, lambda *parts: parts) is None


def test_what_cannot_be_read_is_compiled_anew(used):
    (file,) = kept(used)
    file.write_bytes(DAMAGES[-1](file.read_bytes()))
    assert run(used)[0::2] == ["2.0", "0"]
    assert run(used) == ["2.0", "True", "1"]


def test_a_helper_is_translated_once_for_all_kernels(used):
    assert len(kept(used, "helper")) == 1
    assert run(used, module="other") == ["4.0", "0", "1"]
    assert run(used, module="other") == ["4.0", "1", "0"]
    (used / "callee.py").write_text(CALLEE.format(step=2))
    assert run(used, module="other") == ["6.0", "0", "0"]


def test_a_helper_that_cannot_be_read_is_translated_anew(used):
    (file,) = kept(used, "helper")
    damaged = DAMAGES[-1](file.read_bytes())
    file.write_bytes(damaged)
    assert run(used, module="other") == ["4.0", "0", "0"]
    assert file.read_bytes() != damaged
    (other,) = (one for one in kept(used) if "other" in one.name)
    other.unlink()
    assert run(used, module="other") == ["4.0", "0", "1"]


@pytest.mark.parametrize("damage", ["none", "gone", "garbled"])
def test_what_is_never_inlined_is_kept_once(package, damage):
    """Whoever calls it says where it is; a caller whose file of it is of no use is made anew."""
    (package / "apart.py").write_text(APART)
    assert run(package, module="apart", arguments=["one"]) == ["4.0", "0", "0"]
    near, far = (one for name in ("near", "far") for one in kept(package, "helper")
                 if f".{name}-" in one.name)  # fmt: skip
    (package / "read.py").write_text(READ)
    names = run(package, module="read", arguments=[str(near)])
    assert [name.rpartition(":")[2] for name in names if "near" in name] == ["defined"]
    assert [name.rpartition(":")[2] for name in names if "far" in name] == ["declared"]
    assert max(map(len, names)) < LONGEST < len(str(numba.typeof(np.zeros(1, STATE))))
    if damage == "gone":
        far.unlink()
    elif damage == "garbled":
        far.write_bytes(far.read_bytes().upper())
    taken = str(int(damage == "none"))
    assert run(package, module="apart", arguments=["other"]) == ["5.0", taken, "0"]


def test_what_is_never_inlined_is_linked_where_only_such_calls_it(package):
    """LLVM links what is declared by then: ``far`` is not before ``near``, ``begin`` lost it."""
    (package / "chain.py").write_text(CHAIN)
    for _ in range(2):  # made, then found
        assert run(package, module="chain") == ["4.0"]
        for one in kept(package):
            one.unlink()


def test_what_is_deferred_is_compiled_when_it_is_first_called(package):
    (package / "rare.py").write_text(RARE)
    for hits in "01":  # made, then found
        told = ["0.0", "False", "0", "10.0", "True", hits, "far", "too", "many"]
        assert run(package, module="rare") == told
    assert len(kept(package)) == 2 and len(kept(package, "helper")) == 1


def test_what_is_deferred_is_compiled_beside_what_calls_it(package):
    (package / "rare.py").write_text(RARE)
    assert run(package, module="rare", arguments=["assist"]) == ["0", "True"]
    assert run(package, module="rare")[3:6] == ["10.0", "True", "1"]


def test_what_code_calls_is_read_from_it_whatever_its_bytes():
    texts = "a", "\\41", '"c"', "\\\\", bytes(range(256)).decode("latin-1")
    known = {f"{i:0{DIGITS}}": Target("module", text, ()) for i, text in enumerate(texts)}
    module = ir.Module()
    for key, target in known.items():
        text = bytearray(key.encode() + pickle.dumps(tuple(target)))
        kind = ir.ArrayType(ir.IntType(8), len(text))
        said = ir.GlobalVariable(module, kind, module.get_unique_name(SAID + "name"))
        said.initializer = ir.Constant(kind, text)
    assert called_in(binding.parse_assembly(str(module))) == known


def test_what_threads_ask_for_at_once_is_compiled_by_one(package):
    (package / "rare.py").write_text(RARE)
    said = []
    assert run(package, said, "rare", ["at once"])[3:6] == ["10.0", "True", "0"]
    assert said[0].count("compiling rare") == 1


def test_a_kernel_is_the_same_whether_its_helpers_were_made_or_found(package):
    (package / "chain.py").write_text(CHAIN)
    (package / "code.py").write_text(CODE)
    made = run(package, module="code")
    for file in kept(package):
        file.unlink()
    assert run(package, module="code") == made
    assert made[:3] == ["2.0", "4.0", "0"]


def test_a_helper_has_one_name_in_all_processes(package):
    """Else a kernel that takes helpers of two processes would have two of one that both call."""
    (package / "named.py").write_text(
        "from small.other import f, h\nh(1.0)\n"
        "(code,) = f.overloads.values()\nprint(code.fndesc.mangled_name, code.fndesc.env_name)\n"
    )
    names = set()
    for seed in range(2):
        place = str(package.parent / str(seed))
        own = environment(package, PYTHONHASHSEED=str(seed), XDG_CACHE_HOME=place)
        names.add(subprocess.check_output([sys.executable, "-m", "small.named"], env=own))
    assert len(names) == 1


@pytest.mark.parametrize("there", ["whole", "gone", "garbled"])
def test_a_helper_that_another_process_made_meanwhile_is_taken(used, there):
    """It comes when all that it calls is known; gone or garbled, it is made here after all."""
    (file,) = kept(used, "helper")
    whole = file.read_bytes()
    file.unlink()
    if there == "garbled":
        whole = whole.upper()
    put = "" if there == "gone" else f"pathlib.Path({str(file)!r}).write_bytes({whole!r})"
    (used / "meanwhile.py").write_text(
        f"""
import pathlib
from small.compilation import linking
from small.other import f, h, hits
given, asked = linking.is_there, []

def is_there(path):
    asked.append(path)
    {put}
    return given(path) if len(asked) > 1 or {there == "whole"} else True

linking.is_there = is_there
print(h(1.0), hits(f), len(asked))
"""
    )
    asked = 1 if there == "whole" else 3  # before and after all that it calls is known
    assert run(used, module="meanwhile") == ["4.0", str(int(there == "whole")), str(asked)]


def test_a_process_that_assists_leaves_helpers_and_no_kernel(package):
    assert run(package, module="other", arguments=["assist"]) == ["0", "0"]
    assert len(kept(package, "helper")) == 1 and not kept(package)
    assert run(package, module="other") == ["4.0", "0", "1"]


def test_helpers_have_keys_of_what_they_are_made_of():
    """Closures of one text differ by what is in them; what a process alone knows has no key."""
    real, integer = numba.float64, numba.int64

    def key(stepping, *arguments):
        return key_of(stepping, "LinkedCode", arguments)

    one, other = (ending(backend)[0] for backend in (DENSE, DENSE._replace(factored=BY_SPARSE)))
    same = ending(DENSE)[0]
    function, another, again = (x.py_func for x in (one, other, same))
    assert function.__code__ is another.__code__
    assert key(function, real) == key(again, real) != key(another, real)
    assert key(function, real) != key(function, integer)
    assert key(function, numba.typeof(one)) == key(again, numba.typeof(same))
    assert key(function, numba.typeof(one)) != key(function, numba.typeof(other))
    assert key(ending(DENSE._replace(factored=object()))[0].py_func, real) is None
    assert key(lambda x: x, real) is None  # not the package's


def test_the_folder_is_the_users_own(package):
    run(package)
    for folder in (package.parent / "cache" / "small", package.parent / "cache/small/kernels"):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert kept(package)[0].stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("fault", ["writable by all", "somebody else's", "a link to such a one"])
def test_a_folder_that_others_could_write_to_is_refused(package, fault):
    folder = package.parent / "cache" / "small"
    folder.mkdir(parents=True)
    if fault == "writable by all":
        folder.chmod(0o777)
    elif os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    elif fault == "somebody else's":
        os.chown(folder, 12345, -1)
    else:
        folder.rename(folder.with_name("other"))
        os.chown(folder.with_name("other"), 12345, -1)
        folder.symlink_to(folder.with_name("other"))
    said = []
    assert run(package, said) == ["2.0", "False", "0"]
    assert run(package, said) == ["2.0", "False", "0"]
    for text in said:
        assert "compiled kernels are not kept" in text and cache.VARIABLE in text
        assert str(folder) in text and "Traceback" not in text
    assert not kept(package)


def test_a_relative_place_is_not_taken(package, tmp_path):
    said, home = [], tmp_path / "home"
    home.mkdir()
    assert run(package, said, XDG_CACHE_HOME="here", HOME=str(home))[0] == "2.0"
    assert (home / ".cache" / "small" / "kernels").is_dir() and said == [""]
    assert run(package, said, **{cache.VARIABLE: "here"})[0] == "2.0"
    assert "'here', which is not an absolute path" in said[1]
    assert not Path("here").exists()


def test_the_place_can_be_chosen(package, tmp_path):
    for name, folder in ((cache.VARIABLE, ""), ("NUMBA_CACHE_DIR", "small")):
        place = tmp_path / name
        assert run(package, **{name: str(place)}) == ["2.0", "False", "0"]
        assert run(package, **{name: str(place)}) == ["2.0", "True", "1"]
        assert list((place / folder / "kernels").rglob("*.kernel"))


def test_nothing_needs_to_be_writable(package):
    blocked = package.parent / "blocked"
    blocked.write_text("a file where a folder would have to be")
    said = []
    assert run(package, said, XDG_CACHE_HOME=str(blocked)) == ["2.0", "False", "0"]
    assert "compiled kernels are not kept" in said[0] and "Traceback" not in said[0]


def test_what_cannot_be_written_later_is_said_once(tmp_path, capsys):
    """As where a folder that was there is read-only by now, or the disk is full."""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder would have to be")
    for name in ("a", "b"):
        cache.write(blocked / f"{name}.kernel", ())
    said = capsys.readouterr().err
    assert said.count("compiled kernels are not kept") == 1
    assert str(tmp_path) in said and cache.VARIABLE in said


def test_a_user_without_a_home_compiles_without_keeping(package, monkeypatch):
    def nobody(uid):
        raise KeyError(uid)

    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "NUMBA_CACHE_DIR", cache.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(cache.UnsafeFolderError, match="no home directory"):
        cache.wanted_place()


def test_two_processes_at_once_compile_once(package):
    start = package.parent / "start"
    text = f"""
import pathlib, time
while not pathlib.Path({str(start)!r}).exists():
    time.sleep(0.001)
"""
    caller = package / "caller.py"
    caller.write_text(
        caller.read_text().replace(
            "    cached = ", text.replace("\n", "\n    ") + "\n    cached = "
        )
    )
    command = [sys.executable, "-m", "small.caller"]
    both = [
        subprocess.Popen(command, env=environment(package), stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    time.sleep(0.1)
    start.touch()
    lines = sorted(process.communicate()[0].split()[2] for process in both)
    assert lines == ["0", "1"] and len(kept(package)) == 1


def test_what_nobody_used_for_long_is_removed(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "a.kernel").touch()
    os.utime(old, (0.0, time.time() - 1.1 * cache.FORGOTTEN))
    cache.forget_old(tmp_path)
    assert not old.exists() and (new / "a.kernel").exists()


def test_kernels_run_as_plain_python(package):
    assert run(package, NUMBA_DISABLE_JIT="1") == ["2.0", "True", "plain"]


def test_the_users_settings_are_left_alone():
    assert os.environ.get("NUMBA_CACHE_DIR", "") == numba.config.CACHE_DIR


def test_what_is_compiled_for_kernels_only_says_so():
    @helper
    def double(x: float) -> float:
        return 2.0 * x

    with pytest.raises(TypeError, match="for kernels only"):
        double(1.0)
    assert numba.njit(lambda x: double(x) + 1.0)(1.0) == 3.0


def test_what_is_out_of_line_is_not_inlined_whoever_calls_it():
    @outlined
    def far(x: float) -> float:
        return 3.0 * x

    @helper
    def near(x: float) -> float:
        return far(x) + 1.0

    caller = numba.njit(lambda x: near(x) - far(x))
    assert caller(2.0) == 1.0
    (text,) = caller.inspect_llvm().values()
    made = [line for line in text.splitlines() if line.startswith("define")]
    assert any("3far" in line for line in made) and not any("4near" in line for line in made)


@pytest.mark.skipif(not mode.LINKED, reason="plain numba compiles each function by itself")
def test_what_is_out_of_line_takes_tuples_number_by_number():
    @outlined
    def far(weight: float, given: Any) -> float:
        table, (lines, k) = given
        return weight * table[1, k] + lines[0][k] - lines[1][len(table)]

    @kernel
    def caller(weight: float, given: Any, lines: Any) -> float:
        return far(weight, given) - 3.0 * far(2.0 * weight, (given[0], (lines, given[1][1] - 1)))

    caller._cache = NullCache()  # code that was read back shows no text
    table, line = np.arange(12.0).reshape(2, 6), np.arange(9.0) ** 2
    given = table, ((line, line[1:]), 3)  # 0.5 * 9 + 9 - 9, and 1.0 * 8 + 9 - 4
    assert caller(0.5, given, (line[1:], line)) == 4.5 - 3.0 * 13.0
    (code,) = caller.overloads.values()
    made = [x for x in code.library.get_llvm_str().splitlines() if x.startswith("define")]
    (head,) = [x for x in made if "3far" in x]
    assert "{" not in head.split("(", 1)[1].rstrip("{")


@pytest.mark.skipif(not mode.LINKED, reason="plain numba asks for vectors everywhere")
def test_loops_become_vectors_in_linear_algebra_alone(monkeypatch):
    from bulletbridge.compilation import lowering

    assert all((PACKAGE / f"{name.replace('.', '/')}.py").is_file() for name in lowering.LONG_LOOPS)
    found = []
    for named in ((), ("",)):  # what is in no package has no name in it

        @kernel
        def doubled(x: np.ndarray) -> None:
            k = 0
            while k < len(x):
                x[k] *= 2.0
                k += 1

        monkeypatch.setattr(lowering, "LONG_LOOPS", named)
        line = np.arange(40.0)
        doubled._cache = NullCache()
        doubled(line)
        assert np.array_equal(line, 2.0 * np.arange(40.0))
        (code,) = doubled.overloads.values()
        found.append("vector.body" in code.library.get_llvm_str())
    assert found == [False, True]


@pytest.mark.skipif(not mode.LINKED, reason="plain numba makes one version for each constant")
def test_a_constant_argument_is_one_of_its_type():
    @helper
    def raised(x: float, k: int, twice: bool) -> float:
        return 2.0 * x + k if twice else x + k

    caller = numba.njit(lambda x, k: raised(x, 3, True) + raised(x, k, False))
    assert caller(1.0, 2) == 8.0
    assert len(raised.signatures) == 1


def test_arguments_of_one_kind_are_of_one_type_of_numba():
    """What was compiled for a kind is taken for all of it; others may only be told apart."""
    from bulletbridge.compilation.by_numba import kind_of

    square, frozen = np.zeros((3, 3)), np.zeros(3)
    frozen.flags.writeable = False
    odd = np.frombuffer(bytearray(25), np.uint8)[1:].view(np.float64)
    record = [("a", np.float64), ("b", np.int64)]
    samples = [
        *(
            square,
            square.T,
            square[::2],
            square[0],
            np.asfortranarray(np.ones((2, 3))),
            frozen,
            odd,
        ),
        *(np.zeros(3, np.int64), np.zeros(3, np.float32), np.zeros((1, 1)), np.zeros(0)),
        *(np.zeros(2, record), np.zeros(2, np.dtype((np.record, record))), np.zeros(2, record[:1])),
        *(np.zeros(2, np.dtype(record, align=True)), np.zeros(2, [("a", np.float64, (2,))])),
        *(1, 1.0, (square, 1), (square, 1.0), (frozen, 1), State(square, 1)),
    ]
    for one, other in combinations(samples, 2):
        if kind_of(one) == kind_of(other):
            assert numba.typeof(one) == numba.typeof(other), (one, other)
    for one, other in ((square, np.ones((2, 2))), (State(square, 1), State(np.ones((4, 4)), 2))):
        assert kind_of(one) == kind_of(other)


def test_the_clocks_of_numba_go_on_after_a_compilation():
    from numba.core import event
    from numba.core.types import functions

    before = event.start_event, event.end_event, functions.BaseFunction.get_call_type

    @helper
    def halved(x: float) -> float:
        return 0.5 * x

    with event.install_recorder("numba:compile") as told:
        assert numba.njit(lambda x: halved(x))(3.0) == 1.5
    assert told.buffer
    assert before == (event.start_event, event.end_event, functions.BaseFunction.get_call_type)


def test_what_was_edited_since_is_kept_under_no_name_of_today(tmp_path, monkeypatch):
    """A process that runs on with old code may not leave it for those that import the new one."""
    kernel = tmp_path / "kernel.py"
    kernel.write_text("x = 1\n")
    monkeypatch.setattr(cache, "AS_IMPORTED", dict(cache.written(str(tmp_path))))
    digest = cache.digest_of.__wrapped__
    assert digest(kernel) == digest(kernel)
    before = digest(kernel)
    kernel.write_text("x = 2\n")
    os.utime(kernel, ns=(0, cache.AS_IMPORTED[str(kernel)] + 10**9))
    assert len({before, digest(kernel), digest(kernel)}) == 3
    monkeypatch.setattr(cache, "AS_IMPORTED", dict(cache.written(str(tmp_path))))
    assert digest(kernel) == digest(kernel) != before
