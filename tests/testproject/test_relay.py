"""The server's end of the relay, over a channel layer that does as the test says."""

import asyncio

import pytest
from channels.exceptions import ChannelFull, MessageTooLarge

from testproject import relay
from testproject.relay import NoAnswer, Relay, RelayError, TooLarge, WorkerFailed

LONG_S = 30.0


class Layer:
    """Keeps what is sent; ``reply`` answers, ``refusal`` is raised by ``send``."""

    def __init__(self):
        self.sent = []
        self.replies = asyncio.Queue()
        self.refusal = lambda message: None

    async def new_channel(self, prefix="specific"):
        return f"{prefix}.node!one"

    async def send(self, channel, message):
        assert channel == "relay"
        error = self.refusal(message)
        if error is not None:
            raise error
        self.sent.append(message)

    async def receive(self, channel):
        reply = await self.replies.get()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def reply(self, *replies, worker_pid=7):
        message = {"type": "relay.replies", "worker_pid": worker_pid, "replies": list(replies)}
        self.replies.put_nowait(message)

    def numbers(self):
        return [[request[0] for request in message["requests"]] for message in self.sent]


@pytest.fixture
async def layer():
    return Layer()


@pytest.fixture
async def calls(layer):
    """A relay, closed in the end."""
    relay = Relay(layer, LONG_S)
    yield relay
    relay.close()


async def settle():
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def start(calls, *contents):
    tasks = [asyncio.create_task(calls.call("echo", content)) for content in contents]
    await settle()
    return tasks


async def test_call_returns_the_reply_with_the_workers_pid(layer, calls):
    (task,) = await start(calls, "a")
    layer.reply((0, "A"), worker_pid=99)
    assert await task == {"worker_pid": 99, "content": "A"}
    assert calls.waiting == 0


async def test_calls_of_one_moment_leave_as_one_message(layer, calls):
    await start(calls, *"abc")
    assert layer.numbers() == [[0, 1, 2]]


async def test_calls_beyond_a_batch_leave_in_further_messages(layer, calls):
    await start(calls, *range(relay.BATCH_MAX + 1))
    assert [len(numbers) for numbers in layer.numbers()] == [relay.BATCH_MAX, 1]


async def test_calls_while_others_are_with_a_worker_gather_until_a_reply(layer, calls, monkeypatch):
    monkeypatch.setattr(relay, "GATHER_S", LONG_S)
    await start(calls, "a")
    await start(calls, "b")
    await start(calls, "c")
    assert layer.numbers() == [[0]]
    layer.reply((0, "A"))
    await settle()
    assert layer.numbers() == [[0], [1, 2]]


async def test_calls_do_not_wait_long_for_a_worker_that_is_stuck(layer, calls):
    await start(calls, "a")
    await start(calls, "b")
    await asyncio.sleep(20 * relay.GATHER_S)
    assert layer.numbers() == [[0], [1]]


async def test_replies_in_any_order_find_their_calls(layer, calls):
    tasks = await start(calls, *"abc")
    layer.reply((2, "C"), (0, "A"))
    layer.reply((1, "B"))
    assert [(await task)["content"] for task in tasks] == ["A", "B", "C"]


async def test_duplicate_reply_is_counted_and_harmless(layer, calls):
    (task,) = await start(calls, "a")
    layer.reply((0, "A"), (0, "again"))
    layer.reply((0, "and again"))
    layer.reply((5, "of nobody"))
    assert (await task)["content"] == "A"
    await settle()
    assert calls.unclaimed == 3


async def test_call_without_an_answer_times_out_and_leaves_nothing(layer):
    calls = Relay(layer, 0.01)
    with pytest.raises(NoAnswer, match=r"within 0.01 s"):
        await calls.call("echo", "a")
    assert calls.waiting == 0
    calls.close()


async def test_call_that_is_cancelled_leaves_nothing(layer, calls):
    (task,) = await start(calls, "a")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert calls.waiting == 0
    layer.reply((0, "too late"))
    await settle()
    assert calls.unclaimed == 1


async def test_call_cancelled_before_it_left_is_never_sent(layer, calls, monkeypatch):
    monkeypatch.setattr(relay, "GATHER_S", LONG_S)
    await start(calls, "a")
    (gone, _) = await start(calls, "b", "c")
    gone.cancel()
    await settle()
    layer.reply((0, "A"))
    await settle()
    assert layer.numbers() == [[0], [2]]


async def test_full_layer_fails_the_calls_at_once(layer, calls):
    layer.refusal = lambda message: ChannelFull()
    with pytest.raises(RelayError, match="full") as caught:
        await calls.call("echo", "a")
    assert caught.value.status == 503


async def test_message_too_large_together_is_sent_apart(layer, calls):
    layer.refusal = lambda message: MessageTooLarge() if len(message["requests"]) > 1 else None
    await start(calls, *"ab")
    assert layer.numbers() == [[0], [1]]


async def test_message_too_large_alone_fails_that_call_only(layer, calls):
    def refuse_large(message):
        large = any(content == "large" for _, _, content in message["requests"])
        return MessageTooLarge() if large else None

    layer.refusal = refuse_large
    small, large = await start(calls, "small", "large")
    with pytest.raises(TooLarge):
        await large
    layer.reply((0, "fine"))
    assert (await small)["content"] == "fine"


async def test_reply_of_none_is_a_worker_that_failed(layer, calls):
    (task,) = await start(calls, "a")
    layer.reply((0, None))
    with pytest.raises(WorkerFailed) as caught:
        await task
    assert caught.value.status == 502


async def test_broken_layer_fails_the_calls_and_the_next_one_tries_again(layer, calls, caplog):
    (task,) = await start(calls, "a")
    layer.replies.put_nowait(ConnectionError("gone"))
    with pytest.raises(RelayError, match="failed"):
        await task
    assert "lost its channel layer" in caplog.text
    (task,) = await start(calls, "b")
    layer.reply((1, "B"))
    assert (await task)["content"] == "B"


async def test_closed_relay_fails_what_waits(layer, calls):
    (task,) = await start(calls, "a")
    calls.close()
    with pytest.raises(RelayError):
        await task


async def test_too_many_waiting_calls_are_refused(layer, calls, monkeypatch):
    monkeypatch.setattr(relay, "WAITING_MAX", 1)
    await start(calls, "a")
    with pytest.raises(RelayError, match="Too many"):
        await calls.call("echo", "b")


async def test_layer_inside_one_process_has_no_relay():
    with pytest.raises(RelayError, match="does not reach other processes"):
        relay.current()
    assert relay.counters() is None
