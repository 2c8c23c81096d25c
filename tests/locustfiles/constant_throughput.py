"""Locust's own idiom for a constant rate, which this project does not use: see omission.py."""

from typing import Any

from locust import FastHttpUser, constant_throughput, task

RATE_RPS = 300


class SomeOften(FastHttpUser):
    """As many as ``--users`` says, who together are meant to make 300 requests a second."""

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        users = environment.parsed_options.num_users
        self.wait_time = constant_throughput(RATE_RPS / users).__get__(self)

    @task
    def get(self) -> None:
        self.client.get("/")
