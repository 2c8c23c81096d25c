"""Locust's own fast client in a closed loop, as this project's throughput test is: see cost.py."""

import os

from locust import FastHttpUser, task

HEADERS = {"Connection": "close"} if os.environ.get("CONNECTION") == "close" else {}


class NeverPausing(FastHttpUser):
    """Asks again as soon as it has its reply, and checks it."""

    @task
    def get(self) -> None:
        with self.client.get("/", headers=HEADERS, catch_response=True) as reply:
            if reply.text != "OK":
                reply.failure(f"{reply.status_code}: not OK")
