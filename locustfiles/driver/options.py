"""The driver's options, as Locust arguments: on the command line and in the web UI."""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .arrivals import PROCESSES


class BadOption(ValueError):  # noqa: N818 - it says what is wrong, not that something is
    """An option has a value that cannot be; the text names both."""


def number(least: float, *, above: bool = False, most: float = math.inf) -> Callable[[str], float]:
    """Return a converter for numbers from ``least`` (or strictly above it) to ``most``."""
    limits = f"above {least:g}" if above else f"{least:g} or more"
    if most < math.inf:
        limits += f", and at most {most:g}"

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not least <= value <= most or (above and value == least):
            raise argparse.ArgumentTypeError(f"{text!r} is no number {limits}")
        return value

    return convert


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a converter for whole numbers from ``least`` to ``most``."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
        return value

    return convert


def choice(*valid: str) -> Callable[[str], str]:
    """Return a converter that takes one of ``valid``."""

    def convert(text: str) -> str:
        if text not in valid:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(valid)}")
        return text

    return convert


@dataclass(frozen=True)
class Option:
    """One Locust argument. ``choices`` makes the web UI show a list."""

    flag: str
    convert: Callable[[str], Any]
    default: Any
    help: str
    choices: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        return self.flag.removeprefix("--").replace("-", "_")


RPS = Option(
    "--rps",
    number(0, above=True, most=100_000),
    300.0,
    "Open loop: requests per second, sent on time whatever the replies do",
)
ARRIVALS = Option(
    "--arrivals",
    choice(*PROCESSES),
    "constant",
    "Open loop: evenly spaced, or as users who know nothing of each other arrive",
    PROCESSES,
)
CLIENTS = Option(
    "--clients",
    whole(1, 10_000),
    10,
    "Closed loop: how many clients, each waiting for its reply before it sends again",
)
REQUESTS = Option(
    "--requests",
    whole(0, 100_000_000),
    0,
    "Closed loop: end after so many requests, should the run time not end first; 0 for no limit",
)
MAX_IN_FLIGHT = Option(
    "--max-in-flight",
    whole(1, 9_000),
    1_000,
    "Open loop: with so many requests unanswered an arrival is dropped, and counted as dropped",
)
TIMEOUT = Option(
    "--timeout",
    number(0, above=True, most=3_600),
    10.0,
    "Seconds after which a request without a complete reply is given up and counted as a timeout",
)
WARM_UP = Option(
    "--warm-up",
    number(0, most=3_600),
    0.0,
    "Seconds of the run time, at its beginning, in which requests are sent but not counted",
)
RESULT_JSON = Option(
    "--result-json",
    str,
    "",
    "Write everything that was measured to this file: counts, HDR histograms in microseconds",
)
STEP = Option(
    "--step",
    number(1, most=600),
    4.0,
    "Capacity: seconds for which each rate is offered",
)
HTTP_PATH = Option("--path", str, "/", "Path of the request, with its query")
CONNECTION = Option(
    "--connection",
    choice("close", "keepalive"),
    "close",
    "A connection for each request, as in 2016, or connections that are kept and used again",
    ("close", "keepalive"),
)
EXPECT_BODY = Option(
    "--expect-body",
    str,
    "",
    "The body every reply must have, such as OK; anything else counts as an error",
)
WEBSOCKET_PATH = Option(
    "--path", str, "/ws/echo/", "Path of an endpoint that sends every message back"
)
CONNECTIONS = Option("--connections", whole(1, 9_000), 100, "Sockets that are open at once")
PER_CONNECTION = Option(
    "--per-connection",
    whole(1, 1_000),
    1,
    "Closed loop: messages that each socket has under way at once",
)
MESSAGES = Option(
    "--messages",
    whole(0, 1_000_000),
    0,
    "Messages after which a socket is closed and another one opened; 0 keeps it open",
)
OPENING = Option(
    "--opening",
    whole(0, 9_000),
    25,
    "Handshakes that are under way at once; 0 is all. 25 fit every listen queue",
)
DETAIL = Option(
    "--detail",
    choice("no", "yes"),
    "no",
    "EchoBatch: all sockets open, then all send, then all close, and each of the three is timed",
    ("no", "yes"),
)
MESSAGE_BYTES = Option("--message-bytes", whole(16, 1_000_000), 32, "Length of a message")
ORIGIN = Option("--origin", str, "", "The Origin header; where empty, the host itself")

COMMON = (RPS, ARRIVALS, MAX_IN_FLIGHT, TIMEOUT, WARM_UP, RESULT_JSON)
HTTP = (HTTP_PATH, CONNECTION, EXPECT_BODY, CLIENTS, REQUESTS, *COMMON, STEP)
WEBSOCKET = (
    WEBSOCKET_PATH,
    CONNECTIONS,
    PER_CONNECTION,
    MESSAGES,
    MESSAGE_BYTES,
    ORIGIN,
    OPENING,
    DETAIL,
    *COMMON,
)


def add_to(parser: Any, options: tuple[Option, ...]) -> None:
    """Add ``options`` to Locust's argument ``parser``.

    Not in a group of their own: Locust's web UI does not look into groups.
    """
    for option in options:
        parser.add_argument(
            option.flag,
            type=option.convert,
            default=option.default,
            choices=option.choices,
            help=f"{option.help}. Default: {option.default!r}".replace("%", "%%"),
        )


def checked(parsed: Any, options: tuple[Option, ...]) -> dict[str, Any]:
    """Return the values of ``options`` in Locust's ``parsed`` options, by name.

    They are converted once more: the web UI and the master hand over what was typed, unchecked.
    Raises ``BadOption``.
    """
    values = {}
    for option in options:
        given = getattr(parsed, option.name)
        try:
            values[option.name] = option.convert(str(given))
        except argparse.ArgumentTypeError as error:
            raise BadOption(f"{option.flag}: {error}") from error
    return values
