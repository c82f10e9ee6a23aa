"""`rewardkit eval`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewardkit.cli._common import (
    Jobs,
    JsonFlag,
    Overwrite,
    Settings,
    as_share,
    examples,
    print_json,
    print_table,
    printable,
    scorer_options,
    warn,
)
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.evaluate.compare import Comparison
    from rewardkit.evaluate.generate import Generation
    from rewardkit.evaluate.run import Judging, Report

EXAMPLES = examples(
    "rewardkit eval test.parquet --base-url http://127.0.0.1:8000/v1 --model M -n 32 --out m.jsonl",
    "rewardkit eval test.parquet --base-url https://api.example.com/v1 --api-key-env EXAMPLE_KEY \\",
    "    --model M -n 4 --temperature 0.6 --max-tokens 8192 --seed 1 --out runs/m.jsonl",
    "rewardkit eval test.parquet --responses validation_dumps/100.jsonl --json",
    "rewardkit eval --compare runs/before.jsonl runs/after.jsonl",
)

#: Of pass@k and maj@k, the k that the table shows; the JSON has all.
SHOWN = 8


class Api(str, Enum):
    """What kind of request is sent."""

    chat = "chat"
    completions = "completions"


def command(
    parquet: Annotated[Path | None, typer.Argument(help="The verl rows to answer.")] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Of the server: http://HOST:PORT/v1.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="As the server calls it.")] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Responses to each question.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="The jsonl to write: responses with their scores.")
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
    seconds_per_row: Annotated[
        float,
        typer.Option(min=0.01, help="For a scorer of yours: longer for a response is no verdict."),
    ] = 60.0,
    jobs: Jobs = None,
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
    """
    if compare:
        if parquet or responses or base_url:
            raise UsageError("--compare reads two files of results, and nothing else.")
        _compare(*compare, as_json=as_json)
        return
    if parquet is None:
        raise UsageError("name the parquet with the questions, or two files with --compare.")
    from rewardkit.evaluate.run import Judging, evaluate_responses
    from rewardkit.parallel import cores

    judging = Judging(scorer, scorer_options(settings), seconds_per_row, jobs or cores())
    if responses:
        if base_url:
            raise UsageError("--responses and --base-url exclude each other.")
        report = evaluate_responses(parquet, responses, out, judging, overwrite=overwrite)
    elif base_url and model and out:
        from rewardkit.evaluate.generate import Generation
        from rewardkit.evaluate.sampling import Sampling
        from rewardkit.evaluate.server import Server

        sampling = Sampling(
            api.value,
            temperature,
            top_p,
            top_k,
            max_tokens,
            tuple(stop or ()),
            seed,
            _json_object(extra_body),
        )
        server = Server(base_url, api.value, _key(api_key_env), request_seconds)
        generation = Generation(server, model, sampling, n, per_request, concurrency, tries)
        report = _generated(parquet, generation, out, judging, overwrite=overwrite)
    else:
        raise UsageError("give --base-url, --model and --out to generate, or --responses FILE.")
    _warn_of(report)
    if as_json:
        print_json(report.summary())
    else:
        _print(report)


def _json_object(text: str | None) -> Mapping[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError as error:
        raise UsageError(f"--extra-body: not JSON ({error}).") from error
    if not isinstance(value, dict):
        raise UsageError('--extra-body: write a JSON object, as {"min_p": 0.05}.')
    return value


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


def _generated(
    parquet: Path, generation: Generation, out: Path, judging: Judging, *, overwrite: bool
) -> Report:
    from rewardkit.evaluate.run import evaluate

    if generation.n > 1 and generation.sampling.temperature == 0:
        warn("temperature 0 is greedy: more than one response to a question says nothing new.")
    try:
        with _progress(f"asking {generation.model[:40]}") as (start, advance):
            return evaluate(
                parquet,
                generation,
                out,
                judging,
                overwrite=overwrite,
                start=start,
                progress=advance,
            )
    except (KeyboardInterrupt, SystemExit):
        warn(f"{out}: interrupted; the same command goes on.")
        raise


@contextmanager
def _progress(
    what: str,
) -> Iterator[tuple[Callable[[int, int], object], Callable[[int, int], object]]]:
    """Responses, tokens a second and time left on stderr, if it is a terminal."""
    if not sys.stderr.isatty():
        yield (lambda _have, _all: None), (lambda _responses, _tokens: None)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    began, tokens = monotonic(), 0
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=Console(stderr=True), transient=True, speed_estimate_period=300
    ) as bar:
        task = bar.add_task(printable(what), total=None, speed="")

        def start(have: int, wanted: int) -> None:
            bar.update(task, total=wanted, completed=have)

        def advance(responses: int, more: int) -> None:
            nonlocal tokens
            tokens += more
            seconds = max(monotonic() - began, 1e-9)
            bar.update(task, advance=responses, speed=f"{tokens / seconds:,.0f} tokens/s")

        yield start, advance


