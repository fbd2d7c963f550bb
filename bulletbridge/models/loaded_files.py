"""What the files of loaded bodies say that Bullet ignores: joints that mimic others, and loops."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bulletbridge.bullet.reader import file_of, loaded_files, read_body
from bulletbridge.bullet.xml_file import read_xml
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.joints import Coupling
from bulletbridge.errors import BulletBridgeError, ModelError, unheard, warn_user
from bulletbridge.models.formats.mimic import Mimic, couplings_of, loose_mimics, mimics_of, prefixed
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.formats.urdf_tree import UrdfTree

LOOP_MARKS = b"<loop_joint", b"<loop ", b"drake:ball_constraint", b"closing_"
"""What is in a URDF that says loops, of those that are read."""


def mimics_of_body(name: str, body: int, client: int) -> dict[str, Mimic]:
    """Which joint of a loaded body follows which, as its URDF says.

    Raises:
        ModelError: The URDF is not found, or joints mimic each other in a circle.

    Warns:
        BulletBridgeWarning: A joint mimics what does not exist, or does not move.
    """
    path = file_of(read_body(name, body, client), loaded_files(client))
    if path is None:
        raise ModelError(
            f"the URDF of body {body} is not found, or two have the same links; start where its"
            " path leads, or give couplings as constraints"
        )
    tree = UrdfTree(path, read_xml(path))
    loose = loose_mimics(tree)
    if loose:
        warn_user(f"{path}: {'; '.join(loose)}")
    return mimics_of(tree)


def says_more(path: Path) -> bool:
    """Whether a URDF has something that Bullet ignores: joints that follow others, or loops."""
    text = path.read_bytes()
    return any(mark in text for mark in (b"<mimic", *LOOP_MARKS))


def tell_of_open_loops(ids: Mapping[str, int], client: int) -> None:
    """Warn of loops that URDFs of loaded bodies say, where nothing closes any."""
    files = loaded_files(client)
    if any(says_more(path) for path in files):
        for name, body in ids.items():
            path = file_of(read_body(name, body, client), files)
            if path is not None:
                tell_of_loops_in(path)


def tell_of_loose_joints(
    ids: Mapping[str, int], client: int, joining: Sequence[Constraint]
) -> None:
    """Warn of joints that their URDF has follow others and no coupling does."""
    files = loaded_files(client)
    if not any(b"<mimic" in path.read_bytes() for path in files):
        return
    couplings = [each for each in joining if isinstance(each, Coupling)]
    coupled = {joint for each in couplings for joint in each.coefficients}
    for name, body in ids.items():
        path = file_of(read_body(name, body, client), files)
        if path is None or b"<mimic" not in path.read_bytes():
            continue
        prefix = f"{name}/" if len(ids) > 1 else ""
        tell_of_loose(
            path,
            (joint for joint in followers_in(path) if prefix + joint not in coupled),
            "attach(..., mimic=True) couples them, mimic=False leaves them loose",
        )


def followers_in(path: Path) -> tuple[str, ...]:
    """Joints that a URDF has follow others.

    Raises:
        ModelError: Joints mimic each other in a circle.
    """
    return tuple(mimics_of(UrdfTree(path, read_xml(path))))


def tell_of_loose(path: Path, joints: Iterable[str], remedy: str) -> None:
    """Warn of joints that a URDF has follow others and that nothing couples."""
    loose = ", ".join(map(repr, joints))
    if loose:
        warn_user(f"{path.name}: nothing leads {loose}, for Bullet ignores <mimic>; {remedy}")


def mimics_of_bodies(ids: Mapping[str, int], client: int) -> list[Coupling]:
    """Joints of bodies that mimic others, as couplings under the names that a system gives them."""
    found: list[Coupling] = []
    for name, body in ids.items():
        prefix = f"{name}/" if len(ids) > 1 else ""
        found += couplings_of(prefixed(mimics_of_body(name, body, client), prefix), frozenset())
    return found


def loops_in(path: Path) -> tuple[str, ...]:
    """Names of loops that a URDF itself says, which Bullet ignores; none if it cannot be read."""
    text = path.read_bytes()
    if not any(mark in text for mark in LOOP_MARKS):
        return ()
    try:
        with unheard():
            spec = read_model(path)
    except BulletBridgeError:
        return ()
    return tuple(each.name for each in spec.constraints if not isinstance(each, Coupling))


def tell_of_loops_in(path: Path) -> None:
    """Warn of loops that the URDF of a body says, where nothing closes any."""
    loops = ", ".join(map(repr, loops_in(path)))
    if loops:
        warn_user(
            f"{path.name}: the loops that it has are open, for Bullet does not read them: {loops};"
            f" bb.load('{path.name}') closes them, and so do constraints"
        )
