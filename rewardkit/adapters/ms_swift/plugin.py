"""ms-swift's GRPO: a plugin for `--external_plugins`.

    PLUGIN=$(python -c 'import rewardkit.adapters.ms_swift as m; print(m.__path__[0])')/plugin.py
    swift rlhf --rlhf_type grpo --external_plugins $PLUGIN --reward_funcs rewardkit ...

Data: `messages`, `data_source`, `ground_truth` (or `solution`) and, if the scorer reads it,
`extra_info`. `data_source` chooses the scorer, unless `REWARDKIT_SCORER` names one. For options,
pass a file of your own:

    from rewardkit.adapters.trl import reward
    from swift.rewards import orms

    orms["robust"] = lambda **_: reward("gsm8k", method="robust")

A gold that cannot be scored returns None, which ms-swift counts as 0 for every response to that
prompt, so that the prompt has no advantage.
"""

from __future__ import annotations

from swift.rewards import orms

from rewardkit.adapters.trl import reward_func

__all__ = ["reward_func"]

orms["rewardkit"] = lambda **_: reward_func
