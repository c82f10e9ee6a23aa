"""Rules on the values that single settings should have, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rewardkit.launch.findings import Severity
from rewardkit.launch.presets import ACTOR
from rewardkit.launch.rules.rule import (
    ASCEND,
    BLOG,
    CODE,
    GUIDE,
    MODELARTS,
    TUTORIAL,
    Expectation,
    PlanRule,
    expected,
)
from rewardkit.launch.rules.values import (
    EAGER,
    KL_IN_REWARD,
    KL_LOSS,
    MEMORY_SHARE,
    MODEL,
    REMOVE_PADDING,
    ROLLOUT,
    TENSOR_PARALLEL,
    PlanValues,
)

ADVANTAGE = "algorithm.adv_estimator"
AGGREGATION = f"{ACTOR}.loss_agg_mode"
BATCHED_TOKENS = f"{ROLLOUT}.max_num_batched_tokens"
BRIDGE = f"{ACTOR}.megatron.use_mbridge"
CHECKPOINTING = f"{MODEL}.enable_gradient_checkpointing"
CHUNKED = f"{ROLLOUT}.enable_chunked_prefill"
CLIP_C = f"{ACTOR}.clip_ratio_c"
VLLM_EXPERT_PARALLEL = f"{ROLLOUT}.engine_kwargs.vllm.enable_expert_parallel"
FUSED = f"{MODEL}.use_fused_kernels"
FUSION = f"{ACTOR}.megatron.override_transformer_config.gradient_accumulation_fusion"
KL_LOSS_COEF = f"{ACTOR}.kl_loss_coef"
KL_REWARD_COEF = "algorithm.kl_ctrl.kl_coef"
KL_TYPE = f"{ACTOR}.kl_loss_type"
RATE = f"{ACTOR}.optim.lr"
TRUNCATION = "data.truncation"

#: Sequence lengths, in tokens, from which packing and checkpointing, or fused kernels, matter.
LONG_TOKENS, VERY_LONG_TOKENS = 4096, 16384

#: This many tokens at once limit the throughput of the rollout.
SLOW_TOKENS = 2048

#: With a KL coefficient from here on the policy hardly explores.
HIGH_KL_COEF = 0.1

#: The learning rates of the sources, with some room around them.
LOWEST_RATE, HIGHEST_RATE = 1e-7, 1e-5


def _is_algorithm(*names: str) -> Callable[[PlanValues], bool]:
    """Return the condition that a plan has one of these algorithms."""
    return lambda values: values.recipe.algorithm in names


def _algorithm(
    name: str, estimator: str, *, kl_loss: bool, kl_in_reward: bool
) -> Iterator[Expectation]:
    """Yield the expectations of the three settings that define an algorithm."""
    message = f"{{value}}, but {name} has {{good}}."
    when = _is_algorithm(name.lower())
    fix = f"Set {ADVANTAGE}={estimator}, or choose another algorithm."
    yield Expectation(ADVANTAGE, estimator, message, when=when, fix=fix)
    for key, good in ((KL_LOSS, kl_loss), (KL_IN_REWARD, kl_in_reward)):
        fix = f"Set {key}={good}, unless you want {not good}."
        # A KL loss that somebody adds or leaves out is mostly an experiment.
        severity: Severity | None = "info" if key == KL_LOSS else None
        yield Expectation(key, good, message, when=when, fix=fix, severity=severity)


def _needs_switch(coefficient: str, switch: str) -> Expectation:
    """Expect that the user sets no KL coefficient while its KL is off."""
    return Expectation(
        coefficient,
        0.0,
        f"{{value:g}} has no effect, because {switch} is False.",
        when=lambda values: values.is_user_set(coefficient) and values.flag(switch) is False,
        fix=f"Set {switch}=True.",
    )


def _samples_from_policy(
    name: str, good: object, engines: Callable[[str | None], bool] = lambda _: True
) -> Expectation:
    return Expectation(
        f"{ROLLOUT}.{name}",
        good,
        "{value:g} changes the distribution: the responses are not those of the trained policy.",
        when=lambda values: engines(values.engine),
    )


def _is_long(values: PlanValues) -> bool:
    """Whether FSDP trains on long sequences."""
    return not values.is_megatron and (values.sequence_tokens or 0) >= LONG_TOKENS


def _may_fuse(values: PlanValues) -> bool:
    """Whether fused kernels can help: long texts on a GPU."""
    is_long = (values.sequence_tokens or 0) >= VERY_LONG_TOKENS
    return is_long and values.recipe.devices == "gpu" and not values.reads_images


def _fits_longest(values: PlanValues) -> bool:
    """Whether the rollout can process its longest sequence at once."""
    longest = values.rollout_tokens
    return longest is not None and (values.count(BATCHED_TOKENS) or 0) >= longest


def _cuts_prompts(values: PlanValues) -> bool:
    """Whether verl reads data.truncation: only before 0.7."""
    return not values.is_since(0, 7, 0)


RULES: tuple[PlanRule, ...] = (
    expected("L-01", "warning", f"{GUIDE}; {ASCEND}; {BLOG}",
        "GRPO: adv_estimator is grpo, use_kl_loss is True, use_kl_in_reward is False",
        *_algorithm("GRPO", "grpo", kl_loss=True, kl_in_reward=False)),
    expected("L-02", "warning", f"{GUIDE}; {ASCEND}",
        "DAPO: adv_estimator is grpo, use_kl_loss and use_kl_in_reward are False",
        *_algorithm("DAPO", "grpo", kl_loss=False, kl_in_reward=False)),
    expected("L-03", "warning", GUIDE,
        "PPO: adv_estimator is gae, use_kl_loss is False, use_kl_in_reward is True",
        *_algorithm("PPO", "gae", kl_loss=False, kl_in_reward=True)),
    expected("L-04", "info", f"{ASCEND}; {TUTORIAL}",
        "A KL coefficient has an effect only while its KL is on",
        _needs_switch(KL_REWARD_COEF, KL_IN_REWARD),
        _needs_switch(KL_LOSS_COEF, KL_LOSS)),
    expected("L-05", "warning", MODELARTS,
        "The KL counts in the reward or in the loss, not in both",
        Expectation(KL_LOSS, False, f"True counts the KL twice, because {KL_IN_REWARD} is True.",
            when=lambda values: values.flag(KL_IN_REWARD))),
    expected("L-07", "info", ASCEND,
        "clip_ratio_c is more than 1; the DAPO recipes have 10",
        Expectation(CLIP_C, lambda value: value > 1,
            "{value:g} makes verl stop: the bound must be more than 1.",
            read=PlanValues.number, fix=f"Set {CLIP_C}=10.", severity="error"),
        Expectation(CLIP_C, lambda value: 3 <= value <= 10,
            "{value:g} is unusual: the DAPO recipes have 10, verl's default is 3.",
            read=PlanValues.number, fix=f"Set {CLIP_C}=10.", when=_is_algorithm("dapo"))),
    expected("L-09", "info", GUIDE,
        "loss_agg_mode is token-mean; the original GRPO has seq-mean-token-mean",
        Expectation(AGGREGATION, ("token-mean", "seq-mean-token-mean"),
            "{value} gives tokens of long and short responses different weights.",
            when=_is_algorithm("grpo")),
        Expectation(AGGREGATION, "token-mean",
            "{value} gives tokens of long and short responses different weights.",
            when=_is_algorithm("dapo", "ppo"))),
    expected("L-12", "warning", ASCEND,
        "max_num_batched_tokens is more than 2048, also for short sequences",
        Expectation(BATCHED_TOKENS, lambda value: value > SLOW_TOKENS,
            "{value} tokens at once leave the device idle most of the time.",
            read=PlanValues.count, fix=f"Set {BATCHED_TOKENS}=8192.", when=_fits_longest)),
    expected("L-13", "info", GUIDE,
        "vLLM: enable_chunked_prefill is True",
        Expectation(CHUNKED, True, "False stops vLLM's decoding while it reads a long prompt.",
            explicit=True, when=lambda values: values.engine == "vllm")),
    expected("L-21", "info", f"{GUIDE}; {CODE}",
        "truncation is left or error",
        Expectation(TRUNCATION, lambda value: value not in {"right", "middle"},
            "{value} cuts off the end or the middle of a question.",
            read=PlanValues.text, fix=f"Set {TRUNCATION}=left.", when=_cuts_prompts),
        Expectation(TRUNCATION, ("left", "error"),
            "verl does not know {value}; it knows left, right, middle and error.",
            severity="error", when=_cuts_prompts)),
    expected("L-26", "warning", GUIDE,
        "Training samples with temperature 1, top_p 1 and top_k -1",
        _samples_from_policy("temperature", 1.0),
        _samples_from_policy("top_p", 1.0),
        _samples_from_policy("top_k", (0, -1), lambda engine: engine == "hf"),
        _samples_from_policy("top_k", -1, lambda engine: engine != "hf")),
    expected("L-31", "info", GUIDE,
        "vLLM: expert parallel over 32 devices or more can be slower",
        Expectation(VLLM_EXPERT_PARALLEL, False,
            "True was slower than False over 32 devices or more, on DeepSeek-V3.",
            fix=f"Try {VLLM_EXPERT_PARALLEL}=False.",
            when=lambda values: (values.count(TENSOR_PARALLEL) or 1) >= 32)),
    expected("L-32", "info", GUIDE,
        "CUDA graphs need memory besides the rollout's share",
        Expectation(EAGER, True,
            "False makes CUDA graphs, which need memory besides the rollout's "
            "{values.memory_share:.0%}.",
            fix=f"Set {EAGER}=True, or {MEMORY_SHARE}=0.85.",
            when=lambda values: 0.9 <= (values.memory_share or 0) <= 1)),
    expected("L-34", "info", GUIDE,
        "Long sequences: use_fused_kernels is True",
        Expectation(FUSED, True,
            "False keeps the logits of all {values.sequence_tokens} tokens in memory.",
            when=_may_fuse)),
    expected("L-35", "error", f"{GUIDE}; {CODE}",
        "Megatron: use_mbridge is True",
        Expectation(BRIDGE, True, "False makes verl {values.plan.verl} stop.",
            when=lambda values: values.is_megatron and values.is_since(0, 8, 0)),
        Expectation(BRIDGE, True, "False converts the weights with verl's older code.",
            explicit=True, severity="info",
            when=lambda values: values.is_megatron and values.flag(BRIDGE) is False)),
    expected("L-39", "info", GUIDE,
        "The learning rate is 1e-6 or 1e-5, unless adapters are trained",
        Expectation(RATE, lambda value: LOWEST_RATE <= value <= HIGHEST_RATE,
            "{value:g} is far from the rates that RL of all weights uses.",
            read=PlanValues.number, fix=f"Set {RATE}=1e-6.",
            when=lambda values: not values.adapter_rank)),
    expected("L-44", "info", GUIDE,
        "Megatron: gradient_accumulation_fusion is True",
        Expectation(FUSION, True, "False is slower.",
            explicit=True, when=lambda values: values.is_megatron)),
    expected("L-46", "info", f"{GUIDE}; {BLOG}",
        "kl_loss_coef starts at 0.001; a larger one means less exploration",
        Expectation(KL_LOSS_COEF, lambda value: value != 0,
            "0 makes verl load a reference model that has no effect.",
            read=PlanValues.number, fix=f"Set {KL_LOSS}=False.",
            when=lambda values: values.flag(KL_LOSS)),
        Expectation(KL_LOSS_COEF, lambda value: value < HIGH_KL_COEF,
            "{value:g} leaves the policy little room to explore.",
            read=PlanValues.number, fix=f"Start with {KL_LOSS_COEF}=0.001.",
            when=lambda values: values.flag(KL_LOSS))),
    expected("L-47", "info", MODELARTS,
        "kl_loss_type is low_var_kl",
        Expectation(KL_TYPE, ("low_var_kl", "low_var_kl+", "k3", "k3+", ""),
            "{value} varies more than low_var_kl (k3), which all recipes have.",
            when=lambda values: values.flag(KL_LOSS))),
    expected("L-48", "info", MODELARTS,
        "entropy_coeff is 0",
        Expectation(f"{ACTOR}.entropy_coeff", 0.0, "{value:g} is unusual: all recipes have 0.",
            fix=f"Set {ACTOR}.entropy_coeff=0.")),
    expected("L-59", "info", ASCEND,
        "Long sequences (FSDP): use_remove_padding and enable_gradient_checkpointing are True",
        Expectation(REMOVE_PADDING, True,
            "False pads every sequence to {values.sequence_tokens} tokens.",
            when=_is_long),
        Expectation(CHECKPOINTING, True,
            "False keeps the activations of {values.response_tokens} tokens in every layer.",
            when=lambda values: _is_long(values) and (values.response_tokens or 0) >= LONG_TOKENS)),
    expected("L-66", "info", GUIDE,
        "log_val_generations is 10 on a shared logger",
        Expectation("trainer.log_val_generations", lambda value: value != 0,
            "with 0 the shared logger shows metrics and no responses.",
            read=PlanValues.integer, fix="Set trainer.log_val_generations=10.",
            when=lambda values: values.shared_loggers and values.validates)),
    expected("L-67", "info", GUIDE,
        "A run on a shared logger has its own project name",
        Expectation("trainer.project_name", lambda value: value != "verl_examples",
            "verl_examples is the default name, which other people's runs have too.",
            read=PlanValues.text, fix="Set trainer.project_name to a name of your own.",
            when=lambda values: values.shared_loggers)),
    expected("L-70", "info", ASCEND,
        "balance_batch is True; verl 0.9 always balances",
        Expectation("trainer.balance_batch", True,
            "False makes devices wait for the one with the longest responses.",
            explicit=True, when=lambda values: not values.is_since(0, 9, 0))),
    expected("L-73", "info", MODELARTS,
        "shuffle is True",
        Expectation("data.shuffle", True, "False reads the rows in the file's order in every epoch.",
            explicit=True)),
    expected("L-74", "info", GUIDE,
        "prompt_key is prompt",
        Expectation("data.prompt_key", ("prompt", ""),
            "{value} is unusual: the prompts of verl's datasets are in the column prompt.")),
)  # fmt: skip
