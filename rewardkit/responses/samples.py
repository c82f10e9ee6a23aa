"""Responses with their ground truth and, if they have them, their scores, read from files of any program."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from rewardkit.errors import DataError, call_catching
from rewardkit.model_client.completions import UNUSABLE, parse_choice
from rewardkit.responses.files import Chunk, SkippedRow, files_name, read_chunks, read_records
from rewardkit.scorers.base import Score, Status
from rewardkit.scorers.conversation import are_messages, text_of_messages, with_messages
from rewardkit.scorers.gold import unwrap_gold
from rewardkit.scorers.score import VERDICT_KEYS, RewardResult, RightRule, rule_of_results

#: The keys under which responses, golds and prompts are looked up, in this order. `output`, `gts`
#: and `input` are those of verl's dumps, `prediction` and `origin_prompt` those of AISBench. The messages of a whole conversation are a response too.
RESPONSE_KEYS = (
    "response", "output", "solution_str", "completion", "responses", "prediction", "messages",
)  # fmt: skip
GOLD_KEYS = ("ground_truth", "gts", "gold", "reward_model.ground_truth")
PROMPT_KEYS = ("input", "prompt", "origin_prompt", "question", "problem")

#: A row with a list of responses may have a list of these too, with one value for each response.
KEYS_PER_RESPONSE = (
    "score", "acc", "pred", "status", "no_answer", "timeout", "error", "tokens", "finish_reason",
)  # fmt: skip

#: The fields in which a row states its score, and why it is not right.
STATED_KEYS = ("score", "acc", "correct", "error", "timeout", "no_answer")

#: Rows from which it is learned what states the verdicts of a file.
LEARNED_ROWS = 1000


class FieldNames(NamedTuple):
    """The fields with the response and the ground truth, dotted if nested; None for the usual ones."""

    response: str | None = None
    gold: str | None = None


USUAL_NAMES = FieldNames()


class Sample(NamedTuple):
    """One response to score; `where` is file:line, `fields` has all fields of its row."""

    where: str
    response: str
    ground_truth: str
    extra_info: Mapping[str, Any]
    fields: Mapping[str, Any]

    @property
    def source(self) -> str:
        """The `data_source`; "" if unknown."""
        return str(self.extra_info.get("data_source") or "")

    @property
    def step(self) -> int | None:
        """The training step, if known."""
        step = finite_number(self.fields.get("step"))
        return None if step is None else int(step)

    @property
    def prompt(self) -> str:
        """The prompt as text, a chat with its roles; "" if the row does not have it."""
        prompt = self._first(*PROMPT_KEYS)
        if prompt is None or isinstance(prompt, str):
            return prompt or ""
        if isinstance(prompt, list) and are_messages(prompt):
            return "\n\n".join(f"{m.get('role', '')}: {m.get('content', '')}" for m in prompt)
        return json.dumps(prompt, default=str)

    def group(self, prompt: str) -> str:
        """Return a text that responses to one prompt share: the prompt, its index, or else the line.

        Every data source and split counts its rows from 0.
        """
        if prompt:
            return prompt
        identity = self._first("uid", "index")
        if identity is None:
            return self.where
        split = self._first("split")
        return f"{self.source} {split} {type(identity).__name__} {identity}"

    def _first(self, *names: str) -> Any:
        rows = (self.fields, self.extra_info)
        values = (row.get(name) for row in rows for name in names)
        return next((value for value in values if value not in (None, "")), None)


def golds_of(samples: Iterable[Sample | SkippedRow]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the gold and the `extra_info` of each sample."""
    return ((s.ground_truth, s.extra_info) for s in samples if isinstance(s, Sample))


def read_samples(
    files: Iterable[str], names: FieldNames = USUAL_NAMES
) -> Iterator[Sample | SkippedRow]:
    """Yield the samples of files in order, and the rows that cannot be used."""
    for chunk in read_chunks(files):
        yield from samples_of(chunk, names)


def samples_of(
    chunk: Chunk, names: FieldNames = USUAL_NAMES, *, needs_gold: bool = True
) -> Iterator[Sample | SkippedRow]:
    """Yield the samples of a chunk; a row with a list of responses has one for each.

    A response that the server broke off, or withheld, is "": it is not finished, whatever it has.
    """
    response_keys = (names.response,) if names.response else RESPONSE_KEYS
    gold_keys = (names.gold,) if names.gold else GOLD_KEYS
    for record in read_records(chunk):
        if isinstance(record, SkippedRow):
            yield record
            continue
        where, row = record[0], _reply_row(record[1])
        if isinstance(row, str):
            yield SkippedRow(where, row)
            continue
        (key, response), (_, gold) = _first_value(row, response_keys), _first_value(row, gold_keys)
        if response is None:
            yield SkippedRow(where, f"no response: {_absent('response', response_keys)}")
        elif gold is None and needs_gold:
            yield SkippedRow(where, f"no ground truth: {_absent('gold', gold_keys)}")
        elif isinstance(response, list) and not are_messages(response):
            for number, own in enumerate(_split(row, key, response)):
                yield _sample(f"{where} response {number}", own, response[number], gold)
        else:
            yield _sample(where, row, response, gold)


