"""`rewardkit reward-server`."""

from contextlib import ExitStack
from typing import Annotated

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import show_import, warn
from rewardkit.cli.shared.options import argument, complete_scorers, examples, option

EXAMPLES = examples(
    "rewardkit reward-server gsm8k",
    "rewardkit reward-server my_reward.py:compute_score --port 0 --jobs 8",
    "REWARD_TOKEN=... rewardkit reward-server --host 0.0.0.0 --token-env REWARD_TOKEN",
)


def command(
    scorer: Annotated[
        str,
        argument(
            "Scorer name or file.py:function; auto selects the scorer by data_source.",
            autocompletion=complete_scorers,
        ),
    ] = "auto",
    host: Annotated[str, option("Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, option("Port to listen on; 0 selects a free port.", min=0, max=65535)
    ] = 8300,
    settings: opt.Settings = None,
    token_env: Annotated[
        str | None,
        option("Environment variable that holds the token; requests must send it.", metavar="NAME"),
    ] = None,
    jobs: Annotated[
        int | None,
        option(
            "Number of responses scored concurrently by a custom scorer; the default is one per "
            "CPU core.",
            min=1,
        ),
    ] = None,
    seconds_per_row: opt.SecondsPerRow = 10.0,
    load_seconds: opt.LoadSeconds = 60.0,
    wrong_score: Annotated[
        float | None,
        option(
            "Score to return if a custom scorer fails; set it to its score for wrong answers.  [0]"
        ),
    ] = None,
    max_waiting: Annotated[
        int, option("Maximum number of waiting requests; further requests get status 429.", min=1)
    ] = 1024,
    max_batch: Annotated[int, option("Maximum number of responses per request.", min=1)] = 1024,
    max_body_mb: Annotated[int, option("Maximum size of a request, in MiB.", min=1, max=1024)] = 8,
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
        options=opt.scorer_options(settings),
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
