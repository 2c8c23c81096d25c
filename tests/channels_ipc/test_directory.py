"""Directories that cannot be trusted or used, met by processes that root's rights do not help."""

import asyncio
import os
import re
import shutil
import stat
import subprocess
import time

import pytest

from channels_ipc import pipes
from channels_ipc.directory import Listing, RuntimeDirectory, default_directory
from channels_ipc.errors import IPCError
from channels_ipc.fifo import Fifo
from channels_ipc.sweeping import sweep
from channels_ipc.tally import Tally

NOBODY = 65_534

# Imports first: an unprivileged user may not be able to read the interpreter's own directory.
AS_NOBODY = f"""
import msgpack, channels.layers, encodings.idna, shutil, tempfile
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
def attempt(coroutine):
    try:
        asyncio.run(coroutine)
        say("no error")
    except IPCError as error:
        say(error)
    os._exit(0)
"""
SEND = """
async def send():
    mine = layer()
    await mine.new_channel()
    await mine.send("named", {"type": "t", "body": b"x" * int(args[0] if args else 1)})
attempt(send())
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user: run as root")


@pytest.fixture
def shared(directory):
    """A place that any user may enter, for a runtime directory."""
    import tempfile

    path = tempfile.mkdtemp(prefix="channels-ipc-test-")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def as_nobody(shared):
    """Run ``source`` as the user nobody, on ``directory``; return what it said."""
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path

    spec = spec_from_file_location("ipc_conftest", Path(__file__).with_name("conftest.py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(source, directory, *args):
        program = module.Program(AS_NOBODY + source, directory, *args)
        try:
            return program.result()
        finally:
            program.end()

    return run


def modes(path):
    return {
        os.path.join(at, name): stat.S_IMODE(os.stat(os.path.join(at, name)).st_mode)
        for at, folders, files in os.walk(path)
        for name in folders + files
    }


async def test_everything_is_for_the_user_alone(make_layer, directory):
    old = os.umask(0)
    try:
        layer, other = (
            make_layer(directory=f"{directory}/a/b"),
            make_layer(directory=f"{directory}/a/b"),
        )
        channel = await layer.new_channel()
        await other.send(channel, {"type": "t", "body": b"x" * 10_000})
        await other.send("parked", {"type": "t"})
        await layer.group_add("room", "named")
    finally:
        os.umask(old)
    for path, mode in modes(directory).items():
        assert mode == (0o700 if os.path.isdir(path) else 0o600), path


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o710, 0o1777])
def test_directory_open_to_others_is_refused_with_the_remedy(directory, mode):
    os.mkdir(directory)
    os.chmod(directory, mode)
    with pytest.raises(
        IPCError, match=f"^{directory}: open to other users: chmod 700 {directory}$"
    ):
        RuntimeDirectory(directory, "asgi")


@pytest.mark.parametrize("kind", ["link", "file"])
def test_link_or_file_in_its_place_is_refused(directory, tmp_path, kind):
    (tmp_path / "real").mkdir(mode=0o700)
    if kind == "link":
        os.symlink(tmp_path / "real", directory)
    else:
        (tmp_path / "ipc").write_text("")
    with pytest.raises(
        IPCError, match=f"^{directory}: not a directory but a link or a file: remove"
    ):
        RuntimeDirectory(directory, "asgi")


def test_link_in_the_place_of_a_prefix_is_refused(directory, tmp_path):
    os.mkdir(directory, 0o700)
    os.symlink(tmp_path, f"{directory}/asgi")
    with pytest.raises(IPCError, match=f"^{directory}/asgi: not a directory"):
        RuntimeDirectory(directory, "asgi")


@needs_root
def test_directory_of_somebody_else_is_refused(as_nobody, shared):
    os.mkdir(f"{shared}/ipc", 0o700)
    os.chmod(f"{shared}/ipc", 0o755)
    said = as_nobody(SEND, f"{shared}/ipc")
    assert said.startswith(f"{shared}/ipc: belongs to user 0, and this process is user {NOBODY}:")
    assert '"directory"' in said


@needs_root
def test_other_user_can_neither_list_nor_read_nor_inject(as_nobody, shared, make_layer):
    import asyncio

    async def set_up():
        layer = make_layer(directory=f"{shared}/ipc")
        return (await layer.new_channel())[9:25]

    node = asyncio.run(set_up())
    said = as_nobody(
        """
        tries = [
            lambda: os.listdir(directory),
            lambda: os.listdir(f"{directory}/asgi/n"),
            lambda: os.open(f"{directory}/asgi/n/{args[0]}/mailbox", os.O_WRONLY | os.O_NONBLOCK),
            lambda: os.open(f"{directory}/asgi/meta", os.O_RDONLY),
        ]
        for one in tries:
            try: one(); say("done")
            except PermissionError: say("denied")
        os._exit(0)
        """.replace("\n        ", "\n"),
        f"{shared}/ipc",
        node,
    )
    assert said.split() == ["denied"] * 4


@needs_root
def test_directory_without_the_right_to_write_is_a_clear_error(as_nobody, shared):
    said = as_nobody(SEND, f"{shared}/ipc")
    assert said == (
        f"{shared}/ipc: Permission denied: give this user the right to write there,"
        ' or set "directory" in the layer\'s CONFIG to another place'
    )


@pytest.fixture
def tmpfs(shared):
    """A small file system of its own."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "none", shared], check=True)
    yield shared
    subprocess.run(["umount", shared], check=True)


