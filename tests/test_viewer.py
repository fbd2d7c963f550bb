"""The viewer shows what Bullet has, and what is dragged keeps its loops and limits."""

import logging
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_allclose
from PIL import Image

import bulletbridge as bb
from bulletbridge.errors import MissingExtraError, ModelError
from bulletbridge.viewer.dragging import drag
from bulletbridge.viewer.pictures import ASPECT, HALF, Camera, take
from bulletbridge.viewer.rods import Rods, link_poses
from bulletbridge.viewer.view import TIME, Viewer
from bulletbridge.viewer.visuals import bones_of, visuals_of

PORT = 8770
SIZE = (640, 480)
SINGLE = 2e-6
"""Round-off of the link frames that Bullet tells, in metres at most two away."""


def moved(name):
    """A model after some motion, with a base that is turned where it floats."""
    model = bb.load(name, "new")
    model.system.set_state(v=0.3 * np.sin(np.arange(model.system.mechanism.nv)))
    model.system.run(0.2)
    return model


@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
@pytest.mark.parametrize("name", ["minitaur", "stewart", "leaf_leg"])
def test_links_are_where_bullet_has_them(name):
    with moved(name) as model:
        bodies = model.system.world
        links = [
            (body, k)
            for body in bodies.body_ids.values()
            for k in range(pybullet.getNumJoints(body, physicsClientId=model.client))
        ]
        for (body, k), (p, turn) in zip(links, link_poses(model.client, links), strict=True):
            state = pybullet.getLinkState(body, k, 0, 1, physicsClientId=model.client)
            assert np.abs(p - state[4]).max() < SINGLE
            assert 1.0 - abs(turn @ state[5]) < SINGLE
            name = pybullet.getJointInfo(body, k, physicsClientId=model.client)[12].decode()
            R, own = model.system.link_pose(name)
            assert np.abs(p - own).max() < 1e-12, name
            assert (
                np.abs(np.reshape(pybullet.getMatrixFromQuaternion(turn), (3, 3)) - R).max() < 1e-12
            )


@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
@pytest.mark.parametrize("name", ["minitaur", "delta", "leaf_leg"])
def test_what_is_seen_fills_bullets_own_picture(name):
    """Corners of all pieces, projected, are the edges of what Bullet's renderer draws."""
    with moved(name) as model:
        visuals = visuals_of(model.client)
        poses = link_poses(model.client, [v.link for v in visuals])
        points = np.concatenate(
            [
                v.vertices @ np.reshape(pybullet.getMatrixFromQuaternion(turn), (3, 3)).T + p
                for v, (p, turn) in zip(visuals, poses, strict=True)
            ]
        )
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        spread = float(np.linalg.norm(points - middle, axis=1).max())
        for direction in ((1.0, 0.2, 0.1), (0.3, -1.0, 0.4), (0.2, 0.1, 1.0)):
            unit = np.array(direction) / np.linalg.norm(direction)
            camera = Camera(middle, unit, 3.5 * spread)
            rows, columns = np.nonzero(take(camera, model.client, SIZE)[1] >= 0)
            away = points - camera.target
            depth = HALF * (camera.distance - away @ unit)
            x = 0.5 * SIZE[0] * (1.0 + away @ camera.right / (depth * ASPECT))
            y = 0.5 * SIZE[1] * (1.0 - away @ camera.up / depth)
            # half a pixel at each edge, and one for round shapes that are cut into other facets
            for seen, drawn in ((x, columns), (y, rows)):
                assert abs(seen.min() - drawn.min()) < 2.0, direction
                assert abs(seen.max() - drawn.max() - 1) < 2.0, direction


@pytest.mark.parametrize("width, aspect", [(390, 390 / 844), (400, 0.9), (768, 0.75), (900, 0.9)])
def test_a_narrow_page_shows_the_robot_where_the_panel_is_not(width, aspect):
    """Links, projected by a pinhole camera, against the upper 40 % of a page, or its left."""
    with bb.load("stewart", "new") as model:
        viewer = bb.view(model.system, wait=False, port=PORT)
        camera = SimpleNamespace(
            aspect=aspect, fov=1.3, image_width=width, position=np.full(3, 3.0)
        )
        viewer._fit(camera)  # a page has just opened, and is not where all begin
        assert_allclose(camera.position, 3.0)
        camera.position = np.array(viewer.server.initial_camera.position, np.float32)
        viewer._fit(camera)
        fitted = np.array(camera.position)
        viewer._fit(camera)  # it tells where it is now, and stays
        assert_allclose(camera.position, fitted)
        viewer.close()
        client = model.client
        body = pybullet.getBodyUniqueId(0, physicsClientId=client)
        joints = range(pybullet.getNumJoints(body, client))
        points = [pybullet.getLinkState(body, k, physicsClientId=client)[4] for k in joints]
    forward = np.subtract(camera.look_at, camera.position)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    seen = (np.array(points) - camera.position) @ np.column_stack(
        (right, np.cross(right, forward), forward)
    )
    x, y = (seen[:, :2] / seen[:, 2:]).T / np.tan(0.65)
    assert np.abs(x).max() < aspect
    if width < 576:
        assert 1.0 > y.max() > 0.6 > y.min() > 0.2
    else:
        assert x.max() / aspect < 1.0 - 2.0 * 340 / width and np.abs(y).max() < 1.0
    assert max(np.ptp(x) / aspect, np.ptp(y)) > 0.3  # and not from afar


