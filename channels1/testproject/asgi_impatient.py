"""The layer of DJANGO_SETTINGS_MODULE, in a Daphne that sleeps for CHANNELS1_DAPHNE_SLEEP_S."""

import os

from channels.asgi import get_channel_layer

from .impatient import sleep_for

sleep_for(float(os.environ["CHANNELS1_DAPHNE_SLEEP_S"]))
channel_layer = get_channel_layer()
