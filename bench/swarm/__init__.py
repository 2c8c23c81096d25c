"""Variants in containers: compose.yaml as a Swarm's stack, in a Docker engine of the project's own.

An engine that runs on the machine is never used and never touched: the one that is started here
keeps everything in a temporary directory, listens on a unix socket in it and on loopback, and
changes no firewall rule. When it ends, the machine is as it was.
"""
