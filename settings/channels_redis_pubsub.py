"""The channel layer on Redis' publish and subscribe."""

from settings.base import *  # noqa: F403
from settings.redis_hosts import REDIS_HOSTS

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": REDIS_HOSTS},
    },
    # This backend has no capacity: its queues grow.
    "hub": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": REDIS_HOSTS},
    },
}
