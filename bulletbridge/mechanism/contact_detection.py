"""All contacts of a mechanism with itself and with what stands around it, at a configuration."""

import math
from typing import NamedTuple

from bulletbridge.collision.broad_phase import (
    are_within,
    list_pairs,
    may_meet,
    place,
    told_up_to,
)
from bulletbridge.collision.narrow_phase import meet
from bulletbridge.collision.records import (
    COLLIDE,
    NEVER,
    UNDECIDED,
    UNKNOWN,
    Hulls,
    Placed,
    Room,
    Shape,
)
from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.mechanism.kinematics import (
    kinematics,
    pose_twist,
    put_twists,
    world_position,
)
from bulletbridge.mechanism.records import Axis, Beam, Body, ContactPoint, Pose, Station
from bulletbridge.mechanism.surfaces import MOST_LINKS, SurfaceLink, put_surface
from bulletbridge.numerics.records import Array, Ints, Mask, Records
from bulletbridge.numerics.spatial import (
    ZERO,
    Matrix,
    add,
    apply,
    mat,
    mul,
    norm,
    put,
    put_mat,
    rotation,
    scale,
    sub,
    vec,
    velocity_at,
)

CONTACTS, ASKED, PAIRS, STRANGER, OUTSIDE, COUNTS = range(6)
"""Counts of a detection: contacts, pairs of links somebody must be asked about, pairs of shapes
that are listed, pair of links plus one of which one is a stranger, shapes that have left the
region around which everything is known."""
LOWER, UPPER = range(2)
"""Corners of that."""
SHAPES_OF_LINK = 4096
"""Room for them where features of contacts are numbered."""
CLEARLY = 1e-6
"""Penetration [m] from which links are taken to have met, whoever is asked whether they collide."""


class Detection(NamedTuple):
    """What a detection works on.

    Attributes:
        bodies: Of the mechanism.
        beams: Of the mechanism,
        stations: and theirs.
        poses: (bodies,) scratch.
        axes: (nv,) scratch.
        shapes: (n,) of all links, in the order of these.
        links: Those of the mechanism first.
        region: (2, 3) in which links of the mechanism meet nothing but what is told here [m].
        hulls: Corners and sides of hulls.
        collide: (links, links) whether two links collide, the smaller first.
        placed: (n,) scratch.
        order: (n,) of the shapes, kept from call to call.
        around: (n, 6) AABBs with room around them, in which the pairs are all that may touch.
        room: Scratch for two shapes.
        pairs: Of shapes, kept from call to call.
        contacts: Receives the contacts.
        asked: Receives pairs of links, as a * links + b, of which it is not known whether they
            collide, or how, and which clearly do meet now. Until that is known links of one robot
            are taken not to collide, others to do so.
        counts: (COUNTS,) receives how many there are of each; more contacts or pairs than there
            is room for are not written.
    """

    bodies: Records[Body]
    beams: Records[Beam]
    stations: Records[Station]
    poses: Records[Pose]
    axes: Records[Axis]
    shapes: Records[Shape]
    links: Records[SurfaceLink]
    region: Array
    hulls: Hulls
    collide: Ints
    placed: Records[Placed]
    order: Ints
    around: Array
    room: Room
    pairs: Ints
    contacts: Records[ContactPoint]
    asked: Ints
    counts: Ints


class Nearby(NamedTuple):
    """Contacts whose bodies are to be displaced against each other."""

    contacts: Records[ContactPoint]  # (n,) that were found where the last detection was
    dt: float  # of the step in which they are found [s]
    reach: float  # turn [rad] about them,
    way: float  # and displacement [m]
    near: float  # distance within which they are the same [m]
    # (n,) receives which of them have another name there: of two faces that are flat on each other
    # either names the points
    flat: Mask
    centres: Array  # (n, 3) receives points [m], and
    # (n, 6, SLOPES) what contacts change by as body b turns about axes of the world through these,
    # and moves along them, while body a stays
    slopes: Array


GAP, POSITION, NORMAL, DIRECTION, SLOPES = 0, 1, 4, 7, 10
"""Columns of ``Nearby.slopes``: a number, and three times three."""
ORDER_4 = (-2.0, 1.0 / 12.0), (-1.0, -2.0 / 3.0), (1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0)
"""Places, and weights, of a central difference of order four."""


