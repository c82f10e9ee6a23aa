"""A plan's values with their types checked, for the rules."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

from rewardkit.devices import RAY_RESOURCES
from rewardkit.launch.gdpo import REWARD_KEYS, REWARD_WEIGHTS
from rewardkit.launch.plan import Plan
from rewardkit.launch.presets import ACTOR, preset
from rewardkit.launch.recipe import Recipe
from rewardkit.launch.rules.facts import RunFacts
from rewardkit.launch.verl.key_renames import to_latest_key
from rewardkit.registry import SCORERS, is_path, with_function

T = TypeVar("T")

MODEL = "actor_rollout_ref.model"
ROLLOUT = "actor_rollout_ref.rollout"
ULYSSES_SIZE = "ulysses_sequence_parallel_size"

BATCH = "data.train_batch_size"
DYNAMIC_BATCH = f"{ACTOR}.use_dynamic_bsz"
LOG_PROB_MICRO_BATCH = f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"
MANAGER = "reward.reward_manager.name"
MICRO_BATCH = f"{ACTOR}.ppo_micro_batch_size_per_gpu"
MINI_BATCH = f"{ACTOR}.ppo_mini_batch_size"
TENSOR_PARALLEL = f"{ROLLOUT}.tensor_model_parallel_size"

#: Our scorers that are async functions: they ask a model.
ASYNC_SCORERS = frozenset({"judge"})

#: Loggers that other people look at.
_SHARED_LOGGERS = frozenset("wandb swanlab mlflow tensorboard vemlp_wandb clearml trackio".split())

#: A model whose name says that it reads images.
_VISION_NAME = re.compile(r"(?:^|[-_/.\d])vl(?:[-_/.]|$)", re.IGNORECASE)

#: Models that think before they answer: at temperature 0 they repeat themselves.
_THINKING_NAME = re.compile(
    r"qwq|thinking|deepseek-r1|qwen3(?!.*(instruct|base|coder))", re.IGNORECASE
)

#: verl's default for the tokens that the rollout processes at once.
_DEFAULT_TOKENS = 8192

#: Tokens of one pass that fit on an 80 GB device beside a 7B model.
_PASS_TOKENS = 32768


def has_type(value: Any, example: Any) -> bool:
    """Whether a value has the type of another one, or of the first of a list; not of None.

    An integer is a float, too; NaN and infinity are none.
    """
    kind = type(example[0] if isinstance(example, list) and example else example)
    if kind is float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and math.isfinite(value)
    return value is not None and type(value) is kind


def largest_divisor(limit: int, *totals: int) -> int:
    """Return the largest power of two, up to a limit, that divides all totals."""
    best = 1
    while 2 * best <= limit and all(total % (2 * best) == 0 for total in totals):
        best *= 2
    return best


@dataclass(frozen=True)
class Count:
    """A property of `PlanValues`: a setting that is a positive integer."""

    key: str

    def __get__(self, values: PlanValues, _: type[PlanValues]) -> int | None:
        """Return the setting's value."""
        return values.count(self.key)


