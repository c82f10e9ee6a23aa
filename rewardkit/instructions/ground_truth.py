"""The constraints of a row: a ground truth in the forms of the public data sets, and its arguments.

| data set | ground truth |
|---|---|
| IFEval, IFBench, Nemotron | `{"instruction_id_list": [...], "kwargs": [...]}`; arguments that are null are left out |
| IF_multi_constraints_upto5 | `[{"instruction_id": [...], "kwargs": [...]}]`, as JSON or as Python writes it |
| RLVR-IFeval | `{"func_name": ..., "N": ..., ...}` |
"""

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rewardkit.instructions import ifbench, ifeval, ifrlvr, rlvr_ifeval
from rewardkit.instructions.languages import LANGUAGES

#: Limits of a ground truth: its characters, its constraints, and a number in it.
MAX_CHARACTERS, MAX_CONSTRAINTS, MAX_NUMBER = 100_000, 64, 1_000_000

CHECKS: Mapping[str, Callable[..., bool]] = {
    **ifeval.CHECKS, **ifrlvr.CHECKS, **ifbench.CHECKS, **rlvr_ifeval.CHECKS,
}  # fmt: skip

#: The groups of constraints for metrics, each with the parts of ids before the colon.
_PREFIXES = {
    "keywords": "keywords words",
    "length": "length_constraints count letters ratio sentence paragraphs",
    "format": "detectable_format detectable_content format custom",
    "position": "startend first_word last_word",
    "case": "change_case",
    "punctuation": "punctuation",
    "language": "language",
    "copy": "combination copy new repeat",
}
_FUNCTIONS = {
    "keywords": "verify_keywords verify_keyword_frequency validate_forbidden_words",
    "length": "verify_letter_frequency verify_paragraph_count validate_word_constraint "
    "verify_sentence_constraint validate_paragraphs",
    "position": "validate_end validate_quotation",
    "case": "validate_uppercase validate_lowercase validate_frequency_capital_words",
    "punctuation": "validate_no_commas",
    "language": "validate_response_language",
    "copy": "validate_repeat_prompt validate_two_responses",
}
GROUPS = tuple(_PREFIXES)
_GROUP_OF = {
    name: group
    for table in (_PREFIXES, _FUNCTIONS)
    for group in table
    for name in table[group].split()
}

#: What an argument is by its name; an argument with another name is text.
_NUMBERS = frozenset(
    "num_words num_sentences num_paragraphs nth_paragraph num_placeholders num_bullets num_highlights "
    "num_sections frequency let_frequency capital_frequency small_n number n m i n_start n_end n_sent "
    "n_words min_words max_words percentage".split()
)
_LISTS = frozenset({"keywords", "forbidden_words"})
_RELATIONS = frozenset({"relation", "let_relation", "capital_relation", "quantifier"})
_RELATION_WORDS = frozenset({"less than", "at least", "at most", "exactly", "around"})
#: The other name of an argument, in data sets or in RLVR-IFeval.
_OTHER_NAMES = {
    "number": "N", "num_placeholders": "N", "num_bullets": "N", "num_highlights": "N",
    "keywords": "keyword_list", "prompt_to_repeat": "original_prompt",
}  # fmt: skip


class GroundTruthError(ValueError):
    """A ground truth without constraints that can be checked; the message says why."""


@dataclass(frozen=True)
class Constraint:
    """One constraint: its id, the function that checks it, and the function's arguments."""

    name: str
    check: Callable[..., bool]
    arguments: Mapping[str, Any]

    @property
    def group(self) -> str:
        """The group of its metric, one of `GROUPS`."""
        return _GROUP_OF.get(self.name.partition(":")[0], "format")


@lru_cache(maxsize=256)
def read_constraints(ground_truth: str, prompt: str = "") -> tuple[Constraint, ...]:
    """Return the constraints of a ground truth.

    Args:
        ground_truth: the text.
        prompt: the prompt of the row, for constraints that repeat it.

    Raises:
        GroundTruthError: it is too long or has another form, an id is not known, or an argument of a
            constraint is missing or has another type.
    """
    value = _read_text(ground_truth)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        raise GroundTruthError("it is not an object with `instruction_id_list` and `kwargs`")
    if isinstance(value.get("func_name"), str):
        ids: Any = [value["func_name"]]
        rows: Any = [value]
    else:
        ids = value.get("instruction_id_list", value.get("instruction_id"))
        ids = [ids] if isinstance(ids, str) else ids
        rows = value.get("kwargs")
        rows = [rows] if isinstance(rows, dict) else rows
    if not isinstance(ids, list) or not 0 < len(ids) <= MAX_CONSTRAINTS:
        raise GroundTruthError(f"it does not have 1 to {MAX_CONSTRAINTS} ids of constraints")
    rows = [None] * len(ids) if rows is None else rows
    if not isinstance(rows, list) or len(rows) != len(ids):
        raise GroundTruthError(f"it has {len(ids)} ids, and not as many `kwargs`")
    return tuple(_constraint(*pair, prompt) for pair in zip(ids, rows, strict=True))


def _read_text(text: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        raise GroundTruthError(f"it has more than {MAX_CHARACTERS:,} characters")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text.strip())  # only literals: nothing is evaluated
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise GroundTruthError("it is neither JSON nor a literal of Python") from None


def _constraint(name: Any, row: Any, prompt: str) -> Constraint:
    check = CHECKS.get(name) if isinstance(name, str) else None
    if check is None:
        raise GroundTruthError(f"there is no constraint {str(name)[:80]!r}")
    row = {} if row is None else row
    if not isinstance(row, dict):
        raise GroundTruthError(f"the arguments of {name} are not an object")
    code = check.__code__
    arguments = {}
    for argument in code.co_varnames[1 : code.co_argcount]:
        value = row.get(argument)
        if value is None:
            value = row.get(_OTHER_NAMES.get(argument, ""))
        if argument == "prompt_to_repeat":
            value = value.get("prompt") if isinstance(value, dict) else value
            value = value or prompt or None
        if (checked := _argument(argument, value)) is None:
            fault = "is missing" if value is None else f"cannot be {str(value)[:40]!r}"
            raise GroundTruthError(f"`{argument}` of {name} {fault}")
        arguments[argument] = checked
    return Constraint(str(name), check, arguments)


def _argument(name: str, value: Any) -> Any:
    """Return the value of an argument with its type; None if it cannot have it."""
    if name in _NUMBERS:
        if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 9:
            value = int(value)
        is_number = type(value) in (int, float) and 0 <= value <= MAX_NUMBER
        return int(value) if is_number and value == int(value) else None
    if name in _LISTS or (name == "options" and isinstance(value, list)):
        is_list = isinstance(value, list) and value and all(isinstance(x, str) and x for x in value)
        return value if is_list else None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]  # `first_word` and `keyword` of some rows
    if not isinstance(value, str) or not value.strip():
        return None
    if name in _RELATIONS:
        return value if value in _RELATION_WORDS else None
    if name == "language":
        return value.lower() if value.lower() in LANGUAGES else None
    return value if name == "prompt_to_repeat" else value.strip()
