"""Responses of a run before and after the onset of reward hacking."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from rewardkit.trainlog.conditions import RuleEvidence
from rewardkit.trainlog.phrases import phrase_in_text
from rewardkit.trainlog.training_run import ResponseSample, TrainingRun

#: Examples on each side of the onset, and prompts from whose responses they are chosen.
MAX_EXAMPLES, MAX_PROMPTS = 4, 64

#: Characters before and after a phrase that an example has.
CONTEXT_CHARACTERS = 600

#: Flags of a result that examples after the onset have, if the evidence names them.
_FLAGS = ("timeout", "error", "no_answer")


class ResponseExample(NamedTuple):
    """A response with its text before a phrase (all of it if it has none), the phrase, and the rest."""

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
    onset, phrase = evidence.onset, evidence.phrase
    if onset is None:
        return [], []
    has_phrase = [bool(phrase and phrase_in_text(it.response, phrase)) for it in run.samples]
    marked = list(zip(run.samples, has_phrase, strict=True))
    before = [it for it, has in reversed(marked) if it.step < onset.low and not has]
    after = [it for it, has in marked if it.step > onset.high and (has or not phrase)]
    for flag in _FLAGS:
        if any(metric.endswith(f"/{flag}/mean") for metric in evidence.metrics):
            after = [it for it in after if it.parts.get(flag)] or after
    sides = (before, ""), (after, phrase)
    early, late = ([_example(it, text) for it in _best(side, most)] for side, text in sides)
    return early, late


def example_values(run: TrainingRun, evidence: RuleEvidence) -> dict[str, list[dict[str, Any]]]:
    """Return the examples as plain values for JSON."""
    fields = ("step", "score", "response")
    return {
        name: [{field: getattr(it.sample, field) for field in fields} for it in examples]
        for name, examples in zip(("before", "after"), examples_of(run, evidence), strict=True)
    }


def _best(samples: Iterable[ResponseSample], most: int) -> list[ResponseSample]:
    by_prompt: dict[tuple[str, str], ResponseSample] = {}
    for sample in samples:
        if len(by_prompt) < MAX_PROMPTS:
            by_prompt.setdefault((sample.data_source, sample.index), sample)
    return sorted(by_prompt.values(), key=lambda sample: -sample.score)[:most]


def _example(sample: ResponseSample, phrase: str) -> ResponseExample:
    text = phrase and phrase_in_text(sample.response, phrase)
    if not text:
        return ResponseExample(sample, sample.response)
    before, _, after = sample.response.partition(text)
    if len(before) > CONTEXT_CHARACTERS:
        before = f"… {before[-CONTEXT_CHARACTERS:]}"
    if len(after) > CONTEXT_CHARACTERS:
        after = f"{after[:CONTEXT_CHARACTERS]} …"
    return ResponseExample(sample, before, text, after)
