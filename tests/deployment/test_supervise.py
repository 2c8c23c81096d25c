"""``deployed``: what it yields is ready, and what it started is gone whatever ends it."""

import os
import signal
import subprocess
import sys
import textwrap

import psutil
import pytest

from bench import ports, remains, supervise
from bench.environment import ROOT
from bench.proxies import PROXIES
from bench.supervise import StartFailed, deployed, tree
from bench.variants import Variant, resolve

pytestmark = pytest.mark.server
PATIENCE_S = 30.0

RUNNER = textwrap.dedent(
    """
    import signal, sys, time
    # A test run in the background ignores Ctrl-C, and what it starts does too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from bench.supervise import deployed
    from bench.variants import resolve

    with deployed(resolve(sys.argv[1])) as deployment:
        print(deployment.pid, flush=True)
        time.sleep(600)
    """
)


def living(pids):
    """Return those of ``pids`` that still run; a zombie has only not been waited for."""
    found = (psutil.Process(pid) for pid in pids if psutil.pid_exists(pid))
    return {one.pid for one in found if one.is_running() and one.status() != psutil.STATUS_ZOMBIE}


def gone(pids):
    processes = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
    return not living({one.pid for one in alive})


@pytest.mark.redis
def test_deployment_is_ready_when_it_is_yielded_and_gone_after():
    with deployed(resolve("daphne-redis")) as deployment:
        pids = tree(deployment.pid)
        assert len(pids) == 4  # supervisord, redis-server, the worker, the server
        assert deployment.identity["server"] == "daphne"
    assert not living(pids)
    assert ports.is_free(ports.APPLICATION)


def test_deployment_is_gone_after_an_exception():
    pids = set()
    with pytest.raises(ZeroDivisionError):
        divide_by_zero(pids)
    assert len(pids) == 6  # supervisord, the arbiter, four workers
    assert not living(pids)


def divide_by_zero(pids):
    with deployed(resolve("gunicorn-x4")) as deployment:
        pids |= tree(deployment.pid)
        1 / 0  # noqa: B018 - for its exception


@pytest.mark.redis
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_deployment_is_gone_after_its_runner_got(number, start):
    """Ctrl-C lets the runner clean up; after the others supervisord learns that it has gone."""
    runner = start(
        sys.executable, "-c", RUNNER, "daphne-redis", cwd=ROOT, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    pids = tree(int(runner.stdout.readline()))
    assert len(pids) == 4
    runner.send_signal(number)
    assert runner.wait(PATIENCE_S) != 0
    assert gone(pids)
    runner.stdout.close()


@pytest.mark.parametrize("name", ["daphne-ipc", *(f"gunicorn-{one}-x4" for one in PROXIES)])
def test_deployment_is_gone_after_its_supervisord_was_killed(name, installed):
    """Its programs have other process groups and no parent then: their token finds them."""
    with deployed(installed(resolve(name))) as deployment:
        pids = tree(deployment.pid)
        os.kill(deployment.pid, signal.SIGKILL)
    assert not living(pids)


def test_cpus_pin_every_process():
    cpu = min(os.sched_getaffinity(0))
    with deployed(resolve("gunicorn-x4"), cpus=[cpu]) as deployment:
        affinities = {tuple(psutil.Process(pid).cpu_affinity()) for pid in tree(deployment.pid)}
    assert affinities == {(cpu,)}


def test_variables_of_the_shell_do_not_reach_the_servers(monkeypatch):
    """Any of these would change what is measured."""
    for name in ("GUNICORN_CMD_ARGS", "WEB_CONCURRENCY", "PYTHONASYNCIODEBUG"):
        monkeypatch.setenv(name, "2")
    with deployed(resolve("gunicorn")) as deployment:
        environ = psutil.Process(deployment.identity["pid"]).environ()
        assert len(tree(deployment.pid)) == 3  # supervisord, gunicorn's arbiter, one worker
    assert not {"GUNICORN_CMD_ARGS", "WEB_CONCURRENCY", "PYTHONASYNCIODEBUG"} & set(environ)
    assert environ["DJANGO_SETTINGS_MODULE"] == "settings.no_channels"


def test_variant_that_does_not_start_fails_with_its_log(monkeypatch):
    monkeypatch.setenv("DJANGO_ALLOWED_HOSTS", "elsewhere.example")
    with (
        pytest.raises(StartFailed, match=r"^gunicorn: /healthz answers 400") as failure,
        deployed(resolve("gunicorn"), start_s=3),
    ):
        pytest.fail("it was yielded")
    assert "DisallowedHost" in failure.value.log_tail
    assert ports.is_free(ports.front(resolve("gunicorn")))


def test_program_that_ends_fails_the_start_at_once(monkeypatch):
    """Not after the deadline: nobody waits for a server that has given up."""
    monkeypatch.setenv("REDIS_URL", "unix:///nowhere/redis.sock")
    with (
        pytest.raises(StartFailed, match=r"worker_0 ended"),
        deployed(Variant("daphne", "redis")),
    ):
        pytest.fail("it was yielded")


def test_supervisord_that_ends_fails_the_start_at_once_with_what_it_said(monkeypatch):
    said = ("sh", "-c", "echo it is broken >&2; exit 7")
    monkeypatch.setattr(supervise, "command", lambda cpus, dies_with_us: said)
    with (
        pytest.raises(StartFailed, match="supervisord ended with 7") as failure,
        deployed(resolve("gunicorn")),
    ):
        pytest.fail("it was yielded")
    assert "it is broken" in failure.value.log_tail


def test_notes_are_gone_when_nothing_runs():
    with deployed(resolve("gunicorn")):
        assert remains.noted_variant() == "gunicorn"
    assert remains.noted_variant() is None


def test_stop_that_is_interrupted_stops_all_the_same(start, monkeypatch):
    process = start("sleep", "600")
    end, asked = supervise._end, []

    def interrupted(pid):
        asked.append(pid)
        if len(asked) == 1:
            raise KeyboardInterrupt
        end(pid)

    monkeypatch.setattr(supervise, "_end", interrupted)
    with pytest.raises(KeyboardInterrupt):
        supervise.stop(process)
    assert process.returncode is not None