class LinksAround(NamedTuple):
    """Links of a detection that no body of the mechanism carries, and where their shapes are."""

    links: Records[SurfaceLink]  # all of the detection,
    shapes: Records[Shape]  # and their shapes in the bodies of the mechanism or in the world
    on_links: Records[Shape]  # (n,) these shapes, in the links' inertial frames


@kernel
def place_links(a: LinksAround, first: int, before: Array, now: Array, reaches: Array) -> int:
    """Put links into the world, and how far their points went on the way there; how many.

    Args:
        a: All links.
        first: The first of those that are put there.
        before: (n, 7) positions and quaternions of their inertial frames at the last look,
        now: (n, 7) and at this one.
        reaches: (n,) how far from there their points are at most [m].
    """
    for k in range(len(now)):
        x, link = now[k], a.links[first + k]
        size = math.sqrt(x[3] * x[3] + x[4] * x[4] + x[5] * x[5] + x[6] * x[6])
        R, p = rotation(x[3] / size, x[4] / size, x[5] / size, x[6] / size), vec(x)
        put_mat(link.R, R)
        cosine = 0.0
        for i in range(3, 7):
            cosine += before[k, i] * now[k, i]
        link.way = norm(sub(p, vec(before[k])))
        if cosine * cosine < 1.0:  # planes reach without end
            link.way += 2.0 * reaches[k] * math.sqrt(1.0 - cosine * cosine)
        i = link.first
        while i < len(a.shapes) and a.shapes[i].link == first + k:
            put_mat(a.shapes[i].R, mul(R, mat(a.on_links[i].R)))
            put(a.shapes[i].p, add(p, apply(R, vec(a.on_links[i].p))))
            i += 1
    return len(now)


@kernel
def find_contacts(d: Detection, q: Array, v: Array, dt: float) -> int:
    """Contacts at a configuration; how many, or -1 if ``counts`` are to be looked at.

    Args:
        d: What the detection works on; receives them.
        q: (nq,)
        v: (nv,) rates, which say from how far shapes may meet in
        dt: a step [s].
    """
    kinematics(d.bodies, d.beams, d.stations, q, d.poses, d.axes)
    put_twists(d.bodies, d.axes, v, d.poses)
    for i in range(1, len(d.poses)):  # shapes are placed in the world
        pose = d.poses[i]
        put(pose.v, velocity_at(pose_twist(pose), scale(-1.0, vec(pose.origin))))
        put(pose.p, world_position(pose))
    place(d.shapes, d.poses, d.placed)
    if dt > 0.0:
        for k in range(len(d.shapes)):  # what others move comes towards us as well
            d.placed[k].speed += d.links[d.shapes[k].link].way / dt
    counts = d.counts
    counts[CONTACTS] = counts[ASKED] = counts[STRANGER] = 0
    counts[OUTSIDE] = count_outside(d)
    if counts[PAIRS] > len(d.pairs) or not are_within(d.shapes, d.placed, d.around):
        counts[PAIRS] = list_pairs(d.shapes, d.placed, d.around, d.order, d.pairs, dt)
    if counts[PAIRS] > len(d.pairs):
        return -1
    n = len(d.shapes)
    for k in range(counts[PAIRS]):
        pair = int(d.pairs[k])
        i, j = pair // n, pair % n
        a, b, at_a, at_b = d.shapes[j], d.shapes[i], d.placed[j], d.placed[i]
        limit = told_up_to(a, b, at_a, at_b, dt)
        if d.links[a.link].stranger + d.links[b.link].stranger > 0:
            # others are where the step begins, and impacts in Bullet's step begin at its margin
            limit = min(limit + dt * (at_a.speed + at_b.speed), a.margin + b.margin)
        if may_meet(at_a, at_b, limit):
            add_contacts(d, i, j, limit)
    known = counts[ASKED] == 0 and counts[STRANGER] == 0 and counts[OUTSIDE] == 0
    return counts[CONTACTS] if known and counts[CONTACTS] <= len(d.contacts) else -1


