"""The worker's end of the relay."""

import asyncio
import threading
import time

import pytest
from channels.exceptions import ChannelFull, MessageTooLarge

from testproject import worker
from testproject.worker import Worker, answered

LATER = 4e9  # seconds since the epoch


def message(*requests, expires_at=LATER, reply_to="relay.node!one"):
    return {
        "type": "relay.requests",
        "reply_to": reply_to,
        "expires_at": expires_at,
        "requests": [list(request) for request in requests],
    }


class Layer:
    """Keeps the replies; raises what ``refusal`` makes of one."""

    def __init__(self):
        self.sent = []
        self.came = asyncio.Event()
        self.refusal = lambda message: None

    async def send(self, channel, message):
        error = self.refusal(message)
        if error is not None:
            raise error
        self.sent.append((channel, message["replies"]))
        self.came.set()


@pytest.fixture
async def layer():
    return Layer()


@pytest.fixture
async def inbox(layer):
    """What ``runworker`` would feed to a worker that runs."""
    inbox = asyncio.Queue()
    task = asyncio.create_task(Worker(layer).serve(inbox.get))
    yield inbox
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def until(layer, count):
    async with asyncio.timeout(30):
        while len(layer.sent) < count:
            layer.came.clear()
            await layer.came.wait()


async def test_worker_answers_on_the_reply_channel(layer, inbox):
    inbox.put_nowait(message((1, "echo", "a"), (2, "echo", b"b")))
    await until(layer, 1)
    assert layer.sent == [("relay.node!one", [(1, "a"), (2, b"b")])]


async def test_worker_runs_a_message_once_though_it_comes_twice(layer, inbox):
    for _ in range(2):
        inbox.put_nowait(message((1, "echo", "a")))
    inbox.put_nowait(message((1, "echo", "b"), reply_to="another.node!one"))
    await until(layer, 2)
    assert layer.sent == [
        ("relay.node!one", [(1, "a")]),
        ("another.node!one", [(1, "b")]),
    ]


async def test_worker_forgets_old_messages(layer, inbox, monkeypatch):
    monkeypatch.setattr(worker, "REMEMBERED", 1)
    for number in (1, 2, 1):
        inbox.put_nowait(message((number, "echo", "a")))
    await until(layer, 3)


async def test_worker_offers_a_reply_again_where_the_server_is_full_for_a_moment(layer, inbox):
    refusals = iter([ChannelFull(), ChannelFull()])
    layer.refusal = lambda sent: next(refusals, None) if sent["replies"][0][0] == 1 else None
    inbox.put_nowait(message((1, "echo", "a")))
    inbox.put_nowait(message((2, "echo", "b")))
    await until(layer, 2)
    assert layer.sent == [("relay.node!one", [(2, "b")]), ("relay.node!one", [(1, "a")])]


@pytest.mark.parametrize("limit", ["OFFERS", "LATE_MAX"])
async def test_worker_goes_on_after_a_reply_that_nobody_takes(
    layer, inbox, caplog, monkeypatch, limit
):
    monkeypatch.setattr(worker, limit, 0)
    monkeypatch.setattr(worker, "OFFER_S", 0)
    layer.refusal = lambda sent: ChannelFull() if sent["replies"][0][0] == 1 else None
    inbox.put_nowait(message((1, "echo", "a")))
    inbox.put_nowait(message((2, "echo", "b")))
    await until(layer, 1)
    assert layer.sent == [("relay.node!one", [(2, "b")])]
    await asyncio.sleep(0)
    assert "1 replies dropped" in caplog.text


async def test_worker_sends_replies_apart_where_they_are_too_large(layer, inbox, caplog):
    def refuse_large(sent):
        contents = [content for _, content in sent["replies"]]
        return MessageTooLarge() if "large" in contents else None

    layer.refusal = refuse_large
    inbox.put_nowait(message((1, "echo", "small"), (2, "echo", "large")))
    await until(layer, 2)
    assert [replies for _, replies in layer.sent] == [[(1, "small")], [(2, None)]]
    assert "too large for the channel layer" in caplog.text


async def test_worker_ends_its_thread_with_itself(layer):
    before = threading.active_count()
    inbox = asyncio.Queue()
    inbox.put_nowait(message((1, "echo", "a")))
    task = asyncio.create_task(Worker(layer).serve(inbox.get))
    await until(layer, 1)
    assert threading.active_count() > before
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()
    assert threading.active_count() == before


def test_answered_runs_nothing_that_came_too_late(caplog):
    late = message((1, "echo", "a"), expires_at=time.time() - 1)
    assert list(answered(late)) == []
    assert "came too late and was not run" in caplog.text


def test_answered_contains_a_request_that_fails(caplog):
    requests = message((1, "no such kind", ""), (2, "echo", "b"))
    assert list(answered(requests)) == [[(1, None), (2, "b")]]
    assert "A relayed request of kind 'no such kind' failed" in caplog.text


def test_answered_yields_what_is_done_before_a_slow_one_holds_it_up(monkeypatch):
    monkeypatch.setattr(worker, "SLICE_S", 0.0)
    assert list(answered(message((1, "echo", "a"), (2, "echo", "b")))) == [[(1, "a")], [(2, "b")]]
