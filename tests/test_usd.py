"""Robots in USD: places, units, masses, loops outside of articulations, drives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning, ModelError

pytest.importorskip("pxr")
pytestmark = pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")

ARTICULATION = 'prepend apiSchemas = ["PhysicsArticulationRootAPI"]'
UNITS = """#usda 1.0
(
    metersPerUnit = {metre}
    kilogramsPerUnit = {kilogram}
    upAxis = "Z"
)
def PhysicsScene "Scene" {{ }}
"""
# a parallelogram that hangs from the world: cranks of 0.5 m and 0.3 m apart, turned by `turn` [deg]
CRANK, WIDE = 0.5, 0.3


def body(name, x, z, turn, mass, moments, com, metre, kilogram):
    half = np.radians(turn) / 2.0
    x, z = float(x), float(z)
    quat = f"({float(np.cos(half))!r}, 0, {float(np.sin(half))!r}, 0)"
    scaled = ", ".join(repr(float(m / (kilogram * metre**2))) for m in moments)
    return f"""
    def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {{
        double3 xformOp:translate = ({x / metre!r}, 0, {z / metre!r})
        quatd xformOp:orient = {quat}
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]
        float physics:mass = {mass / kilogram!r}
        point3f physics:centerOfMass = ({com[0] / metre!r}, 0, {com[1] / metre!r})
        float3 physics:diagonalInertia = ({scaled})
    }}"""


def hinge(name, one, two, p0, p1, metre, more=""):
    drive = '(prepend apiSchemas = ["PhysicsDriveAPI:angular"])' if "drive:" in more else ""
    on = f"rel physics:body0 = </robot/{one}>" if one else ""
    x0, z0, x1, z1 = (float(p) / metre for p in (*p0, *p1))
    return f"""
    def PhysicsRevoluteJoint "{name}" {drive}
    {{
        uniform token physics:axis = "Y"
        {on}
        rel physics:body1 = </robot/{two}>
        point3f physics:localPos0 = ({x0!r}, 0, {z0!r})
        point3f physics:localPos1 = ({x1!r}, 0, {z1!r})
        {more}
    }}"""


def parallelogram(turn=0.0, metre=1.0, kilogram=1.0, more=""):
    """Two cranks about y, and a coupler that they carry; the fourth joint closes the loop."""
    end = CRANK * np.array([-np.sin(np.radians(turn)), -np.cos(np.radians(turn))])
    rod = 0.4, (0.01, 0.02, 0.015), (0.0, -0.2)
    units = metre, kilogram
    out = "uniform bool physics:excludeFromArticulation = 1"
    parts = [
        body("left", 0.0, 0.0, turn, *rod, *units),
        body("right", WIDE, 0.0, turn, *rod, *units),
        body("bar", *end, 0.0, 1.5, (0.03, 0.05, 0.04), (0.15, 0.0), *units),
        hinge("a", "", "left", (0.0, 0.0), (0.0, 0.0), metre, more),
        hinge("b", "", "right", (WIDE, 0.0), (0.0, 0.0), metre),
        hinge("c", "left", "bar", (0.0, -CRANK), (0.0, 0.0), metre),
        hinge("d", "right", "bar", (0.0, -CRANK), (WIDE, 0.0), metre, out),
    ]
    head = UNITS.format(metre=metre, kilogram=kilogram)
    return f'{head}def Xform "robot" ({ARTICULATION})\n{{{"".join(parts)}\n}}\n'


@pytest.fixture
def load(tmp_path, world):
    """Load text into the test's world."""

    def loaded(text, **options):
        file = tmp_path / "r.usda"
        file.write_text(text)
        return bb.load(file, world.client, **options)

    return loaded


