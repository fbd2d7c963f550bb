"""Frames of an SDF model: places of links, joints, frames and nested models in each other."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import radians
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.bullet.xml_file import as_seen, leading_number, read_xml, to_number
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.attaching_plugins import MODEL
from bulletbridge.models.formats.robot import Pose, free_name, listed, pose_of
from bulletbridge.models.formats.xacro_file import read_expanded
from bulletbridge.models.urdf_file import refuse_xacro
from bulletbridge.numerics.records import Array

SCOPE = "::"
XMLNS = {
    "xmlns:bulletbridge": "https://bulletbridge.invalid/sdf",
    "xmlns:drake": "http://drake.mit.edu",
}
LOOP_TAG = "bulletbridge:loop"
"""In a joint that closes a loop whatever tree there might be, as our writer has it: where its frame
is on the child, which is elsewhere than on the parent where the loop turns, or rounding leaves it
open."""
BALL_TAG = "bulletbridge:ball"
"""Damping, friction and armature of a ball joint, which SDF has no words for."""
ROTOR_TAG, GEAR_TAG = "drake:rotor_inertia", "drake:gear_ratio"
"""Drake's words for armature: the rotor's inertia times the square of the gear's ratio."""
GAINS_TAG = "drake:controller_gains"
END_TAGS = "drake:parent_frame", "drake:child_frame"
"""Drake's words for the frames of a joint on its links, which need not meet where these are."""
GAZEBOS = ("sun", "ground_plane")
"""What worlds include that comes with Gazebo."""
DEEPEST = 20
"""Nesting of models that is refused."""
GAZEBO = "gazebo"
"""Outermost element of SDF until version 1.2."""
ELEMENTS = (1, 2)
"""Version from which numbers are texts of elements, not attributes."""
OWN_FRAME = (1, 5)
"""Version from which an axis is given in the frame of its joint, not of the model."""
NUMERIC = {
    *("pose", "xyz", "size", "scale", "radius", "length", "radii", "normal", "mu", "density"),
    *("mass", "ixx", "iyy", "izz", "ixy", "ixz", "iyz"),
    *("lower", "upper", "effort", "velocity", "damping", "friction"),
    *("spring_stiffness", "spring_reference", "screw_thread_pitch", "thread_pitch"),
    *("gearbox_ratio", "multiplier", "offset", "reference"),
}
"""Elements whose texts are numbers."""


def read_sdf_xml(
    path: Path, arguments: Mapping[str, str] | None = None
) -> tuple[Xml.Element, list[str]]:
    """The root of an SDF file, with numbers as Gazebo reads them, and notes on those.

    It takes what begins a word as a number: ``0.1"`` is 0.1.

    Args:
        path: The file.
        arguments: For xacro, which expands the file; None for one that another includes, which
            must not have to be expanded.

    Raises:
        ModelError: The file cannot be read, or is xacro that is not to be expanded.
        MissingExtraError: xacro is not installed.
    """
    if arguments is None:
        root, of_xacro = read_xml(path), tuple[str, ...]()
        refuse_xacro(root, path)
    else:
        root, of_xacro, _ = read_expanded(path, arguments)
    settled: dict[tuple[str, str, str], list[str]] = {}
    _settle_numbers(root, root, settled)
    return root, [
        *of_xacro,
        *(
            f"<{tag}> is '{given}', which is taken as '{read}', as Gazebo takes it: {listed(whose)}"
            for (tag, given, read), whose in settled.items()
        ),
    ]


def _settle_numbers(
    element: Xml.Element, owner: Xml.Element, settled: dict[tuple[str, str, str], list[str]]
) -> None:
    """Make numbers of texts in an element, and add those that are changed with their owners."""
    for child in element:
        pieces = (child.text or "").split() if child.tag in NUMERIC and not len(child) else []
        seen = as_seen(" ".join(pieces)).split()
        read = [piece if _is_number(piece) else leading_number(piece) for piece in seen]
        if read != pieces and all(read):
            child.text = " ".join(read)
            given = " ".join(pieces)
            change = str(child.tag), given if as_seen(given) == given else ascii(given), child.text
            settled.setdefault(change, []).append(owner.get("name", str(owner.tag)))
        _settle_numbers(child, child if child.get("name") else owner, settled)


def _is_number(piece: str) -> bool:
    try:
        to_number(piece)
    except ValueError:
        return False
    return True


def text_of(element: Xml.Element | None, path: str, default: str = "") -> str:
    """Text of the first element at a path."""
    if element is None:
        return default
    return (element.findtext(path) or default).strip()


def number_of(element: Xml.Element, path: str, default: float) -> float:
    """A number; infinite ones may be meant.

    Raises:
        ModelError: It is none.
    """
    text = text_of(element, path)
    try:
        value = float(text) if text else default
    except ValueError:
        value = np.nan
    if np.isnan(value):
        raise ModelError(f"<{path}> of {_tag_of(element)} is '{text}'; give a number")
    return value


