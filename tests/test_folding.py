"""Links on fixed joints where a robot has too many for Bullet, against Pinocchio's model."""

import numpy as np
import pinocchio
import pytest

import bulletbridge as bb
from bulletbridge.bullet.xml_file import read_xml
from bulletbridge.errors import BulletBridgeWarning, ModelError
from bulletbridge.mechanism.frames import matrix_rpy
from bulletbridge.models.folding import fold, with_folded_names
from bulletbridge.models.formats.loadable import write_urdf
from bulletbridge.models.formats.urdf_tree import UrdfTree

LIMITS = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'


def tree(path, kinds, rng):
    """A random tree of links; each hangs on one of the five before it."""
    parts = ["<robot name='tree'>"]
    for n, kind in enumerate(["", *kinds]):
        side = rng.uniform(0.02, 0.2, 3)
        J = np.diag(side**2 @ (np.ones((3, 3)) - np.eye(3)) / 12)
        (x, y, z), (roll, pitch, yaw) = 0.1 * rng.normal(size=3), rng.normal(size=3)
        parts.append(
            f'<link name="l{n}"><inertial><origin xyz="{x} {y} {z}" rpy="{roll} {pitch} {yaw}"/>'
            f'<mass value="1"/><inertia ixx="{J[0, 0]}" iyy="{J[1, 1]}" izz="{J[2, 2]}" ixy="0"'
            ' ixz="0" iyz="0"/></inertial><collision><geometry><box size="0.01 0.01 0.01"/>'
            "</geometry></collision></link>"
        )
        if kind:
            (x, y, z), (roll, pitch, yaw) = 0.1 * rng.normal(size=3), rng.normal(size=3)
            parts.append(
                f'<joint name="j{n}" type="{kind}"><parent link="l{max(0, n - rng.integers(1, 6))}"'
                f'/><child link="l{n}"/><origin xyz="{x} {y} {z}" rpy="{roll} {pitch} {yaw}"/>'
                f'<axis xyz="0 0 1"/>{LIMITS}</joint>'
            )
    path.write_text("\n".join([*parts, "</robot>"]))
    return path


def mixed(moving, fixed, rng):
    """Kinds of joints in some order."""
    return rng.permutation(["revolute"] * moving + ["fixed"] * fixed).tolist()


def numbers(model, q, names):
    """Positions by joint name, in the order of Pinocchio's model."""
    found = pinocchio.neutral(model)
    for name, value in zip(names, q, strict=True):
        found[model.joints[model.getJointId(name)].idx_q] = value
    return found


def test_what_is_folded_is_the_same_robot(tmp_path):
    """78 moving and 52 fixed joints, of which Bullet cannot tell the states."""
    rng = np.random.default_rng(3)
    path = tree(tmp_path / "tree.urdf", mixed(78, 52, rng), rng)
    with pytest.warns(BulletBridgeWarning, match="52 of 130 links are on fixed joints"):
        loaded = bb.load(path, fixed_base=True, limits=False)
    with loaded:
        system = loaded.system
        model = pinocchio.buildModelFromUrdf(str(path))
        data, q = model.createData(), 0.5 * rng.normal(size=78)
        system.set_state(q)
        theirs = numbers(model, q, system.mechanism.joints)
        M = pinocchio.crba(model, data, theirs)
        M = np.triu(M) + np.triu(M, 1).T
        order = [model.joints[model.getJointId(n)].idx_v for n in system.mechanism.joints]
        # Bullet keeps inertias by principal axes, found by rotations until 1e-11 or so is left
        assert np.abs(system.terms().M - M[np.ix_(order, order)]).max() < 1e-11 * np.abs(M).max()
        pinocchio.framesForwardKinematics(model, data, theirs)
        for name in ("l30", "l129", "l130"):
            frame = data.oMf[model.getFrameId(name)]
            R, p = system.link_pose(name)
            assert np.abs(R - frame.rotation).max() < 1e-12
            assert np.abs(p - frame.translation).max() < 1e-12
        loaded.system.step()


def test_loops_may_be_on_links_that_are_folded(tmp_path):
    """A ball from the end of the tree to where that is."""
    rng = np.random.default_rng(4)
    kinds = [*mixed(60, 69, rng), "fixed"]
    path = tree(tmp_path / "tree.urdf", kinds, rng)
    model = pinocchio.buildModelFromUrdf(str(path))
    data = model.createData()
    pinocchio.framesForwardKinematics(model, data, pinocchio.neutral(model))
    frame = data.oMf[model.getFrameId("l130")]
    place = frame.translation + frame.rotation @ [0.01, 0.02, 0.03]
    (tmp_path / "tree.loops.yaml").write_text(
        "bulletbridge: 1\nurdf: tree.urdf\nfixed_base: true\nloops:\n  - {name: pin, type: weld,"
        f" a: {{link: world, xyz: {place.tolist()}, rpy: {list(matrix_rpy(frame.rotation))}}},"
        " b: {link: l130, xyz: [0.01, 0.02, 0.03]}}\n"
    )
    with pytest.warns(BulletBridgeWarning, match="70 of 130"):
        loaded = bb.load(tmp_path / "tree.loops.yaml", limits=False)
    with loaded:
        assert np.abs(loaded.system.q).max() < 1e-12  # closed as it is
        assert loaded.assembly.gap < 1e-12


def test_folding_keeps_masses_and_shapes(tmp_path):
    """A small tree, once as it is and once folded: the same M, and no shape is lost."""
    rng = np.random.default_rng(5)
    path = tree(tmp_path / "tree.urdf", mixed(6, 6, rng), rng)
    robot = read_xml(path)
    found = fold(UrdfTree(path, robot))
    assert len(robot.findall("joint")) == 6 and len(found) == 6
    assert len(list(robot.iter("collision"))) == 13
    write_urdf(robot, tmp_path / "folded.urdf")
    terms = []
    for file in (path, tmp_path / "folded.urdf"):
        with bb.load(file, fixed_base=False, limits=False) as loaded:
            joints = loaded.system.mechanism.joints
            order = sorted((n for n in joints if n.startswith("j")), key=lambda n: int(n[1:]))
            loaded.system.assemble(dict(zip(order, np.linspace(-1, 1, 6).tolist(), strict=True)))
            M = loaded.system.terms().M
            columns = [joints[n].v.start for n in order]
            terms.append(M[np.ix_(columns, columns)])
            if file == path:
                links = loaded.system.mechanism.links
            else:
                named = with_folded_names(loaded.system.mechanism, found).links
                assert named.keys() == links.keys()
    assert np.abs(terms[0] - terms[1]).max() < 1e-11 * np.abs(terms[0]).max()


def test_too_many_moving_joints_are_refused_with_their_number(tmp_path):
    rng = np.random.default_rng(6)
    path = tree(tmp_path / "tree.urdf", mixed(122, 3, rng), rng)
    with (
        pytest.warns(BulletBridgeWarning),
        pytest.raises(ModelError, match=r"122 joint coord.*0 are"),
    ):
        bb.load(path, fixed_base=True)
