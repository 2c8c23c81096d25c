"""The real thing that a campaign runs on: supervisord, the load driver and the sampler."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any

import psutil

from bench import contract, gates, load, sample, supervise
from bench.campaign import Failed, Measurement
from bench.errors import BadInput
from bench.load import LoadSpec
from bench.provenance import Pinning
from bench.records import Load
from bench.supervise import Deployment
from bench.variants import Variant
from bench.workloads import Workload

# (transport, mode) -> what the load driver calls that
_DRIVER_TESTS = {
    ("http", "open"): "latency",
    ("http", "closed"): "throughput",
    ("http", "autothrottle"): "capacity",
    ("websocket", "open"): "echo",
}
# The driver writes into a folder that is gone afterwards; this stands for it in what is published.
_RESULT_JSON = Path("load.json")


@dataclass(frozen=True)
class Servers:
    """Starts variants on some processors, and lets them be loaded from the others."""

    pinned: Pinning

    @contextmanager
    def deployed(self, variant: Variant) -> Iterator["Target"]:
        """Run ``variant`` for the length of the block; raise ``Failed`` if it does not start."""
        with ExitStack() as stack:
            try:
                deployment = stack.enter_context(
                    supervise.deployed(variant, cpus=self.pinned.server)
                )
            except supervise.StartFailed as failure:
                raise Failed(failure.reason, failure.log_tail) from failure
            except BadInput as missing:  # such as a server that is not installed: others are
                raise Failed(str(missing)) from missing
            yield Target(deployment, self.pinned)


@dataclass(frozen=True)
class Target:
    """A variant that runs."""

    deployment: Deployment
    pinned: Pinning

    @property
    def identity(self) -> dict[str, Any]:
        return self.deployment.identity

    def violations(self) -> list[str]:
        return contract.violations(self.deployment.base_url, self.deployment.variant)

    def log_tail(self) -> str:
        return self.deployment.log_tail()

    def measure(self, test: Workload, *, duration_s: float, warmup_s: float) -> Measurement:
        """Put the load of ``test`` on it; raise ``Failed`` if there is nothing to show for it."""
        # What hangs in the warm-up would be missing from the count.
        warmup_s = 0.0 if test.hangs else warmup_s
        path = test.path_on(self.deployment.variant)
        asked = spec(
            test, self.deployment.base_url, path=path, duration_s=duration_s, warmup_s=warmup_s
        )
        try:
            with (
                load.running(asked, cpus=self.pinned.generator) as generator,
                sample.Sampler(self.deployment.pid, generator.pid) as sampler,
            ):
                measured = generator.result()
        except load.LoadFailed as failure:
            raise Failed(failure.reason, f"{failure.log_tail}\n{self.log_tail()}") from failure
        except BadInput as refused:  # the options are ours and right: the server is gone
            raise Failed(str(refused), self.log_tail()) from refused
        # Where this Python lies is nobody's business.
        command = ("python", *load.command(asked, _RESULT_JSON)[1:])
        return _judged(measured, sampler, self.pinned, command, hangs=test.hangs)


def spec(
    test: Workload, base_url: str, *, duration_s: float, warmup_s: float, path: str | None = None
) -> LoadSpec:
    """Return what the load driver shall do for ``test``; ``path`` stands in for the test's own."""
    return LoadSpec(
        test=_DRIVER_TESTS[test.transport, test.mode],
        mode=test.mode,
        url=f"{base_url}{path or test.path}",
        connection=test.connection,
        rate_rps=test.rate_rps,
        concurrency=test.concurrency,
        duration_s=duration_s,
        warmup_s=warmup_s,
        timeout_s=test.timeout_s,
    )


def _judged(
    measured: Load,
    sampler: sample.Sampler,
    pinned: Pinning,
    command: tuple[str, ...],
    *,
    hangs: bool,
) -> Measurement:
    """Cut what was sampled to the measured window, and ask every gate."""
    start_s = measured.started_monotonic_s
    if start_s is None:
        raise Failed("the generator does not say when its measurement began")
    # The wait for requests that hang is no part of the test.
    end_s = start_s + min(measured.elapsed_s, measured.duration_s if hangs else inf)
    try:
        server = sample.usage(
            sampler.snapshots, attrgetter("server"), start_s, end_s, sampler.pss_bytes
        )
        generator = sample.usage(sampler.snapshots, attrgetter("generator"), start_s, end_s)
        machine = sample.machine(sampler.snapshots, start_s, end_s)
    except sample.TooShort as short:
        raise Failed(str(short)) from short
    judged = gates.check(
        measured,
        server,
        generator,
        machine,
        server_cores=pinned.server_cores,
        cores=psutil.cpu_count() or 1,
        hangs=hangs,
    )
    return Measurement(measured, server, generator, machine, judged, command)
