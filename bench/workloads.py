"""What is asked of a deployment: the tests, as data.

The first two are the tests of the Channels load test of 2016, with its faults mended: 300
requests/s, and as much as ten clients get. The relay tests put the same load on ``/relay/``, where
a request crosses the channel layer to a worker and back, as every request did in 2016. A variant
without a layer has no such path, so their ratios are taken to what the control does on ``/``: the
same Django view, reached without the layer.
"""

from dataclasses import dataclass
from typing import Literal

from bench.errors import unknown
from bench.variants import Variant

Mode = Literal["open", "closed", "autothrottle"]


@dataclass(frozen=True)
class Workload:
    """One test: a load, and how long it lasts in a quick and in a full campaign."""

    test: str
    path: str
    mode: Mode
    quick_s: float
    full_s: float
    transport: Literal["http", "websocket"] = "http"
    connection: Literal["close", "keepalive"] = "close"
    rate_rps: float | None = None  # open loop
    concurrency: int | None = None  # closed loop
    needs_worker: bool = False
    control_test: str | None = None  # the control's test a ratio is taken to, where not the same
    timeout_s: float = 10.0
    hangs: bool = False  # requests that get no reply are its result, not a flaw of it
    fewer_rounds: int | None = None  # a full campaign has it in the first so many rounds only
    over_layer: bool = False  # asks for ``/relay/`` where ``path`` does not cross the layer

    @property
    def needs_asgi(self) -> bool:
        return self.needs_worker or self.transport == "websocket"

    def runs_on(self, variant: Variant) -> bool:
        """Whether ``variant`` has the path that this test asks for."""
        if self.needs_worker and not variant.has_worker:
            return False
        if variant.loses_requests and not self.hangs:
            return False
        if self.over_layer and variant.layer == "inmemory":
            return False
        return variant.interface == "asgi" or not self.needs_asgi

    def path_on(self, variant: Variant) -> str:
        """Return the path to ask ``variant`` for."""
        return "/relay/" if self.over_layer and variant.has_worker else self.path

    def seconds(self, kind: str) -> float:
        return self.full_s if kind == "full" else self.quick_s


_RATE_RPS = 300.0  # the latency test of 2016
_CLIENTS = 10  # its throughput test

WORKLOADS = {
    workload.test: workload
    for workload in (
        Workload("latency", "/", "open", quick_s=5, full_s=10, rate_rps=_RATE_RPS),
        Workload("throughput", "/", "closed", quick_s=4, full_s=15, concurrency=_CLIENTS),
        Workload(
            "relay_latency",
            "/relay/",
            "open",
            quick_s=5,
            full_s=10,
            rate_rps=_RATE_RPS,
            needs_worker=True,
            control_test="latency",
        ),
        Workload(
            "relay",
            "/relay/",
            "closed",
            quick_s=4,
            full_s=10,
            concurrency=_CLIENTS,
            needs_worker=True,
            control_test="throughput",
        ),
        # The chart of 2016 that fell from 370 to 70. A client that gets no reply never asks again,
        # and is counted: it waits for longer than the test lasts.
        Workload(
            "minute",
            "/",
            "closed",
            quick_s=15,
            full_s=60,
            concurrency=_CLIENTS,
            timeout_s=60,
            hangs=True,
            fewer_rounds=3,
            over_layer=True,
        ),
        # Six rounds are the fewest that make an interval.
        Workload("capacity", "/", "autothrottle", quick_s=30, full_s=60, fewer_rounds=6),
        Workload(
            "echo",
            "/ws/echo/",
            "open",
            quick_s=5,
            full_s=10,
            transport="websocket",
            connection="keepalive",
            rate_rps=_RATE_RPS,
        ),
    )
}

QUICK = ("latency", "throughput", "relay")
FULL = ("latency", "throughput", "relay_latency", "relay", "minute", "capacity")


def resolve(name: str) -> Workload:
    """Return the test called ``name``; raise ``BadInput`` that names the nearest ones."""
    if name not in WORKLOADS:
        raise unknown("test", name, WORKLOADS)
    return WORKLOADS[name]
