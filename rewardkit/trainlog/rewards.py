"""What a reward returned as a table of steps, alone or beside the run's log.

| metric | value |
|---|---|
| `rewards/<key>/mean`, `/std` | of every number of the reward's result: `score`, `acc`, flags, parts |
| `rewards/score/min`, `/max` | lowest and highest score |
| `rewards/states_gold/mean` | fraction of responses whose answer is the gold, compared as text |
| `rewards/score_with_gold/mean`, `rewards/score_without_gold/mean` | score of those, and of the others |
| `rewards/response_characters/mean`, `/std`, `/max` | length of the response |
| `rewards/distinct_answers/mean` | distinct answers of a prompt divided by its responses |
| `rewards/calls_per_second` | calls divided by the seconds from the first to the last |
| `rewards/seconds/mean`, `/max` | of a call |
| `rewards/count` | calls |

Rows of which `extra_info.split` is not `train` have the prefix `rewards-val/`. A run with several
data sources also has `rewards@<data_source>/` and `rewards-val@<data_source>/`.

A reward does not know the step of training. A dump is of one step. Calls in records get their steps from
the log's clock, if it has one; otherwise from counting: step k has the k-th `samples_per_step` samples of
training.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import inf
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rewardkit.errors import DataError, UsageError
from rewardkit.trainlog.files import run_logs
from rewardkit.trainlog.reward_files import (
    VALUE,
    RewardRecords,
    has_dumps,
    has_records,
    read_rewards,
)
from rewardkit.trainlog.training_run import ResponseSample, TableBuilder, TrainingRun, stride

if TYPE_CHECKING:
    import pyarrow as pa

#: Kinds of a run that has records, or dumps, only.
SOURCE, DUMPS = "rewards", "rollouts"

#: Training samples of a window, if the samples of a step are unknown.
MIN_WINDOW_SAMPLES, MAX_WINDOW_SAMPLES = 128, 8_192

#: Seconds without a call that end a window: the trainer computes its update.
PAUSE_SECONDS = 3.0

#: Numbers of which there is also the most, and no spread.
_EXTREME = frozenset({"score", "response_characters", "seconds"})
_MEAN_ONLY = frozenset({"states_gold", "seconds"})

#: Metrics of a dump that have names without `rewards/` too.
_SHORT_NAMES = (
    "score/mean",
    "score/max",
    "score/min",
    "response_characters/mean",
    "response_characters/max",
)


def recorded_run(
    records: RewardRecords, name: str = "", samples_per_step: int | None = None
) -> TrainingRun:
    """Return the table of a run's records alone.

    Args:
        records: the records or the dumps.
        name: name of the run; by default the name of the folder.
        samples_per_step: prompts of a step times responses to each; without it, the steps of records are
            consecutive windows of time.
    """
    folder = str(records.folder)
    builder = TableBuilder(unread=records.unread, examples=list(records.examples))
    if samples_per_step and not records.is_dumped:
        steps = _counted_steps(records, samples_per_step)
    else:
        steps = _windows_of_time(records)
    for step, metrics in sorted(_metrics_by_step(records, steps).items()):
        clock = metrics.pop("clock")
        builder.add(step, metrics, folder, None if records.is_dumped else clock)
    source = DUMPS if records.is_dumped else SOURCE
    run = builder.run(name=name or records.folder.name, path=folder, source=source)
    return replace(run, samples=_samples(records, steps))


def join_rewards(
    run: TrainingRun, records: RewardRecords, samples_per_step: int | None = None
) -> TrainingRun:
    """Return a run with the metrics of its reward's records beside its own.

    The steps of records are aligned by the log's clock if it has one for every step and the records
    fall into its time; otherwise by counting samples, with `samples_per_step` or with the batch size and
    the number of responses in the run's configuration. A start of the run after the first begins with
    the step at which the log restarts.

    Raises:
        DataError: the log has no clock, and the samples of a step are unknown.
    """
    times = [time for time in run.clock if time is not None]
    is_clock = len(times) == len(run.steps) and times == sorted(times) and not samples_per_step
    if records.is_dumped:
        steps = _windows_of_time(records)
    elif is_clock and min(records.columns["time"]) <= times[-1]:
        steps = _clock_steps(records, run.steps, times)
    else:
        first = max(run.steps[0] - stride(run.steps) + 1, 1)
        starts = [first, *(restart.step for restart in run.restarts)]
        steps = _counted_steps(records, samples_per_step or samples_of_step(run), starts)
    known = set(run.steps)
    steps = array("q", [step if step in known else -1 for step in steps])
    metrics = _metrics_by_step(records, steps)
    names = dict.fromkeys(
        name for row in metrics.values() for name in row if name.startswith("rewards")
    )
    table = {name: tuple(metrics.get(step, {}).get(name) for step in run.steps) for name in names}
    return replace(run, table={**run.table, **table}, samples=_samples(records, steps))


def with_rewards(
    run: TrainingRun, path: Path, rewards: Path | None, samples_per_step: int | None
) -> tuple[TrainingRun, str]:
    """Return a run with the records of its reward, and a line on those that its own folder names.

    Args:
        run: the run.
        path: the path that it was read from.
        rewards: the folder of its records; None for those that its folder has or names.
        samples_per_step: responses of a training step; a run of records itself is aligned by it.

    Raises:
        DataError, SourceError: the records cannot be read, or aligned.
        UsageError: there are none, but `samples_per_step` is given.
    """
    if rewards is not None:
        return join_rewards(run, read_rewards(rewards), samples_per_step), ""
    records = own_records(path, run.config)
    if records and records.poll(is_last=True):
        try:
            joined = join_rewards(run, records, samples_per_step)
        except DataError as error:
            return run, f"{path}: without the records of its reward in {records.folder}: {error}"
        return joined, f"{path}: with the records of its reward in {records.folder}."
    if samples_per_step is None:
        return run, ""
    if run.source != SOURCE:
        raise UsageError("--samples-per-step belongs to the records of a reward; add --rewards.")
    return recorded_run(read_rewards(run.path), run.name, samples_per_step), ""


def own_records(folder: Path, config: Mapping[str, Any]) -> RewardRecords | None:
    """Return the records of the reward of a run: where its manifest says, or in the folder itself.

    Without records, they are verl's dumps in the folder that the run's configuration names. None if there
    is neither, or no log beside which they can be shown.
    """
    if not run_logs(folder):
        return None
    if has_records(folder):
        return RewardRecords(folder)
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        base, since = manifest["folder"], datetime.fromisoformat(manifest["created"]).timestamp()
        tree = manifest["tree"]
    except (OSError, ValueError, TypeError, KeyError):
        base, since, tree = folder, 0.0, {}
    try:
        record = Path(base, Path(tree["reward"]["record"]).expanduser())
        if record.is_dir() and has_records(record):
            return RewardRecords(record, since)
    except (TypeError, KeyError, RuntimeError):
        pass
    dumps = config.get("trainer.rollout_data_dir")
    if isinstance(dumps, str) and (named := Path(base, dumps)).is_dir() and has_dumps(named):
        return RewardRecords(named)
    return None


def samples_of_step(run: TrainingRun) -> int:
    """Return the responses of a training step by the run's configuration.

    Raises:
        DataError: the configuration does not have them.
    """
    prompts = run.setting("data.train_batch_size")
    responses = run.setting("actor_rollout_ref.rollout.n")
    if all(isinstance(number, int) and number > 0 for number in (prompts, responses)):
        return int(prompts * responses)
    raise DataError(
        f"{run.path}: the log has no data.train_batch_size and actor_rollout_ref.rollout.n, so "
        "the records cannot be aligned to its steps; add --samples-per-step with their product."
    )


def _rows_by_time(records: RewardRecords) -> Iterator[tuple[int, float, float, int]]:
    """Yield each row in the order of time: its index, its call's start and end, and its training samples."""
    starts, times, validation = (records.columns[name] for name in ("start", "time", "validation"))
    for row in sorted(range(records.count), key=times.__getitem__):
        yield row, starts[row], times[row], 0 if validation[row] else records.weight


