"""The environment of a variant, and the files in supervisor/ that it fills in."""

import configparser
import re
import shlex
from pathlib import Path

import pytest

from bench import ports
from bench.environment import (
    BACKLOG,
    ROOT,
    check_root,
    configuration,
    environment,
    executables,
    redis_socket_url,
)
from bench.errors import BadInput
from bench.variants import VARIANTS, resolve

PROGRAMS = sorted((ROOT / "supervisor" / "programs").glob("*.conf"))
TODAY = [variant for variant in VARIANTS.values() if getattr(variant, "stack", "today") == "today"]
each_variant = pytest.mark.parametrize("variant", TODAY, ids=lambda variant: variant.name)


def parsed(text):
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"), strict=True)
    parser.read_string(text)
    return parser


def sections(variant, **options):
    return parsed(configuration(variant, **options)["supervisord.conf"])


def files(variant, **options):
    return environment(variant, **options)["DEPLOY_FILES_FROM_BENCH_ENV"].split()


@each_variant
def test_environment_names_files_that_exist(variant):
    assert all((ROOT / name).is_file() for name in files(variant))


def test_environment_has_the_same_keys_for_every_variant_so_that_none_is_left_behind():
    keys = {frozenset(environment(variant)) - {"REDIS_URL"} for variant in TODAY}
    assert len(keys) == 1


@each_variant
def test_environment_gives_every_variable_that_the_files_use(variant):
    text = "".join((ROOT / name).read_text() for name in files(variant))
    assert set(re.findall(r"%\(ENV_(\w+)\)s", text)) <= set(environment(variant))


def test_environment_starts_a_redis_only_for_a_layer_on_redis():
    assert "supervisor/programs/redis.conf" in files(resolve("daphne-redis"))
    assert "supervisor/programs/redis.conf" not in files(resolve("daphne-ipc"))
    assert "REDIS_URL" not in environment(resolve("daphne-ipc"), redis_url="redis://elsewhere")


def test_environment_starts_no_redis_where_another_is_named():
    variant = resolve("daphne-redis")
    assert "supervisor/programs/redis.conf" not in files(variant, redis_url="redis://elsewhere")
    assert environment(variant, redis_url="redis://elsewhere")["REDIS_URL"] == "redis://elsewhere"


def test_environment_starts_a_redis_where_the_one_named_is_its_own():
    """A shell that ran ``eval "$(python -m bench env ...)"`` before has it in REDIS_URL."""
    variant = resolve("daphne-redis")
    assert environment(variant, redis_url=redis_socket_url()) == environment(variant)


@each_variant
def test_configuration_has_every_value_filled_in(variant):
    text = configuration(variant)["supervisord.conf"]
    assert set(re.findall(r"%\((\w+)\)[sd]", text)) <= {
        "here",
        "program_name",
        "process_num",
        "ENV_PATH",  # of the machine that it is copied to
    }
    assert "[include]" not in text
    assert "DEPLOY_" not in text
    assert str(ROOT) not in text


def test_configuration_has_the_files_that_its_commands_name():
    files = configuration(resolve("gunicorn-asgi-redis"))
    assert list(files) == ["supervisord.conf", "supervisor/gunicorn_asgi.py"]
    assert "--config supervisor/gunicorn_asgi.py" in files["supervisord.conf"]
    assert list(configuration(resolve("daphne-ipc"))) == ["supervisord.conf"]


@each_variant
def test_configuration_has_the_group_of_2016(variant):
    found = sections(variant).sections()
    assert {f"group:{variant.group}", f"fcgi-program:{variant.group}"} & set(found)


def test_configuration_of_the_headline_has_the_setups_of_2016():
    assert sections(resolve("gunicorn"))["group:django_http"]["programs"] == "gunicorn"
    for name in ("daphne-redis", "daphne-ipc"):
        assert sections(resolve(name))["group:django_channels"]["programs"] == "daphne,worker"


@each_variant
def test_configuration_listens_on_loopback_with_a_long_backlog(variant):
    text = configuration(variant)["supervisord.conf"]
    first, *others = ports.application(variant)
    many = "%(process_num)d"
    addresses = (
        f"--bind 127.0.0.1:{many}\n",
        f"--host 127.0.0.1\n    --port {many}\n",
        f"tcp:port={many}:interface=127.0.0.1:",
    )
    if any(address in text for address in addresses):
        assert f"numprocs = {1 + len(others)}\nnumprocs_start = {first}\n" in text
    else:
        assert f"tcp://127.0.0.1:{first}\n" in text
    assert re.search(rf"backlog[ =]+{BACKLOG}\b", text)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_is_stopped_for_good_and_its_log_is_bounded(path):
    (options,) = (dict(one) for name, one in parsed(path.read_text()).items() if name != "DEFAULT")
    assert options["killasgroup"] == "true"
    assert options["redirect_stderr"] == "true"
    assert options["autorestart"] == "true"
    assert options["stdout_logfile"].startswith("%(ENV_DEPLOY_ROOT)s/run/log/")
    assert options["stdout_logfile_maxbytes"] == "1MB"
    assert options["stdout_logfile_backups"] == "1"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_runs_as_whoever_started_supervisord(path):
    assert not re.search(r"^user\b", path.read_text(), re.MULTILINE)


def test_daphne_has_the_same_options_with_a_socket_of_its_own_and_a_shared_one():
    def options(name, *listening):
        text = (ROOT / "supervisor" / "programs" / f"{name}.conf").read_text()
        (section,) = (one for title, one in parsed(text).items() if title != "DEFAULT")
        words = shlex.split(section["command"])
        at = words.index(listening[0])
        assert words[at : at + len(listening)] == list(listening)
        return words[:at] + words[at + len(listening) :]

    endpoint = (
        "tcp:port=%(process_num)d:interface=%(ENV_DEPLOY_HOST)s:backlog=%(ENV_DEPLOY_BACKLOG)s"
    )
    assert options("daphne", "--endpoint", endpoint) == options("daphne_shared_socket", "--fd", "0")


def test_redis_writes_nothing_and_listens_on_no_port():
    command = sections(resolve("daphne-redis"))["program:redis"]["command"]
    words = shlex.split(command)
    pairs = dict(zip(words[1::2], words[2::2], strict=True))
    assert words[0] == "redis-server"
    assert (pairs["--port"], pairs["--save"], pairs["--appendonly"]) == ("0", "", "no")


def test_executables_are_those_of_the_commands():
    assert executables(resolve("gunicorn")) == ["gunicorn"]
    assert executables(resolve("daphne-redis")) == ["redis-server", "python", "daphne"]
    assert executables(resolve("daphne-redis"), redis_url="redis://elsewhere") == [
        "python",
        "daphne",
    ]


def test_root_that_is_too_long_for_its_sockets_is_named_with_the_remedy():
    root = Path("/") / ("long" * 30)
    with pytest.raises(BadInput, match=rf"^{root} is \d+ bytes too long .* shorter path$"):
        check_root(root)
    check_root(Path("/srv/testproject"))
