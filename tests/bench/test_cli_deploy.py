"""The commands about deployments: what they print, and their one-line errors."""

import subprocess

import pytest
from click.testing import CliRunner

from bench.cli import COMMANDS, deploy, main
from bench.environment import configuration
from bench.supervise import Deployment, StartFailed
from bench.variants import SWARM_VARIANTS, VARIANTS, resolve


def run(*arguments, **options):
    return CliRunner().invoke(main, arguments, **options)


def test_list_names_every_variant_with_its_factors():
    result = run("list", env={"COLUMNS": "80"})
    assert result.exit_code == 0
    lines = {line.split()[0]: line.split() for line in result.output.splitlines() if line.strip()}
    every = VARIANTS | SWARM_VARIANTS
    assert set(every) <= set(lines)
    for variant in every.values():
        assert {variant.server, variant.layer, str(variant.processes)} <= set(lines[variant.name])


@pytest.mark.parametrize("command", ["show", "env", "up"])
def test_unknown_variant_is_one_line_that_names_the_nearest(command):
    result = run(command, "dafne-ipc")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: unknown variant 'dafne-ipc': did you mean daphne-ipc")
    assert len(result.stderr.splitlines()) == 1


def test_show_prints_the_configuration():
    text = configuration(resolve("daphne-ipc"))["supervisord.conf"]
    shown = run("show", "daphne-ipc").output
    assert shown.splitlines()[0] == text.splitlines()[0]
    assert "daphne testproject.asgi_for_ipc:application" in shown


def test_show_names_what_else_is_needed():
    result = run("show", "gunicorn-asgi-redis")
    assert "supervisor/gunicorn_asgi.py" in result.stderr
    assert "it needs" not in result.stdout


def test_env_is_what_a_shell_can_evaluate():
    exports = run("env", "daphne-redis", env={"REDIS_URL": "redis://a'b"}).output
    found = subprocess.run(
        ["sh", "-c", f'{exports}\nprintf "%s" "$REDIS_URL $DJANGO_SETTINGS_MODULE"'],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found == "redis://a'b settings.channels_redis"


def test_env_gives_another_secret_key_each_time():
    key = [line for line in run("env", "gunicorn").output.splitlines() if "SECRET_KEY" in line]
    assert key[0] not in run("env", "gunicorn").output.splitlines()
    assert "not-secret" not in key[0]


def test_up_that_fails_shows_the_log_and_exits_with_1(monkeypatch):
    def fails(variant):
        raise StartFailed("gunicorn: it is broken", "==> gunicorn.log <==\nTraceback")

    monkeypatch.setattr(deploy.supervise, "up", fails)
    result = run("up", "gunicorn")
    assert result.exit_code == 1
    assert "it is broken" in result.stderr
    assert "==> gunicorn.log <==" in result.stderr


def test_up_says_where_and_how_to_go_on(monkeypatch):
    told = {"server": "gunicorn", "server_version": "27"}
    monkeypatch.setattr(deploy.supervise, "up", lambda variant: Deployment(variant, told, 7))
    assert "gunicorn is ready at http://127.0.0.1:" in run("up", "gunicorn").output


@pytest.mark.parametrize(
    ("name", "said"), [("gunicorn", "gunicorn is stopped"), (None, "nothing is up")]
)
def test_down_says_what_it_stopped(monkeypatch, name, said):
    monkeypatch.setattr(deploy.supervise, "down", lambda: name)
    assert run("down").output == f"{said}\n"


@pytest.mark.parametrize("name", [name for name, at in COMMANDS.items() if "deploy" in at[0]])
def test_command_has_a_help(name):
    result = run(name, "--help")
    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 3
