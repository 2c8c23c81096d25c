"""Which Redis the Redis layers use: the one that ``REDIS_URL`` names, and never a default one.

A Redis on the usual port may be somebody else's.
"""

import os

from django.core.exceptions import ImproperlyConfigured

if not os.environ.get("REDIS_URL"):
    raise ImproperlyConfigured(
        "REDIS_URL is not set: give it, such as REDIS_URL=redis://127.0.0.1:6379/0 "
        "or REDIS_URL=unix:///run/redis/redis.sock"
    )

# Without a socket_timeout of None redis-py gives up on an idle channel after a few seconds,
# and the consumer that waits on it with an error. Without a max_connections of its own it raises an
# error where more than 100 consumers of a process have something to say: this is what a
# redis-server accepts.
REDIS_HOSTS = [
    {"address": os.environ["REDIS_URL"], "socket_timeout": None, "max_connections": 10_000}
]
