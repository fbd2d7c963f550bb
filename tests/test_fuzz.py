"""Files with mistakes in them: every command answers, or says in a line what is wrong."""

import fuzz
import numpy as np
from _mutants import spoil
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

DRAWN = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""Other files in every run; one that fails is told by its number, and tried first from then on."""
NUMBERS = st.integers(0, 2**32 - 1)


@settings(DRAWN, max_examples=60)
@given(number=NUMBERS)
def test_loops_files_are_read_or_refused(tmp_path, number):
    file, _, rng = fuzz.spoilt("loops", number, tmp_path)
    (_, reading), *_ = fuzz.of_loops_file(file, rng)
    assert fuzz.answer(reading)[0] in ("done", "told")


@settings(DRAWN, max_examples=20)
@given(number=NUMBERS)
def test_urdfs_are_rewritten_or_refused(tmp_path, number):
    """Without Bullet, which may take the whole process with it."""
    file, text, rng = fuzz.spoilt("urdf", number, tmp_path)
    for name, command in fuzz.of_urdf(file, text, rng):
        if name != "inspect":
            assert fuzz.answer(command)[0] in ("done", "told"), name


def test_texts_are_spoilt_in_every_way():
    text = (fuzz.BUNDLED / "four_bar.loops.yaml").read_text()
    rng = np.random.default_rng(0)
    made = {spoil(text, rng) for _ in range(500)}
    assert len(made) > 375  # some ways do nothing to some texts
    for word in ("nan", "1e400", "[/red]", "a" * 300, "\x00", "<<: "):
        assert any(word in other for other in made), word


def test_a_traceback_is_a_fault_that_names_its_place():
    def broken():
        raise KeyError("x")

    end, said = fuzz.answer(broken)
    assert end == "traceback"
    line = {"kind": "urdf", "number": 1, "command": "inertia", "end": end, "said": said}
    assert "| urdf | 1 | 0 | 0 | 1 | 0 | 0 |" in fuzz.tables([line])
    assert "traceback in inertia: : KeyError (urdf 1)" in fuzz.tables([line])
