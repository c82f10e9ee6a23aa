import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import UsageError
from rewardkit.launch.verl.releases import parse_release, release_of, reward_key, reward_overrides
from tests.tables import every

OLD = "custom_reward_function"
KEYS = {OLD: "0.4.1 0.5.0 0.7.0", f"reward.{OLD}": "0.7.1 0.8 0.9.1 0.10.0.dev0"}


@every(
    ("key", "verl"), [(key, verl) for key, releases in KEYS.items() for verl in releases.split()]
)
def test_each_release_gets_the_reward_key_that_it_reads(verl, key):
    assert reward_key(verl) == key
    overrides = reward_overrides("/a b/gsm8k.py", {}, verl)
    assert overrides == [f"{key}.path='/a b/gsm8k.py'", f"{key}.name=compute_score"]


def test_options_become_reward_kwargs_of_the_same_type():
    options = {"a": "x", "b": 1, "c": 1e300, "d": True, "e": None, "f": "1", "g": "true", "h": "中"}
    values = [o.partition("=")[2] for o in reward_overrides("/x.py", options, "0.9.1")[2:]]
    assert values == ["x", "1", "1e+300", "True", "null", "'1'", "'true'", "'中'"]


def test_a_package_path_is_refused_where_verl_takes_files_only():
    with pytest.raises(UsageError, match="files only"):
        reward_overrides("pkg://x", {}, "0.5.0")
    assert reward_overrides("pkg://x", {}, "0.9.1")[0].endswith("path=pkg://x")


@given(st.text(max_size=20) | st.sampled_from(["v0.7.1", "0.9.1.post2", "0.8"]))
def test_a_version_is_read_without_its_suffix_and_any_other_text_is_refused(text):
    read = {"v0.7.1": (0, 7, 1), "0.9.1.post2": (0, 9, 1), "0.8": (0, 8, 0)}
    try:
        release = parse_release(text)
    except UsageError as error:
        assert "is not a version of verl" in str(error)
    else:
        assert release == read.get(text, release)


A = "actor_rollout_ref.actor"


@every("megatron", [False, True])
@every(("verl", "key", "engines"), [
    ("0.9.1", f"{A}.veomni.param_offload", "veomni"),
    ("0.9.1", "critic.torchtitan", "torchtitan"),
    ("0.9.1", f"{A}.optim.lr_decay_ratio", "veomni"),
    ("0.9.0", "actor_rollout_ref.ref.optim.lr", "mindspeed torchtitan"),
    ("0.9.1", "actor_rollout_ref.ref.mindspeed.dtype", ""),
    *(("0.9.1", key, "") for key in (f"{A}.fsdp_config.param_offload", f"{A}.optim.lr")),
])  # fmt: skip
def test_a_setting_of_an_engine_without_plans_names_the_engine(verl, key, engines, megatron):
    release = release_of(verl, megatron=megatron)
    assert release.engines_of(key) == tuple(engines.split())
    assert not (engines and (release.lists(key) or release.accepts_unlisted(key)))
