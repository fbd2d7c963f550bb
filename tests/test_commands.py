"""What commands say: help with its units, models with a word, what was written, what is missing."""

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from bulletbridge import doctor
from bulletbridge.cli import app, run
from bulletbridge.models.bundled import about, bundled, examples
from bulletbridge.models.demos import scripts

COMMANDS = [c.name or c.callback.__name__ for c in app.registered_commands]
ROOT = Path(__file__).parents[1]

try:
    import tomllib
except ImportError:  # Python 3.10
    tomllib = None


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_all_that_it_says(command, capsys):
    """Units stand in brackets, which markup would eat."""
    (registered,) = (c for c in app.registered_commands if command in (c.name, c.callback.__name__))
    assert run([command, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    texts = re.findall(
        r"help='([^']*)'|help=\"([^\"]*)\"", repr(registered.callback.__annotations__)
    )
    for text in filter(None, (a or b for a, b in texts)):
        assert " ".join(text.split()) in said
    assert registered.short_help and len(registered.short_help) <= 45


@pytest.mark.parametrize("name", sorted(bundled() | examples()))
def test_every_bundled_model_says_what_it_is(name):
    said = about((bundled() | examples())[name])
    assert 15 < len(said) < 250 and said[0].isupper()


def test_models_are_listed_with_their_folder(capsys):
    assert run(["models"]) == 0
    *lines, _, place = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(bundled() | examples())
    assert "models_folder()" in place


def test_the_doctor_tells_what_is_missing_for_what(capsys, monkeypatch):
    monkeypatch.setattr(
        doctor, "requires", lambda _: ["numpy>=1", 'nothing-at-all>=1; extra == "video"']
    )
    assert run(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "missing nothing-at-all: pip install 'bulletbridge[video]'" in said
    assert f"numpy {metadata.version('numpy')}" in said
    assert re.search(r"^processor: \w+", said, re.MULTILINE)


def test_the_doctor_knows_where_kernels_cannot_be_kept(capsys, monkeypatch):
    monkeypatch.setenv("BULLETBRIDGE_CACHE_DIR", "not/absolute")
    monkeypatch.delenv("DISPLAY", raising=False)
    assert run(["doctor", "--window", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "not an absolute path" in found["kernels"]["refused"]
    assert found["display"].startswith("none")


@pytest.mark.skipif(tomllib is None, reason="no TOML before Python 3.11")
def test_the_doctor_knows_every_extra():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(doctor.FEATURES) == set(listed["optional-dependencies"]) - {"dev"}


LINK = """<robot name="r"><link name="a"><inertial><mass value="1"/>
<inertia ixx="{0}" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="1 1 1"/></geometry></collision></link></robot>"""


@pytest.mark.parametrize("ixx, said", [(1, "no link needed a change"), (5, "1 of the links")])
def test_inertia_says_what_was_done(tmp_path, capsys, ixx, said):
    (tmp_path / "r.urdf").write_text(LINK.format(ixx))
    assert run(["inertia", str(tmp_path / "r.urdf"), "-o", str(tmp_path / "new.urdf")]) == 0
    assert said in capsys.readouterr().out and (tmp_path / "new.urdf").is_file()


def test_flexible_writes_where_one_works_and_over_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["flexible", "four_bar", "--link", "coupler", "--segments", "2", "--EI", "20"]
    assert run(command) == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(command) == 2
    assert "is there already; name the new file with -o" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert run([*command, "-o", "four_bar_flexible.urdf"]) == 0


def test_demos_are_listed_with_what_they_show(capsys):
    assert run(["demo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(scripts())
    assert all(line.endswith(".") and len(line.split()) > 4 for line in lines)


def test_a_demo_that_does_not_exist_is_told_before_anything_else(capsys, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    assert run(["demo", "wlak"]) == 2
    said = capsys.readouterr().err
    assert "no demo is called 'wlak'; did you mean 'walk'?" in said and "display" not in said


@pytest.mark.parametrize("name", ["README.md", "crank.png", "grip.py", "empty.urdf"])
def test_files_that_are_no_robot_are_told_to_be_none(name, tmp_path, capsys):
    text = {"crank.png": b"\x89PNG\r\n", "empty.urdf": b" "}.get(name, b"# bulletbridge\n\nRobots.")
    (tmp_path / name).write_bytes(text)
    assert run(["inspect", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    why = {"empty.urdf": "is empty; is it the right file", "grip.py": "is a program, and no robot"}
    assert f"{name} {why.get(name, 'is no robot that is known')}" in said
    assert ("'bulletbridge run --save-loops NAME grip.py'" in said) == (name == "grip.py")


@pytest.mark.parametrize("name", ["arm.urdf", "arm.usd", "arm.xml", "arm.dmd.yaml"])
def test_pointers_of_git_lfs_are_told_to_be_that(name, tmp_path, capsys):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    (tmp_path / name).write_text(pointer)
    assert run(["inspect", str(tmp_path / name)]) == 2
    assert f"{name} is only a pointer of Git LFS; `git lfs pull`" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_told_with_its_neighbour(tmp_path, capsys):
    (tmp_path / "my robot.urdf").write_text("")
    assert run(["inspect", str(tmp_path / "my robto.urdf")]) == 2
    assert "did you mean 'my robot.urdf'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "called",
    [
        "sys.argv[0] = '/any/bin/bulletbridge'",
        "sys.argv[0] = '-m'; sys.orig_argv = ['python', '-m', 'bulletbridge']",
    ],
)
def test_interrupts_of_imports_are_a_word(called):
    code = f"import sys; {called}; import bulletbridge.interrupts; raise KeyboardInterrupt"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "bulletbridge: interrupted\n" and done.returncode


def test_an_interrupted_command_is_told_in_a_word(capsys, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("bulletbridge.models.bundled.bundled", interrupted)
    assert run(["models"]) == 130
    assert capsys.readouterr().err.strip() == "bulletbridge: interrupted"


def test_without_a_command_all_are_listed(capsys):
    assert run([]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert all(any(line.split()[:1] == [command] for line in listed) for command in COMMANDS)


def test_a_port_that_cannot_be_is_told_before_a_page_is_opened(capsys):
    assert run(["view", "four_bar", "--port", "99999"]) == 2
    assert "--port" in capsys.readouterr().err


def test_tables_break_no_names_in_a_terminal_of_80_columns(capsys):
    """The largest numbers that three digits write, and names longer than the terminal."""
    from rich.console import Console

    from bulletbridge.comparison.results import Extent, Rank, Result
    from bulletbridge.comparison.tables import print_results

    most, name = Extent(1.234e-100, 1.234e-100, 1.234e-100), "a_robot_with_a_long_name" * 4
    results = [
        Result(
            *(name, solver, "", "verlet", 1e-3, 1.0, 1000, status),
            **dict.fromkeys(("gap_m", "gap_rad", "gap_kept", "gap_rate"), most),
            rank=Rank(100, 100, 100, 0.1),
        )
        for solver, status in (("projector", "ok"), ("native_tuned", "failed"))
    ]
    print_results(results, Console(width=80))
    lines = capsys.readouterr().out.splitlines()
    assert name in lines
    assert {line.split()[0] for line in lines[3:]} == {"projector", "native_tuned"}
    assert {len(line) for line in lines if line != name} == {len(lines[0])}
    assert "1.23e-100 1.23e-100" in lines[3] and "native_tuned failed" in lines[4]


def test_a_robot_without_loops_is_told_where_they_stand(tmp_path, capsys):
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    links = "".join(f'<link name="{name}">{body}</inertial></link>' for name in ("a", "b"))
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    (tmp_path / "tree.urdf").write_text(f'<robot name="tree">{links}{joint}</robot>')
    assert run(["inspect", str(tmp_path / "tree.urdf")]) == 0
    said = capsys.readouterr().out
    assert "no loops" in said and "loops.yaml" in said
    assert "closes with Bullet" not in said
