"""Films: as long as the run, gaps drawn where they are, both sides alike; and in a user's world."""

import sys

import numpy as np
import pybullet
import pytest
from PIL import Image
from support.small_models import four_bar

import bulletbridge as bb
from bulletbridge.cli import run
from bulletbridge.errors import MissingExtraError, ModelError
from bulletbridge.models.loops_file import read_loops
from bulletbridge.viewer import film as films
from bulletbridge.viewer.film import BAND, GAP_COLOUR, Side, film
from bulletbridge.viewer.pictures import SIZE, Camera


def red(pixels):
    """How many pixels have the colour of gaps, about."""
    return int(np.sum(np.abs(pixels.astype(int) - GAP_COLOUR).max(axis=2) < 25))


def frames(path):
    """Pictures of a gif."""
    with Image.open(path) as picture:
        for k in range(picture.n_frames):
            picture.seek(k)
            yield np.asarray(picture.convert("RGB"))


def test_a_film_of_a_comparison_shows_both_for_the_whole_run(tmp_path, capsys):
    path = tmp_path / "film.gif"
    model = str(four_bar(tmp_path))
    assert run(["compare", model, "--duration", "0.2", "--video", str(path)]) == 0
    assert f"video: {path}" in capsys.readouterr().out
    shown = list(frames(path))
    assert len(shown) == 6  # 0.2 s at 25 a second, both ends
    assert {picture.shape for picture in shown} == {(SIZE[1] + 2 * BAND, 2 * SIZE[0], 3)}
    assert np.abs(shown[-1].astype(int) - shown[0]).max() > 50  # it moves


def test_gaps_are_drawn_from_the_loop_as_long_as_they_are(tmp_path):
    """An open side has a line, of length gap times magnification, and a closed one only a dot."""
    path, spec = tmp_path / "film.gif", read_loops(four_bar(tmp_path))
    with bb.load(spec, "new") as loaded:
        system = loaded.system
        t, closed = np.arange(3) * 0.04, np.tile(system.q, (3, 1))
        film(path, spec, system, [Side("open", t, closed + [0, 0, 0.05]), Side("shut", t, closed)])
    for picture in frames(path):
        opened, shut = red(picture[:, : SIZE[0]]), red(picture[:, SIZE[0] :])
        assert shut < 150 and opened > shut + 100


@pytest.mark.parametrize("x", [-0.3, 0.0, 0.4])
def test_points_are_where_the_renderer_has_them(x):
    """A ball is seen around the projection of its centre."""
    client = pybullet.connect(pybullet.DIRECT)
    try:
        shape = pybullet.createVisualShape(pybullet.GEOM_SPHERE, 0.05, physicsClientId=client)
        point = np.array([x, 0.2, 0.1 - x])
        pybullet.createMultiBody(0, -1, shape, point.tolist(), physicsClientId=client)
        camera = Camera(np.array([0.1, 0, 0]), np.array([0.48, -0.64, 0.6]), 3.0)
        mask = films.take(camera, client, SIZE)[1]
        rows, columns = np.nonzero(mask >= 0)
        seen = columns.mean(), rows.mean()
        assert np.abs(np.subtract(seen, films._project(camera, point))).max() < 2.0
    finally:
        pybullet.disconnect(client)


def test_a_film_of_a_users_world_is_its_run(tmp_path):
    path = tmp_path / "film.mp4"
    with bb.load("four_bar", "new") as loaded, bb.load("four_bar", "new") as other:
        recording = bb.record(loaded.system, path, 0.25)
        expected = other.system.run(0.25)
    assert np.array_equal(recording.q, expected.q) and np.array_equal(recording.rank, expected.rank)
    assert np.allclose(recording.t, expected.t, rtol=1e-13)
    import imageio_ffmpeg

    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    assert count == 6 and seconds == pytest.approx(0.25, abs=0.01)


def test_what_cannot_be_filmed_is_said_first(tmp_path, capsys, monkeypatch):
    model = str(four_bar(tmp_path))
    for name, said in (("film.avi", "ends in .gif or .mp4"), ("no/film.gif", "does not exist")):
        assert run(["compare", model, "--video", str(tmp_path / name)]) == 2
        assert said in capsys.readouterr().err
    assert run(["compare", model, model, "--video", str(tmp_path / "film.gif")]) == 2
    assert "a film shows one model" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bulletbridge\[video\]'"):
        films.require_film(tmp_path / "film.mp4")
    with bb.load("four_bar", "new") as loaded:
        alone = bb.System(loaded.system.mechanism)
    with pytest.raises(ModelError, match="in Bullet's world"):
        bb.record(alone, tmp_path / "film.gif", 0.1)


def test_massless_rods_are_in_the_film_and_not_left_in_the_world(tmp_path, monkeypatch):
    with bb.load("triple_slider_crank", "new") as model:
        there, seen, taken = pybullet.getNumBodies(model.client), [], films.take

        def take(camera, client, size):
            seen.append(pybullet.getNumBodies(client))
            return taken(camera, client, size)

        monkeypatch.setattr(films, "take", take)
        bb.record(model.system, tmp_path / "film.gif", 0.05)
        assert set(seen) == {there + 2} and pybullet.getNumBodies(model.client) == there


@pytest.mark.parametrize(
    ("metres", "said"), [(0.0, "0 m"), (2e-16, "2e-16 m"), (1.7e-3, "1.7 mm"), (0.25, "0.25 m")]
)
def test_gaps_are_told_in_the_unit_that_suits_them(metres, said):
    assert films._length(metres) == said
