"""Loops drawn side by side: refused, or moved together where no joint can, on request."""

from dataclasses import replace

import pytest

import bulletbridge as bb
from bulletbridge.errors import AssemblyError
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.meeting_frames import with_meeting_frames


def moved(spec, way, end):
    """A model whose first loop has a frame off by a way [m]; frame b is that on the link named."""
    loop, *others = spec.constraints
    if loop.b.link != end:
        loop = replace(loop, a=loop.b, b=loop.a)
    off = tuple(x + d for x, d in zip(loop.b.xyz, way, strict=True))
    return replace(spec, constraints=(replace(loop, b=replace(loop.b, xyz=off)), *others))


@pytest.mark.parametrize("end", ["ground", "rocker"])
def test_a_frame_off_along_the_pins_of_a_linkage_is_moved_back(end):
    """Pins of the four-bar are along y: what is off by 5 mm there and 1 mm in the plane is moved
    by the 5 mm alone, in the axes of its link, which turn with the rocker about y."""
    spec = read_model("four_bar")
    wrong = moved(spec, (1e-3, 5e-3, 0.0), end)
    with pytest.raises(AssemblyError, match="repair_frames=True"), bb.load(wrong, "new"):
        pass
    right = with_meeting_frames(wrong)
    expected = moved(spec, (1e-3, 0.0, 0.0), end).constraints[0].b
    assert right.constraints[0].b.xyz == pytest.approx(expected.xyz, abs=1e-12)
    assert "(0 -0.005 0) m" in right.notes[-1]
    with bb.load(right, "new") as model:
        model.system.run(0.1)
        assert model.system.evaluate().largest("metres") < 1e-12


def test_frames_that_joints_bring_together_stay():
    spec = read_model("stewart")
    wrong = moved(spec, (1e-3, -2e-3, 1e-3), spec.constraints[0].b.link)
    assert with_meeting_frames(wrong) == wrong