@pytest.mark.parametrize(("metre", "kilogram"), [(1.0, 1.0), (0.01, 0.001)])
@pytest.mark.parametrize("turn", [0.0, 25.0])
def test_a_parallelogram_swings_as_its_closed_form(load, turn, metre, kilogram):
    """It starts where it is drawn; its bar does not turn, so it is a pendulum."""
    system = load(parallelogram(turn, metre, kilogram)).system
    assert [loop.name for loop in system.constraints] == ["d"]
    assert system.dof == 1
    rates = {name: joint.v.start for name, joint in system.mechanism.joints.items()}
    place = system.q[system.mechanism.joints["a"].q.start]
    # single precision of positions and sizes
    assert_allclose(place, np.radians(turn), atol=1e-6)
    inertia = 2.0 * (0.02 + 0.4 * 0.2**2) + 1.5 * CRANK**2
    torque = -9.81 * (2.0 * 0.4 * 0.2 + 1.5 * CRANK) * np.sin(np.radians(turn))
    assert_allclose(system.acceleration()[rates["a"]], torque / inertia, rtol=1e-6, atol=1e-6)
    if turn:
        system.dt = 1.0 / 240.0
        before = system.evaluate().energy
        system.run(1.0)
        assert system.status.gap_kept < 1e-12
        assert abs(system.evaluate().energy - before) < 1e-3


def test_limits_and_drives_are_in_degrees(load):
    more = """
        float physics:lowerLimit = -90
        float physics:upperLimit = 45
        float drive:angular:physics:stiffness = 2
        float drive:angular:physics:damping = 0.5
        float drive:angular:physics:targetPosition = 30
        float drive:angular:physics:targetVelocity = 8
    """
    told = "drives that do not act: a .*, rate 0.139626.*servos=True"
    with pytest.warns(BulletBridgeWarning, match=told):
        system = load(parallelogram(more=more)).system
    joint = system.mechanism.joints["a"]
    assert_allclose((joint.lower, joint.upper), np.radians([-90.0, 45.0]), rtol=1e-12)
    assert system.mechanism.axes["stiffness"][joint.v.start] == 0.0
    driven = load(parallelogram(more=more), servos=True)
    axis = driven.system.mechanism.axes[driven.system.mechanism.joints["a"].v.start]
    degree = np.pi / 180.0
    assert driven.spec.actuated == ("a",)
    assert_allclose(axis["stiffness"], 2.0 / degree, rtol=1e-12)
    assert_allclose(axis["damping"], 0.5 / degree, rtol=1e-12)
    # it pushes by 2 (30 - position) + 0.5 (8 - rate), in degrees: a spring that rests at 32
    assert_allclose(axis["rest"], np.radians(32.0), rtol=1e-12)
    bounded = f"{more}\nfloat drive:angular:physics:maxForce = 7"
    (drive,) = load(parallelogram(more=bounded), servos=True).spec.elements
    motor = bb.Motor(
        7.0, 0.0, np.radians(32.0), stiffness=2.0 / degree, damping=0.5 / degree, least=-7.0
    )
    assert (drive.name, drive.coefficients) == ("a_drive", {"a": 1.0})
    for key, value in vars(motor).items():
        assert vars(drive.motor)[key] == pytest.approx(value, rel=1e-12), key
    spinning = load(parallelogram(more=more.replace("stiffness = 2", "stiffness = 0")), servos=True)
    (push,) = spinning.spec.elements  # a damper about the rate
    assert_allclose((push.force, push.damping), (4.0, 0.5 / degree), rtol=1e-12)


SOLIDS = {
    "Cube": ("double size = 0.2", 0.2**3, [0.2**2 / 6.0] * 3),
    "Sphere": ("double radius = 0.1", 4.0 / 3.0 * np.pi * 1e-3, [0.4 * 0.01] * 3),
    "Cylinder": (
        'double radius = 0.1\ndouble height = 0.3\nuniform token axis = "X"',
        np.pi * 0.01 * 0.3,
        [0.005, *[(0.03 + 0.09) / 12.0] * 2],
    ),
}


