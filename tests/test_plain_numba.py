"""Where private parts of numba have changed: told in a line, and the same results without them."""

import os
import subprocess
import sys

import numpy as np
import pytest
from test_jit import compiled_once, environment, kept, package, run  # noqa: F401  fixtures

from bulletbridge.compilation import by_numba, mode
from bulletbridge.compilation.jit import kernel
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.constraints.joints import Frame, JointModel, LoopJoint
from bulletbridge.constraints.rows import jacobian, residuals
from bulletbridge.engine.workspace import SolverArrays, Tolerances
from bulletbridge.mechanism.build import empty_mechanism, with_joint
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.model import WORLD

CALLER = """
import numpy as np
from small.compilation.jit import caller, helper, kernel, outlined, take_number
from small.compilation.stored_calls import StoredCall, call_stored

@outlined
def far(x: float) -> float:
    return 3.0 * x

@helper
def near(x: float) -> float:
    return far(x) + 1.0

@helper
def applied(do, x):
    return do(x)

@kernel
def fill(place: np.ndarray, count: int, n: int) -> int:
    for i in range(count):
        place[i] = applied(near, float(n))
    return count

@caller
def fill_all(blocks, counter, n):
    total = 0
    for i in range(len(blocks)):
        total += call_stored(blocks[i : i + 1], (n,)) * (1 + take_number(counter))
    return total

if __name__ == "__main__":
    place, other, counter = np.zeros(5), np.zeros(5), np.zeros(1, np.int64)
    fills = [StoredCall(fill, (to, 3), (1,)) for to in (place, other)]
    blocks = np.concatenate([one.block for one in fills])
    every = StoredCall(fill_all, (blocks, counter), (1,))
    hits = sum(fill.stats.cache_hits.values())
    print(fills[0].call((2,)), every.call((4,)), every.with_rest((5,)).call(()), hits)
    print(place.sum(), other.sum())
"""
RIGHT = ["3", "9", "21", "48.0", "48.0"]
"""What it prints, but for the hits: 3 fills; times 1 and 2; times 3 and 4; 3 * (3 * 5 + 1)."""


TRIED = {mode.VARIABLE: None}
"""As users run it: nothing is asked for."""


@pytest.fixture
def small(package):  # noqa: F811
    """The package with a caller of all kinds of functions."""
    (package / "caller.py").write_text(CALLER)
    return package


def told(small, **changes):
    """Hits on disk and what is said on stderr by a caller that prints what is right."""
    said = []
    count, total, more, hits, *sums = run(small, said, **changes)
    assert [count, total, more, *sums] == RIGHT
    return int(hits), said[0]


def test_this_numba_is_what_kernels_are_built_on():
    assert not list(mode.differences())
    assert mode.trial() is None
    assert mode.LINKED or os.environ.get(mode.VARIABLE) == "1"


def test_plain_numba_does_the_same_and_keeps_its_kernels_apart(small):
    linked, plain = {mode.VARIABLE: "0"}, {mode.VARIABLE: "1"}
    assert told(small, **linked) == (0, "")
    ours = kept(small)
    assert told(small, **plain) == (0, "")
    assert set(ours) < set(kept(small))
    assert told(small, **plain)[0] > 0 and told(small, **linked)[0] > 0


