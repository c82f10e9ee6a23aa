import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import UsageError
from rewardkit.launch.verl.releases import parse_release, release_of
from rewardkit.launch.verl.reward_keys import describe_reward_keys, reward_key, reward_overrides


@pytest.mark.parametrize(
    ("verl", "key"),
    [
        ("0.4.1", "custom_reward_function"),
        ("0.5.0", "custom_reward_function"),
        ("0.7.0", "custom_reward_function"),
        ("0.7.1", "reward.custom_reward_function"),
        ("0.8", "reward.custom_reward_function"),
        ("0.9.1", "reward.custom_reward_function"),
        ("0.10.0.dev0", "reward.custom_reward_function"),
    ],
)
def test_each_release_gets_the_reward_key_that_it_reads(verl, key):
    assert reward_key(verl) == key
    assert reward_overrides("/x/gsm8k.py", {}, verl) == [
        f"{key}.path=/x/gsm8k.py",
        f"{key}.name=compute_score",
    ]


def test_the_silently_ignored_key_is_mentioned_for_0_9_only():
    assert "silently ignored" in describe_reward_keys("0.9.1")
    assert "silently" not in describe_reward_keys("0.8.0") + describe_reward_keys("0.5.0")


@pytest.mark.parametrize(
    ("location", "override"),
    [
        ("/a b/x=1.py", "custom_reward_function.path='/a b/x=1.py'"),
        ("/it's.py", r"custom_reward_function.path='/it\'s.py'"),
        ("/a\\b c/x.py", r"custom_reward_function.path='/a\b c/x.py'"),
        ("/a b\\", r"custom_reward_function.path='/a b\\'"),
        ("/中文/x.py", "custom_reward_function.path='/中文/x.py'"),
    ],
)
def test_hydra_s_own_characters_are_quoted(location, override):
    assert reward_overrides(location, {}, "0.5.0")[0] == override


def test_options_become_reward_kwargs_of_the_same_type():
    options = {"a": "x", "b": 1, "c": 1e300, "d": True, "e": None, "f": "1", "g": "true", "h": "中"}
    values = [o.partition("=")[2] for o in reward_overrides("/x.py", options, "0.9.1")[2:]]
    assert values == ["x", "1", "1e+300", "True", "null", "'1'", "'true'", "'中'"]


def test_a_package_path_is_refused_where_verl_takes_files_only():
    with pytest.raises(UsageError, match="files only"):
        reward_overrides("pkg://x", {}, "0.5.0")
    assert reward_overrides("pkg://x", {}, "0.9.1")[0].endswith("path=pkg://x")


@pytest.mark.parametrize(
    ("text", "parts"), [("v0.7.1", (0, 7, 1)), ("0.9.1.post2", (0, 9, 1)), ("0.8", (0, 8, 0))]
)
def test_a_version_is_read_without_its_suffix(text, parts):
    assert parse_release(text) == parts


@given(st.text(max_size=20))
def test_any_text_is_a_version_or_refused(text):
    try:
        assert parse_release(text)
    except UsageError as error:
        assert "is not a version of verl" in str(error)


@pytest.mark.parametrize(
    ("verl", "engines"),
    [
        ("0.7.1", ["torchtitan", "veomni"]),
        ("0.8.0", ["automodel", "mindspeed", "torchtitan", "veomni"]),
        ("0.9.1", ["automodel", "torchtitan", "veomni"]),
    ],
)
def test_a_release_names_the_engines_that_plans_cannot_use(verl, engines):
    assert list(release_of(verl).engines) == engines


@pytest.mark.parametrize(
    ("verl", "key", "engines"),
    [
        ("0.9.1", "actor_rollout_ref.actor.veomni.param_offload", ("veomni",)),
        ("0.9.1", "actor_rollout_ref.actor.veomni.param_ofload", ("veomni",)),
        ("0.9.1", "critic.torchtitan", ("torchtitan",)),
        ("0.9.1", "actor_rollout_ref.actor.optim.lr_decay_ratio", ("veomni",)),
        ("0.9.0", "actor_rollout_ref.ref.optim.lr", ("mindspeed", "torchtitan")),
        ("0.9.1", "actor_rollout_ref.ref.mindspeed.dtype", ()),
        ("0.9.1", "actor_rollout_ref.actor.fsdp_config.param_offload", ()),
        ("0.9.1", "actor_rollout_ref.actor.optim.lr", ()),
        ("0.9.1", "data.train_batchsize", ()),
        ("0.9.1", "veomni", ()),
    ],
)
@pytest.mark.parametrize("megatron", [False, True])
def test_a_setting_of_an_engine_that_plans_cannot_use_names_the_engine(
    verl, key, engines, megatron
):
    release = release_of(verl, megatron=megatron)
    assert release.engines_of(key) == engines
    assert not (engines and (release.lists(key) or release.accepts_unlisted(key)))