@needs_root
def test_read_only_directory_is_a_clear_error(tmpfs):
    subprocess.run(["mount", "-o", "remount,ro", tmpfs], check=True)
    with pytest.raises(
        IPCError, match=f"^{tmpfs}/ipc: Read-only file system: mount it for writing"
    ):
        RuntimeDirectory(f"{tmpfs}/ipc", "asgi")


@needs_root
async def test_file_system_that_fills_up_is_channel_full_and_loses_nothing(tmpfs, make_layer):
    layer = make_layer(directory=f"{tmpfs}/ipc")
    other = make_layer(directory=f"{tmpfs}/ipc")
    channel = await layer.new_channel()
    for name in (channel, "named", "parked"):
        if name == "named":
            assert layer._endpoint.way(name).take() is None
        accepted = 0
        with pytest.raises(other.ChannelFull):
            while True:
                await other.send(name, {"type": "t", "n": accepted, "body": b"x" * 100_000})
                accepted += 1
        assert 0 < accepted < 10
        for n in range(accepted):
            assert (await layer.receive(name))["n"] == n
    await other.send(channel, {"type": "t", "n": "again", "body": b"x" * 100_000})
    assert (await layer.receive(channel))["n"] == "again"


def fill(tmpfs, pages=0):
    """Leave room for so many pages in the file system, until ``filler`` is removed."""
    with open(f"{tmpfs}/filler", "wb", buffering=0) as filler:
        with pytest.raises(OSError, match="28"):
            while True:
                filler.write(bytes(4096))
        filler.truncate(filler.tell() - pages * 4096)


@needs_root
@pytest.mark.parametrize("room_for", [0, 2])
async def test_full_file_system_costs_no_named_message_when_its_last_receiver_is_killed(
    tmpfs, make_layer, start, room_for
):
    victim = start(
        """
        directory = args[0]
        async def main():
            mine = layer()
            try: await asyncio.wait_for(mine.receive("named"), 0.01)
            except TimeoutError: say("ready")
            await asyncio.sleep(60)
        asyncio.run(main())
        """,
        f"{tmpfs}/ipc",
    )
    assert await victim.next_line() == "ready"
    sender = make_layer(directory=f"{tmpfs}/ipc")
    for n in range(5):
        await sender.send("named", {"type": "t", "n": n})
    victim.end()
    fill(tmpfs, room_for)
    with pytest.raises(sender.ChannelFull):
        await sender.send("named", {"type": "t", "n": "refused"})
    os.unlink(f"{tmpfs}/filler")
    other = make_layer(directory=f"{tmpfs}/ipc")
    assert sorted([(await other.receive("named"))["n"] for _ in range(5)]) == list(range(5))


