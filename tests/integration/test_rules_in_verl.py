"""For rules that verl itself enforces, ours are errors exactly where verl refuses a plan."""

import ast
import traceback
from pathlib import Path

import pytest

from rewardkit.launch.rules import RULES, check_rules, rule
from rewardkit.launch.rules.facts import RunFacts
from rewardkit.launch.verl import compose_child
from rewardkit.launch.verl.compose import config_name
from rewardkit.launch.verl.releases import parse_release
from rewardkit.strict_yaml import read_table
from tests.integration.conftest import VERL, is_installed
from tests.launch.test_rules import plan_and_facts

installed = pytest.importorskip("verl")
SOURCE = Path(installed.__file__).parent
REF_MICRO, CRITIC_MICRO = (
    "F.log_prob_micro_batch_size_per_gpu",
    "critic.ppo_micro_batch_size_per_gpu",
)
SPLIT = "R.disaggregation.enabled=True R.name=sglang"
SPLIT_ON_HF = f"{SPLIT} R.name=hf"

#: The words of a plan, as in tests/launch/test_rules.py, and the rule that names verl's line; "" for none.
CASES = {
    "": "",
    "BATCH=128": "L-18",
    "BATCH=257 R.n=5": "L-19",
    "VAL.do_sample=True R.temperature=0": "L-27",
    "ULYSSES=2 M.use_remove_padding=False": "L-58",
    "MEGATRON ACTOR_TP=3": "L-37",
    "MEGATRON ACTOR_TP=2 ACTOR_PP=2 BATCH=257 R.n=5": "L-19",
    "MICRO=null": "micro-batch",
    "MICRO=null DYNAMIC": "",
    "MICRO=null MEGATRON": "micro-batch",
    "MICRO=null DYNAMIC MEGATRON": "micro-batch",
    f"MICRO=null LOG_PROB=null {REF_MICRO}=null": "micro-batch",
    "TOTAL=256": "micro-batch",
    "TOTAL=256 DYNAMIC": "",
    "LOG_PROB=null": "micro-batch",
    f"{REF_MICRO}=null KL=False": "",
    "R.log_prob_micro_batch_size=256": "micro-batch",
    f"algorithm=ppo {CRITIC_MICRO}=1": "",
    "algorithm=ppo": "micro-batch",
    "algorithm=ppo critic.use_dynamic_bsz=True": "",
    f"algorithm=ppo {CRITIC_MICRO}=1 critic.ppo_micro_batch_size=64": "micro-batch",
    f"algorithm=ppo {CRITIC_MICRO}=1 CRITIC_MINI=512 BATCH=256": "critic-batch",
    "MICRO=null TOTAL=100": "global-micro-batch",
    "MICRO=null TOTAL=4": "global-micro-batch",
    "AGG=mean": "accepted-value",
    "AGG=seq-mean-token-sum-norm": "",
    "MEGATRON REPLAY=R1": "accepted-value",
    "MEGATRON REPLAY=R2 BYPASS=True": "router-replay",
    "MEGATRON G.dynamic_context_parallel=True": "router-replay",
    "MEGATRON G.dynamic_context_parallel=True G.max_seqlen_per_dp_cp_rank=8192": "",
    "M.lora_rank=600": "lora-rank",
    "M.lora_rank=512": "",
    "R.expert_parallel_size=4": "expert-parallel",
    "R.expert_parallel_size=2 TP=2": "",
    "R.pipeline_model_parallel_size=2": "L-30",
    "TRACED=-1": "bounds",
    SPLIT: "",
    SPLIT_ON_HF: "accepted-value",
    f"{SPLIT} R.disaggregation.transfer_backend=tcp": "accepted-value",
    f"{SPLIT} R.disaggregation.decode_replicas=0": "bounds",
    "WARMUP=linear": "accepted-value",
}


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


@pytest.mark.parametrize(("words", "wanted"), CASES.items())
def test_our_rules_give_an_error_exactly_if_verl_does_and_name_its_line(words, wanted, model):
    if "lora_rank" in words and not is_installed("vllm"):
        pytest.skip("verl imports vLLM to check the rank of adapters")
    if words == SPLIT_ON_HF and not rule.refusal("disaggregation-engine", VERL):
        pytest.skip("this verl disaggregates nothing, and refuses hf in its workers")
    plan, _ = plan_and_facts(f"VERL model={model} {words}", release=VERL)
    errors = {f.rule: f for f in check_rules(plan, RunFacts()) if f.severity == "error"}
    lines = refused_at(plan.arguments, critic="algorithm=ppo" in words)
    assert bool(errors) == bool(lines), (errors, lines)
    if lines:
        assert wanted in errors, errors
        line = errors[wanted].source.rpartition(f"verl {VERL}: ")[2]
        assert line in lines, (line, lines)


def test_the_table_names_a_raise_or_an_assert_of_this_verl():
    table = read_table(rule.__file__, "refusals.yaml")
    for check, source in table[VERL].items():
        file, _, line = source.partition(":")
        text = (SOURCE / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        stops = {"raise", "assert"} if check != "megatron-micro-none" else {"minimal_bsz"}
        assert text.split()[0] in stops, (check, source, text)


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
