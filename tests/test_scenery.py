"""What stands in the world of MJCF and SDF files: robots meet it, and it is written again."""

import warnings
from pathlib import Path

import numpy as np
import pybullet
import pytest

import bulletbridge as bb
from bulletbridge.models.formats.convert import convert
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.load import LoadedModel

pytest.importorskip("mujoco")

G, MASS, HALF = 9.81, 2.0, 0.1
BLOCK = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <geom {plane} friction="{mu}"/>
    <body name="table" pos="3 0 0"><geom type="box" size=".5 .5 .4" friction="{mu}"/></body>
    <body name="block" {block}>
      <freejoint/>
      <geom type="box" size=".1 .1 .1" mass="2" friction="{mu}"/>
    </body>
  </worldbody>
</mujoco>
"""
FLOOR = 'name="floor" type="plane" size="0 0 1"'


def written(folder: Path, **how: str) -> Path:
    """A file with a block above a plane and a table."""
    path = folder / "block.xml"
    given = {"plane": FLOOR, "mu": "0.3", "block": 'pos="0 0 .1"'} | how
    path.write_text(BLOCK.format(**given))
    return path


def loaded(path: Path | str) -> LoadedModel:
    """A model with contacts; what is said of it is another test's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bb.load(path, "new", contacts=True, dt=1 / 240)


@pytest.mark.parametrize("x, height", [(0.0, 0.0), (3.0, 0.4)], ids=["floor", "table"])
def test_a_block_rests_on_what_stands_in_its_file(tmp_path: Path, x: float, height: float) -> None:
    with loaded(written(tmp_path, block=f'pos="{x} 0 {height + HALF}"')) as model:
        system = model.system
        for _ in range(240):
            system.step()
        # all of its weight is carried, and the centre is half an edge above; contacts are exact
        # but for Bullet's margin, a thousandth of a metre at most
        push = sum(np.array(each.force) for each in system.contacts())
        assert np.allclose(np.abs(push), [0.0, 0.0, MASS * G], atol=1e-6)
        assert system.q[2] == pytest.approx(height + HALF, abs=1e-3)
        assert list(model.ids) == ["robot"]
        assert sorted(model.scenery) == ["floor", "ground"]


@pytest.mark.parametrize("mu, slides", [(0.25, True), (0.4, False)])
def test_friction_is_that_of_the_file(tmp_path: Path, mu: float, slides: bool) -> None:
    """On a plane that leans by an angle a block slides at g (sin - mu cos), or sticks."""
    angle = np.arctan(0.3)
    turn = f'euler="0 {np.degrees(angle)} 0"'
    z, x = HALF * np.cos(angle), HALF * np.sin(angle)
    path = written(tmp_path, plane=f"{FLOOR} {turn}", mu=str(mu), block=f'pos="{x} 0 {z}" {turn}')
    with loaded(path) as model:
        system, dt, steps = model.system, 1 / 240, 120
        for _ in range(steps):
            system.step()
        speed = float(np.linalg.norm(system.v[3:]))
        expected = G * (np.sin(angle) - mu * np.cos(angle)) * steps * dt if slides else 0.0
        # steps of first order are exact for a constant acceleration
        assert speed == pytest.approx(expected, abs=1e-6)


LEGS = """
<mujoco model="stander">
  <option gravity="0 0 -9.81"/>
  <default><geom friction="1"/><joint armature="0.01"/><position kp="400" kv="20"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="trunk" pos="0 0 .92">
      <freejoint/>
      <geom type="box" size=".1 .2 .1" mass="6"/>
      <body name="left" pos="0 .15 -.1">
        <joint name="left_hip" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 -.1 0 0 -.7" size=".05" mass="2"/>
        <body name="left_foot" pos="0 0 -.78">
          <joint name="left_ankle" axis="0 1 0"/><geom type="box" size=".15 .06 .04" mass="1"/>
        </body>
      </body>
      <body name="right" pos="0 -.15 -.1">
        <joint name="right_hip" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 -.1 0 0 -.7" size=".05" mass="2"/>
        <body name="right_foot" pos="0 0 -.78">
          <joint name="right_ankle" axis="0 1 0"/><geom type="box" size=".15 .06 .04" mass="1"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position joint="left_hip"/><position joint="right_hip"/>
    <position joint="left_ankle"/><position joint="right_ankle"/>
  </actuator>
</mujoco>
"""


def test_a_robot_stands_on_its_own_floor(tmp_path: Path) -> None:
    path = tmp_path / "stander.xml"
    path.write_text(LEGS)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = bb.load(path, "new", contacts=True, servos=True, dt=1 / 240)
    assert any(
        "is scenery, which robots meet with contacts=True: 'floor'" in str(x.message) for x in said
    )
    with model:
        system = model.system
        assert set(system.mechanism.joints) > {"base", "left_hip"}  # no robot's name before
        for _ in range(480):
            system.step()
        push = sum(np.array(each.force) for each in system.contacts())
        assert np.abs(push)[2] == pytest.approx(12.0 * G, rel=1e-3)  # once it is at rest
        assert system.q[2] == pytest.approx(0.92, abs=2e-3)


