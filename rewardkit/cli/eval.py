"""`rewardkit eval`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewardkit.cli.prep import HubName
from rewardkit.cli.shared.console import (
    EndedError,
    Jobs,
    JsonFlag,
    Overwrite,
    SecondsPerRow,
    Settings,
    examples,
    prints_to_stderr,
    progress,
    refuse_unused,
    scorer_options,
    warn,
)
from rewardkit.cli.shared.eval_output import (
    asking,
    print_comparison,
    print_point,
    print_report,
    print_suite,
    warn_of,
)
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.evaluate.generate import Generation
    from rewardkit.evaluate.run import Judging
    from rewardkit.evaluate.suite import Member

EXAMPLES = examples(
    "rewardkit eval test.parquet --base-url http://127.0.0.1:8000/v1 --model M -n 32 --out m.jsonl",
    "rewardkit eval test.parquet --base-url https://api.example.com/v1 --api-key-env EXAMPLE_KEY \\",
    "    --model M -n 4 --temperature 0.6 --max-tokens 8192 --seed 1 --out runs/m.jsonl",
    "rewardkit eval --suite aime2024:32,aime2025:32,math-500:4,gsm8k --base-url URL --model M \\",
    "    --out runs/m",
    "rewardkit eval --suite math-500 --watch checkpoints/DAPO/qwen3 --out runs/qwen3 \\",
    "    --serve 'vllm serve {model} --port {port} --tensor-parallel-size 8'",
    "rewardkit eval test.parquet --responses validation_dumps/100.jsonl --json",
    "rewardkit eval --compare runs/before.jsonl runs/after.jsonl",
)


#: The options that each of them looks at: judging, asking a server, naming sets, and watching.
JUDGING = frozenset({"parquet", "out", "scorer", "settings", "seconds_per_row", "jobs"})
ASKING = frozenset(
    {
        *("model", "n", "api", "temperature", "top_p", "top_k", "max_tokens", "stop", "seed"),
        *("extra_body", "per_request", "concurrency", "request_seconds", "tries", "api_key_env"),
    }
)
SETS = frozenset({"suite", "suite_dir", "hub"})
WATCHING = frozenset({"serve", "serve_seconds", "every", "once", "until"})


class Api(str, Enum):
    """What kind of request is sent."""

    chat = "chat"
    completions = "completions"


def command(
    ctx: typer.Context,
    parquet: Annotated[Path | None, typer.Argument(help="The verl rows to answer.")] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Of the server: http://HOST:PORT/v1.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="As the server calls it.")] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Responses to each question.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The jsonl to write: responses with their scores. A folder with --suite."
        ),
    ] = None,
    api: Annotated[
        Api, typer.Option(help="completions: the messages' text, without a chat template.")
    ] = Api.chat,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="0 is greedy.")] = None,
    top_p: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="As for vLLM.")] = None,
    top_k: Annotated[int | None, typer.Option(min=-1, help="Not every server has it.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Of a response.")] = None,
    stop: Annotated[list[str] | None, typer.Option(help="Ends a response. Repeatable.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Each request gets its own, made of this one.")
    ] = None,
    extra_body: Annotated[
        str | None, typer.Option(metavar="JSON", help="More fields of the request.")
    ] = None,
    per_request: Annotated[int, typer.Option(min=1, help="Choices that one request asks for.")] = 1,
    concurrency: Annotated[
        int, typer.Option(min=1, max=4096, help="Requests under way at once, at most.")
    ] = 256,
    request_seconds: Annotated[
        float, typer.Option(min=0.1, help="That one request may take.")
    ] = 1800.0,
    tries: Annotated[int, typer.Option(min=1, help="Of one request; they take two minutes.")] = 9,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The variable that holds the API key.")
    ] = None,
    responses: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Judge these; nothing is generated. Repeatable."),
    ] = None,
    scorer: Annotated[
        str, typer.Option(help="A scorer's name or file.py:function; auto: each row's own.")
    ] = "auto",
    settings: Settings = None,
    seconds_per_row: SecondsPerRow = 60.0,
    jobs: Jobs = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Sets with commas between: gsm8k, aime2024:32 (n of its own), my.parquet. Missing "
            "ones are prepared.",
        ),
    ] = None,
    suite_dir: Annotated[
        Path | None,
        typer.Option(help="Of prepared sets, instead of ~/.cache/rewardkit/suite."),
    ] = None,
    hub: Annotated[HubName, typer.Option(help="Sets come from there.")] = HubName.huggingface,
    watch: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Evaluate each global_step_N in it once, when it is whole."
        ),
    ] = None,
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="With --watch: a server of {model} on {port}, that stays in the foreground; no shell.",
        ),
    ] = None,
    serve_seconds: Annotated[
        float, typer.Option(min=1, help="That the server may take until it answers.")
    ] = 1800.0,
    every: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two looks at the folder.")
    ] = 30.0,
    once: Annotated[
        bool, typer.Option("--once", help="With --watch: end when what is there is done.")
    ] = False,
    until: Annotated[
        int | None, typer.Option(min=0, help="With --watch: end when this step is done.")
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A B", help="Two files of --out: is B better, and how surely?"),
    ] = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Judge a model with the reward it was trained on: generate, score, and sum up.

    Responses come from any OpenAI-compatible server and are kept as they come: the same command
    goes on with a run that was interrupted. Or they are read, with --responses: verl's dumps, the
    output of a batch, and logs of AISBench, lm-eval and lighteval. Figures are mean@n, pass@k and
    maj@k with intervals over questions; the JSON has every k, every subject and every level.

    With --suite and --watch, --out is a folder; --watch keeps curve.html in it. Put runs side by
    side with rewardkit leaderboard.
    """
    if compare:
        refuse_unused(ctx, "--compare", {"compare"})
        print_comparison(*compare, as_json=as_json)
        return
    if (parquet is None) == (suite is None):
        raise UsageError(
            "name the parquet with the questions, or sets of them with --suite; or two files with "
            "--compare."
        )
    from rewardkit.evaluate.run import Judging
    from rewardkit.evaluate.sampling import Sampling
    from rewardkit.parallel import cores

    judging = Judging(scorer, scorer_options(settings), seconds_per_row, jobs or cores())
    if responses:
        refuse_unused(ctx, "--responses", {"responses", "overwrite"} | JUDGING)
        _responses(parquet, responses, out, judging, overwrite=overwrite, as_json=as_json)
        return
    stops, extra = tuple(stop or ()), _json_object(extra_body)
    sampling = Sampling(api.value, temperature, top_p, top_k, max_tokens, stops, seed, extra)
    server = {"api": api.value, "key": _key(api_key_env), "seconds": request_seconds}
    how = (sampling, n, per_request, concurrency, tries)
    ask = partial(_generation, server, model, how)
    sets = partial(_members, suite, parquet, suite_dir, n, hub, judging.jobs)
    _warn_if_greedy(temperature, n, suite)
    if watch:
        used = {"watch", *WATCHING} | JUDGING | ASKING
        refuse_unused(ctx, "--watch", used | SETS if suite else used)
        timing = {"start_seconds": serve_seconds, "every": every, "once": once, "until": until}
        _watch(watch, serve, out, sets, ask, judging, timing, as_json=as_json)
        return
    used = {"base_url", "overwrite"} | JUDGING | ASKING
    refuse_unused(ctx, "--base-url", used | SETS if suite else used)
    if not (base_url and model and out):
        raise UsageError("give --base-url, --model and --out to generate, or --responses FILE.")
    generation = ask(base_url, model)
    if suite:
        _suite(sets(), generation, out, judging, overwrite=overwrite, as_json=as_json)
    elif parquet:
        _one(parquet, generation, out, judging, overwrite=overwrite, as_json=as_json)


