"""For rules that verl itself enforces, ours are errors exactly where verl refuses a plan."""

import ast
import traceback
from pathlib import Path

import pytest

from rewardkit.launch.plan import make_plan
from rewardkit.launch.recipe import deep_merge, read_recipe
from rewardkit.launch.rules import RULES, check_rules, rule
from rewardkit.launch.rules.facts import RunFacts
from rewardkit.launch.verl import compose_child
from rewardkit.launch.verl.compose import config_name
from rewardkit.launch.verl.releases import parse_release
from rewardkit.strict_yaml import read_table
from tests.integration.conftest import VERL, is_installed
from tests.launch.conftest import SMALLEST

installed = pytest.importorskip("verl")
SOURCE = Path(installed.__file__).parent
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
MEGATRON = f"{ACTOR}.megatron"
RECIPE = deep_merge(SMALLEST, {"reward": {"scorer": "verl"}})
UNEVEN = {"data.train_batch_size": 257, f"{ROLLOUT}.n": 5}
M, PPO = {"strategy": "megatron"}, {"algorithm": "ppo"}
DYNAMIC, HF = {f"{ACTOR}.use_dynamic_bsz": True}, {f"{ROLLOUT}.name": "hf"}
MICRO, TOTAL = f"{ACTOR}.ppo_micro_batch_size_per_gpu", f"{ACTOR}.ppo_micro_batch_size"
LOG_PROB, REF = "log_prob_micro_batch_size_per_gpu", "actor_rollout_ref.ref"
MODEL, EXPERTS = "actor_rollout_ref.model", f"{ROLLOUT}.expert_parallel_size"
CRITIC = "critic.ppo_micro_batch_size_per_gpu"
SPLIT = {f"{ROLLOUT}.disaggregation.enabled": True, f"{ROLLOUT}.name": "sglang"}
REPLAY, DYNAMIC_CONTEXT = f"{MEGATRON}.router_replay.mode", f"{MEGATRON}.dynamic_context_parallel"
ROLLOUT_MICRO, REF_MICRO = f"{ROLLOUT}.{LOG_PROB}", f"{REF}.{LOG_PROB}"
CRITIC_OLD, CRITIC_MINI = "critic.ppo_micro_batch_size", "critic.ppo_mini_batch_size"

#: Settings of a plan, its recipe's parts, and the rule that names the line of verl; "" without one.
# fmt: off
CASES = {
    "nothing is wrong": ({}, {}, ""),
    "mini batch over batch": ({"data.train_batch_size": 128}, {}, "L-18"),
    "odd batch": (UNEVEN, {}, "L-19"),
    "cold validation":
        ({f"{ROLLOUT}.val_kwargs.do_sample": True, f"{ROLLOUT}.temperature": 0}, {}, "L-27"),
    "sequence parallel with padding": (
        {f"{ACTOR}.ulysses_sequence_parallel_size": 2, f"{MODEL}.use_remove_padding": False},
        {}, "L-58"),
    "odd parallel size": ({f"{MEGATRON}.tensor_model_parallel_size": 3}, M, "L-37"),
    "odd batch, Megatron": (
        {f"{MEGATRON}.tensor_model_parallel_size": 2, f"{MEGATRON}.pipeline_model_parallel_size": 2, **UNEVEN},
        M, "L-19"),
    "no micro batch": ({MICRO: None}, {}, "micro-batch"),
    "no micro batch, dynamic": ({MICRO: None, **DYNAMIC}, {}, ""),
    "no micro batch, Megatron": ({MICRO: None}, M, "micro-batch"),
    "no micro batch, dynamic, Megatron": ({MICRO: None, **DYNAMIC}, M, "micro-batch"),
    "none anywhere": ({MICRO: None, ROLLOUT_MICRO: None, REF_MICRO: None}, {}, "micro-batch"),
    "two micro batches": ({TOTAL: 256}, {}, "micro-batch"),
    "two micro batches, dynamic": ({TOTAL: 256, **DYNAMIC}, {}, ""),
    "none of the rollout": ({ROLLOUT_MICRO: None}, {}, "micro-batch"),
    "no reference": ({REF_MICRO: None, f"{ACTOR}.use_kl_loss": False}, {}, ""),
    "two of the rollout": ({f"{ROLLOUT}.log_prob_micro_batch_size": 256}, {}, "micro-batch"),
    "critic": ({CRITIC: 1}, PPO, ""),
    "no micro batch of the critic": ({}, PPO, "micro-batch"),
    "dynamic critic": ({"critic.use_dynamic_bsz": True}, PPO, ""),
    "two of the critic": ({CRITIC: 1, CRITIC_OLD: 64}, PPO, "micro-batch"),
    "mini batch of the critic": (
        {CRITIC: 1, CRITIC_MINI: 512, "data.train_batch_size": 256},
        PPO, "critic-batch"),
    "odd micro batch of all devices": ({MICRO: None, TOTAL: 100}, {}, "global-micro-batch"),
    "small micro batch of all devices": ({MICRO: None, TOTAL: 4}, {}, "global-micro-batch"),
    "unknown aggregation": ({f"{ACTOR}.loss_agg_mode": "mean"}, {}, "accepted-value"),
    "known aggregation": ({f"{ACTOR}.loss_agg_mode": "seq-mean-token-sum-norm"}, {}, ""),
    "mode of the router": ({REPLAY: "R1"}, M, "accepted-value"),
    "routes without their pass":
        ({REPLAY: "R2", "algorithm.rollout_correction.bypass_mode": True}, M, "router-replay"),
    "no length of the context": ({DYNAMIC_CONTEXT: True}, M, "router-replay"),
    "dynamic context": (
        {DYNAMIC_CONTEXT: True, f"{MEGATRON}.max_seqlen_per_dp_cp_rank": 8192},
        M, ""),
    "adapters over vLLM's rank": ({f"{MODEL}.lora_rank": 600}, {}, "lora-rank"),
    "adapters of 512": ({f"{MODEL}.lora_rank": 512}, {}, ""),
    "expert parallel": ({EXPERTS: 4}, {}, "expert-parallel"),
    "expert parallel of TP": ({EXPERTS: 2, f"{ROLLOUT}.tensor_model_parallel_size": 2}, {}, ""),
    "pipeline in the rollout": ({f"{ROLLOUT}.pipeline_model_parallel_size": 2}, {}, "L-30"),
    "samples of a trace": ({f"{ROLLOUT}.trace.max_samples_per_step_per_worker": -1}, {}, "bounds"),
    "disaggregated": (SPLIT, {}, ""),
    "disaggregated on hf": (SPLIT | HF, {}, "accepted-value"),
    "unknown backend":
        (SPLIT | {f"{ROLLOUT}.disaggregation.transfer_backend": "tcp"}, {}, "accepted-value"),
    "no replica": (SPLIT | {f"{ROLLOUT}.disaggregation.decode_replicas": 0}, {}, "bounds"),
    "unknown warmup": ({f"{ACTOR}.optim.lr_scheduler_type": "linear"}, {}, "accepted-value"),
}
# fmt: on


