r"""Instructions that a program can check: length, keywords, format, case, language, as in IFEval.

verl loads this file directly: `rewardkit path instructions --verl` prints the override. The ground truth is
the JSON text of the constraints, in the forms of IFEval, IFBench, IF_multi_constraints_upto5 and
RLVR-IFeval, which `rewardkit.instructions.ground_truth` lists, with all 25, 58, 29 and 25 constraints.

| mode | reads |
|---|---|
| `strict` (default) | the response as it is |
| `loose` | also the response without its first line, its last, both, and all of these without `*` |

What is read follows the last `</think>`; a thought that never ends leaves no answer. `reward=all`
(default) pays 1.0 for a response that follows every constraint, `fraction` the share that it follows.

The same text always gets the same verdict, and nothing is downloaded. These verdicts differ from
the published checkers', on purpose:

| constraint | published | here |
|---|---|---|
| any, with an argument that is null or out of range | a random one, another at each call | a bad ground truth with its name |
| `letter_frequency` of a sign such as `#` | a random letter | the sign |
| a keyword such as `C++` | a regular expression, which raises | the text |
| `response_language`, `english_*` | langdetect, unseeded; what it cannot read is right | script and frequent words |
| `english_capital` | langdetect on capitals, which it takes for German | the text in small letters |
| `nth_paragraph_first_word` | counts paragraphs, indexes blank ones too | the same list |
| `number_words` of Chinese or Thai | a run of characters is a word | each character is one |
| `number_sentences` of Chinese | one sentence | `。！？` end one |
| `copy_span_idx` with an index 0; the end | a random index; left out | 0; with or without the end |
| `palindrome` | `a` and `I` are palindromes | three letters at least |
| `count_unique`, `counting_composition` | a second `.` repeats a word, is one | words only |
| `exclude_word_harder` | not between two spaces | not as a word |
| `words:start_verb` | a tagger that takes `Build` for a noun | a list of verbs |
| `format:no_bullets_bullets` | a blank line after a bullet ends the list | blank lines are left out |
| `format:quotes` | an apostrophe is a quotation mark | not inside a word |

A text that ignores the question can follow every constraint. Train with a composed reward, in which a judge
is asked about what follows them (`check` warns without one):

```yaml
{scorer: instructions, second: judge, second_options: {rubric: open}, ask: correct, parts: {correct: 1.0}}
```

Without a model, `parts: {correct: {weight: 1.0, min_chars: 200}}` at least does not pay a few words. verl needs the same keys for every sample, so there is no metric for each constraint, but
`instructions_followed` and `instructions_total`, and for each group of constraints the number that a
response does not follow: `violations_keywords`, `_length`, `_format`, `_position`, `_case`,
`_punctuation`, `_language` and `_copy`.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal

from rewardkit.instructions.ground_truth import (
    GROUPS,
    Constraint,
    GroundTruthError,
    read_constraints,
)
from rewardkit.scorers.base import (
    Score,
    ScorerSpec,
    Status,
    as_text,
    verl_result_with_metrics,
)
from rewardkit.scorers.gold import reading_fault

#: Maximum number of characters of a response that is read.
MAX_CHARACTERS = 200_000


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    mode: Literal["strict", "loose"] = "strict",
    reward: Literal["all", "fraction"] = "all",
) -> Score:
    """Judge a response by the constraints that it follows.

    Args:
        response: the model's text.
        ground_truth: the constraints as JSON text.
        extra_info: `question` has the prompt, for constraints that repeat it and do not have it.
        mode: `strict` or `loose`; see above.
        reward: what is paid; see above.

    Returns:
        The reward; `pred` has the number of constraints that are followed and the ids of the others.
    """
    return _judge(response, ground_truth, extra_info, mode, reward)[0]


def _judge(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None,
    mode: str = "strict",
    reward: str = "all",
) -> tuple[Score, dict[str, float]]:
    """Return the score of a response and its numbers for verl."""
    metrics = blank_metrics({})
    prompt = as_text((extra_info or {}).get("question"))
    try:
        constraints = read_constraints(ground_truth, prompt)
    except GroundTruthError:
        return Score.wrong("", Status.BAD_GROUND_TRUTH), metrics
    text = response.rpartition("</think>")[2]
    text = "" if "<think>" in text else text  # the thought never ends
    texts = loose_texts(text) if mode == "loose" else [text]
    text = text if text.strip() else ""
    if len(text) > MAX_CHARACTERS or not is_visible(text):
        status = Status.TOO_LONG if len(text) > MAX_CHARACTERS else Status.NO_ANSWER
        return Score.wrong("", status), metrics
    missed = [each for each in constraints if not _is_followed(each, texts)]
    total, count = len(constraints), len(constraints) - len(missed)
    metrics |= {"instructions_followed": float(count), "instructions_total": float(total)}
    for each in missed:
        metrics[f"violations_{each.group}"] += 1.0
    pred = f"{count} of {total}" + "".join(f", not {each.name}" for each in missed)
    if not missed:
        return Score.right(pred), metrics
    return Score.wrong(pred, Status.WRONG, count / total if reward == "fraction" else 0.0), metrics


def _is_followed(constraint: Constraint, texts: list[str]) -> bool:
    return any(constraint.check(text, **constraint.arguments) for text in texts)


def is_visible(text: str) -> bool:
    """Return whether a text has a character that a reader sees: a letter, digit, sign or symbol."""
    return any(unicodedata.category(character)[0] in "LNPS" for character in text)


def loose_texts(text: str) -> list[str]:
    """Return a text as it is, without its first and last line, and all of these without `*`."""
    lines = text.split("\n")
    texts = [text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    texts += [each.replace("*", "") for each in texts]
    return [each for each in dict.fromkeys(texts) if each.strip()]


#: Returns why a ground truth cannot be scored; "" if it can.
explain_gold = partial(reading_fault, read_constraints, GroundTruthError)


def find_faults(
    ground_truth: str, prompt: str, _solution: str, _options: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield why a ground truth cannot be scored, for `check`."""
    try:
        read_constraints(ground_truth, prompt)
    except GroundTruthError as error:
        yield "bad_gold", str(error)


def blank_metrics(_options: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a sample whose constraints are not checked."""
    names = ["instructions_followed", "instructions_total", *(f"violations_{x}" for x in GROUPS)]
    return dict.fromkeys(names, 0.0)


def compute_score(
    data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any = None, **kwargs: Any
) -> dict[str, float | str]:
    """Score a sample for verl and return the dictionary that verl logs. Never raises."""
    sample = (data_source, solution_str, ground_truth, extra_info)
    return verl_result_with_metrics(score, _judge, sample, kwargs)


SPEC = ScorerSpec(
    score,
    __doc__,
    explain_gold=explain_gold,
    blank_metrics=blank_metrics,
    verl_function=compute_score,
    find_faults=find_faults,
)