def numbers_in(text: str, count: int, what: str) -> Array:
    """So many finite numbers.

    Raises:
        ModelError: They are not; the message calls them ``what``.
    """
    try:
        values = np.array([float(part) for part in text.split()])
    except ValueError:
        values = np.zeros(0)
    if len(values) != count or not np.isfinite(values).all():
        raise ModelError(f"{what} is '{text}'; give {count} finite numbers")
    return values


def _tag_of(element: Xml.Element) -> str:
    """What an element is called in messages."""
    name = element.get("name", "")
    return f"<{element.tag} name='{name}'>" if name else f"<{element.tag}>"


def pose_in(element: Xml.Element) -> Pose:
    """The pose that an element has in the frame that it is relative to."""
    from scipy.spatial.transform import Rotation

    pose = element.find("pose")
    text = "" if pose is None else (pose.text or "").strip()
    if pose is None or not text:
        return Pose()
    what = f"<pose> of {_tag_of(element)}"
    if pose.get("rotation_format", "euler_rpy") == "quat_xyzw":
        values = numbers_in(text, 7, what)
        if not np.any(values[3:]):
            raise ModelError(f"{what} has a quaternion of zeros; give one of length 1")
        return Pose(Rotation.from_quat(values[3:]).as_matrix(), values[:3])
    values = numbers_in(text, 6, what)
    turns = values[3:]
    if pose.get("degrees", "false").lower() in ("true", "1"):
        turns = np.array([radians(x) for x in turns])
    return pose_of(values[:3], turns)


def relative_to(element: Xml.Element) -> str:
    """Name of the frame that an element's pose is in; empty for the usual one."""
    pose = element.find("pose")
    if pose is None:
        return ""
    # ``frame`` was its name in SDF 1.5 and 1.6
    return pose.get("relative_to") or pose.get("frame") or ""


def is_true(text: str) -> bool:
    """Whether SDF means yes."""
    return text.lower() in ("1", "true")


