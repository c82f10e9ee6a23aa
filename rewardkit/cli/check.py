"""`rewardkit check`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewardkit.cli.shared.check_files import (
    print_aspects,
    print_files,
    require_one_file,
    warn_of_other_files,
)
from rewardkit.cli.shared.check_overlaps import print_clusters, print_overlaps
from rewardkit.cli.shared.completion import complete_against, complete_scorers
from rewardkit.cli.shared.console import (
    activity,
    echo,
    print_json,
    print_table,
    print_wrapped,
    prints_to_stderr,
    progress,
    show_import,
    warn,
)
from rewardkit.cli.shared.eval_sets import names_of_sets, read_sets
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.html_page import require_html_path
from rewardkit.cli.shared.options import (
    HtmlFile,
    Hub,
    HubName,
    Jobs,
    JsonFlag,
    Language,
    LanguageCode,
    LoadSeconds,
    Overwrite,
    RightScore,
    SecondsPerRow,
    Settings,
    require_companion,
    require_unused,
    scorer_options,
)
from rewardkit.cli.shared.recipe_check import check_recipe, is_recipe
from rewardkit.cli.shared.user_code import open_scorer_with_status
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.preprocess.check import OptionalChecks
    from rewardkit.preprocess.check_report import CheckReport
    from rewardkit.preprocess.contamination.all_eval import EvalSets
    from rewardkit.preprocess.prompt_lengths import PromptLengths

EXAMPLES = examples(
    "rewardkit check train.parquet",
    "rewardkit check train.parquet --scorer gsm8k --set method=robust",
    "rewardkit check train.parquet --drop-bad clean.parquet",
    "rewardkit check train.parquet --against math-500,aime --drop-overlap clean.parquet",
    "rewardkit check train.parquet --against aime2024=/data/aime,val.parquet --near --html a.html",
    "rewardkit check train.parquet --against all-eval=/data/benchmarks --html report.html",
    "rewardkit check train.parquet --tokenizer /models/Qwen3-8B --max-prompt-length 1024",
    "rewardkit check data/ val.parquet",
    "rewardkit check my.yaml --strict",
)

#: The parameters that a recipe uses.
RECIPE_PARAMETERS = frozenset(
    {"files", "settings", "load_seconds", "strict", "verl_version", "lang"}
)


def command(
    ctx: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="verl parquets from any source, folders of them, or one recipe.",
        ),
    ],
    scorer: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_scorers, help="Scorer to use instead of the scorer of each row."
        ),
    ] = None,
    settings: Settings = None,
    right_score: RightScore = None,
    seconds_per_row: SecondsPerRow = 60.0,
    load_seconds: LoadSeconds = 60.0,
    allow_duplicates: Annotated[
        bool, typer.Option("--allow-duplicates", help="Accept repeated prompts.")
    ] = False,
    drop_bad: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="Write the rows without findings to this parquet, the others to OUT.dropped.jsonl.",
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SET,...",
            autocompletion=complete_against,
            help="Evaluation sets to search for in the rows: names such as aime2024, NAME=PATH, verl "
            "parquets, or all-eval for all of them; all-eval=FOLDER reads them from a folder.",
        ),
    ] = None,
    threshold: Annotated[
        float,
        typer.Option(
            min=0.05,
            max=1.0,
            help="Share of an evaluation item that a row must contain to count as overlap.",
        ),
    ] = 0.5,
    drop_overlap: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT", help="Write the rows without evaluation items to this parquet."
        ),
    ] = None,
    hub: Hub = HubName.huggingface,
    near: Annotated[bool, typer.Option("--near", help="Also list nearly equal questions.")] = False,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Count prompt lengths with this tokenizer: a folder, or a name."),
    ] = None,
    max_prompt_length: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum prompt length in tokens (data.max_prompt_length); longer prompts are findings.",
        ),
    ] = None,
    jobs: Jobs = None,
    html: HtmlFile = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="For a recipe: exit with 1 on warnings too.")
    ] = False,
    verl_version: Annotated[
        str | None,
        typer.Option(
            help="For a recipe: verl version to check for, or main; the default is the installed one."
        ),
    ] = None,
    lang: Language = LanguageCode.en,  # noqa: ARG001 - its callback sets the language
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Check parquets before training, or a recipe before launch.

    A parquet is checked for its schema, duplicates, contamination and golds. The gold self-check
    scores each row's solution and its gold in the form that the prompt asks for (both must be
    correct) and another answer (must be wrong). The exit code is 1 if there are findings, also
    with --drop-bad: the input has findings, OUT has none. Nearly equal questions are listed and
    are not findings.

    Several files, or a folder with all parquets below it, are each checked alone; then it is checked
    whether verl can load them as one list, and how many rows have a prompt of another file, which are
    notes and no findings. The verdict of all is the last line. With --json they are an object with `ok`, `files` and
    `concatenation`. The exit code is 4 if a file cannot be read.

    A recipe (a .yaml file or a built-in name) is checked without starting it: verl's own
    validation, the rules, the files and the reward. --set then sets a field of the recipe.
    """
    if is_recipe(files[0]) and len(files) == 1:
        require_unused(ctx, "a recipe", RECIPE_PARAMETERS)
        name = str(files[0])
        check_recipe(name, settings, verl_version, load_seconds, strict=strict, as_json=as_json)
        return
    from rewardkit.preprocess.check_files import check_files, parquet_files
    from rewardkit.preprocess.dropped_rows import dropped_path

    _require_companions(ctx, scorer, against, tokenizer)
    out = drop_bad or drop_overlap
    has_several = len(files) > 1 or files[0].is_dir()
    if has_several:
        require_one_file({"--drop-bad": drop_bad, "--drop-overlap": drop_overlap, "--html": html})
    options, names = scorer_options(settings), names_of_sets(against, load_seconds)
    inputs = [*files, *(Path(name.partition("=")[2] or name) for name in names)]
    outs = {"out": out, "dropped": dropped_path(out) if out else None}
    require_html_path(html, overwrite=overwrite, inputs=inputs, scorer=scorer, **outs)
    parquets, others = parquet_files(files)
    warn_of_other_files(others)
    name = scorer or "auto"
    judges = _judging(name, options, seconds_per_row, load_seconds, jobs)
    with prints_to_stderr(), judges as judging:
        sets = read_sets(names, hub.value, load_seconds) if names else None
        extras = _optional_checks(sets, threshold, near, tokenizer, max_prompt_length)
        outputs: dict[str, Any] = {
            "drop_bad": drop_bad,
            "drop_overlap": drop_overlap,
            "overwrite": overwrite,
        }
        outputs |= {"allow_duplicates": allow_duplicates, "right_score": right_score}
        judging["scorer_name"] = " ".join([name, *(settings or ())])
        check_file = partial(_check_file, extras=extras, options={**judging, **outputs})
        reports = check_files(parquets, check_file) if has_several else None
        report = None if reports else check_file(parquets[0])
    if reports:
        print_files(reports, partial(_print_one, near=near), _as_object, as_json=as_json)
        raise typer.Exit(reports.exit_code)
    if report:
        _print_result(report, out, html, near=near, as_json=as_json, overwrite=overwrite)
        raise typer.Exit(report.exit_code)


