"""The clauses about topics, kept by a real server and broken by small ones."""

import json
import threading
from contextlib import contextmanager

import pytest
from websockets.sync.server import serve

from bench.contract import topics
from bench.variants import Variant

UVICORN = Variant("uvicorn", "ipc")


@contextmanager
def answering(answers):
    """Run a WebSocket server that gives these answers, in turn."""

    def handle(client):
        for answer in answers:
            client.recv()
            client.send(json.dumps(answer))
        client.recv()

    with serve(handle, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


RIGHT = [{"subscribed": 2, "id": 1}, {"error": "no", "id": 2}, {"unsubscribed": 2, "id": 3}]


def test_subscription_clause_finds_nothing_where_it_is_kept():
    with answering(RIGHT) as url:
        assert list(topics.subscription(url, UVICORN)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        [{"subscribed": 1, "id": 1}, *RIGHT[1:]],
        [RIGHT[0], {"subscribed": 1, "id": 2}, RIGHT[2]],
        [*RIGHT[:2], {"error": "no", "unsubscribed": 2, "id": 3}],
    ],
)
def test_subscription_clause_names_the_wrong_answer(wrong):
    with answering(wrong) as url:
        assert len(list(topics.subscription(url, UVICORN))) == 1
