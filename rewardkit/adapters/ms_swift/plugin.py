"""ms-swift's GRPO: a plugin for `--external_plugins`; see docs/trainers.md.

PLUGIN=$(python -c 'import rewardkit.adapters.ms_swift as m; print(m.__path__[0])')/plugin.py
swift rlhf --rlhf_type grpo --external_plugins $PLUGIN --reward_funcs rewardkit ...
"""

from swift.rewards import orms

from rewardkit.adapters.trl import reward_func

__all__ = ["reward_func"]

orms["rewardkit"] = lambda **_: reward_func
