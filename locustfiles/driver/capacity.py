"""The search for the highest throughput without errors, at the fewest clients, on a live server.

First it climbs: a closed loop whose number of clients follows ``vegas``. What that gives is an
estimate and no more, because clients that wait for their replies slow down with the server. Then
it confirms: open loops at fixed rates, by ``bisection``, until the highest rate that held and the
lowest that did not lie close together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import gevent

from .arrivals import constant
from .bisection import Bracket, delay_slope, grew_steadily, holds
from .pacing import Client, ClosedLoop, OpenLoop
from .record import Recorder, percentile_ms
from .ticker import clock
from .user import LEAD_S, DrivenUser, Run, recorded
from .vegas import WINDOW_REPLIES, WINDOW_S, Vegas, Window

CLIMB_SHARE = 0.4  # of the run time, at most ...
CLIMB_S = 60.0  # ... and never longer
LAST_WINDOWS = 4  # their mean throughput is the estimate
REST_S = 0.2  # between two rates
LATE_MS = 10.0  # a generator that late is itself what did not hold


@dataclass(frozen=True)
class Tried:
    """One rate, and what came of it."""

    rate_rps: float | None
    duration_s: float
    recorder: Recorder
    held: bool
    doubtful: bool = False  # it failed in a way that may not be the server's


class CapacityUser(DrivenUser):
    """Climbs, confirms, and reports the bracket.

    The JSON's counts and histograms are those of one step: the highest rate that held or, where
    none did, the last one tried. ``steps`` has them all.
    """

    abstract = True
    mode = "autothrottle"
    divisible = False

    def measure(self, run: Run, client: Client) -> dict[str, Any]:
        self.steps: list[dict[str, Any]] = []
        self.began = clock()
        climbed = self._climb(client, run)
        bracket, tried = self._confirm(client, run, climbed)
        held = [each for each in tried if each.held]
        shown = max(held, key=lambda each: each.rate_rps or 0.0) if held else [climbed, *tried][-1]
        return {
            **recorded(shown.recorder),
            "rate_rps": shown.rate_rps,
            "duration_s": shown.duration_s,
            "held_rps": bracket.held_rps,
            "failed_rps": bracket.failed_rps,
            "steps": self.steps,
        }

    def _climb(self, client: Client, run: Run) -> Tried:
        """Return the throughput at which the number of clients settled."""
        until = self.began + min(CLIMB_S, CLIMB_SHARE * (run.end - self.began))
        replies: list[tuple[float, str | None]] = []

        def report(intended: float, now: float, failure: str | None, length: int) -> None:
            replies.append((now - intended, failure))
            self.report(intended, now, failure, length)

        state, windows, recorder = Vegas(), [], Recorder(clock(), scheduled=False)
        loop = ClosedLoop(
            gevent.get_hub().loop, client, recorder, report, state.clients, self.began, float("inf")
        )
        run.loop = loop
        while not (run.stopped_early or state.is_settled or clock() > until):
            windows.append(self._window(loop, replies))
            state = state.after(windows[-1])
            loop.resize(state.clients)
        loop.stop()
        loop.over.wait()
        good = [window.ok_rps for window in windows if not window.failed][-LAST_WINDOWS:]
        if not good:
            run.warnings.append("no half second passed without a failure: no rate was tried")
        return Tried(fmean(good) if good else None, clock() - self.began, recorder, held=False)

    def _window(self, loop: ClosedLoop, replies: list[tuple[float, str | None]]) -> Window:
        """Let ``loop`` run for a window, and return what came of it."""
        replies.clear()
        start, clients = clock(), loop.clients
        for _ in range(4):
            gevent.sleep(WINDOW_S)
            if len(replies) >= WINDOW_REPLIES:
                break
        seconds = clock() - start
        good = [latency for latency, failure in replies if failure is None]
        failed = len(replies) - len(good)
        self._note(start, seconds, good, failed, concurrency=clients)
        return Window(clients, seconds, len(good), failed, median(good) if good else None)

    def _confirm(self, client: Client, run: Run, climbed: Tried) -> tuple[Bracket, list[Tried]]:
        """Return the bracket around the capacity, and the rates that were tried for it."""
        bracket, tried = Bracket(), list[Tried]()
        step_s = self.values["step"]
        while climbed.rate_rps and not run.stopped_early:
            rate_rps = bracket.next_rps(climbed.rate_rps)
            if rate_rps is None:
                break
            if clock() + REST_S + LEAD_S + step_s > run.end:
                run.warnings.append("the run time ended before the bracket was narrow")
                break
            gevent.sleep(REST_S)
            tried.append(self._try(client, run, rate_rps, step_s))
            if tried[-1].doubtful and clock() + REST_S + LEAD_S + step_s <= run.end:
                gevent.sleep(REST_S)
                tried.append(self._try(client, run, rate_rps, step_s))
            bracket = bracket.after(rate_rps, held=tried[-1].held)
        return bracket, tried

    def _try(self, client: Client, run: Run, rate_rps: float, step_s: float) -> Tried:
        """Offer ``rate_rps`` for ``step_s`` seconds, and wait for the replies."""
        start = clock() + LEAD_S
        recorder = Recorder(start)
        quarters: list[list[float]] = [[], [], [], []]

        def report(intended: float, now: float, failure: str | None, length: int) -> None:
            if failure is None:
                quarters[min(3, int((intended - start) * 4 / step_s))].append(now - intended)
            self.report(intended, now, failure, length)

        schedule = (start + at for at in constant(rate_rps, step_s))
        run.loop = OpenLoop(
            gevent.get_hub().loop,
            client,
            recorder,
            report,
            schedule,
            self.values["max_in_flight"],
        )
        run.loop.over.wait()
        failed = sum(recorder.counts()[key] for key in ("error", "timeout", "dropped"))
        held = holds(failed, delay_slope(quarters, step_s)) and not run.stopped_early
        lag_ms = percentile_ms(recorder.lag_us, 99)
        if not held and lag_ms is not None and lag_ms > LATE_MS:
            run.warnings.append(
                f"at {rate_rps:.0f} requests/s the generator was late (p99 {lag_ms:.0f} ms): "
                "its own limit, not the server's"
            )
        replies_s = [latency for quarter in quarters for latency in quarter]
        seconds = recorder.last - start  # until the last reply: what was achieved, not offered
        self._note(start, seconds, replies_s, failed, rate_rps=rate_rps, held=held)
        doubtful = not held and (failed > 0 or not grew_steadily(quarters, step_s))
        return Tried(rate_rps, step_s, recorder, held, doubtful)

    def _note(
        self,
        start: float,
        seconds: float,
        latencies_s: Sequence[float],
        failed: int,
        *,
        concurrency: int | None = None,
        rate_rps: float | None = None,
        held: bool | None = None,
    ) -> None:
        """Add a step to the JSON."""
        latencies_us = [round(latency * 1_000_000) for latency in latencies_s]
        self.steps.append(
            {
                "start_s": start - self.began,
                "duration_s": seconds,
                "concurrency": concurrency,
                "rate_rps": rate_rps,
                "ok": len(latencies_s),
                "failed": failed,
                "ok_rps": len(latencies_s) / seconds,
                "p50_ms": percentile_ms(latencies_us, 50),
                "p99_ms": percentile_ms(latencies_us, 99),
                "held": held,
            }
        )
