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

    def measure(self, run: Run) -> dict[str, Any]:
        recorder = Recorder(run.start)
        client = self.client()
        try:
            run.loop = self.loop(client, recorder, run)
            run.loop.over.wait()
        finally:
            client.close()
        return {**self.identity(), **self.setting(), **recorded(recorder)}

    def client(self) -> Any:
        """Return what sends, ready to send; ``close`` ends it."""
        raise NotImplementedError

    def identity(self) -> dict[str, Any]:
        """Return url and connection, for the JSON."""
        raise NotImplementedError

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
        planned = arrivals(self.values["arrivals"], self.values["rps"], run.end - begin)
        return OpenLoop(
            gevent.get_hub().loop,
            client,
            recorder,
            self.report,
            (begin + at for at in planned),
            self.values["max_in_flight"],
        )


class ClosedLoopUser(LoopUser):
    """``--clients`` of them, each waiting for its reply before it sends again."""

    abstract = True
    mode = "closed"

    def setting(self) -> dict[str, Any]:
        return {"concurrency": self.values["clients"]}

    def loop(self, client: Client, recorder: Recorder, run: Run) -> Loop:
        return ClosedLoop(
            gevent.get_hub().loop, client, recorder, self.report, self.values["clients"], run.end
        )