@pytest.mark.parametrize("kind", SOLIDS)
def test_masses_come_from_shapes_where_nothing_says_them(load, kind):
    """By density, at the shape's place; two alike lie on each other where x is zero."""
    size, volume, gyration = SOLIDS[kind]
    text = (
        UNITS.format(metre=1.0, kilogram=1.0)
        + f"""
    def Xform "part" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {{
        float physics:density = 500
        def {kind} "solid" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {{
            {size}
            double3 xformOp:translate = (0.3, 0, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }}
    }}"""
    )
    system = load(text).system
    mass = 500.0 * volume
    # Bullet's principal moments are read to six digits
    expected = [*(mass * np.array(gyration)), mass, mass, mass]
    assert_allclose(np.diag(system.terms().M), expected, rtol=1e-6)
    assert_allclose(system.q[:3], [0.3, 0.0, 0.0], atol=1e-12)


def test_what_usd_says_is_told_and_not_printed(load, capfd):
    lost = parallelogram() + 'def "a" (references = @./paint.usda@</a>) {}\n'
    wrong = 'def "b" (references = </nothing/here>) {}\n'
    with pytest.warns(BulletBridgeWarning, match=r"USD says: .*</b>.*not there \(.*paint\.usda"):
        load(lost + wrong)
    assert "Warning: in" not in capfd.readouterr().err


@pytest.mark.parametrize("name", ["./paint.usda", "paint/all.usd"])
def test_layers_that_are_not_there_are_left_out(load, name):
    """Without ``./`` USD may look for them elsewhere, too, as for shapes of Kamino's robots."""
    lost = parallelogram() + f'def "a" (references = @{name}@</a>) {{}}\n'
    with pytest.warns(BulletBridgeWarning, match=r"not there \(.*paint.*LEFT OUT"):
        load(lost)


def test_what_cannot_be_read_says_why(load, tmp_path):
    with pytest.raises(ModelError, match="USD cannot read"):
        load("#usda 1.0\ndef Xform {")
    (tmp_path / "in").mkdir()
    (tmp_path / "part.usda").write_text(parallelogram())
    outer = tmp_path / "in" / "outer.usda"
    outer.write_text("#usda 1.0\n(subLayers = [@../part.usda@])\n")
    with pytest.raises(ModelError, match=r"outside .*inside=FOLDER"):
        bb.load(outer, "new")
    bb.load(outer, "new", inside=tmp_path).close()
    outer.write_text("#usda 1.0\n(subLayers = [@./part.usda@])\n")
    with pytest.raises(ModelError, match=r"no body of its own.*not there \(.*in/part\.usda\); put"):
        bb.load(outer, "new")
    outer.write_text("#usda 1.0\n(subLayers = [@../part.usda@, @./paint.usda@])\n")
    with pytest.warns(BulletBridgeWarning, match=r"not there \(.*paint\.usda\): what they hold"):
        bb.load(outer, "new", inside=tmp_path).close()
    lost = parallelogram().replace("physics:body1 = </robot/left>", "physics:body1 = </robot/no>")
    with pytest.raises(ModelError, match="joint 'a' names the body /robot/no"):
        load(lost)


def cranks(more, metre=1.0, kilogram=1.0):
    """Two levers that hang from the world, the second joint with more in it."""
    rod = 0.4, (0.01, 0.02, 0.015), (0.0, -0.2)
    parts = [
        body("left", 0.0, 0.0, 0.0, *rod, metre, kilogram),
        body("right", WIDE, 0.0, 0.0, *rod, metre, kilogram),
        hinge("a", "", "left", (0.0, 0.0), (0.0, 0.0), metre),
        hinge("b", "", "right", (WIDE, 0.0), (0.0, 0.0), metre, more),
    ]
    head = UNITS.format(metre=metre, kilogram=kilogram)
    return f'{head}def Xform "robot" ({ARTICULATION})\n{{{"".join(parts)}\n}}\n'


MIMICS = {
    "PhysX": (
        {
            "physxMimicJoint:rotY:gearing": -0.5,
            "physxMimicJoint:rotY:offset": 30.0,
            "physxMimicJoint:rotY:naturalFrequency": 25.0,
        },
        "physxMimicJoint:rotY:referenceJoint",
        (-np.radians(30.0), 0.5, ()),
    ),
    "Newton": (
        {"newton:mimicCoef0": 10.0, "newton:mimicCoef1": -2.0},
        "newton:mimicJoint",
        (np.radians(10.0), -2.0, ()),
    ),
    "Newton's, with MuJoCo's powers": (
        {"newton:mimicCoef1": 3.0, "mjc:coef1": 7.0, "mjc:coef3": 0.4},
        "newton:mimicJoint",
        (0.0, 3.0, (0.0, 0.4, 0.0)),
    ),
    "MuJoCo": (
        {"mjc:coef0": 0.1, "mjc:coef1": 1.5, "mjc:coef2": 0.3},
        "mjc:target",
        (0.1, 1.5, (0.3, 0.0, 0.0)),
    ),
}


