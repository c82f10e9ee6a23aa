"""TRL's GRPOTrainer and RLOOTrainer: a reward function of batches; see docs/trainers.md.

    trl grpo --reward_funcs rewardkit.adapters.trl.reward_func ...     # TRL's script

    from rewardkit.adapters.trl import reward
    GRPOTrainer(reward_funcs=[reward("gsm8k", method="robust")], ...)      # in code

A gold that cannot be scored and an unknown `data_source` return None, and TRL leaves that completion
out.
"""

from collections.abc import Sequence
from typing import Any

from rewardkit.adapters.common import COLUMNS, FLAGS, SampleScorer, reward_maker, scorer_name


def _reward(scorer: SampleScorer, completions: Sequence[Any], **columns: Any) -> list[float | None]:
    """Return the rewards of a batch; None for rows with a fault in the data. Logs the flags."""
    rows = {name: columns[name] for name in COLUMNS if name in columns}
    results = [
        scorer(completion, {name: values[i] for name, values in rows.items()})
        for i, completion in enumerate(completions)
    ]
    if results and (log_metric := columns.get("log_metric")):
        for flag in FLAGS:
            mean = sum(float(result[flag]) for result in results) / len(results)
            log_metric(f"{scorer.name}/{flag}", mean)
    if log_extra := columns.get("log_extra"):
        log_extra(f"{scorer.name}_pred", [result["pred"] for result in results])
    return [None if result["error"] else float(result["score"]) for result in results]


reward = reward_maker(_reward)
reward_func = reward(scorer_name())
