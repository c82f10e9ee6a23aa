"""What a reward returned as a table of steps, alone or beside the run's log.

| metric | value |
|---|---|
| `rewards/<key>/mean`, `/std` | of every number of the reward's result: `score`, `acc`, flags, parts |
| `rewards/score/min`, `/max` | lowest and highest score |
| `rewards/states_gold/mean` | share of responses whose answer is the gold, compared as text |
| `rewards/score_with_gold/mean`, `rewards/score_without_gold/mean` | score of those, and of the others |
| `rewards/response_characters/mean`, `/std`, `/max` | length of the response |
| `rewards/distinct_answers/mean` | distinct answers of a prompt divided by its responses |
| `rewards/several_boxes/mean`, `rewards/copied_prompt/mean` | shares of the responses whose text is there |
| `rewards/calls_per_second` | calls divided by the seconds in which there were any |
| `rewards/seconds/mean`, `/max` | of a call |
| `rewards/count` | calls |

Rows of which `extra_info.split` is not `train` have the prefix `rewards-val/`. A run with several
data sources also has `rewards@<data_source>/` and `rewards-val@<data_source>/`.

A reward does not know the step of training. A dump is of one step. Calls in records get their steps from
the log's clock, if it has one; otherwise from counting: step k has the k-th `samples_per_step` samples of
training.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, sqrt
from pathlib import Path

from rewardkit.errors import DataError, UsageError
from rewardkit.trainlog.follow import LogTail
from rewardkit.trainlog.reward_files import (
    SLOT_SECONDS,
    RewardRecords,
    RewardTail,
    Slot,
    Sums,
    has_dumps,
    has_records,
    read_rewards,
)
from rewardkit.trainlog.run_folder import run_logs, run_records
from rewardkit.trainlog.table_builder import TableBuilder
from rewardkit.trainlog.training_run import (
    MetricColumn,
    ResponseSample,
    TrainingRun,
    stride,
)

#: Kinds of a run that has records, or dumps, only.
SOURCE, DUMPS = "rewards", "rollouts"

#: Training samples of a window, if the samples of a step are unknown.
MIN_WINDOW_SAMPLES, MAX_WINDOW_SAMPLES = 128, 8_192

#: Seconds without a call that end a window: the trainer computes its update.
PAUSE_SECONDS = 3.0

#: Numbers of which there is also the most, and no spread.
_EXTREME = frozenset({"score", "response_characters", "seconds"})
_MEAN_ONLY = frozenset({"several_boxes", "copied_prompt", "states_gold", "seconds"})


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
    if records.is_dumped:
        numbers = list(records.steps)
    elif samples_per_step:
        numbers = _counted_steps(records, samples_per_step)
    else:
        numbers = _windows_of_time(records)
    builder = TableBuilder(unread=records.unread, examples=list(records.examples))
    steps = _merge(records.slots, numbers)
    for step, slot, seconds in steps:
        metrics = dict(_step_metrics(slot, seconds))
        if records.is_dumped:
            metrics |= _dump_metrics(slot)
        builder.add(step, metrics, records.folder, None if records.is_dumped else slot.end)
    run = builder.run(
        name=name or Path(records.folder).name,
        path=records.folder,
        source=DUMPS if records.is_dumped else SOURCE,
    )
    return replace(run, samples=_samples(steps))


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
        numbers = list(records.steps)
    elif is_clock and any(slot.end <= times[-1] for slot in records.slots):
        numbers = _clock_steps(records, run.steps, times)
    else:
        first = max(run.steps[0] - stride(run.steps) + 1, 1)
        starts = [first, *(restart.step for restart in run.restarts)]
        numbers = _counted_steps(records, samples_per_step or samples_of_step(run), starts)
    table: dict[str, list[float | None]] = {}
    place_of = {step: place for place, step in enumerate(run.steps)}
    steps = [each for each in _merge(records.slots, numbers) if each[0] in place_of]
    for step, slot, seconds in steps:
        for metric, value in _step_metrics(slot, seconds):
            table.setdefault(metric, [None] * len(run.steps))[place_of[step]] = value
    columns: dict[str, MetricColumn] = {metric: tuple(column) for metric, column in table.items()}
    return replace(run, table={**run.table, **columns}, samples=_samples(steps))


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
        return join_rewards(run, read_rewards(rewards), samples_per_step)
    if samples_per_step is None:
        return run
    if run.source != SOURCE:
        raise UsageError("--samples-per-step belongs to the records of a reward; add --rewards.")
    return recorded_run(read_rewards(run.path), run.name, samples_per_step)


def with_own_records(
    run: TrainingRun, path: Path, samples_per_step: int | None
) -> tuple[TrainingRun, str]:
    """Return a run with the records that its folder has or names, and a line that says so.

    The run is unchanged, and the line "", if there are none.

    Raises:
        DataError, SourceError: the records cannot be read.
        UsageError: there are none, but `samples_per_step` is given.
    """
    own = run_records(path, run.config)
    records = _since(read_rewards(own.folder), own.since) if own else None
    if own is None or records is None or not records.slots:
        return with_rewards(run, None, samples_per_step), ""
    try:
        joined = join_rewards(run, records, samples_per_step)
    except DataError as error:
        return run, f"{path}: without the records of its reward in {own.folder}: {error}"
    return joined, f"{path}: with the records of its reward in {own.folder}."


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


@dataclass
class RunTail:
    """A run in progress that grows: its log, the records of its reward, or both.

    Attributes:
        path: its log, the folder that `rewardkit train` wrote, or a folder of records or dumps.
        rewards: the folder of its records, if `path` is its log.
        samples_per_step: responses of a training step, see `recorded_run`.
        is_missing: whether nothing existed at the last poll.
    """

    path: Path
    rewards: Path | None = None
    samples_per_step: int | None = None
    is_missing: bool = False
    _log: LogTail | None = None
    _records: RewardTail | None = None
    _since: float = 0.0
    _run: TrainingRun | None = field(default=None, repr=False)
    _recorded: RewardRecords | None = field(default=None, repr=False)

    @property
    def rewrites(self) -> int:
        """How often the log or a file of records was replaced."""
        return sum(tail.rewrites for tail in (self._log, self._records) if tail)

    def poll(self) -> TrainingRun | None:
        """Return the run so far if it has grown and has a step, else None.

        Raises:
            RewardkitError: as `LogTail.poll` and `RewardTail.poll`.
        """
        self._find()
        log = self._log.poll() if self._log else None
        self.is_missing = self._log.is_missing if self._log else not self.path.exists()
        records = self._records.poll() if self._records else None
        self._run, self._recorded = log or self._run, records or self._recorded
        if log is None and records is None:
            return None
        try:
            if self._log is None:
                assert self._recorded is not None  # noqa: S101 - nothing else has grown
                return recorded_run(self._recorded, self.path.stem, self.samples_per_step)
            if self._run is None or self._recorded is None:
                return self._run
            recorded = _since(self._recorded, self._since)
            return join_rewards(self._run, recorded, self.samples_per_step)
        except DataError:
            if self.rewards:
                raise
            return (
                self._run
            )  # no step has ended, or a run's own records cannot be aligned to its log

    def _find(self) -> None:
        logs = run_logs(self.path)
        config = self._run.config if self._run else {}
        own = None if self._records or self.rewards else run_records(self.path, config)
        if own:
            self._records, self._since = RewardTail(own.folder), own.since
        folder = self.rewards or self.path
        is_there = self._records is None and folder.is_dir() and not (logs and not self.rewards)
        if is_there and (has_records(folder) or has_dumps(folder)):
            self._records = RewardTail(folder)
        is_folder_of_records = self._records is not None and self._records.folder == self.path
        if self._log is None and self.path.exists() and (logs or not is_folder_of_records):
            self._log = LogTail(logs[0] if logs else self.path)


def _since(records: RewardRecords, since: float) -> RewardRecords:
    if records.is_dumped:
        return records
    return replace(
        records,
        slots=tuple(slot for slot in records.slots if slot.start >= since),
        generations=tuple(start for start in records.generations if start >= since),
    )


def _windows_of_time(records: RewardRecords) -> list[int]:
    """Return the window of each slot: it ends at a pause after enough training samples.

    The samples of one step often have one window. Calls of validation belong to the window before.
    """
    numbers, number, count, last = [], 1, 0, float("inf")
    for slot in records.slots:
        training = slot.count(is_validation=False)
        is_pause = slot.start > last + PAUSE_SECONDS
        if training and (count >= MAX_WINDOW_SAMPLES or (is_pause and count >= MIN_WINDOW_SAMPLES)):
            number, count = number + 1, 0
        count += training
        last = slot.end
        numbers.append(number)
    return numbers


def _counted_steps(
    records: RewardRecords, samples_per_step: int, first_steps: Sequence[int] = ()
) -> list[int]:
    """Return the step of each slot, found by counting training samples; -1 where a run did it again.

    Calls of validation belong to the step that was complete before them. `first_steps` has the first step
    of each start of the run, the latest last. Of starts that are not in it, the first begins with step 1,
    and the others continue the count.
    """
    starts = records.generations
    known = dict(zip(reversed(range(len(starts))), reversed(first_steps), strict=False))
    steps: list[int] = []
    generation, base, count, step = -1, 1, 0, 0
    for slot in records.slots:
        now = max(bisect_right(starts, slot.end) - 1, 0)
        if now != generation:
            generation, count = now, 0
            base = known.get(now, step + 1)
            steps = [old if old < base else -1 for old in steps]
            step = base - 1
        training = slot.count(is_validation=False)
        if training:
            step = base + int((count + training / 2) // samples_per_step)
            count += training
        steps.append(step)
    return steps


def _clock_steps(records: RewardRecords, steps: Sequence[int], times: Sequence[float]) -> list[int]:
    """Return the step of each slot by the times at which steps ended; -1 where a run did it again."""
    starts = records.generations
    numbers = []
    for slot in records.slots:
        place = bisect_left(times, (slot.start + slot.end) / 2)
        is_in_log = place < len(times)
        is_repeated = is_in_log and bisect_right(starts, slot.end) < bisect_right(
            starts, times[place]
        )
        numbers.append(steps[place] if is_in_log and not is_repeated else -1)
    return numbers


def _merge(
    slots: Sequence[Slot], numbers: Sequence[int]
) -> list[tuple[int, Slot, Mapping[bool, float]]]:
    merged: dict[int, Slot] = {}
    seconds: dict[int, dict[bool, float]] = {}
    last = {False: float("-inf"), True: float("-inf")}
    for slot, number in zip(slots, numbers, strict=True):
        if number < 0:
            continue
        whole = merged.setdefault(number, Slot(slot.start, slot.end))
        whole.include(slot)
        spent = seconds.setdefault(number, {False: 0.0, True: 0.0})
        for kind in {kind for _, kind in slot.sources}:
            begin = last[kind] if slot.start - last[kind] < SLOT_SECONDS else slot.start
            spent[kind] += max(slot.end - begin, 0.0)
            last[kind] = max(last[kind], slot.end)
    return [(number, merged[number], seconds[number]) for number in sorted(merged)]


def _step_metrics(slot: Slot, seconds: Mapping[bool, float]) -> Iterator[tuple[str, float]]:
    for is_validation, prefix in ((False, "rewards"), (True, "rewards-val")):
        sources = {
            name: sums for (name, kind), sums in slot.sources.items() if kind is is_validation
        }
        if not sources:
            continue
        whole = Sums()
        for sums in sources.values():
            whole.include(sums)
        yield from _metrics(prefix, whole, seconds[is_validation])
        if len(sources) > 1:
            for name, sums in sorted(sources.items()):
                yield from _metrics(f"{prefix}@{name}", sums, seconds[is_validation])


def _metrics(prefix: str, sums: Sums, seconds: float) -> Iterator[tuple[str, float]]:
    for key, total in sums.totals.items():
        mean = total.sum / total.count
        yield f"{prefix}/{key}/mean", mean
        if key not in _MEAN_ONLY:
            yield f"{prefix}/{key}/std", sqrt(max(total.squares / total.count - mean * mean, 0.0))
        if key == "score":
            yield f"{prefix}/score/min", total.least
        if key in _EXTREME:
            yield f"{prefix}/{key}/max", total.most
    if groups := sums.shared_groups:
        shares = [len(group.answers) / group.count for group in groups]
        yield f"{prefix}/distinct_answers/mean", sum(shares) / len(shares)
    if seconds > 0:
        yield f"{prefix}/calls_per_second", sums.count / seconds
    yield f"{prefix}/count", float(sums.count)


def _dump_metrics(slot: Slot) -> dict[str, float]:
    whole = Sums()
    for sums in slot.sources.values():
        whole.include(sums)
    score, length = whole.totals["score"], whole.totals["response_characters"]
    metrics = {
        "responses": whole.count,
        "score/mean": score.sum / score.count,
        "score/max": score.most,
        "score/min": score.least,
        "response_characters/mean": length.sum / length.count,
        "response_characters/max": length.most,
    }
    if groups := whole.shared_groups:
        metrics["groups"] = len(groups)
        flat = sum(group.least == group.most for group in groups)
        metrics["groups/zero_variance"] = flat / len(groups)
    return metrics


def _samples(
    steps: Sequence[tuple[int, Slot, Mapping[bool, float]]],
) -> tuple[ResponseSample, ...]:
    return tuple(
        replace(sample, step=step)
        for step, slot, _ in steps
        for (_, is_validation), sums in slot.sources.items()
        for sample in sums.samples
        if not is_validation and not isnan(sample.score)
    )
