"""`rewardkit check`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import (
    activity,
    echo,
    print_json,
    print_table,
    print_wrapped,
    prints_to_stderr,
    progress,
    warn,
)
from rewardkit.cli.shared.launch import print_preflight, read_launch_request, run_preflight
from rewardkit.cli.shared.options import (
    argument,
    complete_against,
    complete_scorers,
    examples,
    option,
)
from rewardkit.cli.shared.user_code import load_cards, require_sets
from rewardkit.errors import UsageError
from rewardkit.table import Table
from rewardkit.text import row_count

if TYPE_CHECKING:
    from rewardkit.checks.check import CheckReport, FilesReport
    from rewardkit.checks.overlap import Overlap
    from rewardkit.checks.row_stats import TokenCounter
    from rewardkit.launch.request import LaunchRequest
    from rewardkit.preprocess.source import Hub

EXAMPLES = examples(
    "rewardkit check train.parquet",
    "rewardkit check train.parquet --scorer gsm8k --set method=robust",
    "rewardkit check train.parquet --drop-bad clean.parquet",
    "rewardkit check train.parquet --against math-500,aime --drop-overlap clean.parquet",
    "rewardkit check train.parquet --against aime2024=/data/aime,val.parquet --html a.html",
    "rewardkit check train.parquet --against all-eval=/data/benchmarks --html report.html",
    "rewardkit check train.parquet --tokenizer /models/Qwen3-8B --max-prompt-length 1024",
    "rewardkit check data/ val.parquet",
    "rewardkit check my.yaml --strict",
)

#: Files that are left out, and pairs of files with common prompts, that are named.
MAX_NAMES = 5

#: Overlaps and near misses that are printed; the page has more.
MAX_EXAMPLES = 3

#: Words of each text that are printed of a near miss.
MAX_WORDS = 8


def command(
    ctx: typer.Context,
    files: Annotated[
        list[Path],
        argument(
            "verl parquets from any source, folders of them, or one recipe.", metavar="FILE..."
        ),
    ],
    scorer: Annotated[
        str | None,
        option("Scorer to use instead of the scorer of each row.", autocompletion=complete_scorers),
    ] = None,
    scoring: opt.ScorerOptions = opt.NO_OPTIONS,
    allow_duplicates: Annotated[
        bool, option("Accept repeated prompts.", "--allow-duplicates")
    ] = False,
    drop_bad: Annotated[
        Path | None,
        option(
            "Write the rows without findings to this parquet, the others to OUT.dropped.jsonl.",
            metavar="OUT",
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        option(
            "Evaluation sets to search for in the rows: names such as aime2024, NAME=PATH with "
            "the path of such a set's rows, verl parquets, or all-eval for all of them; "
            "all-eval=FOLDER reads them from a folder.",
            metavar="SET,...",
            autocompletion=complete_against,
        ),
    ] = None,
    threshold: Annotated[
        float,
        option(
            "Share of an evaluation item that a row must contain to count as overlap.",
            min=0.05,
            max=1.0,
        ),
    ] = 0.5,
    drop_overlap: Annotated[
        Path | None,
        option("Write the rows without evaluation items to this parquet.", metavar="OUT"),
    ] = None,
    hub: opt.Hub = "huggingface",
    tokenizer: Annotated[
        str | None, option("Count prompt lengths with this tokenizer: a folder, or a name.")
    ] = None,
    max_prompt_length: Annotated[
        int | None,
        option(
            "Maximum prompt length in tokens (data.max_prompt_length); longer prompts are findings.",
            min=1,
        ),
    ] = None,
    jobs: opt.Jobs = None,
    html: opt.HtmlFile = None,
    strict: Annotated[
        bool, option("For a recipe: exit with 1 on warnings too.", "--strict")
    ] = False,
    verl_version: Annotated[
        str | None,
        option(
            "For a recipe: verl version to check for, or main; the default is the installed one."
        ),
    ] = None,
    lang: opt.Language = "en",
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
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
    validation, the rules, the files and the reward. --set then sets a field of the recipe. What only
    this machine lacks (devices, verl, the files) is listed as `machine`. The exit code is 1 if the
    recipe has errors, and 0 if only this machine lacks something; train starts in neither case.
    """
    from rewardkit.launch.recipe import built_in

    recipe = str(files[0])
    is_file_of_recipe = files[0].suffix in {".yaml", ".yml"}
    if len(files) == 1 and (is_file_of_recipe or (not files[0].exists() and recipe in built_in())):
        used = {"files", "settings", "load_seconds", "strict", "verl_version", "lang"}
        opt.require_unused(ctx, "a recipe", used)
        request = read_launch_request(recipe, scoring.settings, verl_version=verl_version)
        _check_recipe(request, scoring.load_seconds, strict=strict, lang=lang, as_json=as_json)
    from rewardkit.checks.check import OptionalChecks, check, check_files
    from rewardkit.dropped_rows import dropped_path
    from rewardkit.preprocess.column_guess import parquet_files

    opt.require_companion(ctx, "a recipe", False, "strict", "verl_version")
    opt.require_companion(ctx, "--against", against, "drop_overlap", "threshold", "hub")
    opt.require_companion(ctx, "--scorer", scorer is not None, "right_score")
    opt.require_companion(ctx, "--tokenizer", tokenizer, "max_prompt_length")
    out = drop_bad or drop_overlap
    has_several = len(files) > 1 or files[0].is_dir()
    outputs = {"--drop-bad": drop_bad, "--drop-overlap": drop_overlap, "--html": html}
    for name, path in outputs.items() if has_several else ():
        if path:
            raise UsageError(f"{name} writes the result of one parquet. Give one file, no folder.")
    sets = _names_of_sets(against, scoring.load_seconds)
    inputs = [*files, *(Path(name.partition("=")[2] or name) for name in sets)]
    outs = {"out": out, "dropped": dropped_path(out) if out else None}
    opt.require_html_path(html, overwrite=overwrite, inputs=inputs, scorer=scorer, **outs)
    parquets, others = parquet_files(files)
    _warn_of(others)
    name = scorer or "auto"
    with prints_to_stderr(), _judging(name, scoring, jobs) as judging:
        extras = OptionalChecks(
            **_eval_sets(sets, hub, scoring.load_seconds),
            threshold=threshold,
            count_tokens=_counter(tokenizer),
            max_tokens=max_prompt_length,
        )

        def check_file(file: Path, earlier_prompts: dict[bytes, str] | None = None) -> CheckReport:
            with progress(f"checking {file}") as advance:
                return check(
                    file,
                    extras=replace(extras, earlier_prompts=earlier_prompts),
                    progress=advance,
                    scorer_name=" ".join([name, *(scoring.settings or ())]) if scorer else "",
                    drop_bad=drop_bad,
                    drop_overlap=drop_overlap,
                    overwrite=overwrite,
                    allow_duplicates=allow_duplicates,
                    right_score=scoring.right_score,
                    **judging,
                )

        reports = check_files(parquets, check_file) if has_several else None
        report = None if reports else check_file(parquets[0])
    if reports:
        print_files(reports, lang=lang, as_json=as_json)
        raise typer.Exit(reports.exit_code)
    if report:
        if html:
            from rewardkit.checks.check_page import check_page
            from rewardkit.pages.html import write_html

            write_html(check_page(report), html, overwrite=overwrite)
        if as_json:
            print_json(report_json(report))
        else:
            print_file(report, lang=lang)
        if out:
            _print_output(report, out, as_json=as_json)
        raise typer.Exit(report.exit_code)


