"""The verdict of a judge: the JSON schema that it is asked for, and the strict parser of its reply.

A reply counts only if it is exactly one JSON object with exactly the keys of the rubric and values in
range, alone, after one `<think>` block, or in one code fence. Anything else is an error: a guess at
what a judge meant is a hole that a policy finds.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.judging.rubric import Rubric

#: Characters of a reply after its thoughts; a longer one is refused before it is read.
MAX_REPLY_CHARACTERS = 20_000

_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_END_OF_THOUGHT = "</think>"


class VerdictError(ValueError):
    """A reply is not a verdict of the rubric; the message says why."""


@dataclass(frozen=True)
class JudgeVerdict:
    """What a judge decided: `yes` or `no`, or a grade of each criterion, and its reason or ""."""

    grades: Mapping[str, str | int]
    reason: str = ""

    def score(self, rubric: Rubric) -> float:
        """Return 1.0 or 0.0 for yes or no, or the weighted mean of the fractions of the criteria."""
        if rubric.kind == "equivalence":
            return float(self.grades["verdict"] == rubric.right)
        fractions = self.fractions(rubric)
        weights = {name: each.weight for name, each in rubric.criteria.items()}
        return sum(weights[name] * fractions[name] for name in weights) / sum(weights.values())

    def fractions(self, rubric: Rubric) -> dict[str, float]:
        """Return the grade of each criterion as a fraction of its scale, from 0.0 to 1.0."""
        return {name: c.fraction(int(self.grades[name])) for name, c in rubric.criteria.items()}

    def json(self) -> str:
        """Return the verdict as the JSON object that `parse_verdict` reads."""
        reason = {"reason": self.reason} if self.reason else {}
        return json.dumps({**reason, **self.grades}, ensure_ascii=False)


def verdict_schema(rubric: Rubric) -> dict[str, Any]:
    """Return the JSON schema of a verdict, in the subset that OpenAI, vLLM and SGLang take."""
    properties: dict[str, Any] = {"reason": {"type": "string"}} if rubric.reason else {}
    for name, values in rubric.choices().items():
        kind = "string" if isinstance(values[0], str) else "integer"
        properties[name] = {"type": kind, "enum": list(values)}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def parse_verdict(text: str, rubric: Rubric) -> JudgeVerdict:
    """Return the verdict in a judge's reply.

    Raises:
        VerdictError: the reply is anything but one verdict.
    """
    body = _body(text)
    if not (body.startswith("{") and body.endswith("}")):
        raise VerdictError("it is not one JSON object")
    try:
        # Models, and llama-cpp-python's grammar, leave line breaks of a reason as they are.
        fields = json.loads(body, strict=False, object_pairs_hook=_unique)
    except VerdictError:
        raise
    except (ValueError, RecursionError) as error:
        raise VerdictError("it is not one JSON object") from error
    choices = rubric.choices()
    keys = {*choices, "reason"} if rubric.reason else {*choices}
    if not isinstance(fields, dict) or fields.keys() != keys:
        raise VerdictError(f"its keys are not {', '.join(sorted(keys))}")
    for name, valid in choices.items():
        value = fields[name]
        if type(value) is not type(valid[0]) or value not in valid:
            raise VerdictError(f"its {name} is not one of {valid[0]} to {valid[-1]}")
    reason = fields.pop("reason", "")
    if not isinstance(reason, str):
        raise VerdictError("its reason is not text")
    return JudgeVerdict(fields, reason)


def require_no_echo(text: str, verdict: JudgeVerdict, rubric: Rubric, response: str) -> None:
    """Require that a favourable verdict is not the judge's copy of an object in the response.

    A verdict that is not favourable is accepted, so that a policy gains nothing by writing one.

    Raises:
        VerdictError: the response contains the verdict as the judge wrote it.
    """
    is_favourable = verdict.score(rubric) >= rubric.threshold
    if is_favourable and "".join(_body(text).split()) in "".join(response.split()):
        raise VerdictError("it repeats the response")


def _body(text: str) -> str:
    before, end, after = text.partition(_END_OF_THOUGHT)
    body = (after if end else before).strip()
    if _END_OF_THOUGHT in body:
        raise VerdictError("it has several ends of a thought")
    if len(body) > MAX_REPLY_CHARACTERS:
        raise VerdictError(f"it is longer than {MAX_REPLY_CHARACTERS:,} characters")
    fenced = _FENCE.fullmatch(body)
    return fenced[1].strip() if fenced else body


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise VerdictError("a key is repeated")
    return fields
