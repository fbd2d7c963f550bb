"""What is drawn into Bullet's window, without a window."""

from dataclasses import replace

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_allclose
from support.small_models import four_bar, geared

from bulletbridge.comparison.playback import go_along, where_widest
from bulletbridge.constraints.joints import Distance, Frame, JointModel, LoopJoint
from bulletbridge.constraints.motion import Motion, Polynomial
from bulletbridge.errors import ModelError
from bulletbridge.models.load import load
from bulletbridge.models.loops_file import read_loops
from bulletbridge.viewer.overlay import (
    FAINT,
    PERIOD,
    Mark,
    Overlay,
    Scale,
    has_window,
    magnification,
    marks_of,
    weight_of,
)
from bulletbridge.viewer.sliders import Switch

ROUND_OFF = 1e-12
UP = np.array([0.0, 0.0, 1.0])


def mark(name="pin", gap=(0.0, 0.0, 0.0), force=(0.0, 0.0, 0.0), moment=(0.0, 0.0, 0.0)):
    b = np.array([1.0, 2.0, 3.0])
    return Mark(name, b - gap, b, np.array(force), np.array(moment))


def overlay(now=None, **options):
    now = now if now is not None else [0.0]
    return Overlay(
        0, options.pop("scale", Scale(10.0)), length=2.0, clock=lambda: now[0], **options
    )


def test_gap_force_and_moment_are_drawn_to_scale_and_in_words(window):
    assert overlay().update([mark("pin", (0, 0, 4e-5), (5.0, 0, 0), (0, -10.0, 0))])
    assert window.texts == ["pin: 0.04 mm (x10000)", "5 N", "10 N m"]
    (a, b), (foot, tip), *_ = window.lines
    assert_allclose(b - a, 1e4 * np.array([0, 0, 4e-5]), atol=ROUND_OFF)
    assert_allclose(foot, b)
    assert_allclose(tip - b, [0.5 * 2.0, 0, 0], atol=ROUND_OFF)  # half the weight
    moment = window.lines[6]  # after four barbs; half of weight times length
    assert_allclose(moment[1] - moment[0], [0, -0.5 * 2.0, 0], atol=ROUND_OFF)
    assert window.rendered


def test_without_weight_the_largest_so_far_is_as_long_as_the_mechanism(window):
    """Loads of a station in orbit are a thousandth of its weight; noise stays out of sight."""
    now, scale = [0.0], Scale(1e-8, grows=True)
    drawer = overlay(now, scale=scale)
    for force, moment, length in ((3e-13, 0.0, None), (4.0, 10.0, 1.6), (2.0, 0.0, 0.8)):
        window.lines.clear()
        now[0] += 10.0
        assert drawer.update([mark(force=(force, 0, 0), moment=(0, moment, 0))])
        drawn = [np.linalg.norm(tip - foot) for foot, tip in window.lines[1:2]]  # after the gap
        assert drawn == ([] if length is None else [pytest.approx(length)])
    assert scale.force == 5.0  # of the moment, over 2 m


def test_the_widest_gap_is_told_apart_from_the_picture(window):
    gaps = {"a": np.array([0, 0, 4e-5]), "b": np.array([1e-5, 0, 0])}
    assert where_widest(gaps, 2.0) == "at a, drawn 10,000 times as long"
    assert where_widest({"a": 1e4 * gaps["a"]}, 2.0) == "at a"
    assert where_widest({"a": np.full(3, 1e-15)}, 2.0) == where_widest({}, 2.0) == ""
    overlay().update([replace(mark("pin", (0, 0, 4e-5), (5.0, 0, 0)), told=False)])
    assert window.texts == ["5 N"]


def test_of_many_loops_the_largest_gap_and_load_are_told_in_words(window):
    many = [mark(str(n), (0, 0, 1e-5 * n), (1234.0 / n, 0, 0), (0, n, 0)) for n in range(1, 6)]
    overlay().update([*many, replace(mark("load", force=(0, 0, 9.0)), load=True)])
    assert window.texts == ["1234 N", "5: 0.05 mm (x10000)", "5 N m"]
    assert len(window.lines) == 5 * (1 + 5 + 5) + 5


