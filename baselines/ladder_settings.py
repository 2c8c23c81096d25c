"""The project's own settings, with what the rungs of the ladder differ in.

``BASELINE_MIDDLEWARE`` is ``inline``, ``stock`` or ``none``.
"""

import os

from settings.base import MIDDLEWARE_SETS
from settings.channels_inmemory import *  # noqa: F403

ROOT_URLCONF = "baselines.ladder_urls"
MIDDLEWARE = {
    **MIDDLEWARE_SETS,
    "inline": [
        f"baselines.inline_middleware.{path.rpartition('.')[2]}"
        for path in MIDDLEWARE_SETS["stock"]
    ],
}[os.environ["BASELINE_MIDDLEWARE"]]
