"""`rewardkit score`: judge what a run produced, in bulk, and sum up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rewardkit.errors import UsageError
from rewardkit.output import atomic, refuse_existing, refuse_input, resolve_output
from rewardkit.parallel import ALONE, in_order
from rewardkit.registry import is_path
from rewardkit.responses.files import UNIT_BYTES, Unit, expand, units
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.resumable_output import (
    ResumableOutput,
    fingerprints,
    open_resumable_output,
)
from rewardkit.responses.tally import Tallies, Tally, merge_tallies
from rewardkit.responses.unit import EXAMPLES, Plan, Scored, forget, score_units, scorer_for
from rewardkit.scorers.base import Scorer
from rewardkit.scorers.isolated import CALL_TIMEOUT_SECONDS, is_built_in

Engine: TypeAlias = Literal["local", "ray"]

#: Units are so many times smaller for a scorer that is not ours.
SHARE = 16

#: Units that together take less than this are sent to a process together.
GROUP_SECONDS = 0.25

#: Bytes from which other processes are started at once.
LARGE = 3 * ALONE * UNIT_BYTES

#: What `out` may end in.
OUT = (".jsonl", ".parquet")


@dataclass
class ScoreReport:
    """What scoring found.

    Attributes:
        files: what was read.
        tallies: scores summed up by `total` (one, named ""), `data_source` and `step`.
        unscored: how many rows could not be scored.
        examples: the first of them.
    """

    files: tuple[str, ...]
    tallies: Tallies = field(default_factory=dict)
    unscored: int = 0
    examples: list[SkippedRow] = field(default_factory=list)

    @property
    def total(self) -> Tally:
        """All samples that were scored."""
        return self.tallies.get("total", {}).get("", Tally())

    def add(self, scored: Scored) -> None:
        """Count a unit."""
        self.unscored += scored.n_unscored
        self.examples += scored.examples[: EXAMPLES - len(self.examples)]
        merge_tallies(self.tallies, scored.tallies)

    def summary(self) -> dict[str, Any]:
        """The report as plain values, for people and for JSON."""
        named = {
            group: {name: tally.summary() for name, tally in self.tallies.get(group, {}).items()}
            for group in ("data_source", "step")
        }
        return {
            "files": list(self.files),
            "unscored": self.unscored,
            "unscored_examples": [f"{row.where}: {row.reason}" for row in self.examples],
            "total": self.total.summary(),
            **{f"by_{group}": tallies for group, tallies in named.items()},
        }


def score_files(
    names: Sequence[str],
    scorer: str | Scorer = "auto",
    *,
    options: Mapping[str, Any] | None = None,
    response_key: str | None = None,
    gold_key: str | None = None,
    train: Path | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    jobs: int = 1,
    engine: Engine = "local",
    address: str | None = None,
    seconds: float = CALL_TIMEOUT_SECONDS,
    progress: Callable[[int], object] = lambda _: None,
) -> ScoreReport:
    """Score every response of files, folders and patterns.

    Args:
        names: jsonl (also `.gz`, `.zst`) and parquet files, folders and patterns of them; `-` for
            jsonl on standard input.
        scorer: a scorer's name or `file.py:function`; `auto` judges each row with its own. A
            function is called in this process only.
        options: of the scorer.
        response_key: the field with the response, or a list of them; see `rollouts.read`.
        gold_key: the field with the ground truth.
        train: a training parquet, in which rows without a `data_source` are looked up.
        out: a jsonl or parquet to write: every row with `score`, `acc`, `pred`, `status` and the
            flags. A field of that name that the row had is kept as `<name>_before`. Rows that
            could not be scored are in `<out>.unscored.jsonl`, with the reason.
        overwrite: replace `out` if it exists, and forget an interrupted run.
        resume: go on with an interrupted run, whose rows are not scored again.
        jobs: processes.
        engine: `local`, or `ray` for Ray Data on the cluster at `address`.
        address: of the cluster; None for a private one on this machine.
        seconds: that a scorer which is not ours may take for a response. It runs in a process of
            its own; a response on which it ends that process, or takes longer, is not scored.
        progress: called with the number of rows done since the last call.

    Raises:
        UsageError: the scorer does not load, `out` has another suffix, or the arguments exclude
            each other.
        DataError: a file cannot be read, or a scorer that is not ours never answers.
        OutputError: `out` cannot be written, or an interrupted run's part is there.
    """
    plan = Plan(
        scorer,
        tuple((options or {}).items()),
        response_key,
        gold_key,
        str(train) if train else None,
        seconds,
        lines=out is not None,
    )
    _refuse(out, train, engine, address)
    out = resolve_output(out) if out else None
    files = expand(names)
    for file in [*files, *([str(train)] if train else [])]:
        refuse_input(out, Path(file))
    if resume and (out is None or "-" in files):
        raise UsageError("--resume needs --out, and files that can be read again.")
    report = ScoreReport(tuple(files))
    with _checked(plan, apart=jobs > 1 or engine == "ray"):
        run = _run(plan, files)
        opened = (
            open_resumable_output(out, run, resume=resume, overwrite=overwrite)
            if out
            else nullcontext()
        )
        with opened as growing:
            start = growing.state.units if growing else 0
            if growing and start:
                state = growing.state
                report.tallies, report.unscored = state.tallies, state.unscored
                report.examples = state.examples
            for scored in _scored(plan, files, start, jobs, engine, address):
                if growing:
                    growing.write(scored.lines, scored.unscored)
                report.add(scored)
                if growing:
                    growing.advance(report.tallies, report.unscored, report.examples)
                progress(scored.n)
            if out and growing:
                _finish(growing, plan, out, overwrite=overwrite)
    return report


def _run(plan: Plan, files: list[str]) -> dict[str, Any]:
    """What is scored and how, so that another run does not go on with this one's rows."""
    scorer = str(plan.scorer)
    code = [scorer.partition(":")[0]] if isinstance(plan.scorer, str) and is_path(scorer) else []
    read = [*files, *code, *([plan.train] if plan.train else [])]
    how = [str(value) for name, value in vars(plan).items() if name != "seconds"]
    return {"files": fingerprints(read), "plan": how}


