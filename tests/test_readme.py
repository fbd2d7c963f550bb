"""The README's example prints what it says, anywhere, and its commands exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
ROOMS = "benchmarks", "demos", "docs", "urdf"
PAGES = [
    *ROOT.glob("*.md"),
    *(page for room in ROOMS for page in ROOT.glob(f"{room}/**/*.md")),
]


def test_the_example_prints_what_the_readme_says(tmp_path, monkeypatch, capsys):
    import pybullet

    code, printed = re.search(
        r"<!-- example -->\n```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL
    ).groups()
    monkeypatch.chdir(tmp_path)
    before = {i for i in range(20) if pybullet.isConnected(i)}
    try:
        exec(compile(code, "README.md", "exec"), {})
    finally:
        for i in {i for i in range(20) if pybullet.isConnected(i)} - before:
            pybullet.disconnect(i)
    said = capsys.readouterr().out
    # a gap at round-off is printed with one digit, which may differ between processors
    gap = re.compile(r"gap \de-1[4-9] m")
    assert gap.sub("gap", said) == gap.sub("gap", printed)
    assert (tmp_path / "crank.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "command", re.findall(r"(?:\$ |`)bulletbridge ([a-z]\w+)", README + REFERENCE)
)
def test_every_command_of_the_readme_exists(command):
    from bulletbridge.cli import app

    assert command in [c.name or c.callback.__name__ for c in app.registered_commands]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_links_to_exists(page):
    links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text())
    files = [link for link in links if not link.startswith("https://")]
    assert all((page.parent / file).exists() for file in files), files


def test_the_list_of_benchmarks_is_that_of_the_files():
    folder = ROOT / "benchmarks"
    listed = re.findall(r"^\| `(\w+)` \|", (folder / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(file.stem for file in folder.glob("[!_]*.py"))
    asked = [file for file in folder.glob("_*.py") if "__main__" in file.read_text()]
    assert not asked, "a program whose name says that it is a part of another"
