"""A plan's values with their types checked, for the rules."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import add, attrgetter, mul, sub
from typing import Any, TypeVar

from rewardkit.devices import RAY_RESOURCES
from rewardkit.launch.plan import Plan
from rewardkit.launch.presets import ACTOR, REWARD_KEYS, REWARD_WEIGHTS, preset
from rewardkit.launch.recipe import Recipe
from rewardkit.launch.rules.facts import RunFacts
from rewardkit.launch.verl.releases import to_latest_key
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


def divisor_up_to(limit: int, total: int) -> int:
    """Return the largest divisor of a total, up to a limit; 1 if the limit is less."""
    return next((size for size in range(min(limit, total), 1, -1) if total % size == 0), 1)


def largest_divisor(limit: int, *totals: int) -> int:
    """Return the largest power of two, up to a limit, that divides all totals."""
    best = 1
    while 2 * best <= limit and all(total % (2 * best) == 0 for total in totals):
        best *= 2
    return best


def _count(key: str) -> property:
    """Return a property of `PlanValues`: a setting that is a positive integer."""
    return property(lambda values: values.count(key))


@dataclass(frozen=True)
class PlanValues:
    """One plan, and typed access to its values; rules name its properties.

    Every reader takes keys by verl 0.9.1's names. Several keys stand for verl's `${oc.select:...}`
    defaults: the first one that is set counts.
    """

    plan: Plan
    facts: RunFacts = field(default_factory=RunFacts)

    batch = _count(BATCH)
    mini_batch = _count(MINI_BATCH)
    micro_batch = _count(MICRO_BATCH)
    samples = _count(f"{ROLLOUT}.n")
    tensor_parallel = _count(TENSOR_PARALLEL)
    devices_per_node = _count("trainer.n_gpus_per_node")
    nodes = _count("trainer.nnodes")
    prompt_tokens = _count("data.max_prompt_length")

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
        if name in COMPUTED:
            return COMPUTED[name](self)
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
    def is_megatron(self) -> bool:
        """Whether Megatron trains the actor; FSDP does otherwise."""
        return self.plan.release.megatron

    @property
    def reads_images(self) -> bool:
        """Whether the model reads images, by its configuration or its name."""
        return self.facts.vision is True or bool(_VISION_NAME.search(self.recipe.model))

    @property
    def scorer(self) -> str:
        """The reward function's name."""
        name = self.recipe.reward.scorer
        return with_function(name) if is_path(name) else name

    @property
    def devices(self) -> int | None:
        """The devices of all nodes."""
        return _known(mul, self.nodes, self.devices_per_node)

    @property
    def response_tokens(self) -> int | None:
        """The tokens of the longest response."""
        return self.count(f"{ROLLOUT}.response_length", "data.max_response_length")

    @property
    def sequence_tokens(self) -> int | None:
        """The tokens of the longest sequence: prompt and response."""
        return _known(add, self.prompt_tokens, self.response_tokens)

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
        sizes = [self.sequence_parallel()]
        if self.is_megatron:
            parts = ("tensor", "pipeline")
            sizes += [self.count(f"{ACTOR}.megatron.{part}_model_parallel_size") for part in parts]
        return _known(lambda *known: math.prod(known), *sizes)

    @property
    def data_parallel(self) -> int | None:
        """How many copies of the actor share a batch; None if the copies do not fill the devices."""
        return _known(
            lambda devices, copy: 0 if devices % copy else devices // copy,
            *(self.devices, self.model_parallel),
        )

    def rows_per_copy(self, prompts: int | None) -> int | None:
        """Return how many rows of these prompts each copy of the actor has."""
        return _known(
            lambda n, p, copies: p * n // copies, self.samples, prompts, self.data_parallel
        )

    @property
    def batch_unit(self) -> int | None:
        """The number by which a batch x n divides; 1 if any number will do."""
        devices, copies = self.devices, self.data_parallel
        if self.flag(DYNAMIC_BATCH) or not devices or not copies:
            return 1
        return copies * (self.micro_batch or 1) if self.is_megatron else devices

    @property
    def batch_step(self) -> int:
        """The number of prompts that a batch has a multiple of."""
        unit = self.batch_unit or 1
        return unit // math.gcd(unit, self.samples or unit)

    @property
    def uses_reference(self) -> bool:
        """Whether verl loads a reference model."""
        return any(map(self.flag, ("algorithm.use_kl_in_reward", f"{ACTOR}.use_kl_loss")))

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


def _known(compute: Callable[..., int], *numbers: int | None) -> int | None:
    """Return what a function computes from numbers; None where one is unknown or the result is 0."""
    return (compute(*numbers) or None) if all(numbers) else None


def _rollout_tokens(values: PlanValues) -> int | None:
    limit = values.count(f"{ROLLOUT}.max_model_len") or 0
    return _known(lambda longest: max(longest, limit), values.sequence_tokens)


