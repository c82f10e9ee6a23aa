"""Options of requests to a model server."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewardkit.cli.shared.completion import complete_sets
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.evaluate.generate import GenerationConfig


class Api(str, Enum):
    """The endpoint that requests go to."""

    chat = "chat"
    completions = "completions"


Parquet = Annotated[
    Path | None, typer.Argument(help="verl parquet with the questions; or name sets with --suite.")
]
Suite = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        autocompletion=complete_sets,
        help="Comma-separated sets instead of a parquet: gsm8k, aime2024:32 (with its own n) or "
        "my.parquet. Missing sets are prepared.",
    ),
]
SuiteFolder = Annotated[
    Path | None,
    typer.Option(
        "--suite-dir", help="Folder of prepared sets; the default is ~/.cache/rewardkit/suite."
    ),
]
Samples = Annotated[int, typer.Option("-n", min=1, help="Responses per question.")]
ApiName = Annotated[
    Api,
    typer.Option(help="Endpoint; completions joins the messages' text without a chat template."),
]
Temperature = Annotated[
    float | None, typer.Option(min=0.0, help="Sampling temperature; 0 is greedy.")
]
TopP = Annotated[float | None, typer.Option(min=0.0, max=1.0, help="Nucleus sampling mass.")]
TopK = Annotated[
    int | None,
    typer.Option(min=-1, help="Sample from the k most likely tokens; not every server has it."),
]
MaxTokens = Annotated[int | None, typer.Option(min=1, help="Maximum tokens per response.")]
Stop = Annotated[list[str] | None, typer.Option(help="Text that ends a response. Repeatable.")]
Seed = Annotated[
    int | None, typer.Option(help="Random seed; the seed of each request is derived from it.")
]
ExtraBody = Annotated[
    str | None, typer.Option(metavar="JSON", help="Additional fields of each request.")
]
PerRequest = Annotated[int, typer.Option(min=1, help="Responses to ask for in one request.")]
Concurrency = Annotated[
    int, typer.Option(min=1, max=4096, help="Maximum number of concurrent requests.")
]
RequestSeconds = Annotated[float, typer.Option(min=0.1, help="Timeout per request, in seconds.")]
Tries = Annotated[
    int, typer.Option(min=1, help="Attempts per request; 9 attempts take about two minutes.")
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Environment variable that holds the API key."),
]


def generation_config(options: Mapping[str, Any], base_url: str, model: str) -> GenerationConfig:
    """Return the generation settings of a command.

    Args:
        options: the parameters of a command that has all options of this module.
        base_url: base URL of the server.
        model: model name sent to the server.

    Raises:
        UsageError: a value cannot be used.
    """
    from rewardkit.evaluate.generate import GenerationConfig
    from rewardkit.evaluate.sampling import Sampling
    from rewardkit.model_client.client import Server

    api = Api(options["api"]).value  # typer converts for the function, not in ctx.params
    key = _api_key(options["api_key_env"])
    sampling = Sampling(
        api=api,
        temperature=options["temperature"],
        top_p=options["top_p"],
        top_k=options["top_k"],
        max_tokens=options["max_tokens"],
        stop=tuple(options["stop"] or ()),
        seed=options["seed"],
        extra=_json_object(options["extra_body"]),
    )
    server = Server(base_url, api, key=key, timeout_seconds=options["request_seconds"])
    return GenerationConfig(
        server,
        model,
        sampling,
        n=options["n"],
        choices_per_request=options["per_request"],
        concurrency=options["concurrency"],
        tries=options["tries"],
    )


def _json_object(text: str | None) -> Mapping[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError as error:
        raise UsageError(f"--extra-body: not JSON ({error}).") from error
    if not isinstance(value, dict):
        raise UsageError('--extra-body: write a JSON object, as {"min_p": 0.05}.')
    return value


def _api_key(variable: str | None) -> str:
    """The API key: only from the environment, where no list of processes shows it."""
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"--api-key-env {variable}: the variable is not set, or is empty.")
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"--api-key-env {variable}: its value is not a valid API key.")
    return key
