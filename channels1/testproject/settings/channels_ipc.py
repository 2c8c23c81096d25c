from testproject.segments import PREFIX

from .base import *  # noqa: F403
from .base import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "channels"]
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "asgi_ipc.IPCChannelLayer",
        "ROUTING": "testproject.routing.channel_routing",
        "CONFIG": {"prefix": PREFIX},
    }
}
