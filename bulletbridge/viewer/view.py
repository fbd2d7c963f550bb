"""A system in a browser: sliders that keep its loops closed, a time line, forces in the loops."""

import io
import logging
import math
import time
from collections import deque
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bulletbridge.bullet.reader import BulletBodies
from bulletbridge.errors import (
    ModelError,
    WorldError,
    given_as,
    naming_the_extra,
    require_kind,
)
from bulletbridge.models.load import load
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.system.options import is_count
from bulletbridge.system.recording import Recording
from bulletbridge.system.system import System, require_system
from bulletbridge.viewer.dragging import drag, range_of
from bulletbridge.viewer.pictures import FROM_CORNER
from bulletbridge.viewer.scene import Scene

FRAMES_PER_SECOND = 30.0
MOST_SLIDERS = 40
STEP = 1e-3
"""Of sliders [rad], or as part of the power of ten at or below a length [m] or duration [s]."""
EXACTLY = 1e-9
"""Steps by which round-off may miss the end of a slider."""
ASIDE = 0.12
"""Sizes of the scene by which the camera looks to its right, where the panel is."""
ABOVE = 0.4
"""Part of a phone's page that is above the panel."""
PHONE, PANEL = 576, 340
"""Width of pages from which viser has its panel at their side, and of that [pixels]."""
PORT = 8080
IN_NOTEBOOKS = 560
"""Height of the page within a notebook [pixels]."""
BRAND = (16, 110, 116)
VISER = "the viewer needs viser", "bulletbridge[viewer]"


