import asyncio

import pytest

from channels_ipc.waiting import Waiter, resume_all


async def waiting(log, waiter, name):
    try:
        await waiter
        log.append(name)
    except asyncio.CancelledError:
        log.append(f"{name} cancelled")
        raise


async def test_resumed_task_runs_at_once():
    loop, log = asyncio.get_running_loop(), []
    waiter = Waiter(loop)
    task = asyncio.create_task(waiting(log, waiter, "a"))
    await asyncio.sleep(0)
    loop.call_soon(lambda: (waiter.resume(), log.append("after")))
    await task
    assert log == ["a", "after"]


async def test_cancelled_task_ends_cancelled_and_later_resume_does_nothing():
    loop, log = asyncio.get_running_loop(), []
    waiter = Waiter(loop)
    task = asyncio.create_task(waiting(log, waiter, "a"))
    await asyncio.sleep(0)
    task.cancel()
    waiter.resume()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["a cancelled"]


async def test_waiter_resumed_before_it_is_awaited_does_not_wait():
    waiter = Waiter(asyncio.get_running_loop())
    waiter.resume()
    await asyncio.wait_for(waiting([], waiter, "a"), 5)


async def test_timeout_around_a_waiter_fires():
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(waiting([], Waiter(asyncio.get_running_loop()), "a"), 0.01)


async def test_resuming_goes_on_after_one_that_exits():
    from collections import deque

    loop, log = asyncio.get_running_loop(), []
    waiters = [Waiter(loop), Waiter(loop)]
    waiters[0].add_done_callback(_exit, context=_context())
    waiters[1].add_done_callback(lambda _: log.append("second"), context=_context())
    with pytest.raises(SystemExit):
        resume_all(deque(waiters))
    await asyncio.sleep(0)
    assert log == ["second"]


def _exit(_):
    raise SystemExit


def _context():
    import contextvars

    return contextvars.copy_context()


async def test_handed_payload_is_what_the_wait_returns():
    loop, got = asyncio.get_running_loop(), []
    waiter = Waiter(loop)

    async def taking():
        got.append(await waiter)

    task = asyncio.create_task(taking())
    await asyncio.sleep(0)
    loop.call_soon(waiter.hand, b"payload")
    await task
    assert got == [b"payload"]
    assert waiter.payload is None


async def test_payload_that_nobody_took_stays_with_the_waiter():
    waiter = Waiter(asyncio.get_running_loop())
    waiter.add_done_callback(lambda _: None, context=_context())
    waiter.hand(b"payload")
    assert waiter.payload == b"payload"
