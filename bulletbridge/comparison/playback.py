"""Both solvers side by side in Bullet's own window, in real time."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import pybullet

from bulletbridge.bullet.reader import BulletBodies
from bulletbridge.bullet.worlds import connect_window, disconnect, require_display
from bulletbridge.comparison.native import DEFAULT, NativeWorld, NoNativeTwinError
from bulletbridge.comparison.options import CompareOptions, load_options
from bulletbridge.errors import WorldError
from bulletbridge.mechanism.frames import triple
from bulletbridge.models.bodies import load_bodies, load_scenery
from bulletbridge.models.load import load
from bulletbridge.models.modal_beams import read_world
from bulletbridge.models.model_spec import BodySpec, ModelSpec
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System
from bulletbridge.viewer.overlay import (
    Mark,
    Overlay,
    Scale,
    is_seen,
    magnification,
    marks_of,
    not_rendered,
    put_text,
)
from bulletbridge.viewer.pictures import (
    ASPECT,
    HALF,
    Camera,
    Framing,
    colour_bare,
    framing_of,
    link_centres,
)
from bulletbridge.viewer.rods import Rods
from bulletbridge.viewer.sliders import Sliders, Switch, hide_panels

FRAMES_PER_SECOND = 60.0
PREVIEW = 4.0
"""Seconds of motion that the camera is set up for."""
WINDOW_HALF = 1.0
"""Tangent of half the field of view of Bullet's window, vertical."""
TALL, ABOVE = 1.6, 1.2
"""Heights of the picture that is all of a mechanism: what a window shows at least, and where words
stand above and below, clear of it."""
LINE = 0.18
"""Height of a line of words, in such heights."""
PAIR_WIDTHS = 2.7
"""Widths of the picture of two copies side by side, in those of one."""
CAPTION = 0.33
"""Width of a line of words, in that of the window."""
ASKED = "--gui", "run it on a desktop, under xvfb-run, or use --report for pictures"
LOADING = "loading; what is new here is compiled first"
PRESS = "press g for sliders and reactions"
MOST_WAITS, WAIT = 200, 0.01  # until a window has the camera that it was given; [s]
OURS, THEIRS, HINT = (0.04, 0.43, 0.31), (0.82, 0.29, 0.36), (0.3, 0.3, 0.3)


@dataclass
class Stage:
    """One copy of the model in the window."""

    bodies: BulletBodies
    offset: Array  # (3,) [m]
    caption: str
    colour: tuple[float, float, float]
    overlay: Overlay
    line: Array  # (3,) [m] from a line of its words up to the one above
    rods: Rods
    text: int = -1
    detail: int = -1

    def show(self, q: Array) -> None:
        """Move the copy to a configuration (nq,)."""
        shifted = q.copy()
        for joint in self.bodies.mechanism.joints.values():
            if joint.kind == "free":
                shifted[joint.q.start : joint.q.start + 3] += self.offset
        self.bodies.write(shifted, np.zeros(self.bodies.mechanism.nv))
        self.rods.show()

    def annotate(
        self, system: System, state: tuple[Array, Array, float], at: Array, reactions: bool
    ) -> None:
        """Draw the gaps at a state, on request what the loops of ours do, and tell the largest."""
        if not self.overlay.due:
            return
        q, _, t = state
        evaluation = system.evaluate(*state)
        text = f"{self.caption}: gap {evaluation.largest('kept_metres'):.1e} m"
        if not evaluation.largest("kept_metres"):
            text = f"{self.caption}: gap {evaluation.largest('kept_radians'):.1e} rad"
        still = np.zeros(3)
        gaps = system.gap_vectors(q, t, kept=True)
        marks = (
            [replace(mark, told=False) for mark in marks_of(system)]
            if reactions
            else [
                Mark(name, point - gap, point, still, still, told=False)
                for name, (point, gap) in gaps.items()
            ]
        )
        self.overlay.update(
            replace(mark, point_a=mark.point_a + self.offset, point_b=mark.point_b + self.offset)
            for mark in marks
        )
        detail = where_widest({name: gap for name, (_, gap) in gaps.items()}, self.overlay.length)
        client, at = self.bodies.client, at + self.offset
        with not_rendered(client):
            self.text = put_text(client, text, at, self.colour, 1.4, self.text)
            self.detail = put_text(client, detail, at - self.line, self.colour, 1.1, self.detail)


