"""The checks of one verl row: its contents, and the gold self-check.

The self-check runs the reward itself: the dataset's own solution and the shortest well-formed
response with the gold must be right, and another answer must not. What it finds is found at step
200 otherwise, if at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from rewardkit.answers.number import read_number
from rewardkit.errors import call_catching
from rewardkit.preprocess.duplicates import question_key
from rewardkit.row import Row
from rewardkit.scorers.auto import scorer_for
from rewardkit.scorers.base import Score, Scorer, Status, as_text, options_for
from rewardkit.scorers.call import NoVerdictError, call_scorer_or_stop
from rewardkit.scorers.gold import MISSING, accept_gold, explain_bad_gold, unwrap_gold
from rewardkit.scorers.load import own_options, respond_of

#: The rules, in the order they are reported, and what to do about each.
RULES: Mapping[str, str] = {
    "missing": "prepare the file with rewardkit prep, or add the column",
    "schema": "write the column as the type named, or prepare the file with rewardkit prep",
    "empty_file": "prepare it again: verl cannot load a file without rows",
    "empty_prompt": "drop the row: the policy would answer nothing",
    "bad_prompt": "write the prompt as a chat: a list of {role, content} with a user message",
    "long_prompt": "drop it or raise data.max_prompt_length: verl drops it with "
    "data.filter_overlong_prompts=True, and cuts it or ends the run without",
    "bad_row": "write the field as verl reads it",
    "empty_gold": "drop the row or add its answer: no response could score",
    "unknown_data_source": "name a scorer in extra_info.scorer, pass --scorer, or register one",
    "bad_gold": "mend the gold: this scorer cannot read it, so no response could score",
    "gold_is_wrong": "the gold, given in the asked form, does not score: wrong scorer for this row?",
    "form_does_not_fit": "the prompt asks for a form that the scorer does not read: change --template "
    "or the scorer",
    "solution_is_wrong": "the dataset's own solution does not give this gold: look at the row; at the "
    "scorer, if most rows say so",
    "wrong_is_right": "another answer scores as right: do not train on this reward",
    "scorer_raises": "mend the scorer: inside verl 0.9 the sample is dropped without a word",
    "duplicate": "drop it, or pass --allow-duplicates if it is meant",
    "conflicting_gold": "keep one: the same prompt has another gold in an earlier row",
    "overlap": "drop it: an evaluation that has the problem would measure memory",
}

#: After one of these nothing more is to be learnt of a row.
_FINAL = frozenset({"bad_gold", "scorer_raises"})

NoneType = type(None)
_LETTERS = re.compile(r"[A-J]+")
ROLES = frozenset({"system", "user", "assistant", "tool"})


@dataclass(frozen=True)
class DataFinding:
    """One thing wrong with a file (`row` is None) or with one of its rows (0-based)."""

    row: int | None
    rule: str
    message: str


def check_row(
    row: Row,
    index: int,
    scorer: Scorer | None = None,
    options: Mapping[str, Any] | None = None,
    respond: Callable[[str], str] | None = None,
) -> list[DataFinding]:
    """What is wrong with a row by itself; empty if nothing is.

    Args:
        row: in verl's schema; fields verl does not need may be missing.
        index: its place in the file.
        scorer: judges instead of the row's own scorer, the dataset's own solution too.
        options: of the row's own scorer.
        respond: writes an answer as `scorer` asks for it, where that runs in another process.

    Raises:
        NeverAnswersError: `scorer` is isolated and failed on all of its first responses.
    """
    found = list(_contents(row)) or list(_self_check(row, scorer, options or {}, respond))
    return [DataFinding(index, rule, message) for rule, message in found]


def prompt_key(row: Row) -> bytes:
    """A digest of what the policy sees: prompt and images. Equal for two spellings of it."""
    text = "\n".join(f"{m.get('role')}: {m.get('content')}" for m in row["prompt"])
    images = (
        image.get("bytes") if isinstance(image, Mapping) else image
        for image in row.get("images") or ()
    )
    return question_key(text, (i if isinstance(i, bytes) else repr(i).encode() for i in images))


def _contents(row: Row) -> Iterator[tuple[str, str]]:
    yield from _prompt(row["prompt"])
    if not as_text(row["data_source"]):
        yield "bad_row", "data_source is empty"
    if not isinstance(row.get("extra_info"), (Mapping, NoneType)):
        yield "bad_row", f"extra_info is {type(row['extra_info']).__name__}, not a struct"
    model = row["reward_model"]
    gold = unwrap_gold(model.get("ground_truth")) if isinstance(model, Mapping) else ""
    if gold.strip() in MISSING:
        what = f"{gold!r}, a missing value" if gold.strip() else "empty"
        yield "empty_gold", f"reward_model.ground_truth is {what}"


def _prompt(prompt: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(prompt, list) or not all(isinstance(m, Mapping) for m in prompt):
        yield ("bad_prompt", "not a list of messages") if prompt else ("empty_prompt", "no prompt")
    elif not any(as_text(m.get("content")).strip() for m in prompt):
        yield "empty_prompt", "the prompt is empty"
    elif bad := [m for m in prompt if m.get("role") not in ROLES or m.get("content") is None]:
        yield "bad_prompt", f"message {str(bad[0])[:80]}: role must be one of {sorted(ROLES)}"
    elif not any(m["role"] == "user" for m in prompt):
        yield "bad_prompt", "no message of the user"


def _self_check(
    row: Row,
    scorer: Scorer | None,
    options: Mapping[str, Any],
    respond: Callable[[str], str] | None,
) -> Iterator[tuple[str, str]]:
    info = {**(row.get("extra_info") or {}), "data_source": row["data_source"]}
    gold = unwrap_gold(row["reward_model"]["ground_truth"])
    own = call_catching(scorer_for, row["data_source"], info) if scorer is None else scorer
    if isinstance(own, Exception):
        yield "unknown_data_source", str(own)
        return
    judge = partial(own, **options_for(own, own_options(own, options))) if options else own
    respond = respond or respond_of(own)
    # The item of a list, which our scorers compare with, and the list, which another may.
    answers = list(dict.fromkeys([accept_gold(gold, several=True) or gold, gold]))
    right = [form for answer in answers for form in _forms(respond, answer)]
    steps = [
        _expect_right(judge, right, gold, info, "gold_is_wrong"),
        _expect_wrong(judge, _forms(respond, another_answer(answers[0])), gold, info),
    ]
    if asked := [form for each in answers for form in _asked_forms(row["prompt"], each)]:
        steps.append(_expect_right(judge, asked, gold, info, "form_does_not_fit"))
    solution = as_text(info.get("answer")).strip()
    if solution and solution != gold.strip():
        judges = judge if scorer is not None else _solution_scorer(row["data_source"], judge)
        steps.append(_expect_right(judges, [solution], gold, info, "solution_is_wrong"))
    for step in steps:
        found = list(step)
        yield from found
        if any(rule in _FINAL for rule, _ in found):
            return


def _forms(respond: Callable[[str], str] | None, answer: str) -> list[str]:
    """An answer as the scorer asks for it; in the usual forms where it does not say how."""
    if respond is not None:
        return [respond(answer)]
    return [f"#### {answer}", rf"\boxed{{{answer}}}", f"Answer: {answer}", answer]


def _asked_forms(prompt: list[Mapping[str, Any]], answer: str) -> list[str]:
    """An answer in each form that the prompt names; none where it names no form that we know."""
    said = "\n".join(as_text(message.get("content")) for message in prompt)
    thought = "<think>so</think> " if "<think>" in said else "so "
    forms = {
        "####": f"{thought}\n#### {answer}",
        r"\boxed": rf"{thought}\boxed{{{answer}}}",
        "Answer:": f"{thought}\nAnswer: {answer}",
    }
    return [response for form, response in forms.items() if form in said]


def _solution_scorer(data_source: str, judge: Scorer) -> Scorer:
    """A dataset's solutions keep its own form, whatever form the template asks for."""
    own = call_catching(scorer_for, data_source, {})
    return judge if isinstance(own, Exception) else own


