"""Load on one echoing WebSocket endpoint, with Locust. Every reply is checked.

    locust -f locustfiles/websocket.py --host ws://127.0.0.1:8000
    locust -f locustfiles/websocket.py Echo --headless -t 60s --host ws://127.0.0.1:8000

Three tests, each a user class: EchoAtRate (the default), an open loop at --rps over all sockets;
Echo, a closed loop in which every socket sends as soon as its reply has come; and EchoBatch, in
which --connections sockets open, send --messages each and close, again and again until the run time
is over (once, without one). One user drives the whole load, so Locust's number of users stays at 1;
what counts are the driver's own options, which the web UI shows under "Custom parameters" and
``driver/options.py`` lists. In the web UI ``--class-picker`` offers the tests.
"""

import sys
from dataclasses import replace

# Locust has imported this file under the name of the package websocket-client. Give the name back.
if __name__ == "websocket":
    sys.modules.pop("websocket", None)

import gevent
from driver.batch import Batch, Totals
from driver.loops import ClosedLoopUser, OpenLoopUser
from driver.options import WEBSOCKET
from driver.record import Recorder, histogram, payload
from driver.registration import register
from driver.target import BadTarget, Target, resolve
from driver.ticker import clock
from driver.user import DrivenUser, Run, recorded
from driver.websocket_client import Echo as EchoSpec
from driver.websocket_client import WebSocketClient, probe, tally


class WebSocketUser(DrivenUser):
    """What the tests have in common: messages that must come back, unchanged and in order."""

    abstract = True
    transport = "websocket"
    test = "echo"
    request_type = "WS"
    options = WEBSOCKET

    def find_target(self) -> Target:
        target = resolve(self.host, self.values["path"], schemes=("ws", "http"))
        one = replace(self._echo(target), connections=1)
        reason = probe(gevent.get_hub().loop, one)
        if reason is not None:
            raise BadTarget(f"--path {target.path}: {target.url} opens no WebSocket ({reason})")
        return target

    def client(self) -> WebSocketClient:
        client = WebSocketClient(gevent.get_hub().loop, self._echo(self.target))
        client.open()
        return client

    def identity(self, client: WebSocketClient) -> dict[str, object]:
        return {
            "url": self.target.url,
            "connection": "close" if self.values["messages"] else "keepalive",
            "counters": tally(client.verdicts),
            "unasked": sum(verdict.unasked for verdict in client.verdicts),
            "connect_us": payload(histogram(client.connect_us)),
        }

    def _echo(self, target: Target) -> EchoSpec:
        return EchoSpec(
            target,
            origin=self.values["origin"] or f"http://{target.authority}",
            connections=self.values["connections"],
            timeout_s=self.values["timeout"],
            message_bytes=self.values["message_bytes"],
            messages=self.values["messages"],
            opening=self.values["opening"] or self.values["connections"],
        )


class EchoAtRate(WebSocketUser, OpenLoopUser):
    """Open loop at --rps: each reply timed from the moment its message was meant to be sent."""


class Echo(WebSocketUser, ClosedLoopUser):
    """Closed loop: as fast as the server answers."""

    def concurrency(self) -> int:
        return self.values["connections"] * self.values["per_connection"]


class EchoBatch(WebSocketUser):
    """A piece of work: sockets open, send their messages one by one, and close. All are counted."""

    mode = "closed"
    divisible = False

    def read_options(self) -> None:
        super().read_options()
        self.values["messages"] = self.values["messages"] or 1  # 0 would be a batch without end

    def client(self) -> Totals:
        return Totals()

    def measure(self, run: Run, client: Totals) -> dict[str, object]:
        run.start = clock()
        recorder = Recorder(run.start, scheduled=False)
        while True:
            batch = Batch(
                gevent.get_hub().loop,
                self._echo(self.target),
                client,
                recorder,
                self.report,
                detail=self.values["detail"] == "yes",
            )
            run.loop = batch
            batch.over.wait()
            if run.stopped_early or run.duration_s is None or clock() >= run.end:
                break
        return {"concurrency": self.values["connections"], **recorded(recorder)}

    def identity(self, client: Totals) -> dict[str, object]:
        return {
            **super().identity(client),
            "connection": "close",
            "batches": client.batches,
            "phases_s": dict(client.phases_s),
            "socket_errors": dict(client.socket_errors),
        }


register(WEBSOCKET)
