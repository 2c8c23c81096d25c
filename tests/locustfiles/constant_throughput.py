"""Locust's own idiom for a constant rate, which this project does not use: see omission.py."""

from locust import FastHttpUser, constant_throughput, task


class EveryoneOnceASecond(FastHttpUser):
    """300 of these are meant to make 300 requests a second."""

    wait_time = constant_throughput(1)

    @task
    def get(self) -> None:
        self.client.get("/")
