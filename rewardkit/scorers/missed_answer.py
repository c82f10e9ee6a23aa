r"""What a scorer read instead of the gold, and which other setting would have read the gold.

The scorer is asked again with every documented choice of its options, one at a time, and, if none
reads the gold, the other rule scorers whose mark is in the response: at most `MAX_CALLS` of either.
A custom scorer runs in a process of its own for each call.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, TypeAlias

from rewardkit.answers.equal import compare, parse_answer
from rewardkit.answers.extract import (
    boxes,
    final_answer,
    gold_answer,
    last_hash,
    last_phrase,
    last_tag,
    text_after_thought,
)
from rewardkit.answers.parsing.tree import Node, symbols
from rewardkit.answers.type_rules import value_type
from rewardkit.errors import UsageError
from rewardkit.scorers.call import call_scorer
from rewardkit.scorers.gold import explain_bad_gold
from rewardkit.scorers.math import gold_letters, question_of
from rewardkit.scorers.options import (
    asks_server,
    effective_settings,
    inner_function,
    other_settings,
)
from rewardkit.scorers.score import Score, Scorer, Status

#: Most calls of a scorer with other settings, and the seconds after which no further call is made.
MAX_CALLS = 12
MAX_SECONDS = 60.0
#: Characters of an answer or a gold that a sentence quotes.
MAX_QUOTE = 60
#: Characters at the end of a response that are searched for its last number.
TAIL_CHARS = 300

#: A response, its gold and the row's other fields.
Sample: TypeAlias = tuple[str, str, Mapping[str, Any] | None]
OpenScorer: TypeAlias = Callable[[str, Mapping[str, Any]], AbstractContextManager[Scorer]]

_NUMBER = re.compile(r"-?\d(?:[\d,]*\d)?(?:\.\d+)?")

_PLACES = {
    "box": r"in the last \boxed{}",
    "tag": "in <answer>",
    "phrase": "after `the answer is` or `Answer:`",
    "hash": "after ####",
    "line": "in the last line",
    "sentence": "in the last sentence",
}

_MATH_RULE = (
    r"the last \boxed{}, <answer>, the text after `the answer is`, `Answer:` or ####, or a result in "
    "the last line or sentence"
)


@dataclass(frozen=True)
class OtherReading:
    """A setting with which the response is correct.

    Attributes:
        scorer: the name of the scorer.
        options: its options; empty for the defaults.
        pred: the answer that it reads.
    """

    scorer: str
    options: Mapping[str, Any]
    pred: str


@dataclass(frozen=True)
class MissedAnswer:
    """Why a response is not correct.

    Attributes:
        reason: what was read, and why it is not the gold.
        candidates: the texts of the response that could be its answer, by their marks.
        other_readings: the settings with which the response is correct.
        advice: the other readings as sentences; "" if a model server judges.
    """

    reason: str
    candidates: Mapping[str, str]
    other_readings: tuple[OtherReading, ...]
    advice: str


def explain_miss(
    name: str,
    options: Mapping[str, Any],
    scorer: Scorer,
    score: Score,
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None,
    open_other: OpenScorer,
) -> MissedAnswer:
    """Return why a response is not correct, and which settings would have read the gold.

    Args:
        name: the name of the scorer.
        options: its options.
        scorer: the scorer with these options.
        score: its score of the response.
        response: the model's text.
        ground_truth: the gold answer.
        extra_info: the row's other fields.
        open_other: opens a scorer by its name and options, as `isolated.open_scorer` does.
    """
    candidates = answer_candidates(response)
    sample = (response, ground_truth, extra_info)
    reason = _reason(name, scorer, score, sample, candidates)
    if asks_server(scorer):
        return MissedAnswer(reason, candidates, (), "")

    own = [(name, {**options, option: value}) for option, value in other_settings(scorer)]
    others: list[tuple[str, Mapping[str, Any]]] = [
        (other, {}) for other in _scorers_with_mark(candidates, ground_truth) if other != name
    ]
    deadline = time.monotonic() + MAX_SECONDS
    readings = _correct_readings(own, sample, open_other, deadline)
    readings = readings or _correct_readings(others, sample, open_other, deadline)
    if not readings and time.monotonic() > deadline:
        advice = f"Other options and scorers could not all be tried within {MAX_SECONDS:g} s."
    else:
        advice = _advice(name, options, readings, bool(own))
    return MissedAnswer(reason, candidates, readings, advice)


def answer_candidates(response: str) -> dict[str, str]:
    """Return the texts of a response that could be its answer, by their marks."""
    numbers = _NUMBER.findall(response[-TAIL_CHARS:])
    texts = {
        "\\boxed{}": ", ".join(boxes(response)),
        "<answer>": last_tag(response),
        "the answer is": last_phrase(response),
        "####": last_hash(response),
        "the last number": numbers[-1] if numbers else "",
    }
    return {mark: text for mark, text in texts.items() if text}


def _correct_readings(
    settings: Iterable[tuple[str, Mapping[str, Any]]],
    sample: Sample,
    open_other: OpenScorer,
    deadline: float,
) -> tuple[OtherReading, ...]:
    """Return the readings of the scorers and options that make the response correct."""
    readings = []
    for name, options in islice(settings, MAX_CALLS):
        if time.monotonic() > deadline:
            break
        try:
            with open_other(name, options) as scorer:
                result = call_scorer(scorer, *sample)
        except UsageError:  # the options exclude each other, or a package is not installed
            continue
        if isinstance(result, Score) and result.correct:
            readings.append(OtherReading(name, options, result.pred))
    return tuple(readings)


def _scorers_with_mark(candidates: Mapping[str, str], ground_truth: str) -> Iterator[str]:
    """Yield the rule scorers whose mark is in the response."""
    if candidates.keys() - {"the last number"}:
        yield "math"
    if "####" in candidates:
        yield "gsm8k"
    if "the answer is" in candidates:
        yield "math_dapo"
    if gold_letters(ground_truth) is not None:
        yield "mcq"
    if "<answer>" in candidates:
        yield "qa"


def _advice(
    name: str, options: Mapping[str, Any], readings: tuple[OtherReading, ...], has_options: bool
) -> str:
    own = [reading for reading in readings if reading.scorer == name]
    sentences = [
        f"{_changes(reading.options, options)} {_correctness(reading.pred)}." for reading in own
    ]
    if own:
        return " ".join(sentences)
    sentences += ["No other option of this scorer reads the gold."] if has_options else []
    sentences += [
        f"The scorer {reading.scorer} {_correctness(reading.pred)}." for reading in readings
    ]
    return " ".join(sentences or ["No other rule scorer reads the gold here."])


def _correctness(pred: str) -> str:
    return f"reads {_quote(pred)}, which is correct" if pred else "makes the response correct"


def _changes(options: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    return " ".join(
        setting_text(name, value) for name, value in options.items() if before.get(name) != value
    )


def setting_text(name: str, value: Any) -> str:
    """Return an option as the command line takes it: `method=robust`."""
    return f"{name}={value if isinstance(value, str) else json.dumps(value)}"


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return f"`{line[:MAX_QUOTE]}...`" if len(line) > MAX_QUOTE else f"`{line}`"


def _reason(
    name: str,
    scorer: Scorer,
    score: Score,
    sample: Sample,
    candidates: Mapping[str, str],
) -> str:
    response, ground_truth, extra_info = sample
    if score.status is Status.BAD_GROUND_TRUTH:
        why = explain_bad_gold(ground_truth, scorer)
        return f"The gold {_quote(ground_truth)} cannot be scored{why}."
    if score.status is Status.NO_ANSWER:
        rule = f"{name} reads {_MATH_RULE}" if name == "math" else reading_rule(name, scorer)
        if not response.strip():
            return "No answer was read: the response is empty."
        marks = "; ".join(
            _quote(f"{mark} {text}") if mark == "####" else f"{mark} {_quote(text)}"
            for mark, text in candidates.items()
        )
        rule = f": {rule}" if rule else ""
        return f"No answer was read{rule}. The response has {marks or 'no mark and no number'}."
    if score.status is Status.FAILED:
        return "The scorer has no verdict; its first message on stderr says why."
    if not score.pred:
        return f"The scorer does not say what it read; the gold is {_quote(ground_truth)}."
    reason = f"{_quote(score.pred)} was read{_place(name, response, ground_truth)}; the gold is {_quote(ground_truth)}."
    if name != "math":
        return f"{reason}{_STATUS_REASONS.get(score.status, '')}"
    return f"{reason} {_math_reason(score, gold_answer(ground_truth), question_of(extra_info))}"


_STATUS_REASONS = {
    Status.AMBIGUOUS_ANSWER: " The answer states several values.",
    Status.UNPARSED_ANSWER: " The answer cannot be read as a value.",
}


def _place(name: str, response: str, ground_truth: str) -> str:
    answer = final_answer(response, gold_answer(ground_truth)) if name == "math" else None
    if answer and answer.mark == "box" and len(boxes(text_after_thought(response))) > 1:
        return r" in the last run of \boxed{}"
    return f" {_PLACES[answer.mark]}" if answer else ""


def reading_rule(name: str, scorer: Scorer) -> str:
    """Return what a scorer reads with its settings, from the table in its module's docstring.

    The result is "" if the module has no such table. The first column has the values of one option,
    or settings such as `strict_box=True`; the second column is `reads`.
    """
    text = str(getattr(inner_function(scorer), "__globals__", {}).get("__doc__") or "")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    if len(rows) < 2 or rows[0][1] != "reads":
        return ""
    settings = effective_settings(scorer)
    option = rows[0][0]
    for first, rule, *_ in rows[1:]:
        setting = first.replace('"', "").partition(" (")[0].strip("`")
        key, _, value = (f"{option}={setting}" if option in settings else setting).partition("=")
        if key in settings and str(settings[key]) == value:
            return f"with {setting_text(key, settings[key])}, {name} reads {rule}"
    return f"{name} reads {rows[1][1]}"


def _math_reason(score: Score, gold: str, question: str) -> str:
    """Return in words how both sides were parsed, and why they are not equal."""
    if gold_letters(gold) is not None:
        return "The gold is a choice, so the letters are compared."
    outcome = compare(score.pred, gold, question).outcome
    pred_node, gold_node = (
        reading.value if (reading := parse_answer(text)) else None for text in (score.pred, gold)
    )
    if gold_node is None:
        return "The gold cannot be parsed as mathematics, so only the same text equals it."
    if pred_node is None:
        return (
            f"The answer cannot be parsed as mathematics; the gold is {describe_tree(gold_node)}."
        )
    sides = f"The answer is {describe_tree(pred_node)}, the gold is {describe_tree(gold_node)}"
    return f"{sides}: {_differences(outcome, pred_node, gold_node)}."


def _differences(outcome: str, pred: Node, gold: Node) -> str:
    if outcome == "ambiguous":
        return "the answer states several values, the gold one"
    if outcome == "unreadable":
        return (
            "the answer is not simplified, repeats a formula of the question, or states its value "
            "in words that are not read"
        )
    if value_type(pred) != value_type(gold):
        return "their types differ"
    return "their values or units differ" if pred[0] == "quantity" else "their values differ"


def describe_tree(node: Node) -> str:
    """Return the type of a tree in words, with its value if it is short: `the number 1/2`."""
    kind = value_type(node)
    if kind != "value":
        items = f" of {len(node) - 1} items" if kind in ("list", "set", "tuple") else ""
        return f"{_TYPE_WORDS[kind]}{items}"
    if node[0] == "num":
        value, places = node[1:]
        is_decimal = places and places < MAX_QUOTE
        text = f"{Decimal(value.numerator) / value.denominator:f}" if is_decimal else str(value)
        return f"the number {text}" if len(text) <= MAX_QUOTE else f"a number of {len(text)} digits"
    names = sorted(symbols(node))[:4]
    return f"an expression in {', '.join(names)}" if names else "a value without variables"


_TYPE_WORDS = {
    "quantity": "a quantity with a unit",
    "compound": "a quantity in several units",
    "ratio": "a ratio",
    "clock": "a time of day",
    "tuple": "a tuple",
    "set": "a set",
    "matrix": "a matrix",
    "cases": "a piecewise function",
    "congruence": "a congruence",
    "where": "a value with a condition",
    "text": "words",
    "list": "a list",
    "region": "an interval or a region",
    "equation": "an equation",
    "relation": "an inequality or a relation",
}