@pytest.mark.parametrize(("numbers", "relation", "said"), MIMICS.values(), ids=MIMICS)
def test_joints_follow_others_in_three_dialects(load, numbers, relation, said):
    given = "".join(f"\n        float {key} = {value!r}" for key, value in numbers.items())
    more = f"{given}\n        rel {relation} = </robot/a>"
    spec = load(cranks(more)).spec
    (coupling,) = spec.constraints
    told = any("naturalFrequency) do so exactly here: b" in note for note in spec.notes)
    assert told == any("naturalFrequency" in key for key in numbers)
    offset, first, higher = said
    assert isinstance(coupling, bb.Coupling)
    assert coupling.offset == pytest.approx(offset, rel=1e-6)
    assert coupling.coefficients == {"b": 1.0, "a": pytest.approx(-first, rel=1e-6)}
    powers = coupling.higher.get("a", ())
    assert powers == tuple(pytest.approx(-x, rel=1e-6) for x in higher)
    off = "\n        bool newton:mimicEnabled = 0"
    if relation.startswith("newton"):
        assert not load(cranks(more + off)).spec.constraints
    lost = load(cranks(more.replace("/robot/a>", "/robot/c>"))).spec
    said = "joint 'b' follows /robot/c, which is no joint: it moves freely"
    assert not lost.constraints and any(said in note for note in lost.notes)


def gear(kind, relations, ratio):
    ends = "".join(f"\n        rel physics:{key} = </robot/{name}>" for key, name in relations)
    return f"""
    def {kind} "gear"
    {{{ends}
        rel physics:body0 = </robot/left>
        rel physics:body1 = </robot/right>
        point3f physics:localPos1 = (0, 0, 0.1)
        float {ratio}
    }}
}}"""


def test_actuators_of_newton_are_told(load):
    text = cranks("").rstrip().removesuffix("}")
    actuator = 'def NewtonActuator "servo" {\n rel newton:targets = </robot/a>\n}\n}'
    assert "actuators of Newton do not act: servo" in "; ".join(load(text + actuator).spec.notes)


@pytest.mark.parametrize("metre", [1.0, 0.01])
def test_gears_and_racks_of_physx_couple_two_joints(load, metre):
    text = cranks("", metre).rstrip().removesuffix("}")
    two = gear("PhysxPhysicsGearJoint", (("hinge0", "a"), ("hinge1", "b")), "physics:gearRatio = 3")
    (coupling,) = load(text + two).spec.constraints
    assert coupling == bb.Coupling("gear", {"a": 3.0, "b": 1.0})
    sliding = text.replace('RevoluteJoint "b"', 'PrismaticJoint "b"').replace(
        'token physics:axis = "Y"', 'token physics:axis = "X"'
    )
    sliding = sliding.replace('"X"', '"Y"', 1)
    ends = ("hinge", "a"), ("prismatic", "b")
    for height, side in ((0.1, 1.0), (-0.1, -1.0)):
        rack = gear("PhysxPhysicsRackAndPinionJoint", ends, "physics:ratio = 90")
        rack = rack.replace("(0, 0, 0.1)", f"(0, 0, {height / metre!r})")
        (coupling,) = load(sliding + rack).spec.constraints
        way = -side * np.radians(90.0) / metre
        assert coupling.coefficients == {"a": 1.0, "b": pytest.approx(way, rel=1e-6)}
    lost = load(text + two.replace("/b>", "/none>"))
    assert any("PhysX's are left out: gear gear" in note for note in lost.spec.notes)


