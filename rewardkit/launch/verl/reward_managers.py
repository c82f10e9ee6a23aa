"""The reward managers of each release of verl.

Read in the code of the releases 0.4.1 to 0.9.1: `verl/workers/reward_manager` before 0.7.0, and
`verl/experimental/reward_loop/reward_manager` since, which the agent loops ask.

| manager | reads | ignores |
|---|---|---|
| `naive` | | the length penalty |
| `dapo` | `reward.reward_kwargs`: the length penalty | fields of tools, the number of turns |
| `gdpo` | | the length penalty, fields of tools, the number of turns |
| `rate_limited` | `LIMITS` | the length penalty, the number of turns |
| `remote` | `reward.num_workers`: processes for each reward worker | the length penalty |
"""

from __future__ import annotations

#: First release with the estimator and the reward manager `gdpo`.
GDPO_SINCE = (0, 7, 1)

#: First release with `rate_limited` and `remote`; it has `batch` and `prime` no more.
REWARD_LOOP_SINCE = (0, 7, 0)

#: First release in which a reward file cannot register a manager of its own: verl looks the manager
#: up in the trainer's process, which does not load the file.
NO_REGISTRATION_SINCE = (0, 8, 0)

#: Settings that only `rate_limited` reads; verl lists none of them, so each needs a `+`.
LIMITS = tuple(
    f"reward.{name}"
    for name in ("max_concurrent", "max_rpm", "max_tpm", "estimated_tokens_per_request", "timeout")
)


def reward_managers(release: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of a release's reward managers, in alphabetical order."""
    if release < REWARD_LOOP_SINCE:
        return ("batch", "dapo", "naive", "prime")
    gdpo = ("gdpo",) if release >= GDPO_SINCE else ()
    return ("dapo", *gdpo, "naive", "rate_limited", "remote")
