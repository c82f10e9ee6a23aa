"""The checks of one verl row: its contents, and the gold self-check.

The self-check runs the reward function itself. The dataset's own solution and the shortest
well-formed response with the gold must be right, and a different answer must be wrong. The errors
that it finds would otherwise show up only during training, or never.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit.checks.duplicates import question_key
from rewardkit.errors import call_catching
from rewardkit.registry import REPLACE_VERL
from rewardkit.row import AGENT_NAME, BATCH_ROWS, SINGLE_TURN_AGENT, Row, open_parquet
from rewardkit.scorers.base import (
    NoVerdictError,
    Score,
    Scorer,
    Status,
    as_text,
    call_scorer_or_stop,
    explain_bad_gold,
    failure_reason,
    options_for,
    spec_of,
)
from rewardkit.scorers.conversation import one_turn
from rewardkit.scorers.gold import MISSING, accept_gold, alternatives, another_answer, unwrap_gold
from rewardkit.scorers.isolated import IsolatedScorer
from rewardkit.scorers.load import own_options, scorer_for
from rewardkit.scorers.options import bound_options
from rewardkit.scorers.right_score import GoldRow

#: What to do about the findings of each rule, in the order in which the rules are reported.
RULES: Mapping[str, str] = {
    "missing": "prepare the file with rewardkit prep, or add the column",
    "schema": "write the column with the type that is named, or prepare the file with rewardkit prep",
    "runs_answers": f"{REPLACE_VERL}, custom_reward_function.path before 0.7.1; then check with "
    "--scorer auto",
    "empty_file": "prepare the file again: verl cannot load a file without rows",
    "empty_prompt": "drop the row: the policy would have nothing to answer",
    "bad_prompt": "write the prompt as a chat: a list of {role, content} with a user message",
    "long_prompt": "drop the row or raise data.max_prompt_length: with "
    "data.filter_overlong_prompts=True verl drops it, otherwise verl cuts it or ends the run",
    "bad_row": "write the field in the form that verl reads",
    "bad_agent": "name the agent loop of each row, single_turn_agent for rows of one turn, and write "
    "an entry for each tool, as rewardkit mix does for several files",
    "empty_gold": "drop the row or add its answer: no response could score",
    "unknown_data_source": "name a scorer in extra_info.scorer, pass --scorer, or register one",
    "bad_gold": "fix the gold: this scorer cannot read it, so no response could score",
    "gold_is_wrong": "check the scorer of the row: the gold in the requested form scores as wrong",
    "unknown_right": "name the lowest score of a right answer with --right-score, or fix the scorer: "
    "the golds are not checked without it",
    "form_does_not_fit": "change --template or the scorer: the prompt asks for a form that the "
    "scorer does not read",
    "solution_is_wrong": "check the row: the dataset's own solution does not lead to the gold; "
    "check the scorer if this concerns most rows",
    "wrong_is_right": "do not train with this reward: a wrong answer scores as right",
    "wrapped_gold": "write each result without the list around it, or add the dataset's own solution",
    "line_ends": "write \\n for \\r\\n in inputs and outputs, as prep does",
    "tests_in_prompt": "add tests that the prompt does not show: a program can repeat these",
    "several_outputs": "drop the row, or give it a checker: a right program may print another output",
    "scorer_raises": "fix the scorer: verl 0.9 drops such a sample without a message",
    "duplicate": "drop the row, or pass --allow-duplicates if the repetition is intended",
    "conflicting_gold": "keep one of the rows: an earlier row has the same prompt and another gold",
    "overlap": "drop the row: an evaluation with this problem would measure memory",
}

#: Rules after which the self-check of a row ends.
_FINAL_RULES = frozenset({"bad_gold", "scorer_raises"})

#: The roles that a message of a prompt may have.
ROLES = frozenset({"system", "user", "assistant", "tool"})

#: Rows that are read together if their programs run, after which progress is shown.
PROGRAM_ROWS = 32

#: A rule that is broken, and how.
_Fault: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class DataFinding:
    """A fault of a row, or of the whole file."""

    row: int | None
    rule: str
    message: str


def check_row(
    row: Row, index: int, scorer: Scorer | None = None, options: Mapping[str, Any] | None = None
) -> list[DataFinding]:
    """Return the findings of a row, without a comparison to other rows."""
    faults = list(_check_contents(row)) or list(_self_check(row, scorer, options or {}))
    return [DataFinding(index, rule, message) for rule, message in faults]


def check_rows(
    batch: tuple[int, list[Row]], threads: int = 1, **judging: Any
) -> list[list[DataFinding]]:
    """Return the findings of each row of a batch, whose first row has the index that is given."""
    start, rows = batch
    with ThreadPoolExecutor(threads) as pool:
        call = pool.map if threads > 1 else map
        return list(call(partial(check_row, **judging), rows, count(start)))


def runs_programs(data_source: Any, scorer_name: Any, scorer: Scorer | None = None) -> bool:
    """Return whether a check of a row runs programs, so that threads and small batches are worth it."""
    info = {"scorer": scorer_name or ""}
    judge = scorer or call_catching(scorer_for, data_source, info)
    return not isinstance(judge, Exception) and spec_of(judge).find_faults is not None


def gold_rows(parquet: Path) -> Iterator[GoldRow]:
    """Yield the golds of a parquet, from which a custom scorer learns which of its scores are right."""
    with open_parquet(parquet) as file:
        names = {"data_source", "reward_model", "extra_info"}.intersection(file.schema_arrow.names)
        batches = file.iter_batches(BATCH_ROWS, columns=sorted(names))  # without the images
        for row in (row for batch in batches for row in batch.to_pylist()):
            model, info = row["reward_model"], row.get("extra_info")
            if isinstance(model, Mapping):
                fields = info if isinstance(info, Mapping) else {}
                gold = unwrap_gold(model.get("ground_truth"))
                yield gold, {**fields, "data_source": row["data_source"]}


def prompt_key(row: Row) -> bytes:
    """Return a digest of the prompt and images; two spellings of one prompt have the same digest."""
    text = "\n".join(f"{m.get('role')}: {m.get('content')}" for m in row["prompt"])
    images = (
        image.get("bytes") if isinstance(image, Mapping) else image
        for image in row.get("images") or ()
    )
    return question_key(text, (i if isinstance(i, bytes) else repr(i).encode() for i in images))


def _check_contents(row: Row) -> Iterator[_Fault]:
    yield from _check_prompt(row["prompt"])
    if not as_text(row["data_source"]):
        yield "bad_row", "data_source is empty"
    if not isinstance(row.get("extra_info"), (Mapping, type(None))):
        yield "bad_row", f"extra_info is {type(row['extra_info']).__name__}, not a struct"
    else:
        yield from _check_agent(row)
    model = row["reward_model"]
    gold = unwrap_gold(model.get("ground_truth")) if isinstance(model, Mapping) else ""
    if gold.strip() in MISSING:
        value = f"{gold!r}, a missing value" if gold.strip() else "empty"
        yield "empty_gold", f"reward_model.ground_truth is {value}"


def _check_agent(row: Row) -> Iterator[_Fault]:
    """Yield what verl's agent loops need and a column of a file has for other rows only."""
    name, info = AGENT_NAME.name, row.get("extra_info") or {}
    if name in row and not row[name]:
        yield "bad_agent", f"{name} is empty: verl finds no agent loop for the row"
    if "tools_kwargs" not in info or row.get(name) == SINGLE_TURN_AGENT:
        return
    tools = info["tools_kwargs"]
    if tools is not None and not isinstance(tools, Mapping):
        yield "bad_agent", f"extra_info.tools_kwargs is {type(tools).__name__}, not a struct"
    elif missing := [key for key, entry in (tools or {"": None}).items() if entry is None]:
        column = f"extra_info.tools_kwargs.{missing[0]}".rstrip(".")
        fault = f"{column} is null: verl answers each call of the tool with an error"
        yield "bad_agent", f"{fault}, or ends the run (0.5)"


