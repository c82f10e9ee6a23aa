"""A reward server: the same scorers over HTTP, for OpenRLHF and for any trainer's remote reward.

One process answers. Scorers that may wait run in threads, and custom ones in processes of their
own. See docs/reward-server.md.
"""

import ipaddress
import os
import resource
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from rewardkit.errors import MissingPackageError, OutputError, UsageError
from rewardkit.isolate.function import LOAD_TIMEOUT_SECONDS

#: Connections that the kernel holds until they are accepted.
BACKLOG = 2048

#: Maximum number of connections, unless `max_waiting` needs more.
MAX_CONNECTIONS = 4096

#: Open files that the process needs besides connections, and those for each job.
OWN_FILES, FILES_PER_JOB = 32, 4

#: Timeout of an idle connection, in seconds. A client that reuses a connection just as it is closed
#: gets no answer, so this is long.
KEEP_ALIVE_SECONDS = 60

#: Seconds beyond the timeout of a response that the server may take to end.
SHUTDOWN_SECONDS = 30

#: Seconds after which a scoring thread gets its turn while the event loop is busy. With Python's
#: 5 ms, and even with 1 ms, the threads got little of an overloaded machine.
THREAD_SWITCH_SECONDS = 0.0002


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """The settings of a server, which are the options of `rewardkit reward-server`.

    `port` 0 is any free one, `token` "" is none, and `wrong` is the score of a response on which the scorer
    fails: None for the wrong score of our scorer, or 0 for a custom one.
    """

    scorer: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8300
    token: str = field(default="", repr=False)
    jobs: int = 2
    seconds: float = 10.0
    load_seconds: float = LOAD_TIMEOUT_SECONDS
    wrong: float | None = None
    max_waiting: int = 1024
    max_batch: int = 1024
    max_body_bytes: int = 8 << 20


def serve(
    config: ServerConfig, on_listen: Callable[[str], object], warn: Callable[[str], object]
) -> None:
    """Serve until SIGTERM or SIGINT; answer the accepted requests, then raise the signal again.

    `on_listen` is called with the server's URL once it listens, and `warn` with warnings.

    Raises:
        RewardkitError: a package is missing, the scorer does not load, or the address cannot be used.
    """
    try:
        import uvicorn

        from rewardkit.reward_server.app import RewardApp, ScorerPool, connection_class
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"reward-server needs {error.name}: pip install 'rewardkit[server]'."
        ) from error
    with closing(ScorerPool(config)) as pool, open_listener(config.host, config.port) as listener:
        host, port = listener.getsockname()[:2]
        if not config.token and not ipaddress.ip_address(host).is_loopback:
            warn(
                f"warning: anyone who reaches {host} port {port} may use this server. Name a "
                "variable that holds a token with --token-env, or listen on 127.0.0.1."
            )
        room = raise_connection_limit(config.max_waiting, config.jobs)
        if room < config.max_waiting:
            warn(
                f"warning: the limit of open files leaves room for {room:,} connections, fewer than "
                f"the {config.max_waiting:,} requests that may wait. Raise it with ulimit -n."
            )
        settings = uvicorn.Config(
            RewardApp(pool, config),
            access_log=False,
            backlog=BACKLOG,
            http=connection_class(room),
            lifespan="off",
            log_config=None,
            log_level="warning",
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS + int(config.seconds),
            ws="none",
        )
        sys.setswitchinterval(THREAD_SWITCH_SECONDS)
        on_listen(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
        uvicorn.Server(settings).run(sockets=[listener])


def raise_connection_limit(max_waiting: int, jobs: int) -> int:
    """Raise the limit of open files as far as needed and return how many connections it allows."""
    own_files = OWN_FILES + FILES_PER_JOB * jobs
    target = max(MAX_CONNECTIONS, 2 * max_waiting) + own_files
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (target if limit == resource.RLIM_INFINITY else limit for limit in limits)
    if soft < (best := min(target, hard)):
        resource.setrlimit(resource.RLIMIT_NOFILE, (best, limits[1]))
        soft = best
    return max(1, min(target, soft) - own_files)


@contextmanager
def open_listener(host: str, port: int) -> Iterator[socket.socket]:
    """Open a socket that listens on the first address of a host."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host}: no such address ({error}).") from error
    try:
        with socket.create_server(address[:2], family=family, backlog=BACKLOG) as listener:
            yield listener
    except OSError as error:
        raise OutputError(
            f"--host {host} --port {port}: cannot listen there ({error.strerror}); --port 0 "
            "takes a free one."
        ) from error


def read_token(variable: str) -> str:
    """Return the token in an environment variable."""
    token = os.environ.get(variable, "").strip()
    if not token:
        raise UsageError(f"--token-env {variable}: it is unset or blank; put the token there.")
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise UsageError(f"--token-env {variable}: a token is printable ASCII without blanks.")
    return token
