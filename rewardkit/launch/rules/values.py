"""A plan's values with their types checked, for the rules."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rewardkit.launch.plan import Plan
from rewardkit.launch.presets import ACTOR, preset
from rewardkit.launch.recipe import Recipe
from rewardkit.launch.rules.facts import RunFacts
from rewardkit.launch.verl.key_renames import to_latest_key
from rewardkit.launch.verl.refusals import refusal
from rewardkit.registry import is_path

MODEL = "actor_rollout_ref.model"
ROLLOUT = "actor_rollout_ref.rollout"

BATCH = "data.train_batch_size"
DYNAMIC_BATCH = f"{ACTOR}.use_dynamic_bsz"
EAGER = f"{ROLLOUT}.enforce_eager"
KL_IN_REWARD = "algorithm.use_kl_in_reward"
LOG_PROB_MICRO_BATCH = f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"
LOGGER = "trainer.logger"
MANAGER = "reward.reward_manager.name"
MEMORY_SHARE = f"{ROLLOUT}.gpu_memory_utilization"
MICRO_BATCH = f"{ACTOR}.ppo_micro_batch_size_per_gpu"
MINI_BATCH = f"{ACTOR}.ppo_mini_batch_size"
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


#: From this many tokens of a sequence on packing and checkpointing matter, from the second on fused kernels.
LONG_TOKENS, VERY_LONG_TOKENS = 4096, 16384


@dataclass(frozen=True)
class Count:
    """A property of `PlanValues`: a setting that is a positive integer."""

    key: str

    def __get__(self, values: PlanValues, _: type[PlanValues]) -> int | None:
        """Return the setting's value."""
        return values.count(self.key)


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

    batch: ClassVar = Count(BATCH)
    mini_batch: ClassVar = Count(MINI_BATCH)
    micro_batch: ClassVar = Count(MICRO_BATCH)
    log_prob_micro_batch: ClassVar = Count(LOG_PROB_MICRO_BATCH)
    samples: ClassVar = Count(SAMPLES)
    tensor_parallel: ClassVar = Count(TENSOR_PARALLEL)
    devices_per_node: ClassVar = Count("trainer.n_gpus_per_node")
    nodes: ClassVar = Count("trainer.nnodes")
    prompt_tokens: ClassVar = Count("data.max_prompt_length")

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
        return self.plan.release.number >= release

    def refusal(self, check: str) -> str:
        """Return the place where the release makes a check of `refusals.yaml`; "" if it does not."""
        return refusal(check, self.plan.verl) if check else ""

    def matches(self, name: str, wanted: Any) -> bool:
        """Whether a property, or a setting with a dot in its name, has a value, or one of a list."""
        value = self.plan.get(name) if "." in name else getattr(self, name)
        return value in wanted if isinstance(wanted, list) else bool(value == wanted)

    @property
    def algorithm(self) -> str:
        """The recipe's algorithm."""
        return self.recipe.algorithm

    @property
    def is_megatron(self) -> bool:
        """Whether Megatron trains the actor; FSDP does otherwise."""
        return self.recipe.strategy == "megatron"

    @property
    def is_npu(self) -> bool:
        """Whether the run is on NPUs."""
        return self.recipe.devices == "npu"

    @property
    def is_v1(self) -> bool:
        """Whether the trainer is that of verl 0.9; the older one is `trainer.use_v1=False`."""
        return self.is_since(0, 9, 0) and self.flag("trainer.use_v1") is not False

    @property
    def is_separate(self) -> bool:
        """Whether the rollout has devices of its own, in the trainer of 0.9."""
        return self.is_v1 and self.text("trainer.v1.trainer_mode") == "separate_async"

    @property
    def is_disaggregated(self) -> bool:
        """Whether prefill and decoding have replicas of their own."""
        return self.flag(f"{ROLLOUT}.disaggregation.enabled") is True

    @property
    def has_own_code(self) -> bool:
        """Whether the run imports code of a user, which may register estimators and losses."""
        keys = (f"{MODEL}.external_lib", "data.custom_cls.path")
        return is_path(self.recipe.reward.scorer) or any(map(self.is_set, keys))

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
    def fills_memory(self) -> bool:
        """Whether the rollout leaves a tenth of the memory at most."""
        return 0.9 <= (self.memory_share or 0) <= 1

    @property
    def is_wide_rollout(self) -> bool:
        """Whether a replica of the rollout is spread over 32 devices or more."""
        return (self.tensor_parallel or 1) >= 32

    @property
    def has_shared_logger(self) -> bool:
        """Whether the run has a logger that other people look at."""
        return not SHARED_LOGGERS.isdisjoint(self.texts(LOGGER))

    @property
    def reads_images(self) -> bool:
        """Whether the model reads images, by its configuration or its name."""
        return self.facts.vision is True or bool(_VISION_NAME.search(self.recipe.model))

    @property
    def devices(self) -> int | None:
        """The devices of all nodes."""
        nodes, per_node = self.nodes, self.devices_per_node
        return nodes * per_node if nodes and per_node else None

    @property
    def response_tokens(self) -> int | None:
        """The tokens of the longest response."""
        return self.count(f"{ROLLOUT}.response_length", "data.max_response_length")

    @property
    def sequence_tokens(self) -> int | None:
        """The tokens of the longest sequence: prompt and response."""
        prompt, response = self.prompt_tokens, self.response_tokens
        return prompt + response if prompt and response else None

    @property
    def rollout_tokens(self) -> int | None:
        """The tokens of the longest sequence that the rollout allows."""
        longest, limit = self.sequence_tokens, self.count(f"{ROLLOUT}.max_model_len") or 0
        return max(longest, limit) if longest else None

    @property
    def fits_longest(self) -> bool:
        """Whether the rollout can process its longest sequence at once."""
        tokens = self.count(f"{ROLLOUT}.max_num_batched_tokens") or 0
        return self.rollout_tokens is not None and tokens >= self.rollout_tokens

    @property
    def is_long(self) -> bool:
        """Whether FSDP trains on long sequences."""
        return not self.is_megatron and (self.sequence_tokens or 0) >= LONG_TOKENS

    @property
    def has_long_responses(self) -> bool:
        """Whether responses alone may be long."""
        return (self.response_tokens or 0) >= LONG_TOKENS

    @property
    def may_fuse(self) -> bool:
        """Whether fused kernels can help: long texts on a GPU."""
        is_very_long = (self.sequence_tokens or 0) >= VERY_LONG_TOKENS
        return is_very_long and self.recipe.devices == "gpu" and not self.reads_images

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
        if self.has_own_ulysses_size and self.count(key) in {1, None}:
            return f"{model}.fsdp_config.{ULYSSES_SIZE}"
        return key

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
        return True in (self.flag(KL_IN_REWARD), self.flag(f"{ACTOR}.use_kl_loss"))

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
