"""TRL's GRPOTrainer (and RLOO): a reward function of lists.

    trl grpo --reward_funcs rewardkit.adapters.trl.reward_func ...     # TRL's script

    from rewardkit.adapters.trl import reward
    GRPOTrainer(reward_funcs=[reward("gsm8k", method="robust")], ...)      # in code

Data: `prompt` (text or chat) and `data_source`, `ground_truth` and, if the scorer reads it,
`extra_info`; the parquet of `rewardkit prep` as it is. `data_source` chooses the scorer, unless
`REWARDKIT_SCORER` or `reward(...)` names one. A gold that cannot be scored, like an unknown
`data_source`, gives None: TRL leaves that completion out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardkit.adapters.common import COLUMNS, Judge, scorer_name


class Rewardkit:
    """A reward function that pickles, as asynchronous GRPO asks for, named after its scorer."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.__name__ = judge.name

    def __call__(self, completions: Sequence[Any], **columns: Any) -> list[float | None]:
        """The rewards of a batch; None where the data is at fault. Logs acc, no_answer, ...

        Args:
            completions: texts, or lists of messages where the prompts are chats.
            columns: the data's columns, `prompts`, and TRL's `log_metric` and `log_extra`.
        """
        rows = {name: columns[name] for name in COLUMNS if name in columns}
        verdicts = [
            self.judge(completion, {name: values[i] for name, values in rows.items()})
            for i, completion in enumerate(completions)
        ]
        if verdicts and (log_metric := columns.get("log_metric")):
            for flag in ("acc", "no_answer", "timeout", "error"):
                mean = sum(float(each[flag]) for each in verdicts) / len(verdicts)
                log_metric(f"{self.__name__}/{flag}", mean)
        if log_extra := columns.get("log_extra"):
            log_extra(f"{self.__name__}_pred", [each["pred"] for each in verdicts])
        return [None if each["error"] else float(each["score"]) for each in verdicts]


def reward(scorer: str = "auto", **options: Any) -> Rewardkit:
    """A reward function of that scorer with these options; `auto`: by `data_source`."""
    return Rewardkit(Judge(scorer, options))


reward_func = reward(scorer_name())
