"""Canned campaigns: what a runner would have written, from a seeded generator.

A deployment is described by the time one request takes and by what it costs; the samples follow
from that. One campaign is built once a session, because frozen records cannot be spoilt.
"""

from dataclasses import dataclass, replace
from random import Random
from types import SimpleNamespace

import pytest
from hdrh.histogram import HdrHistogram

from bench.records import (
    Bucket,
    Campaign,
    Gate,
    Load,
    Machine,
    Sample,
    Step,
    Usage,
    write,
    write_campaign,
)
from bench.summary import summarize
from bench.variants import HEADLINE
from bench.workloads import WORKLOADS

HOSTILE = '<script>alert("log")</script>\n```\n| a | b |\n<img src=x onerror=alert(1)>'


@dataclass(frozen=True)
class Nature:
    """What a deployment is like: the median latency, its tail, and CPU per request."""

    latency_ms: float
    tail: float  # sigma of the log-normal
    rps: float
    cpu_us: float


NATURES = {
    ("gunicorn", False): Nature(0.9, 0.25, 2900, 310),
    ("daphne-redis", False): Nature(2.9, 0.35, 395, 2450),
    ("daphne-ipc", False): Nature(2.85, 0.35, 398, 2440),
    ("daphne-redis", True): Nature(6.1, 0.5, 240, 4300),
    ("daphne-ipc", True): Nature(3.9, 0.4, 340, 2900),
}


def nature(variant, test):
    fallback = Nature(1.5 + len(variant) / 10, 0.3, 900 - 20 * len(variant), 1200)
    return NATURES.get((variant, test.startswith("relay")), fallback)


def encode(latencies_us):
    recorded = HdrHistogram(1, 60_000_000, 3)
    for latency in latencies_us:
        recorded.record_value(max(1, int(latency)))
    return recorded.encode().decode()


def load(random, variant, test, duration_s, drift=1.0):
    """A run of ``duration_s`` in which every request took ``drift`` times as long as usual."""
    workload, kind = WORKLOADS[test], nature(variant, test)
    rps = workload.rate_rps or kind.rps / drift
    per_second = [int(random.gauss(rps, rps / 60)) for _ in range(duration_s)]
    if workload.rate_rps:
        per_second = [int(rps)] * duration_s
    centre_us = kind.latency_ms * 1000 * drift
    drawn = [random.lognormvariate(0, kind.tail) * centre_us for _ in range(400 * duration_s)]
    ok = sum(per_second)
    return Load(
        test=test,
        mode=workload.mode,
        transport=workload.transport,
        url="http://127.0.0.1:8000" + workload.path,
        connection=workload.connection,
        rate_rps=workload.rate_rps,
        concurrency=workload.concurrency,
        duration_s=duration_s,
        elapsed_s=duration_s + 0.002,
        scheduled=ok,
        sent=ok,
        ok=ok,
        error=0,
        timeout=0,
        dropped=0,
        error_kinds={},
        latency_us=encode(drawn),
        error_latency_us=encode([]),
        lag_us=encode(random.uniform(40, 110) for _ in range(200 if workload.rate_rps else 0)),
        inflight_mean=rps * centre_us / 1e6,
        buckets=tuple(
            bucket(second, count, drawn[400 * second : 400 * (second + 1)])
            for second, count in enumerate(per_second)
        ),
        steps=steps(random, kind) if test == "capacity" else (),
        held_rps=kind.rps * 0.97 / drift if test == "capacity" else None,
        failed_rps=kind.rps * 1.03 / drift if test == "capacity" else None,
    )


