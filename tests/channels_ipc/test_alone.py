"""The package as somebody else has it: a copied folder, and a system that can do less."""

import ast
import os
import shutil
import subprocess
import sys

import pytest

import channels_ipc

PACKAGE = os.path.dirname(channels_ipc.__file__)
MODULES = sorted(name for name in os.listdir(PACKAGE) if name.endswith(".py"))
PURE = {"wire.py", "messages.py", "names.py", "status.py", "limits.py", "tally.py"}
IO = {"fcntl", "io", "mmap", "os", "pathlib", "shutil", "socket", "subprocess", "tempfile"}
OTHERS = {"layer.py": {"channels", "django"}, "messages.py": {"msgpack"}}

PROJECT = """
import asyncio, sys
import channels_ipc
from channels.layers import get_channel_layer
from django.conf import settings

backend = {"BACKEND": "channels_ipc.IPCChannelLayer", "CONFIG": {"directory": sys.argv[1]}}
settings.configure(CHANNEL_LAYERS={"default": backend})

async def send():
    await get_channel_layer().send("work", {"type": "t", "n": 1})

async def receive():
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add("room", channel)
    await layer.group_send("room", await layer.receive("work"))
    print((await layer.receive(channel))["n"], channels_ipc.__file__)

asyncio.run({"send": send, "receive": receive}[sys.argv[2]]())
"""

# Read when the package is imported: frames of 512 bytes, no size of FIFOs, no tee(2).
AS_ON_MACOS = """
import fcntl, select
del fcntl.F_SETPIPE_SZ, fcntl.F_GETPIPE_SZ
select.PIPE_BUF, linux, sys.platform = 512, sys.platform, "darwin"
for name in [name for name in sys.modules if name.startswith("channels_ipc")]:
    del sys.modules[name]
from channels_ipc import IPCChannelLayer, fifo, pipes, wire
sys.platform = linux
def received(layer, name): return asyncio.wait_for(layer.receive(name), 5)
async def open_by(layer, name):
    try: await asyncio.wait_for(layer.receive(name), 0.01)
    except TimeoutError: pass
async def fill(layer, name, size=1):
    for n in range(100_000):
        try: await layer.send(name, {"type": "t", "n": n, "body": b"x" * size})
        except ChannelFull: return n
"""


def imported(module):
    with open(os.path.join(PACKAGE, module)) as file:
        tree = ast.parse(file.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("module", MODULES)
def test_only_the_layer_knows_channels_and_only_some_modules_do_io(module):
    names = set(imported(module)) - {"channels_ipc"}
    assert names - sys.stdlib_module_names == OTHERS.get(module, set())
    assert not (module in PURE and names & IO)


def test_copied_folder_works_alone(tmp_path, directory):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "project" / "channels_ipc", ignore=ignored)
    for part in ("send", "receive"):
        said = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROJECT, directory, part],
            cwd=tmp_path / "project",
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert said.returncode == 0, said.stderr
    number, path = said.stdout.split()
    assert number == "1"
    assert path == str(tmp_path / "project" / "channels_ipc" / "__init__.py")


def test_messages_of_any_size_keep_their_order_in_small_frames(run):
    said = run(
        AS_ON_MACOS
        + """
async def main():
    mine, other = layer(), layer()
    assert wire.FRAME_LIMIT == fifo.RECORD_SIZE == 512 and pipes._tee is None
    await open_by(mine, "named")
    for name in (await mine.new_channel(), "named", "parked"):
        sizes = (1, 300, 600, 3_000, 100_000)
        for n, size in enumerate(sizes):
            await other.send(name, {"type": "t", "n": n, "body": b"x" * size})
        messages = [await received(mine, name) for _ in sizes]
        say([message["n"] for message in messages], [len(one["body"]) for one in messages])
asyncio.run(main())
"""
    )
    assert said.splitlines() == ["[0, 1, 2, 3, 4] [1, 300, 600, 3000, 100000]"] * 3


def test_fifo_that_cannot_grow_is_full_early_and_loses_nothing(run):
    said = run(
        AS_ON_MACOS
        + """
async def main():
    mine, other = layer(capacity=1000), layer(capacity=1000)
    await open_by(mine, "named")
    for name in (await mine.new_channel(), "named"):
        accepted = await fill(other, name, 400)
        numbers = [(await received(mine, name))["n"] for _ in range(accepted)]
        say(accepted < 1000 and numbers == list(range(accepted)), accepted)
asyncio.run(main())
"""
    )
    local, named = said.splitlines()
    assert local.startswith("True")
    assert named == "True 128"  # 64 KB


def test_without_tee_expired_messages_of_a_named_channel_give_way_to_its_receiver(run):
    said = run(
        AS_ON_MACOS
        + """
async def main():
    mine, other = layer(capacity=3), layer(capacity=3, expiry=0.1)
    await open_by(mine, "named")
    say(await fill(other, "named"))
    await asyncio.sleep(0.2)
    say(await fill(other, "named"))
    await open_by(mine, "named")
    other.expiry = 60
    say(await fill(other, "named"))
    say((await received(mine, "named"))["n"])
asyncio.run(main())
"""
    )
    assert said.split() == ["3", "0", "3", "0"]
