"""Nonsense between sound marks, in all places that messages are read from: the marks prove nothing.

What a program of this user writes there may be wrong, or left by another version of the package.
"""

import asyncio
import errno
import math
import os
import random
import time

import pytest

from channels_ipc import wire
from channels_ipc.messages import pack

PLACES = ("mailbox", "fifo", "parked")
NO_SPOOL_FILE = b"0000000a" + b"0" * 16
NO_MESSAGES = (b"", b"\xc1", b"\x91" * 900, pack([1]), b"\x81\x91\x01\x01", NO_SPOOL_FILE)

BAD = {
    "unknown kind": {"kind": 99},
    "kind of another place": {"kind": {"mailbox": wire.PARKED}},
    "deadline that is no number": {"deadline": math.nan},
    "deadline that never comes": {"deadline": math.inf},
    "name that is no text": {"name": b"\xff\xfe"},
    "spool file that is not there": {"flags": wire.SPOOLED, "payload": NO_SPOOL_FILE},
    "spool file outside": {"flags": wire.SPOOLED, "payload": b"../../../meta"},
    "payload that is cut short": {"payload": pack({"n": "x" * 20})[:-1]},
    "payload that is no dict": {"payload": pack([1])},
    "payload that nests too deep": {"payload": b"\x91" * 900},
}


class Place:
    """A channel of ``layer``'s, and where its messages lie until they are received."""

    def __init__(self, kind, layer, channel):
        self.kind = kind
        self.layer = layer
        self.channel = channel
        self._path = layer._endpoint.directory.path
        self._numbers = iter(range(1_000_000))

    def put(self, data):
        if self.kind == "parked":
            os.makedirs(f"{self._path}/p/{self.channel}", mode=0o700, exist_ok=True)
            name = f"{next(self._numbers):020d}-{len(data):08x}-{0:016x}"
            with open(f"{self._path}/p/{self.channel}/{name}", "xb") as file:
                file.write(data)
            return
        if self.kind == "fifo":
            path, data = f"{self._path}/q/{self.channel}", data.ljust(1024, b"\0")
        else:
            path = f"{self._path}/n/{self.layer._endpoint._inbox.node}/mailbox"
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        os.write(fd, data)
        os.close(fd)

    def frame(self, kind=wire.MESSAGE, name=None, deadline=None, payload=b"", extra=b"", flags=0):
        kind = kind.get(self.kind, wire.GROUP) if isinstance(kind, dict) else kind
        name = self.channel.encode() if name is None else name
        deadline = time.monotonic() + 60 if deadline is None else deadline
        generation = self.layer._endpoint.generation[0]
        return wire.encode(kind, generation, deadline, name, payload, extra, flags)


@pytest.fixture
def make_place(make_layer):
    layer = make_layer(capacity=1000)

    async def make(kind, name="named"):
        own = await layer.new_channel()
        if kind == "fifo":
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(layer.receive(name), 0.01)
        return Place(kind, layer, own if kind == "mailbox" else name)

    return make


@pytest.fixture
async def raised():
    """What callbacks of the loop raised, which nobody else hears of."""
    found = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: found.append(context))
    yield found
    assert found == []


async def receive(place):
    return (await asyncio.wait_for(place.layer.receive(place.channel), 5))["n"]


@pytest.mark.usefixtures("raised")
@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("what", BAD)
async def test_nonsense_is_counted_and_costs_no_message(make_place, make_layer, kind, what):
    place, sender = await make_place(kind), make_layer()
    place.put(place.frame(**BAD[what]))
    await sender.send(place.channel, {"type": "t", "n": 1})
    assert await receive(place) == 1
    assert place.layer.malformed.count == 1