@needs_root
@pytest.mark.parametrize("room_for", [0, 2])
async def test_full_file_system_costs_nothing_when_the_last_receiver_closes(
    tmpfs, make_layer, caplog, room_for
):
    receiver, sender = (make_layer(directory=f"{tmpfs}/ipc") for _ in range(2))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(receiver.receive("named"), 0.01)
    for n in range(5):
        await sender.send("named", {"type": "t", "n": n})
    fill(tmpfs, room_for)
    channel = receiver._endpoint.way("named")
    await receiver.close()
    assert channel._fifo.fd == -1
    assert f"no space to park {5 - room_for} messages to named" in caplog.text
    os.unlink(f"{tmpfs}/filler")
    assert sorted([(await receiver.receive("named"))["n"] for _ in range(5)]) == list(range(5))


@needs_root
async def test_full_file_system_at_the_start_is_a_clear_error(tmpfs, make_layer):
    layer = make_layer(directory=f"{tmpfs}/ipc")
    fill(tmpfs)
    with pytest.raises(
        IPCError, match=f"^{tmpfs}/ipc(/asgi)?: No space left on device: free space"
    ):
        await layer.new_channel()
    os.unlink(f"{tmpfs}/filler")
    await layer.new_channel()


def test_exhausted_descriptors_are_a_clear_error_and_pass(run):
    said = run("""
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    async def main():
        mine, other = layer(), layer()
        channel = await mine.new_channel()
        try: await asyncio.wait_for(mine.receive("work"), 0.01)
        except TimeoutError: pass
        third = layer()
        for name in (channel, "work"):
            await third.send(name, {"type": "t", "n": "big", "body": b"x" * 10_000})
        held = []
        try:
            while True: held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError: pass
        for attempt in (
            other.send(channel, {"type": "t"}),
            other.send("named", {"type": "t"}),
            other.group_send("room", {"type": "t"}),
            other.group_add("room", "named"),
        ):
            try: await attempt
            except IPCError as error: say(error)
        for name in (channel, "work"):
            say((await mine.receive(name))["n"])
        for fd in held: os.close(fd)
        await other.send(channel, {"type": "t", "n": 1})
        say((await mine.receive(channel))["n"])
    asyncio.run(main())
    """)
    *refused, first, second, last = said.splitlines()
    assert len(refused) == 4
    for line in refused:
        assert "Too many open files: raise the limit of open files (ulimit -n)" in line
        assert "/ipc" in line
    assert [first, second] == ["big", "big"]
    assert last == "1"


@needs_root
@pytest.mark.parametrize(("left", "least_bytes"), [("a megabyte", 131_072), ("nothing", 4096)])
def test_user_whose_share_of_pipes_is_used_up_is_told_and_loses_nothing(
    as_nobody, shared, left, least_bytes
):
    os.chown(shared, NOBODY, NOBODY)
    *lines, named, local = as_nobody(
        """
import fcntl, logging
logging.basicConfig(stream=sys.stdout, format="%(message)s")
held = []
try:
    while True:
        held += os.pipe()
        fcntl.fcntl(held[-1], fcntl.F_SETPIPE_SZ, 1 << 20)
except PermissionError:
    for fd in held[-4:-2] if args[0] == "a megabyte" else (): os.close(fd)
async def main():
    mine, other = layer(capacity=1000), layer(capacity=1000)
    channel = await mine.new_channel()
    try: await asyncio.wait_for(mine.receive("named"), 0.01)
    except TimeoutError: pass
    for name in ("named", channel):
        accepted = 0
        try:
            while True:
                await other.send(name, {"type": "t", "n": accepted, "body": b"x" * 900})
                accepted += 1
        except ChannelFull: pass
        for n in range(accepted):
            assert (await mine.receive(name))["n"] == n
        say(accepted)
asyncio.run(main())
os._exit(0)
""",
        f"{shared}/ipc",
        left,
    ).splitlines()
    assert 0 < int(named) < 1000
    assert 0 < int(local) < 1000
    for line, what in zip(lines, ("a mailbox", f"{shared}/ipc/asgi/q/named"), strict=True):
        held = re.fullmatch(
            rf"{what} holds (\d+) bytes, not (1048576|1024000):"
            r" see fs.pipe-max-size and fs.pipe-user-pages-soft",
            line,
        )
        assert least_bytes <= int(held[1]) < 1_000_000


