"""Pictures without a display, and what the window is fed with."""

import io
from types import SimpleNamespace

import numpy as np
import pybullet
import pybullet_data
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from support.small_models import four_bar

from bulletbridge.comparison import plots
from bulletbridge.comparison.describe import direction, plainly
from bulletbridge.comparison.options import CompareOptions
from bulletbridge.comparison.playback import preview
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.load import load
from bulletbridge.models.loops_file import read_loops
from bulletbridge.viewer.pictures import (
    SIZE,
    colour_bare,
    find_camera,
    framing_of,
    photograph,
    take,
)


def test_camera_has_everything_in_view_and_little_else(tmp_path):
    with load(four_bar(tmp_path)) as loaded:
        states = preview(loaded.system, CompareOptions(duration=1.0))
        camera = find_camera(loaded.bodies, states)
        margins = []
        for q in states:
            loaded.bodies.write(q, np.zeros(3))
            rows, columns = np.nonzero(take(camera, loaded.client, SIZE)[1] >= 0)
            box = (columns.min(), SIZE[0] - 1 - columns.max(), rows.min(), SIZE[1] - 1 - rows.max())
            margins.append(box)
    left, right, top, bottom = np.min(margins, axis=0)
    assert min(left, right, top, bottom) > 0
    assert min(left + right, (top + bottom) * SIZE[0] / SIZE[1]) < 0.25 * SIZE[0]


def test_pictures_are_png(tmp_path):
    spec = read_loops(four_bar(tmp_path))
    q = np.array([1.2, -2.2, 0.5])
    pictures = photograph(spec, [q, 0.9 * q], [q])
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert pictures[0] != pictures[1]


def test_what_stands_beside_a_robot_is_in_its_pictures(tmp_path):
    """A red wall below an arm takes its place in the picture, and is not there without."""
    path = tmp_path / "arm.xml"
    wall = '<geom name="wall" type="box" pos="0.2 0 -0.3" size="0.3 0.3 0.02" rgba="1 0 0 1"/>'
    arm = """<body><joint axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" rgba="0 0 1 1"/></body>"""
    shares = []
    for scenery in (wall, ""):
        path.write_text(f"<mujoco><worldbody>{scenery}{arm}</worldbody></mujoco>")
        q = np.zeros(1)
        picture = imread(io.BytesIO(photograph(read_model(path), [q], [q])[0]))
        red = (picture[..., 0] > 0.3) & (picture[..., 1] < 0.1) & (picture[..., 2] < 0.1)
        shares.append(red.mean())
    assert shares[0] > 0.02 and shares[1] == 0.0


def test_what_falls_stays_in_the_picture():
    """Ten seconds of free fall are half a kilometre; the robot keeps its size in the picture."""
    spec = read_model("minitaur")
    with load(spec, "new") as loaded:
        q = np.tile(loaded.system.q, (40, 1))
        q[:, 2] -= np.linspace(0.0, 490.0, 40)
        view = framing_of(loaded.bodies, q)
        sizes = []
        for state in q:
            rows, _ = np.nonzero(take(view.show(loaded.bodies, state), loaded.client, SIZE)[1] >= 0)
            assert 0 < rows.min() and rows.max() < SIZE[1] - 1
            sizes.append(len(rows))
    assert np.ptp(sizes) < 0.1 * np.mean(sizes) and np.mean(sizes) > 0.05 * SIZE[0] * SIZE[1]


def test_the_ground_does_not_push_the_camera_away(tmp_path):
    with load(four_bar(tmp_path), "new") as loaded:
        alone = find_camera(loaded.bodies, [loaded.system.q]).distance
        plane = f"{pybullet_data.getDataPath()}/plane.urdf"
        pybullet.loadURDF(plane, [0, 0, -2], physicsClientId=loaded.client)
        assert find_camera(loaded.bodies, [loaded.system.q]).distance < 1.2 * alone


def test_preview_does_not_move_the_system(tmp_path):
    with load(four_bar(tmp_path)) as loaded:
        system = loaded.system
        before = system.q, system.v, system.t
        states = preview(system, CompareOptions())
        assert np.abs(states[-1] - before[0]).max() > 0.1
        assert np.allclose(system.q, before[0], atol=1e-15, rtol=0)
        assert np.allclose(system.v, before[1], atol=1e-15, rtol=0)
        assert system.t == before[2]


@pytest.mark.parametrize(
    ("wrenches", "words"),
    [
        ([[0, 0, 0, 0, 0, 1.0]], ["force z"]),
        ([[0.6, 0, 0, 0, 0, 0.8], [0.8, 0, 0, 0, 0, -0.6]], ["moment x", "force z"]),
        ([[0.6, 0, 0, 0, 0, 0.8]], ["force z", "moment x"]),
    ],
)
def test_directions_are_told_by_axes_where_possible(wrenches, words):
    told = " ".join(direction(w) for w in plainly(np.array(wrenches)))
    assert [word for word in words if word in told] == words


def test_links_without_colours_can_be_told_apart_and_others_keep_theirs(world):
    def robot(material):
        seen = f"<visual><geometry><sphere radius='0.1'/></geometry>{material}</visual>"
        links = "".join(
            f"<link name='l{k}'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0'"
            f" ixz='0' iyz='0'/></inertial>{seen}</link>"
            for k in range(4)
        )
        joints = "".join(
            f"<joint name='j{k}' type='continuous'><parent link='l{k}'/><child link='l{k + 1}'/>"
            "<axis xyz='0 0 1'/></joint>"
            for k in range(3)
        )
        return world.load(f"<robot name='r'>{links}{joints}</robot>")

    def colours(body):
        return [shape[7] for shape in pybullet.getVisualShapeData(body, world.client)]

    green = "<material name='m'><color rgba='0.1 0.8 0.2 1'/></material>"
    bare, painted = robot(""), robot(green)
    before = colours(painted)
    colour_bare([bare, painted], world.client)
    assert len(set(colours(bare))) == 4
    assert colours(painted) == before


@pytest.mark.parametrize(("longest", "labels"), [(50.0, 5), (5e4, 5)])
def test_times_over_decades_have_labels_that_do_not_overlap(monkeypatch, longest, labels):
    """From 5 µs on: 5, 10, 20, 50 and 100... of little; powers of ten alone of much."""
    trace = SimpleNamespace(step_us=np.geomspace(5.0, longest, 50))
    monkeypatch.setattr(plots, "far_enough", lambda _: [(None, trace)])
    monkeypatch.setattr(plots, "_colour", lambda _: "k")
    monkeypatch.setattr(plots, "_label", lambda _: "ours")
    drawn = []
    monkeypatch.setattr(
        plots, "svg_figure", lambda draw, _: drawn.append(draw(axes := Figure().subplots()) or axes)
    )
    plots.time_figure([])
    assert len(drawn[0].get_xticks()) <= labels
