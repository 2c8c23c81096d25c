"""The clauses about topics: subscriptions over WebSocket, and long polling."""

import json
import secrets
from collections.abc import Iterator

from bench.contract.replies import get
from bench.contract.sockets import TIMEOUT_S, socket
from bench.variants import Variant


def subscription(base_url: str, variant: Variant) -> Iterator[str]:
    """/ws/topics/ acknowledges topics, and says what is wrong without closing."""
    if variant.interface != "asgi":
        return
    requests: list[dict[str, object]] = [
        {"subscribe": ["a", "b"], "id": 1},
        {"subscribe": ["no such name!"], "id": 2},
        {"unsubscribe": ["a", "b"], "id": 3},
    ]
    answers = [{"subscribed": 2, "id": 1}, {"id": 2}, {"unsubscribed": 2, "id": 3}]
    with socket(base_url, "/ws/topics/") as client:
        for request, wanted in zip(requests, answers, strict=True):
            client.send(json.dumps(request))
            try:
                told = json.loads(client.recv(timeout=TIMEOUT_S))
            except TimeoutError:
                yield f"/ws/topics/ does not answer {json.dumps(request)}"
                return
            complaint = told.pop("error", None)
            if told != wanted or (complaint is None) != (len(wanted) > 1):
                yield f"/ws/topics/ answers {json.dumps(request)} with {told}, {complaint}"


def polling(base_url: str, variant: Variant) -> Iterator[str]:
    """/poll/ gives a cursor at once, and with it an empty answer when nothing comes in time."""
    path = f"/poll/?topic={secrets.token_hex(8)}&timeout=0"
    if variant.interface == "wsgi":
        if (status := get(base_url, path).status) != 501:
            yield f"GET /poll/ answers {status} instead of 501"
        return
    reply = get(base_url, path)
    if reply.status != 200 or reply.content_type != "application/json":
        yield f"GET /poll/ answers {reply.status}, {reply.content_type}: {reply.text[:80]!r}"
        return
    first = json.loads(reply.body)
    again = json.loads(get(base_url, f"{path}&cursor={first['cursor']}").body)
    # Of several processes, one that has not seen the client may have a gap to tell of.
    if again["messages"] or (variant.processes == 1 and again["gaps"]):
        yield f"GET /poll/ of a quiet topic answers {again}"
    if (status := get(base_url, "/poll/?topic=no+such+name!").status) != 400:
        yield f"GET /poll/ of a topic that cannot be answers {status} instead of 400"


CLAUSES = (subscription, polling)