def _windows_of_time(records: RewardRecords) -> array[int]:
    """Return the step of each row of a dump, else its window.

    A window ends at a pause after enough training samples: the samples of one step often have one window.
    Calls of validation belong to the window before.
    """
    steps = array("q", map(int, records.columns["time"]))
    if records.is_dumped:
        return steps
    window, count, last = 1, 0, inf
    for row, start, end, samples in _rows_by_time(records):
        is_pause = start > last + PAUSE_SECONDS
        if samples and (count >= MAX_WINDOW_SAMPLES or (is_pause and count >= MIN_WINDOW_SAMPLES)):
            window, count = window + 1, 0
        count, last, steps[row] = count + samples, end, window
    return steps


def _counted_steps(
    records: RewardRecords, samples_per_step: int, first_steps: Sequence[int] = ()
) -> array[int]:
    """Return the step of each row, by counting training samples; -1 where a run did it again.

    Calls of validation belong to the step that was complete before them. `first_steps` has the first step
    of each start of the run, the latest last. Of starts that are not in it, the first begins with step 1,
    and the others continue the count.
    """
    starts = records.starts
    known = dict(zip(reversed(range(len(starts))), reversed(first_steps), strict=False))
    steps = array("q", bytes(8 * records.count))
    attempt, base, count, step, rows = -1, 1, 0, 0, list[int]()
    for row, _, end, samples in _rows_by_time(records):
        now = max(bisect_right(starts, end) - 1, 0)
        if now != attempt:
            attempt, count = now, 0
            base = known.get(now, step + 1)
            for old in rows:
                steps[old] = steps[old] if steps[old] < base else -1
            step = base - 1
        if samples:
            step = base + count // samples_per_step
            count += samples
        steps[row] = step
        rows.append(row)
    return steps


