"""Links joined anyhow, as SDF has them: a spanning tree of their joints, and loops of the rest."""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal, InvalidOperation

import numpy as np

from bulletbridge.constraints.force_elements import ForceElement, Tendon
from bulletbridge.constraints.joints import Coupling, Frame, JointModel, LoopAxis, LoopJoint, Triple
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.robot import (
    UNLIMITED,
    Joining,
    Joint,
    Link,
    Pose,
    Robot,
    Scene,
    Shape,
    free_name,
    listed,
    pose_of,
    told,
    with_ends,
)
from bulletbridge.models.formats.sdf_frames import SCOPE
from bulletbridge.models.model_spec import EARTH, FileConstraint, Z
from bulletbridge.numerics.records import Array

TREE_RANK = {
    "fixed": 0,
    "revolute": 2,
    "prismatic": 2,
    "universal": 4,
    "several": 4,
    "ball": 5,
    "screw": 6,
}
"""Which joints are rather in the tree than loops: those that cost loops most come first."""
NEEDED, DRIVEN = 1, 1
"""Rank of joints that couplings name, and how much further up those with limits or springs go."""
LOOP_MODELS = {
    "fixed": JointModel.WELD,
    "revolute": JointModel.REVOLUTE,
    "prismatic": JointModel.PRISMATIC,
    "universal": JointModel.UNIVERSAL,
    "several": JointModel.CYLINDRICAL,
    "ball": JointModel.BALL,
    "screw": JointModel.SCREW,
}
LEAST_DIGITS = 7
"""Digits after the point that places count as having, however rounded a file is."""
MOST_DIGITS = 9
"""Digits after the point beyond which a file counts as not rounded."""
MEETING = 1e-6
"""How far the two places of a joint may lie apart [m, rad] and count as one."""
PERPENDICULAR = 1e-9
"""Cosine up to which the axes of a universal joint are at right angles."""


@dataclass(frozen=True)
class Along:
    """What acts along one axis of a joint, and that axis (3,) in the joint's frame."""

    axis: Array
    limits: tuple[float, float] = UNLIMITED
    effort: float = np.inf
    velocity: float = np.inf
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    slides: bool = False  # asked of one among several

    @property
    def acts(self) -> bool:
        """Whether there is anything but the axis."""
        bounded = bool(np.isfinite(self.limits).any()) or np.isfinite(self.effort)
        return bounded or bool(self.damping or self.friction or self.stiffness)

    @property
    def reversed(self) -> "Along":
        """The same motion seen from the other link."""
        return replace(self, axis=-self.axis)


OF_AXIS = tuple(field.name for field in fields(Along) if field.name != "slides")
"""What it and joints of a tree have alike."""


@dataclass(frozen=True)
class Connection:
    """A joint between two links, wherever these are in a tree.

    Attributes:
        name: Unique.
        kind: One of ``TREE_RANK``; ``several`` is sliders and hinges one after the other.
        parent, child: Links; ``world`` is one.
        place: In the world, where the parent has it; there all positions are zero, unless the
            child has it elsewhere.
        along: Axes of it: one, two of a universal joint, or as many as it has.
        pitch: Of a screw [m a turn].
        armature: Reflected inertia of a rotor on its first axis [kg m² or kg].
        is_loop: Whether it is to be a loop in any case.
        place_b: In the world, where the child has it; None where the parent has.
    """

    name: str
    kind: str
    parent: str
    child: str
    place: Pose
    along: tuple[Along, ...] = ()
    pitch: float = 0.0
    armature: float = 0.0
    is_loop: bool = False
    place_b: Pose | None = None

    @property
    def places(self) -> tuple[Pose, Pose]:
        """Frame of the joint on the parent and on the child, in the world."""
        return self.place, self.place if self.place_b is None else self.place_b


