"""A plan's values as rules need them: of the right type, or None.

Several keys stand for `${oc.select:...}` in verl's defaults: the first that is set counts.
"""

from __future__ import annotations

import math
from typing import Any

from rewardkit.launch.plan import Plan
from rewardkit.launch.presets import preset
from rewardkit.launch.verl.keys import parse_release

ACTOR = "actor_rollout_ref.actor"
MODEL = "actor_rollout_ref.model"
REF = "actor_rollout_ref.ref"
ROLLOUT = "actor_rollout_ref.rollout"


def first(plan: Plan, *keys: str) -> Any:
    """The value of the first key that has one."""
    return next((value for key in keys if (value := plan.get(key)) is not None), None)


def number(plan: Plan, *keys: str) -> float | None:
    """A finite number."""
    value = first(plan, *keys)
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return value if good else None


def whole(plan: Plan, *keys: str) -> int | None:
    """A whole number, negative ones too."""
    value = first(plan, *keys)
    return value if type(value) is int else None


def count(plan: Plan, *keys: str) -> int | None:
    """A positive whole number."""
    value = whole(plan, *keys)
    return value if value is not None and value > 0 else None


def flag(plan: Plan, *keys: str) -> bool | None:
    """A truth value."""
    value = first(plan, *keys)
    return value if isinstance(value, bool) else None


def word(plan: Plan, *keys: str) -> str | None:
    """Text."""
    value = first(plan, *keys)
    return value if isinstance(value, str) else None


def words(plan: Plan, key: str) -> list[str]:
    """Text, or a list of it; what is none of both is left out."""
    value = plan.get(key)
    items = value if isinstance(value, (list, tuple)) else [value]
    return [item for item in items if isinstance(item, str)]


def asked(plan: Plan, key: str) -> bool:
    """Whether a person set a key: it is neither verl's default nor the algorithm's preset."""
    return key in plan.settings and plan.settings[key] != preset(plan.recipe).get(key)


def since(plan: Plan, *number: int) -> bool:
    """Whether the plan is for this release of verl or a newer one."""
    return parse_release(plan.verl) >= number


def is_megatron(plan: Plan) -> bool:
    """Whether the actor is trained by Megatron; FSDP otherwise."""
    return plan.recipe.strategy == "megatron"


def is_dynamic(plan: Plan) -> bool:
    """Whether the actor's micro batches are cut by tokens, not by rows."""
    return flag(plan, f"{ACTOR}.use_dynamic_bsz") is True


def devices(plan: Plan) -> int | None:
    """Of all nodes."""
    nodes, each = count(plan, "trainer.nnodes"), count(plan, "trainer.n_gpus_per_node")
    return nodes * each if nodes and each else None


def tokens(plan: Plan) -> int | None:
    """Of the longest sequence: prompt and response."""
    prompt, response = count(plan, "data.max_prompt_length"), response_length(plan)
    return prompt + response if prompt and response else None


def response_length(plan: Plan) -> int | None:
    """Of the longest response."""
    return count(plan, f"{ROLLOUT}.response_length", "data.max_response_length")


def sequence_parallel(plan: Plan, part: str = ACTOR) -> int | None:
    """Over how many devices one sequence is cut: Ulysses of FSDP, context of Megatron."""
    name = "ulysses_sequence_parallel_size"
    if is_megatron(plan):
        name = "megatron.context_parallel_size"
    for owner in (part, ACTOR):
        sizes = [count(plan, f"{owner}.{place}{name}") for place in _PLACES]
        if found := max(filter(None, sizes), default=None):
            return found
    return 1 if _unset(plan, name) else None


#: From 0.8 on FSDP's own section has the size, and the actor's is copied into it.
_PLACES = ("", "fsdp_config.")


def _unset(plan: Plan, name: str) -> bool:
    return plan.get(f"{ACTOR}.{name}") is None


def model_parallel(plan: Plan) -> int | None:
    """How many devices hold one copy of the actor together: Ulysses, or TP x PP x CP."""
    context = sequence_parallel(plan)
    if not is_megatron(plan):
        return context
    tensor = count(plan, f"{ACTOR}.megatron.tensor_model_parallel_size")
    pipeline = count(plan, f"{ACTOR}.megatron.pipeline_model_parallel_size")
    return tensor * pipeline * context if tensor and pipeline and context else None


def data_parallel(plan: Plan) -> int | None:
    """How many copies of the actor share a batch; None where the devices do not divide."""
    all_of_them, copy = devices(plan), model_parallel(plan)
    if not all_of_them or not copy or all_of_them % copy:
        return None
    return all_of_them // copy


def uses_reference(plan: Plan) -> bool:
    """Whether a reference model is loaded."""
    kl = (flag(plan, "algorithm.use_kl_in_reward"), flag(plan, f"{ACTOR}.use_kl_loss"))
    return True in kl


def uses_critic(plan: Plan) -> bool:
    """Whether a critic is trained."""
    return word(plan, "algorithm.adv_estimator") == "gae"


def validates(plan: Plan) -> bool:
    """Whether verl looks at the validation files."""
    freq = whole(plan, "trainer.test_freq")
    return (freq or 0) > 0 or flag(plan, "trainer.val_before_train") is True


def only_validates(plan: Plan) -> bool:
    """Whether nothing is trained."""
    asked = flag(plan, "trainer.val_only") is True
    return asked and flag(plan, "trainer.val_before_train") is not False
