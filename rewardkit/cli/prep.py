"""`rewardkit prep`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import print_json, print_table, print_wrapped, progress, warn
from rewardkit.cli.shared.options import argument, complete_scorers, complete_set, examples, option
from rewardkit.cli.shared.user_code import require_sets
from rewardkit.errors import UsageError
from rewardkit.table import Table
from rewardkit.text import row_count

if TYPE_CHECKING:
    from rewardkit.preprocess.prep import PrepReport, SplitReport

EXAMPLES = examples(
    "rewardkit prep gsm8k --out train.parquet",
    "rewardkit prep gsm8k --split all --out data/gsm8k --source /mnt/hub/gsm8k",
    "rewardkit prep dapo-math-17k --out dapo.parquet --language en --html report.html",
    "rewardkit prep aime2024 --repeat 32 --out aime.parquet",
    "rewardkit prep my.jsonl --question-key q --answer-key a --scorer math --out my.parquet",
    "rewardkit prep my_dataset.md --source rows.jsonl --out my.parquet",
    "rewardkit prep gsm8k --tools calc_gsm8k_reward --out tools.parquet",
    "rewardkit prep my_dataset.py --source rows.csv --out my.parquet",
    "rewardkit prep deepmath --keep difficulty,topic --where 'difficulty >= 5' --out hard.parquet",
    "rewardkit prep gsm8k --out demo.parquet --sample",
)


@dataclass(frozen=True)
class RowOptions:
    """The options that decide which rows are written, and how; `prep` takes them as they are."""

    template: Annotated[
        str | None,
        option("Prompt template: hash, boxed, answer_line, ..., or a text file with {question}."),
    ] = None
    system: Annotated[str | None, option("System message to put before each prompt.")] = None
    scorer: Annotated[
        str | None,
        option(
            "Scorer to write into the rows, instead of the template's.",
            autocompletion=complete_scorers,
        ),
    ] = None
    tools: Annotated[
        Literal["calc_gsm8k_reward", "calc_geo3k_reward", "code_interpreter", "search"] | None,
        option("Tool of every row, with the prompt of verl's own script for it."),
    ] = None
    interaction: Annotated[
        Literal["gsm8k"] | None,
        option("Interaction of every row, with the prompt of verl's own script for it."),
    ] = None
    language: Annotated[
        Literal["all", "en", "zh"], option("Keep only questions in this language.")
    ] = "all"
    dedup: Annotated[
        bool | None,
        option(
            "Keep one row per question, and none of a question with several golds. "
            "[default: set by the dataset's card]",
            "--dedup/--no-dedup",
            show_default=False,
        ),
    ] = None
    repeat: Annotated[int, option("Write each row this many times.", min=1, max=100_000)] = 1
    limit: Annotated[int | None, option("Maximum number of rows to write.", min=1)] = None
    shuffle: Annotated[bool, option("Shuffle the rows before --limit.", "--shuffle")] = False
    seed: Annotated[int, option("Random seed for --shuffle.")] = 0
    options_seed: Annotated[
        int | None, option("Random seed for the order of options, where the card shuffles them.")
    ] = None


def command(
    ctx: typer.Context,
    dataset: Annotated[
        str,
        argument(
            "Dataset (see rewardkit list) or set (aime2024), your own data file or saved dataset, a "
            "card (.md), or a plug-in .py file.",
            autocompletion=complete_set,
        ),
    ],
    out: Annotated[Path, option("Output parquet; a folder with --split all.")],
    split: Annotated[
        str | None,
        option("Split to write: train, test, ... or all; the default is train if it exists."),
    ] = None,
    year: Annotated[str | None, option("Year whose split to write, for aime.")] = None,
    source: Annotated[
        Path | None,
        option(
            "Read raw rows from this parquet, arrow, jsonl, json, csv or tsv file (text also .gz, "
            ".zst), or folder of files."
        ),
    ] = None,
    hub: opt.Hub = "huggingface",
    sample: Annotated[
        bool, option("Use the sample that comes with rewardkit.", "--sample")
    ] = False,
    question_key: Annotated[
        str,
        option(
            "Own data: field with the question; use a dotted path for nested fields, and "
            "commas between several fields, whose texts are joined."
        ),
    ] = "question",
    answer_key: Annotated[str, option("Own data: field with the answer.")] = "answer",
    image_key: Annotated[str | None, option("Own data: field with the images.")] = None,
    data_source: Annotated[
        str | None, option("Own data: data_source of the rows; the default is the file's name.")
    ] = None,
    rows: RowOptions = RowOptions(),
    keep: Annotated[
        str | None,
        option("Columns of the raw rows to write into extra_info.columns, separated by commas."),
    ] = None,
    where: Annotated[
        list[str] | None,
        option(
            "Keep only raw rows that meet this condition, as in 'difficulty >= 5' or "
            "'source = olympiads|amc'. Repeat it for several conditions."
        ),
    ] = None,
    load_seconds: opt.LoadSeconds = 60.0,
    jobs: opt.Jobs = None,
    html: opt.HtmlFile = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Write a dataset as a checked verl parquet.

    Rows are read from --sample, else --source, else the local Hugging Face cache, else the hub
    (HF_ENDPOINT is honoured). Dropped rows and the reasons are written to OUT.dropped.jsonl.
    """
    from rewardkit.dropped_rows import dropped_path
    from rewardkit.parallel import cores
    from rewardkit.preprocess.column_guess import own_dataset
    from rewardkit.preprocess.prep import prep

    file = _data_file(dataset)
    _require_used_options(ctx, file)
    inputs = [path for path in (file, source) if path]
    opt.require_html_path(
        html, overwrite=overwrite, inputs=inputs, out=out, dropped=dropped_path(out)
    )
    extra_columns = [name.strip() for name in (keep or "").split(",") if name.strip()]
    require_sets([] if file else [dataset], load_seconds)
    with progress(f"preparing {dataset}") as advance:
        report = prep(
            own_dataset(
                file,
                out,
                split=split,
                keep=extra_columns,
                question_key=question_key,
                answer_key=answer_key,
                image_key=image_key,
                data_source=data_source,
                further_options=opt.option_words(
                    ctx, "question_key", "answer_key", "image_key", "out"
                ),
                warn=warn,
            )
            if file
            else dataset,
            out,
            split=split or year,
            source=file or source,
            hub=hub,
            sample=sample,
            keep=extra_columns,
            where=where or [],
            overwrite=overwrite,
            jobs=jobs or cores(),
            progress=advance,
            **vars(rows),
        )
    if html:
        from rewardkit.pages.html import write_html
        from rewardkit.preprocess.prep_page import prep_page

        write_html(prep_page(report), html, overwrite=overwrite)
    _print(report, as_json=as_json)