@dataclass
class JointGraph:
    """Links with their places in the world, and what joins them.

    All positions are zero there, but those of joints whose frame the child has elsewhere.

    Attributes:
        loops, elements: What joins frames of links as they are in ``places``, and joints by name,
            besides the connections.
        roots: Links that trees begin with rather than with the heaviest one, if they are not
            joined to the world.
        scenery: What stands still and is joined to nothing: names, links and their places.
        gravity: [m/s²]
        carried: Shares of their weight that links do not have, one where it does not act on them.
        digits: After the decimal point that frames of loops are worth; None for all there are.
            Both frames of a loop come from one place, so that it closes to round-off whatever the
            file has rounded, as if over-constrained mechanisms were meant to jam.
    """

    name: str
    links: dict[str, Link] = field(default_factory=lambda: {})
    places: dict[str, Pose] = field(default_factory=lambda: {WORLD: Pose()})
    connections: list[Connection] = field(default_factory=lambda: [])
    loops: list[FileConstraint] = field(default_factory=lambda: [])
    elements: list[ForceElement] = field(default_factory=lambda: [])
    notes: list[str] = field(default_factory=lambda: [])
    roots: list[str] = field(default_factory=lambda: [])
    scenery: list[tuple[str, Link, Pose]] = field(default_factory=lambda: [])
    digits: int | None = None
    gravity: Triple = EARTH
    carried: dict[str, float] = field(default_factory=lambda: {})


def scene_of(graph: JointGraph) -> Scene:
    """Robots and loops of a graph.

    Raises:
        ModelError: A coupling needs a joint that cannot be in the tree.
    """
    scene = Scene(graph.name, gravity=graph.gravity, notes=list(graph.notes))
    sums = [each for each in (*graph.loops, *graph.elements) if isinstance(each, Coupling | Tendon)]
    needed = {joint for each in sums for joint in each.coefficients}
    used, where = _grow_trees(scene, graph, needed)
    joints = _call_by_models(scene, where)
    closing = [edge for edge in graph.connections if edge.name not in used]
    loops = [edge for edge in closing if not _is_void(where, edge)]
    void = [edge.name for edge in closing if edge not in loops]
    lost = list[str]()
    scene.loops += [_loop(scene, graph, where, edge, lost) for edge in loops]
    said = {
        "joints between parts of one rigid body are left out: {}": void,
        "limits, friction and springs of loops are left out: {}": lost,
    }
    scene.notes += told(said)
    if loops:
        scene.notes.append(
            "a spanning tree was chosen; these joints are loops:"
            f" {listed((edge.name for edge in loops), 20)}"
        )
        if graph.digits is not None:
            scene.notes.append(
                f"frames of loops have {graph.digits} digits after the point, since the file has"
                " no more: over-constrained loops are then taken as rounded, not as jammed"
            )
    screws = [edge for edge in used.values() if edge.kind == "screw"]
    for screw in screws:
        scene.notes.append(f"screw '{screw.name}' is a turn, a way and a coupling of both")
        joints[screw.name] = joints[f"{screw.name}_1"]  # what follows it follows its turn
    threads = map(_thread, screws)
    scene.loops += [_settled(scene, where, joints, each) for each in (*graph.loops, *threads)]
    scene.elements += [_settled(scene, where, joints, each) for each in graph.elements]
    lifted = [name for name, share in graph.carried.items() if _lift(scene, where, name, share)]
    whole = [name for name in lifted if graph.carried[name] == 1.0]
    moved = [
        name
        for name, (_, _, frame) in where.items()
        if np.abs(frame.p).max() > 1e-12 or np.abs(frame.R - np.eye(3)).max() > 1e-12
    ]
    said = {
        "gravity does not act on {}: forces take their weight (wrenches)": whole,
        "gravity does not act as it is on {}: forces take a share of their weight (wrenches)": [
            name for name in lifted if name not in whole
        ],
        "link frames are at the joints, not where the file has them: {}": moved,
    }
    scene.notes += told(said)
    return scene


def _grow_trees(
    scene: Scene, graph: JointGraph, needed: set[str]
) -> tuple[dict[str, Connection], dict[str, tuple[Robot, str, Pose]]]:
    """Add robots: spanning trees of what is joined.

    One grows from the world, or of what is not joined to it from a root or else the heaviest link,
    always by the joint that would cost most as a loop, and of those by the one next to the root:
    branches are short, and cuts are where both sides have as little between them and the root.

    Args:
        scene: Receives the robots.
        graph: What is joined.
        needed: Joints that have to be in a tree.

    Returns:
        Joints of the trees by name; and by link its robot, its name there and its frame in that.
    """
    used: dict[str, Connection] = {}
    where: dict[str, tuple[Robot, str, Pose]] = {}
    for root in _roots(graph):
        if root in where:
            continue
        standing = root == WORLD
        name = free_name(graph.name if standing else root, [r.name for r in scene.robots])
        place = Pose() if standing else graph.places[root]
        link = Link(WORLD) if standing else graph.links[root]
        robot = Robot(name, root, standing, {}, {}, place)
        robot.links[root] = replace(link, name=root)
        where[root] = robot, root, Pose()
        for edge, link_name, forward in _spread(graph, root, needed):
            used[edge.name] = edge
            where[link_name] = _attach(graph, robot, where, edge, link_name, forward)
        if not standing or len(robot.links) > 1:
            scene.robots.append(robot)
    return used, where


