"""One process's part in the channel layer: everything it has open, and the ways to every channel.

Made when first needed. A child process starts over with an endpoint of its own.
"""

import asyncio
import contextlib
import itertools
from collections import OrderedDict
from threading import RLock
from time import monotonic, time

from channels_ipc import wire
from channels_ipc.directory import RuntimeDirectory, list_folder
from channels_ipc.errors import explained
from channels_ipc.groups import Markers
from channels_ipc.inbox import Inbox
from channels_ipc.limits import Limits
from channels_ipc.local import LocalChannel
from channels_ipc.mailbox import Peer, Peers
from channels_ipc.named import NamedChannel
from channels_ipc.names import node_of
from channels_ipc.remote import RemoteChannel
from channels_ipc.status import group_place
from channels_ipc.sweeping import sweep
from channels_ipc.tally import Tally

WAYS_LIMIT = 10_000  # channel names remembered, with the way to them
NAMED_LIMIT = 128  # named channels open at once

Way = LocalChannel | RemoteChannel | NamedChannel


class Endpoint:
    """What a layer object holds open. ``generation`` comes from the directory with each message."""

    def __init__(
        self,
        base: str,
        prefix: str,
        limits: Limits,
        malformed: Tally,
        dropped: Tally,
    ) -> None:
        self.directory = RuntimeDirectory(base, prefix)
        with explained(self.directory.path):
            sweep(self.directory, limits.expiry_s)
        self.generation = self.directory.generation
        self.ways: dict[str, Way] = {}
        self._limits = limits
        self._malformed = malformed
        self._dropped = dropped
        self._lock = RLock()
        self._inbox: Inbox | None = None
        self._peers = Peers(self.directory, limits)
        self._markers = Markers(self.directory)
        self._named: OrderedDict[str, NamedChannel] = OrderedDict()
        self._numbers = itertools.count()
        self._hold_named()

    def _hold_named(self) -> None:
        """Keep open what named channels there are: their messages then survive a receiver's end."""
        for file in list_folder(self.directory.root, "q"):
            self._hold(file)

    def _hold(self, name: str) -> None:
        """Keep the named channel open if a process receives from it; the name may be nonsense."""
        with self._lock:
            channel = self._named.get(name)
            if channel is None and len(self._named) < NAMED_LIMIT // 2:
                channel = self._unopened(name)
            if channel is not None and channel.hold():
                self._named[name] = channel

    def _have_held(self, name: str) -> None:
        """Tell the others that this process receives from ``name`` now.

        Whoever then has it open saves what waits in it should this process be killed.
        """
        for peer in self._others():
            with contextlib.suppress(BrokenPipeError):
                peer.post(wire.HOLD, self.generation[0], 0.0, name.encode(), b"")

    # Ways.

    def inbox(self) -> Inbox:
        """Return this process's own mailbox and queues; a process that only sends needs none."""
        with self._lock:
            if self._inbox is None:
                self._inbox = Inbox(
                    self.directory,
                    self._limits,
                    self._markers.discard_everywhere,
                    self._hold,
                    self._malformed,
                    self._dropped,
                )
            return self._inbox

    def new_channel(self, prefix: str, loop: asyncio.AbstractEventLoop) -> str:
        """Return a new name, for a channel whose messages ``loop`` takes out of the mailbox."""
        inbox = self._inbox or self.inbox()
        if loop not in inbox.listeners:
            inbox.listen(loop)
        return f"{prefix}.{inbox.node}!{next(self._numbers):x}"

    def way(self, channel: str) -> Way:
        """Return the way to ``channel``, whose name is valid."""
        found = self.ways.get(channel)
        if found is None:
            with self._lock:
                found = self._make_way(channel)
                if len(self.ways) >= WAYS_LIMIT:
                    self.ways.clear()
                self.ways[channel] = found
        return found

    def _make_way(self, channel: str) -> Way:
        node = node_of(channel)
        if node is None:
            return self._named_channel(channel)
        if self._inbox is not None and node == self._inbox.node:
            return LocalChannel(self._inbox, channel)
        return RemoteChannel(self.directory, self._peers, node, channel)

    def _named_channel(self, name: str) -> NamedChannel:
        found = self._named.get(name)
        if found is None:
            found = self._named[name] = self._unopened(name)
            self._make_room()
        return found

    def _unopened(self, name: str) -> NamedChannel:
        return NamedChannel(
            self.directory,
            name,
            self._limits,
            self._markers.discard_everywhere,
            self._have_held,
            self._malformed,
        )

    def _make_room(self) -> None:
        idle = (name for name, channel in self._named.items() if channel.is_idle())
        excess = len(self._named) - NAMED_LIMIT
        for name in list(itertools.islice(idle, max(0, excess))):
            self.ways.pop(name, None)
            self._named.pop(name).close()

    # Groups.

    def join(self, group: str, channel: str, lasting_s: float) -> None:
        way = self.way(channel)
        if isinstance(way, LocalChannel):
            self.inbox().join(group, channel, monotonic() + lasting_s)
        else:
            self._markers.add(group, channel, time() + lasting_s)

    def leave(self, group: str, channel: str, deadline: float) -> None:
        way = self.way(channel)
        self._markers.discard(group, channel)
        if isinstance(way, LocalChannel):
            self.inbox().leave(group, channel)
        elif isinstance(way, RemoteChannel):
            way.discard(group, deadline, self.generation[0])

    def fan_out(self, group: str, payload: bytes, deadline: float) -> None:
        """Send ``payload`` to every member of ``group``; count and log what could not be sent."""
        generation = self.generation[0]
        place = group_place(group)
        # First find all of them, which may fail for want of a descriptor: nobody has it then.
        peers = [peer for peer in self._others() if peer.status.wants(place)]
        members = self._markers.members(group)
        if self._inbox is not None:
            self._inbox.send_to_group(group, payload, deadline, generation)
        for peer in peers:
            self._send_to_peer(peer, group, payload, deadline, generation)
        for channel in members:
            self._send_to_member(group, channel, payload, deadline, generation)

    def _others(self) -> list[Peer]:
        """Return the other processes, some of which may have died."""
        own = self._inbox.node if self._inbox is not None else None
        known, get = self._peers.known, self._peers.get
        nodes = self.directory.nodes()
        return [peer for node in nodes if node != own and (peer := known(node) or get(node))]

    def _send_to_peer(
        self, peer: Peer, group: str, payload: bytes, deadline: float, generation: int
    ) -> None:
        try:
            if not peer.post(wire.GROUP, generation, deadline, group.encode(), payload):
                self._dropped.add(1, f"the mailbox of a process with members of {group} is full")
        except BrokenPipeError:
            self._peers.lose(peer.node)

    def _send_to_member(
        self, group: str, channel: str, payload: bytes, deadline: float, generation: int
    ) -> None:
        way = self.way(channel)
        if isinstance(way, NamedChannel):
            sent = way.post(payload, deadline, generation)
        elif isinstance(way, RemoteChannel) and way.is_dead():
            return self._markers.discard_everywhere(channel)
        else:
            sent = way.post_as_member(group, payload, deadline, generation)
        if not sent:
            self._dropped.add(1, f"{channel} is full")
        return None

    # Ending.

    def flush(self) -> None:
        """Make the layer empty, here and in every other process."""
        self.directory.advance()
        self._markers.clear()
        if self._inbox is not None:
            with self._inbox.lock:
                self._inbox.refresh()
        root = self.directory.root
        for file in {*list_folder(root, "q"), *list_folder(root, "p")}:
            channel = self._unopened(file)
            channel.purge_all()
            channel.close()

    def close(self) -> None:
        """Give back every descriptor and file of this process."""
        with self._lock:
            while self._named:
                self._named.popitem()[1].close()
            if self._inbox is not None:
                self._inbox.close()
                self._inbox = None  # with its shared memory, which no garbage collector may keep
            self.ways.clear()
            self._peers.close()
            self.directory.close()

    def forget(self) -> None:
        """Close what a child process inherited. The files are its parent's."""
        for channel in self._named.values():
            channel.forget_all()
        if self._inbox is not None:
            self._inbox.forget()
        self._peers.close()
        self.directory.close()
