"""A plan's values with their types checked, for the rules."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from rewardkit.launch.plan import Plan
from rewardkit.launch.presets import ACTOR, preset
from rewardkit.launch.recipe import Recipe
from rewardkit.launch.rules.facts import RunFacts
from rewardkit.launch.verl.key_renames import to_latest_key
from rewardkit.launch.verl.releases import parse_release

MODEL = "actor_rollout_ref.model"
ROLLOUT = "actor_rollout_ref.rollout"

BATCH = "data.train_batch_size"
DYNAMIC_BATCH = f"{ACTOR}.use_dynamic_bsz"
EAGER = f"{ROLLOUT}.enforce_eager"
KL_IN_REWARD = "algorithm.use_kl_in_reward"
KL_LOSS = f"{ACTOR}.use_kl_loss"
LOGGER = "trainer.logger"
MEMORY_SHARE = f"{ROLLOUT}.gpu_memory_utilization"
MICRO_BATCH = f"{ACTOR}.ppo_micro_batch_size_per_gpu"
REMOVE_PADDING = f"{MODEL}.use_remove_padding"
SAMPLES = f"{ROLLOUT}.n"
TENSOR_PARALLEL = f"{ROLLOUT}.tensor_model_parallel_size"
ULYSSES_SIZE = "ulysses_sequence_parallel_size"

#: Loggers that other people look at.
SHARED_LOGGERS = frozenset(
    {"wandb", "swanlab", "mlflow", "tensorboard", "vemlp_wandb", "clearml", "trackio"}
)

#: A model whose name says that it reads images.
_VISION_NAME = re.compile(r"(?:^|[-_/.\d])vl(?:[-_/.]|$)", re.IGNORECASE)


@dataclass(frozen=True)
class PlanValues:
    """One plan, and typed access to its values.

    Every reader takes keys by verl 0.9.1's names. Several keys stand for verl's `${oc.select:...}`
    defaults: the first one that is set counts.

    Attributes:
        plan: the plan.
        facts: the model, the devices and the data, as far as they are known.
    """

    plan: Plan
    facts: RunFacts = field(default_factory=RunFacts)

    @property
    def recipe(self) -> Recipe:
        """The plan's recipe."""
        return self.plan.recipe

    def first(self, *keys: str) -> Any:
        """Return the value of the first key that has one."""
        return next((value for key in keys if (value := self.plan.get(key)) is not None), None)

    def number(self, *keys: str) -> float | None:
        """Return a finite number; None for any other value, as for the next readers."""
        value = self.first(*keys)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return value if is_number and math.isfinite(value) else None

    def integer(self, *keys: str) -> int | None:
        """Return an integer, which may be negative."""
        value = self.first(*keys)
        return value if type(value) is int else None

    def count(self, *keys: str) -> int | None:
        """Return a positive integer."""
        value = self.integer(*keys)
        return value if value is not None and value > 0 else None

    def flag(self, *keys: str) -> bool | None:
        """Return a boolean."""
        value = self.first(*keys)
        return value if isinstance(value, bool) else None

    def text(self, *keys: str) -> str | None:
        """Return a text."""
        value = self.first(*keys)
        return value if isinstance(value, str) else None

    def texts(self, key: str) -> list[str]:
        """Return the texts of a list, or one text as a list, without values of other types."""
        value = self.plan.get(key)
        items = value if isinstance(value, (list, tuple)) else [value]
        return [item for item in items if isinstance(item, str)]

    def explicit(self, key: str) -> Any:
        """Return the value that a preset, the recipe or the command line sets, else None."""
        return self.plan.settings.get(self._latest(key))

    def is_set(self, key: str) -> bool:
        """Whether a setting has a value, which a recipe may still leave open as `???`."""
        return self.plan.get(key) is not None or self._latest(key) in self.plan.missing

    def is_user_set(self, key: str) -> bool:
        """Whether a person set a key: the value is neither verl's default nor the preset's."""
        is_set = self._latest(key) in self.plan.settings
        return is_set and self.explicit(key) != preset(self.recipe).get(key)

    def _latest(self, key: str) -> str:
        return to_latest_key(key, megatron=self.plan.release.megatron)

    def is_since(self, *release: int) -> bool:
        """Whether the plan is for this release of verl or a newer one."""
        return parse_release(self.plan.verl) >= release

    @property
    def is_megatron(self) -> bool:
        """Whether Megatron trains the actor; FSDP does otherwise."""
        return self.recipe.strategy == "megatron"

    @property
    def is_npu(self) -> bool:
        """Whether the run is on NPUs."""
        return self.recipe.devices == "npu"

    @property
    def is_dynamic(self) -> bool:
        """Whether the actor's micro batches are cut by tokens instead of rows."""
        return self.flag(DYNAMIC_BATCH) is True

    @property
    def engine(self) -> str | None:
        """The rollout's inference engine, as in `vllm`."""
        return self.text(f"{ROLLOUT}.name")

    @property
    def memory_share(self) -> float | None:
        """The share of a device's memory that the rollout may use."""
        return self.number(MEMORY_SHARE)

    @property
    def shared_loggers(self) -> frozenset[str]:
        """The run's loggers that other people look at."""
        return SHARED_LOGGERS & set(self.texts(LOGGER))

    @property
    def reads_images(self) -> bool:
        """Whether the model reads images, by its configuration or its name."""
        return self.facts.vision is True or bool(_VISION_NAME.search(self.recipe.model))

    @property
    def devices(self) -> int | None:
        """The devices of all nodes."""
        nodes = self.count("trainer.nnodes")
        per_node = self.count("trainer.n_gpus_per_node")
        return nodes * per_node if nodes and per_node else None

    @property
    def response_tokens(self) -> int | None:
        """The tokens of the longest response."""
        return self.count(f"{ROLLOUT}.response_length", "data.max_response_length")

    @property
    def sequence_tokens(self) -> int | None:
        """The tokens of the longest sequence: prompt and response."""
        prompt, response = self.count("data.max_prompt_length"), self.response_tokens
        return prompt + response if prompt and response else None

    @property
    def rollout_tokens(self) -> int | None:
        """The tokens of the longest sequence that the rollout allows."""
        longest, limit = self.sequence_tokens, self.count(f"{ROLLOUT}.max_model_len") or 0
        return max(longest, limit) if longest else None

    def sequence_parallel(self, model: str = ACTOR) -> int | None:
        """Return how many devices share a sequence: Ulysses (FSDP), context parallel (Megatron)."""
        name = "megatron.context_parallel_size" if self.is_megatron else ULYSSES_SIZE
        for owner in (model, ACTOR):
            size = self.count(f"{owner}.{name}")
            if self.has_own_ulysses_size and size in {1, None}:
                size = self.count(f"{owner}.fsdp_config.{name}") or size
            if size:
                return size
        return 1 if self.plan.get(f"{ACTOR}.{name}") is None else None

    @property
    def has_own_ulysses_size(self) -> bool:
        """Whether FSDP's own section has the Ulysses size; a size above 1 of the model's wins."""
        return not self.is_megatron and self.is_since(0, 8, 0)

    def ulysses_key(self, model: str = ACTOR) -> str:
        """Return the setting that decides a model's Ulysses size."""
        key = f"{model}.{ULYSSES_SIZE}"
        is_default = self.count(key) in {1, None}
        return (
            f"{model}.fsdp_config.{ULYSSES_SIZE}"
            if self.has_own_ulysses_size and is_default
            else key
        )

    @property
    def model_parallel(self) -> int | None:
        """How many devices hold a copy of the actor: the Ulysses size, or TP x PP x CP (Megatron)."""
        context = self.sequence_parallel()
        if not self.is_megatron:
            return context
        tensor = self.count(f"{ACTOR}.megatron.tensor_model_parallel_size")
        pipeline = self.count(f"{ACTOR}.megatron.pipeline_model_parallel_size")
        return tensor * pipeline * context if tensor and pipeline and context else None

    @property
    def data_parallel(self) -> int | None:
        """How many copies of the actor share a batch; None if the copies do not fill the devices."""
        devices, per_copy = self.devices, self.model_parallel
        if not devices or not per_copy or devices % per_copy:
            return None
        return devices // per_copy

    @property
    def adapter_rank(self) -> int | None:
        """The rank of LoRA adapters; None without adapters."""
        return self.count(f"{MODEL}.lora_rank", f"{MODEL}.lora.rank")

    @property
    def uses_reference(self) -> bool:
        """Whether verl loads a reference model."""
        return True in (self.flag(KL_IN_REWARD), self.flag(KL_LOSS))

    @property
    def uses_critic(self) -> bool:
        """Whether verl trains a critic."""
        enabled = self.flag("critic.enable")
        return self.text("algorithm.adv_estimator") == "gae" if enabled is None else enabled

    @property
    def validates(self) -> bool:
        """Whether verl reads the validation files."""
        frequency = self.integer("trainer.test_freq") or 0
        return frequency > 0 or self.flag("trainer.val_before_train") is True

    @property
    def only_validates(self) -> bool:
        """Whether the run validates and trains nothing."""
        val_only = self.flag("trainer.val_only") is True
        return val_only and self.flag("trainer.val_before_train") is not False
