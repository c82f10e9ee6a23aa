"""`rewardkit reward-server`."""

from __future__ import annotations

from typing import Annotated

import typer

from rewardkit.cli.shared.console import warn
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import SecondsPerRow, Settings, scorer_options

EXAMPLES = examples(
    "rewardkit reward-server gsm8k",
    "rewardkit reward-server my_reward.py:compute_score --port 0 --jobs 8",
    "REWARD_TOKEN=... rewardkit reward-server --host 0.0.0.0 --token-env REWARD_TOKEN",
)


def command(
    scorer: Annotated[
        str,
        typer.Argument(help="Scorer name or file.py:function; auto goes by each data_source."),
    ] = "auto",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free port.")
    ] = 8300,
    settings: Settings = None,
    token_env: Annotated[
        str | None,
        typer.Option(help="Environment variable with the token that requests must have."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Threads for scorers that may wait; the default is all cores."),
    ] = None,
    seconds_per_row: SecondsPerRow = 10.0,
    wrong_score: Annotated[
        float | None,
        typer.Option(help="Score of a response on which a custom scorer fails.  [0]"),
    ] = None,
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Maximum waiting requests; one more gets status 429.")
    ] = 1024,
    max_batch: Annotated[int, typer.Option(min=1, help="Maximum responses per request.")] = 1024,
    max_body_mb: Annotated[
        int, typer.Option(min=1, max=1024, help="Maximum size of a request, in MiB.")
    ] = 8,
) -> None:
    """Serve a scorer over HTTP, for OpenRLHF or any trainer's remote reward.

    POST /get_reward takes and returns what OpenRLHF does. POST /score takes an object with
    data_source, response, ground_truth and extra_info, or {"items": [...]}. GET /health and
    GET /metrics show the server's state. The server ends on Ctrl-C or SIGTERM, after it has
    answered every accepted request. See docs/reward-server.md.
    """
    from rewardkit.parallel import cores
    from rewardkit.reward_server.server import ServerConfig, read_token, serve

    config = ServerConfig(
        scorer=scorer,
        options=scorer_options(settings),
        host=host,
        port=port,
        token=read_token(token_env) if token_env else "",
        jobs=jobs or cores(),
        seconds=seconds_per_row,
        wrong=wrong_score,
        max_waiting=max_waiting,
        max_batch=max_batch,
        max_body_bytes=max_body_mb << 20,
    )
    serve(config, lambda url: typer.echo(f"{scorer} on {url} (POST /score, /get_reward)"), warn)
