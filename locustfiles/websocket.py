"""Load on one echoing WebSocket endpoint, with Locust. Every reply is checked.

    locust -f locustfiles/websocket.py --host ws://127.0.0.1:8000
    locust -f locustfiles/websocket.py Echo --headless -t 60s --host ws://127.0.0.1:8000

Two tests, each a user class: EchoAtRate (the default), an open loop at --rps over all sockets, and
Echo, a closed loop in which every socket sends as soon as its reply has come. One user drives the
whole load, so Locust's number of users stays at 1; what counts are the driver's own options, which
the web UI shows under "Custom parameters" and ``driver/options.py`` lists. In the web UI
``--class-picker`` offers the tests.
"""

import sys
from dataclasses import replace

# Locust has imported this file under the name of the package websocket-client. Give the name back.
if __name__ == "websocket":
    sys.modules.pop("websocket", None)

import gevent
from driver.loops import ClosedLoopUser, OpenLoopUser
from driver.options import WEBSOCKET
from driver.record import histogram, payload
from driver.target import BadTarget, Target, resolve
from driver.user import DrivenUser, register
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
        )


class EchoAtRate(WebSocketUser, OpenLoopUser):
    """Open loop at --rps: each reply timed from the moment its message was meant to be sent."""


class Echo(WebSocketUser, ClosedLoopUser):
    """Closed loop: as fast as the server answers."""

    def concurrency(self) -> int:
        return self.values["connections"] * self.values["per_connection"]


register(WEBSOCKET)
