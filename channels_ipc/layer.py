"""The channel layer: what Channels calls. The only module here that knows Channels."""

import asyncio
import atexit
import os
from asyncio import get_running_loop
from difflib import get_close_matches
from threading import Lock
from time import monotonic
from typing import Any, NoReturn
from weakref import WeakSet

from channels.exceptions import ChannelFull, MessageTooLarge
from channels.layers import BaseChannelLayer
from django.core.exceptions import ImproperlyConfigured  # type: ignore[import-untyped]

from channels_ipc.directory import default_directory
from channels_ipc.endpoint import Endpoint, Way
from channels_ipc.errors import explain, explained
from channels_ipc.limits import Limits
from channels_ipc.messages import Message, pack
from channels_ipc.tally import Tally

STREAK_LIMIT = 64  # messages received without waiting, after which other tasks get a turn
GROUPS_LIMIT = 10_000  # group names remembered as valid
LONGEST_S = 1e9  # 31 years: a deadline that far is still a sound one

_layers: WeakSet["IPCChannelLayer"] = WeakSet()


class IPCChannelLayer(BaseChannelLayer):  # type: ignore[misc]  # Channels publishes no types
    """A channel layer between the processes of one user on one machine."""

    extensions = ["groups", "flush"]  # noqa: RUF012 - as Channels' own layers have it
    ChannelFull = ChannelFull
    MessageTooLarge = MessageTooLarge

    def __init__(
        self,
        prefix: str = "asgi",
        expiry: float = 60,
        group_expiry: float = 86_400,
        capacity: int = 100,
        channel_capacity: dict[Any, int] | None = None,
        directory: str | None = None,
        message_limit: int = 16 * 1024 * 1024,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise ImproperlyConfigured(_unknown(next(iter(unknown))))
        for name, value in (
            ("prefix", prefix),
            ("expiry", expiry),
            ("group_expiry", group_expiry),
            ("capacity", capacity),
            ("message_limit", message_limit),
        ):
            if not value or (not isinstance(value, str) and value < 0):
                raise _impossible(name, value)
        for name, seconds in (("expiry", expiry), ("group_expiry", group_expiry)):
            if not seconds < LONGEST_S:
                raise _impossible(name, seconds)
        super().__init__(expiry=expiry, capacity=capacity)
        self.channel_capacity = self.compile_capacities(channel_capacity or {})
        self.prefix = prefix
        self.group_expiry = group_expiry
        self.message_limit = message_limit
        self.malformed = Tally("skipped what is no message")
        self.dropped = Tally("dropped a group's message", repeat=True)
        self._base = str(directory or default_directory())
        self._start_lock = Lock()
        self._endpoint: Endpoint | None = None
        self._groups: set[str] = set()
        _layers.add(self)

    # Channels.

    async def send(self, channel: str, message: Message) -> None:
        """Send ``message``; raise ``ChannelFull`` or ``MessageTooLarge``. Never blocks."""
        endpoint = self._endpoint or self._start()
        way = endpoint.ways.get(channel) or self._way(endpoint, channel)
        payload = pack(message)
        if len(payload) > self.message_limit or not isinstance(message, dict):
            self._refuse(message, payload)
        try:
            sent = way.post(payload, monotonic() + self.expiry, endpoint.generation[0])
        except OSError as error:
            explain(error, endpoint.directory.path)
        if not sent:
            raise ChannelFull(channel)

    async def receive(self, channel: str) -> Message:
        """Return the next message of ``channel``, given by its full name.

        Cancelling loses nothing: the message stays where it is until it is returned.
        """
        endpoint = self._endpoint or self._start()
        way = endpoint.ways.get(channel) or self._way(endpoint, channel)
        if way.streak >= STREAK_LIMIT:
            way.streak = 0
            await asyncio.sleep(0)
        try:
            message = way.take()
            if message is not None:
                way.streak += 1
                return message
            way.streak = 0
            loop = get_running_loop()
            while message is None:
                payload = None
                waiter = way.wait(loop)
                if waiter is not None:
                    try:
                        payload = await waiter
                    except BaseException:
                        way.forget(waiter)
                        raise
                message = way.take() if payload is None else way.open(payload)
        except OSError as error:
            explain(error, endpoint.directory.path)
        return message

    async def new_channel(self, prefix: str = "specific") -> str:
        """Return the name of a channel that only this process can receive from."""
        endpoint = self._endpoint or self._start()
        with explained(endpoint.directory.path):
            return endpoint.new_channel(prefix, get_running_loop())

    # Groups.

    async def group_add(self, group: str, channel: str) -> None:
        """Make ``channel`` a member of ``group``, for ``group_expiry`` seconds."""
        self._check_group(group)
        self.require_valid_channel_name(channel)
        endpoint = self._endpoint or self._start()
        with explained(endpoint.directory.path):
            endpoint.join(group, channel, self.group_expiry)

    async def group_discard(self, group: str, channel: str) -> None:
        """End the membership, if there is one."""
        self._check_group(group)
        self.require_valid_channel_name(channel)
        endpoint = self._endpoint or self._start()
        with explained(endpoint.directory.path):
            endpoint.leave(group, channel, monotonic() + self.expiry)

    async def group_send(self, group: str, message: Message) -> None:
        """Send ``message`` to every member with room for it; ``dropped`` counts the others."""
        if group not in self._groups:
            self._check_group(group)
        endpoint = self._endpoint or self._start()
        payload = pack(message)
        if len(payload) > self.message_limit or not isinstance(message, dict):
            self._refuse(message, payload)
        try:
            endpoint.fan_out(group, payload, monotonic() + self.expiry)
        except OSError as error:
            explain(error, endpoint.directory.path)

    # The whole layer.

    async def flush(self) -> None:
        """Remove all messages and memberships, in every process that shares the prefix."""
        endpoint = self._endpoint or self._start()
        with explained(endpoint.directory.path):
            endpoint.flush()

    async def close(self) -> None:
        """Give back every descriptor and file. The layer starts anew when it is used again."""
        self._end()

    def _start(self) -> Endpoint:
        with self._start_lock:
            if self._endpoint is None:
                self._endpoint = Endpoint(
                    self._base,
                    self.prefix,
                    self._limits(),
                    self.malformed,
                    self.dropped,
                )
            return self._endpoint

    def _limits(self) -> Limits:
        capacities = (self.capacity, *(most for _, most in self.channel_capacity))
        return Limits(max(capacities), self.get_capacity, self.message_limit, self.expiry)

    def _end(self) -> None:
        with self._start_lock:
            endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            endpoint.close()

    def _begin_child(self) -> None:
        """After a fork: what is open belongs to the parent, and a lock may be held by a thread."""
        endpoint, self._endpoint = self._endpoint, None
        self._start_lock = Lock()
        if endpoint is not None:
            endpoint.forget()

    # Checks.

    def _way(self, endpoint: Endpoint, channel: str) -> Way:
        self.require_valid_channel_name(channel)
        return endpoint.way(channel)

    def _check_group(self, group: str) -> None:
        self.require_valid_group_name(group)
        if len(self._groups) >= GROUPS_LIMIT:
            self._groups.clear()
        self._groups.add(group)

    def _refuse(self, message: object, payload: bytes) -> NoReturn:
        if not isinstance(message, dict):
            raise TypeError(f"a message is a dict, not {type(message).__name__}")
        raise MessageTooLarge(
            f"{len(payload)} bytes: the layer's message_limit is {self.message_limit}"
        )


SETTINGS = (
    "prefix",
    "expiry",
    "group_expiry",
    "capacity",
    "channel_capacity",
    "directory",
    "message_limit",
)


def _impossible(name: str, value: object) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"channels_ipc: {name} cannot be {value!r}")


def _unknown(name: str) -> str:
    near = get_close_matches(name, SETTINGS, n=1)
    remedy = f"did you mean {near[0]!r}?" if near else f"it knows {', '.join(SETTINGS)}"
    return f"channels_ipc has no setting {name!r}: {remedy}"


def _begin_child() -> None:
    for layer in list(_layers):
        layer._begin_child()


def _end_all() -> None:
    for layer in list(_layers):
        layer._end()


os.register_at_fork(after_in_child=_begin_child)
atexit.register(_end_all)
