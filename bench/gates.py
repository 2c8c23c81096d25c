"""The conditions under which a measurement counts.

Each gate asks one question whose answer "no" would make the figure say something about the
generator, the machine or a mistake, and not about the deployment. The limits come from experience:
on small machines other processes, not steal, were the noise, by up to 38 %.
"""

from collections.abc import Iterator
from dataclasses import replace

from hdrh.histogram import HdrHistogram

from bench.records import Gate, Load, Machine, Usage

GENERATOR_CORES = 0.90
FOREIGN_CORES = 0.03
STEAL_SHARE = 0.01
LAG_P99_MS = 0.2  # a lag this small does not matter, however fast the replies
LAG_SHARE = 0.10
LITTLE_SHARE = 0.10
FAILED_SHARE = 0.001
SUCCESSES_FOR_P99 = 1000  # ten of them lie above the 99th percentile
SUCCESSES_FOR_RATE = 200
CAPACITY_SHARE = 0.75
SATURATED_SHARE = 0.95
FAILURES = "failures"
SATURATION = "saturation"


def check(
    load: Load,
    server: Usage,
    generator: Usage,
    machine: Machine,
    *,
    server_cores: int,
    cores: int,
    hangs: bool = False,
) -> tuple[Gate, ...]:
    """Return every gate that applies to a measurement, met or not.

    ``server_cores`` is how many the server may run on, ``cores`` how many the machine has. Where
    requests that get no reply are what the test is for, ``hangs``, failures only make a remark.
    """
    found = _gates(load, server, generator, machine, server_cores, cores)
    return tuple(
        replace(gate, advisory=True) if hangs and gate.name == FAILURES else gate for gate in found
    )


def _gates(
    load: Load, server: Usage, generator: Usage, machine: Machine, server_cores: int, cores: int
) -> Iterator[Gate]:
    yield accounting(load)
    yield bodies(load)
    yield successes(load)
    yield littles_law(load)
    if load.mode == "autothrottle":
        yield bracket(load)  # it fails requests on purpose, to find where they begin to
    elif load.mode == "open":
        # A finding, and in the percentiles: to try again until all goes well would hide it.
        yield replace(failures(load), advisory=True)
        yield schedule_lag(load)
    else:
        yield failures(load)
    if load.mode == "open":
        yield saturation(server, machine, server_cores)
    yield generator_cpu(generator, machine)
    yield foreign_cpu(machine)
    yield steal(machine, cores)
    if load.mode != "open":
        yield capacity(server, machine, server_cores)


def _at_most(name: str, measured: float, limit: float, unit: str, reason: str) -> Gate:
    ok = measured <= limit
    return Gate(name, ok, measured, limit, unit, "" if ok else reason)


def accounting(load: Load) -> Gate:
    """Every request that was meant to be sent is in exactly one of the counts."""
    lost = abs(load.scheduled - load.sent - load.dropped)
    lost += abs(load.sent - load.ok - load.error - load.timeout)
    for count in ("sent", "ok", "error", "timeout", "dropped"):
        lost += abs(getattr(load, count) - sum(getattr(one, count) for one in load.buckets))
    reason = f"{lost} requests are counted twice or not at all: the generator is at fault"
    return _at_most("accounting", lost, 0, "requests", reason)


def bodies(load: Load) -> Gate:
    """No reply was the wrong one."""
    wrong = load.error_kinds.get("wrong body", 0)
    reason = f"{wrong} replies had another body than the test asks for"
    return _at_most("wrong bodies", wrong, 0, "replies", reason)


def failures(load: Load) -> Gate:
    """Hardly any request failed: what the others got is what a lighter load gets."""
    failed = load.error + load.timeout + load.dropped
    share = failed / max(load.sent + load.dropped, 1)
    kinds = load.error_kinds | {"without a reply": load.timeout, "never sent": load.dropped}
    causes = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    reason = f"{failed} of {load.sent + load.dropped} requests failed: {causes}"
    return _at_most(FAILURES, 100 * share, 100 * FAILED_SHARE, "%", reason)


def successes(load: Load) -> Gate:
    """There are enough replies for the percentile, or the rate, that is reported."""
    needed = SUCCESSES_FOR_P99 if load.mode == "open" else SUCCESSES_FOR_RATE
    ok = load.ok >= needed
    reason = f"{load.ok} replies are too few to report from: measure longer"
    return Gate("enough replies", ok, load.ok, needed, "replies", "" if ok else reason)


def bracket(load: Load) -> Gate:
    """The search has found a rate that held. What did not hold it may be the generator's end."""
    reason = "no rate held: the search found nothing that this deployment sustains"
    ok = load.held_rps is not None
    return Gate("held rate", ok, load.held_rps, None, "requests/s", "" if ok else reason)


