"""Removes what asgi_ipc leaves in /dev/shm: ``python -m testproject.segments``.

asgi_ipc never removes its shared memory, so a later start finds the messages of the last one, and
its semaphore as a killed process left it. This runs beside the processes that use the layer,
started before them and stopped after them, and removes the segments at both moments.
"""

import os
import signal
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux keeps POSIX shared memory
PREFIX = f"channels1-{os.getuid()}"  # all users share that directory


def remove(folder=SHARED_MEMORY, prefix=PREFIX):
    """Remove every segment and every semaphore of the layer with ``prefix``; return their names."""
    left = [*folder.glob(f"{prefix}-*"), *folder.glob(f"sem.{prefix}-*")]
    for path in left:
        path.unlink()
    return sorted(path.name for path in left)


def main(folder=SHARED_MEMORY):
    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    remove(folder)
    signal.sigwait(stop)
    remove(folder)


if __name__ == "__main__":
    main()
