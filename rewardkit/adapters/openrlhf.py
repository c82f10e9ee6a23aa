"""OpenRLHF: the file for `--reward.remote_url` (`--remote_rm_url` before 0.10); see docs/trainers.md.

    export REWARDKIT_SCORER=gsm8k
    RM=$(python -c 'import rewardkit.adapters.openrlhf as m; print(m.__file__)')
    python -m openrlhf.cli.train_ppo_ray --reward.remote_url $RM \
        --data.input_key prompt --data.label_key reward_model --data.apply_chat_template ...

For options, pass a file of your own with `reward_func = reward("gsm8k", method="robust")`.
"""

from collections.abc import Sequence
from typing import Any

from rewardkit.adapters.common import FLAGS, SampleScorer, reward_maker, scorer_name
from rewardkit.adapters.response_text import response_after_prompt
from rewardkit.scorers.base import as_text, failure_result


def _reward(
    scorer: SampleScorer, queries: Sequence[Any], prompts: Sequence[Any], labels: Sequence[Any]
) -> dict[str, Any]:
    """Return tensors: `rewards`, `scores` (1.0 if correct, for the dynamic filter) and `extra_logs`."""
    import torch

    results = []
    for query, prompt, label in zip(queries, prompts, labels, strict=True):
        response = response_after_prompt(as_text(query), as_text(prompt))
        error = ValueError("the query does not begin with the prompt.")
        is_lost = response is None
        row = {"ground_truth": label}
        results.append(failure_result(scorer.name, error) if is_lost else scorer(response, row))
    rewards, *flags = (
        torch.tensor([float(result[key]) for result in results]) for key in ("score", *FLAGS)
    )
    logs = dict(zip(FLAGS, flags, strict=True))
    return {"rewards": rewards, "scores": logs["acc"], "extra_logs": logs}


reward = reward_maker(_reward)
reward_func = reward(scorer_name())