def _check_prompt(prompt: Any) -> Iterator[_Fault]:
    if not isinstance(prompt, list) or not all(isinstance(m, Mapping) for m in prompt):
        yield ("bad_prompt", "not a list of messages") if prompt else ("empty_prompt", "no prompt")
    elif not any(as_text(m.get("content")).strip() for m in prompt):
        yield "empty_prompt", "the prompt is empty"
    elif bad := [m for m in prompt if m.get("role") not in ROLES or m.get("content") is None]:
        yield "bad_prompt", f"message {str(bad[0])[:80]}: role must be one of {sorted(ROLES)}"
    elif not any(m["role"] == "user" for m in prompt):
        yield "bad_prompt", "no message of the user"
    elif prompt[-1]["role"] == "assistant":
        yield "bad_prompt", "the last message is an answer of the assistant"


def _self_check(row: Row, scorer: Scorer | None, options: Mapping[str, Any]) -> Iterator[_Fault]:
    info = {**(row.get("extra_info") or {}), "data_source": row["data_source"]}
    gold = unwrap_gold(row["reward_model"]["ground_truth"])
    judge = call_catching(scorer_for, row["data_source"], info) if scorer is None else scorer
    if isinstance(judge, Exception):
        yield "unknown_data_source", str(judge)
        return
    if isinstance(judge, IsolatedScorer):
        own = call_catching(scorer_for, row["data_source"], info)
        if not isinstance(own, Exception) and spec_of(own).find_faults:
            judge = own  # a user's reward would get tests or constraints as a response
    if spec_of(judge).asks_server:
        return  # thousands of golds would cost money, and a judge's answer proves nothing
    if options:
        judge = partial(judge, **options_for(judge, own_options(judge, options)))
    if spec_of(judge).find_faults is not None:
        yield from _faults_of_tests(row, gold, judge)
    else:
        yield from _faults_of_answer(row, gold, judge, scorer)