def _json_object(text: str | None) -> Mapping[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError as error:
        raise UsageError(f"--extra-body: not JSON ({error}).") from error
    if not isinstance(value, dict):
        raise UsageError('--extra-body: write a JSON object, as {"min_p": 0.05}.')
    return value


def _generation(
    server: Mapping[str, Any], model: str | None, how: tuple[Any, ...], url: str, of: str
) -> Generation:
    """What to ask of the server at a URL, for the model of that name if none was named."""
    from rewardkit.evaluate.client import Server
    from rewardkit.evaluate.generate import Generation

    return Generation(Server(url, **server), model or of, *how)


def _warn_if_greedy(temperature: float | None, n: int, suite: str | None) -> None:
    if temperature == 0 and (n > 1 or re.search(r":(?!1\b)\d", suite or "")):
        warn("temperature 0 is greedy: more than one response to a question says nothing new.")


def _key(variable: str | None) -> str:
    """The API key: only from the environment, where no list of processes shows it."""
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"--api-key-env {variable}: no such variable, or it is empty.")
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"--api-key-env {variable}: what it holds cannot be an API key.")
    return key


@contextmanager
def _resumable(out: Path) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit, EndedError):
        warn(f"{out}: interrupted; the same command goes on.")
        raise


def _responses(
    parquet: Path | None,
    files: list[str],
    out: Path | None,
    judging: Judging,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    from rewardkit.evaluate.run import evaluate_responses

    if parquet is None:
        raise UsageError("--responses: name the parquet with their questions.")
    with prints_to_stderr():
        report = evaluate_responses(parquet, files, out, judging, overwrite=overwrite)
    print_report(report, as_json=as_json)


def _one(
    parquet: Path,
    generation: Generation,
    out: Path,
    judging: Judging,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    from rewardkit.evaluate.run import evaluate

    with _resumable(out), asking() as (start, advance), prints_to_stderr():
        report = evaluate(
            parquet,
            generation,
            out,
            judging,
            overwrite=overwrite,
            start=partial(start, generation.model),
            progress=advance,
        )
    print_report(report, as_json=as_json)


def _members(
    suite: str | None, parquet: Path | None, folder: Path | None, n: int, hub: HubName, jobs: int
) -> list[Member]:
    """The sets to ask, each with its parquet prepared."""
    from rewardkit.evaluate.suite import Member, default_folder, members, prepare

    if parquet:
        return [Member(parquet.stem, parquet, n)]
    found = members(suite or "", folder or default_folder(), n)
    for member in found:
        with progress(f"preparing {member.name}") as advance:
            if prepare(member, hub.value, jobs, advance):
                warn(f"{member.name}: prepared {member.parquet}")
    return found


def _suite(
    found: list[Member],
    generation: Generation,
    out: Path,
    judging: Judging,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    from rewardkit.evaluate.suite import evaluate_all

    with _resumable(out), asking() as (start, advance), prints_to_stderr():
        reports = evaluate_all(
            found,
            generation,
            out,
            judging,
            overwrite=overwrite,
            start=start,
            progress=advance,
        )
    print_suite(reports, out, as_json=as_json)


def _watch(
    folder: Path,
    serve: str | None,
    out: Path | None,
    sets: Callable[[], list[Member]],
    ask: Callable[[str, str], Generation],
    judging: Judging,
    timing: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Each checkpoint's figures as they come: a line, or with --json a JSON line, and the curve."""
    from rewardkit.evaluate.watch.curve import points, read_curves, write_curves
    from rewardkit.evaluate.watch.serving import command_of
    from rewardkit.evaluate.watch.watch import Told, Watch, watch

    if not (serve and out):
        raise UsageError("--watch needs --serve and --out.")
    command_of(serve, folder, 0)  # said now, not after hours of waiting
    curves = read_curves(out)
    with _resumable(out), asking() as (start, advance):
        told = Told(warn, start, advance)
        what = Watch(folder, serve, out, sets(), ask, judging, told=told, **timing)
        for step, reports in watch(what):
            for report in reports.values():
                warn_of(report)
            for source, point in points(step, reports):
                curves.setdefault(source, {})[step] = point
                print_point(source, point, as_json=as_json)
            write_curves(curves, f"{folder}: accuracy against steps", out)