def _reply_row(fields: dict[str, Any]) -> dict[str, Any] | str:
    """Return a reply of a batch as a row, or why it has no response; any other row as it is.

    The format is the one that OpenAI documents and vLLM's `run-batch` writes.
    """
    answer = fields.get("response")
    if "custom_id" not in fields or isinstance(answer, (str, list)):
        return fields
    body = answer.get("body") if isinstance(answer, dict) else None
    choices = body.get("choices") if isinstance(body, dict) else None
    choices = choices if isinstance(choices, list) else []
    parsed = [c for choice in choices if isinstance(choice, dict) and (c := parse_choice(choice))]
    if not parsed:
        reason = " ".join(str(fields.get("error") or answer).split())[:200]
        return f"the request failed: {reason}"
    return {
        "custom_id": str(fields["custom_id"]),
        "response": [choice.text for choice in parsed],
        "finish_reason": [choice.finish_reason for choice in parsed],
    }


def _absent(option: str, keys: Sequence[str]) -> str:
    return f"the row has none of {', '.join(keys)}; name its field with --{option}-key"


def _first_value(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, Any]:
    for key in keys:
        value: Any = row
        for name in key.split(".") if "." in key else (key,):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            return key, value
    return "", None


def _split(row: dict[str, Any], key: str, responses: list[Any]) -> Iterator[dict[str, Any]]:
    lists = {
        name: values
        for name in KEYS_PER_RESPONSE
        if isinstance(values := row.get(name), list) and len(values) == len(responses)
    }
    for number, response in enumerate(responses):
        values = {name: own[number] for name, own in lists.items()}
        yield {**row, key: response, **values, "sample": number}


def _sample(where: str, row: Mapping[str, Any], response: Any, gold: Any) -> Sample | SkippedRow:
    messages: list[Any] = response if isinstance(response, list) and are_messages(response) else []
    if messages and not any(message.get("role") == "assistant" for message in messages):
        return SkippedRow(where, "no response: no message is by the model (role assistant)")
    if messages:
        response = text_of_messages(messages)
    if not isinstance(response, str):
        return SkippedRow(where, f"the response is {type(response).__name__}, not text")
    extra_info, finish = row.get("extra_info"), row.get("finish_reason")
    info = dict(extra_info) if isinstance(extra_info, Mapping) else {}
    info.setdefault("data_source", row.get("data_source") or "")
    if isinstance(finish, str) and finish in UNUSABLE:
        response = ""
    elif messages:
        info = with_messages(info, messages)
    return Sample(where, response, unwrap_gold(gold), info, row)


def finite_number(value: Any) -> float | None:
    """Return a number of a file as a float; None for any other value, also an infinite one."""
    is_finite = isinstance(value, (int, float)) and -1e300 < value < 1e300
    return float(value) if is_finite else None


def stated_result(fields: Mapping[str, Any]) -> RewardResult | str | None:
    """Return the result that a row states; None if it states none, a text if it cannot be used.

    `acc` stands for a missing score. A score without `acc` and `correct` is its own `acc`, as verl's
    managers write it of a reward that returns a number.
    """
    values = {
        key: value for key in STATED_KEYS if isinstance(value := fields.get(key), (int, float))
    }
    score = values.get("score", values.get("acc"))
    if score is None:
        return None
    if any(finite_number(value) is None for value in values.values()):
        return "its score is not a finite number"
    copy = {} if values.keys() & {*VERDICT_KEYS} else {"acc": score}
    return RewardResult.of({**copy, **values, "score": score, "pred": fields.get("pred")})


def stated_score(sample: Sample, rule: RightRule) -> Score | str | None:
    """Return the score that a row states, with its verdict by a rule, as `stated_result` does.

    Its status is that of the row, unless the verdict contradicts it.
    """
    result = stated_result(sample.fields)
    if not isinstance(result, RewardResult):
        return result
    score = rule.judge(result.as_score(), sample.source)
    status = call_catching(Status, sample.fields.get("status"))
    if isinstance(status, Exception) or status is Status.SCORED:
        return score
    is_same = (status is Status.CORRECT) is (score.correct is True)
    return score._replace(status=status) if is_same else score


def rule_of_samples(
    samples: Iterable[Sample | SkippedRow], right_score: float | None = None
) -> RightRule:
    """Return which results are right, from the first rows or from `--right-score`."""
    if right_score is not None:
        return RightRule(right_score, False, "--right-score")
    fields = (sample.fields for sample in samples if isinstance(sample, Sample))
    results = map(stated_result, islice(fields, LEARNED_ROWS))
    return rule_of_results(result for result in results if isinstance(result, RewardResult))


def read_scores(
    files: Sequence[str], names: FieldNames, right_score: float | None = None
) -> Iterator[tuple[Sample, Score] | SkippedRow]:
    """Yield the responses of files with the scores and verdicts that their rows state.

    Raises:
        DataError: a file cannot be read, or it is not known which scores are right.
    """
    rule = rule_of_samples(read_samples(files, names), right_score)
    if not rule.is_known:
        raise DataError(f"{files_name(files)}: {rule.sentence}")
    for sample in read_samples(files, names):
        score = sample if isinstance(sample, SkippedRow) else stated_score(sample, rule)
        if isinstance(sample, SkippedRow):
            yield sample
        elif not isinstance(score, Score):
            reason = score or "neither acc nor score: run rewardkit score --out first"
            yield SkippedRow(sample.where, str(reason))
        elif score.correct is None:
            raise DataError(
                f"{sample.where}: a score of {score.score:g} is neither right nor wrong, unlike those "
                "of the first rows, which are 0 or 1. Name the lowest right one with --right-score."
            )
        else:
            yield sample, score