def test_barbs_meet_at_the_tip_at_right_angles_to_each_other(window):
    overlay().update([mark(force=(3.0, -4.0, 12.0))])
    (foot, tip), *barbs = window.lines[1:]
    assert len(barbs) == 4
    along = (tip - foot) / np.linalg.norm(tip - foot)
    ends = np.array([end - tip for start, end in barbs if np.array_equal(start, tip)])
    assert_allclose(ends @ along, -0.15 * np.linalg.norm(tip - foot), rtol=1e-12)
    aside = ends - np.outer(ends @ along, along)
    gram = aside @ aside.T / (aside[0] @ aside[0])
    assert_allclose(gram, np.kron(np.eye(2), [[1, -1], [-1, 1]]), atol=ROUND_OFF)


def test_words_keep_away_from_arrows(window):
    def where(**arrows):
        overlay().update([mark(**arrows)])
        text = next(item[1] for item in window.items.values() if isinstance(item[0], str))
        window.items.clear()
        return (text - mark().point_b) / (0.12 * 2.0)

    assert_allclose(where(), -UP)
    assert_allclose(where(force=(0, 0, -7.0)), UP)
    assert_allclose(where(force=(3.0, 0, 0), moment=(0, 4.0, 0)), [-(0.5**0.5), -(0.5**0.5), 0])
    assert_allclose(where(force=(3.0, 0, 0), moment=(-4.0, 0, 0)), -UP)


def test_no_arrow_leaves_the_picture_and_none_is_drawn_for_nothing(window):
    overlay().update([mark(force=(0, 0, 1e9)), mark("free", force=(0, 0, 9e-4))])
    assert window.texts == ["pin: 0 mm", "1e+09 N", "free: 0 mm"]
    foot, tip = window.lines[1]
    assert np.linalg.norm(tip - foot) == pytest.approx(1.5 * 2.0)


@pytest.mark.parametrize(
    ("size", "factor"),
    [
        (1.0, 1),
        (0.1, 1),
        (0.099, 10),
        (0.011, 10),
        (9.9e-3, 100),
        (1.1e-7, 1e6),
        (9e-8, 1),
        (0.0, 1),
    ],
)
def test_gaps_are_magnified_by_the_least_power_of_ten_that_shows_them(size, factor):
    assert magnification(size, 2.0) == pytest.approx(factor)


def test_ten_drawings_a_second_at_most_and_each_takes_the_place_of_the_last(window):
    now, drawn = [0.0], []
    drawer = overlay(now)
    for millisecond in range(1000):
        now[0] = 1e-3 * millisecond
        due = drawer.due
        assert drawer.update([mark(force=(0, 0, 1.0 + now[0]))]) == due
        drawn += [now[0]] * due
    assert len(drawn) == 10
    assert min(np.diff(drawn)) >= PERIOD - ROUND_OFF
    assert window.made == len(window.items) == 8  # gap, arrow of five, and their texts


def test_an_answer_that_bullet_loses_leaves_nothing_behind(window):
    """It says -1 now and then, when it has replaced an item all the same."""
    now, window.lost = [0.0], (9, 12, 17)
    drawer = overlay(now)
    for now[0] in (0.0, 1.0, 2.0):
        drawer.update([mark(force=(0, 0, 1.0 + now[0]))])
    assert window.made == len(window.items) == 8
    drawer.clear()
    assert not window.items


def test_a_drawing_is_followed_by_a_rest_of_twice_its_time(window):
    now = [0.0]
    drawer = overlay(now)

    def slow():
        now[0] += 5.0
        yield mark()

    assert drawer.update(slow())
    now[0] += 9.0
    assert not drawer.update(slow())
    assert now[0] == 14.0
    now[0] += 1.0
    assert drawer.update(slow())


def test_constraints_that_are_gone_and_arrows_that_vanish_take_their_items_along(window):
    now = [0.0]
    drawer = overlay(now)
    drawer.update([mark("pin", force=(1.0, 0, 0)), mark("rod", moment=(1.0, 0, 0))])
    now[0] = 1.0
    drawer.update([mark("pin")])
    assert window.texts == ["pin: 0 mm"]
    assert len(window.items) == 2
    drawer.clear()
    assert not window.items
    assert drawer.update([mark("pin")])  # at once
    drawer.clear()
    drawer.clear()


def test_what_is_not_finite_is_left_out_and_an_error_does_not_stop_the_picture(window):
    now = [0.0]
    drawer = overlay(now)
    drawer.update([mark(force=(np.nan, 0, 0)), mark("rod", gap=(np.inf, 0, 0))])
    assert not window.items

    def broken():
        yield mark()
        raise ModelError("no more")

    now[0] = 1.0
    with pytest.raises(ModelError):
        drawer.update(broken())
    assert window.rendered