def _require_used_options(ctx: typer.Context, file: Path | None) -> None:
    """Raise `UsageError` if options exclude each other, or one would have no effect."""
    options = ctx.params
    if options["split"] and options["year"]:
        raise UsageError("--split and --year exclude each other.")
    opt.require_companion(ctx, "--shuffle", options["shuffle"], "seed")
    own = "question_key", "answer_key", "image_key", "data_source"
    opt.require_companion(ctx, "a data file of your own", file, *own)
    if file and (options["source"] or options["sample"] or options["year"]):
        raise UsageError(f"{file} holds the rows: --source, --sample and --year do not apply.")
    if file or options["source"] or options["sample"]:
        opt.require_unused(ctx, "a file, --source or --sample", set(options) - {"hub"})


def _data_file(dataset: str) -> Path | None:
    """The path of the user's file or folder; None for a dataset's name or a plug-in."""
    from rewardkit.file_kinds import ROW_SUFFIXES, content_fault, is_row_file, require_regular_file
    from rewardkit.preprocess.load import CARD_SUFFIX, is_set

    path = Path(dataset)
    if is_row_file(path):
        require_regular_file(path)
        return path
    if path.is_dir() and not is_set(dataset):
        return path
    if path.is_file() and path.suffix not in (".py", CARD_SUFFIX):
        suffixes = ", ".join(ROW_SUFFIXES)
        fault = content_fault(path)
        raise UsageError(f"{dataset}: {fault or f'not a {suffixes} file.'}")
    return None


def _print(report: PrepReport, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    columns = ("split", "read", "dropped", "written", "from", "file")
    rows = [
        (s.split, f"{s.read:,}", f"{s.dropped.total():,}", f"{s.written:,}", s.origin, s.out)
        for s in report.splits
    ]
    title = (
        f"{report.dataset}: data_source {report.data_source}, template {report.template}, "
        f"scorer {report.scorer}"
    )
    print_table(Table(columns, rows, title))
    for split in report.splits:
        for line in _notes(split):
            print_wrapped(f"{split.split}: {line}")


def _notes(s: SplitReport) -> Iterator[str]:
    """Yield how many rows were dropped and why, and statistics of the written rows."""
    from rewardkit.statistics import percentile_of_counts

    if s.distinct < s.read:
        yield f"{s.distinct:,} of {s.read:,} rows are distinct; the others are copies"
    for reason, count in s.dropped.most_common():
        yield f"dropped {count:,}: {reason} (see {s.out}.dropped.jsonl)"
    if s.system_messages:
        yield (
            f"the system messages of {s.system_messages:,} chats are left out; --system TEXT sets one "
            "for all rows"
        )
    for column, count in s.unread_text.items():
        yield (
            f"text in {column}, which the first rows lack, is left out of {row_count(count)}; name "
            f"{column} in --question-key, beside the question after a comma, or in --keep. If rows of "
            "JSON lack this key, add it to each, with null for no text."
        )
    if s.duplicates:
        verb = "repeats" if s.duplicates == 1 else "repeat"
        yield (
            f"{row_count(s.duplicates)} {verb} the question of an earlier row (--dedup drops such rows)"
        )
    if s.conflicting:
        verb = "has" if s.conflicting == 1 else "have"
        yield f"{s.conflicting:,} of them {verb} a different gold"
    kinds = "; ".join(f"{kind} {count:,}" for kind, count in s.stats.answer_kinds.most_common())
    yield f"answers: {kinds}"
    yield from s.stats.notes()
    lengths = s.stats.prompt_chars
    names = {"p50": 50, "p99": 99, "max": 100}
    marks = (f"{name} {percentile_of_counts(lengths, n):,}" for name, n in names.items())
    yield f"prompt characters: {', '.join(marks)}"