def _faults_of_tests(row: Row, gold: str, judge: Scorer) -> Iterator[_Fault]:
    """Yield what a scorer finds in a gold of tests that it can read."""
    spec = spec_of(judge)
    if reason := spec.explain_gold(gold) if spec.explain_gold else "":
        yield "bad_gold", reason
        return
    find_faults = spec.find_faults or (lambda *_: ())
    prompt = "\n".join(as_text(message.get("content")) for message in row["prompt"])
    solution = as_text((row.get("extra_info") or {}).get("answer"))
    options = bound_options(judge)
    faults = call_catching(lambda: list(find_faults(gold, prompt, solution, options)))
    if isinstance(faults, Exception):
        yield "scorer_raises", failure_reason(faults)
    else:
        yield from faults


def _faults_of_answer(
    row: Row, gold: str, judge: Scorer, scorer: Scorer | None
) -> Iterator[_Fault]:
    """Yield the faults of responses with the gold, with another answer, and with the row's solution."""
    info = {**one_turn(row.get("extra_info") or {}), "data_source": row["data_source"]}
    respond = spec_of(judge).respond
    # Our scorers compare with the single item of a list; another scorer may want the list.
    if spec_of(judge).several_golds:
        golds = alternatives(gold) or (gold,)
        answers = [golds[0]]
    else:
        answers = list(dict.fromkeys([accept_gold(gold, several=True) or gold, gold]))
        golds = (answers[0],)

    def faults() -> Iterator[_Fault | None]:
        right = [form for answer in answers for form in _responses(respond, answer)]
        yield _expect_right(judge, right, gold, info, "gold_is_wrong")
        yield _expect_wrong(judge, _responses(respond, another_answer(*golds)), gold, info)
        right = [form for answer in answers for form in _responses_in_prompt_forms(row, answer)]
        if right:
            yield _expect_right(judge, right, gold, info, "form_does_not_fit")
        solution = as_text(info.get("answer")).strip()
        if solution and solution != gold.strip():
            # the dataset's solutions keep its form under any template
            own = call_catching(scorer_for, row["data_source"], {}) if scorer is None else judge
            own = judge if isinstance(own, Exception) else own
            yield _expect_right(own, [solution], gold, info, "solution_is_wrong")

    for fault in filter(None, faults()):
        yield fault
        if fault[0] in _FINAL_RULES:
            return


def _responses(respond: Callable[[str], str] | None, answer: str) -> list[str]:
    """Return responses with an answer: in the scorer's form, or in the usual ones if it has none."""
    if respond is not None:
        return [respond(answer)]
    return [f"#### {answer}", rf"\boxed{{{answer}}}", f"Answer: {answer}", answer]


def _responses_in_prompt_forms(row: Row, answer: str) -> list[str]:
    prompt = "\n".join(as_text(message.get("content")) for message in row["prompt"])
    thought = "<think>so</think> " if "<think>" in prompt else "so "
    forms = {
        "####": f"{thought}\n#### {answer}",
        r"\boxed": rf"{thought}\boxed{{{answer}}}",
        "Answer:": f"{thought}\nAnswer: {answer}",
    }
    return [response for form, response in forms.items() if form in prompt]


def _expect_right(
    judge: Scorer, responses: list[str], gold: str, info: Mapping[str, Any], rule: str
) -> _Fault | None:
    """Return a fault with the first response's result unless one of the responses is right."""
    results = list[object]()
    for response in responses:
        result = call_scorer_or_stop(judge, response, gold, info)
        if isinstance(result, Score) and (result.correct or result.status is Status.SCORED):
            return None  # what is not known of all rows is one finding of the file
        if isinstance(result, NoVerdictError):  # another response would cost as much time again
            return _unscored(judge, result, gold)
        results.append(result)
    first = results[0]
    if isinstance(first, Score) and first.status is not Status.BAD_GROUND_TRUTH:
        return rule, f"gold {gold[:80]!r}, read {first.pred[:80]!r} in ...{responses[0][-60:]!r}"
    return _unscored(judge, first, gold)


def _expect_wrong(
    judge: Scorer, responses: list[str], gold: str, info: Mapping[str, Any]
) -> _Fault | None:
    for response in responses:
        result = call_scorer_or_stop(judge, response, gold, info)
        if isinstance(result, Score) and result.correct:
            return "wrong_is_right", f"gold {gold[:80]!r}, but {response[:80]!r} scores as right"
        if fault := _unscored(judge, result, gold):
            return fault
    return None


def _unscored(judge: Scorer, result: object, gold: str) -> _Fault | None:
    """Return why a scorer gave no score; None if it gave one."""
    if isinstance(result, NoVerdictError):
        return "scorer_raises", str(result)
    if not isinstance(result, Score):
        return "scorer_raises", f"{type(result).__name__}: {result}"
    if result.status is Status.BAD_GROUND_TRUTH:
        return "bad_gold", f"gold {gold[:80]!r} cannot be scored{explain_bad_gold(gold, judge)}"
    return None