def test_nothing_is_drawn_or_asked_without_a_window():
    client = pybullet.connect(pybullet.DIRECT)
    drawer = Overlay(client, Scale(1.0), 1.0)
    assert not drawer.due
    assert not drawer.update(iter([mark()]))
    drawer.clear()
    assert not Switch(client, "reactions").on
    pybullet.disconnect(client)
    assert not drawer.due
    assert not has_window(client)


def test_marks_are_reactions_where_they_act(tmp_path):
    with load(four_bar(tmp_path)) as loaded:
        system = loaded.system
        (pin,) = marks_of(system)
        reaction = system.reactions()["pin"]
        assert np.array_equal(pin.force, reaction.force)
        assert_allclose(pin.point_a, pin.point_b, atol=ROUND_OFF)
        assert_allclose(pin.point_b, reaction.point, atol=ROUND_OFF)
        assert weight_of(system) == pytest.approx(4.5 * 9.81)
        assert Scale.of(system) == Scale(weight_of(system))
        system.gravity = np.zeros(3)
        assert weight_of(system) == pytest.approx(4.5 * 9.81)
        assert Scale.of(system) == Scale(FAINT * weight_of(system), grows=True)


def off_line(d, R):  # noqa: N803
    """What of a displacement d (3,) is not along z of the frame R."""
    return d - R[:, 2] * (R[:, 2] @ d)


A, B = Frame("coupler", (0, 0, -1.2)), Frame("rocker", (0, 0, -0.9))


@pytest.mark.parametrize(
    ("loop", "expected"),
    [  # where b should be, of its displacement d from a, both in world axes
        (LoopJoint("pin", JointModel.BALL, A, B), lambda d, R: d),
        (
            LoopJoint("pin", JointModel.POINT_ON_LINE, A, B),
            lambda d, R: d - R[:, 2] * (R[:, 2] @ d),
        ),
        (LoopJoint("pin", JointModel.POINT_ON_PLANE, A, B), lambda d, R: d - off_line(d, R)),
        (Distance("pin", A, B, 0.3), lambda d, R: d * (1 - 0.3 / np.linalg.norm(d))),
        (
            LoopJoint("pin", JointModel.BALL, A, B, motion=Motion(x=Polynomial((0.25,)))),
            lambda d, R: d - 0.25 * R[:, 0],
        ),
    ],
)
def test_the_gap_is_what_the_joint_does_not_allow(tmp_path, loop, expected, rng):
    spec = replace(read_loops(four_bar(tmp_path)), constraints=(loop,))
    with load(spec) as loaded:
        system = loaded.system
        q = system.q + 0.1 * rng.standard_normal(3)  # open
        loaded.bodies.write(q, np.zeros(3))
        R, crank, rocker = (
            np.array([[np.cos(x), 0, np.sin(x)], [0, 1, 0], [-np.sin(x), 0, np.cos(x)]])
            for x in (q[0] + q[1], q[0], q[2])
        )
        # hinges about y, from which bars hang down
        a, b = -0.5 * crank[:, 2] - 1.2 * R[:, 2], np.array([1.0, 0, 0]) - 0.9 * rocker[:, 2]
        ((point, gap),) = system.gap_vectors(q).values()
        assert_allclose(point, b, atol=ROUND_OFF)
        assert_allclose(gap, expected(b - a, R), atol=ROUND_OFF)
        size = system.evaluate(q).gaps[0].metres
        assert np.linalg.norm(gap) == pytest.approx(size, abs=ROUND_OFF)


def test_couplings_have_no_place(tmp_path):
    with load(geared(tmp_path)) as loaded:
        assert marks_of(loaded.system) == []


def test_a_camera_that_bullet_does_not_tell_stays_where_it_is(monkeypatch):
    told, moved = [0] * 10 + [0.0, (0.0, 0.0, 0.0)], []
    monkeypatch.setattr(pybullet, "getDebugVisualizerCamera", lambda *_, **__: told)
    monkeypatch.setattr(
        pybullet, "resetDebugVisualizerCamera", lambda *given, **__: moved.append(given)
    )
    go_along(0, np.ones(3))
    assert not moved
    told[8:11] = 30.0, -20.0, 2.0  # the target is that of a picture some calls ago
    go_along(0, np.ones(3))
    assert moved == [(2.0, 30.0, -20.0, [1.0, 1.0, 1.0])]