def _warn_of(report: Report) -> None:
    """What the figures leave out, or count as wrong for another reason than the answer."""
    total, rows = report.figures.total, report.rows
    if report.placed and report.placed.unread:
        for row in report.placed.examples[:3]:
            warn(f"{row.where}: not used: {row.reason}")
        warn(f"{report.placed.unread:,} records were not used.")
    if report.unanswered:
        warn(f"{report.unanswered:,} of {rows:,} questions have no response: in no figure.")
    if refused := total.finishes["refused"]:
        warn(f"{refused:,} responses were refused by the server; they count as wrong.")
    if silent := total.statuses["no_verdict"]:
        warn(f"{silent:,} responses have no verdict; they count as wrong, 'reason' says why.")


def _print(report: Report) -> None:
    summary = report.summary()
    total = summary["total"]
    sources = {name or "(none)": each for name, each in summary["by_data_source"].items()}
    rows = [_row(name, each) for name, each in sources.items()]
    if len(rows) > 1:
        rows.append(_row("all", total))
    for kind in ("by_subject", "by_level"):
        for source, named in summary[kind].items():
            if len(named) > 1:
                rows += [_row(f"{source}: {name}", each) for name, each in named.items()]
    columns = ("", "questions", "n", "mean@n", "95 %", "truncated", "no answer", "mean tokens")
    print_table(columns, rows, title=f"{report.parquet}: {total['responses']:,} responses")
    if total["n"][0] > 1:
        _print_at_k({**sources, **({"all": total} if len(sources) > 1 else {})})
    typer.echo("95 %: over questions (Korn and Graubard); truncated: finish_reason is length.")


def _row(name: str, group: Mapping[str, Any]) -> tuple[object, ...]:
    low, high = group["mean"]["interval"]
    least, most = group["n"]
    lengths = group["tokens"]
    mean = f"{lengths['mean']:,.0f}" if lengths["known"] else "unknown"
    unknown = group["finish_reason_unknown"] == group["responses"]
    return (
        name,
        f"{group['questions']:,}",
        str(least) if least == most else f"{least} to {most}",
        f"{group['mean']['value']:.1%}",
        f"{low:.1%} to {high:.1%}",
        "unknown" if unknown else as_share(group["truncated"]["n"], group["responses"]),
        as_share(group["no_answer"]["n"], group["responses"]),
        mean,
    )


def _print_at_k(groups: Mapping[str, Mapping[str, Any]]) -> None:
    """pass@k and maj@k for some k, and verl's best@N, each kind in a table of its own."""
    least = min(group["n"][0] for group in groups.values())
    shown = sorted({1 << i for i in range(SHOWN - 1) if 1 << i < least} | {least})
    columns = ("", *(f"k = {k}" for k in shown))
    titles = {
        "pass@k": "pass@k, unbiased (Chen et al. 2021)",
        "maj@k": "maj@k: ties are shared, no answer is no vote",
        "verl_best@N": "verl's best@N: with replacement, biased low",
    }
    for figure, title in titles.items():
        rows = [
            (name, *(_at(group[figure].get(str(k))) for k in shown))
            for name, group in groups.items()
        ]
        print_table(columns, rows, title=title)


def _at(figure: Any) -> str:
    if figure is None:
        return ""
    if isinstance(figure, float):
        return f"{figure:.1%}"
    low, high = figure["interval"]
    return f"{figure['value']:.1%} ({low:.1%} to {high:.1%})"


def _compare(a: Path, b: Path, *, as_json: bool) -> None:
    from rewardkit.evaluate.compare import compare

    found = compare(a, b)
    _warn_of_sides(found)
    if as_json:
        print_json(found.summary())
        return
    rows = []
    for name, (mean_a, mean_b) in found.means.items():
        if name and len(found.means) == 2:
            continue  # the one data source is all
        pair = found.differences[name]
        low, high = (100 * end for end in pair.interval or (0.0, 0.0))
        interval = f"{low:+.1f} to {high:+.1f}" if pair.interval else "unknown"
        rows.append(
            (
                name or "all",
                f"{pair.questions:,}",
                f"{mean_a:.1%}",
                f"{mean_b:.1%}",
                f"{100 * pair.difference:+.1f}",
                interval,
                f"{pair.p:.3g}",
            )
        )
    title = f"A {found.a.path}, B {found.b.path}: paired by question"
    print_table(("", "questions", "A", "B", "B - A, points", "95 %", "p"), rows, title=title)
    typer.echo("mean@n; interval and p: Student's paired t over questions.")


def _warn_of_sides(found: Comparison) -> None:
    only_a, only_b = found.only()
    if only_a or only_b:
        warn(f"{only_a:,} questions only A has, {only_b:,} only B: in no figure.")
    if found.a.n != found.b.n:
        warn(f"A has {_times(found.a.n)} responses to a question, B {_times(found.b.n)}.")
    for letter, side in (("A", found.a), ("B", found.b)):
        if len(side.keys) > 1:
            warn(f"{letter}: {len(side.keys):,} models or samplings in one file.")


def _times(n: tuple[int, int]) -> str:
    return str(n[0]) if n[0] == n[1] else f"{n[0]} to {n[1]}"