@dataclass(frozen=True)
class PlanValues:
    """One plan, and typed access to its values; rules name its properties.

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
    samples: ClassVar = Count(f"{ROLLOUT}.n")
    tensor_parallel: ClassVar = Count(TENSOR_PARALLEL)
    devices_per_node: ClassVar = Count("trainer.n_gpus_per_node")
    nodes: ClassVar = Count("trainer.nnodes")
    prompt_tokens: ClassVar = Count("data.max_prompt_length")

    @property
    def recipe(self) -> Recipe:
        """The plan's recipe."""
        return self.plan.recipe

    def value(self, name: str, words: Mapping[str, Any] | None = None) -> Any:
        """Return what a name in `rules.yaml` stands for.

        It is a setting (a name with a dot), a property, an attribute of the plan, the recipe or the facts,
        one of `words`, or the product of several (`a*b`, in which `c?` is 1 where it is missing).
        """
        if "*" in name:
            factors = [self.value(factor, words) for factor in name.split("*")]
            return math.prod(factors) if all(has_type(each, 1.0) for each in factors) else None
        if name.endswith("?"):
            return self.value(name[:-1], words) or 1
        if words and name in words:
            return words[name]
        if name.isdigit():
            return int(name)
        is_setting = "." in name and name.partition(".")[0] not in {"plan", "recipe", "facts"}
        return self.plan.get(name) if is_setting else attrgetter(name)(self)

    def _first(self, keys: tuple[str, ...], example: T) -> T | None:
        value = next((v for key in keys if (v := self.plan.get(key)) is not None), None)
        return value if has_type(value, example) else None

    def number(self, *keys: str) -> float | None:
        """Return a finite number; None for any other value, as for the next readers."""
        return self._first(keys, 1.0)

    def integer(self, *keys: str) -> int | None:
        """Return an integer, which may be negative."""
        return self._first(keys, 1)

    def count(self, *keys: str) -> int | None:
        """Return a positive integer."""
        value = self.integer(*keys)
        return value if value is not None and value > 0 else None

    def flag(self, *keys: str) -> bool | None:
        """Return a boolean."""
        return self._first(keys, example=True)

    def text(self, *keys: str) -> str | None:
        """Return a text."""
        return self._first(keys, "")

    def strings(self, key: str) -> list[str]:
        """Return the strings of a list, or one as a list, without values of other types."""
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
        key = self._latest(key)
        return key in self.plan.settings and self.explicit(key) != preset(self.recipe).get(key)

    def _latest(self, key: str) -> str:
        return to_latest_key(key, megatron=self.plan.release.megatron)

    def is_since(self, *release: int) -> bool:
        """Whether the plan is for this release of verl or a newer one."""
        return self.plan.release.number >= release

    @property
    def algorithm(self) -> str:
        """The recipe's algorithm, for messages."""
        return self.recipe.algorithm.upper()

    @property
    def is_megatron(self) -> bool:
        """Whether Megatron trains the actor; FSDP does otherwise."""
        return self.plan.release.megatron

    @property
    def has_reward_file(self) -> bool:
        """Whether the reward is a file of the user."""
        return is_path(self.recipe.reward.scorer)

    @property
    def has_own_code(self) -> bool:
        """Whether the run imports code of a user, which may register estimators and losses."""
        keys = (f"{MODEL}.external_lib", "data.custom_cls.path")
        return self.has_reward_file or any(map(self.is_set, keys))

    @property
    def asks_no_model(self) -> bool:
        """Whether the scorer is one of ours that does not ask a model."""
        return self.recipe.reward.scorer in SCORERS.keys() - ASYNC_SCORERS

    @property
    def is_dynamic(self) -> bool:
        """Whether the actor's micro batches are cut by tokens instead of rows."""
        return self.flag(DYNAMIC_BATCH) is True

    @property
    def has_shared_logger(self) -> bool:
        """Whether the run has a logger that other people look at."""
        return not _SHARED_LOGGERS.isdisjoint(self.strings("trainer.logger"))

    @property
    def reads_images(self) -> bool:
        """Whether the model reads images, by its configuration or its name."""
        return self.facts.vision is True or bool(_VISION_NAME.search(self.recipe.model))

    @property
    def thinks(self) -> bool:
        """Whether the model thinks before it answers, by its name."""
        return bool(_THINKING_NAME.search(self.recipe.model))

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
    def batched_tokens(self) -> int | None:
        """Enough tokens for the rollout to process at once."""
        longest = self.rollout_tokens
        return max(_DEFAULT_TOKENS, longest) if longest else None

    @property
    def penalty_tokens(self) -> int | None:
        """A good length for DAPO's length penalty: the last fifth of the response."""
        limit = self.response_tokens
        return max(1, limit // 5) if limit else None

    @property
    def pass_rows(self) -> int | None:
        """The rows of a pass that fits on a device."""
        longest = self.sequence_tokens
        return max(1, _PASS_TOKENS // longest) if longest else None

    @property
    def response_room(self) -> int | None:
        """The tokens that the model's context leaves for the response."""
        limit, prompt = self.facts.context, self.prompt_tokens
        return limit - prompt if limit and prompt else None

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
        is_known = devices and per_copy and devices % per_copy == 0
        return devices // per_copy if is_known and devices and per_copy else None

    def _rows_per_copy(self, prompts: int | None) -> int | None:
        samples, copies = self.samples, self.data_parallel
        return (prompts * samples // copies or None) if prompts and samples and copies else None

    @property
    def batch_rows(self) -> int | None:
        """The rows that each copy of the actor has of a batch."""
        return self._rows_per_copy(self.batch)

    @property
    def mini_batch_rows(self) -> int | None:
        """The rows that each copy of the actor has of a mini batch."""
        return self._rows_per_copy(self.mini_batch)

    @property
    def batch_unit(self) -> int | None:
        """The number by which a batch x n divides; 1 if any number will do."""
        devices, copies = self.devices, self.data_parallel
        if self.is_dynamic or not devices or not copies:
            return 1
        return copies * (self.micro_batch or 1) if self.is_megatron else devices

    @property
    def batch_step(self) -> int:
        """The number of prompts that a batch has a multiple of."""
        unit = self.batch_unit or 1
        return unit // math.gcd(unit, self.samples or unit)

    @property
    def divisible_batch(self) -> int | None:
        """The next larger batch that divides; the next smaller one if the rows are fewer."""
        batch, step, rows = self.batch or 0, self.batch_step, self.facts.train_rows
        larger = -(-batch // step) * step
        return larger - step if rows and step <= rows < larger else larger

    @property
    def divisible_mini_batch(self) -> int | None:
        """The next larger mini batch that divides over the copies of the actor."""
        mini, copies, samples = self.mini_batch, self.data_parallel, self.samples
        if not mini or not copies or not samples:
            return None
        step = copies // math.gcd(copies, samples)
        return -(-mini // step) * step

    @property
    def possible_batch(self) -> int:
        """The largest batch that the training rows fill."""
        return (self.facts.train_rows or 0) // self.batch_step * self.batch_step

    @property
    def steps(self) -> int | None:
        """The steps of the run."""
        rows, batch = self.facts.train_rows, self.batch
        if not rows or not batch:
            return None
        stated = self.count("trainer.total_training_steps")
        return stated or rows // batch * (self.count("trainer.total_epochs") or 1)

    @property
    def widest_tensor(self) -> int | None:
        """The largest tensor parallel size of the rollout up to its own that divides devices and heads."""
        devices, size = self.devices, self.tensor_parallel
        return (
            largest_divisor(size, devices, self.facts.heads or devices)
            if devices and size
            else None
        )

    @property
    def _parts(self) -> list[Any]:
        parts = self.plan.get(REWARD_KEYS)
        return list(parts) if isinstance(parts, (list, tuple)) else []

    @property
    def gdpo_keys(self) -> int:
        """The number of GDPO's reward keys."""
        return len(self._parts)

    @property
    def gdpo_weights(self) -> int | None:
        """The number of GDPO's weights."""
        weights = self.plan.get(REWARD_WEIGHTS)
        return len(weights) if isinstance(weights, (list, tuple)) else None

    @property
    def numeric_keys(self) -> str:
        """The keys that the reward returns as numbers."""
        return ", ".join(self.facts.numeric_keys or ()) or "no dictionary of numbers"

    @property
    def unscored_parts(self) -> str:
        """The parts of GDPO that the reward does not return as numbers."""
        keys = self.facts.numeric_keys
        return "" if keys is None else ", ".join(str(p) for p in self._parts if p not in keys)

    @property
    def scorer(self) -> str:
        """The reward function's name."""
        scorer = self.recipe.reward.scorer
        return with_function(scorer) if is_path(scorer) else scorer

    @property
    def device(self) -> str:
        """Ray's name for a device."""
        return RAY_RESOURCES[self.recipe.devices] or "CPU"

    @property
    def uses_reference(self) -> bool:
        """Whether verl loads a reference model."""
        keys = ("algorithm.use_kl_in_reward", f"{ACTOR}.use_kl_loss")
        return any(self.flag(key) for key in keys)

    @property
    def uses_critic(self) -> bool:
        """Whether verl trains a critic."""
        enabled = self.flag("critic.enable")
        return self.text("algorithm.adv_estimator") == "gae" if enabled is None else enabled

    @property
    def adapter_rank(self) -> int | None:
        """The rank of LoRA adapters; None without adapters."""
        return self.count(f"{MODEL}.lora_rank", f"{MODEL}.lora.rank")

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

    @property
    def is_validated(self) -> bool:
        """Whether the run validates, with or without training."""
        return self.validates or self.only_validates

    @property
    def shared_files(self) -> str:
        """The files for training and for validation alike."""
        files = (set(self.strings(f"data.{role}_files")) for role in ("train", "val"))
        return ", ".join(sorted(set.intersection(*files)))

    @property
    def validation_step(self) -> float | None:
        """The points by which one row moves the score of a validation."""
        return 100 / self.facts.val_rows if self.facts.val_rows else None

    @property
    def validation_samples(self) -> int | None:
        """Enough responses per row for a validation on few rows."""
        rows = self.facts.val_rows
        return min(max(4, 2000 // rows), 64) if rows else None

    @property
    def task_queue(self) -> str:
        """The mode of torch_npu's task queue."""
        return self.plan.env.get("TASK_QUEUE_ENABLE") or "the default"

    @property
    def home_folder(self) -> str:
        """The working folder if it is below /home; "" otherwise."""
        folder = self.recipe.cluster.workdir
        return folder if f"{folder}/".startswith("/home/") else ""
