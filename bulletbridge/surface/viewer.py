"""Both solvers side by side in Bullet's own window, in real time."""

import os
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import pybullet

from bulletbridge.constraints.loop import Distance, Frame, LoopJoint
from bulletbridge.errors import WorldError
from bulletbridge.mechanism.bullet import BulletBodies, read_bullet
from bulletbridge.mechanism.frames import locate
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.layout import POSE
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.system import System
from bulletbridge.surface.compare import Plan
from bulletbridge.surface.load import load
from bulletbridge.surface.loops_file import ModelSpec
from bulletbridge.surface.native import DEFAULT, NativeWorld, NoNativeTwinError
from bulletbridge.surface.pictures import frame_all, link_boxes
from bulletbridge.surface.worlds import disconnect, load_bodies, readable

FRAMES_PER_SECOND = 60.0
REFRESH = 0.2
"""Seconds between updates of texts and lines: each waits for a frame of the window."""
MAGNIFIED = 100.0
"""Gaps are drawn this much longer than they are."""
OURS, THEIRS = (0.04, 0.43, 0.31), (0.82, 0.29, 0.36)


def require_display() -> None:
    """Raise where Bullet's window cannot open; trying would end the process.

    Raises:
        WorldError: There is no display.
    """
    if sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
        raise WorldError(
            "--gui needs a display and DISPLAY is not set; run it on a desktop, under xvfb-run, "
            "or use --report for pictures"
        )


@dataclass
class Stage:
    """One copy of the model in the window."""

    spec: ModelSpec
    bodies: BulletBodies
    offset: Array  # (3,) [m]
    caption: str
    colour: tuple[float, float, float]
    items: dict[str, int] = field(default_factory=lambda: {})

    def show(self, q: Array) -> None:
        """Move the copy to a configuration (nq,)."""
        shifted = q.copy()
        for joint in self.bodies.mechanism.joints.values():
            if joint.kind == "free":
                shifted[joint.q.start : joint.q.start + 3] += self.offset
        self.bodies.write(shifted, np.zeros(self.bodies.mechanism.nv))

    def annotate(self, system: System, state: tuple[Array, Array, float], at: Array) -> None:
        """Draw the gap of each loop, magnified, and the largest in words."""
        evaluation = system.evaluate(*state)
        text = f"{self.caption}: gap {evaluation.largest('metres'):.1e} m"
        if not evaluation.largest("metres"):
            text = f"{self.caption}: gap {evaluation.largest('radians'):.1e} rad"
        client = self.bodies.client
        self.items["text"] = pybullet.addUserDebugText(
            text,
            (at + self.offset).tolist(),
            textColorRGB=self.colour,
            textSize=1.4,
            replaceItemUniqueId=self.items.get("text", -1),
            physicsClientId=client,
        )
        for name, a, b in loop_points(system, state[0]):
            self.items[name] = pybullet.addUserDebugLine(
                (a + self.offset).tolist(),
                (a + MAGNIFIED * (b - a) + self.offset).tolist(),
                lineColorRGB=self.colour,
                lineWidth=4,
                replaceItemUniqueId=self.items.get(name, -1),
                physicsClientId=client,
            )


def loop_points(system: System, q: Array) -> list[tuple[str, Array, Array]]:
    """Origins of frames a and b (3,) [m] of each loop at a state, by name."""
    mechanism = system.mechanism
    poses, axes = np.zeros(len(mechanism.bodies), POSE), mechanism.axes.copy()
    poses["R"] = np.eye(3)
    kinematics(mechanism.bodies, q, poses, axes)
    found: list[tuple[str, Array, Array]] = []
    for constraint in system.constraints:
        if not isinstance(constraint, LoopJoint | Distance):
            continue
        ends = [_origin(mechanism, poses, frame) for frame in (constraint.a, constraint.b)]
        found.append((constraint.name, ends[0], ends[1]))
    return found


def _origin(mechanism: Mechanism, poses: np.ndarray, frame: Frame) -> Array:
    body, _, p = locate(mechanism, frame.link, frame.xyz, frame.rpy)
    return poses[body]["p"] + poses[body]["R"] @ p