def _expect_right(
    judge: Scorer, responses: list[str], gold: str, info: Mapping[str, Any], rule: str
) -> Iterator[tuple[str, str]]:
    """One of the responses must be right; what the first of them got is reported."""
    first = None
    for response in responses:
        result = call_scorer_or_stop(judge, response, gold, info)
        if isinstance(result, Score) and result.correct:
            return
        if isinstance(result, NoVerdictError):  # another response would cost as much time again
            yield "scorer_raises", str(result)
            return
        first = first or result
    if not isinstance(first, Score):
        yield "scorer_raises", f"{type(first).__name__}: {first}"
    elif first.status is Status.BAD_GROUND_TRUTH:
        yield "bad_gold", _bad_gold(judge, gold)
    else:
        yield rule, f"gold {gold[:80]!r}, read {first.pred[:80]!r} in ...{responses[0][-60:]!r}"


def _expect_wrong(
    judge: Scorer, responses: list[str], gold: str, info: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """No response may be right, nor may it show that the gold is at fault."""
    for response in responses:
        result = call_scorer_or_stop(judge, response, gold, info)
        if isinstance(result, Score) and result.correct:
            yield "wrong_is_right", f"gold {gold[:80]!r}, yet {response[:80]!r} scores as right"
        elif isinstance(result, Score) and result.status is Status.BAD_GROUND_TRUTH:
            yield "bad_gold", _bad_gold(judge, gold)
        elif isinstance(result, NoVerdictError):
            yield "scorer_raises", str(result)
        else:
            continue
        return


def _bad_gold(judge: Scorer, gold: str) -> str:
    return f"gold {gold[:80]!r} cannot be scored{explain_bad_gold(gold, judge)}"


def another_answer(gold: str) -> str:
    """An answer that is certainly not `gold`: another letter, the next number, or else 0."""
    if _LETTERS.fullmatch(gold):
        return "B" if gold == "A" else "A"
    value = read_number(gold)
    return str(value + 1) if isinstance(value, Fraction) else "0"
