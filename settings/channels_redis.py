"""The channel layer in Redis, as channels_redis's documentation recommends it."""

from settings.base import *  # noqa: F403
from settings.base import HUB_CAPACITY
from settings.redis_hosts import REDIS_HOSTS

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {"hosts": REDIS_HOSTS},
    },
    "hub": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {"hosts": REDIS_HOSTS, "capacity": HUB_CAPACITY},
    },
}