@kernel
def vary_contacts(d: Detection, s: Nearby) -> int:
    """What contacts change by with their bodies; the first that is not there, or how many.

    Their shapes alone are placed beside where they were found last, and met: differences are taken
    of no more than that.
    """
    for i in range(len(s.contacts)):
        first = 0
        while not are_of_one_pair(s.contacts[first], s.contacts[i]):
            first += 1
        put(s.centres[i], vec(s.contacts[first].position))
        if first == i:
            pair = shapes_of(d, s.contacts[i])
            if pair < 0 or not vary_pair(d, s, i, (pair // len(d.shapes), pair % len(d.shapes))):
                return i
    return len(s.contacts)


@helper
def are_of_one_pair(one: ContactPoint, other: ContactPoint) -> bool:
    """Whether two contacts are of the same shapes."""
    return one.pair == other.pair and (one.feature - other.feature) % SHAPES_OF_LINK**2 == 0


@helper
def shapes_of(d: Detection, contact: ContactPoint) -> int:
    """The pair of shapes that have met at a contact, as listed; -1 if none has."""
    n, own = len(d.shapes), int(contact.feature) % SHAPES_OF_LINK**2
    for k in range(min(d.counts[PAIRS], len(d.pairs))):
        pair = int(d.pairs[k])
        b, a = d.shapes[pair // n], d.shapes[pair % n]
        at_a, at_b = d.links[a.link], d.links[b.link]
        shapes = (pair // n - at_b.first) * SHAPES_OF_LINK + pair % n - at_a.first
        if shapes == own and contact.pair == number_of_pair(at_a, at_b):
            return -1 if a.kind == UNKNOWN or b.kind == UNKNOWN else pair
    return -1


@outlined
def vary_pair(d: Detection, s: Nearby, first: int, pair: tuple[int, int]) -> bool:
    """``vary_contacts`` of two shapes, by their first one; whether all are found beside."""
    here, of = d.placed[pair[0]], d.shapes[pair[0]]
    pose, centre, found = d.poses[of.body], vec(s.centres[first]), True
    R, p, turned = mat(here.R), vec(here.p), mat(pose.R)
    limit = told_up_to(d.shapes[pair[1]], of, d.placed[pair[1]], here, s.dt)
    for i in range(first, len(s.contacts)):
        if are_of_one_pair(s.contacts[first], s.contacts[i]):
            s.flat[i] = False
            for c in range(6):
                for j in range(SLOPES):
                    s.slopes[i, c, j] = 0.0
    for c in range(6):
        for m in range(len(ORDER_4)):
            reach = s.reach if c < 3 else s.way
            x, weight = reach * ORDER_4[m][0], ORDER_4[m][1] / reach
            turn, to = turn_about(c, x), ZERO
            if c > 2:
                to = (x if c == 3 else 0.0, x if c == 4 else 0.0, x if c == 5 else 0.0)
            put_mat(here.R, mul(turn, R))
            put(here.p, add(add(centre, to), apply(turn, sub(p, centre))))
            put_mat(pose.R, mul(turn, turned))
            a, at_a = d.shapes[pair[1]], d.placed[pair[1]]
            count = meet(a, of, at_a, here, d.hulls, d.room, limit)
            for i in range(first, len(s.contacts)):
                if are_of_one_pair(s.contacts[first], s.contacts[i]):
                    found = found and add_beside(d, s, (i, c), pair, count, weight)
    put_mat(here.R, R)
    put(here.p, p)
    put_mat(pose.R, turned)
    return found


@helper
def turn_about(axis: int, x: float) -> Matrix:
    """A turn about one of three axes; none about another."""
    c, s = math.cos(x), math.sin(x)
    if axis == 0:
        return (1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c)
    if axis == 1:
        return (c, 0.0, s), (0.0, 1.0, 0.0), (-s, 0.0, c)
    if axis == 2:
        return (c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)
    return (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@outlined
def add_beside(
    d: Detection, s: Nearby, at: tuple[int, int], pair: tuple[int, int], count: int, weight: float
) -> bool:
    """Add a contact, where its shapes are, to what it changes by; whether it is there.

    Args:
        d: Where they have met; the first of its contacts is scratch.
        s: Contacts.
        at: Which one, and how its body was displaced.
        pair: Its shapes.
        count: Of points at which they meet.
        weight: Of this place.
    """
    b, a, touches = d.shapes[pair[0]], d.shapes[pair[1]], d.room.found
    wanted, slopes = s.contacts[at[0]], s.slopes[at[0], at[1]]
    nearest, least, named = -1, math.inf, False
    for k in range(count):
        own = touches[k].feature == wanted.feature // SHAPES_OF_LINK**2
        away = norm(sub(vec(touches[k].position), vec(wanted.position)))
        if (own and not named) or (own == named and away < least):
            nearest, least, named = k, away, own
    if not least <= s.near:
        return False
    s.flat[at[0]] = s.flat[at[0]] or not named
    touch, scratch = touches[nearest], d.contacts[0]
    put(scratch.normal, vec(touch.normal))
    put_surface(scratch, d.links[a.link], d.links[b.link], d.poses)
    slopes[GAP] += weight * touch.gap
    for c in range(3):
        slopes[POSITION + c] += weight * touch.position[c]
        slopes[NORMAL + c] += weight * touch.normal[c]
        slopes[DIRECTION + c] += weight * scratch.direction[c]
    return True


@outlined
def count_outside(d: Detection) -> int:
    """How many shapes of the mechanism have left the region, with the margins around them."""
    count = 0
    for k in range(len(d.shapes)):
        shape, here = d.shapes[k], d.placed[k]
        if shape.body == 0:
            continue
        inside = True
        for c in range(3):
            low, high = here.lower[c] - shape.margin, here.upper[c] + shape.margin
            inside = inside and d.region[LOWER, c] <= low and high <= d.region[UPPER, c]
        count += 0 if inside else 1
    return count


@kernel
def finish_contacts(
    contacts: Records[ContactPoint], pairs: Ints, links: Records[SurfaceLink], poses: Records[Pose]
) -> int:
    """Write how surfaces rub at contacts (n,) whose place and normal are known.

    Args:
        contacts: (n,)
        pairs: (n, 2) links of each, the larger number first.
        links: All of them.
        poses: Of the bodies.
    """
    for k in range(len(contacts)):
        a, b = links[int(pairs[k, 0])], links[int(pairs[k, 1])]
        contacts[k].pair = number_of_pair(a, b)
        put_surface(contacts[k], a, b, poses)
    return len(contacts)


@helper
def number_of_pair(a: SurfaceLink, b: SurfaceLink) -> int:
    """A number of two links that does not depend on what else is near."""
    return a.number * MOST_LINKS + b.number


@outlined
def add_contacts(d: Detection, i: int, j: int, limit: float) -> None:
    """Add the contacts of shapes i < j that are nearer than a limit [m]."""
    b, a = d.shapes[i], d.shapes[j]
    pair = a.link * len(d.links) + b.link
    known = d.collide[b.link, a.link]
    if known == NEVER:
        return
    if a.kind == UNKNOWN or b.kind == UNKNOWN:
        ask(d.asked, d.counts, pair)
        return
    hidden = known == UNDECIDED and d.links[a.link].robot == d.links[b.link].robot
    if hidden:  # not told, only whether they clearly meet
        limit = min(limit, 0.0)
    count = meet(a, b, d.placed[j], d.placed[i], d.hulls, d.room, limit)
    if count == 0:
        return
    if known != COLLIDE:
        for k in range(count):
            if d.room.found[k].gap < -CLEARLY:
                ask(d.asked, d.counts, pair)
                break
        if hidden:
            return
    if d.links[a.link].stranger + d.links[b.link].stranger > 0:
        # whether they collide is asked only once they clearly meet, when others have moved it there
        d.counts[STRANGER] = pair + 1
        return
    first = int(d.counts[CONTACTS])
    d.counts[CONTACTS] += count
    if d.counts[CONTACTS] > len(d.contacts):
        return
    for k in range(count):
        touch, contact = d.room.found[k], d.contacts[first + k]
        put(contact.position, vec(touch.position))
        put(contact.normal, vec(touch.normal))
        contact.gap = touch.gap
        contact.pair = number_of_pair(d.links[a.link], d.links[b.link])
        shapes = (i - d.links[b.link].first) * SHAPES_OF_LINK + j - d.links[a.link].first
        contact.feature = touch.feature * SHAPES_OF_LINK**2 + shapes
        put_surface(contact, d.links[a.link], d.links[b.link], d.poses)


@outlined
def ask(asked: Ints, counts: Ints, pair: int) -> None:
    """Note a pair of links once, if there is room."""
    for k in range(min(counts[ASKED], len(asked))):
        if asked[k] == pair:
            return
    if counts[ASKED] < len(asked):
        asked[counts[ASKED]] = pair
    counts[ASKED] += 1