@dataclass
class Scope:
    """One model, or the world, with its names."""

    element: Xml.Element  # its XML
    prefix: str  # what precedes its names from outside
    version: tuple[int, ...]  # of SDF
    place: Path  # where files that it names are
    pose_element: Xml.Element  # what has its pose: the model, or what includes it
    outer: "Scope | None" = None  # model that it is in
    static: bool = False  # whether all of it stands still
    # links, joints, frames by name; of a link and a joint of one name the link
    parts: dict[str, Xml.Element] = field(default_factory=lambda: {})
    joints: dict[str, Xml.Element] = field(default_factory=lambda: {})  # joints by name
    nested: dict[str, "Scope"] = field(default_factory=lambda: {})  # models in it by name
    # what it includes that comes with Gazebo and is not there
    missing: list[str] = field(default_factory=lambda: [])
    # what was assumed of it, and of the file that it includes models from
    notes: list[str] = field(default_factory=lambda: [])
    # models in it whose name another one has, by the one that they got
    renamed: dict[str, str] = field(default_factory=lambda: {})
    called: str = ""  # its name in the model that it is in
    # models in it whose names are its own, too
    merged: list[str] = field(default_factory=lambda: [])

    def within(self, name: str) -> str:
        """A name with the model before it that it was merged from, if it is of one.

        Gazebo's own files have names with that of their model before them, which is taken off.
        """
        first, scoped, rest = name.partition(SCOPE)
        if first in self.parts or first in self.nested:
            return name
        if scoped and first == self.element.get("name"):
            return self.within(rest)
        for own in self.merged:
            inner = self.nested[own]
            if inner.within(name) != name or first in inner.parts or first in inner.nested:
                return f"{own}{SCOPE}{name}"
        return name

    @property
    def root(self) -> str:
        """What its own frame is called."""
        return WORLD if self.element.tag == "world" else MODEL

    def pose(self, name: str, seen: tuple[str, ...] = ()) -> Pose:
        """Place of something in the frame of this model.

        Raises:
            ModelError: There is no such thing, or it is defined by itself.
        """
        if name in ("", MODEL) or name == self.root:
            return Pose()
        if name == WORLD:  # a joint's child, which Gazebo takes
            return self.placed.inverse
        name = self.within(name)
        if name in seen:
            raise ModelError(
                f"the poses of {', '.join(seen)} depend on each other; give one freely"
            )
        inner, _, rest = name.partition(SCOPE)
        if inner in self.nested:
            own = self.nested[inner]
            placed = self._model_pose(own, (*seen, name))
            return placed @ own.pose(rest) if rest else placed
        if name not in self.parts:
            known = ", ".join([*self.parts, *self.nested][:10])
            raise ModelError(f"unknown frame '{self.prefix}{name}'; there are: {known}")
        return self.pose_of(self.parts[name], (*seen, name))

    def pose_of(self, part: Xml.Element, seen: tuple[str, ...] = ()) -> Pose:
        """Place of a link, joint or frame in the frame of this model.

        Raises:
            ModelError: It is relative to nothing, or defined by itself.
        """
        return self.pose(self._reference(part), seen) @ pose_in(part)

    def _reference(self, part: Xml.Element) -> str:
        given = relative_to(part)
        if given:
            return given
        if part.tag == "joint":
            return self.joint_end(part, "child")
        return part.get("attached_to", "") if part.tag == "frame" else ""

    def _model_pose(self, inner: "Scope", seen: tuple[str, ...]) -> Pose:
        source = inner.pose_element
        at = self.pose(relative_to(source), seen) @ pose_in(source)
        frame = source.get("placement_frame") or text_of(source, "placement_frame")
        return at @ inner.pose(frame).inverse if frame else at

    def joint_end(self, joint: Xml.Element, end: str) -> str:
        """What a joint names as its parent or child.

        Raises:
            ModelError: Nothing.
        """
        found = joint.find(end)
        name = text_of(joint, end) or ("" if found is None else text_of(found, "link_name"))
        if not name:
            raise ModelError(
                f"joint '{self.prefix}{joint.get('name', '')}' has no <{end}>; name it"
            )
        return name

    def link_of(self, name: str, seen: tuple[str, ...] = ()) -> str:
        """Full name of the link that something is attached to; ``world`` is one.

        Raises:
            ModelError: It is attached to nothing.
        """
        if name == WORLD:
            return WORLD
        name = self.within(name)
        inner, _, rest = name.partition(SCOPE)
        if inner in self.nested:
            return self.nested[inner].link_of(rest or MODEL)
        if name in seen or len(seen) > DEEPEST:
            raise ModelError(f"frames {', '.join(seen)} are attached to each other, not to a link")
        part = self.parts.get(name)
        if part is not None and part.tag == "link":
            return self.prefix + name
        if part is not None and part.tag == "joint":
            return self.link_of(self.joint_end(part, "child"), (*seen, name))
        if part is not None:
            return self.link_of(part.get("attached_to") or MODEL, (*seen, name))
        if name in ("", MODEL):
            return self._canonical()
        known = ", ".join([*self.parts, *self.nested][:10])
        raise ModelError(f"unknown link or frame '{self.prefix}{name}'; there are: {known}")

    def _canonical(self) -> str:
        given = self.element.get("canonical_link")
        if given:
            return self.link_of(given)
        for name, part in self.parts.items():
            if part.tag == "link":
                return self.prefix + name
        for inner in self.nested.values():
            return inner.link_of(MODEL)
        raise ModelError(f"model '{self.prefix.removesuffix(SCOPE)}' has no link")

    def scopes(self) -> list["Scope"]:
        """This one and all in it."""
        return [self, *(each for inner in self.nested.values() for each in inner.scopes())]

    @property
    def placed(self) -> Pose:
        """Its frame in the world."""
        if self.outer is None:
            return Pose() if self.element.tag == "world" else pose_in(self.pose_element)
        return self.outer.placed @ self.outer.pose(self.called)


def open_scope(
    element: Xml.Element,
    version: tuple[int, ...],
    path: Path,
    top: Path,
    outer: Scope | None = None,
    include: Xml.Element | None = None,
    *,
    called: str = "",
    merge: bool = False,
) -> Scope:
    """The scope of a model or world, with all that is nested in it.

    Args:
        element: The model or world.
        version: Of SDF.
        path: The file that it stands in.
        top: Folder that included files must be in.
        outer: Scope around it; None for the outermost.
        include: What includes it.
        called: Its name in the outer scope.
        merge: Whether what is in it has names of the outer scope.

    Raises:
        ModelError: A name of a link, joint or frame is given twice, or an included file is missing
            or elsewhere.
    """
    prefix = ("" if merge else f"{called}{SCOPE}") if outer is not None else ""
    prefix = prefix if outer is None else outer.prefix + prefix
    depth, around = 0, outer
    while around is not None:
        depth, around = depth + 1, around.outer
    if depth > DEEPEST:
        raise ModelError(f"{path}: models are nested deeper than {DEEPEST} levels")
    static = is_true(text_of(include, "static") or text_of(element, "static"))
    scope = Scope(
        element,
        prefix,
        version,
        path.parent,
        element if include is None or include.find("pose") is None else include,
        outer,
        static or (outer is not None and outer.static),
        called=called,
    )
    for part in element:
        name = part.get("name", "")
        if part.tag == "joint":
            # since SDF 1.7 names differ from those of links, before that they need not
            _claim(name, scope, scope.joints, path)
            scope.joints[name] = part
            scope.parts.setdefault(name, part)
        elif part.tag in ("link", "frame"):
            others = {n: p for n, p in scope.parts.items() if p.tag != "joint"}
            _claim(name, scope, others, path)
            scope.parts[name] = part
        elif part.tag == "model":
            own = _name_of_model(name, scope, path)
            scope.nested[own] = open_scope(part, version, path, top, scope, called=own)
        elif part.tag == "include":
            found = _included(part, path, top)
            if found is None:
                scope.missing.append(text_of(part, "uri"))
                continue
            inner, own_version, file, notes = found
            scope.notes += notes
            inner_name = text_of(part, "name") or inner.get("name", "")
            own = _name_of_model(inner_name, scope, path)
            merge = is_true(part.get("merge", "false"))
            scope.nested[own] = open_scope(
                inner, own_version, file, top, scope, part, called=own, merge=merge
            )
            if merge:
                scope.merged.append(own)
    together = (scope, *(scope.nested[own] for own in scope.merged))
    count = Counter(name for each in together for name in each.parts)
    twice = [name for name, times in count.items() if times > 1]
    if twice:
        raise ModelError(
            f"{path}: a model that it merges has '{twice[0]}', too; rename one of them"
        )
    return scope


