"""Counts the trips to a thread that one request through the ladder's application makes.

Prints JSON: ``hops``, calls handed to a thread; ``threads``, threads started for it. The first
argument is the path. Of five requests the least counts, after five more: whatever is made once has
been made, and a pool of threads may still have been growing during one of them.
"""

import asyncio
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from baselines.ladder import application

WARM_UP, COUNTED = 5, 5
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
    found = []
    for _ in range(COUNTED):
        counts.update(hops=0, threads=0)
        await request(path)
        found.append(dict(counts))
    return {name: min(one[name] for one in found) for name in counts}


ThreadPoolExecutor.submit = counted("hops", ThreadPoolExecutor.submit)
threading.Thread.start = counted("threads", threading.Thread.start)
print(json.dumps(asyncio.run(main(sys.argv[1]))))  # noqa: T201 - that is what it is for