def test_a_joint_is_dragged_with_its_loops_closed():
    with bb.load("four_bar", "new") as model:
        system = model.system
        for target in (1.5, 2.5, 4.5, 0.2):
            assert drag(system, "crank", target) == ""
            assert system.q["crank"] == pytest.approx(target, abs=1e-12)
            assert system.evaluate().largest("metres") < 1e-12
        # the rocker of a crank-rocker turns back where crank and coupler are in line: by cosines
        before = system.q["rocker"]
        said = drag(system, "rocker", before + 3.0)
        assert "loops" in said and "rocker" in said
        assert before < system.q["rocker"] < before + 3.0
        assert system.evaluate().largest("metres") < 1e-12
        shown = pybullet.getJointState(model.ids["robot"], 0, physicsClientId=model.client)[0]
        assert shown == system.q["crank"]


def test_limits_stop_what_is_dragged():
    properties = {"rocker": bb.JointProperties(limits=(-0.2, 0.1))}
    client = pybullet.connect(pybullet.DIRECT)
    try:
        flags = pybullet.URDF_USE_INERTIA_FROM_FILE
        path = f"{bb.models_folder()}/four_bar.urdf"
        robot = pybullet.loadURDF(path, useFixedBase=True, flags=flags, physicsClientId=client)
        a, b = bb.Frame("rocker", (0.7, 0, 0)), bb.Frame("ground", (1, 0, 0))
        pin = bb.LoopJoint("pin", bb.JointModel.BALL, a, b)
        system = bb.attach(robot, [pin], client, joints=properties, limits=True)
        system.assemble({"crank": 1.0})
        said = drag(system, "crank", 3.0)
        assert "that of 'rocker'" in said
        assert -0.2 - 1e-9 <= system.q["rocker"] <= 0.1 + 1e-9 and system.q["crank"] > 1.0
        assert drag(system, "rocker", 0.05) == ""
        assert "own" in drag(system, "rocker", 0.5) and system.q["rocker"] <= 0.1 + 1e-9
    finally:
        pybullet.disconnect(client)


def test_drives_stay_while_another_one_is_moved():
    with bb.load("stewart", "new") as model:
        system, drives = model.system, model.spec.actuated
        before = {name: system.q[name] for name in drives}
        assert drag(system, drives[0], before[drives[0]] + 0.03, drives) == ""
        assert system.q[drives[0]] == pytest.approx(before[drives[0]] + 0.03, abs=1e-12)
        assert all(abs(system.q[n] - before[n]) < 1e-12 for n in drives[1:])
        assert system.evaluate().largest("metres") < 1e-12


def test_the_page_follows_what_is_asked_for():
    with bb.load("four_bar", "new") as model:
        system = model.system
        start = system.q, system.v, system.t
        run = system.rollout(100)
        system.set_state(*start)
        viewer = Viewer(system, run, model.spec.actuated, PORT)
        try:
            assert viewer.url.startswith("http://127.0.0.1:")
            viewer.ask("crank", 1.4)
            viewer.ask("crank", 1.5)
            viewer.show()
            assert system.q["crank"] == pytest.approx(1.5, abs=1e-12) and viewer.said == ""
            link = (model.ids["robot"], 0)
            (p, turn), handle = link_poses(model.client, [link])[0], viewer.scene.links[link]
            assert np.allclose(handle.position, p, atol=1e-6)
            assert np.allclose(handle.wxyz, np.roll(turn, 1), atol=1e-6)
            viewer.ask("rocker", 9.0)
            viewer.show()
            assert "loops" in viewer.said
            viewer.ask(TIME, run.t[50] - run.t[0])
            viewer.show()
            assert np.array_equal(system.q, run.q[50]) and system.t == run.t[50]
            assert np.abs(system.v - run.v[50]).max() < 1e-9
        finally:
            viewer.close()


def test_connections_that_a_browser_opens_and_leaves_are_no_errors(caplog):
    with bb.load("four_bar", "new") as model:
        viewer = bb.view(model.system, wait=False, port=PORT + 3)
        try:
            said = logging.getLogger("websockets.server")
            said.error("opening handshake failed")
            assert not caplog.records
            said.error("something else")
            assert len(caplog.records) == 1
        finally:
            viewer.close()


