"""The tests as Locust users, whatever they send: open loop, closed loop."""

from typing import Any

import gevent

from .arrivals import arrivals
from .pacing import Client, ClosedLoop, Loop, OpenLoop
from .record import Recorder
from .user import DrivenUser, Run, recorded


class LoopUser(DrivenUser):
    """Runs one loop from beginning to end. Subclasses say which loop, and what it sends."""

    abstract = True

    def measure(self, run: Run, client: Client) -> dict[str, Any]:
        recorder = Recorder(run.start, scheduled=self.mode == "open")
        run.loop = self.loop(client, recorder, run)
        run.loop.over.wait()
        return {**self.setting(), **recorded(recorder)}

    def setting(self) -> dict[str, Any]:
        """Return the rate or the concurrency, for the JSON."""
        raise NotImplementedError

    def loop(self, client: Client, recorder: Recorder, run: Run) -> Loop:
        """Return the running loop."""
        raise NotImplementedError


class OpenLoopUser(LoopUser):
    """Requests at ``--rps``, whatever the replies do."""

    abstract = True
    mode = "open"

    def setting(self) -> dict[str, Any]:
        return {"rate_rps": self.values["rps"]}

    def loop(self, client: Client, recorder: Recorder, run: Run) -> Loop:
        begin = run.start - self.values["warm_up"]
        planned = arrivals(
            self.values["arrivals"],
            self.values["rps"],
            run.end - begin,
            self.share.index,
            self.share.workers,
        )
        return OpenLoop(
            gevent.get_hub().loop,
            client,
            recorder,
            self.report,
            (begin + at for at in planned),
            self.values["max_in_flight"],
        )


class ClosedLoopUser(LoopUser):
    """As many in flight as ``concurrency`` says: each reply makes room for the next request."""

    abstract = True
    mode = "closed"

    def setting(self) -> dict[str, Any]:
        return {"concurrency": self.concurrency()}

    def concurrency(self) -> int:
        """Return how many requests are in flight at a time."""
        clients = self.values["clients"]
        assert isinstance(clients, int)
        return clients

    def loop(self, client: Client, recorder: Recorder, run: Run) -> Loop:
        return ClosedLoop(
            gevent.get_hub().loop,
            client,
            recorder,
            self.report,
            self.concurrency(),
            run.start - self.values["warm_up"],
            run.end,
            self.values.get("requests") or float("inf"),
        )

    def measure(self, run: Run, client: Client) -> dict[str, Any]:
        measured = super().measure(run, client)
        asked = self.values.get("requests", 0)
        if measured["sent"] < asked and not run.stopped_early:
            run.warnings.append(
                f"the run time was over after {measured['sent']} of {asked} requests"
            )
        return measured