def bucket(second, count, latencies_us):
    ordered = sorted(latencies_us)
    return Bucket(
        start_s=float(second),
        sent=count,
        ok=count,
        error=0,
        timeout=0,
        dropped=0,
        p50_ms=ordered[len(ordered) // 2] / 1000,
        p99_ms=ordered[int(len(ordered) * 0.99)] / 1000,
    )


def steps(random, kind):
    """A climb, then a bisection whose latency rises steeply near the capacity."""
    shares = (0.25, 0.5, 0.75, 0.88, 0.94, 0.97, 1.03)
    return tuple(
        Step(
            start_s=5.0 * i,
            duration_s=5.0,
            concurrency=None,
            rate_rps=kind.rps * share,
            ok=int(kind.rps * min(share, 1) * 5),
            failed=0 if share < 1 else 40,
            ok_rps=kind.rps * min(share, 1),
            p50_ms=kind.latency_ms / max(0.03, 1 - share) * random.uniform(0.9, 1.1),
            p99_ms=2.5 * kind.latency_ms / max(0.03, 1 - share) * random.uniform(0.9, 1.1),
            held=share < 1,
        )
        for i, share in enumerate(shares)
    )


def sample(random, campaign, arm, test, round_, *, duration_s=10, attempt=1, drift=1.0):
    variant = arm.removesuffix(" (again)")
    run = load(random, variant, test, duration_s, drift)
    cpu_s = run.ok * nature(variant, test).cpu_us * random.gauss(1, 0.02) / 1e6
    return Sample(
        campaign=campaign,
        arm=arm,
        variant=variant,
        test=test,
        round=round_,
        attempt=attempt,
        started=f"2026-11-21T12:{round_:02d}:00+00:00",
        load=run,
        server=Usage(cpu_s * 0.8, cpu_s * 0.2, 0.97, 61_000_000, 88_000_000, 2),
        generator=Usage(1.2, 0.7, 0.4, 70_000_000, 90_000_000, 1),
        machine=Machine(float(duration_s), 1.2, 0.01, 0.0),
        identity={"server": variant.split("-")[0], "versions": {"django": "5.2.19"}},
        gates=(gate(True),),
        command=("locust", "-f", "locustfiles/http.py"),
    )


def gate(ok):
    reason = "" if ok else "other processes used 12 % of a core"
    return Gate("foreign CPU", ok, 0.01 if ok else 0.12, 0.03, "cores", reason)


def invalid(good):
    return replace(good, gates=(gate(True), gate(False)))


def failed(good, log_tail=HOSTILE):
    return replace(
        good,
        load=None,
        server=None,
        generator=None,
        machine=None,
        gates=(),
        failure="daphne exited with 1 before it was ready",
        log_tail=log_tail,
    )


def campaign_of(kind="full", rounds=10, tests=("latency", "throughput", "relay_latency", "relay")):
    control = HEADLINE[0]
    return Campaign(
        name="20261121-120000",
        kind=kind,
        started="2026-11-21T12:00:00+00:00",
        finished="2026-11-21T12:40:00+00:00",
        rounds=rounds,
        control=control.name,
        twin=f"{control.name} (again)",
        arms={
            control.name: control.factors(),
            f"{control.name} (again)": control.factors(),
            **{variant.name: variant.factors() for variant in HEADLINE[1:]},
        },
        tests=tuple(tests),
        configurations={
            variant.name: {
                f"supervisor/programs/{variant.server}.conf": (
                    f"[program:{variant.server}]\ncommand = {variant.server} …\n"
                )
            }
            for variant in HEADLINE
        },
        provenance={
            "commit": "0123abc",
            "versions": {"python": "3.11.7", "Django": "5.2.19", "daphne": "4.2.3"},
            "machine": {"cpu": "Imaginary CPU 3000", "cores": 2, "memory_gb": 8, "kernel": "6.1"},
            "command": ["python", "-m", "bench", "run"],
        },
    )


def samples_of(campaign, seed=20160906, duration_s=10, drift=None):
    """Every sample of ``campaign``, all valid. ``drift``: arm -> factor on its latencies."""
    random = Random(seed)
    return [
        sample(
            random,
            campaign.name,
            arm,
            test,
            round_,
            duration_s=duration_s,
            drift=random.gauss(1, 0.015) * (drift or {}).get(arm, 1.0),
        )
        for round_ in range(1, campaign.rounds + 1)
        for arm, row in campaign.arms.items()
        for test in campaign.tests
        if row["layer"] != "none" or not WORKLOADS[test].needs_asgi
    ]


def pick(samples, arm, test, round_=1):
    return next(s for s in samples if (s.arm, s.test, s.round) == (arm, test, round_))


def spoil(samples):
    """Discard one attempt and repeat it, discard one cell of one round, and fail another."""
    first = pick(samples, "daphne-redis", "latency")
    gone = pick(samples, "daphne-redis", "relay", 2)
    broken = pick(samples, "daphne-ipc", "relay", 3)
    kept = [s for s in samples if s not in (first, gone, broken)]
    return [*kept, invalid(first), replace(first, attempt=2), invalid(gone), failed(broken)]


@dataclass(frozen=True)
class Canned:
    """A campaign with its samples, and how to write them down."""

    campaign: Campaign
    samples: tuple[Sample, ...]

    @property
    def summary(self):
        return summarize(self.campaign, self.samples)

    def write(self, folder):
        (folder / "raw").mkdir(parents=True)
        write_campaign(self.campaign, folder)
        for one in self.samples:
            write(one, folder / "raw")
        return folder


@pytest.fixture(scope="session")
def full():
    """Ten rounds with intervals, discards, a hostile log and a cell that failed once."""
    campaign = campaign_of(tests=("latency", "throughput", "relay_latency", "relay", "capacity"))
    return Canned(campaign, tuple(spoil(samples_of(campaign, duration_s=20))))


@pytest.fixture(scope="session")
def quick():
    """Three rounds of four seconds: no intervals, no five-second buckets."""
    campaign = campaign_of("quick", rounds=3, tests=("latency", "throughput", "relay"))
    return Canned(campaign, tuple(samples_of(campaign, duration_s=4)))


@pytest.fixture(scope="session")
def undrawn():
    """Nothing but failures, so that there is no chart to wait for."""
    campaign = campaign_of("quick", rounds=1, tests=("latency",))
    return Canned(campaign, tuple(failed(one) for one in samples_of(campaign, duration_s=2)))


@pytest.fixture(scope="session")
def make():
    """The generator itself, for a campaign that only one test needs."""
    return SimpleNamespace(
        campaign=campaign_of,
        samples=samples_of,
        canned=Canned,
        pick=pick,
        invalid=invalid,
        failed=failed,
        hostile=HOSTILE,
    )
