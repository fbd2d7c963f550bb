"""Joints of loaded bodies that mimic others, from the files that the bodies were loaded from."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bulletbridge.bullet.reader import file_of, loaded_files, read_body
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.joints import Coupling
from bulletbridge.errors import ModelError, warn_user
from bulletbridge.models.formats.mimic import Mimic, couplings_of, loose_mimics, mimics_of
from bulletbridge.models.formats.urdf_tree import UrdfTree
from bulletbridge.models.xml_file import read_xml


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
        warn_user(f"{path.name}: {loose} follow no joint, for Bullet ignores <mimic>; {remedy}")


def mimics_of_bodies(ids: Mapping[str, int], client: int) -> list[Coupling]:
    """The same of several bodies, as couplings under the names that a system gives their joints.

    Raises:
        ModelError: As of ``mimics_of_body``.
    """
    found: list[Coupling] = []
    for name, body in ids.items():
        prefix = f"{name}/" if len(ids) > 1 else ""
        mimics = {
            prefix + joint: mimic._replace(joint=prefix + mimic.joint)
            for joint, mimic in mimics_of_body(name, body, client).items()
        }
        found += couplings_of(mimics, frozenset())
    return found
