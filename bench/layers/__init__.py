"""Channel layers measured by themselves: ``python -m bench layers``."""
