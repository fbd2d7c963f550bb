"""Does the README's program of PyBullet's print what the README says? Run by ``.ci/run``.

Apart from the other tests, since its meshes take ten seconds to load.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
ROUND_OFF = re.compile(r"\b\d(\.\d+)?e-(1[3-9]|[2-9]\d)\b|(?<= )0(?= |$)", re.MULTILINE)
"""What may be any such number, or zero."""
TIMES = re.compile(r"[\d.e+]+ µs each|\d+ each|ratio [\d.]+|[\d.e+]+ µs")


def plain(table: str) -> list[list[str]]:
    """Words of a table, without round-off and times."""
    lines = TIMES.sub("time", ROUND_OFF.sub("~", table)).splitlines()
    return [line.split() for line in lines if line.strip()]


def main() -> None:
    """Run the command away from the checkout and compare; Bullet's warnings come before."""
    shown = re.search(r"<!-- program -->\n```console\n\$ (\S+) (.*)\n((?:.*\n)*?)```", README)
    assert shown is not None and shown[1] == "bulletbridge"
    command = [sys.executable, "-m", "bulletbridge", *shown[2].split()]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    _, *expected = plain(shown[3])  # the first line follows Bullet's last warning
    found = plain(done.stdout)[-len(expected) :]
    if found != expected:
        raise SystemExit(f"the README shows\n{expected}\nand the program prints\n{found}")
    print("the README's program prints what the README says")


if __name__ == "__main__":
    main()
