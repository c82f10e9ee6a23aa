"""Divides the records of a run into windows: steps of training, or stretches of time.

A reward does not know the step of training. Steps come from the log's clock, if it has one;
otherwise from counting: step k has the k-th `samples_per_step` samples of training.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rewardkit.recorder.read import RewardRecords
from rewardkit.recorder.slots import RewardSample, Slot, SourceTotals

#: Training samples of a window, if the samples of a step are unknown.
MIN_WINDOW_SAMPLES = 128

#: Training samples at which a window ends even without a pause.
MAX_WINDOW_SAMPLES = 8_192

#: Seconds without a call that end a window: the trainer computes its update.
PAUSE_SECONDS = 3.0

#: Samples of a window and a data source.
WINDOW_SAMPLES = 16


@dataclass(frozen=True)
class RewardWindow:
    """What was recorded during a step of training, or in a stretch of time.

    Attributes:
        step: the step, or the number of the window from 1.
        start: time of the first call, in seconds since 1970.
        end: time of the last call.
        seconds: seconds in which calls of training were made, without pauses.
        validation_seconds: the same for calls of validation.
        sources: totals by data source and by whether its rows are of validation.
    """

    step: int
    start: float
    end: float
    seconds: float
    validation_seconds: float
    sources: dict[tuple[str, bool], SourceTotals]

    @property
    def samples(self) -> list[RewardSample]:
        """Samples of responses, in order of time."""
        samples = [sample for totals in self.sources.values() for sample in totals.samples]
        ordered = sorted(samples, key=lambda sample: sample.time)
        return [replace(sample, step=self.step) for sample in ordered]


def windows_of_time(records: RewardRecords) -> list[RewardWindow]:
    """Return windows that end at a pause after at least `MIN_WINDOW_SAMPLES` training samples.

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
    return _merge(records.slots, numbers)


def windows_of_steps(
    records: RewardRecords, samples_per_step: int, first_steps: Sequence[int] = ()
) -> list[RewardWindow]:
    """Return a window for each step of training, found by counting training samples.

    Calls of validation belong to the step that was complete before them, so those before training
    belong to the step before the first.

    Args:
        records: the records.
        samples_per_step: prompts of a step times responses to each.
        first_steps: the first step of each start of the run, the latest last; earlier steps of the
            same number are dropped, because the run did them again. Of starts that are not in it,
            the first begins with step 1, and the others continue the count.
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
    return _merge(records.slots, steps)


def windows_of_clock(
    records: RewardRecords, steps: Sequence[int], times: Sequence[float]
) -> list[RewardWindow]:
    """Return a window for each step of a log that has the time at which each step ended.

    What a later start of the run did again is dropped, and so is the step in progress.
    """
    starts = records.generations
    numbers = []
    for slot in records.slots:
        place = bisect_left(times, (slot.start + slot.end) / 2)
        is_in_log = place < len(times)
        is_repeated = is_in_log and bisect_right(starts, slot.end) < bisect_right(
            starts, times[place]
        )
        numbers.append(steps[place] if is_in_log and not is_repeated else -1)
    return _merge(records.slots, numbers)


def _merge(slots: Sequence[Slot], numbers: Sequence[int]) -> list[RewardWindow]:
    """Return a window for each number, in their order; slots of a negative number are dropped."""
    members: dict[int, list[Slot]] = {}
    for slot, number in zip(slots, numbers, strict=True):
        if number >= 0:
            members.setdefault(number, []).append(slot)
    return [_window(number, members[number]) for number in sorted(members)]


def _window(number: int, slots: Sequence[Slot]) -> RewardWindow:
    whole = Slot(slots[0].start, slots[0].end)
    for slot in slots:
        whole.include(slot, max_samples=WINDOW_SAMPLES)
    return RewardWindow(
        step=number,
        start=whole.start,
        end=whole.end,
        seconds=_seconds(slots, is_validation=False),
        validation_seconds=_seconds(slots, is_validation=True),
        sources=whole.sources,
    )


def _seconds(slots: Sequence[Slot], *, is_validation: bool) -> float:
    """Return the seconds that slots with such calls cover; those that overlap count once."""
    seconds, last = 0.0, float("-inf")
    for slot in slots:
        if slot.count(is_validation=is_validation):
            seconds += max(slot.end - max(slot.start, last), 0.0)
            last = max(last, slot.end)
    return seconds
