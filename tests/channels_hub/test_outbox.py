import asyncio

import pytest

from channels_hub.outbox import CLOSE, Ended, Outbox, Overflow


async def test_batch_gives_the_oldest_first_and_leaves_the_rest():
    outbox = Outbox()
    for record in (b"1", b"2", b"3"):
        outbox.pending.append(record)
    assert await outbox.batch(2) == [b"1", b"2"]
    assert await outbox.batch(2) == [b"3"]


async def test_batch_waits_until_the_outbox_is_settled():
    outbox = Outbox()
    waiting = asyncio.create_task(outbox.batch())
    await asyncio.sleep(0)
    outbox.pending.append(b"1")
    assert not waiting.done()
    outbox.settle()
    assert await waiting == [b"1"]


async def test_batch_that_is_cancelled_loses_nothing():
    outbox = Outbox()
    waiting = asyncio.create_task(outbox.batch())
    await asyncio.sleep(0)
    outbox.pending.append(b"1")
    outbox.settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await outbox.batch() == [b"1"]


async def test_outbox_past_its_limit_drops_the_oldest_and_counts_them():
    outbox = Outbox(limit=2)
    for record in (b"1", b"2", b"3", b"4", b"5"):
        outbox.pending.append(record)
    assert outbox.settle() == 3
    assert outbox.dropped == 3
    assert await outbox.batch() == [b"4", b"5"]


async def test_outbox_past_its_limit_ends_where_that_is_the_policy():
    outbox = Outbox(limit=2, policy=CLOSE)
    for record in (b"1", b"2", b"3"):
        outbox.pending.append(record)
    assert outbox.settle() == 3
    outbox.pending.append(b"4")
    with pytest.raises(Overflow, match="more than 2 records"):
        await outbox.batch()
    assert outbox.settle() == 1
    assert outbox.pending == []


async def test_outbox_that_has_ended_gives_first_what_it_holds():
    outbox = Outbox()
    outbox.pending.append(b"1")
    outbox.end("the hub was closed")
    assert await outbox.batch() == [b"1"]
    with pytest.raises(Ended, match="the hub was closed"):
        await outbox.batch()


async def test_outbox_that_ends_wakes_who_waits():
    outbox = Outbox()
    waiting = asyncio.create_task(outbox.batch())
    await asyncio.sleep(0)
    outbox.end("over")
    with pytest.raises(Ended):
        await waiting


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"policy": "forget"}])
def test_outbox_that_makes_no_sense_is_refused(arguments):
    with pytest.raises(ValueError, match=r"hold nothing|no policy"):
        Outbox(**arguments)