def test_bodies_without_shapes_are_drawn_as_lines_between_their_joints(tmp_path):
    text = (Path(bb.models_folder()) / "four_bar.urdf").read_text()
    (tmp_path / "bare.urdf").write_text(re.sub(r"<visual>.*?</visual>", "", text, flags=re.DOTALL))
    with bb.load(tmp_path / "bare.urdf", "new", fixed_base=True) as model:
        links = bones_of(model.client, ())
        lengths = [
            float(np.linalg.norm(np.subtract(*(p for p, _ in link_poses(model.client, bone)))))
            for bone in links
        ]
        assert lengths == pytest.approx([0.0, 0.4, 0.9], abs=1e-12)
        assert bones_of(model.client, [links[0][0]]) == []
        viewer = bb.view(model.system, port=PORT + 9, wait=False)
        assert 0.9 < viewer.scene.size < 1.4 and not viewer.scene.links
        assert f'src="{viewer.url}"' in (viewer._repr_html_() or "")  # in notebooks
        viewer.close()
        assert repr(viewer) == "<Viewer: closed>" and viewer._repr_html_() is None


SQUARE = """mtllib square.mtl
usemtl painted
v 0 -1 -1
v 0 1 -1
v 0 1 1
v 0 -1 1
vt 1 0
vt 1 1
vt 0 1
vt 0 0
vn 1 0 0
f 1/1/1 2/2/1 3/3/1
f 1/1/1 3/3/1 4/4/1
"""
PLATE = """<robot name="plate"><link name="plate">
<visual><geometry><mesh filename="square.obj"/></geometry>
<material name="white"><color rgba="1 1 1 1"/></material></visual>
<visual><geometry><sphere radius="0"/></geometry></visual></link></robot>"""


def test_textures_lie_where_bullet_paints_them(tmp_path):
    colours = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [255, 255, 0]]], np.uint8)
    Image.fromarray(colours.repeat(32, 0).repeat(32, 1)).save(tmp_path / "four.png")
    (tmp_path / "square.obj").write_text(SQUARE)
    (tmp_path / "square.mtl").write_text("newmtl painted\nKd 1 1 1\nmap_Kd four.png\n")
    (tmp_path / "plate.urdf").write_text(PLATE)
    client = pybullet.connect(pybullet.DIRECT)
    try:
        pybullet.loadURDF(str(tmp_path / "plate.urdf"), physicsClientId=client)
        (visual,) = visuals_of(client)  # a sphere without a size is not seen
        camera = Camera(np.zeros(3), np.array([1.0, 0.0, 0.0]), 4.0)
        picture = take(camera, client, SIZE)[0]
    finally:
        pybullet.disconnect(client)
    assert visual.texture is not None
    image = np.asarray(visual.texture.image)
    for y, z in ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)):
        # where the point is in the texture: affine in its place, by the vertices that are seen
        places = np.column_stack([visual.vertices[:, 1:], np.ones(len(visual.vertices))])
        u, v = np.array([y, z, 1.0]) @ np.linalg.lstsq(places, visual.texture.uv, rcond=None)[0]
        ours = image[int((1.0 - v) * 64), int(u * 64)] > 128
        half = 4.0 * HALF
        column = int(0.5 * SIZE[0] * (1.0 + y / (half * SIZE[0] / SIZE[1])))
        row = int(0.5 * SIZE[1] * (1.0 - z / half))
        drawn = picture[row, column, :3]
        assert np.array_equal(ours, drawn > 0.5 * drawn.max()), (y, z, ours, drawn)


def test_what_cannot_be_viewed_is_refused(monkeypatch):
    with bb.load("four_bar", "new") as model, bb.load("delta", "new") as other:
        run = other.system.rollout(2)
        for port in (-1, 0, 65536, "8080"):
            with pytest.raises(ModelError, match="port is .* from 1 to 65535"):
                bb.view(model.system, port=port, wait=False)
        with pytest.raises(ModelError, match="another mechanism"):
            bb.view(model.system, run, wait=False)
        monkeypatch.setitem(sys.modules, "viser", None)
        with pytest.raises(MissingExtraError, match=r"bulletbridge\[viewer\]"):
            bb.view(model.system, wait=False)


def test_massless_rods_are_seen_where_their_ends_are():
    """Cylinders as long as the file has them, whose middles move with the links they join."""
    with bb.load("triple_slider_crank", "new") as model:
        system = model.system
        system.world.write(
            np.zeros(4), np.zeros(4)
        )  # as when bodies were loaded: no loop is closed
        rods = Rods(system.constraints, system.world)
        assert len(rods.ids) == 2
        system.write()
        system.run(0.1)
        rods.show()
        point = system.kinematics().point
        for rod, body in zip(system.constraints, rods.ids, strict=True):
            middle, turn = pybullet.getBasePositionAndOrientation(body, model.client)
            a, b = point(rod.a).p_W, point(rod.b).p_W
            assert_allclose(middle, 0.5 * (a + b), atol=SINGLE)
            along = np.reshape(pybullet.getMatrixFromQuaternion(turn), (3, 3))[:, 2]
            assert_allclose(rod.length * along, b - a, atol=SINGLE)
            (shape,) = pybullet.getVisualShapeData(body, physicsClientId=model.client)
            assert shape[3][0] == pytest.approx(rod.length, abs=SINGLE)
