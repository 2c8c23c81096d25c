"""Where a polling client stands: an opaque text for it, a value for the server. Pure."""

import base64
import json
from dataclasses import asdict, dataclass, field

LONGEST = 64 * 1024  # characters: more than a thousand publishers


class CursorError(ValueError):
    """A text that is no cursor."""


@dataclass(frozen=True)
class Cursor:
    """``batch`` of ``session``, and what a server that knows no such session needs.

    ``since_ns`` is the time from which the client wants everything; ``positions`` is
    ``{publisher: position}``, the last place in each publisher's stream that it has been given.
    """

    session: str
    batch: int
    since_ns: int
    positions: dict[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        text = json.dumps(asdict(self), separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def parse(text: str) -> Cursor:
    """Return the cursor in ``text``; raise ``CursorError`` where it is none of ours."""
    if isinstance(text, str) and len(text) > LONGEST:
        raise CursorError(f"this cursor has more than {LONGEST} characters: start anew without one")
    try:
        data = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True))
        positions = {int(key): value for key, value in data["positions"].items()}
        cursor = Cursor(data["session"], data["batch"], data["since_ns"], positions)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CursorError(
            "this is no cursor: send back the one of the last answer, or none to start anew"
        ) from error
    numbers = (cursor.batch, cursor.since_ns, *positions, *positions.values())
    # As wide as a layer's messages can carry.
    if not isinstance(cursor.session, str) or not all(
        type(number) is int and 0 <= number < 1 << 64 for number in numbers
    ):
        raise CursorError("this cursor holds something other than numbers of 64 bits")
    return cursor
