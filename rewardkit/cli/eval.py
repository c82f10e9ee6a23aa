"""`rewardkit eval`: `run`, `responses` and `compare`."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import (
    activity,
    print_json,
    print_table,
    print_wrapped,
    prints_to_stderr,
    progress,
    progress_bar,
    warn,
    warns_if_interrupted,
)
from rewardkit.cli.shared.help import PanelGroup
from rewardkit.cli.shared.merge import MERGE_EXAMPLES, merge
from rewardkit.cli.shared.options import argument, bundled, complete_sets, examples, option
from rewardkit.cli.shared.user_code import require_sets
from rewardkit.errors import UsageError
from rewardkit.table import Table
from rewardkit.text import count_of, printable

if TYPE_CHECKING:
    from rewardkit.evaluate.evaluation import EvaluationReport
    from rewardkit.evaluate.generate import ProgressCallbacks
    from rewardkit.evaluate.runs import Comparison
    from rewardkit.evaluate.suite import SuiteMember

RUN_EXAMPLES = (
    "rewardkit eval run test.parquet --base-url http://127.0.0.1:8000/v1 --model M -n 32 \\",
    "    --out m.jsonl",
    "rewardkit eval run test.parquet --base-url https://api.example.com/v1 \\",
    "    --api-key-env EXAMPLE_KEY --model M -n 4 --temperature 0.6 --seed 1 --out runs/m.jsonl",
    "rewardkit eval run test.parquet --base-url http://127.0.0.1:8000/v1 --model M -n 64 \\",
    "    --out m.jsonl --resume",
    "rewardkit eval run --suite aime2024:32,aime2025:32,math-500:4,gsm8k --base-url URL \\",
    "    --model M --out runs/m",
)
RESPONSES_EXAMPLES = (
    "rewardkit eval responses test.parquet validation_dumps/100.jsonl --json",
    "rewardkit eval responses test.parquet predictions/*.jsonl --out runs/m.jsonl",
)
COMPARE_EXAMPLES = (
    "rewardkit eval compare runs/before.jsonl runs/after.jsonl",
    "rewardkit eval compare base=runs/a.jsonl tuned=runs/b.jsonl --metric pass@8",
    "rewardkit eval compare runs/* --html board.html",
)

#: What the modes of `rewardkit eval` in 0.1 are called now, by the option that chose one.
OLD_MODES = {
    "--responses": "is now `rewardkit eval responses PARQUET FILES`",
    "--compare": "is now `rewardkit eval compare A B`",
    "--watch": "is gone: docs/eval.md has a loop that replaces it",
}


class EvalGroup(PanelGroup):
    """`rewardkit eval`, which was one command in 0.1."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the name of a command; a call as in 0.1 is an error."""
        first = args[0] if args else ""
        is_old = first.endswith(".parquet") or (first[:1] == "-" and first not in ("-h", "--help"))
        if is_old and not ctx.resilient_parsing:
            mode = next((old for old in OLD_MODES if old in args), "")
            now = OLD_MODES.get(mode, "is now `rewardkit eval run`")
            raise UsageError(f"`{f'rewardkit eval {mode}'.strip()}` {now}.")
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=EvalGroup,
    help="Evaluate a model with the reward it was trained on.",
    no_args_is_help=True,
    epilog=examples(*RUN_EXAMPLES[:2], RESPONSES_EXAMPLES[0], COMPARE_EXAMPLES[0]),
    rich_markup_mode=None,
)


