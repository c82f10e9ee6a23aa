"""OpenRLHF: the file for `--reward.remote_url` (`--remote_rm_url` before 0.10).

    export REWARDKIT_SCORER=gsm8k
    RM=$(python -c 'import rewardkit.adapters.openrlhf as m; print(m.__file__)')
    python -m openrlhf.cli.train_ppo_ray --reward.remote_url $RM \
        --data.input_key prompt --data.label_key reward_model --data.apply_chat_template ...

Data: a prompt and a label; the keys above fit the parquet of `rewardkit prep`. OpenRLHF passes no
other column, so `REWARDKIT_SCORER` names the scorer, unless the label is a struct with
`data_source`, `ground_truth` and, if the scorer reads it, `extra_info`. For options, pass a file of
your own with `reward_func = reward("gsm8k", method="robust")`. A gold that cannot be scored counts
as a wrong answer and sets `error` to 1 in the charts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rewardkit.adapters.common import FLAGS, SampleScorer, scorer_name
from rewardkit.adapters.response_text import response_after_prompt
from rewardkit.scorers.base import as_text, failure_result


def _reward(
    scorer: SampleScorer, queries: Sequence[Any], prompts: Sequence[Any], labels: Sequence[Any]
) -> dict[str, Any]:
    """Return what OpenRLHF reads of a batch of n responses.

    Args:
        scorer: the scorer.
        queries: n prompts with their responses, with special tokens.
        prompts: the n prompts, as text.
        labels: n values of the column in `--data.label_key`.

    Returns:
        Float tensors of shape (n,): `rewards`, `scores` (1.0 if correct, for the dynamic filter),
        and one for each flag in `extra_logs`.
    """
    import torch

    def result(query: Any, prompt: Any, label: Any) -> dict[str, float | str]:
        response = response_after_prompt(as_text(query), as_text(prompt))
        if response is None:
            error = ValueError("the query does not begin with the prompt.")
            return failure_result(scorer.name, error)
        return scorer(response, {"ground_truth": label})

    results = [result(*sample) for sample in zip(queries, prompts, labels, strict=True)]
    rewards, *flags = (
        torch.tensor([float(result[key]) for result in results]) for key in ("score", *FLAGS)
    )
    logs = dict(zip(FLAGS, flags, strict=True))
    return {"rewards": rewards, "scores": logs["acc"], "extra_logs": logs}


def reward(scorer: str = "auto", **options: Any) -> Callable[..., dict[str, Any]]:
    """Return a reward function; the scorer `auto` goes by the `data_source` of the label."""
    return partial(_reward, SampleScorer(scorer, options))


reward_func = reward(scorer_name())