MUJOCOS = """
    def MjcTendon "cord"
    {{
        prepend rel mjc:path = [</robot/b>, </robot/a>]
        uniform double[] mjc:path:coef = [0.5, 2]
        uniform int[] mjc:path:indices = [0, 1]
        uniform token mjc:type = "fixed"
        {own}
    }}
    def MjcTendon "line"
    {{
        prepend rel mjc:path = [</robot/left>]
    }}
    def MjcActuator "pull"
    {{
        uniform double[] mjc:biasPrm = [5, -100, -10]
        uniform token mjc:biasType = "affine"
        uniform double mjc:ctrlRange:max = 255
        uniform double[] mjc:gear = [2, 0, 0]
        {bounds}
        rel mjc:target = </robot/cord>
    }}
}}"""
OWN = {"mjc:stiffness": 3.0, "mjc:damping": 0.2, "mjc:frictionloss": 0.1, "mjc:range:max": 4.0}


def test_tendons_and_actuators_of_mujoco_act_along_sums_of_joints(load):
    own = "".join(f"\n        uniform double {key} = {value!r}" for key, value in OWN.items())
    own += "\n        uniform double[] mjc:springlength = [1, 2]"
    factors, pulled = {"a": 2.0, "b": 0.5}, {"a": 4.0, "b": 1.0}
    bounds = "uniform double mjc:forceRange:max = 5\n        uniform double mjc:forceRange:min = -6"
    text = cranks("").rstrip().removesuffix("}")
    loaded = load(text + MUJOCOS.format(own=own, bounds=bounds), servos=True)
    cord = bb.Tendon("cord", factors, 3.0, 0.2, 1.5, 0.5, limits=(0.0, 4.0), friction=0.1)
    motor = bb.Motor(5.0, position=0.05, stiffness=100.0, damping=10.0, least=-6.0)
    assert list(loaded.spec.elements) == [cord, bb.Tendon("pull", pulled, motor=motor)]
    assert any(
        "those that are along lines" in note and "line" in note for note in loaded.spec.notes
    )
    assert set(loaded.spec.actuated) == {"a", "b"}
    own = "uniform double mjc:stiffness = 3\n        uniform double mjc:range:max = 4"
    turned = cranks("\n        double mjc:ref = 1").rstrip().removesuffix("}")
    turned = turned.replace("{ }", '\n{\n    token mjc:compiler:angle = "radian"\n}', 1)
    free = load(turned + MUJOCOS.format(own=own, bounds=""), servos=True)
    cord = bb.Tendon("cord", factors, 3.0, limits=(-0.5, 3.5))
    assert list(free.spec.elements) == [cord, bb.Tendon("pull", pulled, 100.0, 10.0, -0.95)]
    steady = text + MUJOCOS.format(own="", bounds=bounds).replace("5, -100, -10", "9, 0, 0")
    (pull,) = load(steady, servos=True).spec.elements
    assert pull == bb.Tendon("pull", pulled, force=5.0)
    idle = load(text + MUJOCOS.format(own="", bounds=""))
    assert not idle.spec.elements
    said = "pull (force 5 -100 length -10 rate); servos=True"
    assert any(said in note for note in idle.spec.notes)


