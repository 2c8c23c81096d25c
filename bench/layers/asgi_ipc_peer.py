"""The two ends of asgi_ipc 1.4.2, for the Python that has it: bench/ is not importable there.

``.venv-channels1/bin/python asgi_ipc_peer.py '{"roles": ["requester"], ...}'`` speaks the lines of
``bench.layers.part``: it says that it is ready, waits for the word, works, prints its figures and
its processor time, and waits to be stopped. The layer is synchronous, so there is no event loop.
"""

import json
import os
import sys
import threading
import time
from typing import Any

from asgi_ipc import IPCChannelLayer  # type: ignore[import-not-found]  # it lives elsewhere

CAPACITY = 100  # the default of Channels 4; its own of 10 is below what is kept outstanding
EMPTY_S = 0.0002  # receive() does not block: Channels 1 slept 0.01 s between two looks


def say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def ready(role: str, said: str | None) -> Any:
    """Say that this role is ready; return what the others said."""
    say({"ready": {role: said}})
    return json.loads(sys.stdin.readline())


def insist(layer: Any, channel: str, message: dict[str, Any]) -> None:
    while True:
        try:
            layer.send(channel, message)
            return
        except layer.ChannelFull:
            time.sleep(0.0005)


def requester(layer: Any, spec: dict[str, Any]) -> dict[str, Any]:
    """Keep a number of requests outstanding; return the counts and the rate."""
    mine, work = layer.new_channel("reply?"), "work." + spec["run"]
    seen: set[int] = set()
    sent = duplicates = 0
    start = last = silent = time.perf_counter()
    end = start + spec["duration_s"]
    while sent < spec["options"]["outstanding"]:
        insist(layer, work, {"id": sent, "reply": mine})
        sent += 1
    while len(seen) < sent and time.perf_counter() - silent < spec["patience_s"]:
        channel, message = layer.receive([mine], block=True)
        if channel is None:
            time.sleep(EMPTY_S)
            continue
        silent = time.perf_counter()
        if message["id"] in seen:
            duplicates += 1
            continue
        seen.add(message["id"])
        last = silent
        if last < end:
            insist(layer, work, {"id": sent, "reply": mine})
            sent += 1
    counts = {"sent": sent, "received": len(seen), "lost": sent - len(seen)}
    return {**counts, "duplicates": duplicates, "requests_per_s": len(seen) / (last - start)}


def worker(layer: Any, spec: dict[str, Any], stopped: threading.Event) -> dict[str, Any]:
    """Answer what comes on the named channel until told to stop."""
    while not stopped.is_set():
        channel, message = layer.receive(["work." + spec["run"]], block=True)
        if channel is None:
            time.sleep(EMPTY_S)
        else:
            insist(layer, message["reply"], message)
    return {}


def listen(stopped: threading.Event) -> None:
    """Wait for the parent's last line."""
    sys.stdin.readline()
    stopped.set()


def main() -> None:
    spec = json.loads(sys.argv[1])
    os.sched_setaffinity(0, spec["cpus"])
    (path,) = spec["roles"]
    role = path.rpartition(".")[2]
    layer = IPCChannelLayer(prefix="bench" + spec["run"], capacity=CAPACITY)
    ready(role, None)
    stopped = threading.Event()
    threading.Thread(target=listen, args=(stopped,), daemon=True).start()
    cpu_s = time.process_time()
    figures = requester(layer, spec) if role == "requester" else worker(layer, spec, stopped)
    say({"role": role, "figures": figures})
    say({"cpu_s": time.process_time() - cpu_s})
    stopped.wait()


if __name__ == "__main__":
    main()
