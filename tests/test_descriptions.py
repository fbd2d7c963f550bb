"""Names of ``robot_descriptions``: taken where that package is installed."""

import sys

import pytest

from bulletbridge.errors import ModelError
from bulletbridge.models.bundled import find


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of this name with a robot, one that cannot be fetched and one without a file."""
    folder = tmp_path / "robot_descriptions"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "_descriptions.py").write_text("DESCRIPTIONS = {'biped_description': None}")
    (folder / "biped_description.py").write_text("URDF_PATH = '/robots/biped.urdf'")
    (folder / "far_description.py").write_text("raise OSError('no network\\nand more')")
    (folder / "bare_description.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.startswith("robot_descriptions")]:
        monkeypatch.delitem(sys.modules, name)


def test_a_described_robot_is_found_by_its_name(package):
    assert str(find("biped_description")) == "/robots/biped.urdf"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bipde_description", "has no 'bipde_description'; did you mean 'biped_description'"),
        ("far_description", r"cannot be fetched \(no network\); fetch .* pull far_description"),
        ("bare_description", "neither a URDF nor an MJCF"),
    ],
)
def test_what_cannot_be_had_is_said(package, name, message):
    with pytest.raises(ModelError, match=message):
        find(name)


def test_the_package_need_not_be_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelError, match="pip install robot_descriptions"):
        find("ur5_description")
