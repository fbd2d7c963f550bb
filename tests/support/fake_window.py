"""Bullet's window as far as it is drawn on, without a window."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pybullet
import pytest
from numpy.typing import ArrayLike
from typing_extensions import Self

from bulletbridge.numerics.records import Array
from bulletbridge.viewer import overlay as overlay_module
from bulletbridge.viewer import sliders as sliders_module


class Window:
    """Bullet's window as far as it is drawn on: items by id, sliders by label.

    Its camera looks along y from ``eye``; items are where they appear to be, on the way from there.
    """

    def __init__(self) -> None:
        self.items: dict[int, tuple[Any, Array]] = {}
        self.made, self.rendered = 0, True
        self.sliders: list[float] = []
        self.labels: list[tuple[str, float, float]] = []
        self.answers = 0
        self.eye = np.array([0.5, -7.0, 1.0])
        self.lost: Collection[int] = ()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Self:
        def has_one(client: int) -> bool:
            return True

        def read(number: int, **_: object) -> float:
            return self.sliders[number]

        for module in (overlay_module, sliders_module):
            monkeypatch.setattr(module, "has_window", has_one)
        for name in ("addUserDebugLine", "addUserDebugText", "removeUserDebugItem"):
            monkeypatch.setattr(pybullet, name, getattr(self, name))
        monkeypatch.setattr(pybullet, "configureDebugVisualizer", self.configure)
        monkeypatch.setattr(pybullet, "addUserDebugParameter", self.slider)
        monkeypatch.setattr(pybullet, "getDebugVisualizerCamera", self.camera)
        monkeypatch.setattr(pybullet, "readUserDebugParameter", read)
        return self

    def put(self, item: tuple[Any, Array], replaced: int) -> int:
        assert not self.rendered
        if replaced not in self.items:
            self.made, replaced = self.made + 1, self.made
        self.items[replaced] = item
        self.answers += 1
        return -1 if self.answers in self.lost else replaced

    def addUserDebugLine(
        self, start: ArrayLike, end: ArrayLike, replaceItemUniqueId: int, **_: object
    ) -> int:
        return self.put((self.seen(start), self.seen(end)), replaceItemUniqueId)

    def addUserDebugText(
        self, text: str, at: ArrayLike, replaceItemUniqueId: int, **_: object
    ) -> int:
        return self.put((text, self.seen(at)), replaceItemUniqueId)

    def seen(self, point: ArrayLike) -> Array:
        """Where what is drawn in front of everything appears to be."""
        return self.eye + (np.asarray(point) - self.eye) / overlay_module.IN_FRONT

    def camera(self, **_: object) -> tuple[Any, ...]:
        turned = (0.0,) * 16
        target = tuple(self.eye + (0.0, 3.0, 0.0))
        axes = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
        return 640, 480, turned, turned, *axes, 0.0, 0.0, 3.0, target

    def removeUserDebugItem(self, item: int, **_: object) -> None:
        del self.items[item]

    def configure(self, flag: int, value: int, **_: object) -> None:
        if flag == pybullet.COV_ENABLE_RENDERING:
            self.rendered = bool(value)

    def slider(self, label: str, lower: float, upper: float, start: float, **_: object) -> int:
        self.labels.append((label, lower, upper))
        self.sliders.append(float(np.float32(start)))  # as Bullet keeps it
        return len(self.sliders) - 1

    @property
    def texts(self) -> list[str]:
        return [item[0] for item in self.items.values() if isinstance(item[0], str)]

    @property
    def lines(self) -> list[tuple[Array, Array]]:
        return [item for item in self.items.values() if not isinstance(item[0], str)]
