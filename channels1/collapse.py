"""Why the IPC setup of 2016 collapsed, measured on its channel layer alone.

Run it with the Python of either environment of 2016; docs/2016-stack.md explains what it prints.

    .venv-channels017/bin/python channels1/collapse.py      # asgi_ipc 1.1.0, as measured then
    .venv-channels1/bin/python channels1/collapse.py        # asgi_ipc 1.4.2, its last release
"""

import os
import sys
import time
from contextlib import suppress
from multiprocessing import Barrier, Process, Queue

import pkg_resources
from asgi_ipc import IPCChannelLayer
from testproject.segments import remove

VERSION = pkg_resources.get_distribution("asgi_ipc").version
PREFIX = f"collapse-{os.getpid()}"
REPLY = {"status": 200, "headers": [[b"Content-Type", b"text/plain"]], "content": b"OK"}
ANSWERED = (0, 500, 1000, 2000, 4000)
POLLS = 200
SENDS = 10000


def reply_channels(number):
    """Return the names on which a reply is (sent, received), as that version's Daphne chose them.

    Daphne 0.14 made a channel for each request; 1.4 has one for the process, and the layer keeps
    what comes after the ``!`` inside the message.
    """
    if VERSION.startswith("1.1."):
        return f"http.response!{number}", f"http.response!{number}"
    return f"daphne.response.abc!{number}", "daphne.response.abc!"


def answer(layer, number):
    """Send one reply and receive it, as worker and Daphne do for each request."""
    sent, received = reply_channels(number)
    layer.send(sent, dict(REPLY))
    assert layer.receive_many([received]) == (sent, REPLY)


def empty_poll_us(layer):
    """Return what one look at a channel with nothing in it takes, in microseconds."""
    start = time.perf_counter()
    for _ in range(POLLS):
        layer.receive_many(["http.request"])
    return (time.perf_counter() - start) / POLLS * 1e6


def growth(layer):
    """Yield (requests answered so far, microseconds for one empty poll)."""
    answered = 0
    for goal in ANSWERED:
        for number in range(answered, goal):
            answer(layer, number)
        answered = goal
        yield goal, empty_poll_us(layer)


def exchange(name, together, lost):
    """Send to a channel of one's own and receive from it, again and again; report the losses."""
    layer = IPCChannelLayer(prefix=PREFIX)
    together.wait()
    missing = 0
    for number in range(SENDS):
        with suppress(layer.ChannelFull):  # of messages that were taken and came back
            layer.send(name, {"number": number})
        missing += layer.receive_many([name]) != (name, {"number": number})
    lost.put(missing)


def lost_by_two_processes():
    """Return how many of the messages that two processes sent themselves did not come back."""
    together, lost = Barrier(2), Queue()
    pair = [Process(target=exchange, args=(name, together, lost)) for name in ("one", "two")]
    for process in pair:
        process.start()
    missing = sum(lost.get() for _ in pair)
    for process in pair:
        process.join()
    return missing


def main():
    say = sys.stdout.write
    say(f"asgi_ipc {VERSION}\n")
    try:
        missing = lost_by_two_processes()
        say(f"two processes, a channel each: {missing} of {2 * SENDS} messages lost\n")
        layer = IPCChannelLayer(prefix=PREFIX)
        layer.flush()
        for answered, poll_us in growth(layer):
            say(f"after {answered:5} requests an empty poll takes {poll_us:7.0f} us\n")
    finally:
        remove(prefix=PREFIX)


if __name__ == "__main__":
    main()
