"""Commands that write URDFs: ``bulletbridge inertia`` and ``bulletbridge flexible``."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bulletbridge.command_options import grouped
from bulletbridge.errors import ModelError

SECTIONS = "rect:WIDTH,HEIGHT (along y and z of the beam), round:DIAMETER or tube:OUTER,INNER [m]"
Vector = tuple[float, float, float]


def inertia(
    urdf: Annotated[Path, typer.Argument(help="The URDF file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the new file goes.")],
    density: Annotated[float, typer.Option(help="Of links that have no mass [kg/m³].")] = 1000.0,
    everything: Annotated[
        bool, typer.Option("--all", help="Also links whose inertia is possible as it is.")
    ] = False,
) -> None:
    """Write a copy of a URDF, impossible and missing inertias computed from the links' shapes."""
    from bulletbridge.models.inertia import repair

    changes = repair(urdf, output, density, everything)
    for change in changes:
        print(change)
    done = f"{len(changes)} of the links changed" if changes else "no link needed a change"
    print(f"{done}: {output}")


@dataclass(frozen=True)
class BeamOptions:
    """Which link bends, and what of it is no stiffness; named as in ``Flexibility``."""

    link: Annotated[str, typer.Option("--link", help="Which link bends.")]
    segments: Annotated[
        int, typer.Option("--segments", help="Number of springs in each direction.")
    ]
    damping: Annotated[
        float, typer.Option("--damping", help="Part of critical, of the first mode.")
    ] = 0.0
    coefficient: Annotated[
        float | None, typer.Option("--damping-per-spring", help="Instead [N m s/rad].")
    ] = None
    mass_per_length: Annotated[
        float | None,
        typer.Option("--mass-per-length", help="Of a beam, for the link's inertia [kg/m]."),
    ] = None
    end: Annotated[str | None, typer.Option("--end", help="Joint at the link's end.")] = None
    direction: Annotated[
        Vector | None,
        typer.Option("--direction", metavar="X Y Z", help="To its end, from its frame [m]."),
    ] = None
    length: Annotated[float | None, typer.Option("--length", help="In that direction [m].")] = None
    normal: Annotated[
        Vector | None,
        typer.Option("--normal", metavar="X Y Z", help="z of the beam, in the link's frame."),
    ] = None


@dataclass(frozen=True)
class StiffnessOptions:
    """How stiff a beam is: as numbers, or by material and section."""

    ei: Annotated[float | None, typer.Option("--EI", help="Stiffness of bending [N m²].")] = None
    ei_y: Annotated[
        float | None, typer.Option("--EI-y", help="Of bending about y; --EI unless given.")
    ] = None
    gj: Annotated[float | None, typer.Option("--GJ", help="Of torsion [N m²]; rigid without.")] = (
        None
    )
    e: Annotated[float | None, typer.Option("--E", help="Young's modulus [Pa].")] = None
    g: Annotated[float | None, typer.Option("--G", help="Shear modulus [Pa], to twist.")] = None
    section: Annotated[str | None, typer.Option("--section", help=SECTIONS)] = None
    directions: Annotated[
        str, typer.Option("--directions", help="Bends about z, y or both: z, y, yz.")
    ] = "z"

    def stiffnesses(self) -> tuple[float | None, float | None, float | None]:
        """EI about z and y [N m²] and GJ [N m²], as ``Flexibility`` takes them; None: rigid.

        Raises:
            ModelError: They are not given, given twice, or not possible.
        """
        ei, ei_y, gj, e, section = self.ei, self.ei_y, self.gj, self.e, self.section
        if (e is None) != (section is None) or (ei is None) == (e is None):
            raise ModelError("give either --EI, or --E and --section")
        if sorted(self.directions) not in (["y"], ["z"], ["y", "z"]):
            raise ModelError(f"directions is '{self.directions}'; give z, y or yz")
        if e is not None and section is not None:
            iz, iy, j = section_moments(section)
            ei, ei_y = e * iz, e * iy
            gj = gj if self.g is None else self.g * j
        elif self.g is not None:
            raise ModelError("--G needs --E and --section; give --GJ")
        about_y = ei if ei_y is None else ei_y
        return (
            ei if "z" in self.directions else None,
            about_y if "y" in self.directions else None,
            gj,
        )


@grouped
def flexible(
    model: Annotated[str, typer.Argument(help="Bundled name, loops file or URDF.")],
    beam: BeamOptions,
    stiffness: StiffnessOptions,
    floating: Annotated[
        bool, typer.Option("--floating", help="The base of a URDF is free.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT.urdf",
            help="The new URDF; NAME_flexible.urdf in this folder unless given.",
        ),
    ] = None,
) -> None:
    """Replace a link by rigid segments with springs: a URDF, and its loops file beside it."""
    from bulletbridge.models.flexible.make_flexible import Flexibility, make_flexible

    about_z, about_y, torsion = stiffness.stiffnesses()
    how = Flexibility(**vars(beam), EI_z=about_z, EI_y=about_y, GJ=torsion)
    print(make_flexible(model, how, output, not floating))


def section_moments(text: str) -> tuple[float, float, float]:
    """Second moments of area about z and y, and the torsion constant [m⁴], of a cross-section.

    Source: Young and Budynas, Roark's Formulas for Stress and Strain, table 10.1: a rectangle's
    torsion to 4 %.

    Raises:
        ModelError: It is none of those known.
    """
    kind, _, rest = text.partition(":")
    try:
        sizes = [float(part) for part in rest.split(",")]
    except ValueError:
        sizes = []
    good = bool(sizes) and all(math.isfinite(x) and x > 0.0 for x in sizes)
    if good and kind == "rect" and len(sizes) == 2:
        width, height = sizes
        b, a = sorted(sizes)
        torsion = a * b**3 * (1 / 3 - 0.21 * b / a * (1 - b**4 / (12 * a**4)))
        return height * width**3 / 12, width * height**3 / 12, torsion
    tube = kind == "tube" and len(sizes) == 2 and sizes[1] < sizes[0]
    if good and (tube or (kind == "round" and len(sizes) == 1)):
        outer, inner = sizes if tube else (sizes[0], 0.0)
        moment = math.pi / 64 * (outer**4 - inner**4)
        return moment, moment, 2 * moment
    raise ModelError(f"unknown section '{text}'; give {SECTIONS}")
