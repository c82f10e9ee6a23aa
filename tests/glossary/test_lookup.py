"""Every metric and key of rules and curves has an entry, and every key exists in verl."""

from __future__ import annotations

import json
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from rewardkit.cli import glossary
from rewardkit.errors import UnknownNameError, UsageError
from rewardkit.glossary.lookup import (
    KeyEntry,
    MetricEntry,
    chinese_rules,
    find_entries,
    find_key,
    find_metric,
    key_changes,
    key_defaults,
    keys,
    labels,
    markdown_keys,
    markdown_metrics,
    metrics,
)
from rewardkit.launch.rules import RULES as LAUNCH_RULES
from rewardkit.launch.verl.releases import DAPO_RECIPE_KEYS, LATEST, known_releases, release_of
from rewardkit.preprocess.row_checks import RULES as ROW_RULES
from rewardkit.trainlog.rules import rules
from rewardkit.trainlog.topics import TOPICS
from rewardkit.trainlog.translations import translations

#: Keys of supervised fine-tuning, which is another configuration.
SFT = {"optim.lr"}


def texts():
    for entry in metrics():
        yield from (entry.meaning, entry.healthy, entry.moves)
    for entry in keys():
        yield from (entry.meaning, entry.choose)
    for name, label in labels("en").items():
        yield {"en": label, "zh": labels("zh")[name]}


def test_every_text_exists_in_both_languages():
    for text in texts():
        assert text.keys() == {"en", "zh"}
        assert all(
            isinstance(translation, str) and translation.strip() for translation in text.values()
        )


def test_every_name_has_one_entry():
    names = [name for entry in metrics() for name in entry.names]
    assert len(names) == len(set(names))
    assert len(keys()) == len({entry.key for entry in keys()})


def test_every_metric_of_rules_and_curves_has_an_entry():
    for name in {name for topic in TOPICS for name in topic.names} | {
        name for rule in rules() for name in rule.metrics
    }:
        assert find_metric(name)


def test_every_key_of_rules_and_metrics_has_an_entry():
    for name in {name for entry in metrics() for name in entry.keys} | {
        name for rule in rules() for name in rule.keys if not name.startswith("+")
    }:
        assert find_key(name).key == name


def test_every_key_exists_in_a_release_of_verl():
    releases = [release_of(verl) for verl in known_releases()]
    for entry in keys():
        assert (
            entry.key in SFT
            or entry.key in DAPO_RECIPE_KEYS
            or any(
                release.lists(entry.key) or release.accepts_unlisted(entry.key)
                for release in releases
            )
        ), entry.key


@pytest.mark.parametrize(
    ("name", "entry_name"),
    [
        ("actor/entropy", "actor/entropy"),
        ("timing/gen", "timing_s/gen"),
        ("timing/update_actor", "timing_s/update_actor"),
        ("val-core/openai/gsm8k/acc/mean@8", "val-core/*"),
        ("response_length_non_aborted/max", "response_length_non_aborted/*"),
        ("train/num_gen_batches", "train/num_gen_batches"),
        ("train/global_tokens", "train/loss"),
    ],
)
def test_a_metric_is_found_by_its_name_its_old_name_and_its_group(name, entry_name):
    assert find_metric(name).names[0] == entry_name


def test_a_key_is_found_by_its_end_and_in_the_form_of_an_override():
    assert find_key("clip_ratio_high").key == "actor_rollout_ref.actor.clip_ratio_high"
    assert find_key("+data.truncation='error'").key == "data.truncation"


@pytest.mark.parametrize(
    ("find", "name", "message"),
    [
        (find_metric, "actor/entrpy", "Did you mean 'actor/entropy'"),
        (find_key, "data.max_respnse_length", "Did you mean 'data.max_response_length'"),
        (find_key, "n", "end of several"),
        (find_entries, "actor/entrpy", "Did you mean 'actor/entropy'"),
        (find_entries, "max_respnse_length", "Did you mean 'max_response_length'"),
        (find_entries, "n", "end of several"),
    ],
)
def test_the_error_for_an_unknown_name_suggests_the_nearest(find, name, message):
    with pytest.raises(UnknownNameError, match=message):
        find(name)


