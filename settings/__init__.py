"""Django settings: ``base`` holds everything, each overlay adds one choice of channel layer."""
