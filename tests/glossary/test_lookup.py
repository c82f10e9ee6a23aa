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

from rewardkit.checks.row_checks import RULES as ROW_RULES
from rewardkit.cli import glossary
from rewardkit.errors import UnknownNameError, UsageError
from rewardkit.glossary.lookup import (
    KeyEntry,
    MetricEntry,
    chinese_rules,
    find_entries,
    key_changes,
    key_defaults,
    keys,
    labels,
    markdown,
    metrics,
)
from rewardkit.launch.rules import RULES as LAUNCH_RULES
from rewardkit.launch.verl.releases import DAPO_RECIPE_KEYS, LATEST, known_releases, release_of
from rewardkit.trainlog.rules import rules
from rewardkit.trainlog.topics import TOPICS
from rewardkit.trainlog.translations import translations
from tests.tables import every

#: Keys of supervised fine-tuning, which is another configuration.
SFT = {"optim.lr"}


def metric(name):
    return next(entry for entry in find_entries(name) if isinstance(entry, MetricEntry))


def key(name):
    return next(entry.key for entry in find_entries(name) if isinstance(entry, KeyEntry))


def test_every_text_exists_in_both_languages():
    texts = [text for one in metrics() for text in (one.meaning, one.healthy, one.moves)]
    texts += [text for one in keys() for text in (one.meaning, one.choose)]
    texts += [{"en": label, "zh": labels("zh")[name]} for name, label in labels("en").items()]
    for text in texts:
        assert text.keys() == {"en", "zh"}
        assert all(isinstance(words, str) and words.strip() for words in text.values())
    assert chinese_rules().keys() >= {rule.id for rule in LAUNCH_RULES} | ROW_RULES.keys()
    assert all(re.search("[\u4e00-\u9fff]", text) for text in chinese_rules().values())


def test_every_metric_and_key_of_rules_curves_and_metrics_has_one_entry():
    names = [name for entry in metrics() for name in entry.names]
    assert len(names) == len(set(names))
    assert len(keys()) == len({entry.key for entry in keys()})
    of_rules = {name for rule in rules() for name in rule.metrics}
    assert all(map(metric, of_rules | {name for one in TOPICS for name in one.names}))
    for name in {name for one in [*metrics(), *rules()] for name in one.keys}:
        assert name.startswith("+") or key(name) == name


def test_every_key_exists_in_a_release_of_verl():
    releases = [release_of(verl) for verl in known_releases()]
    for name in {entry.key for entry in keys()} - SFT - set(DAPO_RECIPE_KEYS):
        assert any(one.lists(name) or one.accepts_unlisted(name) for one in releases), name


@every(
    ("name", "entry_name"),
    [
        ("actor/entropy", "actor/entropy"),
        ("timing/gen", "timing_s/gen"),
        ("val-core/openai/gsm8k/acc/mean@8", "val-core/*"),
    ],
)
def test_a_metric_is_found_by_its_name_its_old_name_and_its_group(name, entry_name):
    assert metric(name).names[0] == entry_name


def test_a_key_is_found_by_its_end_and_in_the_form_of_an_override():
    assert key("clip_ratio_high") == "actor_rollout_ref.actor.clip_ratio_high"
    assert key("+data.truncation='error'") == "data.truncation"


@every(
    ("name", "message"),
    [
        ("actor/entrpy", "Did you mean 'actor/entropy'"),
        ("max_respnse_length", "Did you mean 'max_response_length'"),
        ("n", "end of several"),
    ],
)
def test_the_error_for_an_unknown_name_suggests_the_nearest(name, message):
    with pytest.raises(UnknownNameError, match=message):
        find_entries(name)


def test_defaults_and_changes_are_those_of_the_releases():
    assert key_defaults("data.max_response_length") == [(f"0.7.1 to {LATEST}", "512")]
    assert key_defaults("trainer.use_v1")[0] == ("0.7.1 to 0.8.0", "no such key")
    assert ("0.7.1 至 0.8.0", "无此配置项") in key_defaults("trainer.use_v1", "zh")
    defaults = key_defaults("actor_rollout_ref.rollout.calculate_log_probs")
    assert defaults == [("0.7.1 to 0.8.0", "false"), (f"0.9.0 to {LATEST}", "true")]
    assert "reward.reward_manager.name" in " ".join(key_changes("reward_model.reward_manager"))
    old = " ".join(key_changes("reward.custom_reward_function.path"))
    assert "custom_reward_function.path" in old
    assert list(key_changes("data.train_batch_size")) == []


