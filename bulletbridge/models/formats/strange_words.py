"""Words in a URDF or SDF that no reader knows, as misspelt ones: told, for else they are lost."""

from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as Xml

from bulletbridge.errors import nearest
from bulletbridge.models.formats.robot import listed

URDF_WORDS = {
    "joint": "origin parent child axis limit dynamics mimic calibration safety_controller"
    " joint_properties",
    "link": "inertial visual collision contact origin self_collision_checking",
    "inertial": "origin mass inertia",
    "limit@": "lower upper effort velocity twist",
    "dynamics@": "damping friction armature spring_stiffness spring_reference",
    "mimic@": "joint multiplier offset",
}
"""Children of elements, and attributes of those with an @, that are read or lose nothing."""
SDF_WORDS = {
    "joint": "parent child pose axis axis2 physics sensor gearbox_ratio gearbox_reference_body"
    " thread_pitch screw_thread_pitch origin frame",
    "axis": "xyz limit dynamics mimic use_parent_model_frame initial_position",
    "limit": "lower upper effort velocity stiffness dissipation cfm erp",
    "dynamics": "damping friction spring_reference spring_stiffness",
    "mimic": "multiplier offset reference",
    "link": "pose inertial visual collision sensor gravity kinematic enable_wind self_collide"
    " velocity_decay must_be_base_link contact light projector battery particle_emitter audio_sink"
    " audio_source origin frame damping",
    "inertial": "pose mass inertia density fluid_added_mass auto_inertia_params origin frame",
}
SDF_WORDS["axis2"] = SDF_WORDS["axis"]
ALIKE = 0.7
"""Similarity from which a word that is known may have been meant."""


def strange_words(parts: Iterable[Xml.Element], known: Mapping[str, str]) -> list[str]:
    """What is to be said of words in joints and links that are not known; those with a prefix are.

    Args:
        parts: The joints and links.
        known: Words by the tag of the element in which they stand, as ``URDF_WORDS``.
    """
    places: dict[str, list[str]] = {}
    for part in parts:
        for element in part.iter():
            tag = str(element.tag)
            inside = f" of <{tag}>" if element is not part else ""
            of_it = {tag: [str(each.tag) for each in element], f"{tag}@": list(element.attrib)}
            for key in known.keys() & of_it.keys():
                words = known[key].split()
                for word in of_it[key]:
                    if word in words or any(mark in word for mark in ":{-"):
                        continue
                    hint = nearest(word, words, 1, ALIKE)
                    said = (f"<{word}>" if key == tag else word) + inside
                    said += f" ({hint.rstrip('?')}?)" if hint else ""
                    places.setdefault(f"{said} in {part.tag}", []).append(part.get("name", ""))
    if not places:
        return []
    told = (
        f"{said} {listed((repr(name) for name in dict.fromkeys(where)), 3)}"
        for said, where in places.items()
    )
    return [f"left out, for they are not known: {listed(told)}"]