def _name_of_model(name: str, scope: Scope, path: Path) -> str:
    """What a model in a scope is called: its name, or with a number where another one has that.

    Gazebo numbers models that are put into a world twice likewise.
    """
    if not name:
        _claim(name, scope, (), path)
    own = free_name(name, scope.nested)
    if own != name:
        scope.renamed[own] = name
    return own


def _claim(name: str, scope: Scope, taken: Iterable[str], path: Path) -> None:
    if not name or name in taken:
        said = f"the name '{scope.prefix}{name}' is given twice" if name else "a part has no name"
        raise ModelError(f"{path}: {said}; give each link, joint and frame its own")


def version_of(root: Xml.Element, path: Path) -> tuple[int, ...]:
    """Version of an SDF file.

    Raises:
        ModelError: It is none, or one that says in attributes what later ones say in elements.
    """
    try:
        version = tuple(int(part) for part in root.get("version", "").split("."))
    except ValueError:
        raise ModelError(
            f"{path}: <{root.tag}> has version '{root.get('version')}'; give one such as 1.11"
        ) from None
    if root.tag == GAZEBO and version < ELEMENTS:
        said = ".".join(map(str, version))
        raise ModelError(
            f"{path} is SDF {said}, whose numbers are attributes, and no Gazebo of today reads it;"
            " convert it by the `gz sdf -c` of an old one, or write it anew"
        )
    return version


def called_by_uri(uri: str) -> str:
    """What a URI names, as Gazebo spells it."""
    return uri.rstrip("/").rpartition("/")[2].lower().replace(" ", "_")


def is_gazebos(uri: str) -> bool:
    """Whether a URI names the ground or the sun that come with Gazebo."""
    return called_by_uri(uri) in GAZEBOS


def included_scope(include: Xml.Element, path: Path, top: Path) -> Scope:
    """The scope of a model that a world includes alone: its names are whole."""
    found = _included(include, path, top)
    assert found is not None, "what Gazebo has is no model alone"
    model, version, file, notes = found
    scope = open_scope(model, version, file, top, include=include)
    scope.notes += notes
    return scope


def _included(
    include: Xml.Element, path: Path, top: Path
) -> tuple[Xml.Element, tuple[int, ...], Path, list[str]] | None:
    """Model that an include names, version and file of it, notes; None for Gazebo's own things."""
    uri = text_of(include, "uri")
    file = find_file(uri, path.parent, top)
    if file is None and is_gazebos(uri):
        return None
    if file is None:
        raise ModelError(
            f"{path} includes '{uri}', which is not in {top}; put it there, or name a folder that"
            " holds both by inside=FOLDER (--inside FOLDER): files outside are not opened"
        )
    if file.is_dir():
        config = file / "model.config"
        named = text_of(read_xml(config), "sdf") if config.is_file() else ""
        file = file / (named or "model.sdf")
    root, notes = read_sdf_xml(file)
    model = root.find("model")
    if model is None:
        raise ModelError(f"{file}, which {path} includes, has no <model>")
    return model, version_of(root, file), file, notes


def find_file(uri: str, beside: Path, top: Path) -> Path | None:
    """A file or folder that a URI names, if it is inside ``top``."""
    name = uri.split("://", 1)[-1].lstrip("/") if "://" in uri else uri
    for folder in (beside, top, *beside.parents):
        found = (folder / name).resolve()
        if found.is_relative_to(top) and found.exists():
            return found
    return None
