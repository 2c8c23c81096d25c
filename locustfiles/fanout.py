"""Subscribers of /ws/topics/, with Locust. Every record is checked: size, topic and sequence.

    python manage.py publish --topics 200 --rate 100 &
    locust -f locustfiles/fanout.py --headless -t 20s --host http://127.0.0.1:8000

For small cells, up to a few tens of thousands of records a second; ``python -m bench fanout`` has a
faster generator with the same checks, and runs one cell by both. One user drives all sockets, so
Locust's number of users stays at 1. What is published is the feed's affair: this only listens, and
says what it got.
"""

from typing import Any

import gevent
from driver.options import ORIGIN, RESULT_JSON, TIMEOUT, WARM_UP, Option, whole
from driver.record import payload
from driver.registration import register
from driver.subscriber_client import Client, Subscriptions
from driver.target import BadTarget, Target, resolve
from driver.ticker import clock
from driver.user import DrivenUser, Run

TICK_S = 0.1
FANOUT = (
    Option("--path", str, "/ws/topics/", "Path of the endpoint that topics come from"),
    Option("--connections", whole(1, 5_000), 100, "Sockets that are open at once"),
    Option("--subscriptions", whole(1, 10_000), 20, "Topics that each socket subscribes to"),
    Option("--topics", whole(1, 1_000_000), 200, "Topics they are drawn from, as published"),
    Option("--message-bytes", whole(37, 65_536), 1_024, "Length of a record, as published"),
    ORIGIN,
    TIMEOUT,
    WARM_UP,
    RESULT_JSON,
)


class Subscribers(DrivenUser):
    """Listens for the run time."""

    transport = "websocket"
    test = "fanout"
    mode = "listen"
    request_type = "WS"
    options = FANOUT

    def find_target(self) -> Target:
        if self.values["subscriptions"] > self.values["topics"]:
            raise BadTarget(
                f"--subscriptions {self.values['subscriptions']}: there are "
                f"{self.values['topics']} topics to draw from"
            )
        return resolve(self.host, self.values["path"], schemes=("http", "ws"))

    def client(self) -> Client:
        values, target = self.values, self.target
        asked = Subscriptions(
            target,
            values["origin"] or f"http://{target.authority}",
            values["connections"],
            values["subscriptions"],
            values["topics"],
            values["message_bytes"],
            values["timeout"],
        )
        client = Client(gevent.get_hub().loop, asked)
        client.open()
        return client

    def measure(self, run: Run, client: Client) -> dict[str, Any]:
        """Listen until the end, and tell Locust about each tick's records."""
        seen = client.tally.received
        while clock() < run.end and not run.stopped_early:
            gevent.sleep(TICK_S)
            self._tell(client.tally.received - seen)
            seen = client.tally.received
        # Nothing is sent here, so there are no seconds of sends to tell about.
        elapsed_s = clock() - run.start
        return {"elapsed_s": elapsed_s, "counters": client.counts(), "buckets": []}

    def _tell(self, records: int) -> None:
        for _ in range(records):
            self.environment.stats.log_request("WS", "record", None, self.values["message_bytes"])

    def identity(self, client: Client) -> dict[str, object]:
        return {
            "url": self.target.url,
            "connection": "keepalive",
            "latency_us": payload(client.tally.latency()),
        }


register(FANOUT)
