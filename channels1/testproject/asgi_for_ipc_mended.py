from channels.asgi import get_channel_layer

from .entry import settle

settle("testproject.settings.channels_ipc_mended")
channel_layer = get_channel_layer()
