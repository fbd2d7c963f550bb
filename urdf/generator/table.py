"""The table of models in README.md, its figures computed from the written files."""

from collections.abc import Sequence
from pathlib import Path

from generator.closure import read
from generator.urdf_writer import Model

TEXT = """\
# Bundled models

Each model is a loops file, `<name>.loops.yaml`, and the URDF that it names. All of it, this page
included, is written by `make_models.py`: change that and run it again.

{table}

*Bodies* move: links joined by fixed joints count once, a fixed base not at all. *Joints* are the
freedoms of the tree without loops, six more for a floating base. *Rows* are written, *rank* counts
those that are independent (singular values above 1e-3 of the largest), *mobility* is the difference
of joints and rank.

- All joints that `start:` does not name are zero there, and closed: zero is the drawn position.
- Planar models move in the x-z plane and turn about -y, counter-clockwise seen from -y.
- No link but the pads of `gripper` and the larger ones of `biped` has a collision shape: neighbours overlap at
  their pins, and contact between them would disturb comparisons with Bullet. No joints but those of `biped` have
  limits that matter.
- `biped` starts in the air, knees bent and soles level, and straightens its legs. Its ankles have no motors of
  their own: two cranks on each shin, with rods to the foot, turn them. Rotors (armature) and damping of its motors
  are in its loops file.
- `gripper` closes by positive angles of both drivers. Its coupler is fixed to the driver: the joint between
  them, which lets a real one wrap its fingers round things, is left out.
- Where a source gives masses and inertias they are used, whatever the meshes look like.
- `minitaur` is PyBullet's own file; nothing of it is copied. `two_arms` uses the kinematics and
  inertias of the iiwa in PyBullet's data; the notice is in its URDF.
- Massless rods of `distance` rows (`triple_slider_crank`) are no links and so have no picture.
- Flexible arms, `system_1` to `system_6b`, are in `flexible/`, as beams and as chains of segments;
  `flexible/make_systems.py` writes them. They move in the x-y plane, without gravity.
- Robots in other formats are in `formats/`, written by hand: `leaf_leg.xml` (MJCF), a leg of the class of Cassie's with
  leaf springs, armature and two four-bars, and `excavator.sdf`, an arm whose three cylinders close loops. They have
  collision shapes and limits. See `docs/mjcf-sdf.md`.
- Standard problems of the field are in `standard/`, with reference values in `references.json`: the IFToMM
  library's `a01_pendulum`, `a02_windows_2` and `a02_windows_40` (written by `make_windows.py`), `a03_andrews`,
  `a05_governor` and `a05_governor_rigid`; its A04 is `bricard`, and `stewart` has references there too. Planar
  ones move in the x-y plane and turn about z. See `docs/standard-problems.md`.
"""
HEAD = (
    "model", "bodies", "joints", "loops", "rows", "rank", "mobility", "good for", "source",
)  # fmt: skip


def figures(path: Path) -> tuple[int, int, int, int, int, int]:
    """Bodies, joint freedoms, loops, rows, rank and mobility of a loops file."""
    loops = read(path)
    tree = loops.tree
    bodies = tree.floating + sum(joint.kind != "fixed" for joint in tree.joints)
    rows, rank = len(loops.residual(loops.start)), loops.rank()
    return bodies, tree.dofs, len(loops.entries), rows, rank, tree.dofs - rank


def readme(models: Sequence[Model], folder: Path) -> str:
    """Text of README.md for models written to a folder."""
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    for model in models:
        numbers = figures(folder / f"{model.name}.loops.yaml")
        cells = [f"`{model.name}`", *map(str, numbers), model.purpose, model.source]
        lines.append(f"| {' | '.join(cells)} |")
    return TEXT.format(table="\n".join(lines))
