"""`rewardkit prep`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.shared.console import print_json, print_table, print_wrapped, progress
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import (
    HtmlFile,
    HubName,
    Jobs,
    JsonFlag,
    Overwrite,
    require_companion,
    require_unused,
)
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.preprocess.base import Dataset
    from rewardkit.preprocess.report import PrepReport, SplitReport

EXAMPLES = examples(
    "rewardkit prep gsm8k --out train.parquet",
    "rewardkit prep gsm8k --split all --out data/gsm8k --source /mnt/hub/gsm8k",
    "rewardkit prep dapo-math-17k --out dapo.parquet --language en --html report.html",
    "rewardkit prep aime --year 2024 --repeat 32 --out aime.parquet",
    "rewardkit prep my.jsonl --question-key q --answer-key a --scorer math --out my.parquet",
    "rewardkit prep my_dataset.py --source rows.csv --out my.parquet",
    "rewardkit prep gsm8k --out demo.parquet --sample",
)


class LanguageName(str, Enum):
    """The language of questions that are kept."""

    all = "all"
    en = "en"
    zh = "zh"


def command(
    ctx: typer.Context,
    dataset: Annotated[
        str,
        typer.Argument(
            help="A dataset's name (see rewardkit list), your own data file, or a plug-in .py file."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The parquet to write; a folder with --split all.")],
    split: Annotated[
        str | None, typer.Option(help="train, test, ... or all; train if there is one.")
    ] = None,
    year: Annotated[str | None, typer.Option(help="The split of that year (aime).")] = None,
    source: Annotated[
        Path | None, typer.Option(help="A parquet, jsonl, json or csv file, or a folder of them.")
    ] = None,
    hub: Annotated[HubName, typer.Option(help="Where to download from.")] = HubName.huggingface,
    sample: Annotated[bool, typer.Option("--sample", help="Use the packaged sample.")] = False,
    question_key: Annotated[
        str, typer.Option(help="Own data: where the question is; a dotted path leads inside.")
    ] = "question",
    answer_key: Annotated[str, typer.Option(help="Own data: where the answer is.")] = "answer",
    image_key: Annotated[str | None, typer.Option(help="Own data: where the pictures are.")] = None,
    data_source: Annotated[
        str | None, typer.Option(help="Own data: verl's reward key, instead of the file's name.")
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(help="hash, boxed, answer_line, ..., or a text file with {question} in it."),
    ] = None,
    system: Annotated[str | None, typer.Option(help="A system message.")] = None,
    scorer: Annotated[
        str | None, typer.Option(help="The scorer rows name, instead of the template's.")
    ] = None,
    language: Annotated[
        LanguageName, typer.Option(help="Keep questions of one language.")
    ] = LanguageName.all,
    dedup: Annotated[
        bool | None,
        typer.Option(
            "--dedup/--no-dedup",
            help="Keep one row of each question, none of one with several golds. "
            "[default: as the dataset's card says]",
            show_default=False,
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Write every row so many times.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many rows.")] = None,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Shuffle before --limit.")] = False,
    seed: Annotated[int, typer.Option(help="Random seed of --shuffle.")] = 0,
    jobs: Jobs = None,
    html: HtmlFile = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a dataset as verl parquet, checked row by row.

    Rows come from --sample, else --source, else the local Hugging Face cache, else the hub
    (HF_ENDPOINT is honoured). Dropped rows are kept, with reasons, in OUT.dropped.jsonl.
    """
    from rewardkit.parallel import cores
    from rewardkit.preprocess.pipeline import load_dataset, prep

    own = _data_file(dataset)
    _refuse_unused(ctx, downloads=not (own or source or sample))
    if html:
        _refuse_page(html, out, own or source or out, overwrite=overwrite)
    keys = (question_key, answer_key, image_key, data_source)
    if own and (source or sample or year):
        raise UsageError(f"{own} is the data itself: --source, --sample and --year do not apply.")
    if not own and keys != ("question", "answer", None, None):
        raise UsageError(
            "--question-key, --answer-key, --image-key and --data-source are for your own file."
        )
    with progress(f"preparing {dataset}") as advance:
        chosen = _own(own, split, *keys) if own else load_dataset(dataset)
        report = prep(
            chosen,
            out,
            split=split or year,
            source=own or source,
            hub=hub.value,
            sample=sample,
            template=template,
            system=system,
            scorer=scorer,
            language=language.value,
            dedup=dedup,
            repeat=repeat,
            limit=limit,
            shuffle=shuffle,
            seed=seed,
            overwrite=overwrite,
            jobs=jobs or cores(),
            progress=advance,
        )
    if html:
        _write_html(report, html, overwrite=overwrite)
    _print(report, as_json=as_json)