@pytest.mark.parametrize(("metre", "kilogram"), [(1.0, 1.0), (0.01, 0.001)])
def test_joints_damp_rub_and_spring_back_by_what_they_say(load, metre, kilogram):
    """In the units of the stage: by degrees but for MuJoCo's, whose springs rest at degrees."""
    torque = kilogram * metre**2
    newton = {"newton:damping": 2.0, "newton:friction": 0.1}
    mujoco = {"mjc:damping": 0.5, "mjc:frictionloss": 0.2, "mjc:stiffness": 3.0}
    mujoco["mjc:springref"] = 20.0
    physx = {"physxJointAxis:rotY:viscousFrictionCoefficient": 0.03}
    physx["physxJointAxis:angular:dynamicFrictionEffort"] = 0.4
    for numbers, damping, friction, stiffness in (
        (newton, 2.0 / np.radians(1.0), 0.1, 0.0),
        (mujoco, 0.5, 0.2, 3.0),
        (newton | mujoco | physx, 0.03 / np.radians(1.0), 0.4, 3.0),
    ):
        more = "".join(f"\n        float {key} = {value!r}" for key, value in numbers.items())
        loaded = load(cranks(more, metre, kilogram))
        mechanism = loaded.system.mechanism
        joint = mechanism.joint("b")
        axis = mechanism.axes[joint.v.start]
        assert axis["damping"] == pytest.approx(damping * torque, rel=1e-6)
        assert joint.friction == pytest.approx(friction * torque, rel=1e-6)
        assert axis["stiffness"] == pytest.approx(stiffness * torque, rel=1e-6)
        assert axis["rest"] == pytest.approx(np.radians(20.0) * (stiffness > 0.0), rel=1e-6)
    numbers = {"mjc:stiffness": 3.0, "mjc:springref": 2.5, "mjc:ref": 1.0}
    more = "".join(f"\n        float {key} = {value!r}" for key, value in numbers.items())
    radian = cranks(more).replace("{ }", '\n{\n    token mjc:compiler:angle = "radian"\n}', 1)
    mechanism = load(radian).system.mechanism
    assert mechanism.axes[mechanism.joint("b").v.start]["rest"] == pytest.approx(1.5, rel=1e-6)
    with pytest.raises(ModelError, match="joint 'b' has negative damping"):
        load(cranks("\n        float newton:damping = -1"))


def test_what_physx_says_of_an_axis_comes_before_what_it_says_of_the_joint(load):
    """And friction and drag of kinds that are not here are told."""
    plain = {"physxJoint:armature": 0.5, "physxJoint:jointFriction": 0.05}
    of_axis = plain | {"physxJointAxis:angular:armature": 0.07}
    found: list[float] = []
    for numbers in ({}, plain, of_axis, {"newton:armature": 0.02}):
        more = "".join(f"\n        float {key} = {value!r}" for key, value in numbers.items())
        loaded = load(cranks(more))
        at = loaded.system.mechanism.joint("b").v.start
        found.append(float(loaded.system.terms().M[at, at]))
        told = any("(physxJoint:jointFriction) is left out: b" in x for x in loaded.spec.notes)
        assert told == ("physxJoint:jointFriction" in numbers)
    assert_allclose(np.array(found[1:]) - found[0], (0.5, 0.07, 0.02), rtol=1e-6)
    soft = load(cranks("\n        float physxLimit:angular:stiffness = 5")).spec.notes
    assert any("limits that give way as springs (physxLimit) are stops" in note for note in soft)
    drag = "float physxRigidBody:angularDamping = 0.05\n        float physics:mass"
    notes = load(cranks("").replace("float physics:mass", drag)).spec.notes
    assert any("drag of bodies (physxRigidBody:...Damping) is left out" in note for note in notes)


@pytest.mark.parametrize("metre", [1.0, 0.01])
def test_distance_joints_are_rods_ropes_or_points(load, metre):
    """From the tip of a crank to the middle of the bar, which is half its length away."""

    def joined(low, high):
        more = "".join(
            f"\n        float physics:{which}Distance = {x / metre if x > 0 else x!r}"
            for which, x in (("min", low), ("max", high))
        )
        start, _, hinged = parallelogram(20.0, metre).rpartition("    def PhysicsRevoluteJoint")
        hinged = hinged.replace(repr(WIDE / metre), repr(WIDE / 2.0 / metre))
        end = hinged.rindex("}\n}")
        return f"{start}    def PhysicsDistanceJoint{hinged[:end]}{more}\n    {hinged[end:]}"

    rod = load(joined(0.15, 0.15))
    (held,) = rod.spec.constraints
    assert isinstance(held, bb.Distance) and held.length == pytest.approx(0.15, rel=1e-6)
    assert rod.system.evaluate().gaps[0].metres < 1e-12
    rope = load(joined(-1.0, 0.2))
    (tied,) = rope.spec.elements
    assert isinstance(tied, bb.Spring) and tied.limits == (0.0, pytest.approx(0.2, rel=1e-6))
    assert rope.system.dof == rod.system.dof + 1
    assert not load(joined(-1.0, -1.0)).spec.elements
    (point,) = load(joined(-1.0, 0.0)).spec.constraints
    assert isinstance(point, bb.LoopJoint) and point.model is bb.JointModel.BALL
    with pytest.raises(ModelError, match="'d' has the distances 0.2 and 0.1 m"):
        load(joined(0.2, 0.1))