def _check_recipe(
    request: LaunchRequest, load_seconds: float, *, strict: bool, lang: str, as_json: bool
) -> NoReturn:
    """Check everything that is known before a launch, and print it."""
    from rewardkit.launch.request import plan_from_request
    from rewardkit.launch.verl.releases import release_notice

    plan = plan_from_request(request, load_seconds)
    if notice := release_notice(request.verl):
        warn(f"verl {request.verl} {notice}")
    preflight = run_preflight(plan, load_seconds)
    is_fatal = preflight.is_fatal(strict=strict, on_this_machine=False)
    if as_json:
        findings = [finding.values() for finding in preflight.findings]
        values = {**vars(preflight), "findings": findings, "notes": plan.notes}
        print_json({"ok": not is_fatal, **values})
    else:
        print_preflight(preflight, err=False, lang=lang)
    raise typer.Exit(int(is_fatal))


def _names_of_sets(against: list[str] | None, load_seconds: float) -> list[str]:
    """Return the names of `--against`, whose plug-ins load within the timeout."""
    names = [name.strip() for text in against or () for name in text.split(",") if name.strip()]
    if against and not names:
        raise UsageError("--against is empty: name an evaluation set.")
    require_sets([name.partition("=")[0] for name in names], load_seconds)
    return names


