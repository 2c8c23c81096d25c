"""Deployments by hand: bare supervisord and supervisorctl, ``up`` and ``down``, ``show``."""

import os
import shutil
import subprocess
import time

import psutil
import pytest

from bench import control, ports, readiness, remains, supervise
from bench.environment import ROOT
from bench.supervise import BIN, tree
from bench.variants import Variant, resolve

pytestmark = pytest.mark.server
PATIENCE_S = 30.0


@pytest.fixture
def environ():
    """The shell's environment with the project's programs on its path, and no Redis named."""
    kept = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    return kept | {"PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONWARNINGS": "ignore"}


@pytest.fixture
def bench(environ):
    def run(*arguments, **options):
        command = (str(BIN / "python"), "-m", "bench", *arguments)
        return run_in_project(command, environ | options)

    yield run
    run("down")


@pytest.fixture
def supervisorctl(environ):
    return lambda *arguments: run_in_project(("supervisorctl", *arguments), environ)


def run_in_project(command, env, cwd=ROOT):
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=90)


def eventually(check):
    """Wait until ``check`` raises ``NotReady`` no more."""
    return readiness.wait(check, time.monotonic() + PATIENCE_S, lambda: None)


def test_bare_supervisorctl_controls_what_up_started(bench, supervisorctl):
    up = bench("up", "daphne-ipc")
    assert up.returncode == 0, up.stderr
    assert "daphne-ipc is ready at" in up.stdout

    status = supervisorctl("status").stdout
    assert [line.split()[0] for line in status.splitlines()] == [
        "django_channels:daphne_8000",
        "django_channels:worker_0",
    ]
    assert "stopped" in supervisorctl("stop", "django_channels:*").stdout
    assert ports.is_free(ports.APPLICATION)
    assert "daphne_8000: started" in supervisorctl("start", "django_channels:*").stdout
    eventually(
        lambda: readiness.relay(resolve("daphne-ipc"), lambda: tree(control.supervisord_pid()))
    )
    assert supervisorctl("restart", "django_channels:daphne_8000").returncode == 0

    assert "daphne-ipc is stopped" in bench("down").stdout
    assert "nothing is up" in bench("down").stdout


def test_up_refuses_a_second_variant_while_one_is_up(bench):
    bench("up", "gunicorn")
    again = bench("up", "daphne-ipc")
    assert again.returncode == 2
    assert again.stderr.startswith("Error: gunicorn is up (pid ")
    assert len(again.stderr.splitlines()) == 1


def test_supervisord_by_hand_runs_the_variant_of_the_environment(bench, supervisorctl, environ):
    script = 'eval "$(python -m bench env uvicorn-ipc)" && supervisord'
    started = run_in_project(("sh", "-c", script), environ)
    assert started.returncode == 0, started.stderr
    eventually(lambda: identity_of("uvicorn-ipc"))
    assert "django_channels:uvicorn_8000" in supervisorctl("status").stdout
    assert "is stopped" in bench("down").stdout
    assert ports.is_free(ports.APPLICATION)


def identity_of(name):
    return readiness.identity(resolve(name), lambda: tree(control.supervisord_pid()))


def test_supervisord_without_the_environment_says_where_to_get_it(environ):
    failed = run_in_project(("supervisord", "--nodaemon"), environ)
    assert failed.returncode == 2
    assert "ENV_DEPLOY_FILES_FROM_BENCH_ENV" in failed.stderr


@pytest.mark.parametrize(
    "name",
    [
        "gunicorn",
        "daphne-ipc-x4",
        pytest.param("daphne-redis", marks=pytest.mark.redis),
        pytest.param("gunicorn-asgi-redis", marks=pytest.mark.redis),
    ],
)
def test_show_prints_a_configuration_that_supervisord_runs(name, bench, environ, tmp_path):
    """In a copy of the project elsewhere: the text knows nothing of where it was made."""
    project = tmp_path / "elsewhere"
    for part in (
        "testproject",
        "settings",
        "channels_hub",
        "channels_ipc",
        "supervisor",
        "manage.py",
    ):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        project.mkdir(exist_ok=True)
        copy(ROOT / part, project / part)
    shown = bench("show", name)
    (project / "supervisord.conf").write_text(shown.stdout)
    (project / "run" / "log").mkdir(parents=True)

    environ |= {"CHANNELS_IPC_DIRECTORY": str(tmp_path / "ipc")}
    supervisord = subprocess.Popen(
        ("supervisord", "--nodaemon", "--silent"), cwd=project, env=environ
    )
    try:
        variant = resolve(name)
        ours = lambda: tree(supervisord.pid)  # noqa: E731
        eventually(lambda: readiness.identity(variant, ours))
        if variant.has_worker:
            eventually(lambda: readiness.relay(variant, ours))
    finally:
        supervisord.terminate()
        supervisord.wait(PATIENCE_S)
    assert ports.is_free(ports.front(variant))


@pytest.mark.redis
def test_redis_that_is_named_is_used_and_no_other_is_started(bench, tmp_path, start):
    socket = tmp_path / "redis.sock"
    start("redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "")
    while not socket.exists():
        time.sleep(0.01)
    up = bench("up", "daphne-redis", REDIS_URL=f"unix://{socket}")
    assert up.returncode == 0, up.stderr
    assert not [one for one in control.programs() if one["name"] == "redis"]


def test_busy_port_is_answered_with_the_process_that_holds_it(bench, start):
    holder = start(
        str(BIN / "python"), "-m", "http.server", "--bind", "127.0.0.1", str(ports.APPLICATION)
    )
    while ports.is_free(ports.APPLICATION):
        time.sleep(0.01)
    up = bench("up", "daphne-ipc")
    assert up.returncode == 2
    assert f"port {ports.APPLICATION} is held by pid {holder.pid} (" in up.stderr
    assert "http.server" in up.stderr
    assert len(up.stderr.splitlines()) == 1


def test_missing_server_is_answered_with_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(supervise, "BIN", tmp_path)
    for name in ("setpriv", "taskset", "python"):
        (tmp_path / name).touch(mode=0o755)
    with pytest.raises(supervise.BadInput, match=r"^redis-server is missing: apt-get install"):
        supervise.require(Variant("daphne", "redis"), {"PATH": str(tmp_path)})
    with pytest.raises(supervise.BadInput, match=r"^uvicorn is missing: pip install"):
        supervise.require(Variant("uvicorn", "ipc"), {"PATH": str(tmp_path)})


def test_leftovers_of_a_run_that_crashed_are_cleared_away(bench):
    """supervisord is killed with -9: its programs live on and hold the port."""
    bench("up", "gunicorn")
    supervisord = psutil.Process(control.supervisord_pid())
    orphans = supervisord.children(recursive=True)
    supervisord.kill()
    assert orphans
    assert bench("up", "daphne-inmemory").returncode == 0
    assert not [process for process in orphans if process.is_running()]


def test_second_bench_of_one_checkout_is_refused(bench):
    with remains.claimed():
        second = bench("up", "gunicorn")
    assert second.returncode == 2
    assert "another bench" in second.stderr
