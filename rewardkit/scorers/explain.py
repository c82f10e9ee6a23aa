r"""Why a response got its score: the answer, its place, its reading and the deciding comparison.

For a response that is not correct, a built-in scorer is asked again with every documented choice of its
options, one at a time, and, if none reads the gold, the other rule scorers whose mark is in the response.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
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
from rewardkit.scorers.base import call_scorer, explain_bad_gold, spec_of
from rewardkit.scorers.conversation import Conversation, read_conversation, text_to_judge
from rewardkit.scorers.gold import accept_gold
from rewardkit.scorers.isolated import is_built_in
from rewardkit.scorers.load import load_scorer
from rewardkit.scorers.math import gold_letters
from rewardkit.scorers.options import effective_settings, other_settings
from rewardkit.scorers.score import Score, Scorer, Status

#: The comparisons of `answers.equal`, in the order in which they are tried.
RUNGS = ("text", "number", "words", "value")
#: Characters of an answer or a gold that a sentence quotes.
MAX_QUOTE = 60
#: Scorers that run the response, and what they run.
_RUNS = {"code": "program", "sql": "query"}
#: Characters at the end of a response that are searched for its last number.
TAIL_CHARS = 300

#: A scorer's name and options.
Setting: TypeAlias = tuple[str, Mapping[str, Any]]

_NUMBER = re.compile(r"-?\d(?:[\d,]*\d)?(?:\.\d+)?")


@dataclass(frozen=True)
class OtherReading:
    """A setting with which the response is correct, and the answer that it reads."""

    scorer: str
    options: Mapping[str, Any]
    pred: str


@dataclass(frozen=True)
class MissedAnswer:
    """Why a response is not correct.

    Attributes:
        reason: what was read, and why it is not the gold.
        candidates: the parts of the response that could be its answer, by their marks.
        other_readings: the settings with which the response is correct.
        advice: the other readings as sentences; "" if a model server judges.
    """

    reason: str
    candidates: Mapping[str, str]
    other_readings: tuple[OtherReading, ...]
    advice: str


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The way from a response to its score.

    Attributes:
        scorer: the name of the scorer.
        score: its score.
        where: the place of the answer: `box`, `tag`, `phrase`, `hash`, `line` or `sentence`; "" if
            there is no answer or the scorer has a rule of its own.
        rungs: the comparisons in order, each with its outcome; empty for scorers with a rule of
            their own.
        facts: what else the scorer says, by name: the prompt and the reply of a judge, or the first
            test that a program fails.
    """

    scorer: str
    score: Score
    where: str = ""
    rungs: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def explain_verdict(
    scorer: Scorer,
    name: str,
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
) -> Explanation:
    """Explain a score of a scorer that is loaded already, in this process or in its own.

    `extra_info` may have the messages of a rollout.
    """
    where, rungs = "", []
    facts: tuple[tuple[str, str], ...] = ()
    conversation = read_conversation(extra_info)
    if is_built_in(name):
        response = text_to_judge(response, extra_info)
    if name == "judge":
        from rewardkit.scorers.judge import explain_judgement

        options = scorer.keywords if isinstance(scorer, partial) else {}
        score, facts = explain_judgement(response, ground_truth, None, **options)
    elif name == "code":
        from rewardkit.scorers.code import explain_program

        score, facts = explain_program(scorer, response, ground_truth)
    elif name == "sql":
        from rewardkit.scorers.sql import explain_query

        score, facts = explain_query(scorer, response, ground_truth)
    else:
        score = scorer(response, ground_truth, extra_info)
    if conversation:
        facts = (*facts, *_conversation_facts(conversation))
    if name == "math":
        gold = gold_answer(accept_gold(ground_truth))
        answer = final_answer(response, gold)
        where = answer.mark if answer else ""
        if gold_letters(gold) is not None:
            rungs = [("choice", score.status.value)]
        elif score.pred and gold:
            verdict = compare(score.pred, gold)
            rungs = [(rung, "passed on") for rung in RUNGS[: RUNGS.index(verdict.rung)]]
            rungs.append((verdict.rung, verdict.outcome))
    return Explanation(scorer=name, score=score, where=where, rungs=tuple(rungs), facts=facts)