@pytest.fixture
def outdated(directory):
    """A directory that another version of the package has made, with a mailbox in it."""
    RuntimeDirectory(directory, "asgi").close()
    with open(f"{directory}/asgi/meta", "r+b") as meta:
        meta.seek(8)
        meta.write(b"\x63")
    os.makedirs(f"{directory}/asgi/of-that-version/deeper")
    os.mkfifo(f"{directory}/asgi/of-that-version/deeper/mailbox")
    return f"{directory}/asgi"


def test_directory_in_use_by_another_version_is_refused_and_left_alone(directory, outdated):
    reader = os.open(f"{outdated}/of-that-version/deeper/mailbox", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(IPCError, match=f"^{directory}/asgi: in use by another version"):
            RuntimeDirectory(directory, "asgi")
        assert os.path.exists(f"{outdated}/of-that-version/deeper/mailbox")
    finally:
        os.close(reader)


def test_directory_that_another_version_has_left_is_replaced(directory, outdated):
    RuntimeDirectory(directory, "asgi").close()
    assert sorted(os.listdir(outdated)) == ["g", "meta", "n", "p", "q", "s"]
    assert os.listdir(directory) == ["asgi"]


@pytest.mark.parametrize("content", [b"", b"chan", b"something else entirely"])
def test_directory_whose_meta_is_broken_is_replaced(directory, content):
    RuntimeDirectory(directory, "asgi").close()
    with open(f"{directory}/asgi/meta", "wb") as meta:
        meta.write(content)
    RuntimeDirectory(directory, "asgi").close()
    assert os.path.getsize(f"{directory}/asgi/meta") == 20


def test_processes_that_replace_a_directory_at_once_end_up_in_the_same(outdated, run):
    said = run("""
    from threading import Barrier, Thread
    together = Barrier(8)
    ends = [layer() for _ in range(8)]
    names = []
    def start(end):
        together.wait()
        names.append(asyncio.run(end.new_channel()))
    threads = [Thread(target=start, args=(end,)) for end in ends]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    say(len(names), len(os.listdir(f"{directory}/asgi/n")), os.listdir(directory))
    """)
    assert said == "8 8 ['asgi']"


def test_directory_being_replaced_by_a_stopped_process_is_an_error_and_no_hang(
    directory, outdated, monkeypatch
):
    monkeypatch.setattr("channels_ipc.retiring._PATIENCE", 3)
    base = os.open(directory, os.O_RDONLY)
    try:
        assert pipes.lock(base, shared=False)
        with pytest.raises(IPCError, match="in use by another version"):
            RuntimeDirectory(directory, "asgi")
    finally:
        os.close(base)
    RuntimeDirectory(directory, "asgi").close()


def test_flush_by_a_process_stopped_in_the_middle_brings_no_generation_back(directory):
    stopped, other = (RuntimeDirectory(directory, "asgi") for _ in range(2))
    word, seen = stopped.generation, []

    class Word:
        """The shared word; between a look at it and a store to it the other flushes twice."""

        def __getitem__(self, index):
            value = word[index]
            for _ in range(2):
                seen.append(word[index])
                other.advance()
            return value

        def __setitem__(self, index, value):
            word[index] = value

    stopped.generation = Word()
    stopped.advance()
    assert word[0] not in seen
    assert len(set(seen)) == 2
    stopped.close()
    other.close()


def test_unfinished_and_dead_folders_are_swept(directory):
    place = RuntimeDirectory(directory, "asgi")
    for name in (".new-0123456789abcdef", ".dead-0123456789abcdef", "fedcba9876543210"):
        os.makedirs(f"{place.path}/n/{name}/spool")
    os.mkdir(f"{place.path}/n/.new-fresh")
    for name in (".new-0123456789abcdef", ".dead-0123456789abcdef"):
        os.utime(f"{place.path}/n/{name}", (1, 1))
    os.mkdir(f"{place.path}/s/work")
    for name, changed in (("old", 1), ("new", time.time())):
        with open(f"{place.path}/s/work/{name}", "wb"):
            os.utime(f"{place.path}/s/work/{name}", (changed, changed))
    sweep(place, 60)
    assert os.listdir(f"{place.path}/n") == [".new-fresh"]
    assert os.listdir(f"{place.path}/s/work") == ["new"]
    place.close()


def test_used_up_files_and_folders_are_swept(directory):
    place = RuntimeDirectory(directory, "asgi")
    past, future = time.time() - 1000, time.time() + 1000
    markers = {"g/room/ended": past, "g/room/lasting": future, "g/old/ended": past}
    for name, until in {**markers, "p/old/message": past}.items():
        os.makedirs(f"{place.path}/{os.path.dirname(name)}", exist_ok=True)
        open(f"{place.path}/{name}", "wb").close()
        os.utime(f"{place.path}/{name}", (until, until))
    sweep(place, 60)
    assert os.listdir(f"{place.path}/g/room") == ["lasting"]
    for folder in ("g/room", "g/old", "p/old"):
        os.utime(f"{place.path}/{folder}", (past, past))
    sweep(place, 60)
    assert os.listdir(f"{place.path}/g") == ["room"]
    assert os.listdir(f"{place.path}/p") == []
    place.close()


def test_channel_that_nobody_reads_is_swept_when_its_messages_have_expired(directory):
    place = RuntimeDirectory(directory, "asgi")
    reading = {}
    for name, age_s in (("fresh", 0), ("old", 1000), ("read", 1000)):
        fifo = Fifo(place, name, Tally("test"))
        fifo.read_from_now_on(4096)
        os.utime(f"{place.path}/q/{name}", (time.time() - age_s,) * 2)
        reading[name] = fifo
    reading["old"].close()
    reading["fresh"].close()
    sweep(place, 60)
    assert sorted(os.listdir(f"{place.path}/q")) == ["fresh", "read"]
    reading["read"].close()
    place.close()


def test_reader_that_opened_a_channel_as_it_was_swept_opens_it_again(directory, monkeypatch):
    place = RuntimeDirectory(directory, "asgi")
    fifo, opened = Fifo(place, "work", Tally("test")), []
    is_at = pipes.is_at

    def swept_just_now(fd, path, root):
        opened.append(fd)
        if len(opened) == 1:
            os.unlink(path, dir_fd=root)
        return is_at(fd, path, root)

    monkeypatch.setattr(pipes, "is_at", swept_just_now)
    fifo.read_from_now_on(4096)
    assert len(opened) == 2
    assert os.fstat(fifo.fd).st_ino == os.stat(f"{place.path}/q/work").st_ino
    fifo.close()
    place.close()


def test_listing_sees_every_change_at_once(tmp_path):
    root = os.open(tmp_path, os.O_RDONLY)
    listing = Listing(root, "folder")
    assert listing.names() == ()
    os.mkdir(tmp_path / "folder")
    for n in range(200):
        (tmp_path / "folder" / f"{n:03d}").touch()
        assert len(listing.names()) == n + 1
    time.sleep(0.05)
    assert listing.names() is listing.names()  # settled: not read again
    os.close(root)


def test_default_directory_does_not_depend_on_the_environment(monkeypatch):
    before = default_directory()
    for name in ("TMPDIR", "XDG_RUNTIME_DIR", "HOME"):
        monkeypatch.setenv(name, "/nowhere")
    assert default_directory() == before
    assert before.endswith(str(os.geteuid()))
