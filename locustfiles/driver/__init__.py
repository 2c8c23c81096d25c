"""The load driver that the locust files share.

Locust imports a locust file by its path, with the file's own folder on ``sys.path`` for as long as
that takes, so that ``from driver import ...`` works from any working directory. Nothing in here
imports the rest of the project: this folder can be copied and used alone.
"""
