"""Try a reward, and write the file that guards it for verl."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from pprint import pformat
from statistics import median
from textwrap import indent
from typing import Any

from rewardkit import registry
from rewardkit.errors import UsageError
from rewardkit.guard.guard import Guard, GuardSettings, default_fields, read_outcome
from rewardkit.isolate.function import Reply
from rewardkit.redact import process_redactor, variable_of
from rewardkit.scorers.conversation import one_turn
from rewardkit.scorers.gold import alternatives, another_answer, unwrap_gold
from rewardkit.scorers.right_score import learn_right
from rewardkit.scorers.score import InvalidResultError, RewardResult, RightRule, Score

#: Rows of a parquet that a reward is tried on.
TRIAL_ROWS = 8

#: The row of a trial without a parquet.
_ROW: Mapping[str, Any] = {
    "data_source": "",
    "ground_truth": "42",
    "extra_info": one_turn({"index": 0}),
}

_TEMPLATE = '''"""A reward, guarded for verl. Written by `rewardkit guard`.

verl loads this file in place of the reward. Calls run in child processes, and each ends at its
deadline; a failure is a wrong answer with `timeout` or `error` 1.0; every sample has the same keys.
"""

from rewardkit.guard.guard import {imports}

GUARD = Guard(
    {reward!r},
    GuardSettings(
{settings}
    ),
    is_async={is_async},
    beside=__file__,
)

compute_score = reward_function(GUARD)
'''


@dataclass(frozen=True)
class GuardTrial:
    """What trying a reward showed.

    Attributes:
        rule: which results are right.
        failures: how calls failed, each cause once.
        seconds: median duration of a call that did not fail; 0.0 if all failed.
    """

    is_async: bool
    rule: RightRule
    calls: int
    failure_count: int
    failures: tuple[str, ...]
    seconds: float


def why_not_guarded(scorer: str) -> str:
    """Return why a scorer that is named, and not by its file, gets no guard.

    Raises:
        UnknownNameError: no scorer has this name.
    """
    registry.target("scorers", scorer)
    if scorer in registry.SCORERS:
        return f"{scorer} needs no guard: scorers of rewardkit keep their own deadlines."
    return f"{scorer} is of another package: name its file, which `rewardkit path {scorer}` prints."


def try_reward(
    reward: str,
    settings: GuardSettings,
    rows: Sequence[Mapping[str, Any]],
    *,
    keys: Sequence[str],
    wrong_score: float | None,
    right_score: float | None = None,
) -> tuple[GuardTrial, GuardSettings]:
    """Call a reward, guarded, with responses to some rows of `trial_rows`; return what it showed.

    The settings get the keys and scores of the trial, further `keys`, and the scores that are given.

    Raises:
        UsageError: it is not a file's function, does not load, or is a coroutine function with a limit
            of CPU time; or it failed on all calls and `keys` is empty, or on all wrong responses and
            `wrong_score` is None: a guess could pay for failures.
    """
    if not registry.is_path(reward):
        raise UsageError(why_not_guarded(reward))
    replies: list[tuple[bool, Reply]] = []
    failures: list[str] = []

    def score(request: tuple[str, Any, Mapping[str, Any]]) -> Score | Exception:
        response, gold, row = request
        outcome = guard.outcome({**row, "solution_str": response, "ground_truth": gold})
        failure = read_outcome(outcome, reward, settings)[1]
        if failure or not isinstance(outcome, Reply):
            failures.append(failure)
            return InvalidResultError(failure)
        has_gold = any(each in response for each in alternatives(gold))
        replies.append((has_gold, outcome))
        return RewardResult.of(outcome.value).as_score()

    with closing(Guard(reward, settings)) as guard:
        guard.function.start()
        if guard.function.is_async and settings.cpu_seconds:
            raise UsageError(
                f"{reward} is a coroutine function, whose calls share a process: leave out --cpu-seconds."
            )
        for row in rows:
            answers = alternatives(row["ground_truth"]) or ("",)
            for text in ("", "I do not know.", another_answer(*answers), answers[0]):
                score((text, row["ground_truth"], row))
        golds = [(unwrap_gold(row["ground_truth"]), row) for row in rows]
        rule = learn_right(lambda requests: [*map(score, requests)], golds)
    calls, first = len(replies) + len(failures), failures[0] if failures else ""
    if not (replies or keys):
        raise UsageError(
            f"{reward} failed on all {calls} calls of the trial, so that its keys are not "
            f"known. {first} Fix it, name rows that it can score (--rows train.parquet), or name its "
            "keys: --keys score, or reward.guard.keys in a recipe."
        )
    if wrong_score is None:
        wrong_score = _wrong_score(replies)
    if wrong_score is None:
        raise UsageError(
            f"{reward} failed on every wrong response of the trial, so that the score of a failed "
            f"call is not known. {first} Fix it, or name the score: --wrong-score 0, or "
            "reward.guard.wrong_score in a recipe."
        )
    fields = dict.fromkeys(keys, 0.0)
    fields |= {k: v for _, reply in reversed(replies) for k, v in reply.value.items()}
    trial = GuardTrial(
        guard.function.is_async,
        rule,
        calls,
        len(failures),
        tuple(dict.fromkeys(failures)),
        seconds=median([reply.nanoseconds * 1e-9 for _, reply in replies] or [0.0]),
    )
    return trial, replace(
        settings,
        keys=default_fields(fields, has_acc=right_score is not None or rule.is_known),
        wrong_score=wrong_score,
        right_score=rule.least if right_score is None else right_score,
    )


def _wrong_score(replies: Sequence[tuple[bool, Reply]]) -> float | None:
    """Return the lowest score of a response without the gold, but 0.0 if that is what a gold earns."""
    scores = [(reply.value["score"], has_gold) for has_gold, reply in replies]
    wrong: float | None = min((score for score, has_gold in scores if not has_gold), default=None)
    return 0.0 if wrong is not None and 0 < wrong >= max(scores)[0] else wrong


def trial_rows(parquet: Path | None) -> list[dict[str, Any]]:
    """Return verl's arguments, but the response, of the first rows of a parquet, or of a made-up row."""
    if parquet is None:
        return [{**_ROW}]
    from itertools import islice

    from rewardkit.row import read_rows

    return [
        {
            "data_source": row["data_source"],
            "ground_truth": row["reward_model"]["ground_truth"],
            "extra_info": one_turn(row.get("extra_info") or {}),
        }
        for row in islice(read_rows(parquet), TRIAL_ROWS)
    ]


