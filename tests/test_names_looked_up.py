"""Names that do not exist: told with the nearest ones, wherever they are looked up."""

import copy
import pickle

import pytest
from support.planar import four_bar

import bulletbridge as bb
from bulletbridge.errors import ModelError


def test_names_that_do_not_exist_are_told_with_the_nearest():
    spring = bb.Spring(
        "coil", bb.Frame("world", (0.0, 0.0, 1.0)), bb.Frame("l0"), stiffness=1.0, length=0.1
    )
    system = four_bar(extra=[spring])
    system.assemble()
    name = next(iter(system.reactions()))
    with pytest.raises(ModelError, match=rf"unknown constraint '{name}s'; did you mean '{name}'\?"):
        system.reactions()[f"{name}s"]
    with pytest.raises(KeyError):  # a program that reads a dict may expect it
        system.reactions()[f"{name}s"]
    with pytest.raises(ModelError, match=r"unknown force element 'coils'; did you mean 'coil'\?"):
        system.spring_forces()["coils"]
    with pytest.raises(ModelError, match="unknown wrench 'wind'; there is none"):
        system.applied_wrenches()["wind"]
    with pytest.raises(ModelError, match="unknown loop"):
        system.gap_vectors()["qqq"]
    with pytest.raises(ModelError, match=r"unknown joint 'j9'; did you mean .*'j0'"):
        system.joint_loads["j9"]
    assert system.reactions().get("nothing") is None


def test_what_is_known_by_name_is_a_dict_that_can_be_copied():
    system = four_bar()
    system.assemble()
    found = system.reactions()
    for same in (copy.deepcopy(found), copy.copy(found), pickle.loads(pickle.dumps(found))):
        assert list(same) == list(found)
        with pytest.raises(ModelError, match="unknown constraint"):
            same["nothing"]


def test_a_constraint_without_a_name_is_refused():
    loop = bb.Coupling("", {"j0": 1.0})
    with pytest.raises(ModelError, match="empty name"):
        four_bar(extra=[loop])
