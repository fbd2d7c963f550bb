"""A robot's files, shown again when they are saved."""

import pytest

from bulletbridge.cli import WRONG_INPUT, run
from bulletbridge.comparison.watching import changes, show_again
from bulletbridge.errors import ModelError
from bulletbridge.models.bundled import models_folder


def edits(*steps):
    """A wait in which the next of some edits is made; the user has seen enough after the last."""
    left = list(steps)

    def wait():
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    return wait


def test_what_a_robot_is_made_of_is_watched_and_nothing_else(tmp_path):
    robot, mesh, note = tmp_path / "r.urdf", tmp_path / "meshes" / "arm.STL", tmp_path / "note.txt"
    mesh.parent.mkdir()
    for file in (robot, mesh, note):
        file.write_text("1")
    seen = changes(
        robot,
        edits(
            lambda: note.write_text("22"),
            lambda: mesh.write_text("22"),
            lambda: robot.unlink(),
            lambda: robot.write_text("333"),
        ),
    )
    found = [next(seen) for _ in range(4)]
    assert found == [[], [mesh], [robot], [robot]]


def test_mistakes_are_shown_and_mended(tmp_path, capsys):
    robot = tmp_path / "r.urdf"
    robot.write_text("good")

    def show():
        if robot.read_text() == "bad":
            raise ModelError("link 'arm' has\nno mass")
        print(robot.read_text())

    wait = edits(lambda: robot.write_text("bad"), lambda: robot.write_text("better"))
    assert show_again(robot, show, wait) == 0
    said = capsys.readouterr().out
    order = ["good", "r.urdf changed", "link 'arm' has no mass", "r.urdf changed", "better"]
    places = [said.index(order[0])]
    for text in order[1:]:
        places.append(said.index(text, places[-1] + 1))
    assert places == sorted(places)


def test_inspect_is_told_again_on_request(tmp_path, capsys, monkeypatch):
    for file in models_folder().glob("four_bar.*"):
        (tmp_path / file.name).write_text(file.read_text())
    loops = tmp_path / "four_bar.loops.yaml"
    mend = edits(lambda: loops.write_text(loops.read_text().replace("type: ball", "type: bal")))
    monkeypatch.setattr("bulletbridge.comparison.watching.time.sleep", lambda _: mend())
    assert run(["inspect", str(loops), "--watch"]) == 0
    said = capsys.readouterr().out
    assert "mobility 1" in said and "did you mean 'ball'?" in said


def test_watching_has_no_result_to_write(capsys):
    assert run(["inspect", "four_bar", "--watch", "--json", "-"]) == WRONG_INPUT
    assert "leave --json out" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nothing.urdf", "nothing.loops.yaml"])
def test_there_must_be_a_file_to_watch(name, tmp_path, capsys):
    assert run(["inspect", str(tmp_path / name), "--watch"]) == WRONG_INPUT
    assert name in capsys.readouterr().err