def refused_at(arguments, *, critic):
    """Return the lines of verl, as `file:line`, in the trace of its refusal; [] without one."""
    from verl.utils.config import validate_config

    overrides = [argument for argument in arguments if not argument.startswith("--")]
    config = compose_child.compose(config_name(arguments), overrides)
    reference = config.algorithm.use_kl_in_reward or config.actor_rollout_ref.actor.use_kl_loss
    try:
        validate_config(config=config, use_reference_policy=reference, use_critic=critic)
        compose_child._read_dataclasses(config)
    except Exception as error:  # noqa: BLE001 - verl raises many kinds
        return list(trace_of(error))
    return []


def trace_of(error):
    """Yield the lines of verl in the traces of an error and of those that it was raised from."""
    while error is not None:
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename.startswith(f"{SOURCE}/"):
                yield f"{Path(frame.filename).relative_to(SOURCE)}:{statement(frame)}"
        error = error.__cause__ or error.__context__


def statement(frame):
    """Return the first line of the statement that a frame is in."""
    tree = ast.parse(Path(frame.filename).read_text(encoding="utf-8"))
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, (ast.Raise, ast.Assert))
        and node.lineno <= frame.lineno <= node.end_lineno
    ]
    return max(lines, default=frame.lineno)


@pytest.fixture(scope="module")
def model(tmp_path_factory, tokenizer_dir):
    """A tiny model's folder: verl reads a critic's when it makes its configuration."""
    import shutil

    from transformers import Qwen2Config

    folder = tmp_path_factory.mktemp("model") / "tiny"
    shutil.copytree(tokenizer_dir, folder)
    Qwen2Config(architectures=["Qwen2ForCausalLM"]).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("name", CASES)
def test_our_rules_give_an_error_exactly_if_verl_does_and_name_its_line(name, model):
    if "adapters" in name and not is_installed("vllm"):
        pytest.skip("verl imports vLLM to check the rank of adapters")
    if name == "disaggregated on hf" and not rule.refusal("disaggregation-engine", VERL):
        pytest.skip("this verl disaggregates nothing, and refuses hf in its workers")
    verl, parts, wanted = CASES[name]
    recipe = deep_merge(RECIPE, {"model": model, "verl": verl or RECIPE["verl"], **parts})
    plan = make_plan(read_recipe(recipe, "x"), VERL)
    errors = {f.rule: f for f in check_rules(plan, RunFacts()) if f.severity == "error"}
    lines = refused_at(plan.arguments, critic=parts == PPO)
    assert bool(errors) == bool(lines), (errors, lines)
    if lines:
        assert wanted in errors, errors
        place = errors[wanted].source.rpartition(f"verl {VERL}: ")[2]
        assert place in lines, (place, lines)


def test_the_table_names_a_raise_or_an_assert_of_this_verl():
    table = read_table(rule.__file__, "refusals.yaml")
    for check, place in table[VERL].items():
        file, _, line = place.partition(":")
        text = (SOURCE / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        stops = {"raise", "assert"} if check != "megatron-micro-none" else {"minimal_bsz"}
        assert text.split()[0] in stops, (check, place, text)


def test_the_lists_of_estimators_and_losses_are_those_that_verl_has_registered():
    from verl.trainer.ppo import core_algos

    registered = {
        "estimator": {*map(str, core_algos.ADV_ESTIMATOR_REGISTRY)},
        "loss-mode": {*core_algos.POLICY_LOSS_REGISTRY, "vanilla"},
    }
    (accepted,) = (each for each in RULES if each.id == "accepted-value")
    for row in accepted.rows:
        is_current = parse_release(row.since) <= parse_release(VERL) < parse_release(row.before)
        if row.refusal in registered and is_current:
            known, has = {*row.good}, registered[row.refusal]
            assert has <= known
            assert known - has <= {"rollout_correction"}  # 0.7 renamed it