@pytest.mark.usefixtures("raised")
@pytest.mark.parametrize("kind", ["message", "member"])
async def test_frame_for_another_process_is_counted_and_not_kept(make_place, make_layer, kind):
    place, sender = await make_place("mailbox"), make_layer()
    number = {"message": wire.MESSAGE, "member": wire.MEMBER}[kind]
    for name in (b"named", b"specific.0123456789abcdef!1", b"", b"../x"):
        place.put(place.frame(number, name, payload=pack({"n": 0}), extra=b"room"))
    await sender.send(place.channel, {"type": "t", "n": 1})
    assert await receive(place) == 1
    assert place.layer.malformed.count == 4
    assert set(place.layer._endpoint._inbox.queues) <= {place.channel}


def random_frame(rng, place):
    """Return a frame whose marks are right. It holds no message, whatever else is right."""
    return place.frame(
        kind=rng.choice((*wire.KINDS, 0, 99)),
        name=rng.choice((None, b"room", b"", b"..", b"\xff", rng.randbytes(rng.randrange(1, 20)))),
        deadline=rng.choice((None, None, math.nan, math.inf, -math.inf, 1e300, 0.0, -1.0)),
        payload=rng.choice((*NO_MESSAGES, rng.randbytes(rng.randrange(40)) + b"\xc1")),
        extra=rng.choice((b"", b"hall", b"\xff", rng.randbytes(8))),
        flags=rng.choice((0, 0, wire.SPOOLED, 255)),
    )


@pytest.mark.usefixtures("raised")
@pytest.mark.parametrize("kind", PLACES)
async def test_random_frames_raise_nothing_and_cost_no_message(make_place, make_layer, kind):
    rng, sender = random.Random(4), make_layer(capacity=1000)
    place = await make_place(kind)
    await place.layer.group_add("room", place.channel)
    for n in range(20 if kind == "parked" else 100):  # files take longer
        if kind == "parked":  # which ends when there is a receiver
            place = await make_place(kind, f"named-{n}")
        for _ in range(100):
            place.put(random_frame(rng, place))
        await sender.send(place.channel, {"type": "t", "n": n})
        assert await receive(place) == n
    assert place.layer.malformed.count > 20 * n


@pytest.mark.parametrize("name", [f"{1:020d}-{7:08x}-{0:016x}", "odd", "-", "a-b"])
async def test_damaged_parked_files_take_no_room_from_messages(make_layer, name):
    sender, layer = make_layer(capacity=2), make_layer()
    await sender.send("named", {"type": "t", "n": 0})
    with open(f"{sender._endpoint.directory.path}/p/named/{name}", "wb") as file:
        file.write(b"damaged")
    await sender.send("named", {"type": "t", "n": 1})
    assert [(await layer.receive("named"))["n"] for _ in range(2)] == [0, 1]
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(layer.receive("named"), 0.01)
    assert sender.malformed.count + layer.malformed.count == 1
    assert os.listdir(f"{sender._endpoint.directory.path}/p/named") == []


@pytest.mark.usefixtures("raised")
async def test_nonsense_leaves_a_process_able_to_keep_a_channel_open(make_place, make_layer):
    first = make_layer()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(first.receive("work"), 0.01)
    await first.close()  # an empty FIFO stays
    place, second = await make_place("mailbox"), make_layer()
    for n in range(200):
        place.put(place.frame(wire.HOLD, b"nonsense %d" % n))
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(second.receive("work"), 0.05)
    assert os.listdir(f"{second._endpoint.directory.path}/q") == ["work"]
    assert place.layer._endpoint._named["work"]._fifo.fd >= 0
    assert list(place.layer._endpoint._named) == ["work"]


@pytest.mark.usefixtures("raised")
async def test_message_is_received_though_no_descriptor_is_left_to_keep_a_channel_open(make_place):
    place = await make_place("mailbox")

    def fail(name):
        raise OSError(errno.EMFILE, name)

    place.layer._endpoint._inbox._on_held = fail
    waiting = asyncio.create_task(receive(place))
    await asyncio.sleep(0.01)
    place.put(place.frame(wire.HOLD, b"work") + place.frame(payload=pack({"n": 1})))
    assert await waiting == 1
