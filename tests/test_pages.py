"""Tutorials, how-to pages and other programs in the documentation run, and print what they say."""

import inspect
import re
import warnings
from pathlib import Path
from typing import ClassVar

import pybullet
import pytest
from support.pages import blocks, differs, perform

import bulletbridge as bb

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [
    DOCS / "modules.md",
    DOCS / "linearisation.md",
    DOCS / "optimisation.md",
    *sorted(DOCS.glob("tutorials/[!i]*.md")),
    *sorted(DOCS.glob("how/[!i]*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    connected = {i for i in range(20) if pybullet.isConnected(i)}
    ran = 0
    try:
        with warnings.catch_warnings():
            for block, heard, said in perform(page, tmp_path):
                assert not differs(heard, said), f"{block.text}\nprinted\n{heard}"
                ran += 1
    finally:
        for i in {i for i in range(20) if pybullet.isConnected(i)} - connected:
            pybullet.disconnect(i)
    assert ran


@pytest.mark.parametrize("folder", ["tutorials", "how"])
def test_every_page_is_listed_by_its_index(folder):
    index = (DOCS / folder / "index.md").read_text()
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", index))
    assert listed == {page.name for page in PAGES if page.parent.name == folder}


def test_a_page_that_says_something_else_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- file: n -->\n```yaml\n3\n```\n"
        "```python\nimport pathlib\nprint(int(pathlib.Path('n').read_text()))\n```\n"
    )
    ((_, heard, said),) = perform(page, tmp_path)
    assert differs(heard, said)
    page.write_text(page.read_text() + "\n```text\n4\n```\n")
    ((_, heard, said),) = perform(page, tmp_path)
    assert differs(heard, said) == ["4"]
    assert [b.mark for b in blocks(page.read_text())] == ["file: n", ""]
    assert not differs("a 1e-15\nb\nc\n", "a 3e-17\n...\nc\n")
    assert not differs("gap 0 m\n", "gap 2e-16 m")
    assert differs("a\nb\n", "a\n") and differs("a\n", "a\nb\n") and differs("1e-9\n", "1e-15\n")


def test_no_constant_of_a_class_is_shown_as_a_parameter():
    """What makes the reference reads source, where a bare ``ClassVar`` looks like a field."""
    public = {name: getattr(bb, name) for name in bb.__all__}
    classes = {name: found for name, found in public.items() if inspect.isclass(found)}
    notes = {
        f"{name}.{member}": said
        for name, found in classes.items()
        for member, said in vars(found).get("__annotations__", {}).items()
    }
    assert any("Recording." in name for name in notes)
    assert not [name for name, said in notes.items() if said is ClassVar]
