"""Every TCP port this project listens on, and the only place where one is written down.

They are the ports of the balancing studies where those are free of each other.
"""

APPLICATION = 8000  # the application server by itself
APPLICATION_FIRST = 8010  # with ``sharing=ports``: one port a process, counted up from here
NGINX = 8008
HAPROXY = 9000
GUNICORN_ONE_WORKER = 9001
APACHE = 8081
REDIS = 6390  # not 6379: that one belongs to somebody else
LOCUST_WEB = 8089