def view(model: str | Path | ModelSpec, plan: Plan) -> None:
    """Show a model under both solvers for the duration of a plan, or until the window is closed.

    The window only shows: each solver advances its own world. Where Bullet cannot close the model,
    ours is shown alone.

    Raises:
        WorldError: There is no display, or another window is open.
        BulletBridgeError: The model cannot be loaded, or a step failed.
    """
    require_display()
    with load(model, dt=plan.dt, integrator=plan.integrator, rtol=plan.rtol) as loaded:
        system, spec = loaded.system, loaded.spec
        boxes = link_boxes(loaded.ids, loaded.client)
        try:
            native = NativeWorld(spec, system.q, system.v, plan.dt, DEFAULT)
        except NoNativeTwinError:
            native = None
        window = _open_window()
        try:
            stages = _build(spec, window, boxes, native is not None)
            if native is None:
                _play(system, None, stages, boxes, plan)
            else:
                with closing(native):
                    _play(system, native, stages, boxes, plan)
        finally:
            disconnect(window)


def _open_window() -> int:
    try:
        window: int = pybullet.connect(pybullet.GUI)
    except pybullet.error as error:
        raise WorldError(f"Bullet cannot open its window: {error}") from None
    if window < 0:
        raise WorldError("Bullet cannot open its window; close the one that is open")
    pybullet.configureDebugVisualizer(pybullet.COV_ENABLE_GUI, 0, physicsClientId=window)
    pybullet.configureDebugVisualizer(pybullet.COV_ENABLE_SHADOWS, 0, physicsClientId=window)
    return window


def _build(spec: ModelSpec, window: int, boxes: Array, pair: bool) -> list[Stage]:
    """One or two copies of the model next to each other, and a camera that sees them."""
    alone = frame_all(boxes)
    right = np.cross([0.0, 0.0, 1.0], alone.direction)
    right /= max(float(np.linalg.norm(right)), 1e-9)
    corners = boxes.reshape(-1, 3)
    width = float(np.ptp(corners @ right)) if len(corners) else 1.0
    shift = 0.75 * max(width, 0.5 * alone.distance * 0.5) * right
    offsets = [-shift, shift] if pair else [np.zeros(3)]
    captions = [("bulletbridge", OURS), ("Bullet", THEIRS)]
    stages: list[Stage] = []
    pybullet.configureDebugVisualizer(pybullet.COV_ENABLE_RENDERING, 0, physicsClientId=window)
    for offset, (caption, colour) in zip(offsets, captions, strict=False):
        x, y, z = offset.tolist()
        moved = replace(
            spec,
            bodies=tuple(
                replace(body, xyz=(body.xyz[0] + x, body.xyz[1] + y, body.xyz[2] + z))
                for body in spec.bodies
            ),
        )
        ids = load_bodies(moved, window)
        stages.append(Stage(moved, read_bullet(readable(ids), window), offset, caption, colour))
    pybullet.configureDebugVisualizer(pybullet.COV_ENABLE_RENDERING, 1, physicsClientId=window)
    towards = -alone.direction
    pybullet.resetDebugVisualizerCamera(
        cameraDistance=alone.distance * (1.25 if pair else 1.0),
        cameraYaw=float(np.degrees(np.arctan2(-towards[0], towards[1]))),
        cameraPitch=float(np.degrees(np.arcsin(towards[2]))),
        cameraTargetPosition=alone.target.tolist(),
        physicsClientId=window,
    )
    return stages


def _play(
    system: System, native: NativeWorld | None, stages: Sequence[Stage], boxes: Array, plan: Plan
) -> None:
    """Advance both worlds with the clock; a slow machine slows time instead of skipping steps."""
    window = stages[0].bodies.client
    corners = boxes.reshape(-1, 3)
    middle, top = 0.5 * (corners.min(axis=0) + corners.max(axis=0)), corners[:, 2].max()
    at = np.array([middle[0], middle[1], top + 0.15 * float(np.ptp(corners[:, 2]) + 0.1)])
    per_frame = max(1, round(1.0 / (FRAMES_PER_SECOND * plan.dt)))
    annotated, done, pace = -np.inf, 0, perf_counter()
    while done < plan.steps and pybullet.isConnected(window):
        for _ in range(min(per_frame, plan.steps - done)):
            system.step(write=False)
            if native is not None:
                native.advance()
            done += 1
        states = [(system.q, system.v, system.t)]
        if native is not None:
            states.append((*native.state(), native.t))
        for stage, state in zip(stages, states, strict=False):
            stage.show(state[0])
        if perf_counter() - annotated > REFRESH:
            for stage, state in zip(stages, states, strict=False):
                stage.annotate(system, state, at)
            annotated = perf_counter()
        pace = max(pace + per_frame * plan.dt, perf_counter())
        sleep(max(0.0, pace - perf_counter()))
