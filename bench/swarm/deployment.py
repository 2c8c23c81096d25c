"""A variant in a Swarm, as ``bench.supervise.deployed`` yields the others."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.swarm import image, stack
from bench.swarm.engine import Engine, EngineFailed, engine
from bench.swarm.engine import require as require_engine
from bench.variants import Variant

START_S = 120.0  # for containers that start all at once on a busy machine


def require() -> None:
    """Raise ``BadInput`` where containers cannot be run as things are."""
    require_engine()
    image.require()


@contextmanager
def running(
    variant: Variant, *, cpus: Collection[int] | None = None, start_s: float = START_S
) -> Iterator[tuple[stack.Stack, dict[str, Any]]]:
    """Run ``variant`` in an engine of its own; yield the stack, ready, and what it says it is.

    Everything is removed when the block ends. Raises ``BadInput`` where a person must do something
    first, and ``EngineFailed``.
    """
    with engine(cpus) as ours:
        images = image.provide(ours)
        deployed = stack.deploy(ours, variant, images)
        try:
            identity, _ = deployed.wait(variant.processes, start_s)
            require_pinned(ours, cpus)
            yield deployed, identity
        finally:
            stack.remove(ours)


def require_pinned(ours: Engine, cpus: Collection[int] | None) -> None:
    """Raise ``EngineFailed`` where a container may run elsewhere than on ``cpus``.

    Containers inherit it from the engine. Kernels before 6.2 forget it when a container is put
    into its control group.
    """
    for container in ours.docker("ps", "--quiet").split() if cpus else ():
        pid = int(ours.docker("inspect", "--format", "{{.State.Pid}}", container))
        allowed = os.sched_getaffinity(pid)
        if allowed != set(cpus or ()):
            command = Path(f"/proc/{pid}/comm").read_text().strip()
            raise EngineFailed(
                f"{command} may run on {sorted(allowed)} and not only on {sorted(cpus or ())}"
            )