def _refuse_unused(ctx: typer.Context, *, downloads: bool) -> None:
    """Raise if options exclude each other, or one would have no effect."""
    if ctx.params["split"] and ctx.params["year"]:
        raise UsageError("--split and --year exclude each other.")
    require_companion(ctx, "seed", "--shuffle", is_set=ctx.params["shuffle"])
    if not downloads:
        require_unused(ctx, "a file, --source or --sample", set(ctx.params) - {"hub"})


def _refuse_page(html: Path, out: Path, source: Path, *, overwrite: bool) -> None:
    from rewardkit.output import require_absent, require_different, require_not_input
    from rewardkit.preprocess.quality import dropped_path

    require_absent(html, overwrite=overwrite)
    require_different(out=out, html=html, dropped=dropped_path(out))
    require_not_input(html, source)


def _data_file(dataset: str) -> Path | None:
    """The file of the user's that this is, if it is no dataset's name or plug-in."""
    from rewardkit.preprocess.read import READERS

    path = Path(dataset)
    if path.suffix.lower() in READERS:
        return path
    if path.is_file() and path.suffix != ".py":
        raise UsageError(f"{dataset}: not a {', '.join(READERS)} file.")
    return None


def _own(
    file: Path,
    split: str | None,
    question_key: str,
    answer_key: str,
    image_key: str | None,
    data_source: str | None,
) -> Dataset:
    from rewardkit.preprocess.user_file import own_dataset

    return own_dataset(
        file,
        question_key=question_key,
        answer_key=answer_key,
        image_key=image_key,
        data_source=data_source,
        split=split or "train",
    )


def _write_html(report: PrepReport, out: Path, *, overwrite: bool) -> None:
    from rewardkit.pages.html import write_html
    from rewardkit.preprocess.report_pages import prep_page

    write_html(prep_page(report), out, overwrite=overwrite)


def _print(report: PrepReport, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    print_table(
        ("split", "read", "dropped", "written", "from", "file"),
        [
            (
                s.split,
                f"{s.read:,}",
                f"{sum(s.dropped.values()):,}",
                f"{s.written:,}",
                s.origin,
                s.out,
            )
            for s in report.splits
        ],
        title=f"{report.dataset}: data_source {report.data_source}, template {report.template}, "
        f"scorer {report.scorer}",
    )
    for s in report.splits:
        _print_split(s)


def _print_split(s: SplitReport) -> None:
    """What became of the rows, and what the rows written look like."""
    from rewardkit.statistics import percentile_of_counts

    if s.distinct < s.read:
        typer.echo(f"{s.split}: {s.read:,} rows are {s.distinct:,} distinct ones and their copies")
    for reason, count in s.dropped.most_common():
        typer.echo(f"{s.split}: dropped {count:,}: {reason} (see {s.out}.dropped.jsonl)")
    if s.duplicates:
        typer.echo(
            f"{s.split}: {s.duplicates:,} rows ask an earlier row's question (--dedup drops them)"
        )
    if s.conflicting:
        typer.echo(f"{s.split}: {s.conflicting:,} of them with another gold")
    kinds = "; ".join(f"{kind} {count:,}" for kind, count in s.stats.answer_kinds.most_common())
    lengths = s.stats.prompt_chars
    marks = ", ".join(
        f"{name} {percentile_of_counts(lengths, percent):,}"
        for name, percent in (("p50", 50), ("p99", 99), ("max", 100))
    )
    print_wrapped(f"{s.split}: answers: {kinds}")
    typer.echo(f"{s.split}: prompt characters: {marks}")
