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
        typer.Argument(help="A scorer's name or file.py:function; auto: by each data_source."),
    ] = "auto",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8300,
    settings: Settings = None,
    token_env: Annotated[
        str | None, typer.Option(help="The variable with the token that requests must show.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Responses judged at once where a scorer may wait; all cores."),
    ] = None,
    seconds_per_row: SecondsPerRow = 10.0,
    wrong_score: Annotated[
        float | None,
        typer.Option(help="Where a scorer of yours fails: what it gives wrong answers.  [0]"),
    ] = None,
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Requests that may wait; one more is answered 429.")
    ] = 1024,
    max_batch: Annotated[int, typer.Option(min=1, help="Responses in a request.")] = 1024,
    max_body_mb: Annotated[int, typer.Option(min=1, max=1024, help="MiB in a request.")] = 8,
) -> None:
    """Serve a scorer over HTTP: OpenRLHF's --reward.remote_url, or any trainer's remote reward.

    POST /get_reward takes and gives what OpenRLHF does, POST /score an object with data_source,
    response, ground_truth and extra_info, or {"items": [...]}; GET /health and /metrics. Ends on
    Ctrl-C or SIGTERM, when all that was taken is answered. See docs/reward-server.md.
    """
    from rewardkit.parallel import cores
    from rewardkit.reward_server.server import Serving, serve, token_of

    told = Serving(
        scorer=scorer,
        options=scorer_options(settings),
        host=host,
        port=port,
        token=token_of(token_env) if token_env else "",
        jobs=jobs or cores(),
        seconds=seconds_per_row,
        wrong=wrong_score,
        waiting=max_waiting,
        batch=max_batch,
        body=max_body_mb << 20,
    )
    serve(told, lambda url: typer.echo(f"{scorer} on {url} (POST /score, /get_reward)"), warn)