def guard_file_text(reward: str, trial: GuardTrial, settings: GuardSettings) -> str:
    """Return the file that guards a reward, which needs rewardkit and the reward's file.

    The reward's file is named by its absolute path, and is looked for beside the guarding file where that does
    not exist. Options that are secrets are read from the environment.
    """
    path, _, function = reward.partition(":")
    defaults = GuardSettings()
    values = {each.name: getattr(settings, each.name) for each in fields(settings)}
    variables = secret_variables(settings.options)
    values["options"] = {**settings.options, **{n: _Variable(v) for n, v in variables.items()}}
    lines = [
        f"{name}={pformat(value, sort_dicts=False)},"
        for name, value in values.items()
        if name == "keys" or value != getattr(defaults, name)
    ]
    return _TEMPLATE.format(
        imports="Guard, GuardSettings, "
        + ("read_secret, " if variables else "")
        + "reward_function",
        reward=f"{Path(path).expanduser().absolute()}:{function}",
        settings=indent("\n".join(lines), " " * 8),
        is_async=trial.is_async,
    )


def secret_variables(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment variables from which the guarding file reads options that are secrets."""
    for name, value in options.items():
        is_tree = isinstance(value, (list, Mapping))
        if is_tree and process_redactor().tree(value, name) != value:
            raise UsageError(
                f"{name}: a list or a mapping with a secret would be written into a file. Pass the secret "
                "as an option of its own."
            )
    variables = {name: variable_of(name, value) for name, value in options.items()}
    return {name: variable for name, variable in variables.items() if variable}


class _Variable(str):
    """An environment variable, which is written as the call that reads it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"read_secret({str(self)!r})"
