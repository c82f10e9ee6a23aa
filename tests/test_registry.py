import pytest

from rewardkit import registry
from rewardkit.errors import UnknownNameError, UsageError


@pytest.mark.parametrize("group", ["datasets", "scorers", "data_sources"])
def test_every_built_in_name_loads(group):
    for name in registry.known(group):
        assert registry.load(group, name) is not None


def test_an_unknown_name_suggests_similar_ones_and_lists_the_known():
    with pytest.raises(UnknownNameError, match="Did you mean 'gsm8k'.*Known: aime, "):
        registry.target("datasets", "gms8k")


def test_a_file_alone_means_its_compute_score(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def compute_score(data_source, solution_str, ground_truth): return 1.0\n")
    assert registry.load("scorers", str(file))("", "", "") == 1.0


def test_a_function_that_is_missing_suggests_those_that_a_file_has(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from json import loads\ndef my_reward(): ...\ndef _helper(): ...\n")
    with pytest.raises(UnknownNameError) as error:
        registry.load("scorers", f"{file}:my_rewrad")
    assert str(error.value) == (
        f"{file} has no 'my_rewrad'. Did you mean 'my_reward'? It has my_reward; name one as "
        f"{file}:my_reward."
    )
    with pytest.raises(UnknownNameError, match=r"has no 'compute_score'\. It has my_reward;"):
        registry.load("scorers", str(file))


def test_another_package_cannot_replace_a_built_in(plugins):
    plugins(("gsm8k", "evil:score", "rewardkit.scorers"))
    assert registry.target("scorers", "gsm8k") == registry.SCORERS["gsm8k"]


def test_plug_ins_can_be_disabled(plugins, monkeypatch):
    plugins(("acme", "rewardkit.scorers.math:score", "rewardkit.scorers"))
    monkeypatch.setenv("REWARDKIT_PLUGINS", "0")
    assert "acme" not in registry.known("scorers")


def test_auto_adapts_a_plug_in_with_verls_signature(plugins, tmp_path, monkeypatch):
    (tmp_path / "acme_reward.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    assert data_source == 'acme/sums' and extra_info['index'] == 7\n"
        "    return float(solution_str == ground_truth)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plugins(("acme/sums", "acme_reward:compute_score", "rewardkit.data_sources"))
    from rewardkit.scorers import auto

    result = auto.compute_score("acme/sums", "5", "5", {"index": 7})
    assert (result["score"], result["error"]) == (1.0, 0.0)


def test_a_plug_in_that_breaks_on_import_sets_error_and_is_listed_as_broken(
    plugins, tmp_path, monkeypatch
):
    (tmp_path / "acme_broken.py").write_text("raise RuntimeError('not today')\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugins(
        ("acme/broken", "acme_broken:score", "rewardkit.data_sources"),
        ("acme", "acme_broken:score", "rewardkit.scorers"),
    )
    from rewardkit.scorers import auto
    from rewardkit.scorers.isolated import scorer_summary

    assert auto.compute_score("acme/broken", "5", "5")["error"] == 1.0
    assert scorer_summary("acme").startswith("broken: ")


@pytest.mark.parametrize(
    ("text", "said"), [("import sys; sys.exit(0)", "sys.exit"), ("score = 5", "not a function")]
)
def test_a_user_s_file_that_misbehaves_is_one_clear_error(tmp_path, text, said):
    file = tmp_path / "bad.py"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        registry.load("scorers", f"{file}:score")


def test_a_users_file_may_have_dataclasses_with_postponed_annotations(tmp_path):
    file = tmp_path / "reward_with_dataclass.py"
    file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Config:\n    weight: float = 1.0\n"
        "def compute_score(**_): return Config().weight\n"
    )
    assert registry.load("scorers", f"{file}:compute_score") is not None