def _clock_steps(
    records: RewardRecords, steps: Sequence[int], times: Sequence[float]
) -> array[int]:
    """Return the step of each row by the times at which steps ended; -1 where a run did it again."""
    starts, numbers = records.starts, array("q", bytes(8 * records.count))
    for row, _, end, _ in _rows_by_time(records):
        i = bisect_right(times, end)
        is_in_log = i < len(times) and bisect_right(starts, end) >= bisect_right(starts, times[i])
        numbers[row] = steps[i] if is_in_log else -1
    return numbers


def _metrics_by_step(records: RewardRecords, steps: array[int]) -> dict[int, dict[str, float]]:
    """Return the metrics of each step, and its time as `clock`."""
    table = records.table(steps)
    by_step: dict[int, dict[str, float]] = {}
    for keys in (["step", "validation"], ["step", "validation", "source"]):
        rows = _aggregate(table, keys)
        counts = Counter((row["step"], row["validation"]) for row in rows)
        for row in sorted(rows, key=lambda row: records.sources[int(row.get("source", 0))]):
            prefix = "rewards-val" if row["validation"] else "rewards"
            metrics = by_step.setdefault(row["step"], {"clock": 0.0})
            if "source" not in row:
                metrics["clock"] = max(row["time_max"], metrics["clock"])
            elif counts[row["step"], row["validation"]] > 1:
                prefix = f"{prefix}@{records.sources[int(row['source'])]}"
            else:
                continue
            metrics.update(_metrics(prefix, row, records.weight))
            if records.is_dumped and "source" not in row:
                metrics |= {name: metrics[f"rewards/{name}"] for name in _SHORT_NAMES}
                metrics["responses"] = metrics["rewards/count"]
                if row["groups"]:
                    metrics |= {"groups": row["groups"], "groups/zero_variance": row["flat"]}
    return by_step


def _aggregate(table: pa.Table, keys: list[str]) -> list[dict[str, Any]]:
    """Return the statistics of the numbers of each group of rows, and those of the prompts in it."""
    import pyarrow.compute as pc

    names = [name for name in table.column_names if name.startswith(VALUE)]
    wanted = [(name, function) for name in names for function in ("mean", "stddev", "min", "max")]
    wanted += [("start", "min"), ("time", "max"), ("time", "count")]
    rows = table.group_by(keys).aggregate(wanted).sort_by([(key, "ascending") for key in keys])
    score = f"{VALUE}score"
    wanted = [("answer", "count_distinct"), ("answer", "count"), (score, "min"), (score, "max")]
    prompts = table.group_by([*keys, "prompt"]).aggregate(wanted)
    prompts = prompts.filter(pc.field("answer_count") > 1)
    groups: dict[tuple[float, ...], list[dict[str, Any]]] = {}
    for prompt in prompts.to_pylist():
        groups.setdefault(tuple(prompt[key] for key in keys), []).append(prompt)
    statistics: list[dict[str, Any]] = rows.to_pylist()
    for row in statistics:
        if group := groups.get(tuple(row[key] for key in keys), []):
            row["flat"] = fmean(it[f"{score}_min"] == it[f"{score}_max"] for it in group)
            row["distinct"] = fmean(
                it["answer_count_distinct"] / it["answer_count"] for it in group
            )
        row["groups"] = len(group)
    return statistics


def _metrics(prefix: str, row: Mapping[str, Any], weight: int) -> Iterator[tuple[str, float]]:
    for column, mean in row.items():
        if not (column.startswith(VALUE) and column.endswith("_mean")) or mean is None:
            continue
        name = column.removesuffix("_mean")
        key = name.removeprefix(VALUE)
        yield f"{prefix}/{key}/mean", mean
        if key not in _MEAN_ONLY:
            yield f"{prefix}/{key}/std", row[f"{name}_stddev"]
        if key == "score":
            yield f"{prefix}/score/min", row[f"{name}_min"]
        if key in _EXTREME:
            yield f"{prefix}/{key}/max", row[f"{name}_max"]
    if row["groups"]:
        yield f"{prefix}/distinct_answers/mean", row["distinct"]
    count = float(row["time_count"] * weight)
    if row["time_max"] > row["start_min"]:
        yield f"{prefix}/calls_per_second", count / (row["time_max"] - row["start_min"])
    yield f"{prefix}/count", count


def _samples(records: RewardRecords, steps: Sequence[int]) -> tuple[ResponseSample, ...]:
    """Return the samples with their steps, in the order of time."""
    times = records.columns["time"]
    rows = sorted(records.samples, key=lambda item: (steps[item[0]], times[item[0]]))
    return tuple(replace(sample, step=steps[row]) for row, sample in rows if steps[row] >= 0)
