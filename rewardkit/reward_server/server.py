"""A reward server: the same scorers over HTTP, for OpenRLHF and for any trainer's remote reward.

One process answers; scorers that may wait are called in threads, and those that are not ours have
processes of their own. See docs/reward-server.md.
"""

from __future__ import annotations

import ipaddress
import os
import resource
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from rewardkit.errors import OutputError, UsageError

#: Connections that the kernel holds until they are taken.
BACKLOG = 2048

#: Connections at a time, at most, if `waiting` does not ask for more.
CONNECTIONS = 4096

#: Open files that the process needs besides connections, and for each job.
OWN_FILES, JOB_FILES = 32, 4

#: Seconds that a connection may idle: a client that uses one again just as it is closed gets no answer.
KEPT = 60

#: Seconds beyond a response's own that a server may take to end.
ENDING = 30

#: Seconds after which a thread that judges gets its turn where the event loop is busy. Python's own
#: 5 ms, and 1 ms still, left it little of an overloaded machine.
SWITCH = 0.0002


@dataclass(frozen=True)
class Serving:
    """What a server is told.

    Attributes:
        scorer: a name or `file.py:function`; `auto` judges each item by its data source.
        options: of the scorer.
        host: an address or name of this machine.
        port: to listen on; 0 for any that is free.
        token: that requests must show, "" for none.
        jobs: responses judged at once by scorers that may wait.
        seconds: that a scorer which is not ours may take for a response.
        wrong: what a response gets on which the scorer fails; None for our scorers' own, or 0.
        waiting: requests that may wait; one more is answered 429.
        batch: items in a request.
        body: bytes in a request.
    """

    scorer: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8300
    token: str = field(default="", repr=False)
    jobs: int = 2
    seconds: float = 10.0
    wrong: float | None = None
    waiting: int = 1024
    batch: int = 1024
    body: int = 8 << 20


def serve(told: Serving, say: Callable[[str], object], warn: Callable[[str], object]) -> None:
    """Serve until SIGTERM or SIGINT; what was taken is answered, then the signal is raised again.

    Args:
        told: scorer, address and limits.
        say: is given the server's URL once it listens.
        warn: is given what a person should know.

    Raises:
        UsageError: packages are missing, the scorer does not load, or there is no such address.
        OutputError: the address is taken, or not allowed.
    """
    try:
        import uvicorn

        from rewardkit.reward_server.app import make_app
        from rewardkit.reward_server.connections import connection_class
        from rewardkit.reward_server.gate import Limits
        from rewardkit.reward_server.scoring import Judge
    except ModuleNotFoundError as error:
        raise UsageError(
            f"reward-server needs {error.name}: pip install 'rewardkit[server]'."
        ) from error
    judge = Judge(told.scorer, told.options, told.jobs, told.seconds, told.wrong)
    with closing(judge), listening(told.host, told.port) as sock:
        host, port = sock.getsockname()[:2]
        if not told.token and not ipaddress.ip_address(host).is_loopback:
            warn(
                f"warning: anyone who reaches {host} port {port} may use this server: name a "
                "variable that holds a token with --token-env, or listen on 127.0.0.1."
            )
        room = _room(told, warn)
        config = uvicorn.Config(
            make_app(judge, Limits(told.waiting, told.batch, told.body), told.token),
            access_log=False,
            backlog=BACKLOG,
            http=connection_class(room),
            lifespan="off",
            log_config=None,
            log_level="warning",
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEPT,
            timeout_graceful_shutdown=ENDING + int(told.seconds),
            ws="none",
        )
        sys.setswitchinterval(SWITCH)
        say(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
        uvicorn.Server(config).run(sockets=[sock])


def _room(told: Serving, warn: Callable[[str], object]) -> int:
    room = room_for_connections(told.waiting, told.jobs)
    if room < told.waiting:
        warn(
            f"warning: the limit of open files leaves room for {room:,} connections, fewer than "
            f"the {told.waiting:,} requests that may wait: raise it with ulimit -n."
        )
    return room


def room_for_connections(waiting: int, jobs: int) -> int:
    """How many connections the limit of open files leaves room for; it is raised as far as it goes.

    Args:
        waiting: requests that may wait, each on a connection.
        jobs: responses judged at once, perhaps in processes.
    """
    own = OWN_FILES + JOB_FILES * jobs
    wanted = max(CONNECTIONS, 2 * waiting) + own
    soft, hard = (
        wanted if limit == resource.RLIM_INFINITY else limit
        for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    if soft < (best := min(wanted, hard)):
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (best, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )
        soft = best
    return max(1, min(wanted, soft) - own)


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens on the first address of a host.

    Raises:
        UsageError: there is no such address.
        OutputError: it cannot be listened on.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host}: no such address ({error}).") from error
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(address)
            sock.listen(BACKLOG)
        except OSError as error:
            raise OutputError(
                f"--host {host} --port {port}: cannot listen there ({error.strerror}); --port 0 "
                "takes a free one."
            ) from error
        yield sock


def token_of(variable: str) -> str:
    """The token that an environment variable holds.

    Raises:
        UsageError: it is unset, blank, or no plain text.
    """
    token = os.environ.get(variable, "").strip()
    if not token:
        raise UsageError(f"--token-env {variable}: it is unset or blank; put the token there.")
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise UsageError(f"--token-env {variable}: a token is printable ASCII without blanks.")
    return token
