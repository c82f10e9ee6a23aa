"""Every recipe is composed by Hydra and validated by the code of a real verl."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rewardkit.launch.plan import make_plan
from rewardkit.launch.presets import ACTOR
from rewardkit.launch.recipe import built_in, load_tree, read_recipe
from rewardkit.launch.verl import compose_child
from rewardkit.launch.verl.compose import compose_config, config_name
from rewardkit.launch.verl.hydra_values import format_value
from rewardkit.launch.verl.releases import DAPO_RECIPE_KEYS, release_of, to_latest_key
from rewardkit.launch.verl.translate import REFERENCE_SECTION
from tests.integration.conftest import VERL
from tests.launch.test_hydra_values import READ_BY_HYDRA


def compose_here(arguments, *, dapo_recipe=False):
    """Compose in this process: return the configuration, verl's error, and the loaded reward."""
    added = [f"++{k}={format_value(v)}" for k, v in DAPO_RECIPE_KEYS.items()] if dapo_recipe else []
    overrides = [argument for argument in arguments if not argument.startswith("--")]
    config = compose_child.compose(config_name(arguments), [*added, *overrides])
    flat = compose_child.flat_config(config)
    return flat, compose_child.validation_error(config), compose_child.load_reward(config)


def compose_plan(plan):
    return compose_config(plan.local_arguments(), dapo_recipe=plan.release.dapo_recipe)


def runs():
    for name in built_in():
        tree = load_tree(name)
        for variant in [None, *(tree.get("sweep") or {})]:
            yield name, variant


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("megatron", [False, True])
def test_the_stored_keys_of_this_release_are_those_that_its_configuration_composes(megatron):
    """An interpolation may stand for a section, which is composed with the keys below it."""
    config = compose_child.compose("ppo_megatron_trainer" if megatron else "ppo_trainer", [])
    composed = {*compose_child.flat_config(config)}
    stored = {*release_of(VERL, megatron=megatron).keys}
    assert all(with_sections(key) & stored for key in composed)
    assert stored <= {name for key in composed for name in with_sections(key)}


def with_sections(key):
    """Return a key and the sections that it is in."""
    parts = key.split(".")
    return {".".join(parts[:i]) for i in range(1, len(parts) + 1)}


@pytest.mark.parametrize(("name", "variant"), list(runs()))
def test_every_recipe_composes_and_is_valid_and_loads_its_reward(name, variant):
    plan = make_plan(read_recipe(load_tree(name), name, variant), VERL)
    config, invalid, reward = compose_here(
        plan.local_arguments(), dapo_recipe=plan.release.dapo_recipe
    )
    assert invalid == ""
    assert reward["reward"] in {"compute_score", "score"}
    dropped = {to_latest_key(note.key) for note in plan.notes if note.kind == "dropped"}
    has_reference = plan.get(f"{ACTOR}.use_kl_loss") or plan.get("algorithm.use_kl_in_reward")
    for key, value in plan.settings.items():
        if key in dropped or str(value).startswith("${") or value == "reward.py":
            continue
        if key.startswith(REFERENCE_SECTION) and not has_reference:
            continue
        assert config[plan.release.name_of(key)] == value, key


def test_composing_in_a_child_process_gives_the_same_result():
    plan = make_plan(read_recipe(load_tree("qwen3-32b-dapo"), "x"), VERL)
    config, invalid, reward = compose_here(plan.arguments, dapo_recipe=plan.release.dapo_recipe)
    composed = compose_plan(plan)
    assert composed.config == config
    assert (composed.error, composed.invalid, composed.reward) == ("", invalid, reward["reward"])


def test_an_error_of_verls_validation_is_reported():
    tree = load_tree("qwen2.5-0.5b-ppo-gsm8k")
    tree["verl"]["data"]["train_batch_size"] = 3
    tree["devices_per_node"] = 2
    composed = compose_plan(make_plan(read_recipe(tree, "x"), VERL))
    assert "real_train_batch_size (3) must be divisible" in composed.invalid


def test_a_reward_that_hangs_while_verl_imports_it_costs_only_the_reward(tmp_path):
    reward = tmp_path / "mine.py"
    reward.write_text("import time\n\ntime.sleep(1e6)\n")
    plan = make_plan(read_recipe(load_tree("qwen2.5-0.5b-ppo-gsm8k"), "x"), VERL)
    arguments = [a for a in plan.arguments if "custom_reward_function" not in a]
    key = plan.release.name_of("reward.custom_reward_function.path")
    composed = compose_config([*arguments, f"{key}={reward}"], load_seconds=1)
    assert composed.reward_error.startswith(f"{reward}:3: the import stood at this line after 1 s")
    assert (composed.error, composed.invalid) == ("", "")
    assert composed.config[key] == str(reward)


def test_on_the_published_keys_verl_0_9_trains_without_the_reward(v9, tmp_path):
    """A published script composes and is valid there, and has no reward function."""
    reward = tmp_path / "reward_score.py"
    reward.write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None): return 1.0\n"
    )
    published = (
        f"custom_reward_function.path={reward} custom_reward_function.name=compute_score "
        "actor_rollout_ref.rollout.name=vllm algorithm.adv_estimator=grpo "
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 "
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2 "
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=2"
    ).split()
    _, invalid, result = compose_here(published)
    assert invalid == ""
    assert result["reward"] == (None if v9 else "compute_score")


NUMBERS = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)
VALUES = st.booleans() | NUMBERS | TEXTS


@example(value=["'", None])
@example(value=["\\\n", "1_0", "-inf"])
@example(value=[{"a,b c": "'"}])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=st.one_of(VALUES, st.lists(VALUES, max_size=3)))
def test_hydra_reads_every_formatted_value_unchanged(value):
    from hydra.core.override_parser.overrides_parser import OverridesParser

    (override,) = OverridesParser.create().parse_overrides([f"+data.odd={format_value(value)}"])
    assert _plain(override.value()) == value


@pytest.mark.parametrize(("text", "value"), READ_BY_HYDRA)
def test_hydra_reads_texts_as_documented(text, value):
    from hydra.core.override_parser.overrides_parser import OverridesParser

    (override,) = OverridesParser.create().parse_overrides([f"+data.odd={text}"])
    assert value is None or _plain(override.value()) == value


def _plain(value):
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return getattr(value, "text", value)
