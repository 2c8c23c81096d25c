"""The generator of a fan-out, a process: many clients, each record checked.

    python -m bench.fanout.generator '{"url": "http://127.0.0.1:8000", "users": 100, ...}'

It connects and subscribes all users, says so in a line of JSON, and checks what comes. A line on
its standard input, ``{"published": {topic: messages}}``, tells it that no more will be published:
it waits until nothing more comes, says what it counted in another line, and ends. So does an
``{"mark": 1}``, without the end, for a run in several steps.
"""

import asyncio
import gc
import json
import resource
import sys
import time
from collections.abc import Mapping
from random import Random
from typing import Any

from bench.fanout.polls import Polls
from bench.fanout.sockets import Sockets
from bench.fanout.spec import TOPIC_BYTES, Spec, spec_from
from locustfiles.driver.deliveries import Layout, Subscriber, Tally
from locustfiles.driver.record import payload

QUIET_S = 0.5  # nothing for so long: nothing more will come
LONGEST_DRAIN_S = 10.0


class Generator:
    """All users of a process."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.tally = Tally()
        self.churned = Tally()
        self.visits = 0
        self._visitors: list[asyncio.Task[None]] = []
        self.layout = layout = Layout(spec.message_bytes, TOPIC_BYTES)
        side = {"websocket": Sockets, "polling": Polls}[spec.transport]
        self.side: Any = side(spec, layout, self.tally)
        self.clients: list[Any] = []
        self.subscribers: list[Subscriber] = []
        self.ramp: list[dict[str, float]] = []
        self.refused = 0

    async def start(self) -> None:
        """Connect and subscribe all users, ``spec.ramp`` at a time."""
        began = time.monotonic()
        for first in range(0, self.spec.users, self.spec.ramp):
            users = range(first, min(first + self.spec.ramp, self.spec.users))
            opened = await asyncio.gather(
                *(self.side.open() for _ in users), return_exceptions=True
            )
            clients = [client for client in opened if not isinstance(client, BaseException)]
            self.refused += len(opened) - len(clients)
            ready_s = time.monotonic() - began
            if self.spec.subscriptions:
                self.subscribers += await asyncio.gather(
                    *(
                        self.side.subscribe(client, self.spec.topics_of(user), since_start=True)
                        for client, user in zip(clients, users, strict=False)
                    )
                )
            self.clients += clients
            subscribed_s = time.monotonic() - began
            self.ramp.append(
                {"users": len(self.clients), "ready_s": ready_s, "subscribed_s": subscribed_s}
            )

    async def churn(self, number: int) -> None:
        """Come, listen for a moment and go, again and again."""
        chance = Random(f"{self.spec.seed}/churn/{number}")  # noqa: S311 - a load, no secret
        side = type(self.side)(self.spec, self.layout, self.churned)
        while True:
            client = await side.open()
            topics = self.spec.topics_of(chance.randrange(10**6))
            await side.subscribe(client, topics, since_start=False)
            await asyncio.sleep(chance.uniform(0.05, 0.5))
            await side.leave(client, topics)
            self.visits += 1

    def start_churn(self) -> None:
        self._visitors = [
            asyncio.get_running_loop().create_task(self.churn(number))
            for number in range(self.spec.churning)
        ]

    async def stop_churn(self) -> None:
        """End the visits; raise what went wrong in one of them.

        Who is here stays connected, and what still comes is counted: nothing is left on the way.
        """
        for visitor in self._visitors:
            visitor.cancel()
        ended = await asyncio.gather(*self._visitors, return_exceptions=True)
        self._visitors = []
        for one in ended:
            if isinstance(one, Exception):
                raise one

    async def drain(self) -> None:
        """Return when nothing has come for a while."""
        end = time.monotonic() + LONGEST_DRAIN_S
        seen = -1
        while seen != self.received() and time.monotonic() < end:
            seen = self.received()
            await asyncio.sleep(QUIET_S)

    def received(self) -> int:
        return self.tally.received + self.churned.received

    def report(self) -> dict[str, Any]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            **self.tally.counts(),
            "users": len(self.clients),
            "refused": self.refused,
            "closed": sum(client.closed.done() for client in self.clients),
            "subscriptions": sum(len(one.due) for one in self.subscribers),
            "gaps": sum(getattr(client, "gaps", 0) for client in self.clients),
            "churned": self.churned.counts() | {"visits": self.visits},
            "cpu_s": used.ru_utime + used.ru_stime,
            "at_monotonic_s": time.monotonic(),
        }

    def missing(self, published: Mapping[str, int]) -> int:
        counts = {topic.encode(): count for topic, count in published.items()}
        return sum(one.missing(counts) for one in self.subscribers)


async def lines() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    return reader


def say(**values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


async def generate(spec: Spec) -> None:
    generator = Generator(spec)
    told = await lines()
    await generator.start()
    # What exists now stays: there is no use in looking through a million entries again and again.
    gc.collect()
    gc.freeze()
    generator.start_churn()
    say(ready=True, ramp=generator.ramp, **generator.report())
    while line := await told.readline():
        request = json.loads(line)
        if "published" not in request:
            latency = payload(generator.tally.latency())
            generator.tally.latencies.clear()
            say(**generator.report(), latency_us=latency)
            continue
        before = generator.report()
        await generator.stop_churn()
        await generator.drain()
        counts = generator.report()
        missing = generator.missing(request["published"])
        latency = payload(generator.tally.latency())
        say(**counts, missing=missing, at_end=before, latency_us=latency)
        break
    for client in generator.clients:
        client.close()
    await asyncio.sleep(0.1)


def main() -> None:
    import uvloop

    uvloop.run(generate(spec_from(sys.argv[1])))


if __name__ == "__main__":
    main()