def _divisible_batch(values: PlanValues) -> int:
    """Return the next larger batch that divides; the next smaller one if the rows are fewer."""
    step, rows = values.batch_step, values.facts.train_rows
    larger = -(-(values.batch or 0) // step) * step
    return larger - step if rows and step <= rows < larger else larger


def _next_mini_batch(mini: int, samples: int, copies: int) -> int:
    step = copies // math.gcd(copies, samples)
    return -(-mini // step) * step


def _steps(values: PlanValues) -> int | None:
    rows, batch = values.facts.train_rows, values.batch
    if not rows or not batch:
        return None
    stated = values.count("trainer.total_training_steps")
    return stated or rows // batch * (values.count("trainer.total_epochs") or 1)


def _pass_rows(values: PlanValues) -> int | None:
    """Return how many rows make a pass of `_PASS_TOKENS`; they divide those of a mini batch."""
    fit = _known(lambda n: max(1, _PASS_TOKENS // n), values.sequence_tokens)
    rows = values.rows_per_copy(values.mini_batch)
    return divisor_up_to(fit, rows) if fit and rows else fit


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, (list, tuple)) else None


def _unscored_parts(values: PlanValues) -> str:
    parts, keys = values.plan.get(REWARD_KEYS), values.facts.numeric_keys
    listed = parts if _length(parts) and keys is not None else ()
    return ", ".join(str(part) for part in listed if part not in (keys or ()))


def _shared_files(values: PlanValues) -> str:
    files = (set(values.strings(f"data.{role}_files")) for role in ("train", "val"))
    return ", ".join(sorted(set.intersection(*files)))


#: Settings that make a run import code of a user.
_OWN_CODE = (f"{MODEL}.external_lib", "data.custom_cls.path")

#: What only rules.yaml names: values that are computed from a plan.
COMPUTED: Mapping[str, Callable[[PlanValues], Any]] = {
    "algorithm": lambda v: v.recipe.algorithm.upper(),
    "has_reward_file": lambda v: is_path(v.scorer),
    # Code of a user may register estimators and losses.
    "has_own_code": lambda v: is_path(v.scorer) or any(map(v.is_set, _OWN_CODE)),
    "asks_no_model": lambda v: v.scorer in SCORERS.keys() - ASYNC_SCORERS,
    "has_shared_logger": lambda v: not _SHARED_LOGGERS.isdisjoint(v.strings("trainer.logger")),
    "thinks": lambda v: bool(_THINKING_NAME.search(v.recipe.model)),
    # Enough tokens for the rollout to process at once; DAPO's penalty is on the last fifth.
    "rollout_tokens": _rollout_tokens,
    "batched_tokens": lambda v: _known(lambda n: max(_DEFAULT_TOKENS, n), _rollout_tokens(v)),
    "penalty_tokens": lambda v: _known(lambda limit: max(1, limit // 5), v.response_tokens),
    "pass_rows": _pass_rows,
    "response_room": lambda v: _known(sub, v.facts.context, v.prompt_tokens),
    "batch_rows": lambda v: v.rows_per_copy(v.batch),
    "mini_batch_rows": lambda v: v.rows_per_copy(v.mini_batch),
    "divisible_mini_batch": lambda v: _known(
        _next_mini_batch, v.mini_batch, v.samples, v.data_parallel
    ),
    "divisible_batch": _divisible_batch,
    "possible_batch": lambda v: (v.facts.train_rows or 0) // v.batch_step * v.batch_step,
    "steps": _steps,
    "widest_tensor": lambda v: _known(
        lambda size, n: largest_divisor(size, n, v.facts.heads or n), v.tensor_parallel, v.devices
    ),
    "megatron_tensor": lambda v: _known(
        math.gcd, v.count(f"{ACTOR}.megatron.tensor_model_parallel_size"), v.facts.heads
    ),
    "gdpo_keys": lambda v: _length(v.plan.get(REWARD_KEYS)) or 0,
    "gdpo_weights": lambda v: _length(v.plan.get(REWARD_WEIGHTS)),
    "numeric_keys": lambda v: ", ".join(v.facts.numeric_keys or ()) or "no dictionary of numbers",
    "unscored_parts": _unscored_parts,
    "adapter_rank": lambda v: v.count(f"{MODEL}.lora_rank", f"{MODEL}.lora.rank"),
    "device": lambda v: RAY_RESOURCES[v.recipe.devices] or "CPU",
    "is_validated": lambda v: v.validates or v.only_validates,
    "shared_files": _shared_files,
    # The points by which one row moves the score, and enough responses per row for few rows.
    "validation_step": lambda v: 100 / v.facts.val_rows if v.facts.val_rows else None,
    "validation_samples": lambda v: _known(
        lambda rows: min(max(4, 2000 // rows), 64), v.facts.val_rows
    ),
    "task_queue": lambda v: v.plan.env.get("TASK_QUEUE_ENABLE") or "the default",
    "home_folder": lambda v: (
        v.recipe.cluster.workdir if f"{v.recipe.cluster.workdir}/".startswith("/home/") else ""
    ),
}