def test_defaults_are_those_of_the_releases():
    assert key_defaults("data.max_response_length") == [(f"0.7.1 to {LATEST}", "512")]
    assert key_defaults("trainer.use_v1")[0] == ("0.7.1 to 0.8.0", "no such key")
    defaults = key_defaults("actor_rollout_ref.rollout.calculate_log_probs")
    assert defaults == [("0.7.1 to 0.8.0", "false"), (f"0.9.0 to {LATEST}", "true")]


def test_a_renamed_key_names_its_other_name():
    assert any(
        "reward.reward_manager.name" in change
        for change in key_changes("reward_model.reward_manager")
    )
    assert any(
        "custom_reward_function.path" in change
        for change in key_changes("reward.custom_reward_function.path")
    )
    assert list(key_changes("data.train_batch_size")) == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_tables_have_a_row_for_everything(lang):
    assert markdown_metrics(lang).count("\n") == len(metrics()) + 2
    assert markdown_keys(lang).count("\n") == len(keys()) + 2
    columns = {len(re.findall(r"(?<!\\)\|", line)) for line in markdown_keys(lang).splitlines()}
    assert columns == {5}


app = typer.Typer()
app.command()(glossary.command)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_the_command_explains_metrics_and_keys():
    (entry,) = json.loads(run("response_length/clip_ratio", "--json").stdout)
    assert entry["keys"] == ["data.max_response_length"]
    assert entry["rules"][0].startswith("truncation")
    assert "回复" in run("response_length/mean", "--lang", "zh").stdout
    (entry,) = json.loads(run("kl_loss_coef", "--json").stdout)
    assert entry["metrics"] == ["actor/kl_loss", "actor/kl_coef"]
    assert f"0.001 (0.7.1 to {LATEST})" in entry["defaults"]


def test_the_command_explains_the_rules_of_plans_and_of_logs_by_their_codes():
    (entry,) = json.loads(run("l-10", "--json").stdout)
    assert (entry["rule"], entry["severity"]) == ("L-10", "error")
    assert entry["keys"] == ["actor_rollout_ref.rollout.n"]
    (entry,) = json.loads(run("truncation", "--json").stdout)
    assert "data.max_response_length" in entry["keys"]
    assert entry["source"].startswith("verl docs/")
    assert "组内" in run("L-10", "--lang", "zh").stdout


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_command_explains_the_curves_of_logs_by_their_titles(lang):
    for topic in TOPICS:
        title = translations("topics", lang)[topic.id]
        (entry,) = json.loads(run(title.upper(), "--json", "--lang", lang).stdout)
        assert entry["metric"] == list(find_metric(topic.names[0]).names)


def test_a_name_that_is_a_metric_and_a_key_shows_both(monkeypatch):
    text = {"en": "a metric", "zh": "指标"}
    entry = MetricEntry(names=("kl_loss_coef",), meaning=text, healthy=text, moves=text, keys=())
    monkeypatch.setattr("rewardkit.glossary.lookup.metrics", lambda: (entry,))
    assert [type(match) for match in find_entries("kl_loss_coef")] == [MetricEntry, KeyEntry]
    assert "a metric" in run("kl_loss_coef").stdout
    assert "actor_rollout_ref.actor.kl_loss_coef" in run("kl_loss_coef").stdout


def test_the_command_prints_all_entries_as_markdown():
    assert run("--all").stdout == f"{markdown_metrics('en')}\n{markdown_keys('en')}"
    assert run("--all", "--lang", "zh").stdout == f"{markdown_metrics('zh')}\n{markdown_keys('zh')}"
    assert isinstance(run().exception, UsageError)
    assert isinstance(run("actor/lr", "--all").exception, UsageError)