def _call_by_models(scene: Scene, where: dict[str, tuple[Robot, str, Pose]]) -> dict[str, str]:
    """Let each of several robots that is all of a model have its name, and its parts their own.

    Returns:
        Full names of joints, by the graph's.
    """
    scopes = {id(robot): _scopes(robot) for robot in scene.robots}
    shared = Counter(scope for each in scopes.values() for scope in each)
    own = {
        key: scope
        for key, each in scopes.items()
        for scope in each
        if len(each) == 1 and shared[scope] == 1 and len(scene.robots) > 1
    }
    graphs: list[tuple[str, Robot, str]] = []
    for robot in scene.robots:
        scope = own.get(id(robot), "")
        others = (other.name for other in scene.robots if other is not robot)
        robot.name = free_name(scope.removesuffix(SCOPE) or robot.name, others)
        graphs += [(name, robot, name.removeprefix(scope)) for name in robot.joints]
        robot.rename(lambda name, scope=scope: name.removeprefix(scope))
    for key, (robot, name, frame) in where.items():
        where[key] = robot, name.removeprefix(own.get(id(robot), "")), frame
    return {name: scene.prefix(robot) + called for name, robot, called in graphs}


def _scopes(robot: Robot) -> set[str]:
    """What names of a robot begin with: of each model in a world that it has parts of."""
    parts = [name.partition(SCOPE) for name in (*robot.links, *robot.joints) if name != WORLD]
    return {first + found if found else "" for first, found, _ in parts}


def _lift(
    scene: Scene, where: Mapping[str, tuple[Robot, str, Pose]], name: str, share: float
) -> bool:
    """Take a share of a link's weight, and return whether it had any that moves something."""
    robot, link, _ = where[name]
    inertial = robot.links[link].inertial
    stands = robot.fixed and robot.carrier(link) == robot.root
    if inertial is None or not inertial.mass or stands:
        return False
    x, y, z = (float(each) for each in inertial.com)
    scene.lift(Frame(scene.prefix(robot) + link, (x, y, z)), share * inertial.mass)
    return any(scene.gravity)


def _is_void(where: Mapping[str, tuple[Robot, str, Pose]], edge: Connection) -> bool:
    """Whether a joint is at one place of what is one rigid body, so that it does nothing."""
    (one, a, _), (other, b, _) = where[edge.parent], where[edge.child]
    here, there = edge.places
    apart = max(np.abs(here.p - there.p).max(), np.abs(here.R - there.R).max())
    return one is other and apart < MEETING and one.carrier(a) == one.carrier(b)


def _roots(graph: JointGraph) -> list[str]:
    """The world, links that are said to be roots, then the others, the heaviest first."""

    def mass(name: str) -> float:
        inertial = graph.links[name].inertial
        return 0.0 if inertial is None else inertial.mass

    return [WORLD, *graph.roots, *sorted(graph.links, key=mass, reverse=True)]


def _spread(
    graph: JointGraph, root: str, needed: Iterable[str]
) -> list[tuple[Connection, str, bool]]:
    """Joints as the tree grows by them, the link that each adds, whether that is its child."""
    edges: dict[str, list[Connection]] = {}
    for edge in graph.connections:
        if not edge.is_loop:
            edges.setdefault(edge.parent, []).append(edge)
            edges.setdefault(edge.child, []).append(edge)
    ranks = {edge.name: _rank(edge, set(needed)) for edge in graph.connections}
    reached, grown = {root}, list[tuple[Connection, str, bool]]()
    queue: list[tuple[int, int, int, str, Connection]] = []
    number = {edge.name: k for k, edge in enumerate(graph.connections)}

    def offer(link: str, depth: int) -> None:
        for edge in edges.get(link, []):
            other = edge.child if edge.parent == link else edge.parent
            if other not in reached:
                item = (ranks[edge.name], depth, number[edge.name], other, edge)
                heapq.heappush(queue, item)

    offer(root, 1)
    while queue:
        _, depth, _, link, edge = heapq.heappop(queue)
        if link in reached:
            continue
        reached.add(link)
        grown.append((edge, link, link == edge.child))
        offer(link, depth + 1)
    return grown


