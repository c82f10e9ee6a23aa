"""The records of a run's reward as a table, alone or beside the run's log.

| metric | value |
|---|---|
| `rewards/<key>/mean`, `/std` | of every number of the reward's result: `score`, `acc`, flags, parts |
| `rewards/response_characters/mean`, `/std`, `/max` | length of the response |
| `rewards/distinct_answers/mean` | distinct answers of a prompt divided by its responses |
| `rewards/several_boxes/mean`, `rewards/copied_prompt/mean` | shares, measured on a sample |
| `rewards/calls_per_second` | calls divided by the seconds in which there were any |
| `rewards/seconds/mean`, `/max` | of a call |
| `rewards/count` | calls |

Rows of which `extra_info.split` is not `train` have the prefix `rewards-val/`. A run with several
data sources also has `rewards@<data_source>/` and `rewards-val@<data_source>/`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rewardkit.errors import DataError, UsageError
from rewardkit.recorder.interval import Total
from rewardkit.recorder.read import RewardRecords, read_rewards
from rewardkit.recorder.slots import RewardSample, SourceTotals
from rewardkit.recorder.windows import (
    RewardWindow,
    windows_of_clock,
    windows_of_steps,
    windows_of_time,
)
from rewardkit.trainlog.run_folder import run_records
from rewardkit.trainlog.table_builder import TableBuilder
from rewardkit.trainlog.training_run import MetricColumn, ResponseSample, TrainingRun, stride

#: Kind of a run that has records only.
SOURCE = "rewards"

#: How windows were aligned to steps.
BY_TIME, BY_COUNT, BY_CLOCK = "time", "count", "clock"


@dataclass(frozen=True)
class RecordedRun:
    """A run with the records of its reward.

    Attributes:
        run: the table, with the metrics of the reward.
        samples: responses, each with its step, in order of time.
        alignment: `clock` if the log's times gave the steps, `count` if the number of samples did,
            and `time` if steps are only windows of time.
    """

    run: TrainingRun
    samples: tuple[RewardSample, ...]
    alignment: str


def recorded_run(
    records: RewardRecords, name: str = "", samples_per_step: int | None = None
) -> RecordedRun:
    """Return the table of a run's records alone.

    Args:
        records: the records.
        name: name of the run; by default the name of the folder.
        samples_per_step: prompts of a step times responses to each; without it, steps are
            consecutive windows of time.
    """
    if samples_per_step:
        windows, alignment = windows_of_steps(records, samples_per_step), BY_COUNT
    else:
        windows, alignment = windows_of_time(records), BY_TIME
    builder = TableBuilder(unread=records.unread)
    for window in windows:
        builder.add(window.step, dict(window_metrics(window)), records.folder, window.end)
    run = builder.run(name=name or Path(records.folder).name, path=records.folder, source=SOURCE)
    samples = _samples(windows)
    return RecordedRun(replace(run, samples=training_samples(samples)), samples, alignment)


def join_rewards(
    run: TrainingRun, records: RewardRecords, samples_per_step: int | None = None
) -> RecordedRun:
    """Return a run with the metrics of its reward's records beside its own.

    Steps are aligned by the log's clock if it has one for every step and the records fall into its
    time; otherwise by counting samples, with `samples_per_step` or with the batch size and the
    number of responses in the run's configuration. A start of the run after the first begins with
    the step at which the log restarts.

    Raises:
        DataError: the log has no clock, and the samples of a step are unknown.
    """
    times = [time for time in run.clock if time is not None]
    covered = [slot for slot in records.slots if times and slot.end <= times[-1]]
    is_clock_usable = len(times) == len(run.steps) and times == sorted(times) and bool(covered)
    if is_clock_usable and not samples_per_step:
        windows, alignment = windows_of_clock(records, run.steps, times), BY_CLOCK
    else:
        count = samples_per_step or samples_of_step(run)
        windows, alignment = windows_of_steps(records, count, _first_steps(run)), BY_COUNT
    table: dict[str, list[float | None]] = {}
    place_of = {step: place for place, step in enumerate(run.steps)}
    windows = [window for window in windows if window.step in place_of]
    for window in windows:
        for metric, value in window_metrics(window):
            column = table.setdefault(metric, [None] * len(run.steps))
            column[place_of[window.step]] = value
    columns: dict[str, MetricColumn] = {metric: tuple(column) for metric, column in table.items()}
    samples = _samples(windows)
    joined = replace(run, table={**run.table, **columns}, samples=training_samples(samples))
    return RecordedRun(joined, samples, alignment)


def training_samples(samples: Sequence[RewardSample]) -> tuple[ResponseSample, ...]:
    """Return the samples of the training that have a score, by step."""
    return tuple(
        ResponseSample(
            step=sample.step,
            response=sample.response,
            score=sample.score,
            pred=sample.pred,
            data_source=sample.data_source,
            index=sample.index,
            parts=sample.parts,
        )
        for sample in sorted(samples, key=lambda sample: sample.step)
        if sample.score is not None and not sample.is_validation
    )


def with_rewards(
    run: TrainingRun, rewards: Path | None, samples_per_step: int | None
) -> TrainingRun:
    """Return a run with the records of a folder; without one, the run of records itself aligned.

    Raises:
        UsageError: there is no folder, and the run is not one of records.
        DataError: as in `join_rewards` and `read_rewards`.
        SourceError: the folder cannot be read.
    """
    if rewards is not None:
        return join_rewards(run, read_rewards(rewards), samples_per_step).run
    if samples_per_step is None:
        return run
    if run.source != SOURCE:
        raise UsageError("--samples-per-step belongs to the records of a reward; add --rewards.")
    return recorded_run(read_rewards(run.path), run.name, samples_per_step).run


def with_own_records(
    run: TrainingRun, path: Path, samples_per_step: int | None
) -> tuple[TrainingRun, str]:
    """Return a run with the records that its folder has or names, and a line that says so.

    The run is unchanged, and the line "", if there are none.

    Raises:
        DataError, SourceError: the records cannot be read.
        UsageError: there are none, but `samples_per_step` is given.
    """
    own = run_records(path)
    records = records_since(read_rewards(own.folder), own.since) if own else None
    if own is None or records is None or not records.slots:
        return with_rewards(run, None, samples_per_step), ""
    try:
        joined = join_rewards(run, records, samples_per_step).run
    except DataError as error:
        return run, f"{path}: without the records of its reward in {own.folder}: {error}"
    return joined, f"{path}: with the records of its reward in {own.folder}."


def records_since(records: RewardRecords, since: float) -> RewardRecords:
    """Return the records of processes and calls that began after a time."""
    return replace(
        records,
        slots=tuple(slot for slot in records.slots if slot.start >= since),
        generations=tuple(start for start in records.generations if start >= since),
    )


def samples_of_step(run: TrainingRun) -> int:
    """Return the responses of a training step by the run's configuration.

    Raises:
        DataError: the configuration does not have them.
    """
    prompts = run.setting("data.train_batch_size")
    responses = run.setting("actor_rollout_ref.rollout.n")
    numbers = [number for number in (prompts, responses) if isinstance(number, int) and number > 0]
    if len(numbers) < 2:
        raise DataError(
            f"{run.path}: the log has no data.train_batch_size and actor_rollout_ref.rollout.n, so "
            "the records cannot be aligned to its steps; add --samples-per-step with their product."
        )
    return numbers[0] * numbers[1]


def window_metrics(window: RewardWindow) -> Iterator[tuple[str, float]]:
    """Yield the metrics of a window."""
    for is_validation in (False, True):
        prefix = "rewards-val" if is_validation else "rewards"
        seconds = window.validation_seconds if is_validation else window.seconds
        sources = {
            name: totals for (name, kind), totals in window.sources.items() if kind is is_validation
        }
        parts = [(prefix, list(sources.values()))] if sources else []
        if len(sources) > 1:
            parts += [(f"{prefix}@{name}", [totals]) for name, totals in sorted(sources.items())]
        for start, members in parts:
            for metric, value in _metrics(members, seconds):
                yield f"{start}/{metric}", value


def _metrics(sources: Sequence[SourceTotals], seconds: float) -> Iterator[tuple[str, float]]:
    whole = sources[0]
    if len(sources) > 1:
        whole = SourceTotals()
        for totals in sources:
            whole.include(totals, max_samples=0, max_pairs=1 << 20)
    for key, total in whole.values.items():
        yield from _statistics(key, total, "mean", "std")
    yield from _statistics("response_characters", whole.characters, "mean", "std", "max")
    yield from _statistics("several_boxes", whole.several_boxes, "mean")
    yield from _statistics("copied_prompt", whole.copied_prompt, "mean")
    yield from _statistics("seconds", whole.seconds, "mean", "max")
    distinct = whole.distinct_answers()
    if distinct is not None:
        yield "distinct_answers/mean", distinct
    if seconds > 0:
        yield "calls_per_second", whole.count / seconds
    yield "count", float(whole.count)


def _statistics(key: str, total: Total, *names: str) -> Iterator[tuple[str, float]]:
    if total.count == 0:
        return
    mean = total.sum / total.count
    variance = max(total.squares / total.count - mean * mean, 0.0)
    values = {"mean": mean, "std": math.sqrt(variance), "max": total.most}
    for name in names:
        yield f"{key}/{name}", values[name]


def _samples(windows: Sequence[RewardWindow]) -> tuple[RewardSample, ...]:
    return tuple(sample for window in windows for sample in window.samples)


def _first_steps(run: TrainingRun) -> list[int]:
    """Return the first step of each start of a run, by its log."""
    first = max(run.steps[0] - stride(run.steps) + 1, 1)
    return [first, *(restart.step for restart in run.restarts)]
