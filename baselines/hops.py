"""Counts the trips to a thread that one request through the ladder's application makes.

Prints JSON: ``hops``, calls handed to a thread; ``threads``, threads started for it. The first
argument is the path. The request counted is the tenth, when whatever is made once has been made.
"""

import asyncio
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from baselines.ladder import application

WARM_UP = 9
counts = {"hops": 0, "threads": 0}


def counted(name, function):
    def wrapper(*arguments, **options):
        counts[name] += 1
        return function(*arguments, **options)

    return wrapper


async def request(path):
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 1),
    }
    incoming = [{"type": "http.request", "body": b"", "more_body": False}]
    sent = []

    async def receive():
        return incoming.pop() if incoming else await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    await application(scope, receive, send)
    assert sent[0]["status"] == 200, sent


async def main(path):
    for _ in range(WARM_UP):
        await request(path)
    counts.update(hops=0, threads=0)
    await request(path)


ThreadPoolExecutor.submit = counted("hops", ThreadPoolExecutor.submit)
threading.Thread.start = counted("threads", threading.Thread.start)
asyncio.run(main(sys.argv[1]))
print(json.dumps(counts))  # noqa: T201 - that is what it is for
