"""Bullet's window as far as it is drawn on, without a window."""

import numpy as np
import pybullet

from bulletbridge.surface import overlay as overlay_module
from bulletbridge.surface import sliders as sliders_module


class Window:
    """Bullet's window as far as it is drawn on: items by id, sliders by label."""

    def __init__(self):
        self.items, self.made, self.rendered, self.sliders, self.labels = {}, 0, True, [], []
        self.answers, self.lost = 0, ()

    def install(self, monkeypatch):
        for module in (overlay_module, sliders_module):
            monkeypatch.setattr(module, "has_window", lambda _: True)
        for name in ("addUserDebugLine", "addUserDebugText", "removeUserDebugItem"):
            monkeypatch.setattr(pybullet, name, getattr(self, name))
        monkeypatch.setattr(pybullet, "configureDebugVisualizer", self.configure)
        monkeypatch.setattr(pybullet, "addUserDebugParameter", self.slider)
        monkeypatch.setattr(pybullet, "readUserDebugParameter", lambda k, **_: self.sliders[k])
        return self

    def put(self, item, replaced):
        assert not self.rendered
        if replaced not in self.items:
            self.made, replaced = self.made + 1, self.made
        self.items[replaced] = item
        self.answers += 1
        return -1 if self.answers in self.lost else replaced

    def addUserDebugLine(self, start, end, replaceItemUniqueId, **_):  # noqa: N802, N803
        return self.put((np.array(start), np.array(end)), replaceItemUniqueId)

    def addUserDebugText(self, text, at, replaceItemUniqueId, **_):  # noqa: N802, N803
        return self.put((text, np.array(at)), replaceItemUniqueId)

    def removeUserDebugItem(self, item, **_):  # noqa: N802
        del self.items[item]

    def configure(self, flag, value, **_):
        if flag == pybullet.COV_ENABLE_RENDERING:
            self.rendered = bool(value)

    def slider(self, label, lower, upper, start, **_):
        self.labels.append((label, lower, upper))
        self.sliders.append(float(np.float32(start)))  # as Bullet keeps it
        return len(self.sliders) - 1

    @property
    def texts(self):
        return [item[0] for item in self.items.values() if isinstance(item[0], str)]

    @property
    def lines(self):
        return [item for item in self.items.values() if not isinstance(item[0], str)]