@pytest.mark.skipif(not os.environ.get("REWARDKIT_SHARED"), reason="REWARDKIT_SHARED is unset")
def test_every_metric_and_parameter_of_the_inventory_has_an_entry(shared):
    text = (shared / "seed_inventory.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| M-\d+ \| ([^|]+) \|", text, re.MULTILINE)
    assert len(rows) == 48
    for row in rows:
        cell = re.match(r"`([^`]+)`", row)
        if cell:
            head, _, inner = cell[1].partition("{")
            assert find_metric(head + inner.rstrip("}").partition(",")[0])
    parameters = re.findall(r"^\| P-\d+ \| `([^`]+)`", text, re.MULTILINE)
    assert len(parameters) == 71
    assert all(find_key(name).key == name for name in parameters)


@pytest.mark.parametrize(
    ("name", "en", "zh"),
    [
        ("timing_s/save_checkpoint", "checkpoint", "检查点"),
        ("timing_s/update_weights", "rollout engine", "推理引擎"),
        ("timing_s/step", "without its validation", "不含验证"),
        ("timing_s/reward", "overlaps", "同时"),
        ("training/filter_groups/evicted_samples", "prompts", "提示"),
        ("training/off_policy/evicted_samples", "Prompts", "提示词数"),
        ("training/rollout_failure/evicted_samples", "Prompts", "提示词数"),
        ("training/rollout_probs_diff_valid", "no token", "没有可统计的 token"),
        ("response/aborted_ratio", "leaves them out", "不计入"),
        ("val-core/set/acc/mean@2", "exactly N", "恰有 N"),
    ],
)
def test_metrics_that_are_easily_misread_are_explained_as_verl_computes_them(name, en, zh):
    entry = find_metric(name)
    assert en in entry.meaning["en"]
    assert zh in entry.meaning["zh"]


def test_the_trend_of_logs_is_explained_with_its_windows_in_both_languages():
    (entry,) = json.loads(run("trend", "--json").stdout)
    assert (
        "the last fifth of a curve's points minus the mean of the first fifth" in entry["meaning"]
    )
    assert "五分之一" in run("trend", "--lang", "zh").stdout


def test_rules_name_likely_causes_and_only_keys_with_an_effect():
    by_id = {rule.id: rule for rule in rules()}
    assert "all responses are correct" in by_id["constant_reward"].meaning["en"]
    assert "全部答对" in by_id["constant_reward"].meaning["zh"]
    assert "trainer.balance_batch" not in by_id["imbalance"].keys
    assert "leave" in by_id["aborted"].meaning["en"]


def test_chinese_entries_have_chinese_labels_and_spans():
    output = run("use_kl_loss", "--lang", "zh").stdout
    assert all(label in output for label in ("配置项", "含义", "如何选择", "默认值"))
    assert not any(label in output for label in ("meaning", "defaults", "how to choose"))
    assert ("0.7.1 至 0.8.0", "无此配置项") in key_defaults("trainer.use_v1", "zh")


def test_each_rule_of_plans_and_of_rows_has_a_chinese_text():
    assert chinese_rules().keys() >= {rule.id for rule in LAUNCH_RULES} | ROW_RULES.keys()
    assert all(re.search("[\u4e00-\u9fff]", text) for text in chinese_rules().values())


def test_check_prints_the_chinese_of_a_rule_only_if_asked(cli, tmp_path):
    call = "check", "qwen2.5-0.5b-ppo-gsm8k", "--verl-version", "0.9"
    english, chinese = (cli(*call, *more, cwd=tmp_path).stdout for more in ((), ("--lang", "zh")))
    assert english.isascii()
    assert f"        {chinese_rules()['L-56']}\n" in chinese
    assert [line for line in chinese.splitlines() if line[:8].strip()] == english.splitlines()
    rows = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"prompt": ["a"]}), rows)
    assert "该列" in cli("check", rows, "--lang", "zh").stdout