def where_widest(gaps: Mapping[str, Array], length: float) -> str:
    """Which of the gaps (3,) [m] is widest, and how much longer it is drawn; empty if unseen."""
    sizes = {name: float(np.linalg.norm(gap)) for name, gap in gaps.items()}
    name = max(sizes, key=lambda each: sizes[each], default="")
    if not name or not is_seen(sizes[name], length):
        return ""
    factor = magnification(sizes[name], length)
    return f"at {name}" + (f", drawn {factor:,.0f} times as long" if factor > 1.0 else "")


def view(model: str | Path | ModelSpec, options: CompareOptions) -> None:
    """Show a model under both solvers for its duration, or until the window is closed.

    The window only shows: each solver advances its own world. Where Bullet cannot close the model,
    ours is shown alone.

    Raises:
        WorldError: There is no display, or another window is open.
        BulletBridgeError: The model cannot be loaded, or a step failed.
    """
    require_display(*ASKED)
    with contextlib.ExitStack() as closing:
        window = _open_window()  # the first client: of others Bullet does not tell the camera
        closing.callback(disconnect, window)
        loaded = closing.enter_context(load(model, "new", **load_options(options, "projector")))
        system, spec = loaded.system, loaded.spec
        start = system.q, system.v
        framing = framing_of(loaded.bodies, preview(system, options))
        native: NativeWorld | None = None
        with contextlib.suppress(NoNativeTwinError):
            settings = replace(DEFAULT, limits=options.limits)
            native = NativeWorld(spec, *start, options.dt, settings)
            closing.callback(native.close)
        try:
            stages = _build(system, spec, window, framing.camera, native is not None)
            _play(system, native, stages, framing, options, spec.actuated)
        except (pybullet.error, WorldError):
            if pybullet.isConnected(window):
                raise  # otherwise the window was closed, which ends the show


