"""What a name says: the process a channel belongs to, and the file a name is kept under.

A process-local channel is ``<prefix>.<node>!<local>``. The node is one layer object in one process.
"""

import re
import secrets
from hashlib import blake2b

NODE = re.compile(r"[0-9a-f]{16}")

# A leading dot, an upper-case letter (some file systems fold case) or anything outside ASCII makes
# a name unfit to be a file's.
_HASHED = re.compile(r"=[0-9a-f]{32}")
_PLAIN = re.compile(r"[a-z0-9_-][a-z0-9_.-]*")


def new_node() -> str:
    """Return a fresh node: 16 hexadecimal digits."""
    return secrets.token_hex(8)


def node_of(channel: str) -> str | None:
    """Return the node that ``channel`` belongs to, ``None`` where any process may receive it."""
    head, bang, _ = channel.partition("!")
    node = head.rpartition(".")[2]
    return node if bang and NODE.fullmatch(node) else None


def file_name(name: str) -> str:
    """Return the file name of a channel, group or prefix.

    It never contains ``/``, is never ``.`` or ``..`` and is at most 99 bytes long; no two names
    share one. A file name stands for itself.
    """
    if _PLAIN.fullmatch(name) or _HASHED.fullmatch(name):
        return name
    return "=" + blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