app = typer.Typer()
app.command()(glossary.command)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


@every(
    ("name", "field", "expected"),
    [
        ("response_length/clip_ratio", "rules", "truncation"),
        ("kl_loss_coef", "defaults", f"0.001 (0.7.1 to {LATEST})"),
        ("l-10", "keys", "actor_rollout_ref.rollout.n"),
        ("truncation", "source", "verl docs/"),
        ("trend", "meaning", "the last fifth of a curve's points minus the mean of the first"),
        ("constant_reward", "meaning", "all responses are correct"),
        ("timing_s/step", "meaning", "without its validation"),
        ("val-core/set/acc/mean@2", "meaning", "exactly N"),
    ],
)
def test_the_command_explains_metrics_keys_and_rules_as_verl_computes_them(name, field, expected):
    (entry,) = json.loads(run(name, "--json").stdout)
    assert expected in str(entry[field])


@every(
    ("name", "words"),
    [
        ("response_length/mean", "回复"),
        ("L-10", "组内"),
        ("use_kl_loss", "配置项 含义 如何选择 默认值"),
    ],
)
def test_the_command_explains_in_chinese_with_chinese_labels(name, words):
    output = run(name, "--lang", "zh").stdout
    assert all(word in output for word in words.split())
    assert not any(label in output for label in ("meaning", "defaults", "how to choose"))


@every("lang", ["en", "zh"])
def test_the_curves_of_logs_are_found_by_their_titles(lang):
    for topic in TOPICS:
        title = translations("topics", lang)[topic.id]
        (entry,) = json.loads(run(title.upper(), "--json", "--lang", lang).stdout)
        assert entry["metric"] == list(metric(topic.names[0]).names)


def test_a_name_that_is_a_metric_and_a_key_shows_both(monkeypatch):
    text = {"en": "a metric", "zh": "指标"}
    entry = MetricEntry(("kl_loss_coef",), text, text, text, ())
    monkeypatch.setattr("rewardkit.glossary.lookup.metrics", lambda: (entry,))
    assert [type(match) for match in find_entries("kl_loss_coef")] == [MetricEntry, KeyEntry]
    output = run("kl_loss_coef").stdout
    assert "a metric" in output
    assert "actor_rollout_ref.actor.kl_loss_coef" in output


@every("lang", ["en", "zh"])
def test_the_command_prints_all_entries_as_markdown(lang):
    text = run("--all", "--lang", lang).stdout
    assert text == markdown(lang)
    assert text.count("\n|") + 1 == len(metrics()) + len(keys()) + 4
    tables = (
        {len(re.findall(r"(?<!\\)\|", row)) for row in part.splitlines()}
        for part in text.split("\n\n")
    )
    assert list(tables) == [{6}, {5}]
    assert isinstance(run().exception, UsageError)
    assert isinstance(run("actor/lr", "--all").exception, UsageError)


@pytest.mark.skipif(not os.environ.get("REWARDKIT_SHARED"), reason="REWARDKIT_SHARED is unset")
def test_every_metric_and_parameter_of_the_inventory_has_an_entry(shared):
    text = (shared / "seed_inventory.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| M-\d+ \| ([^|]+) \|", text, re.MULTILINE)
    assert len(rows) == 48
    for cell in filter(None, (re.match(r"`([^`]+)`", row) for row in rows)):
        head, _, inner = cell[1].partition("{")
        assert metric(head + inner.rstrip("}").partition(",")[0])
    parameters = re.findall(r"^\| P-\d+ \| `([^`]+)`", text, re.MULTILINE)
    assert len(parameters) == 71
    assert all(key(name) == name for name in parameters)


def test_check_prints_the_chinese_of_a_rule_only_if_asked(cli, tmp_path):
    call = "check", "qwen2.5-0.5b-ppo-gsm8k", "--verl-version", "0.9"
    english, chinese = (cli(*call, *more, cwd=tmp_path).stdout for more in ((), ("--lang", "zh")))
    assert english.isascii()
    assert f"        {chinese_rules()['L-56']}\n" in chinese
    assert [line for line in chinese.splitlines() if line[:8].strip()] == english.splitlines()
    rows = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"prompt": ["a"]}), rows)
    assert "该列" in cli("check", rows, "--lang", "zh").stdout