def _conversation_facts(conversation: Conversation) -> Iterator[tuple[str, str]]:
    """Yield what a conversation has of the model and of tools, a call in a line."""
    yield "turns", str(len(conversation.turns))
    yield "last message", conversation.turns[-1]
    for number, call in enumerate(conversation.calls, 1):
        result = "did not run" if call.result is None else f"-> {call.result}"
        yield f"call {number}", f"{call.tool or 'not readable'} {call.arguments} {result}"


def explain_miss(
    explanation: Explanation,
    options: Mapping[str, Any],
    scorer: Scorer,
    response: str,
    ground_truth: str,
) -> MissedAnswer | None:
    """Return why a response is not correct, and which settings would have read the gold."""
    name = explanation.scorer
    if explanation.score.correct:
        return None
    candidates = _answer_candidates(response) if name not in _RUNS else {}
    reason = _reason(explanation, scorer, response, ground_truth, candidates)
    if name in _RUNS or spec_of(scorer).asks_server:
        return MissedAnswer(reason, candidates, (), "")
    choices = other_settings(scorer) if is_built_in(name) else []
    own: list[Setting] = [(name, {**options, key: value}) for key, value in choices]
    marks = {
        "math": bool(candidates.keys() - {"the last number"}),
        "gsm8k": "####" in candidates,
        "math_dapo": "the answer is" in candidates,
        "mcq": gold_letters(ground_truth) is not None,
        "qa": "<answer>" in candidates,
    }
    others: list[Setting] = [(other, {}) for other, has in marks.items() if has and other != name]

    def right_readings(settings: Sequence[Setting]) -> Iterator[OtherReading]:
        for other, values in settings:
            result = call_scorer(load_scorer(other, **values), response, ground_truth)
            if isinstance(result, Score) and result.correct:
                yield OtherReading(other, values, result.pred)

    readings = [*right_readings(own)] or [*right_readings(others)]
    advice = _advice(name, options, readings, has_options=bool(own))
    return MissedAnswer(reason, candidates, tuple(readings), advice)


def _answer_candidates(response: str) -> dict[str, str]:
    numbers = _NUMBER.findall(response[-TAIL_CHARS:])
    candidates = {
        "\\boxed{}": ", ".join(boxes(response)),
        "<answer>": last_tag(response),
        "the answer is": last_phrase(response),
        "####": last_hash(response),
        "the last number": numbers[-1] if numbers else "",
    }
    return {mark: text for mark, text in candidates.items() if text}


def _advice(
    name: str, options: Mapping[str, Any], readings: Sequence[OtherReading], *, has_options: bool
) -> str:
    sentences = []
    for reading in readings:
        changes = (
            _setting_text(key, value)
            for key, value in reading.options.items()
            if options.get(key) != value
        )
        who = " ".join(changes) if reading.scorer == name else f"The scorer {reading.scorer}"
        what = f"reads {_quote(reading.pred)}, which is correct"
        sentences.append(f"{who} {what if reading.pred else 'makes the response correct'}.")
    if has_options and all(reading.scorer != name for reading in readings):
        sentences.insert(0, "No other option of this scorer reads the gold.")
    return " ".join(sentences or ["No other rule scorer reads the gold here."])


def _setting_text(name: str, value: Any) -> str:
    """Return an option as the command line takes it: `method=robust`."""
    return f"{name}={value if isinstance(value, str) else json.dumps(value)}"


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return f"`{line[:MAX_QUOTE]}...`" if len(line) > MAX_QUOTE else f"`{line}`"


