#!/usr/bin/env python
"""Django's command line. ``DJANGO_SETTINGS_MODULE`` or ``--settings`` chooses a channel layer."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    if not os.environ.get("DJANGO_SETTINGS_MODULE"):
        os.environ["DJANGO_SETTINGS_MODULE"] = "settings.no_channels"
    execute_from_command_line(sys.argv)
