"""What stands in front of the application: each proxy's configuration, filled in for a variant.

nginx and Apache do not expand environment variables, and none of the three can repeat a line for
each process. So ``nginx/``, ``haproxy/`` and ``apache/`` hold templates, and what they become
for a variant goes into ``run/`` when it is started and is printed by ``bench show``.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench import ports
from bench.environment import BACKLOG, HOST, KEEP_ALIVE_S, ROOT
from bench.variants import Variant

BODY_BYTES = 10 * 1024 * 1024  # the largest request body; what is larger is answered with 413
CONNECTIONS = 4000  # of clients, per worker process where a proxy has several
SILENCE_S = 75  # of an application: three of the pings that Daphne and uvicorn send, and some
REQUEST_S = 10  # a client has for a request's headers, and in each proxy's own sense for its body
CONNECT_S = 2  # to reach a process on the same machine
RETRY_S = 5  # after which a request is not sent to another process any more
CHECK_S = 5  # a busy process has to say that it is well
IDLE_S = KEEP_ALIVE_S // 2  # a connection to the application waits for another request
DRAIN_S = 3600  # open connections have after a reload
APACHE_PROCESSES, APACHE_THREADS = 8, 128  # 1,024 sockets


@dataclass(frozen=True)
class Proxy:
    """A proxy, where its template is, and the file in ``run/`` that its program reads.

    ``check`` is its own check of that file; ``reload`` is the signal that makes its main process
    take a new one, and let the old workers finish what they serve.
    """

    name: str
    template: str
    file: str
    check: tuple[str, ...]
    reload: str


PROXIES = {
    proxy.name: proxy
    for proxy in (
        Proxy(
            "nginx",
            "nginx/nginx.conf.j2",
            "nginx.conf",
            ("nginx", "-t", "-q", "-e", "stderr", "-p", ".", "-c", "nginx.conf"),
            "SIGHUP",
        ),
        Proxy(
            "haproxy",
            "haproxy/haproxy.cfg.j2",
            "haproxy.cfg",
            ("haproxy", "-c", "-q", "-f", "haproxy.cfg"),
            "SIGUSR2",
        ),
        Proxy(
            "apache",
            "apache/apache.conf.j2",
            "apache.conf",
            ("apache2", "-t", "-d", ".", "-f", "apache.conf"),
            "SIGUSR1",
        ),
    )
}


def files(variant: Variant, *, as_root: bool = False) -> dict[str, str]:
    """Return file name below ``run/`` -> text: what the proxy of ``variant`` reads, if it has one.

    ``as_root`` says that root starts it, who must name the account that nginx and Apache run as.
    """
    proxy = PROXIES.get(variant.proxy)
    if proxy is None:
        return {}
    front, application = ports.front(variant), ports.application(variant)
    return {proxy.file: rendered(proxy, front, application, as_root=as_root)}


def rendered(
    proxy: Proxy, port: int, application: tuple[int, ...], *, as_root: bool = False
) -> str:
    """Return the configuration of ``proxy`` on ``port``, with a process on each other port."""
    environment = Environment(
        loader=FileSystemLoader(ROOT),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - these are no pages
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(proxy.template).render(
        as_root=as_root,
        host=HOST,
        port=port,
        application=application,
        backlog=BACKLOG,
        keep_alive_s=KEEP_ALIVE_S,
        body_bytes=BODY_BYTES,
        connections=CONNECTIONS,
        silence_s=SILENCE_S,
        request_s=REQUEST_S,
        connect_s=CONNECT_S,
        retry_s=RETRY_S,
        check_s=CHECK_S,
        idle_s=IDLE_S,
        drain_s=DRAIN_S,
        apache_processes=APACHE_PROCESSES,
        apache_threads=APACHE_THREADS,
    )


def write(variant: Variant, folder: Path) -> None:
    """Write what the proxy of ``variant`` reads into ``folder``, for whoever runs this."""
    for name, text in files(variant, as_root=os.geteuid() == 0).items():
        (folder / name).write_text(text)
