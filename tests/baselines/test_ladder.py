"""The rungs differ in what they say they differ in: the trips to a thread."""

import http.client
import threading
import time

import pytest
import uvicorn
from asgiref.wsgi import WsgiToAsgi

from baselines.own_context import OwnContext
from bench.baselines.hops import counted
from bench.baselines.rows import rows

RUNGS = {row.name: row for row in rows() if row.table == "ladder"}


@pytest.mark.parametrize(
    ("rung", "hops", "threads"),
    [
        ("none-sync", 3, 2),  # the view, and the signals at either end
        ("inline-sync", 3, 2),  # no more with seven middlewares that make no trips
        ("stock-sync", 16, 2),
        ("shared_thread", 16, 0),
        ("one_hop", 1, 0),
        ("in_loop", 0, 0),
    ],
)
def test_rung_makes_as_many_trips_to_a_thread_as_the_docs_say(rung, hops, threads):
    assert counted(RUNGS[rung]) == {"hops": hops, "threads": threads}


@pytest.mark.parametrize(("adapter", "well"), [(OwnContext, True), (WsgiToAsgi, False)])
def test_kept_connection_is_answered_again_and_needs_the_wrapper_for_that(adapter, well):
    def application(_, start_response):
        start_response("200 OK", [("Content-Length", "2")])
        return [b"OK"]

    config = uvicorn.Config(adapter(application), port=0, lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        address = server.servers[0].sockets[0].getsockname()
        client = http.client.HTTPConnection(*address, timeout=10)
        statuses = []
        # Mostly the second fails, but that is a race: on a busy machine a few may pass.
        while len(statuses) < 200 and set(statuses) <= {200}:
            client.request("GET", "/")
            response = client.getresponse()
            statuses.append(response.status)
            response.read()
        client.close()
    finally:
        server.should_exit = True
        thread.join()
    assert (statuses == [200] * 200) is well