def _eval_sets(names: list[str], hub: Hub, load_seconds: float) -> dict[str, Any]:
    """Return the arguments of `OptionalChecks` that are the evaluation sets."""
    from rewardkit.checks.overlap import index_items
    from rewardkit.preprocess.eval_sets import names_all, read_eval_sets

    if not names:
        return {}
    broken = load_cards(load_seconds)[1] if any(map(names_all, names)) else {}
    sets = read_eval_sets(names, hub=hub, broken=broken)
    return {"against": index_items(sets.items), "missing_sets": sets.missing}


def _counter(tokenizer: str | None) -> TokenCounter | None:
    from rewardkit.checks.row_stats import token_counter

    if tokenizer is None:
        return None
    with activity(f"loading the tokenizer {tokenizer}"):
        return token_counter(tokenizer)


@contextmanager
def _judging(name: str, scoring: opt.ScorerOptions, jobs: int | None) -> Iterator[dict[str, Any]]:
    """Yield the arguments of `check` that score rows: `scorer`, `options`, `jobs`.

    A custom scorer runs in its own process, as in `score`.
    """
    from rewardkit.parallel import cores
    from rewardkit.scorers.base import spec_of
    from rewardkit.scorers.isolated import is_built_in
    from rewardkit.scorers.load import load_scorer

    jobs, options = jobs or cores(), scoring.of_scorer
    if name == "auto":
        load_scorer(name, **options)  # a wrong option is reported before anything is downloaded
        yield {"options": options, "jobs": jobs}
        return
    if is_built_in(name):
        scorer = load_scorer(name, **options)
        if spec_of(scorer).asks_server:
            warn(f"scorer {name!r} asks a model server: golds and solutions are not scored.")
        yield {"scorer": scorer, "jobs": jobs}
        return
    with scoring.open(name) as judge:
        yield {"scorer": judge}


def _print_output(report: CheckReport, out: Path, *, as_json: bool) -> None:
    if not report.rows:
        return
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


def _warn_of(others: list[Path]) -> None:
    if others:
        more = f" and {len(others) - MAX_NAMES} more" if len(others) > MAX_NAMES else ""
        names = ", ".join(map(str, others[:MAX_NAMES]))
        warn(f"not checked, because they are not parquets: {names}{more}")


def report_json(report: CheckReport) -> dict[str, Any]:
    """Return what --json prints of a file."""
    more = {"notes": report.stats.notes(), "lengths": report.lengths.to_dict()}
    return {"ok": report.ok, **vars(report), **more}


def print_file(report: CheckReport, *, lang: str, with_aspects: bool = True) -> None:
    """Print the findings of a file, what was checked, overlaps and lengths."""
    from rewardkit.checks.check_page import example_table, rule_table
    from rewardkit.glossary.lookup import chinese_rules

    echo(f"{report.path}: {report.verdict()}.")
    for note in filter(None, (*report.stats.notes(), report.right)):
        print_wrapped(note)
    if not report.ok:
        print_table(example_table(report))
        print_table(rule_table(report, chinese_rules()) if lang == "zh" else rule_table(report))
    if with_aspects:
        _print_aspects(report)
    _print_overlaps(report)
    if report.lengths.counts:
        summary = report.lengths.summary()
        over = summary.pop("over", None)
        marks = ", ".join(f"{name} {value:,}" for name, value in summary.items())
        echo(f"prompt {report.lengths.unit}: {marks}")
        if over is not None:
            echo(f"over {report.lengths.limit:,} {report.lengths.unit}: {over:.2%} of the rows")


