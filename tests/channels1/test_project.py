"""The project of 2016 in its own environment: what its processes refuse, share and clean up."""

import json
import os
import signal
import subprocess
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from bench.environment import ROOT

PROJECT = ROOT / "channels1"
ENVIRONMENT = {
    "DJANGO_SECRET_KEY": "x",
    "REDIS_URL": "unix:///nowhere",
    "CHANNELS1_MENDED": "channels",
    "PATH": os.defpath,
}


@pytest.fixture
def run(python):
    """Run code with the Python of 2016 in the project's folder; return the completed process."""

    def run_code(code: str, **variables: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [python, "-B", "-c", code],
            cwd=PROJECT,
            env=ENVIRONMENT | variables,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run_code


@pytest.fixture
def segments():
    spec = spec_from_file_location("segments_of_2016", PROJECT / "testproject" / "segments.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settings(run, overlay: str) -> dict:
    code = (
        "import json, importlib\n"
        f"module = importlib.import_module('testproject.settings.{overlay}')\n"
        "print(json.dumps({name: getattr(module, name) for name in dir(module) if name.isupper()}))"
    )
    return json.loads(run(code).stdout)


def test_overlays_differ_in_the_channel_layer_alone(run):
    plain = settings(run, "no_channels")
    for overlay in ("channels_redis", "channels_ipc", "channels_ipc_mended"):
        layered = settings(run, overlay)
        layers = layered.pop("CHANNEL_LAYERS")
        assert layers["default"]["ROUTING"] == "testproject.routing.channel_routing"
        assert layered.pop("INSTALLED_APPS") == [*plain["INSTALLED_APPS"], "channels"]
        layered.pop("PREFIX", None)
        assert layered == {name: plain[name] for name in plain if name != "INSTALLED_APPS"}


@pytest.mark.parametrize(
    "entry_point", ["wsgi_no_channels", "asgi", "asgi_for_ipc", "asgi_for_ipc_mended"]
)
def test_entry_point_refuses_the_settings_of_another(run, entry_point):
    refused = run(
        f"import testproject.{entry_point}",
        DJANGO_SETTINGS_MODULE="testproject.settings.something_else",
    )
    assert refused.returncode == 1
    assert "DJANGO_SETTINGS_MODULE is testproject.settings.something_else" in refused.stderr


def test_environment_has_compiled_msgpack(run):
    """Pure Python in its place would make every layer of 2016 slower than it was."""
    assert "msgpack._packer" in run("import msgpack; print(msgpack.Packer)").stdout


def test_last_asgi_ipc_loses_nothing_and_does_not_grow(python):
    told = subprocess.run(
        [python, "-B", PROJECT / "collapse.py"], capture_output=True, text=True, timeout=100
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("asgi_ipc 1.4.2\n")
    assert ": 0 of 20000 messages lost\n" in told.stdout


def test_full_channel_of_messages_that_came_back_counts_as_losses(run):
    """It must not end the process: the other end would wait for its count for ever."""
    told = run(
        "import collapse\n"
        "collapse.SENDS = 20\n"
        "layer = collapse.IPCChannelLayer(prefix=collapse.PREFIX)\n"
        "for _ in range(layer.capacity):\n"
        "    layer.send('one', {'number': -1})\n"
        "lost = collapse.Queue()\n"
        "try:\n"
        "    collapse.exchange('one', collapse.Barrier(1), lost)\n"
        "    print(lost.get(timeout=20))\n"
        "finally:\n"
        "    collapse.remove(prefix=collapse.PREFIX)\n"
    )
    assert told.stdout == "20\n", told.stderr


def test_segments_of_one_user_are_removed_and_no_others(segments, tmp_path):
    mine = ["channels1-1-groups", "channels1-1-messages", "sem.channels1-1-messages"]
    others = ["channels1-12-messages", "sem.channels1-12-groups", "asgi-messages"]
    for name in (*mine, *others):
        (tmp_path / name).touch()
    assert segments.remove(tmp_path, "channels1-1") == sorted(mine)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


def test_segments_are_removed_at_start_and_at_the_end(python, segments, tmp_path):
    segment = tmp_path / f"{segments.PREFIX}-messages"
    code = f"import pathlib, testproject.segments as s; s.main(pathlib.Path({str(tmp_path)!r}))"
    segment.touch()
    process = subprocess.Popen([python, "-B", "-c", code], cwd=PROJECT, env=ENVIRONMENT)
    try:
        wait_until_gone(segment)
        segment.touch()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0
        assert not segment.exists()
    finally:
        process.kill()
        process.wait()


def wait_until_gone(path: Path) -> None:
    until = time.monotonic() + 20
    while path.exists():
        assert time.monotonic() < until, f"{path} is still there"
        time.sleep(0.02)
