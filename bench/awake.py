"""Keeps idle processors awake while something is measured.

A guest that has nothing to do on a processor gives it back to the hypervisor, and has it again when
that finds room: the more its other guests do, the later, and it counts as steal. On bare metal an
idle processor goes to sleep, and takes its time to wake. Either way a request that finds the
machine idle pays for what is no part of the deployment, and another price from minute to minute.
With a limit of 0 on the time that waking may take, an idle processor polls instead: the kernel's PM
QoS, which the profile latency-performance of tuned uses, too.

    python -m bench.awake

shows what that does here: round trips between two processors, and what the hypervisor kept.
"""

import os
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

# While it is open, what was written to it holds: microseconds, as a native integer of 32 bits.
DEVICE = Path("/dev/cpu_dma_latency")
DRIVER = Path("/sys/devices/system/cpu/cpuidle/current_driver")
_TURNS, _TURN_S = 5, 2.0


@contextmanager
def processors() -> Iterator[None]:
    """Keep idle processors awake, where this user may (root) and the kernel can."""
    try:
        device = DEVICE.open("r+b", buffering=0)
    except OSError:
        yield
        return
    with device:
        device.write(struct.pack("i", 0))
        yield


def kept() -> bool:
    """Whether idle processors are kept awake now, by whomever."""
    try:
        (longest_us,) = struct.unpack("i", DEVICE.read_bytes()[:4])
        return longest_us == 0 and DRIVER.read_text().strip() != "none"
    except (OSError, struct.error):
        return False


def _round_trips_per_s() -> float:
    """Send a byte to and fro between two processors, each asleep while the other works."""
    first, *_, last = sorted(os.sched_getaffinity(0))
    here, there = socket.socketpair()
    with here, there:
        if (child := os.fork()) == 0:
            here.close()  # or it would not see this process end
            os.sched_setaffinity(0, {last})
            while there.recv(1) == b"?":
                there.send(b"!")
            os._exit(0)
        os.sched_setaffinity(0, {first})
        count, end = 0, time.monotonic() + _TURN_S
        while time.monotonic() < end:
            here.send(b"?")
            here.recv(1)
            count += 1
        here.send(b".")
        os.waitpid(child, 0)
    return count / _TURN_S


def _turn(name: str) -> None:
    usable, before = os.sched_getaffinity(0), psutil.cpu_times().steal
    rate = _round_trips_per_s()
    os.sched_setaffinity(0, usable)
    stolen = (psutil.cpu_times().steal - before) / _TURN_S
    sys.stdout.write(f"{name:7} {rate:9,.0f} round trips/s, steal {stolen:.3f} cores\n")


def main() -> None:
    for _ in range(_TURNS):
        _turn("asleep")
        with processors():
            _turn("awake" if kept() else "refused")


if __name__ == "__main__":
    main()