class Viewer:
    """A system that is shown in a browser; made by ``bulletbridge.view``.

    What is asked for in the browser is done in ``show`` and ``serve``, in the thread that calls
    them, so that nothing happens to the system while a program of yours computes with it.

    Args:
        system: With a Bullet world; its state is changed from the browser.
        recording: A run of it, for a time line.
        actuated: Joints whose sliders come first, and which stay while another one is moved; those
            of the robot's file unless given, or, where it names none, all.
        port: Of the page, the next one that is free.

    Attributes:
        server: Viser's, to which objects of your own may be added.
        scene: The objects of the world.
        said: What was in the way of the last slider; empty where nothing was.
    """

    def __init__(
        self,
        system: System,
        recording: Recording | None = None,
        actuated: Sequence[str] | None = None,
        port: int = PORT,
    ) -> None:
        require_system(system)
        if not isinstance(system.world, BulletBodies):
            raise ModelError("a view shows Bullet's world; make the system by load or attach")
        _require_same(system, recording)
        self._system, self._recording = system, recording
        mechanism = system.mechanism
        driven = mechanism.actuated if actuated is None else actuated
        self._still = tuple(name for name in driven if mechanism.joint(name).is_single)
        self.said = ""
        self._asked: deque[tuple[str, float]] = deque()
        self._playing: float | None = None  # wall time at which the recording would have begun
        system.write()
        self.server: Any = _server(port)
        try:
            self.scene = Scene(self.server, system, system.world.client)
            self._put_camera()
            self._add_panel()
            self.show()
        except BaseException:
            self.server.stop()
            raise

    def __repr__(self) -> str:
        """Where it is, and what answers there."""
        if self.server is None:
            return "<Viewer: closed>"
        return f"<Viewer: {self.url}, which show() and serve() answer>"

    def _repr_html_(self) -> str | None:
        """The page within a notebook; ``serve`` in the next cell answers it."""
        if self.server is None:
            return None
        return f'<iframe src="{self.url}" width="100%" height="{IN_NOTEBOOKS}"></iframe>'

    @property
    def url(self) -> str:
        """Where a browser on this machine finds it."""
        return f"http://{self.server.get_host()}:{self.server.get_port()}"

    def ask(self, name: str, value: float) -> None:
        """Ask for what a slider asks for; it is done by the next ``show``, or by ``serve``.

        Args:
            name: A joint, or ``time [s]`` of a recording.
            value: [rad or m, or s from the start of the recording]
        """
        self._asked.append((name, value))

    def show(self) -> None:
        """Do what was asked for in the browser, and show the system as it is then.

        Raises:
            WorldError: The bodies are not in the world any more.
        """
        self._answer()
        self.scene.show()
        self._tell()

    def serve(self) -> None:
        """Answer the browser until Control-C, or until ``close`` is called from elsewhere.

        Raises:
            WorldError: The bodies are not in the world any more.
        """
        try:
            while self.server is not None:
                begun = time.perf_counter()
                if self._asked or self._play():
                    self.show()
                left = 1.0 / FRAMES_PER_SECOND - (time.perf_counter() - begun)
                time.sleep(max(0.0, left))
        except KeyboardInterrupt:
            return

    def close(self) -> None:
        """Take the page away; the system stays as it is."""
        if self.server is not None:
            server, self.server = self.server, None
            with redirect_stdout(io.StringIO()):
                server.stop()

    def _answer(self) -> None:
        """Do what was asked for last of each slider."""
        latest: dict[str, float] = {}
        while self._asked:
            name, value = self._asked.popleft()
            latest.pop(name, None)
            latest[name] = value
        for name, value in latest.items():
            if name == TIME:
                self._go_to(value)
                if self._playing is not None:
                    self._playing = time.perf_counter() - value
            elif name == PLAY:
                self._start_or_stop()
            else:
                self._playing = None
                self.said = drag(self._system, name, value, self._still)

    def _go_to(self, t: float) -> None:
        """Show the state of the recording that is nearest to a time [s]."""
        run = self._recording
        assert run is not None
        k = int(np.abs(run.t - run.t[0] - t).argmin())
        self._system.set_state(run.q[k], run.v[k], float(run.t[k]))
        self._system.write()
        self.said = ""

    def _press(self, _event: object) -> None:
        self.ask(PLAY, 0.0)

    def _start_or_stop(self) -> None:
        if self._playing is not None:
            self._playing = None
            return
        now = float(self._time.value)
        self._playing = time.perf_counter() - (now if now < self._time.max else 0.0)

    def _play(self) -> bool:
        """Go on with the recording, from its start again after its end; whether it plays."""
        if self._playing is None:
            return False
        t = time.perf_counter() - self._playing
        if t > self._time.max:
            t, self._playing = 0.0, time.perf_counter()
        self._go_to(t)
        self._time.value = t
        return True

    def _put_camera(self) -> None:
        camera = self.server.initial_camera
        self._aim(camera, 0.95 * self.scene.size, ASIDE * self.scene.size, 0.0)
        camera.up = (0.0, 0.0, 1.0)
        camera.near = 0.01 * self.scene.size
        self.server.on_client_connect(self._watch)

    def _watch(self, client: Any) -> None:
        """Fit the view of a page to its shape once it looks."""
        client.camera.on_update(self._fit)

    def _fit(self, camera: Any) -> None:
        """On a page higher than wide, show all of the scene above the panel, or to its left.

        It is below on a phone, and beside the scene on what is wider.

        Not before the page tells that it looks from where all pages begin: a camera that is put
        elsewhere sooner goes back there.
        """
        start = self.server.initial_camera.position
        if camera.aspect >= 1.0 or not np.allclose(camera.position, start, rtol=1e-3):
            return
        upper = np.tan(0.5 * camera.fov)  # edge of the page, seen at distance 1
        above = camera.image_width < PHONE
        covered = 1.0 - ABOVE if above else PANEL / camera.image_width
        free = upper * min(camera.aspect, ABOVE) if above else upper * camera.aspect * (1 - covered)
        # middle of what the panel leaves
        aside = upper * covered * (1.0 if above else camera.aspect)
        distance = 0.5 * self.scene.size * np.hypot(1.0, 1.0 / free)
        distance *= 1.0 + aside**2  # off its axis a camera sees things longer
        right, up = (0.0, -aside) if above else (aside, 0.0)
        self._aim(camera, distance, right * distance, up * distance)

    def _aim(self, camera: Any, distance: float, right: float, up: float) -> None:
        """Look at a point beside the scene's middle [m], from the same side always."""
        back = FROM_CORNER / np.linalg.norm(FROM_CORNER)
        across = np.cross((0.0, 0.0, 1.0), back)
        across /= np.linalg.norm(across)
        camera.position = tuple(self.scene.middle + distance * back)
        camera.look_at = tuple(self.scene.middle + right * across + up * np.cross(back, across))

    def _add_panel(self) -> None:
        """Time line, state, sliders."""
        gui, system = self.server.gui, self._system
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=BRAND)
        gui.set_panel_label("bulletbridge")
        if self._recording is not None:
            end = max(float(self._recording.t[-1] - self._recording.t[0]), 1e-9)
            with gui.add_folder("Recording"):
                step = round_step(end)
                last = step * float(np.ceil(end / step - EXACTLY))
                now = min(max(system.t - float(self._recording.t[0]), 0.0), last)
                self._time = gui.add_slider(TIME, 0.0, last, step, round_to(now, step))
                self._listen(self._time, TIME)
                button = gui.add_button("Play / stop")
                button.on_click(self._press)
        self._state = gui.add_markdown("")
        self._sliders: dict[str, Any] = {}
        single = [n for n in system.mechanism.joints if system.mechanism.joint(n).is_single]
        others = [n for n in single if n not in self._still]
        for title, names in (("Drives", self._still), ("Joints", others)):
            if not names:
                continue
            with gui.add_folder(title, expand_by_default=names is self._still or not self._still):
                for name in names[: MOST_SLIDERS - len(self._sliders)]:
                    self._add_slider(name)

    def _add_slider(self, name: str) -> None:
        joint, length = self._system.mechanism.joint(name), self._system.encoded.length
        at = float(self._system.q[joint.q][0])
        turns = joint.kind == "revolute"
        step = STEP if turns else round_step(length)
        lower, upper = range_of(joint, at, length)
        lower = step * np.floor(lower / step + EXACTLY)
        upper = step * np.ceil(upper / step - EXACTLY)
        label = f"{name} [{'rad' if turns else 'm'}]"
        slider = self.server.gui.add_slider(label, float(lower), float(upper), float(step), at)
        self._sliders[name] = slider
        self._listen(slider, name)

    def _listen(self, slider: Any, name: str) -> None:
        """Note what a person sets a slider to; not what is set from here."""

        def note(event: Any) -> None:
            if event.client is not None:
                self.ask(name, float(slider.value))

        slider.on_update(note)

    def _tell(self) -> None:
        """Sliders where the joints are, and what the loops carry, in words."""
        system = self._system
        for name, slider in self._sliders.items():
            at = float(system.q[system.mechanism.joint(name).q][0])
            slider.value = min(max(round_to(at, slider.step), slider.min), slider.max)
        evaluation, reactions = system.evaluate(), system.reactions()
        lines = [f"**{self.said}**", ""] if self.said else []
        lines += [f"t = {system.t:.3f} s, {system.dof} freedom{'s' * (system.dof != 1)}", ""]
        if evaluation.gaps:
            lines += ["| loop | gap | force |", "|---|---|---|"]
        placed = system.gap_vectors()  # the others act along joints, not by a force
        for gap in evaluation.gaps:
            wide = f"{gap.metres:.1g} m" if gap.metres >= gap.radians else f"{gap.radians:.1g} rad"
            force = float(np.linalg.norm(reactions[gap.name].force))
            borne = f"{force:.{'0f' if force >= 1e3 else '3g'}} N" if gap.name in placed else "–"
            lines.append(f"| {gap.name} | {wide} | {borne} |")
        text = "\n".join(lines)
        if text != self._state.content:
            self._state.content = text