BROKEN = {
    "a method is gone": (
        """
        from numba.core.codegen import CPUCodeLibrary
        own = CPUCodeLibrary._optimize_final_module
        del CPUCodeLibrary._optimize_final_module
        def __getattr__(self, name):  # numba itself goes on
            if name == "_optimize_final_module":
                return own.__get__(self)
            raise AttributeError(name)
        CPUCodeLibrary.__getattr__ = __getattr__
        """,
        "there is no numba.core.codegen.JITCodeLibrary._optimize_final_module",
    ),
    "a method takes something else": (
        """
        from numba.core.callconv import CPUCallConv
        own = CPUCallConv.get_function_type
        CPUCallConv.get_function_type = lambda self, argtypes, restype: own(self, argtypes, restype)
        """,
        "get_function_type takes (self, argtypes, restype)",
    ),
    "there is one more pass": (
        """
        from numba.core import compiler, typed_passes
        from numba.core.compiler_machinery import register_pass
        @register_pass(mutates_CFG=False, analysis_only=True)
        class Vital(typed_passes.AnnotateTypes):
            _name = "vital"
        own = compiler.DefaultPassBuilder.define_nopython_pipeline
        def define_nopython_pipeline(state, name="nopython"):
            found = own(state, name)
            found.add_pass_after(Vital, typed_passes.IRLegalization)
            found.finalize()
            return found
        compiler.DefaultPassBuilder.define_nopython_pipeline = define_nopython_pipeline
        """,
        "numba's passes are others: Vital",
    ),
    "LLVM ends the process": (
        """
        import os, sys
        from llvmlite import binding
        own = binding.create_pipeline_tuning_options
        def create_pipeline_tuning_options(speed_level=2):
            if sys._getframe(1).f_globals["__name__"].startswith("small."):
                os.abort()
            return own(speed_level)
        binding.create_pipeline_tuning_options = create_pipeline_tuning_options
        """,
        "its trial ended by -6",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_numba_that_has_changed_is_told_and_done_without(package, what):  # noqa: F811
    """Changes as later versions may bring them, before anything of the package is imported."""
    change, reason = BROKEN[what]
    lines = [line.removeprefix(" " * 8) for line in change.splitlines()]
    (package.parent / "sitecustomize.py").write_text("\n".join(lines))
    said = []
    assert run(package, said, **TRIED) == ["2.0", "False", "0"]
    (line,) = said[0].splitlines()
    assert line.startswith("bulletbridge: numba ") and reason in line
    assert "steps are right" in line


def test_words_of_another_order_are_found_out(package):  # noqa: F811
    """Ours are changed: those of numba are its C code's."""
    path = package / "compilation" / "words.py"
    path.write_text(path.read_text().replace("x.size, x.itemsize", "x.itemsize, x.size"))
    said = []
    assert run(package, said, **TRIED) == ["2.0", "False", "0"]
    (line,) = said[0].splitlines()
    assert "words of array(float64, 1d, C) are" in line


def test_a_trial_that_has_passed_is_not_repeated(small):
    """Another process finds a folder, and a broken trial is not seen any more."""
    assert told(small, **TRIED) == (0, "")
    (passed,) = (small.parent / "cache" / "small" / "kernels").glob("trial-*/passed")
    (small.parent / "sitecustomize.py").write_text(
        "import subprocess\nsubprocess.run = None  # any trial would fail"
    )
    hits, said = told(small, **TRIED)
    assert hits > 0 and said == "" and passed.exists()


def test_kernels_that_cannot_be_kept_are_compiled(small):
    (small.parent / "sitecustomize.py").write_text(
        "from numba.core.compiler import CompileResult\ndel CompileResult._reduce"
    )
    hits, said = told(small, **{mode.VARIABLE: "1"})
    assert hits == 0 and said.count("\n") == 1 and "are not kept" in said and "_reduce" in said


def test_only_0_and_1_can_be_asked_for(small):
    done = subprocess.run(
        [sys.executable, "-m", "small.caller"],
        env=environment(small, **{mode.VARIABLE: "yes"}),
        capture_output=True,
        text=True,
    )
    assert done.returncode and f"{mode.VARIABLE} is 'yes'; it can be 0 or 1" in done.stderr


@kernel
def count(x: np.ndarray, n: float) -> int:
    """How many there are, and n."""
    return len(x) + int(n)


@pytest.mark.skipif(not mode.LINKED, reason="nothing is stored")
def test_only_words_that_numba_has_are_stored(monkeypatch):
    for n in (0.5, True):
        with pytest.raises(TypeError, match=r"count takes ppiipii\?, not ppiipiii"):
            StoredCall(count, (np.zeros(3), n), ())
    bound = StoredCall(count, (np.zeros(3),), (0.5,))
    with pytest.raises(TypeError, match="arguments to be stored are of"):
        bound.with_rest((5,))
    with pytest.raises(TypeError, match="0.5 cannot be stored"):
        bound.with_rest((0.5,))
    monkeypatch.setattr(by_numba, "kinds_of", lambda arguments: "ppipiii")
    with pytest.raises(TypeError, match="count takes ppiipii, not ppipiii"):
        StoredCall(count, (np.zeros(3),), (0.5,))


TERMS = """
import sys
import numpy as np
from bulletbridge.compilation import mode
from test_plain_numba import terms
assert not mode.LINKED
np.save(sys.argv[1], terms())
"""


def terms():
    """Poses, residuals and their Jacobian of a chain with two loops, one after the other."""
    mechanism, on = empty_mechanism(), WORLD
    for kind in ("revolute", "prismatic", "spherical"):
        mechanism = with_joint(mechanism, kind, kind, kind, on, (0.3, 0.2, 0.1), (0.5, 0.4, 0.3))
        on = kind
    loops = [
        LoopJoint(model.name, model, Frame(on, (0.1, 0.2, 0.3)), Frame(WORLD))
        for model in (JointModel.BALL, JointModel.REVOLUTE)
    ]
    s = SolverArrays(mechanism, encode_closed(mechanism, loops), Tolerances())
    q, e, rows = np.array([0.7, -0.2, 0.5, 0.1, -0.7, 0.5]), s.encoded, s.rows[0]
    J, targets = np.zeros((e.nc, mechanism.nv)), e.targets(np.zeros(1))[0]
    kinematics(s.bodies, s.beams, s.stations, q, s.poses, s.axes)
    residuals(e.loops, e.couplings, e.terms, s.poses, s.axes, targets, q, rows)
    jacobian(e.loops, e.couplings, e.terms, s.poses, s.axes, targets, J, rows)
    return np.concatenate([s.poses["R"].ravel(), s.poses["p"].ravel(), rows["g"], J.ravel()])


def test_terms_are_those_of_plain_numba(tmp_path):
    """To round-off: other functions are inlined, and sums are taken in another order there.

    Numbers are of the order of one, through three joints, some thirty operations each.
    """
    place = tmp_path / "terms.npy"
    variables = {mode.VARIABLE: "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", TERMS, str(place)]
    subprocess.run(command, env=os.environ | variables, check=True)
    expected, found = terms(), np.load(place)
    assert np.count_nonzero(expected) > 50
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-14 * np.abs(expected).max())
