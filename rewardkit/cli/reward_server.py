"""`rewardkit reward-server`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from rewardkit.cli.shared.completion import complete_scorers
from rewardkit.cli.shared.console import show_import, warn
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import LoadSeconds, SecondsPerRow, Settings, scorer_options

EXAMPLES = examples(
    "rewardkit reward-server gsm8k",
    "rewardkit reward-server my_reward.py:compute_score --port 0 --jobs 8",
    "REWARD_TOKEN=... rewardkit reward-server --host 0.0.0.0 --token-env REWARD_TOKEN",
)


def command(
    scorer: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_scorers,
            help="Scorer name or file.py:function; auto selects the scorer by data_source.",
        ),
    ] = "auto",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 selects a free port.")
    ] = 8300,
    settings: Settings = None,
    token_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Environment variable that holds the token; requests must send it."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of responses scored concurrently by a custom scorer; the default is one per "
            "CPU core.",
        ),
    ] = None,
    seconds_per_row: SecondsPerRow = 10.0,
    load_seconds: LoadSeconds = 60.0,
    wrong_score: Annotated[
        float | None,
        typer.Option(
            help="Score to return if a custom scorer fails; set it to its score for wrong answers.  [0]"
        ),
    ] = None,
    max_waiting: Annotated[
        int,
        typer.Option(
            min=1, help="Maximum number of waiting requests; further requests get status 429."
        ),
    ] = 1024,
    max_batch: Annotated[
        int, typer.Option(min=1, help="Maximum number of responses per request.")
    ] = 1024,
    max_body_mb: Annotated[
        int, typer.Option(min=1, max=1024, help="Maximum size of a request, in MiB.")
    ] = 8,
) -> None:
    """Serve a scorer over HTTP to any trainer.

    POST /get_reward has the format of OpenRLHF's --reward.remote_url. POST /score takes an object
    with data_source, response, ground_truth and extra_info, or {"items": [...]}. GET /health and
    /metrics report the state. On Ctrl-C or SIGTERM the server answers all accepted requests and
    exits. See docs/reward-server.md.
    """
    from rewardkit.parallel import cores
    from rewardkit.reward_server.server import ServerConfig, read_token, serve
    from rewardkit.scorers.isolated import is_built_in

    config = ServerConfig(
        scorer=scorer,
        options=scorer_options(settings),
        host=host,
        port=port,
        token=read_token(token_env) if token_env else "",
        jobs=jobs or cores(),
        seconds=seconds_per_row,
        load_seconds=load_seconds,
        wrong=wrong_score,
        max_waiting=max_waiting,
        max_batch=max_batch,
        max_body_bytes=max_body_mb << 20,
    )
    with ExitStack() as loading:
        if not is_built_in(scorer):
            loading.enter_context(show_import(scorer))

        def on_listen(url: str) -> None:
            loading.close()
            typer.echo(f"{scorer} on {url} (POST /score, /get_reward)")

        serve(config, on_listen, warn)