def round_to(value: float, step: float) -> float:
    """The multiple of a power of ten that is nearest, without digits that nobody reads."""
    return round(value, -round(float(np.log10(step))))


def round_step(length: float) -> float:
    """Step of a slider over such a length [m or s], without digits that nobody reads."""
    return STEP * 10.0 ** float(np.floor(np.log10(length)))


TIME, PLAY = "time [s]", "\0play"
"""What is asked for besides joints; no joint of a URDF can be called so."""


def view(
    system: System,
    recording: Recording | None = None,
    *,
    actuated: Sequence[str] | None = None,
    port: int = PORT,
    wait: bool = True,
) -> Viewer:
    """Show a system in a browser, with a slider for each joint that keeps its loops closed.

    Robots with their meshes and colours and all else in the world; points of loops, forces (orange)
    and moments (violet) that they carry; gaps and forces in words. A slider moves its joint as far
    as loops and limits let it, and says what stopped it. The page needs no network.

    Args:
        system: With a Bullet world, as from ``load`` or ``attach``. Sliders change its state.
        recording: A run of it, for a time line that plays.
        actuated: Joints whose sliders come first, and that stay while another one is moved; those
            of the robot's file unless given.
        port: Of the page on this machine, the next one that is free.
        wait: Whether to answer the browser until Control-C. Otherwise call ``show`` after your own
            steps, or ``serve`` later.

    Returns:
        The viewer; closed already if it has waited.

    Raises:
        ModelError: The system has no Bullet world, the recording is of another mechanism, or there
            is no such port.
        MissingExtraError: viser is not installed.
    """
    viewer = Viewer(system, recording, actuated, port)
    if wait:
        print(f"{viewer.url}  (Control-C ends it)", flush=True)
        try:
            viewer.serve()
        finally:
            viewer.close()
    return viewer


