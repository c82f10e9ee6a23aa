"""The reward managers of verl, from 0.7.1 on (`verl/experimental/reward_loop/reward_manager`).

| manager | reads | ignores |
|---|---|---|
| `naive` | | the length penalty |
| `dapo` | `reward.reward_kwargs`: the length penalty | fields of tools, the number of turns |
| `gdpo` | | the length penalty, fields of tools, the number of turns |
| `rate_limited` | `LIMITS` | the length penalty, the number of turns |
| `remote` | `reward.num_workers`: processes for each reward worker | the length penalty |
"""

from __future__ import annotations

REWARD_MANAGERS = ("dapo", "gdpo", "naive", "rate_limited", "remote")

#: First release in which a reward file cannot register a manager of its own: verl looks the manager
#: up in the trainer's process, which does not load the file.
NO_REGISTRATION_SINCE = (0, 8, 0)

#: Settings that only `rate_limited` reads; verl lists none of them, so each needs a `+`.
LIMITS = tuple(
    f"reward.{name}"
    for name in ("max_concurrent", "max_rpm", "max_tpm", "estimated_tokens_per_request", "timeout")
)
