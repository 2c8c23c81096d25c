"""The environment that turns the files in ``supervisor/`` into one variant, and the result as text.

``supervisord.conf`` and the program files hold every command once, with ``%(ENV_DEPLOY_...)s``
where a variant decides; here is what those come to. Pure: nothing here asks the machine anything
but the texts of those files.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from bench import ports
from bench.errors import BadInput
from bench.variants import LAYERS, Variant

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"

# Every server has the same ones, as far as it can be told; docs/deploying.md says where it cannot.
BACKLOG = 2048  # connections the kernel holds for a busy server; the usual 50 to 128 drops some
KEEP_ALIVE_S = 60  # an idle connection is kept this long; granian's limit is 60
GRACE_S = 3  # what a server gives open connections when it is told to stop ...
STOP_S = 8  # ... and what supervisord gives the server before it kills it
MESSAGE_BYTES = 16 * 1024 * 1024  # the largest WebSocket message, as uvicorn and gunicorn have it

# A socket's path must fit sockaddr_un with its final zero; supervisord first binds "<path>.<pid>".
_SOCKET_PATH_MAX = 107
_LONGEST_SOCKET = "run/supervisor.sock.4194304"

# Signs nothing that matters on loopback, and says itself what to do with it elsewhere.
EXAMPLE_SECRET_KEY = "not-secret-put-50-random-characters-here"  # noqa: S105 - it is none

# Server -> its options where clients connect directly, whose X-Forwarded-* are their own invention,
# and behind a proxy on this machine, which overwrites them. Daphne believes whoever connects.
_PROXY_OPTIONS = {
    "gunicorn": ('--forwarded-allow-ips ""', f"--forwarded-allow-ips {HOST}"),
    "gunicorn_asgi": ('--forwarded-allow-ips ""', f"--forwarded-allow-ips {HOST}"),
    "uvicorn": ("--no-proxy-headers", f"--proxy-headers --forwarded-allow-ips {HOST}"),
    "daphne": ("", "--proxy-headers"),
    "granian": ("", ""),
}

_PROGRAM_FILES = "supervisor/programs/{}.conf"
_GROUP_FILES = "supervisor/groups/{}.conf"


def environment(
    variant: Variant, *, redis_url: str | None = None, root: str = str(ROOT)
) -> dict[str, str]:
    """Return the variables under which ``supervisord`` runs ``variant`` in the project at ``root``.

    ``redis_url`` names a Redis that runs already; without one a variant that needs Redis gets its
    own, started by the same supervisord. The keys are the same for every variant, so that one
    environment put over another leaves nothing behind; ``REDIS_URL`` alone is only there where it
    is used.
    """
    if variant.proxy == "swarm":
        raise BadInput(f"{variant.name} runs in containers: see docs/swarm.md")
    own_redis = _uses_redis(variant) and redis_url in (None, "", redis_socket_url(root))
    listeners = len(ports.application(variant))
    files = (*_group_files(variant), *map(_PROGRAM_FILES.format, _programs(variant, own_redis)))
    return {
        "DEPLOY_FILES_FROM_BENCH_ENV": " ".join(files),
        "DEPLOY_ROOT": root,
        "DEPLOY_VARIANT": variant.name,
        "DEPLOY_GROUP_PROGRAMS": ",".join(_group_programs(variant)),
        "DEPLOY_APPLICATION": variant.entry_point,
        "DEPLOY_HOST": HOST,
        "DEPLOY_PORT": str(ports.application(variant)[0]),
        "DEPLOY_BACKLOG": str(BACKLOG),
        "DEPLOY_KEEP_ALIVE_S": str(KEEP_ALIVE_S),
        "DEPLOY_GRACE_S": str(GRACE_S),
        "DEPLOY_STOP_S": str(STOP_S),
        "DEPLOY_MESSAGE_BYTES": str(MESSAGE_BYTES),
        "DEPLOY_LISTENERS": str(listeners),
        "DEPLOY_PROCESSES": str(variant.processes // listeners),
        "DEPLOY_PROXY_OPTIONS": _PROXY_OPTIONS[variant.server][variant.proxy != "direct"],
        "DEPLOY_WORKERS": str(variant.workers),
        "DJANGO_SETTINGS_MODULE": variant.settings,
        "DJANGO_SECRET_KEY": EXAMPLE_SECRET_KEY,
        "TESTPROJECT_MIDDLEWARE": variant.middleware,
        "TESTPROJECT_HANDLER": variant.handler,
        "TESTPROJECT_DELIVERY": variant.delivery,
    } | _redis_variable(variant, redis_socket_url(root) if own_redis else redis_url)


def redis_socket_url(root: str = str(ROOT)) -> str:
    """Return the ``REDIS_URL`` of the Redis that supervisord starts for the project at ``root``."""
    return f"unix://{root}/run/redis.sock"


def check_root(root: Path = ROOT) -> None:
    """Raise ``BadInput`` where ``root`` is so long that a socket below it could not be bound."""
    length = len(str(root / _LONGEST_SOCKET).encode())
    if length > _SOCKET_PATH_MAX:
        raise BadInput(
            f"{root} is {length - _SOCKET_PATH_MAX} bytes too long for the unix sockets in its "
            "run/: move the project to a shorter path"
        )


def _uses_redis(variant: Variant) -> bool:
    return LAYERS[variant.layer].service == "redis"


def _redis_variable(variant: Variant, url: str | None) -> dict[str, str]:
    return {"REDIS_URL": url} if _uses_redis(variant) and url else {}


def _shares_socket(variant: Variant) -> bool:
    """Whether supervisord must bind the socket, because the server cannot fork."""
    shared = variant.sharing == "socket" and variant.processes > 1
    return variant.server == "daphne" and shared


def _programs(variant: Variant, own_redis: bool) -> list[str]:
    if variant.stack != "today":
        return ["redis"] * own_redis + _programs_of_2016(variant)
    server = "daphne_shared_socket" if _shares_socket(variant) else variant.server
    proxy = [] if variant.proxy == "direct" else [variant.proxy]
    return ["redis"] * own_redis + ["worker"] * variant.has_worker + [server] + proxy


def _programs_of_2016(variant: Variant) -> list[str]:
    worker = ["channels1_worker"] * variant.workers
    service = ["channels1_segments"] * (variant.layer == "ipc")
    return [*service, *worker, f"channels1_{variant.server}"]


def _group_files(variant: Variant) -> list[str]:
    return [] if _shares_socket(variant) else [_GROUP_FILES.format(variant.group)]


def _group_programs(variant: Variant) -> list[str]:
    return [variant.server, *["worker"] * bool(variant.workers)]


def configuration(
    variant: Variant,
    *,
    redis_url: str | None = None,
    path: str = "%(here)s/.venv/bin",
) -> dict[str, str]:
    """Return file name -> text: all that runs ``variant`` on another machine, values filled in.

    The supervisord.conf comes first and names the others, if there are any. ``%(here)s``, the
    folder it lies in, is left for supervisord: that is the project's root wherever it is copied
    to. ``path`` is where the servers' programs are.
    """
    if variant.proxy == "swarm":
        from bench.swarm import stack  # it is made of what is here

        return stack.configuration(variant)
    values = environment(variant, redis_url=redis_url, root="%(here)s")
    head, files = _without_include((ROOT / "supervisord.conf").read_text())
    texts = [(ROOT / name).read_text() for name in _expanded(files, values).split()]
    body = "\n".join(_expanded(text, values) for text in (head, *texts))
    banner = (
        f"; {variant.name}: put this file into the project's root as supervisord.conf, and there\n"
        ";   mkdir -p run/log && supervisord\n"
        "; A secret key of your own belongs where DJANGO_SECRET_KEY is.\n\n"
    )
    text = body.replace("[supervisord]\n", f"[supervisord]\n{_for_children(values, path)}", 1)
    beside = re.findall(r"--config (\S+)", text)
    return {"supervisord.conf": banner + text} | {
        name: (ROOT / name).read_text() for name in beside
    }


def _without_include(text: str) -> tuple[str, str]:
    """Return the text from its first section up to the include's comment, and what it includes."""
    match = re.search(r"\n((?:;[^\n]*\n)*)\[include\]\nfiles = ([^\n]+)\n", text)
    assert match, "supervisord.conf ends in an [include] section"
    return text[text.index("[supervisord]") : match.start()] + "\n", match[2]


def _expanded(text: str, values: Mapping[str, str]) -> str:
    expanded = re.sub(r"%\(ENV_(\w+)\)s", lambda match: values[match[1]], text)
    return re.sub(r"\n +(?=\n)", "", expanded)  # an option that came to nothing


def _for_children(values: Mapping[str, str], path: str) -> str:
    """Return the ``environment`` option: what the programs need beyond their command lines."""
    variables = {"PATH": f"{path}:%(ENV_PATH)s:/usr/sbin"}  # Debian's place for proxies
    variables |= {name: values[name] for name in sorted(values) if not name.startswith("DEPLOY_")}
    lines = ",\n".join(f'    {name}="{value}"' for name, value in variables.items())
    return f"environment =\n{lines}\n"


def executables(variant: Variant, *, redis_url: str | None = None) -> list[str]:
    """Return the programs that ``variant`` starts, by name, in the order of their first mention."""
    values = environment(variant, redis_url=redis_url)
    texts = [(ROOT / name).read_text() for name in values["DEPLOY_FILES_FROM_BENCH_ENV"].split()]
    command = re.compile(r"^command = (?:setpriv --pdeathsig TERM )?(\S+)", re.MULTILINE)
    return list(dict.fromkeys(command.findall("\n".join(texts))))
