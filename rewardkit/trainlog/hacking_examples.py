"""Responses of a run before and after the onset of reward hacking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rewardkit.trainlog.conditions import RuleEvidence
from rewardkit.trainlog.phrases import phrase_in_text
from rewardkit.trainlog.training_run import ResponseSample, TrainingRun

#: Examples on each side of the onset.
MAX_EXAMPLES = 4

#: Characters before and after a phrase that an example has.
CONTEXT_CHARACTERS = 600


@dataclass(frozen=True)
class ResponseExample:
    """A response with the phrase that it is an example of.

    Attributes:
        sample: the response.
        before: its text before the phrase; all of it if it has none.
        phrase: the phrase as the response writes it.
        after: its text after the phrase.
    """

    sample: ResponseSample
    before: str
    phrase: str = ""
    after: str = ""


def examples_of(
    run: TrainingRun, evidence: RuleEvidence, most: int = MAX_EXAMPLES
) -> tuple[list[ResponseExample], list[ResponseExample]]:
    """Return examples from before the onset and from after it, those with high scores first.

    Those after it have the phrase or the flag that the evidence names, and those before it do not
    have the phrase.
    """
    onset = evidence.onset
    if onset is None:
        return [], []
    before = [sample for sample in run.samples if sample.step < onset.low]
    after = [sample for sample in run.samples if sample.step > onset.high]
    if evidence.phrase:
        phrase = evidence.phrase
        after = [sample for sample in after if phrase_in_text(sample.response, phrase)]
        before = [sample for sample in before if not phrase_in_text(sample.response, phrase)]
    for key in _keys(evidence):
        after = [sample for sample in after if sample.parts.get(key)] or after
    early, late = _different_prompts(reversed(before)), _different_prompts(after)
    return (
        [_example(sample, "") for sample in _best(early, most)],
        [_example(sample, evidence.phrase) for sample in _best(late, most)],
    )


def example_values(run: TrainingRun, evidence: RuleEvidence) -> dict[str, list[dict[str, Any]]]:
    """Return the examples as plain values for JSON."""
    before, after = examples_of(run, evidence)
    return {
        name: [
            {"step": it.sample.step, "score": it.sample.score, "response": it.sample.response}
            for it in examples
        ]
        for name, examples in (("before", before), ("after", after))
    }


def _keys(evidence: RuleEvidence) -> Iterator[str]:
    for metric in evidence.metrics:
        key = metric.removesuffix("/mean").rpartition("/")[2]
        if key in ("timeout", "error", "no_answer"):
            yield key


def _different_prompts(
    samples: Iterator[ResponseSample] | Sequence[ResponseSample],
) -> list[ResponseSample]:
    by_prompt: dict[tuple[str, str], ResponseSample] = {}
    for sample in samples:
        by_prompt.setdefault((sample.data_source, sample.index), sample)
        if len(by_prompt) == 64:
            break
    return list(by_prompt.values())


def _best(samples: Sequence[ResponseSample], most: int) -> list[ResponseSample]:
    return sorted(samples, key=lambda sample: -sample.score)[:most]


def _example(sample: ResponseSample, phrase: str) -> ResponseExample:
    text = phrase_in_text(sample.response, phrase) if phrase else ""
    if not text:
        return ResponseExample(sample, sample.response)
    before, _, after = sample.response.partition(text)
    if len(before) > CONTEXT_CHARACTERS:
        before = f"… {before[-CONTEXT_CHARACTERS:]}"
    if len(after) > CONTEXT_CHARACTERS:
        after = f"{after[:CONTEXT_CHARACTERS]} …"
    return ResponseExample(sample, before, text, after)
