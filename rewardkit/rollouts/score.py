"""`rewardkit score`: judge what a run produced, in bulk, and sum up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rewardkit.errors import UsageError
from rewardkit.output import atomic, refuse_input
from rewardkit.parallel import in_order
from rewardkit.registry import is_path
from rewardkit.rollouts.files import Unit, expand, units
from rewardkit.rollouts.journal import Journal, fingerprint, open_journal
from rewardkit.rollouts.read import Unread
from rewardkit.rollouts.tally import Tally
from rewardkit.rollouts.unit import EXAMPLES, Plan, Scored, given_up, score_unit
from rewardkit.scorers.base import Scorer

Engine: TypeAlias = Literal["local", "ray"]


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
    tallies: dict[str, dict[str, Tally]] = field(default_factory=dict)
    unscored: int = 0
    examples: list[Unread] = field(default_factory=list)

    @property
    def total(self) -> Tally:
        """All samples that were scored."""
        return self.tallies.get("total", {}).get("", Tally())

    def add(self, scored: Scored) -> None:
        """Count a unit."""
        self.unscored += scored.n_unscored
        self.examples += scored.examples[: EXAMPLES - len(self.examples)]
        for group, named in scored.tallies.items():
            for name, tally in named.items():
                self.tallies.setdefault(group, {}).setdefault(name, Tally()).merge(tally)

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
        progress: called with the number of rows done since the last call.

    Raises:
        DataError: a file cannot be read.
        OutputError: `out` cannot be written, or an interrupted run's part is there.
    """
    files = expand(names)
    plan = Plan(
        scorer,
        tuple((options or {}).items()),
        response_key,
        gold_key,
        str(train) if train else None,
    )
    for file in [*files, *([str(train)] if train else [])]:
        refuse_input(out, Path(file))
    report = ScoreReport(tuple(files))
    if resume and (out is None or "-" in files):
        raise UsageError("--resume needs --out, and files that can be read again.")
    code = [str(scorer).partition(":")[0]] if isinstance(scorer, str) and is_path(scorer) else []
    read = [*files, *code, *([str(train)] if train else [])]
    run = {"files": fingerprint(read), "plan": [str(value) for value in vars(plan).values()]}
    journal = open_journal(out, run, resume=resume, overwrite=overwrite) if out else nullcontext()
    with journal as kept:
        start = kept.state.units if kept else 0
        if kept and start:
            report.tallies, report.unscored = kept.state.tallies, kept.state.unscored
        for scored in _scored(plan, files, start, jobs, engine, address):
            report.add(scored)
            if kept:
                kept.state.tallies, kept.state.unscored = report.tallies, report.unscored
                kept.write(scored.lines, scored.unscored)
            progress(scored.n)
    if out and kept:
        _finish(kept, plan, out, overwrite=overwrite)
    return report


def score_file(path: Path | str, scorer: str | Scorer = "auto", **options: Any) -> ScoreReport:
    """Score every response of one file; see `score_files`."""
    return score_files([str(path)], scorer, **options)


def _scored(
    plan: Plan, files: list[str], start: int, jobs: int, engine: Engine, address: str | None
) -> Iterator[Scored]:
    if engine == "ray":
        from rewardkit.rollouts.on_ray import scored_on_ray

        if not isinstance(plan.scorer, str) or start:
            raise UsageError("--engine ray takes a scorer by name, and no --resume.")
        return scored_on_ray(plan, files, address)
    if not isinstance(plan.scorer, str):
        jobs = 1
    work = partial(score_unit, plan)
    # A built-in scorer ends no process; a user's file may.
    rescue = _apart if isinstance(plan.scorer, str) and is_path(plan.scorer) else None
    results = in_order(work, islice(units(files), start, None), jobs, rescue)
    return (scored for _, scored in results)


def _apart(unit: Unit, attempt: Callable[[Unit], Scored | None]) -> Scored:
    """A unit in whose process something died: in halves, down to the row that does it."""
    if (scored := attempt(unit)) is not None:
        return scored
    if len(unit) == 1:
        return given_up(unit, "the scorer ended its process")
    first, second = (_apart(half, attempt) for half in unit.halves())
    return _joined(first, second)


def _joined(first: Scored, second: Scored) -> Scored:
    both = ScoreReport(())
    both.add(first)
    both.add(second)
    lines, unscored = first.lines + second.lines, first.unscored + second.unscored
    return Scored(lines, unscored, both.examples, both.unscored, both.tallies)


def _finish(journal: Journal, plan: Plan, out: Path, *, overwrite: bool) -> None:
    """The part becomes the output; rows that could not be scored get a file if there are any."""
    beside = out.with_name(f"{out.name}.unscored.jsonl")
    beside.unlink(missing_ok=True)
    if journal.state.unscored:
        journal.unscored.replace(beside)
    if out.suffix == ".parquet":
        from rewardkit.rollouts.table import write_table

        with atomic(out, overwrite=overwrite) as temporary:
            write_table(journal.part, temporary, plan.response_key, plan.gold_key)
    else:
        journal.part.replace(out)
    journal.remove()
