"""Fan-out for Channels: one subscription per process and topic, however many sockets want it.

``group_send`` to a group of sockets costs one channel-layer delivery, one dispatch and one frame
per socket. A hub joins each topic's group once per process, hands every message to the sockets of
that process by appending a reference to their queues, and sends what is due to a socket as one
frame.

It uses the public Channels API only (``new_channel``, ``group_add``, ``group_discard``,
``group_send``, ``receive``), so it runs on any channel layer with groups, and imports nothing of
the project around it.
"""

from channels_hub.hub import Hub
from channels_hub.outbox import CLOSE, DROP_OLDEST, Outbox
from channels_hub.records import Record, TopicError

__all__ = ["CLOSE", "DROP_OLDEST", "Hub", "Outbox", "Record", "TopicError"]
