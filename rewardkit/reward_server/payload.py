"""The bodies of requests and answers.

`POST /score` takes an object `{data_source, response, ground_truth, extra_info}`, or `{"items": [...]}`.

`POST /get_reward` is the request of OpenRLHF's `--reward.remote_url`: three lists of one length, which is
1 since 0.10 (openrlhf 0.11.2, `utils/agent.py`; 0.8.11, `utils/remote_rm_utils.py`). The answer is that
of its own `cli/serve_rm.py`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rewardkit.adapters.response_text import response_after_prompt
from rewardkit.scorers.base import MAX_PRED_CHARACTERS, Score, to_verl
from rewardkit.scorers.gold import unwrap_gold

T = TypeVar("T", bound=BaseModel)

#: Longest number, in digits: `int()` takes quadratic time on older Pythons.
MAX_DIGITS = 300

#: Longest name of a data source or scorer, in characters. The search for similar names takes
#: seconds for a name as long as a body.
MAX_NAME_CHARS = 256


class RequestError(Exception):
    """A request that is refused, with an HTTP status of 4xx."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})


def _gold(value: Any) -> Any:
    """Return a gold as text; datasets also have numbers, lists of one answer and missing values."""
    return value if isinstance(value, (str, bool, dict)) else unwrap_gold(value)


def _info(value: Any) -> Any:
    """Return `extra_info`, in which the name of a scorer has a limit."""
    if isinstance(value, dict) and "scorer" in value:
        return {**value, "scorer": str(value["scorer"])[:MAX_NAME_CHARS]}
    return {} if value is None else value


class RequestItem(BaseModel):
    """A response to score; the fields are those of a verl row. Others would be ignored silently."""

    model_config = ConfigDict(extra="forbid", strict=True)

    data_source: Annotated[
        str,
        Field(max_length=MAX_NAME_CHARS),
        BeforeValidator(lambda value: "" if value is None else value),
    ] = ""
    response: str
    ground_truth: Annotated[str, BeforeValidator(_gold)]
    extra_info: Annotated[dict[str, Any], BeforeValidator(_info)] = Field(default_factory=dict)


class _OpenrlhfRequest(BaseModel):
    model_config = ConfigDict(strict=True)

    query: list[str]
    prompts: list[str]
    labels: list[Any]


class ItemResult(NamedTuple):
    """The score of an item, that of a wrong answer if the scorer failed, and what to do about its fault."""

    score: Score
    error: str = ""


class ScoreRequest(NamedTuple):
    """The items of a request, and the format of its answer."""

    items: list[RequestItem]
    answer: Literal["one", "list", "openrlhf"]

    def reply(self, results: Sequence[ItemResult]) -> dict[str, Any]:
        """Return the answer with the results of the items."""
        if self.answer == "openrlhf":
            return _openrlhf_reply(results)
        items = [
            {
                "score": score.score,
                "correct": score.correct,
                "pred": score.pred[:MAX_PRED_CHARACTERS],
                "status": score.status.value,
                "error": error,
            }
            for score, error in results
        ]
        return items[0] if self.answer == "one" else {"items": items}


def read_score(body: bytes, max_items: int) -> ScoreRequest:
    """Return the items of `POST /score`."""
    value = _read_json(body)
    if "items" not in value:
        return ScoreRequest([_validated(RequestItem, value, "")], "one")
    items = value.pop("items")
    if value or not isinstance(items, list):
        raise RequestError(422, "items: give a list of objects, and no other field beside it.")
    _require_few(items, max_items)
    read = [_validated(RequestItem, item, f"items[{i}].") for i, item in enumerate(items)]
    return ScoreRequest(read, "list")


def read_openrlhf(body: bytes, max_items: int) -> ScoreRequest:
    """Return the items of `POST /get_reward`.

    A query is the prompt and the response in one text; the prompt and the special tokens are removed. A
    label is the gold, verl's `reward_model`, or for a server that chooses the scorer by the data source
    an object `{ground_truth, data_source, extra_info}`, which OpenRLHF does not send.
    """
    value = _read_json(body)
    if "labels" not in value:
        raise RequestError(422, "labels: Field required. Set --data.label_key in OpenRLHF.")
    lists = _validated(_OpenrlhfRequest, value, "")
    lengths = len(lists.query), len(lists.prompts), len(lists.labels)
    if len({*lengths}) > 1:
        text = "query, prompts and labels have {}, {} and {} items; they need the same number."
        raise RequestError(422, text.format(*lengths))
    _require_few(lists.query, max_items)
    items = []
    for i, (query, prompt) in enumerate(zip(lists.query, lists.prompts, strict=True)):
        label, response = lists.labels[i], response_after_prompt(query, prompt)
        if response is None:
            text = f"query[{i}]: does not begin with prompts[{i}], so the response is unknown."
            raise RequestError(422, text)
        fields = label if isinstance(label, dict) else {"ground_truth": label}
        known = {name: fields[name] for name in RequestItem.model_fields if name in fields}
        known["response"] = response
        items.append(_validated(RequestItem, known, f"labels[{i}]."))
    return ScoreRequest(items, "openrlhf")


def _openrlhf_reply(results: Sequence[ItemResult]) -> dict[str, Any]:
    """Return `rewards`, and `scores` (1.0 or 0.0) for OpenRLHF's filter.

    OpenRLHF draws charts of `extra_logs`. The answer has them only for a single response, which
    OpenRLHF asks about since 0.10; 0.8 asks about a batch and fails on lists there.
    """
    verl = [to_verl(score) | ({"error": 1.0} if error else {}) for score, error in results]
    reply: dict[str, Any] = {
        "rewards": [result.score.score for result in results],
        "scores": [each["acc"] for each in verl],
    }
    if len(verl) == 1:
        names = ("acc", "no_answer", "timeout", "error")
        reply["extra_logs"] = {name: [verl[0][name]] for name in names}
    return reply


def _read_json(body: bytes) -> dict[str, Any]:
    def read_int(text: str) -> int:
        if len(text) > MAX_DIGITS:
            raise ValueError(f"a number has more than {MAX_DIGITS} digits")
        return int(text)

    try:
        value = json.loads(body.decode(), parse_int=read_int)
    except RecursionError:
        raise RequestError(400, "the body is nested too deeply.") from None
    except ValueError as error:
        raise RequestError(400, f"the body is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise RequestError(422, "the body is not an object.")
    return value


def _validated(model: type[T], value: Any, place: str) -> T:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = [
            f"{place}{'.'.join(map(str, each['loc']))[:MAX_NAME_CHARS]}: {each['msg']}."
            for each in error.errors(include_url=False, include_input=False)[:3]
        ]
        raise RequestError(422, " ".join(problems)) from None


def _require_few(items: list[Any], max_items: int) -> None:
    if len(items) > max_items:
        text = f"{len(items):,} items, more than {max_items:,}: send them in parts."
        raise RequestError(413, text)
