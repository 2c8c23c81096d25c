"""How fast this Python is: what a Python server can do is as much its interpreter's figure.

Builds of one version differ by half and more. A distribution compiles with what a training run has
shown (profile-guided optimisation); a plain ``./configure && make``, and pyenv, which does just
that, do not. What an interpreter says of its own build does not tell them apart, for distributions
take those flags out of it. So the same work is timed in both.

Run as a program it prints the milliseconds that the work takes::

    /usr/bin/python3 -I bench/interpreter.py
"""

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
    if _version(system) < OLDEST:  # asked first: an old one cannot even read this file
        return None
    return statistics.median(_asked_ms(_original()) / _asked_ms(system) for _ in range(_TURNS))


def _original() -> str:
    """Return the interpreter that this environment was made of."""
    return str(Path(sys.executable).resolve())


def _version(python: str) -> tuple[int, ...]:
    return tuple(map(int, _said(python, "-c", "import sys; print(*sys.version_info[:2])")))


def _asked_ms(python: str) -> float:
    """Return the milliseconds that the work takes an interpreter."""
    return float(*_said(python, "-S", __file__))


def _said(python: str, *arguments: str) -> list[str]:
    command = [python, "-I", *arguments]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=30)
    return run.stdout.split()


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
    sys.stdout.write(f"{min(_took_ms() for _ in range(5))}\n")