def littles_law(load: Load) -> Gate:
    """Requests in flight = rate x time in the system (Little, 1961): if not, a clock lies.

    The three are measured apart from each other: by a counter over time, by counting replies, and
    by the histogram of latencies. Those run from the intended send; what was late is not in flight.
    """
    flown_us = _sum_us(load.latency_us) + _sum_us(load.error_latency_us) - _sum_us(load.lag_us)
    expected = flown_us / 1e6 / load.elapsed_s
    if expected <= 0:
        return Gate("Little's law", False, None, None, "%", "no request took any time")
    off = abs(load.inflight_mean / expected - 1)
    reason = (
        f"{load.inflight_mean:.2f} requests were in flight where rate and latency make "
        f"{expected:.2f}: requests hung, or their times are wrong"
    )
    return _at_most("Little's law", 100 * off, 100 * LITTLE_SHARE, "%", reason)


def schedule_lag(load: Load) -> Gate:
    """Requests left when they were meant to."""
    lag_ms, latency_ms = _p99_ms(load.lag_us), _p99_ms(load.latency_us)
    if lag_ms is None or latency_ms is None:
        return Gate("schedule lag", False, None, LAG_P99_MS, "ms", "no request was timed")
    reason = f"requests left {lag_ms:.2f} ms late (p99), beside a latency of {latency_ms:.2f} ms"
    return _at_most("schedule lag", lag_ms, max(LAG_P99_MS, LAG_SHARE * latency_ms), "ms", reason)


def generator_cpu(generator: Usage, machine: Machine) -> Gate:
    """The generator had time to spare: otherwise it is the generator that is measured."""
    used = generator.cpu_s / machine.wall_s
    reason = f"the generator used {used:.0%} of a core: it is measured, and not the server"
    return _at_most("generator CPU", used, GENERATOR_CORES, "cores", reason)


def foreign_cpu(machine: Machine) -> Gate:
    """Nothing else was running."""
    foreign = machine.foreign_cores
    reason = f"other processes used {foreign:.0%} of a core: stop them, or measure when they rest"
    return _at_most("foreign CPU", foreign, FOREIGN_CORES, "cores", reason)


def steal(machine: Machine, cores: int) -> Gate:
    """The hypervisor gave us the processors it shows."""
    limit = STEAL_SHARE * cores
    reason = f"the hypervisor kept {machine.steal_cores:.2f} cores to itself: its other guests work"
    return _at_most("steal", machine.steal_cores, limit, "cores", reason)


def capacity(server: Usage, machine: Machine, server_cores: int) -> Gate:
    """Whether a throughput may be called the server's capacity. Advisory.

    The server was busy if it used most of the processors it may run on, or if one of its processes
    used most of one: a single-threaded server can do no more however many processors there are.
    """
    busy = _busy(server, machine, server_cores)
    reason = (
        f"no part of the server was busy for more than {busy:.0%} of the time: "
        "what this many clients get, and not what the server can do"
    )
    ok = busy >= CAPACITY_SHARE
    return Gate(
        "capacity", ok, 100 * busy, 100 * CAPACITY_SHARE, "%", "" if ok else reason, advisory=True
    )


def saturation(server: Usage, machine: Machine, server_cores: int) -> Gate:
    """Whether the server kept up with the rate, with time to spare. Advisory.

    Where it did not, requests queue up for as long as the run lasts: their latency is that of this
    run's length and of no other.
    """
    busy = _busy(server, machine, server_cores)
    reason = f"the server was busy for {busy:.0%} of the time: it hardly carries this rate"
    ok = busy <= SATURATED_SHARE
    return Gate(
        SATURATION,
        ok,
        100 * busy,
        100 * SATURATED_SHARE,
        "%",
        "" if ok else reason,
        advisory=True,
    )


def _busy(server: Usage, machine: Machine, server_cores: int) -> float:
    """Return the share of time that the server, or its busiest process, used what it may use."""
    used = server.cpu_s / machine.wall_s
    return max(used / server_cores, server.cpu_busiest_process_cores or 0.0)


def _histogram(payload: str) -> HdrHistogram | None:
    histogram = HdrHistogram.decode(payload.encode())
    return histogram if histogram.get_total_count() else None


def _p99_ms(payload: str) -> float | None:
    histogram = _histogram(payload)
    return histogram.get_value_at_percentile(99) / 1000 if histogram else None


def _sum_us(payload: str) -> float:
    histogram = _histogram(payload)
    return histogram.get_mean_value() * histogram.get_total_count() if histogram else 0.0
