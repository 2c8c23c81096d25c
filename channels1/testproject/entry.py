import os


def settle(settings):
    """Choose ``settings`` for this entry point; refuse where the environment has chosen others."""
    chosen = os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings)
    if chosen != settings:
        raise RuntimeError(f"DJANGO_SETTINGS_MODULE is {chosen}: this entry point is {settings}")
