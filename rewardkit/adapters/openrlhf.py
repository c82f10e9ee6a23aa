"""OpenRLHF: the file that `--reward.remote_url` (`--remote_rm_url` before 0.10) names.

    export REWARDKIT_SCORER=gsm8k
    RM=$(python -c 'import rewardkit.adapters.openrlhf as m; print(m.__file__)')
    python -m openrlhf.cli.train_ppo_ray --reward.remote_url $RM \
        --data.input_key prompt --data.label_key reward_model --data.apply_chat_template ...

Data: a prompt and a label; these keys are those of `rewardkit prep`'s parquet. OpenRLHF hands over
no other column, so `REWARDKIT_SCORER` names the scorer, unless the label is a struct with
`data_source`, `ground_truth` and, if the scorer reads it, `extra_info`. For options, give it a
file of your own with `reward_func = reward("gsm8k", method="robust")`. A gold that cannot be
scored counts as a wrong answer, with `error` 1 in the charts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rewardkit.adapters.common import Judge, scorer_name
from rewardkit.reward_server.openrlhf import response_of
from rewardkit.scorers.base import as_text, failure_result

_LOGS = ("acc", "no_answer", "timeout", "error")


def _reward(
    judge: Judge, queries: Sequence[Any], prompts: Sequence[Any], labels: Sequence[Any]
) -> dict[str, Any]:
    """What OpenRLHF reads: `rewards`, `scores` (1.0 if right: its dynamic filter), `extra_logs`.

    Args:
        judge: the scorer.
        queries: n prompts with their responses, special tokens kept.
        prompts: the prompts, as text.
        labels: the column `--data.label_key` names.

    Returns: float tensors of shape (n,); `extra_logs` has one for each flag.
    """
    import torch

    verdicts = [
        _verdict(judge, response_of(as_text(query), as_text(prompt)), label)
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]
    rewards, *flags = (
        torch.tensor([float(each[key]) for each in verdicts]) for key in ("score", *_LOGS)
    )
    logs = dict(zip(_LOGS, flags, strict=True))
    return {"rewards": rewards, "scores": logs["acc"], "extra_logs": logs}


def _verdict(judge: Judge, response: str | None, label: Any) -> dict[str, float | str]:
    if response is None:  # examples in the prompt must not be judged
        return failure_result(judge.name, ValueError("the query does not begin with the prompt."))
    return judge(response, {"ground_truth": label})


def reward(scorer: str = "auto", **options: Any) -> Callable[..., dict[str, Any]]:
    """A reward function of that scorer with these options; `auto`: by the label's data_source."""
    return partial(_reward, Judge(scorer, options))


reward_func = reward(scorer_name())