def _rank(edge: Connection, needed: set[str]) -> int:
    if not needed.isdisjoint((edge.name, f"{edge.name}_1", f"{edge.name}_2")):
        return NEEDED
    rank = TREE_RANK[edge.kind]
    return rank if rank == 0 or any(along.acts for along in edge.along) else rank + DRIVEN


def _attach(
    graph: JointGraph,
    robot: Robot,
    where: Mapping[str, tuple[Robot, str, Pose]],
    edge: Connection,
    name: str,
    forward: bool,
) -> tuple[Robot, str, Pose]:
    """Put a link on the tree by its joint; the link's own frame in that of the joint."""
    on = edge.parent if forward else edge.child
    _, parent, frame = where[on]
    here, there = edge.places if forward else reversed(edge.places)
    place = frame @ graph.places[on].inverse @ here
    carry = there.inverse @ graph.places[name]
    if edge.kind == "fixed":  # nothing moves about its frame: the link keeps its own
        place, carry = place @ carry, Pose()
    alongs = edge.along if forward else tuple(a.reversed for a in reversed(edge.along))
    steps = _steps(edge.kind, alongs)
    for k, (kind, along) in enumerate(steps):
        last = k == len(steps) - 1
        # the first axis is number one, whichever end of the joint the tree comes to first
        count = len(steps) - k if edge.kind == "universal" and not forward else k + 1
        joint_name = edge.name if len(steps) == 1 else f"{edge.name}_{count}"
        joint_name = free_name(joint_name, robot.joints)
        link = name if last else free_name(f"{joint_name}_link", {**robot.links, **graph.links})
        made = Joint(joint_name, kind, parent, link, place if k == 0 else Pose())
        if along is not None:
            for key in OF_AXIS:
                setattr(made, key, getattr(along, key))
            made.armature = edge.armature if along is edge.along[0] or not forward else 0.0
        robot.joints[joint_name] = made
        robot.links[link] = _moved(graph.links[name], carry) if last else Link(link)
        parent = link
    return robot, name, carry


def _thread(edge: Connection) -> Coupling:
    """What couples the way of a screw in the tree to its turn."""
    advance = edge.pitch / (2.0 * np.pi)
    return Coupling(edge.name, {f"{edge.name}_2": 1.0, f"{edge.name}_1": -advance})


def _steps(kind: str, alongs: tuple[Along, ...]) -> list[tuple[str, Along | None]]:
    """Joints of the tree that a connection is, one after the other."""
    if kind == "fixed":
        return [("fixed", None)]
    if kind == "ball":
        return [("spherical", alongs[0] if alongs else None)]
    if kind in ("universal", "several"):
        return [("prismatic" if along.slides else "revolute", along) for along in alongs]
    if kind == "screw":
        return [("revolute", alongs[0]), ("prismatic", Along(alongs[0].axis))]
    return [(kind, alongs[0])]


def _moved(link: Link, carry: Pose) -> Link:
    """A link whose frame is another one, in which its old one is at ``carry``."""
    inertial = link.inertial and link.inertial.placed(carry)

    def moved(shapes: list[Shape]) -> list[Shape]:
        return [replace(shape, place=carry @ shape.place) for shape in shapes]

    shapes = moved(link.visuals), moved(link.collisions)
    return Link(link.name, inertial, *shapes, link.friction)