GENERIC = """
    def PhysicsJoint "g" (prepend apiSchemas = [{locked}])
    {{
        rel physics:body0 = </robot/left>
        rel physics:body1 = </robot/bar>
        point3f physics:localPos0 = (0, 0, -0.5)
        {limits}
        {more}
    }}"""


def generic(free, more=""):
    """The left crank with a bar on a joint that leaves some freedoms."""
    tags = [f"{kind}{axis}" for kind in ("trans", "rot") for axis in "XYZ"]
    locked = [tag for tag in tags if tag not in free]
    named = ", ".join(f'"PhysicsLimitAPI:{tag}"' for tag in locked)
    limits = "\n".join(
        f"float limit:{tag}:physics:low = 1\nfloat limit:{tag}:physics:high = -1" for tag in locked
    )
    text = parallelogram()
    start = text.index('def PhysicsRevoluteJoint "c"')
    end = text.index('def PhysicsRevoluteJoint "d"')
    made = GENERIC.format(locked=named, limits=limits, more=more)
    return f"{text[:start]}{made}\n    {text[end:]}".replace("(-0.0, ", "(0.0, ")


@pytest.mark.parametrize(
    ("free", "kinds"),
    [
        (["rotY"], ["revolute"]),
        (["transX", "rotX"], ["prismatic", "revolute"]),
        (["transX", "transZ", "rotY"], ["prismatic", "prismatic", "revolute"]),
        (["rotX", "rotY", "rotZ"], ["spherical"]),
    ],
)
def test_generic_joints_are_sliders_and_hinges_one_after_the_other(load, free, kinds):
    text = generic(free).replace("PhysicsRevoluteJoint", "PhysicsFixedJoint")
    loaded = load(text.replace("physics:excludeFromArticulation = 1", "physics:jointEnabled = 0"))
    found = [joint.kind for joint in loaded.system.mechanism.joints.values()]
    assert found == kinds


@pytest.mark.parametrize("order", ["XZY", "YXZ"])
def test_joints_between_the_same_bodies_act_one_after_the_other(load, order, tmp_path):
    """As MuJoCo's converter writes those of one body; as loops they would lock each other."""
    mujoco = pytest.importorskip("mujoco")
    axes = {"X": "1 0 0", "Y": "0 1 0", "Z": "0 0 1"}
    rod = 0.4, (0.01, 0.02, 0.015), (0.0, -0.2), 1.0, 1.0
    hinges = "".join(
        hinge(f"on_{axis}", "", "rod", (0.1, 0.2), (0.05, 0.1), 1.0).replace('"Y"', f'"{axis}"')
        for axis in order
    )
    text = UNITS.format(metre=1.0, kilogram=1.0) + 'def Xform "robot"\n{%s\n}\n'
    loaded = load(text % (body("rod", 0.05, 0.1, 0.0, *rod) + hinges))
    system, names = loaded.system, [f"on_{axis}" for axis in order]
    assert list(system.mechanism.joints) == names and not loaded.spec.constraints
    assert "joints between the same two bodies act one after the other" in "".join(
        loaded.spec.notes
    )
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body pos="0.05 0 0.1">'
        + "".join(f'<joint pos="0.05 0 0.1" axis="{axes[axis]}"/>' for axis in order)
        + '<inertial pos="0 0 -0.2" mass="0.4" diaginertia="0.01 0.02 0.015"/></body></worldbody>'
        "</mujoco>"
    )
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (0.4, -0.7, 0.9), (1.0, 2.0, -1.5)
    mujoco.mj_forward(model, data)
    system.set_state(data.qpos, data.qvel)
    v, dt = np.array(system.v), 1e-6
    system.dt = dt
    system.step(write=False)
    found = (np.array(system.v) - v) / dt  # the first order of a step, and single precision
    assert_allclose(found, data.qacc, atol=1e-3 * np.abs(data.qacc).max())
    door = hinge("low", "", "rod", (0.1, 0.2), (0.05, 0.1), 1.0) + hinge(
        "high", "", "rod", (0.1, 0.2), (0.05, 0.1), 1.0
    )
    kept = load(text % (body("rod", 0.05, 0.1, 0.0, *rod) + door))
    assert len(kept.spec.constraints) == 1 and kept.system.dof == 1


