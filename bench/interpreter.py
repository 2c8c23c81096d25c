"""How fast this Python is: what a Python server can do is as much its interpreter's figure.

Builds of one version differ by half and more. A distribution compiles with what a training run has
shown (profile-guided optimisation); a plain ``./configure && make``, and pyenv, which does just
that, do not. What an interpreter says of its own build does not tell them apart, for distributions
take those flags out of it. So the same work is timed in both.

Run as a program it prints the version and the milliseconds that the work takes::

    /usr/bin/python3 -I bench/interpreter.py
"""

from __future__ import annotations  # the system's Python may be an old one

import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

SYSTEM = "/usr/bin/python3"
OLDEST = (3, 11)  # pyproject.toml
_TURNS = 9  # interleaved: the processor itself changes its pace, and both get each of its paces


def description() -> str:
    """Return the version with what tells builds apart, as ``3.11.2 (/usr, GCC 12.2.0)``."""
    return f"{platform.python_version()} ({sys.base_prefix}, {platform.python_compiler()})"


def slowness(system: str = SYSTEM) -> float | None:
    """Return how many times as long as the system's Python this one takes for the same work.

    None where this is the system's own, or there is none, or it is too old for this project.
    """
    if not Path(system).exists() or Path(system).samefile(_original()):
        return None
    pairs = [(_asked(_original()), _asked(system)) for _ in range(_TURNS)]
    if min(version for _, (version, _) in pairs) < OLDEST:
        return None
    return statistics.median(mine / theirs for (_, mine), (_, theirs) in pairs)


def _original() -> str:
    """Return the interpreter that this environment was made of."""
    return str(Path(sys.executable).resolve())


def _asked(python: str) -> tuple[tuple[int, ...], float]:
    """Return the version of an interpreter and the milliseconds that the work takes it."""
    said = subprocess.run(
        [python, "-I", "-S", __file__], check=True, stdout=subprocess.PIPE, text=True, timeout=30
    ).stdout
    version, took_ms = said.split()
    return tuple(map(int, version.split("."))), float(took_ms)


def _work(turns: int = 20_000) -> int:
    """Do what servers do in Python: look up, call, add, and make small strings."""
    counts: dict[int, int] = {}
    length = 0
    for turn in range(turns):
        key = turn & 1023
        counts[key] = counts.get(key, 0) + turn
        length += len(str(key))
    return length


def _took_ms() -> float:
    start = time.process_time()
    _work()
    return (time.process_time() - start) * 1000


if __name__ == "__main__":
    best_ms = min(_took_ms() for _ in range(5))
    version = ".".join(map(str, sys.version_info[:3]))  # "3.12.3+" is one, too
    sys.stdout.write(f"{version} {best_ms}\n")