def _print_result(
    report: CheckReport,
    out: Path | None,
    html: Path | None,
    *,
    near: bool,
    as_json: bool,
    overwrite: bool,
) -> None:
    """Write the page and print the report of the only file."""
    if html:
        _write_html(report, html, overwrite=overwrite)
    if as_json:
        print_json(_as_object(report))
    else:
        _print_one(report, near=near)
    if out and report.rows:
        _print_output(report, out, as_json=as_json)


def _check_file(
    file: Path,
    earlier_prompts: dict[bytes, str] | None = None,
    *,
    extras: OptionalChecks,
    options: dict[str, Any],
) -> CheckReport:
    from rewardkit.preprocess.check import check

    extras = replace(extras, earlier_prompts=earlier_prompts)
    with progress(f"checking {file}") as advance:
        return check(file, extras=extras, progress=advance, **options)


@contextmanager
def _judging(
    name: str, options: dict[str, Any], seconds: float, load_seconds: float, jobs: int | None
) -> Iterator[dict[str, Any]]:
    """Yield the arguments of `check` that score rows: `scorer`, `options`, `respond`, `jobs`.

    A custom scorer runs in its own process, as in `score`.
    """
    from rewardkit.parallel import cores
    from rewardkit.scorers.isolated import is_built_in
    from rewardkit.scorers.load import load_scorer
    from rewardkit.scorers.options import asks_server

    jobs = jobs or cores()
    if name == "auto":
        load_scorer(name, **options)  # a wrong option is reported before anything is downloaded
        yield {"options": options, "jobs": jobs}
        return
    if is_built_in(name):
        scorer = load_scorer(name, **options)
        if asks_server(scorer):
            warn(f"scorer {name!r} asks a model server: golds and solutions are not scored.")
        yield {"scorer": scorer, "jobs": jobs}
        return
    with open_scorer_with_status(name, options, seconds, load_seconds) as judge:
        yield {"scorer": judge, "respond": _respond(name, options, seconds, load_seconds)}