def run(
    ctx: typer.Context,
    base_url: Annotated[str, option("Base URL of the server: http://HOST:PORT/v1.", metavar="URL")],
    model: Annotated[str, option("Model name sent to the server.")],
    out: Annotated[Path, option("jsonl file for the scored responses; a folder with --suite.")],
    parquet: Annotated[
        Path | None, argument("verl parquet with the questions; or name sets with --suite.")
    ] = None,
    suite: Annotated[
        str | None,
        option(
            "Comma-separated sets instead of a parquet: gsm8k, aime2024:32 (with its own n) or "
            "my.parquet. Missing sets are prepared.",
            metavar="NAMES",
            autocompletion=complete_sets,
        ),
    ] = None,
    suite_dir: Annotated[
        Path | None, option("Folder of prepared sets; the default is ~/.cache/rewardkit/suite.")
    ] = None,
    hub: opt.Hub = "huggingface",
    n: Annotated[int, option("Responses per question.", "-n", min=1)] = 1,
    api: Annotated[
        Literal["chat", "completions"],
        option("Endpoint; completions joins the messages' text without a chat template."),
    ] = "chat",
    temperature: Annotated[
        float | None, option("Sampling temperature; 0 is greedy.", min=0.0)
    ] = None,
    top_p: Annotated[float | None, option("Nucleus sampling mass.", min=0.0, max=1.0)] = None,
    top_k: Annotated[
        int | None, option("Sample from the k most likely tokens; not every server has it.", min=-1)
    ] = None,
    max_tokens: Annotated[int | None, option("Maximum tokens per response.", min=1)] = None,
    stop: Annotated[list[str] | None, option("Text that ends a response. Repeatable.")] = None,
    seed: Annotated[
        int | None, option("Random seed; the seed of each request is derived from it.")
    ] = None,
    extra_body: Annotated[
        str | None, option("Additional fields of each request.", metavar="JSON")
    ] = None,
    concurrency: Annotated[
        int, option("Maximum number of concurrent requests.", min=1, max=4096)
    ] = 256,
    request_seconds: Annotated[float, option("Timeout per request, in seconds.", min=0.1)] = 1800.0,
    tries: Annotated[
        int, option("Attempts per request; 9 attempts take about two minutes.", min=1)
    ] = 9,
    api_key_env: Annotated[
        str | None, option("Environment variable that holds the API key.", metavar="NAME")
    ] = None,
    scorer: opt.ScorerName = "auto",
    scoring: opt.ScorerOptions = opt.NO_OPTIONS,
    jobs: opt.Jobs = None,
    resume: Annotated[
        bool,
        option(
            "Keep the responses of a finished --out; request what a larger -n adds.", "--resume"
        ),
    ] = False,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Generate responses with a model server and score them.

    Any OpenAI-compatible server works; the pictures of rows are sent as data URLs. Responses are
    written as they arrive: run the same command again to resume an interrupted evaluation, or with
    --resume and a larger -n to add responses to a finished one. The table has mean@n, pass@k and
    maj@k with intervals over questions; the JSON has every k, every subject and every level.
    Compare runs with `rewardkit eval compare`.
    """
    from rewardkit.evaluate.evaluation import evaluate
    from rewardkit.evaluate.generate import GenerationConfig, Sampling
    from rewardkit.evaluate.suite import evaluate_suite
    from rewardkit.model_client.client import Server
    from rewardkit.parallel import cores

    if resume and overwrite:
        raise UsageError("--resume keeps the responses of --out, --overwrite discards them.")
    opt.require_companion(ctx, "--suite", suite is not None, "suite_dir", "hub")
    if (parquet is None) == (suite is None):
        raise UsageError("name either a parquet with questions, or sets with --suite.")
    jobs = jobs or cores()
    extra = _json_object(extra_body)
    sampling = Sampling(
        api,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        max_tokens=max_tokens,
        stop=tuple(stop or ()),
        seed=seed,
        extra=extra,
    )
    server = Server(base_url, api, key=_api_key(api_key_env), timeout_seconds=request_seconds)
    generation = GenerationConfig(
        server, model, sampling, n=n, concurrency=concurrency, tries=tries
    )
    if temperature == 0 and (n > 1 or re.search(r":(?!1\b)\d", suite or "")):
        warn("temperature 0 is greedy: all responses to a question will be the same.")
    load = scoring.load_seconds
    sets = _prepared_sets(suite, suite_dir, n, hub, load, jobs) if suite is not None else []
    message = f"{out}: interrupted; run the same command again to resume."
    with warns_if_interrupted(message), generation_progress() as callbacks, prints_to_stderr():
        options: dict[str, Any] = {
            "plan": scoring.plan(scorer),
            "overwrite": overwrite,
            "callbacks": callbacks,
            "jobs": jobs,
        }
        if parquet:
            report = evaluate(parquet, generation, out, resume=resume, **options)
        else:
            reports = evaluate_suite(sets, generation, out, **options)
    if parquet:
        print_report(report, as_json=as_json)
    else:
        print_suite(reports, out, as_json=as_json)


app.command("run", epilog=examples(*RUN_EXAMPLES))(bundled(run))
app.command("merge", epilog=MERGE_EXAMPLES)(merge)


def responses(
    parquet: Annotated[Path, argument("verl parquet with the questions.")],
    files: Annotated[
        list[str],
        argument(
            "Response files: verl's dumps, results of `eval run`, output of a batch API, or "
            "predictions of AISBench."
        ),
    ],
    out: Annotated[Path | None, option("jsonl file for the scored responses.")] = None,
    scorer: opt.ScorerName = "auto",
    scoring: opt.ScorerOptions = opt.NO_OPTIONS,
    jobs: opt.Jobs = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Score responses that already exist.

    Responses are matched to the questions of the parquet; nothing is generated.
    """
    from rewardkit.evaluate.evaluation import evaluate_responses
    from rewardkit.parallel import cores

    plan, jobs = scoring.plan(scorer), jobs or cores()
    with prints_to_stderr(), activity(f"judging responses to {parquet}"):
        report = evaluate_responses(parquet, files, out, plan, jobs=jobs, overwrite=overwrite)
    print_report(report, as_json=as_json)


app.command("responses", epilog=examples(*RESPONSES_EXAMPLES))(bundled(responses))


@app.command("compare", epilog=examples(*COMPARE_EXAMPLES))
def compare(
    runs: Annotated[
        list[str],
        argument(
            "Result files of rewardkit eval or score, or folders of them, as written with --suite.",
            metavar="[NAME=]RUN...",
        ),
    ],
    metric: Annotated[str, option("Metric to compare: mean@n, pass@K or maj@K.")] = "mean@n",
    html: opt.HtmlFile = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Compare the results of runs in one table.

    The table has one row per run and one column per data source, with 95 % intervals over
    questions. A star marks the best run of a column, a tilde runs whose difference from it may be
    chance (paired t-test over questions, p of 0.05 or more; not corrected for the number of runs).
    Of two runs it also prints the difference, question by question.
    """
    from rewardkit.evaluate.runs import compare_runs, parse_runs, read_run
    from rewardkit.output import require_suffix

    files_by_run = parse_runs(runs)
    require_suffix("--html", html, ".html")
    opt.require_html_path(html, overwrite=overwrite)
    results = []
    with progress("reading results") as advance:
        for name, files in files_by_run:
            results.append(read_run(name, files))
            advance(1)
    comparison = compare_runs(results, metric)
    if as_json:
        print_json(comparison.summary())
    else:
        print_comparison(comparison)
    for note in comparison.notes:
        warn(note)
    if html:
        from rewardkit.pages.html import write_html

        write_html(comparison.page(), html, overwrite=overwrite)


def _prepared_sets(
    suite: str, folder: Path | None, n: int, hub: opt.HubName, load_seconds: float, jobs: int
) -> list[SuiteMember]:
    """Return the sets of a suite; missing ones are prepared first."""
    from rewardkit.evaluate.suite import names_in_suite, parse_suite, prepare_member
    from rewardkit.preprocess.load import default_suite_folder

    require_sets(names_in_suite(suite), load_seconds)
    sets = parse_suite(suite, folder or default_suite_folder(), n)
    for member in sets:
        with progress(f"preparing {member.name}") as advance:
            if prepare_member(member, hub, jobs, advance):
                warn(f"{member.name}: prepared {member.parquet}")
    return sets


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


#: Columns of the table of pass@k and maj@k; the JSON has every k.
MAX_K_COLUMNS = 8

COLUMNS = ("", "questions", "n", "mean@n", "95 %", "truncated", "no answer", "mean tokens")
NOTE = "95 %: interval over questions (Korn and Graubard); truncated: finish_reason is length."


@contextmanager
def generation_progress() -> Iterator[ProgressCallbacks]:
    """Show responses, tokens per second and time left on stderr, if it is a terminal."""
    from rewardkit.evaluate.generate import ProgressCallbacks

    if not sys.stderr.isatty():
        yield ProgressCallbacks()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    speed = TextColumn("{task.fields[speed]}", markup=False)
    columns = BarColumn(bar_width=20), MofNCompleteColumn(), speed, TimeRemainingColumn(), "left;"
    is_terminal = sys.stdout.isatty()  # otherwise results would go to stderr
    with progress_bar(*columns, speed_estimate_period=300, redirect_stdout=is_terminal) as bar:

        def start(name: str, finished: int, total: int) -> None:
            for task in bar.task_ids:
                bar.remove_task(task)
            title = f"generating {printable(name)[:40]}"
            bar.add_task(title, total=total, completed=finished, speed="", tokens=0)

        def advance(new_tokens: int) -> None:
            (task,) = bar.tasks
            tokens = task.fields["tokens"] + new_tokens
            text = f"{tokens / max(task.elapsed or 0.0, 1e-9):,.0f} tokens/s"
            bar.update(task.id, advance=1, tokens=tokens, speed=text)

        yield ProgressCallbacks(start, advance)


def print_report(report: EvaluationReport, *, as_json: bool) -> None:
    """Print the metrics of a report, by data source, subject, level and k."""
    for line in report.warnings():
        warn(line)
    summary = report.summary()
    if as_json:
        print_json(summary)
    else:
        total = summary["total"]
        groups = {name or "(none)": each for name, each in summary["by_data_source"].items()}
        if len(groups) > 1:
            groups["all"] = total
        rows = [_row(name, each) for name, each in groups.items()]
        for details in (summary["by_subject"], summary["by_level"]):
            for source, named in details.items():
                if len(named) > 1:
                    rows += [_row(f"{source}: {name}", each) for name, each in named.items()]
        print_table(Table(COLUMNS, rows, f"{report.parquet}: {total['responses']:,} responses"))
        if total["n"][0] > 1:
            _print_at_k(groups)
        print_wrapped(NOTE)
    _require_a_gold(report)


def print_suite(reports: Mapping[str, EvaluationReport], out: Path, *, as_json: bool) -> None:
    """Print the metrics of several sets, one line per data source."""
    for line in (line for report in reports.values() for line in report.warnings()):
        warn(line)
    summaries = {name: report.summary() for name, report in reports.items()}
    if as_json:
        print_json(summaries)
    else:
        rows = [
            _row(f"{name}: {source or '(none)'}", group)
            for name, summary in summaries.items()
            for source, group in summary["by_data_source"].items()
        ]
        print_table(Table(COLUMNS, rows, f"{out}: {len(reports)} sets"))
        print_wrapped(NOTE)
        typer.echo("For pass@k and maj@k use --json, or rewardkit eval compare --metric pass@8.")
    _require_a_gold(*reports.values())


def _require_a_gold(*reports: EvaluationReport) -> None:
    totals = [report.metrics.total for report in reports]
    if any(total.bad_golds == total.responses for total in totals):
        raise typer.Exit(1)


def _row(name: str, group: Mapping[str, Any]) -> tuple[object, ...]:
    low, high = group["mean"]["interval"]
    least, most = group["n"]
    lengths, responses = group["tokens"], group["responses"]
    is_unknown = group["finish_reason_unknown"] == responses
    return (
        name,
        f"{group['questions']:,}",
        str(least) if least == most else f"{least} to {most}",
        f"{group['mean']['value']:.1%}",
        f"{low:.1%} to {high:.1%}",
        "unknown" if is_unknown else count_of(group["truncated"]["n"], responses),
        count_of(group["no_answer"]["n"], responses),
        f"{lengths['mean']:,.0f}" if lengths["known"] else "unknown",
    )


def _print_at_k(groups: Mapping[str, Mapping[str, Any]]) -> None:
    """Print one table each for pass@k and maj@k."""
    least = min(group["n"][0] for group in groups.values())
    shown = sorted({1 << i for i in range(MAX_K_COLUMNS - 1) if 1 << i < least} | {least})
    columns = ("", *(f"k = {k}" for k in shown))
    titles = {
        "pass@k": "pass@k, unbiased (Chen et al. 2021)",
        "maj@k": "maj@k: ties are shared; responses without an answer do not vote",
    }
    for metric, title in titles.items():
        rows = [
            (name, *(_value(group[metric].get(str(k))) for k in shown))
            for name, group in groups.items()
        ]
        print_table(Table(columns, rows, title))


def _value(metric: Mapping[str, Any] | None) -> str:
    if not metric:
        return ""
    low, high = metric["interval"]
    return f"{metric['value']:.1%} ({low:.1%} to {high:.1%})"


def print_comparison(comparison: Comparison) -> None:
    """Print runs in one table, and the difference of two, paired by question."""
    from rewardkit.evaluate.runs import LEGEND

    print_table(comparison.table())
    print_wrapped(f"in brackets: 95 % interval over questions; {LEGEND}")
    differences = dict(comparison.differences)
    if not differences:
        return
    if len(differences) == 2:  # the one data source is all
        differences = {"all": differences["all"]}
    rows = []
    for name, pair in differences.items():
        low, high = pair.interval or (0.0, 0.0)
        interval = f"{100 * low:+.1f} to {100 * high:+.1f}" if pair.interval else "unknown"
        points = f"{100 * pair.difference:+.1f}"
        rows.append((name, f"{pair.questions:,}", points, interval, f"{pair.p:.3g}"))
    typer.echo()
    title = "second run minus first, paired by question"
    print_table(Table(("", "questions", "points", "95 %", "p"), rows, title))
    typer.echo("interval and p-value: Student's paired t-test over questions.")