def view_model(model: str | Path | ModelSpec, duration: float, port: int) -> None:
    """Load a model in a world of its own, run it, and show it with its run from the start.

    Raises:
        BulletBridgeError: The model cannot be loaded, or its run fails.
    """
    if not (math.isfinite(duration) and duration >= 0.0):
        raise ModelError(f"a run of {duration!r} s is not possible; give zero or more")
    with naming_the_extra(*VISER):
        import_module("viser")
    with load(model, "new") as loaded:
        system = loaded.system
        run, start = None, (system.q, system.v, system.t)
        if duration:
            run = system.rollout(max(1, round(duration / system.dt)))
            system.set_state(*start)
        view(system, run, port=port)


def _require_same(system: System, recording: Recording | None) -> None:
    """Raise unless a recording is of the mechanism of a system."""
    if recording is None:
        return
    said = f"{given_as(recording)} is no recording; give what a run returns: system.run(1.0)"
    require_kind(recording, Recording, said)
    if list(recording.mechanism.joints) != list(system.mechanism.joints):
        raise ModelError("the recording is of another mechanism than the system")
    if not len(recording.t):
        raise ModelError("the recording is empty; there is nothing to show")


def _matters(record: logging.LogRecord) -> bool:
    """Whether a person is to read what the server says: browsers open connections to no purpose."""
    return record.msg != "opening handshake failed"


def _server(port: int) -> Any:
    """Viser's server, on this machine alone."""
    if not (is_count(port) and 0 < port < 2**16):  # viser waits for ever for such a page
        raise ModelError(f"port is {port!r}; give a whole number from 1 to 65535")
    with naming_the_extra(*VISER):
        viser: Any = import_module("viser")
    logging.getLogger("websockets.server").addFilter(_matters)
    try:
        with redirect_stdout(io.StringIO()):  # the address is told by us
            return viser.ViserServer(
                host="127.0.0.1", port=port, label="bulletbridge", verbose=False
            )
    except OSError as error:
        raise WorldError(f"no page can be opened at port {port}: {error}") from None