def test_bodies_whose_gravity_is_off_have_no_weight(load):
    """A crank that nothing pulls stays where it is, wherever that is."""
    off = "bool physxRigidBody:disableGravity = 1\n        float physics:mass"
    rod = 0.4, (0.01, 0.02, 0.015), (0.0, -0.2), 1.0, 1.0
    text = UNITS.format(metre=1.0, kilogram=1.0) + 'def Xform "robot"\n{%s\n}\n'
    parts = body("rod", 0.0, 0.0, 0.0, *rod) + hinge("pin", "", "rod", (0.0, 0.0), (0.0, 0.0), 1.0)
    loaded = load(text % parts.replace("float physics:mass", off))
    assert any("gravity does not act on rod" in note for note in loaded.spec.notes)
    loaded.system.set_state([0.7], [0.0])
    loaded.system.run(0.3)
    assert loaded.system.q == pytest.approx([0.7], abs=1e-12)


def test_a_share_of_a_bodys_weight_is_carried_as_mujocos_attribute_says(load):
    """Three quarters of it: a crank swings as in a quarter of the gravity."""
    rod = 0.4, (0.01, 0.02, 0.015), (0.0, -0.2), 1.0, 1.0
    text = UNITS.format(metre=1.0, kilogram=1.0) + 'def Xform "robot"\n{%s\n}\n'
    parts = body("rod", 0.0, 0.0, 0.0, *rod) + hinge("pin", "", "rod", (0.0, 0.0), (0.0, 0.0), 1.0)
    share = "double mjc:gravcomp = 0.75\n        float physics:mass"
    system = load(text % parts.replace("float physics:mass", share)).system
    system.set_state([0.5], [0.0])
    about_pin = 0.02 + 0.4 * 0.2**2
    expected = -0.25 * 0.4 * 9.81 * 0.2 * np.sin(0.5) / about_pin
    assert system.acceleration()[0] == pytest.approx(expected, rel=1e-5)  # moments: six digits


@pytest.mark.parametrize("metre", [1.0, 0.01])
def test_newtons_tensor_comes_before_principal_moments(load, metre):
    """About the centre of mass, in the body's axes; shells count as solids, which is told."""
    J = np.array([[0.03, 0.004, -0.002], [0.004, 0.05, 0.003], [-0.002, 0.003, 0.04]])
    said = ", ".join(repr(float(x) / metre**2) for x in (*np.diag(J), J[0, 1], J[0, 2], J[1, 2]))
    part = body("part", 0.0, 0.0, 0.0, 1.5, (0.1, 0.1, 0.1), (0.0, 0.0), metre, 1.0)
    more = f"""double[] newton:inertia = [{said}]
        def Cube "hull" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {{
            uniform token newton:massModel = "shell"
        }}
        float physics:mass"""
    head = UNITS.format(metre=metre, kilogram=1.0) + 'def Xform "robot"\n{%s\n}\n'
    loaded = load(head % part.replace("float physics:mass", more))
    M = loaded.system.terms().M
    assert_allclose(M[:3, :3], J, rtol=0.0, atol=1e-14)
    assert_allclose(M[3:, 3:], 1.5 * np.eye(3), rtol=1e-7)
    assert any("shells" in note and "part" in note for note in loaded.spec.notes)
    two = "double[] newton:inertia = [1, 2]\n        float physics:mass"
    with pytest.raises(ModelError, match=r"newton:inertia of 'part' is \[1.0, 2.0\]; give the six"):
        load(head % part.replace("float physics:mass", two))
