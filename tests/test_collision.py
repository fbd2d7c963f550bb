"""Distances, depths and points of contact of all pairs of shapes, against closed forms and Coal.

``benchmarks/collisions.py`` does the same a million times a pair, with MuJoCo and Bullet beside it.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from _touching import Poses, touches
from scipy.spatial.transform import Rotation

from bulletbridge.collision.records import MOST_POINTS
from bulletbridge.collision.shapes import (
    Owner,
    box,
    capsule,
    cylinder,
    hull,
    plane,
    records_of,
    sphere,
)
from bulletbridge.errors import ModelError

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import collisions  # noqa: E402

NUMBER = 150
SHAPES = collisions.SHAPES
PAIRS = pytest.mark.parametrize(("first", "second"), collisions.PAIRS)
CUBE = hull(np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T * 0.1)


def test_hulls_of_the_same_corners_are_made_once_and_lie_in_records_beside_others(rng):
    """What a record points at is the hull itself, whatever hulls stand before it."""
    clouds = [rng.normal(size=(n, 3)) for n in (8, 40, 15)]
    first, second, third = (hull(points) for points in clouds)
    again = hull(clouds[1].copy(), 0.1)
    assert again.hull is second.hull
    assert hull(2.0 * clouds[1]).hull is not second.hull
    specs = [first, second, third, again]
    shapes, hulls = records_of(specs, [Owner(0, k, 0.1) for k in range(len(specs))])
    assert shapes["first_vertex"][3] == shapes["first_vertex"][1]
    for record, spec in zip(shapes, specs, strict=True):
        vertex, facet = record["first_vertex"], record["first_facet"]
        sides, own = spec.hull, spec.hull.records
        corners = hulls.vertices[vertex : vertex + record["vertices"]]
        facets = hulls.facets[facet : facet + record["facets"]]
        assert np.array_equal(corners["p"], sides.corners)
        assert np.array_equal(facets["normal"], own.facets["normal"])
        for k, corner in enumerate(corners):
            there = (sides.triangles == k).any(axis=1)
            near, touching = set(sides.triangles[there].ravel()) - {k}, set(sides.sides[there])
            start, count = corner["first_neighbour"], corner["neighbours"]
            assert hulls.integers[start : start + count].tolist() == sorted(near)
            start, count = corner["first_facet"], corner["facets"]
            assert hulls.integers[start : start + count].tolist() == sorted(touching)
        for k, place in enumerate(facets):
            assert numbers_around(hulls, place) == numbers_around(own, own.facets[k])


def numbers_around(hulls, side):
    """Numbers of the corners around a side of a hull, as its record has them."""
    return hulls.integers[side["first_corner"] :][: side["corners"]].tolist()


def around(points, n):
    """Corners of the convex hull of points (k, 3) seen along n, by trying every pair of them."""
    x = np.cross(n, np.roll(n, 1) + [0.0, 0.0, 1.0])
    x /= np.linalg.norm(x)
    p, q = points @ x, points @ np.cross(n, x)
    size = np.ptp(points, axis=0).max()
    edges = {}
    for i in range(len(p)):
        turn = (p - p[i])[:, None] * (q - q[i]) - (q - q[i])[:, None] * (p - p[i])
        for j in np.flatnonzero(np.hypot(p - p[i], q - q[i]) > 1e-9 * size):
            if turn[j].min() >= -1e-12 * size * size:
                edges.setdefault(i, []).append((np.hypot(p[j] - p[i], q[j] - q[i]), j))
    return {i: max(found)[1] for i, found in edges.items()}


def prism(n, half):
    """Corners of a prism of n sides of radius 1."""
    turns = np.arange(n) * 2.0 * np.pi / n
    rows = [np.column_stack([np.cos(turns), np.sin(turns), np.full(n, z)]) for z in (-half, half)]
    return np.vstack(rows)


def ellipsoid(rng, number, half):
    """Random points on an ellipsoid."""
    points = rng.normal(size=(number, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True) * half


@pytest.mark.parametrize(
    "kind", ["box", "lattice", "prism", "cloud", "ellipsoid", "rounded", "twice", "plate"]
)
def test_sides_of_hulls_have_their_outlines(kind, rng):
    """Each corner of a side is on its plane or below, and those around it are its convex hull.

    Triangles are of one side where their normals differ by less than 0.02; corners between two
    others on a straight line do not count.
    """
    turn = Rotation.random(random_state=rng).as_matrix()
    points = {
        "box": CUBE.hull.corners,
        "lattice": np.array(np.meshgrid(*[np.linspace(-1.0, 1.0, n) for n in (2, 4, 5)])),
        "prism": prism(25, 0.5),
        "cloud": rng.normal(size=(80, 3)),
        "ellipsoid": ellipsoid(rng, 400, (0.04, 0.05, 0.08)),
        "rounded": np.round(ellipsoid(rng, 300, (0.04, 0.05, 0.08)), 3),
        "twice": np.vstack([prism(9, 1.0)] * 2),
        "plate": rng.normal(size=(40, 3)) * (1.0, 1.0, 1e-6),
    }[kind]
    points = points.reshape(3, -1).T if points.ndim > 2 else points
    found = hull(points @ turn).hull
    sides, corners = found.records.facets, found.corners
    assert len(sides) == found.sides.max() + 1
    if kind in ("box", "lattice", "prism", "twice"):
        n = {"box": 4, "lattice": 4, "prism": 25, "twice": 9}[kind]
        assert sorted(sides["corners"]) == [4] * (len(sides) - 2) + [n, n]
        assert len(sides) == n + 2
    size = np.ptp(points, axis=0).max()
    for k, side in enumerate(sides):
        triangles = found.triangles[found.sides == k]
        heights = corners[np.unique(triangles)] @ side["normal"] - side["offset"]
        assert heights.max() <= 0.02 * size
        order = numbers_around(found.records, side)
        known = around(corners[np.unique(triangles)], side["normal"])
        members = np.unique(triangles)
        if kind != "plate" and len(known) == len(order):  # else corners are within round-off of one
            assert {members[i]: members[j] for i, j in known.items()} == dict(
                zip(order, np.roll(order, -1), strict=True)
            )
        a, b, c = (corners[triangles[:, n]] for n in range(3))
        area = np.cross(b - a, c - a) @ side["normal"]
        ring = corners[order] - corners[order[0]]
        around_it = np.cross(ring[:-1], ring[1:]).sum(axis=0) @ side["normal"]
        assert around_it >= area.sum() - 1e-9 * size * size


def test_dense_hulls_are_taken_apart_at_once(rng):
    """A mesh of thousands of corners takes few calls for each of them."""
    points, calls = ellipsoid(rng, 3000, (0.04, 0.05, 0.08)), 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = hull(points).hull.records
    finally:
        sys.setprofile(before)
    assert len(found.vertices) == len(points)
    assert calls < 20 * len(points)


def at(*p, turn=(0.0, 0.0, 0.0)):
    """One pose."""
    return Poses(Rotation.from_rotvec([turn]).as_matrix(), np.array([p]))


def gaps_of(found):
    """Gaps of the points of one pose, in rising order."""
    return np.sort(found.points["gap"][0, : found.counts[0]])


@PAIRS
def test_gaps_are_distances(first, second, rng):
    """The separation along the normal bounds a distance from below, the points do from above.

    Of a depth it is the other way round: that there is no smaller one is left to Coal. It ends at
    1e-10 of what it calls its tolerances; cylinders, of which both make polytopes, at their roots.
    """
    a, b = collisions.poses(rng, NUMBER, first, second)
    found = touches(SHAPES[first], SHAPES[second], a, b, 10.0)
    assert found.counts.min() >= 1
    normals = found.points["normal"][:, 0]
    assert np.linalg.norm(normals, axis=1) == pytest.approx(np.ones(NUMBER), abs=1e-12)
    apart = collisions.separation(first, second, a, b, normals)
    assert found.gaps == pytest.approx(apart, abs=2e-6)
    theirs = collisions.of_coal(first, second)(a, b)
    assert np.median(np.abs(found.gaps - theirs)) < 1e-9
    # it fails now and then: depths beyond the true one, or the largest of numbers
    assert np.all(found.gaps - theirs > -1e-5)


@PAIRS
def test_shapes_may_be_swapped_and_moved(first, second, rng):
    """The points and normals of b and a are those of a and b; all move along with both."""
    a, b = collisions.poses(rng, NUMBER, first, second)
    found = touches(SHAPES[first], SHAPES[second], a, b, 10.0)
    swapped = touches(SHAPES[second], SHAPES[first], b, a, 10.0)
    assert found.gaps == pytest.approx(swapped.gaps, abs=2e-6)
    turn, shift = Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)
    moved = touches(
        SHAPES[first],
        SHAPES[second],
        Poses(turn @ a.R, a.p @ turn.T + shift),
        Poses(turn @ b.R, b.p @ turn.T + shift),
        10.0,
    )
    assert moved.gaps == pytest.approx(found.gaps, abs=2e-6)
    again = touches(SHAPES[first], SHAPES[second], a, b, 10.0)
    assert again.points.tobytes() == found.points.tobytes()


@pytest.mark.parametrize("lift", [-0.05, -1e-9, 0.0, 1e-9, 1e-3])
@pytest.mark.parametrize("spec", [box(0.1, 0.1, 0.1), CUBE])
@pytest.mark.parametrize("ground", [plane(), box(100.0, 100.0, 5.0), box(0.05, 0.05, 0.1)])
def test_a_box_has_all_corners_at_once(spec, ground, lift):
    """On a plane, on a large box, and on one that is smaller than itself."""
    top = {0.0: 0.0}.get(ground.size[2], ground.size[2])
    found = touches(ground, spec, at(0, 0, 0), at(0.01, 0.02, top + 0.1 + lift), 0.01)
    assert gaps_of(found) == pytest.approx(np.full(4, lift), abs=1e-12)
    assert found.points["normal"][0, :4] == pytest.approx(np.tile([0, 0, 1], (4, 1)), abs=1e-12)
    features = set(found.points["feature"][0, :4].tolist())
    slid = touches(ground, spec, at(0, 0, 0), at(0.0101, 0.02, top + 0.1 + lift), 0.01)
    assert features == set(slid.points["feature"][0, :4].tolist())
    assert len(features) == 4


def test_cylinders_and_capsules_lie_on_lines_and_stand_on_rims():
    for ground, top in ((plane(), 0.0), (box(5.0, 5.0, 1.0), 1.0)):
        side = (np.pi / 2, 0.0, 0.0)
        for spec, count, gap in (
            (cylinder(0.1, 0.3), 2, 0.0),
            (capsule(0.1, 0.3), 2, 0.0),
        ):
            found = touches(ground, spec, at(0, 0, 0), at(0, 0, top + 0.1, turn=side), 0.01)
            assert gaps_of(found) == pytest.approx(np.full(count, gap), abs=1e-12)
            ends = np.sort(found.points["position"][0, :2, 1])
            assert ends == pytest.approx([-0.3, 0.3], abs=1e-12)
        standing = touches(ground, cylinder(0.1, 0.3), at(0, 0, 0), at(0, 0, top + 0.3), 0.01)
        assert gaps_of(standing) == pytest.approx(np.zeros(8), abs=1e-12)
        rim = np.linalg.norm(standing.points["position"][0, :, :2], axis=1)
        assert rim == pytest.approx(np.full(8, 0.1), abs=1e-12)
        tilted = (0.3, 0.2, 0.0)
        found = touches(ground, cylinder(0.1, 0.3), at(0, 0, 0), at(0, 0, top, turn=tilted), 9.0)
        z = Rotation.from_rotvec(tilted).as_matrix()[2]
        lowest = -0.3 * z[2] - 0.1 * np.hypot(z[0], z[1])
        assert found.gaps[0] == pytest.approx(lowest, abs=1e-12)


def test_edges_that_cross_touch_at_a_point_and_parallel_ones_at_two():
    """A bar across another, both on edge: closed forms."""
    edge, spec = 0.1 * np.sqrt(2), box(0.1, 1.0, 0.1)
    below = at(0, 0, 0, turn=(0.0, np.pi / 4, 0.0))
    R = (
        Rotation.from_rotvec([0, 0, np.pi / 2]) * Rotation.from_rotvec([0, np.pi / 4, 0])
    ).as_matrix()
    for gap in (-1e-3, 1e-3):
        above = Poses(R[None], np.array([[0.0, 0.0, 2 * edge + gap]]))
        found = touches(spec, spec, below, above, 0.01)
        assert gaps_of(found) == pytest.approx([gap], abs=1e-12)
        assert found.points["position"][0, 0] == pytest.approx([0, 0, edge + gap], abs=1e-12)
    along = at(0, 0.5, 2 * edge + 1e-3, turn=(0.0, np.pi / 4, 0.0))
    found = touches(spec, spec, below, along, 0.01)
    assert gaps_of(found) == pytest.approx([1e-3, 1e-3], abs=1e-9)
    ends = np.sort(found.points["position"][0, :2, 1])
    assert ends == pytest.approx([-0.5, 1.0], abs=1e-9)


@pytest.mark.parametrize("turn", [(0.0, 1e-3, 2e-3), (1e-5, 1e-5, 0.0), (0.0, -5e-3, 5e-3)])
def test_sides_that_all_but_lie_on_each_other_touch_at_four_points(turn):
    """A finger across a cube: its edges cross those of the cube, and what is between them meets.

    Each point is as far apart as the sides are there: the tilt times its distance from the middle.
    """
    finger, cube = box(0.011, 0.03, 0.003), box(0.02, 0.02, 0.02)
    tilt = Rotation.from_rotvec(turn).as_matrix()
    a, b = Poses(tilt[None], np.zeros((1, 3))), at((0.0, 0.0, 0.0229))
    found = touches(finger, cube, a, b, 1e-3)
    assert found.counts.tolist() == [4]
    points = found.points[0, :4]
    x, y = points["position"][:, :2].T
    assert sorted(np.abs(x)) == pytest.approx([0.011] * 4, abs=0.03 * np.linalg.norm(turn))
    assert sorted(np.abs(y)) == pytest.approx([0.02] * 4, abs=0.03 * np.linalg.norm(turn))
    n = tilt[:, 2]  # of the finger's side
    below = 0.0029 - ((0.003 - x * n[0] - y * n[1]) / n[2])
    assert points["gap"] == pytest.approx(below, abs=0.03 * np.linalg.norm(turn) ** 2)


def test_no_more_points_than_there_is_room_for():
    """A prism with 64 sides on a plane: extreme ones are left, so that it does not tip."""
    angle = 2 * np.pi * np.arange(64) / 64
    rim = 0.2 * np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    prism = hull(np.vstack([rim - [0, 0, 0.1], rim + [0, 0, 0.1]]))
    for ground, top in ((plane(), 0.0), (box(5.0, 5.0, 1.0), 1.0)):
        found = touches(ground, prism, at(0, 0, 0), at(0, 0, top + 0.1), 0.01)
        assert found.counts[0] == MOST_POINTS
        points = found.points["position"][0]
        away = np.sort(np.arctan2(points[:, 1], points[:, 0]))
        assert np.diff([*away, away[0] + 2 * np.pi]).max() < 2 * np.pi / MOST_POINTS * 1.6


@pytest.mark.parametrize(
    ("a", "b", "gap"),
    [
        (sphere(0.1), sphere(0.2), -0.3),
        (sphere(0.1), capsule(0.2, 0.3), -0.3),
        (capsule(0.1, 0.3), capsule(0.2, 0.3), -0.3),
        (sphere(0.1), box(0.2, 0.3, 0.4), -0.3),
        (sphere(0.0), sphere(0.0), 0.0),
        (sphere(0.0), box(0.0, 0.0, 0.0), 0.0),
        (box(0.0, 0.0, 0.0), box(0.0, 0.0, 0.0), 0.0),
        (box(0.1, 0.1, 0.0), box(0.1, 0.1, 0.0), 0.0),
        (box(0.1, 0.2, 0.3), box(0.1, 0.2, 0.3), -0.2),
        (cylinder(0.1, 0.3), cylinder(0.1, 0.3), -0.2),
        (CUBE, CUBE, -0.2),
        (CUBE, box(0.1, 0.1, 0.1), -0.2),
        (capsule(0.0, 0.0), CUBE, -0.1),
        (cylinder(0.0, 0.1), CUBE, -0.1),
    ],
)
def test_what_coincides_has_a_sensible_answer(a, b, gap):
    """Centres in one place, shapes without a size: finite, the depth right, the normal a unit."""
    for turn in ((0.0, 0.0, 0.0), (1e-9, 0.0, 0.0)):
        found = touches(a, b, at(0, 0, 0), at(0, 0, 0, turn=turn), 1.0)
        assert found.counts[0] >= 1
        assert found.gaps[0] == pytest.approx(gap, abs=2e-6)
        count = found.counts[0]
        assert np.isfinite(found.points["position"][0, :count]).all()
        normals = found.points["normal"][0, :count]
        assert np.linalg.norm(normals, axis=1) == pytest.approx(np.ones(count), abs=1e-12)


def test_what_a_plane_parts_does_not_overlap(rng):
    """Where the search ends at slivers: some in a hundred of these had been taken to overlap."""
    number, turn = 400, Rotation.from_rotvec([0.7500634846, -0.7118614711, -0.9031288712])
    a = Poses(np.tile(np.eye(3), (number, 1, 1)), np.zeros((number, 3)))
    p = [-0.4320551052, -0.6370490238, -0.2251698567] + 1e-7 * rng.normal(size=(number, 3))
    found = touches(SHAPES["cylinder"], SHAPES["hull"], a, Poses(a.R @ turn.as_matrix(), p), 10.0)
    assert np.ptp(found.gaps) < 2e-6  # they were moved by a tenth of a micrometre


def test_far_from_the_origin_is_as_near_it():
    """All is computed in the axes of one of the two: a kilometre away costs its round-off only."""
    far = np.array([1000.0, -2000.0, 500.0])
    turn = (0.2, -0.1, 0.5)
    for a, b in ((box(0.1, 0.2, 0.3), CUBE), (cylinder(0.1, 0.2), sphere(0.1))):
        near = touches(a, b, at(0, 0, 0), at(0.15, 0.1, 0.2, turn=turn), 1.0)
        away = touches(a, b, at(*far), at(*(far + [0.15, 0.1, 0.2]), turn=turn), 1.0)
        assert away.gaps == pytest.approx(near.gaps, abs=1e-11)


def test_hulls_of_points_that_have_none_are_refused():
    with pytest.raises(ModelError, match="no convex hull"):
        hull(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]))
    with pytest.raises(ModelError, match="finite"):
        hull(np.full((8, 3), np.nan))
