"""A worker's settings in the tests: those of the overlay that ``OVERLAY`` names, more views."""

import os
from importlib import import_module

overlay = import_module(os.environ["OVERLAY"])
globals().update({name: getattr(overlay, name) for name in dir(overlay) if name.isupper()})

ROOT_URLCONF = "relay_urls"