def print_files(report: FilesReport, *, lang: str, as_json: bool) -> None:
    """Print the report of each file, what they have in common, and last the verdict of all."""
    if as_json:
        errors = [
            {"path": file, "ok": False, "error": text} for file, text in report.unreadable.items()
        ]
        files = [report_json(each) for each in report.reports] + errors
        print_json({"ok": report.ok, "files": files, "concatenation": report.concatenation})
        return
    are_alike = len({(each.checked, each.not_checked) for each in report.reports}) == 1
    for each in report.reports:
        print_file(each, lang=lang, with_aspects=not are_alike)
    if are_alike:
        _print_aspects(report.reports[0])
    for file, text in report.unreadable.items():
        echo(text if text.startswith(str(file)) else f"{file}: {text}")
    _print_shared_prompts(report)
    if fault := report.concatenation:
        only_in_old = " with older versions of datasets" if fault.only_in_old else ""
        first = f" A list that begins with {fault.first} loads." if fault.first else ""
        print_wrapped(
            f"verl cannot load these files as one list{only_in_old}: {fault.message}.{first} "
            "rewardkit mix writes one file of several."
        )
    echo(f"{report.verdict()}.")


def _print_shared_prompts(report: FilesReport) -> None:
    pairs = [
        (count, each.path, other)
        for each in report.reports
        for other, count in each.shared_prompts.items()
    ]
    for count, path, other in sorted(pairs, reverse=True)[:MAX_NAMES]:
        rows = f"{row_count(count)} {'has' if count == 1 else 'have'}"
        print_wrapped(
            f"{path}: {rows} a prompt that is in {other}, too. If one of the files is for "
            f"evaluation, leave these rows out of training: rewardkit check TRAIN --against EVAL "
            "--drop-overlap OUT."
        )


def _print_aspects(report: CheckReport) -> None:
    print_wrapped(f"Checked: {', '.join(report.checked)}.")
    if report.not_checked:
        print_wrapped(f"Not checked: {', '.join(report.not_checked)}.")
    for missing, reason in report.missing_set_lines():
        print_wrapped(f"Not checked: {missing} ({reason}).")


def _print_overlaps(report: CheckReport) -> None:
    """Print the pairs of each set, the most complete overlaps, and the near misses most alike."""
    if len(report.pairs_by_set) > 1:
        rules = "copy", "part", "reworded", "near_miss"
        columns = "evaluation set", "copies", "in part", "in other words", "near misses"
        sets = sorted(report.pairs_by_set.items())
        rows = [(name, *(f"{pairs[rule]:,}" for rule in rules)) for name, pairs in sets]
        print_table(Table(columns, rows))
    shown = sorted(report.overlaps, key=lambda o: -o.coverage)[:MAX_EXAMPLES]
    for overlap in shown:
        _print_pair(overlap, "contains")
    if len(shown) < report.counts["overlap"]:
        echo(f"{len(shown)} of {report.counts['overlap']:,} overlaps are listed.")
    near = sorted(report.near_misses, key=lambda o: -max(o.common, o.coverage))[:MAX_EXAMPLES]
    for overlap in near:
        _print_pair(overlap, "may be a variant: it has")
    if near:
        print_wrapped(
            f"near misses: {report.near_miss_count:,}, {len(near)} of them listed; they are alike "
            "but are no findings: read them in the page (--html) or with --json"
        )


def _print_pair(overlap: Overlap, verb: str) -> None:
    echo(f"\nrow {overlap.row} {verb} {overlap.summary}")
    for name, text in (("row: ", overlap.row_text), ("item:", overlap.item_text)):
        echo(f"  {name} {' '.join(text.split())[:70].rstrip()}")
    if overlap.rule != "copy":
        item, row = (" ".join(words[:MAX_WORDS]) or "-" for words in overlap.differing_words)
        echo(f"  only in the row: {row}; only in the item: {item}")
