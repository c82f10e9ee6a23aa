"""What a reward returned as a table of steps, alone or beside the run's log.

| metric | value |
|---|---|
| `rewards/<key>/mean`, `/std` | of every number of the reward's result: `score`, `acc`, flags, parts |
| `rewards/score/min`, `/max` | lowest and highest score |
| `rewards/states_gold/mean` | share of responses whose answer is the gold, compared as text |
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

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, isnan, sqrt
from pathlib import Path

from rewardkit.errors import DataError, UsageError
from rewardkit.trainlog.reward_files import RewardRecords, Slot, Sums, merge_slots, read_rewards
from rewardkit.trainlog.run_folder import own_records
from rewardkit.trainlog.training_run import (
    MetricColumn,
    ResponseSample,
    TableBuilder,
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
    if samples_per_step and not records.is_dumped:
        numbers = _counted_steps(records, samples_per_step)
    else:
        numbers = _windows_of_time(records)
    folder, builder = (
        str(records.folder),
        TableBuilder(unread=records.unread, examples=list(records.examples)),
    )
    slots = _by_step(records, numbers)
    for step, slot in slots.items():
        metrics, clock = dict(_step_metrics(slot)), None if records.is_dumped else slot.end
        if records.is_dumped:
            metrics |= {name: metrics[f"rewards/{name}"] for name in _SHORT_NAMES}
            metrics |= {"responses": metrics["rewards/count"], **_group_metrics(slot)}
        builder.add(step, metrics, folder, clock)
    source = DUMPS if records.is_dumped else SOURCE
    run = builder.run(name=name or records.folder.name, path=folder, source=source)
    return replace(run, samples=_samples(slots))


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
        numbers = _windows_of_time(records)
    elif is_clock and any(slot.end <= times[-1] for slot in records.slots):
        numbers = _clock_steps(records, run.steps, times)
    else:
        first = max(run.steps[0] - stride(run.steps) + 1, 1)
        starts = [first, *(restart.step for restart in run.restarts)]
        numbers = _counted_steps(records, samples_per_step or samples_of_step(run), starts)
    table: dict[str, list[float | None]] = {}
    place_of = {step: place for place, step in enumerate(run.steps)}
    slots = _by_step(records, [step if step in place_of else -1 for step in numbers])
    for step, slot in slots.items():
        for metric, value in _step_metrics(slot):
            table.setdefault(metric, [None] * len(run.steps))[place_of[step]] = value
    columns: dict[str, MetricColumn] = {metric: tuple(column) for metric, column in table.items()}
    return replace(run, table={**run.table, **columns}, samples=_samples(slots))


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
    if records and records.poll(is_last=True) and records.slots:
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


def _by_step(records: RewardRecords, numbers: Sequence[int]) -> dict[int, Slot]:
    pairs = zip(numbers, records.slots, strict=True)
    return merge_slots(pair for pair in pairs if pair[0] >= 0)


def _windows_of_time(records: RewardRecords) -> list[int]:
    """Return the step of each slot of a dump, else its window.

    A window ends at a pause after enough training samples. The samples of one step often have one window. Calls of validation belong to the window before.
    """
    if records.is_dumped:
        return [int(slot.start) for slot in records.slots]
    numbers, number, count, last = [], 1, 0, inf
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
    starts, numbers = records.generations, []
    for slot in records.slots:
        place = bisect_left(times, (slot.start + slot.end) / 2)
        is_in_log = place < len(times) and (
            bisect_right(starts, slot.end) >= bisect_right(starts, times[place])
        )
        numbers.append(steps[place] if is_in_log else -1)
    return numbers


def _step_metrics(slot: Slot) -> Iterator[tuple[str, float]]:
    for is_validation, prefix in ((False, "rewards"), (True, "rewards-val")):
        sources = {
            name: sums for (name, kind), sums in slot.sources.items() if kind is is_validation
        }
        if sources:
            yield from _metrics(prefix, _whole(sources.values()))
        if len(sources) > 1:
            for name, sums in sorted(sources.items()):
                yield from _metrics(f"{prefix}@{name}", sums)


def _whole(parts: Iterable[Sums]) -> Sums:
    whole = Sums()
    for sums in parts:
        whole.include(sums)
    return whole


def _metrics(prefix: str, sums: Sums) -> Iterator[tuple[str, float]]:
    for key, total in sums.totals.items():
        mean = total.sum / total.n
        yield f"{prefix}/{key}/mean", mean
        if key not in _MEAN_ONLY:
            yield f"{prefix}/{key}/std", sqrt(max(total.squares / total.n - mean * mean, 0.0))
        if key == "score":
            yield f"{prefix}/score/min", total.least
        if key in _EXTREME:
            yield f"{prefix}/{key}/max", total.most
    if groups := sums.shared_groups:
        shares = [len(group.answers) / group.n for group in groups]
        yield f"{prefix}/distinct_answers/mean", sum(shares) / len(shares)
    if sums.end > sums.start:
        yield f"{prefix}/calls_per_second", sums.n / (sums.end - sums.start)
    yield f"{prefix}/count", float(sums.n)


def _group_metrics(slot: Slot) -> dict[str, float]:
    groups = _whole(slot.sources.values()).shared_groups
    flat = sum(group.least == group.most for group in groups)
    return {"groups": len(groups), "groups/zero_variance": flat / len(groups)} if groups else {}


def _samples(slots: Mapping[int, Slot]) -> tuple[ResponseSample, ...]:
    return tuple(
        replace(sample, step=step)
        for step, slot in slots.items()
        for (_, is_validation), sums in slot.sources.items()
        for sample in sums.samples
        if not is_validation and not isnan(sample.score)
    )