def _refuse(out: Path | None, train: Path | None, engine: Engine, address: str | None) -> None:
    """Raise what can be known to be wrong before anything is read."""
    if out is not None and out.suffix not in OUT:
        raise UsageError(f"--out {out}: write {' or '.join(OUT)}; that is no name of either.")
    if address is not None and engine != "ray":
        raise UsageError("--address is that of a Ray cluster: add --engine ray.")
    if train is not None:
        from rewardkit.responses.matching.join import refuse_no_train

        refuse_no_train(train)


@contextmanager
def _checked(plan: Plan, *, apart: bool) -> Iterator[None]:
    """Load the scorer, so that what is wrong with it is said first; let go of it in the end."""
    try:
        scorer_for(plan)
        if apart:  # other processes load their own
            forget(plan)
        yield
    finally:
        forget(plan)


def score_file(path: Path | str, scorer: str | Scorer = "auto", **options: Any) -> ScoreReport:
    """Score every response of one file; see `score_files`."""
    return score_files([str(path)], scorer, **options)


def _scored(
    plan: Plan, files: list[str], start: int, jobs: int, engine: Engine, address: str | None
) -> Iterator[Scored]:
    if engine == "ray":
        from rewardkit.responses.on_ray import scored_on_ray

        if not isinstance(plan.scorer, str) or start:
            raise UsageError("--engine ray takes a scorer by name, and no --resume.")
        return scored_on_ray(plan, files, address)
    if not isinstance(plan.scorer, str):
        jobs = 1
    # Others may be slow, as one that asks a model is: even a small file is work for all processes.
    others = isinstance(plan.scorer, str) and not is_built_in(plan.scorer)
    share = SHARE if others else 1
    alone = 0 if others or _size(files) > LARGE else ALONE
    return _paced(plan, islice(units(files, share), start, None), jobs, alone, share)


def _paced(plan: Plan, left: Iterator[Unit], jobs: int, alone: int, most: int) -> Iterator[Scored]:
    """The units, scored in order; a process gets one at a time, or up to `most` if they are fast.

    So a slow scorer's verdicts are kept one small unit at a time, and a fast one's cost few messages.
    """
    size = 1

    def groups() -> Iterator[list[Unit]]:
        while group := list(islice(left, size)):
            yield group

    for _, (seconds, results) in in_order(partial(score_units, plan), groups(), jobs, alone):
        yield from results
        size = min(2 * size, most) if seconds < GROUP_SECONDS else max(size // 2, 1)


def _size(files: Sequence[str]) -> int:
    """Bytes; standard input has none."""
    return sum(Path(file).stat().st_size for file in files if file != "-")


def _finish(output: ResumableOutput, plan: Plan, out: Path, *, overwrite: bool) -> None:
    """The part becomes the output; rows that could not be scored get a file if there are any.

    The output comes last: until then, the interrupted run's files are whole and it can go on.
    """
    output.save()
    output.finish(out.with_name(f"{out.name}.unscored.jsonl"))
    if out.suffix == ".parquet":
        from rewardkit.responses.table import write_table

        with atomic(out, overwrite=overwrite) as temporary:
            write_table(output.part, temporary, plan.response_key, plan.gold_key)
    else:
        refuse_existing(out, overwrite=overwrite)
        output.part.replace(out)
    output.remove()
