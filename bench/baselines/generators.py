"""wrk and ab: their command lines, and what they print read back as a ``Count``. Pure.

wrk keeps its connections and drives the tables; ab opens one for each request, as browsers of 2012
would have, and is the second opinion. Both are closed loops, as the talk's generator was.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Name = Literal["wrk", "ab"]
TIMEOUT_S = 5
_REPORT = Path(__file__).parent / "report.lua"
_AB_REQUESTS = 1_000_000  # more than it can do in its time; it keeps 32 bytes for each


class Unreadable(ValueError):  # noqa: N818 - it says what is wrong with the text
    """A generator printed something else than a result."""


@dataclass(frozen=True)
class Count:
    """What a generator counted. ``failed`` are errors of any kind; ``received_bytes`` wrk's only.

    ``p50_ms`` and ``p99_ms`` are of a closed loop, from the actual send: at full load they say how
    long the queue of the clients is, and no more.
    """

    requests: int
    failed: int
    elapsed_s: float
    p50_ms: float
    p99_ms: float
    received_bytes: int | None = None

    @property
    def ok(self) -> int:
        return self.requests - self.failed

    @property
    def rps(self) -> float:
        return self.ok / self.elapsed_s


@dataclass(frozen=True)
class Generator:
    """``command(url, clients, seconds, source)``: ``source`` is the address to connect from."""

    name: Name
    command: Callable[[str, int, int, str], tuple[str, ...]]
    parsed: Callable[[str], Count]


def wrk_command(url: str, clients: int, seconds: int, source: str) -> tuple[str, ...]:
    return (
        *("wrk", "--threads", "1", "--connections", str(clients)),
        *("--duration", f"{seconds}s", "--timeout", f"{TIMEOUT_S}s"),
        *("--script", str(_REPORT), url),
    )


def ab_command(url: str, clients: int, seconds: int, source: str) -> tuple[str, ...]:
    """Return ab's command line. Without -r it stops at the first connection that breaks."""
    return (
        *("ab", "-q", "-c", str(clients), "-t", str(seconds), "-n", str(_AB_REQUESTS)),
        *("-s", str(TIMEOUT_S), "-B", source, url),
    )


def wrk_count(printed: str) -> Count:
    """Return what wrk counted. A reply with an error status counts as a request that failed."""
    try:
        found = json.loads(printed.strip().splitlines()[-1])
        broken = sum(found[kind] for kind in ("connect", "read", "write", "timeout"))
        return Count(
            requests=found["requests"] + broken,
            failed=broken + found["status"],
            elapsed_s=found["elapsed_us"] / 1e6,
            p50_ms=found["p50_us"] / 1e3,
            p99_ms=found["p99_us"] / 1e3,
            received_bytes=found["bytes"],
        )
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"wrk printed no result: {printed[-300:]!r}") from error


def ab_count(printed: str) -> Count:
    """Return what ab counted. A reply of another length than the first counts as failed."""
    try:
        return Count(
            requests=int(_ab(printed, r"Complete requests:\s+(\d+)")),
            failed=int(_ab(printed, r"Failed requests:\s+(\d+)"))
            + int(_ab(printed, r"Non-2xx responses:\s+(\d+)", "0")),
            elapsed_s=float(_ab(printed, r"Time taken for tests:\s+([\d.]+)")),
            p50_ms=float(_ab(printed, r"\n\s+50%\s+(\d+)")),
            p99_ms=float(_ab(printed, r"\n\s+99%\s+(\d+)")),
        )
    except ValueError as error:
        raise Unreadable(f"ab printed no result: {printed[-300:]!r}") from error


def _ab(printed: str, pattern: str, otherwise: str = "") -> str:
    match = re.search(pattern, printed)
    return match[1] if match else otherwise


GENERATORS: dict[Name, Generator] = {
    "wrk": Generator("wrk", wrk_command, wrk_count),
    "ab": Generator("ab", ab_command, ab_count),
}