def _reason(
    explanation: Explanation,
    scorer: Scorer,
    response: str,
    ground_truth: str,
    candidates: Mapping[str, str],
) -> str:
    name, score, gold = explanation.scorer, explanation.score, _quote(ground_truth)
    if score.status is Status.BAD_GROUND_TRUTH:
        return f"The gold {gold} cannot be scored{explain_bad_gold(ground_truth, scorer)}."
    if noun := _RUNS.get(name):
        reason = dict(explanation.facts).get("reason", f"there is no {noun} in the response")
        return f"The {noun} is not right: {reason}."
    if score.status is Status.NO_ANSWER:
        if not response.strip():
            return "No answer was read: the response is empty."
        marks = "; ".join(
            _quote(f"{mark} {text}") if mark == "####" else f"{mark} {_quote(text)}"
            for mark, text in candidates.items()
        )
        rule = f"{name} reads {_MATH_RULE}" if name == "math" else reading_rule(name, scorer)
        read = f": {rule}" if rule else ""
        is_denied = name == "math" and boxes(text_after_thought(response))
        denied = " The words around it deny it, suppose it or take it back." if is_denied else ""
        return f"No answer was read{read}. The response has {marks or 'no mark and no number'}.{denied}"
    if score.status is Status.FAILED:
        return "The scorer has no verdict; its first message on stderr says why."
    if not score.pred:
        return f"The scorer does not say what it read; the gold is {gold}."
    if name != "math":
        why = _STATUS_REASONS.get(score.status, "")
        return f"{_quote(score.pred)} was read; the gold is {gold}.{why}"
    place = f" {_PLACES[explanation.where]}" if explanation.where else ""
    if explanation.where == "box" and len(boxes(text_after_thought(response))) > 1:
        place = r" in the last run of \boxed{}"
    why = _math_reason(score.pred, gold_answer(accept_gold(ground_truth)), explanation.rungs[-1][1])
    return f"{_quote(score.pred)} was read{place}; the gold is {gold}. {why}"


_MATH_RULE = (
    r"the last \boxed{}, <answer>, the text after `the answer is`, `Answer:` or ####, or a result in "
    "the last line or sentence"
)
_PLACES = {
    "box": r"in the last \boxed{}",
    "tag": "in <answer>",
    "phrase": "after `the answer is` or `Answer:`",
    "hash": "after ####",
    "line": "in the last line",
    "sentence": "in the last sentence",
}
_STATUS_REASONS = {
    Status.AMBIGUOUS_ANSWER: " The answer states several values.",
    Status.UNPARSED_ANSWER: " The answer cannot be read as a value.",
}


def reading_rule(name: str, scorer: Scorer) -> str:
    """Return what a scorer reads with its settings, from the table in its module's docstring.

    The result is "" if the module has no such table. The first column has the values of one option,
    or settings such as `strict_box=True`; the second column is `reads`.
    """
    lines = str(spec_of(scorer).text or "").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    if len(rows) < 2 or rows[0][1] != "reads":
        return ""
    settings = effective_settings(scorer)
    for first, rule, *_ in rows[1:]:
        setting = first.replace('"', "").partition(" (")[0].strip("`")
        for key, value in settings.items():
            if setting in (str(value), f"{key}={value}"):
                return f"with {_setting_text(key, value)}, {name} reads {rule}"
    return f"{name} reads {rows[1][1]}"


def _math_reason(pred: str, gold: str, outcome: str) -> str:
    """Return in words how both sides were parsed, and why they are not equal."""
    if gold_letters(gold) is not None:
        return "The gold is a choice, so the letters are compared."
    readings = map(parse_answer, (pred, gold))
    pred_node, gold_node = (reading.value if reading else None for reading in readings)
    if gold_node is None:
        return "The gold cannot be parsed as mathematics, so only the same text equals it."
    gold_words = f"the gold is {_describe_tree(gold_node)}"
    if pred_node is None:
        return f"The answer cannot be parsed as mathematics; {gold_words}."
    if outcome == "ambiguous":
        difference = "the answer states several values, the gold one"
    elif outcome == "unreadable":
        difference = (
            "the answer is not simplified, repeats a formula of the question, or states its value "
            "in words that are not read"
        )
    elif value_type(pred_node) != value_type(gold_node):
        difference = "their types differ"
    else:
        what = "values or units" if pred_node[0] == "quantity" else "values"
        difference = f"their {what} differ"
    return f"The answer is {_describe_tree(pred_node)}, {gold_words}: {difference}."


def _describe_tree(node: Node) -> str:
    """Return the type of a tree in words, with its value if it is short: `the number 1/2`."""
    kind = value_type(node)
    if kind != "value":
        items = f" of {len(node) - 1} items" if kind in ("list", "set", "tuple") else ""
        return f"{_TYPE_WORDS.get(kind, 'a ' + kind)}{items}"
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
    "clock": "a time of day",
    "cases": "a piecewise function",
    "where": "a value with a condition",
    "text": "words",
    "region": "an interval or a region",
    "equation": "an equation",
    "relation": "an inequality or a relation",
}
