"""Does a browser draw what the viewer shows? To be run by hand, where there is a Chromium.

``python tests/browser.py [PICTURE]`` opens a four-bar, takes a picture of the page without a
network, and looks for the colours of the links. Not among the other tests, since a browser that
draws without a graphics card takes ten seconds, and more where others compute as well.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import bulletbridge as bb

HUES = {"crank": (15, 40), "rocker": (135, 165), "coupler": (200, 225)}
"""Of the links [deg]: orange, green, blue."""
FEWEST = 300
"""Pixels of each."""
WAYS = "--use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader"


def main() -> None:
    """Open the page, take the picture, look at it."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium here: the viewer's page was not looked at")
        return
    with tempfile.TemporaryDirectory() as folder, bb.load("four_bar", "new") as model:
        picture = Path(sys.argv[1] if len(sys.argv) > 1 else Path(folder) / "page.png").absolute()
        viewer = bb.view(model.system, wait=False, port=8950)
        try:
            command = [
                *(chromium, "--headless=new", "--no-sandbox", *WAYS.split()),
                *("--window-size=720,420", "--virtual-time-budget=3000"),
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                *(f"--user-data-dir={folder}/profile", f"--screenshot={picture}", viewer.url),
            ]
            subprocess.run(command, capture_output=True, timeout=120, check=True)
        finally:
            viewer.close()
        pixels = np.asarray(Image.open(picture).convert("HSV"), int).reshape(-1, 3)
    strong = pixels[(pixels[:, 1] > 150) & (pixels[:, 2] > 50)]
    hue = strong[:, 0] * 360 / 255
    found = {link: int(((hue > low) & (hue < high)).sum()) for link, (low, high) in HUES.items()}
    if min(found.values()) < FEWEST:
        raise SystemExit(f"the page does not show all links; pixels: {found}")
    print(f"a browser draws the viewer's page; pixels of each link: {found}")


if __name__ == "__main__":
    main()