@pytest.mark.parametrize("to", ["loops", "mjcf", "sdf"])
def test_scenery_goes_through_conversion(tmp_path: Path, to: str) -> None:
    """What is written carries the block in the same way."""
    tilted = 'name="floor" type="plane" size="0 0 1" pos="0 0 -.05" euler="3 0 0"'
    path = written(tmp_path, plane=tilted, block='pos="3 0 .5"', mu="0.7")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = convert(read_model(path), tmp_path / "again", to).files
    with loaded(path) as first, loaded(files[0]) as second:
        assert sorted(second.scenery) == sorted(first.scenery)
        assert list(second.system.mechanism.joints) == ["base"]
        for model in (first, second):
            for _ in range(60):
                model.system.step()
        assert np.allclose(first.system.q, second.system.q, atol=1e-9)
        for name, body in first.scenery.items():
            one = pybullet.getDynamicsInfo(body, -1, first.client)[1]
            two = pybullet.getDynamicsInfo(second.scenery[name], -1, second.client)[1]
            assert two == pytest.approx(one, rel=1e-6)  # Bullet's own text has six digits


def test_a_world_of_somebody_else_is_left_as_it_was(tmp_path: Path) -> None:
    client = pybullet.connect(pybullet.DIRECT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = bb.load(written(tmp_path), client, contacts=True)
        assert pybullet.getNumBodies(client) == 3
        model.close()
        assert pybullet.getNumBodies(client) == 0
    finally:
        pybullet.disconnect(client)


def test_geoms_that_mujoco_lets_pass_are_only_seen(tmp_path: Path) -> None:
    """A floor that meets nothing carries nothing, and the block falls freely."""
    path = written(tmp_path, plane=f'{FLOOR} contype="0" conaffinity="0"')
    with loaded(path) as model:
        for _ in range(60):
            model.system.step()
        assert model.system.v[5] == pytest.approx(-G * 60 / 240, rel=1e-12)


def test_a_model_without_a_name_is_called_like_its_file(tmp_path: Path) -> None:
    arm = '<body><joint name="j"/><geom size=".1"/></body>'
    free = '<body name="ball" pos="1 0 0"><freejoint/><geom size=".1"/></body>'
    path = tmp_path / "arm.xml"
    path.write_text(f"<mujoco><worldbody>{arm}{free}</worldbody></mujoco>")
    assert [body.name for body in read_model(path).bodies] == ["arm", "ball"]


def test_an_ellipsoid_rests_on_its_lowest_point(tmp_path: Path) -> None:
    egg = '<body pos="0 0 .21"><freejoint/><geom type="ellipsoid" size=".3 .3 .2"/></body>'
    path = tmp_path / "egg.xml"
    path.write_text(f"<mujoco><worldbody><geom {FLOOR}/>{egg}</worldbody></mujoco>")
    with loaded(path) as model:
        for _ in range(480):
            model.system.step()
        # the hull is within 1 % of the ellipsoid
        assert model.system.q[2] == pytest.approx(0.2, abs=0.2 * 0.01 + 1e-3)


WORLD_SDF = """
<sdf version="1.9"><world name="w"><gravity>0 0 -9.81</gravity>
  {ground}
  <model name="block"><pose>0 0 0.1 0 0 0</pose><link name="block">
    <inertial><mass>2</mass>
      <inertia><ixx>.0133</ixx><iyy>.0133</iyy><izz>.0133</izz></inertia></inertial>
    <collision name="c"><geometry><box><size>.2 .2 .2</size></box></geometry></collision>
  </link></model>
</world></sdf>
"""
STATIC = """<model name="ground"><static>true</static><link name="link"><collision name="c">
  <geometry><plane><normal>0 0 1</normal></plane></geometry></collision></link></model>"""
GAZEBOS = "<include><uri>model://ground_plane</uri></include>"


@pytest.mark.parametrize("ground", [STATIC, GAZEBOS], ids=["static", "gazebo"])
def test_static_models_of_sdf_are_scenery(tmp_path: Path, ground: str) -> None:
    path = tmp_path / "world.sdf"
    path.write_text(WORLD_SDF.format(ground=ground))
    with loaded(path) as model:
        for _ in range(120):
            model.system.step()
        push = sum(np.array(each.force) for each in model.system.contacts())
        assert np.allclose(np.abs(push), [0.0, 0.0, MASS * G], atol=1e-6)
        assert len(model.ids) == 1
        assert len(model.scenery) == 1
