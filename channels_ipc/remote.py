"""A channel of another process, as a place to send to."""

from asyncio import AbstractEventLoop
from time import monotonic

from channels_ipc import wire
from channels_ipc.directory import RuntimeDirectory
from channels_ipc.mailbox import Peers
from channels_ipc.messages import Message, Payload
from channels_ipc.notes import leave_note
from channels_ipc.status import full_slot
from channels_ipc.waiting import Waiter
from channels_ipc.wire import encode_to


class RemoteChannel:
    """A process-local channel of another process. It cannot be received from here."""

    __slots__ = (
        "_address",
        "_directory",
        "_encoded_name",
        "_node",
        "_peers",
        "_slot",
        "name",
        "streak",
    )

    def __init__(self, directory: RuntimeDirectory, peers: Peers, node: str, name: str) -> None:
        self.name = name
        self.streak = 0
        self._directory = directory
        self._peers = peers
        self._node = node
        self._encoded_name = name.encode()
        self._address = wire.address(wire.MESSAGE, self._encoded_name)
        self._slot = full_slot(name)

    def post(self, payload: bytes, deadline: float, generation: int) -> bool:
        """Send one message; ``False`` where the channel or its process's mailbox is full.

        To a process that has died a message is sent in vain: nobody could ever receive it.
        """
        peer = self._peers.known(self._node)
        if peer is None:
            return self._post(wire.MESSAGE, payload, deadline, generation)
        full_until = peer.full_until[self._slot]
        if full_until and full_until > monotonic():
            return False
        frame = encode_to(self._address, generation, deadline, payload)
        if len(frame) > wire.FRAME_LIMIT:
            return self._post(wire.MESSAGE, payload, deadline, generation)
        try:
            peer.write(frame)
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._peers.lose(self._node)
        return True

    def post_as_member(self, group: str, payload: bytes, deadline: float, generation: int) -> bool:
        """Send a group's message, unless the owner counts the channel among the group itself."""
        return self._post(wire.MEMBER, payload, deadline, generation, group.encode())

    def discard(self, group: str, deadline: float, generation: int) -> None:
        """Have the owner take the channel out of ``group``."""
        if not self._post(wire.DISCARD, b"", deadline, generation, group.encode(), force=True):
            leave_note(self._directory, self._node, group, self.name)

    def _post(
        self,
        kind: int,
        payload: bytes,
        deadline: float,
        generation: int,
        extra: bytes = b"",
        *,
        force: bool = False,
    ) -> bool:
        peer = self._peers.get(self._node)
        if peer is None:
            return True
        if not force and peer.full_until[self._slot] > monotonic():
            return False
        try:
            return peer.post(kind, generation, deadline, self._encoded_name, payload, extra)
        except BrokenPipeError:
            self._peers.lose(self._node)
            return True

    def is_dead(self) -> bool:
        return self._peers.get(self._node) is None

    def take(self) -> Message | None:
        raise self._not_ours()

    def wait(self, loop: AbstractEventLoop) -> Waiter | None:
        raise self._not_ours()

    def forget(self, waiter: Waiter) -> None:
        raise self._not_ours()

    def open(self, payload: Payload) -> Message | None:
        raise self._not_ours()

    def _not_ours(self) -> ValueError:
        return ValueError(
            f"{self.name} belongs to another process, or to this one before it forked or closed"
            " its layer: receive from a channel that new_channel() returned here"
        )
