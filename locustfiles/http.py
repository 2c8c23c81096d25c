"""Load on one HTTP endpoint, with Locust.

    locust -f locustfiles/http.py --host http://127.0.0.1:8000
    locust -f locustfiles/http.py Throughput --headless -t 60s --host http://127.0.0.1:8000

Three tests, each a user class: Latency (the default), Throughput and Capacity. One user drives the
whole load, so Locust's number of users stays at 1; what counts are the driver's own options, which
the web UI shows under "Custom parameters" and ``driver/options.py`` lists (Locust prints its
``--help`` before it has read this file). In the web UI ``--class-picker`` offers the tests.
"""

import sys
import urllib.request

# Locust has imported this file under the name of the standard library's `http`, and whatever
# imports that one later would get this file. Give the name back.
if sys.modules.get("http") is not urllib.request.http and __name__ == "http":
    sys.modules["http"] = urllib.request.http

import gevent
from driver.capacity import CapacityUser
from driver.http_client import HttpClient, Request, probe
from driver.loops import ClosedLoopUser, OpenLoopUser
from driver.options import HTTP
from driver.registration import register
from driver.target import BadTarget, Target, resolve
from driver.user import DrivenUser

PROBE_S = 3.0


class HttpUser(DrivenUser):
    """What the tests have in common: one GET, over and over."""

    abstract = True
    transport = "http"
    request_type = "GET"
    options = HTTP

    def find_target(self) -> Target:
        target = resolve(self.host, self.values["path"])
        request = self._request(target, min(PROBE_S, self.values["timeout"]))
        if probe(gevent.get_hub().loop, request) == "status 404":
            raise BadTarget(f"--path {target.path}: {target.url} answers 404 Not Found")
        return target

    def client(self) -> HttpClient:
        return HttpClient(gevent.get_hub().loop, self._request(self.target, self.values["timeout"]))

    def identity(self, client: HttpClient) -> dict[str, str]:
        return {"url": self.target.url, "connection": self.values["connection"]}

    def _request(self, target: Target, timeout_s: float) -> Request:
        return Request(
            target,
            keepalive=self.values["connection"] == "keepalive",
            timeout_s=timeout_s,
            expect_body=self.values["expect_body"].encode() or None,
        )


class Latency(HttpUser, OpenLoopUser):
    """Open loop at --rps: each reply timed from the moment its request was meant to be sent."""

    test = "latency"


class Throughput(HttpUser, ClosedLoopUser):
    """Closed loop: --clients of them, each waiting for its reply before it sends again."""

    test = "throughput"


class Capacity(HttpUser, CapacityUser):
    """Finds the highest rate without errors or growing delay, and the lowest that is too high."""

    test = "capacity"


register(HTTP)