def _respond(
    name: str, options: dict[str, Any], seconds: float, load_seconds: float
) -> Callable[[str], str] | None:
    """Return the `respond` function of a custom scorer, if its module has one."""
    from rewardkit.audit.scorer_process import ScorerProcess
    from rewardkit.registry import is_path

    if is_path(name) and b"respond" not in Path(name.partition(":")[0]).read_bytes():
        return None  # importing the module again may take long
    process = ScorerProcess(name, options, seconds, load_seconds)
    with show_import(name), suppress(UsageError), process:
        return process.form
    return None


def _require_companions(
    ctx: typer.Context, scorer: str | None, against: list[str] | None, tokenizer: str | None
) -> None:
    """Raise `UsageError` if an option was set without the one that it depends on."""
    for option in ("strict", "verl_version"):
        require_companion(ctx, option, "a recipe", is_set=False)
    for option in ("drop_overlap", "threshold", "hub"):
        require_companion(ctx, option, "--against", is_set=bool(against))
    require_companion(ctx, "right_score", "--scorer", is_set=scorer is not None)
    require_companion(ctx, "max_prompt_length", "--tokenizer", is_set=bool(tokenizer))


def _print_output(report: CheckReport, out: Path, *, as_json: bool) -> None:
    if not report.kept:
        warn(f"error: all rows have findings: {out} is not written.")
        return
    if report.counts["conflicting_gold"]:
        warn(
            "of rows with one prompt and different golds the first is kept, although its gold may be "
            "the wrong one: prep --dedup drops all of them."
        )
    others = f"; the other rows are in {out}.dropped.jsonl" if report.kept < report.rows else ""
    echo(f"{out}: {report.kept:,} rows{others}", err=as_json)


def _optional_checks(
    sets: EvalSets | None,
    threshold: float,
    near: bool,
    tokenizer: str | None,
    max_prompt_length: int | None,
) -> OptionalChecks:
    from rewardkit.preprocess.check import OptionalChecks
    from rewardkit.preprocess.contamination.overlap import index_items
    from rewardkit.preprocess.prompt_lengths import token_counter

    with activity(f"loading the tokenizer {tokenizer}") if tokenizer else nullcontext():
        count_tokens = token_counter(tokenizer) if tokenizer else None
    return OptionalChecks(
        against=index_items(sets.items) if sets else None,
        missing_sets=sets.missing if sets else {},
        threshold=threshold,
        near_duplicates=near,
        count_tokens=count_tokens,
        max_tokens=max_prompt_length,
    )


def _write_html(report: CheckReport, out: Path, *, overwrite: bool) -> None:
    from rewardkit.pages.html import write_html
    from rewardkit.preprocess.report_pages import check_page

    write_html(check_page(report), out, overwrite=overwrite)


def _as_object(report: CheckReport) -> dict[str, Any]:
    return {"ok": report.ok, **vars(report), "lengths": report.lengths.to_dict()}


def _print_one(report: CheckReport, *, near: bool, with_aspects: bool = True) -> None:
    _print_findings(report)
    if with_aspects:
        print_aspects(report)
    print_overlaps(report)
    if near and not report.clusters:
        echo("near-duplicates: none")
    if report.clusters:
        print_clusters(report)
    if report.lengths.counts:
        _print_lengths(report.lengths)


def _print_lengths(lengths: PromptLengths) -> None:
    summary = lengths.summary()
    over = summary.pop("over", None)
    marks = ", ".join(f"{name} {value:,}" for name, value in summary.items())
    echo(f"prompt {lengths.unit}: {marks}")
    if over is not None:
        echo(f"over {lengths.limit:,} {lengths.unit}: {over:.2%} of the rows")


def _print_findings(report: CheckReport) -> None:
    from rewardkit.preprocess.row_checks import RULES

    echo(f"{report.path}: {report.verdict()}.")
    for note in report.stats.doubtful_golds():
        print_wrapped(note)
    if report.right:
        print_wrapped(report.right)
    if report.ok:
        return
    print_table(("where", "rule", "what"), report.example_lines(), wrap={"what"})
    print_table(
        ("rule", "rows", "what to do"),
        (
            (rule, f"{report.counts[rule]:,}", todo)
            for rule, todo in RULES.items()
            if report.counts[rule]
        ),
        wrap={"what to do"},
    )
