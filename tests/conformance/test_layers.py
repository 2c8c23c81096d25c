"""The four layers of this project, held to every rule."""

from collections.abc import Mapping
from typing import Any

import pytest

from . import ChannelLayerConformance, Subject
from .layers import IPC, REDIS, REDIS_PUBSUB, SUBJECTS


class TestChannelLayers(ChannelLayerConformance):
    """Peers run in their best documented configuration, known faults mended."""

    subjects = SUBJECTS

    @pytest.fixture
    def config(
        self, subject: Subject, request: pytest.FixtureRequest, tmp_path_factory: Any
    ) -> Mapping[str, Any]:
        if subject in (REDIS, REDIS_PUBSUB):
            address = f"unix://{request.getfixturevalue('redis_socket')}"
            # redis-py 8 ends an idle read after 5 s unless it is told not to.
            return {"hosts": [{"address": address, "socket_timeout": None}]}
        if subject is IPC:
            return {"directory": str(request.getfixturevalue("ipc_directory"))}
        return subject.config