def preview(system: System, options: CompareOptions) -> list[Array]:
    """Configurations (nq,) over the next seconds, without moving the system or showing anything."""
    q, v, t = system.q, system.v, system.t
    steps = max(1, min(options.steps, round(PREVIEW / options.dt)))
    found = list(system.rollout(steps, max(1, steps // 8)).q)
    system.set_state(q, v, t)
    return [q, *found]


def _open_window() -> int:
    window = connect_window(*ASKED)
    pybullet.configureDebugVisualizer(pybullet.COV_ENABLE_SHADOWS, 0, physicsClientId=window)
    hide_panels(window)
    cover(window)
    return window


def _build(system: System, spec: ModelSpec, window: int, camera: Camera, pair: bool) -> list[Stage]:
    """One or two copies of the model next to each other, and a camera that sees them."""
    apart = CAPTION * ASPECT * TALL * HALF * camera.distance  # of narrow ones, for the captions
    shift = max(0.65 * camera.width, apart) * camera.right
    offsets = [-shift, shift] if pair else [np.zeros(3)]
    captions = [("bulletbridge", OURS), ("Bullet", THEIRS)]
    stages: list[Stage] = []
    for offset, (caption, colour) in zip(offsets, captions, strict=False):
        moved = replace(
            spec,
            bodies=tuple(_moved(body, offset) for body in spec.bodies),
            scenery=tuple(_moved(body, offset) for body in spec.scenery),
        )
        ids = load_bodies(moved, window)
        load_scenery(moved, window)
        colour_bare(ids.values(), window)
        bodies = read_world(spec, ids, window)
        overlay = Overlay(window, Scale.of(system), system.encoded.length, gap_colour=colour)
        line = LINE * HALF * camera.distance * camera.up
        rods = Rods(spec.constraints, bodies)
        stages.append(Stage(bodies, offset, caption, colour, overlay, line, rods))
        stages[-1].show(system.q)
    centres = np.concatenate([link_centres(each.bodies) for each in stages])
    near = float(((centres - camera.target) @ camera.direction).max())
    look(window, camera, PAIR_WIDTHS if pair else 1.4, max(near, 0.0))
    uncover(window)
    return stages


def look(window: int, camera: Camera, widths: float, near: float = 0.0) -> None:
    """Point the camera of a window so that it sees this many times the width of a mechanism.

    Args:
        window: Bullet's client id.
        camera: By which the mechanism fills a picture.
        widths: How many of them the window is wide.
        near: How much nearer than the target something is that is to be seen as well [m].
    """
    towards = -camera.direction
    needed = camera.width * widths / (2.0 * WINDOW_HALF * ASPECT) + near
    distance = max(needed, TALL * camera.distance * HALF / WINDOW_HALF)
    pybullet.resetDebugVisualizerCamera(
        cameraDistance=distance,
        cameraYaw=float(np.degrees(np.arctan2(-towards[0], towards[1]))),
        cameraPitch=float(np.degrees(np.arcsin(towards[2]))),
        cameraTargetPosition=camera.target.tolist(),
        physicsClientId=window,
    )
    for _ in range(MOST_WAITS):  # what goes along reads it
        if abs(pybullet.getDebugVisualizerCamera(window)[10] - distance) < 1e-3 * distance:
            break
        sleep(WAIT)


def cover(window: int) -> None:
    """Show but a word in a window until ``uncover``: no robots half loaded, no nothing either."""
    put_text(window, LOADING, np.zeros(3), HINT, 1.1)
    pybullet.configureDebugVisualizer(pybullet.COV_ENABLE_RENDERING, 0, physicsClientId=window)


def uncover(window: int) -> None:
    """Show what is in the world, once it is posed and the camera stands."""
    pybullet.removeAllUserDebugItems(physicsClientId=window)
    pybullet.configureDebugVisualizer(pybullet.COV_ENABLE_RENDERING, 1, physicsClientId=window)


def above(camera: Camera) -> Array:
    """Where words stand clear of a mechanism, in the middle above it (3,) [m]."""
    return camera.target + ABOVE * HALF * camera.distance * camera.up


def go_along(window: int, target: Array) -> None:
    """Point the camera of a window at a place (3,) [m], turned and as near as it is now.

    Where it points is not asked: Bullet tells that of a picture some calls ago.
    """
    *_, yaw, pitch, distance, _ = pybullet.getDebugVisualizerCamera(window)
    if distance > 0.0:  # else it is not told
        place = target.tolist()
        pybullet.resetDebugVisualizerCamera(distance, yaw, pitch, place, physicsClientId=window)


def _moved(body: BodySpec, offset: Array) -> BodySpec:
    return replace(body, xyz=triple(np.add(body.xyz, offset)))


def _play(
    system: System,
    native: NativeWorld | None,
    stages: Sequence[Stage],
    framing: Framing,
    options: CompareOptions,
    actuated: Sequence[str],
) -> None:
    """Advance both worlds with the clock; a slow machine slows time instead of skipping steps."""
    window, camera, way = stages[0].bodies.client, framing.camera, np.zeros(3)
    at = above(camera)
    height = at - camera.target
    at = at - 0.4 * camera.width * camera.right
    per_frame = max(1, round(1.0 / (FRAMES_PER_SECOND * options.dt)))
    below = at - 2.0 * height
    hint = put_text(window, PRESS, below, HINT, 1.1)
    sliders, reactions = Sliders(window, system, actuated), Switch(window, "reactions")
    done, due = 0, perf_counter()
    while done < options.steps and pybullet.isConnected(window):
        steps = min(per_frame, options.steps - done)
        if sliders.apply(system) and native is not None:
            native.drive(sliders.torques, system.gravity)
        system.rollout(steps)
        states: list[tuple[Array, Array, float]] = [(system.q, system.v, system.t)]
        if native is not None:
            for _ in range(steps):
                native.advance()
            states.append((*native.state(), native.t))
        done += steps
        for stage, state in zip(stages, states, strict=True):
            stage.show(state[0])
        if framing.centre is not None:
            middle = link_centres(stages[0].bodies).mean(axis=0) - stages[0].offset
            way = middle - framing.centre
            go_along(window, camera.target + way)
            if stages[0].overlay.due:
                hint = put_text(window, PRESS, below + way, HINT, 1.1, hint)
        for stage, state in zip(stages, states, strict=True):
            stage.annotate(system, state, at + way, reactions.on and stage is stages[0])
        due = max(due + steps * options.dt, perf_counter())
        sleep(max(0.0, due - perf_counter()))