def _loop(
    scene: Scene,
    graph: JointGraph,
    where: Mapping[str, tuple[Robot, str, Pose]],
    edge: Connection,
    lost: list[str],
) -> FileConstraint:
    """A joint that is not in the tree; its name goes to ``lost`` if it loses what acts along it."""
    if edge.kind == "several" and not _is_cylindrical(edge):
        raise ModelError(
            f"joint '{edge.name}' has {len(edge.along)} axes and closes a loop; write it as hinges"
            " and sliders with light links between, of which one closes it"
        )
    ends = [
        (where[link][2] @ graph.places[link].inverse @ place).on(_full(scene, where, link))
        for link, place in zip((edge.parent, edge.child), edge.places, strict=True)
    ]
    if edge.kind == "universal" and not edge.is_loop:
        first, second = (along.axis for along in edge.along)
        if abs(first @ second) > PERPENDICULAR:
            raise ModelError(
                f"joint '{edge.name}' has two axes that are not at right angles and closes a loop;"
                " write two revolute joints with a light link between"
            )
    made = loop_joint(edge.name, edge.kind, ends, edge.along, edge.pitch, graph.digits)
    if made.turn is None and made.travel is None and any(along.acts for along in edge.along):
        lost.append(edge.name)
    return made


def loop_joint(
    name: str,
    kind: str,
    ends: Iterable[Frame],
    alongs: Sequence[Along],
    pitch: float,
    digits: int | None,
) -> LoopJoint:
    """A joint of a graph's kinds as a loop, its numbers with so many digits after the point.

    What acts along a motion that is neither the only turn nor the only way is left out.
    """
    a, b = (Frame(end.link, rounded(end.xyz, digits), rounded(end.rpy, digits)) for end in ends)
    first, *_, last = (*alongs, *alongs) or (Along(np.array(Z)),) * 2
    acting = loop_axis(first) if alongs and loop_axis(first) != LoopAxis() else None
    return LoopJoint(
        name,
        LOOP_MODELS[kind],
        a,
        b,
        rounded(first.axis, digits),
        rounded(last.axis, digits) if kind == "universal" else None,
        pitch,
        turn=acting if kind in ("revolute", "screw") else None,
        travel=acting if kind == "prismatic" else None,
    )


def _is_cylindrical(edge: Connection) -> bool:
    """Whether several freedoms are a way along an axis and the turn about it."""
    if len(edge.along) != len({along.slides for along in edge.along}) or len(edge.along) != 2:
        return False
    return bool(np.array_equal(edge.along[0].axis, edge.along[1].axis))


def loop_axis(along: Along) -> LoopAxis:
    """What acts along the free motion of a loop."""
    return LoopAxis(
        along.limits if np.isfinite(along.limits).any() else None,
        along.friction,
        stiffness=along.stiffness,
        damping=along.damping,
        rest=along.rest if along.stiffness else 0.0,
    )


def rounded(values: Array | Triple, digits: int | None) -> Triple:
    """Three numbers with so many digits after the point; None for all that they have."""
    x, y, z = (
        float(value if digits is None else round(float(value), digits)) + 0.0 for value in values
    )
    return x, y, z


def digits_worth(numbers: Iterable[str]) -> int | None:
    """Digits after the point that places are worth which are worked out from the numbers of a file.

    One more than the file has, seven at least; None where it has so many that it is not rounded.
    """
    most = 0
    for number in numbers:
        try:
            exponent = Decimal(number).normalize().as_tuple().exponent
        except InvalidOperation:
            continue
        most = max(most, -exponent if isinstance(exponent, int) else 0)
    return max(most + 1, LEAST_DIGITS) if most <= MOST_DIGITS else None


def _full(scene: Scene, where: Mapping[str, tuple[Robot, str, Pose]], link: str) -> str:
    robot, name, _ = where[link]
    return WORLD if link == WORLD else scene.prefix(robot) + name


def _settled(
    scene: Scene,
    where: Mapping[str, tuple[Robot, str, Pose]],
    joints: Mapping[str, str],
    joining: Joining,
) -> Joining:
    """What joins frames of the graph's links, or its joints, on those of the scene."""

    def joint(name: str) -> str:
        if name not in joints:
            raise ModelError(
                f"'{joining.name}' couples joint '{name}', which closes a loop or has two axes;"
                " couple joints with one axis that can all be in one tree"
            )
        return joints[name]

    def end(frame: Frame) -> Frame:
        _, _, own = where[frame.link]
        return (own @ pose_of(frame.xyz, frame.rpy)).on(_full(scene, where, frame.link))

    return with_ends(joining, joint, end)
