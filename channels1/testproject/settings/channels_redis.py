import os

from .base import *  # noqa: F403
from .base import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "channels"]
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "asgi_redis.RedisChannelLayer",
        "ROUTING": "testproject.routing.channel_routing",
        "CONFIG": {"hosts": [os.environ["REDIS_URL"]]},
    }
}
