"""Every text of pages, charts and tables exists in both languages."""

import re
from pathlib import Path
from string import Formatter

import pytest
import yaml

from rewardkit.trainlog import translations
from rewardkit.trainlog.conditions import Fact
from rewardkit.trainlog.rules import rules
from rewardkit.trainlog.topics import TOPICS

TEXTS = yaml.safe_load(
    Path(translations.__file__).with_name("translations.yaml").read_text(encoding="utf-8")
)


def fields(text):
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name)


@pytest.mark.parametrize("part", TEXTS)
def test_every_text_has_both_languages_and_the_same_fields(part):
    for name, text in TEXTS[part].items():
        assert set(text) == {"en", "zh"}, name
        assert all(text.values()), name
        assert fields(text["en"]) == fields(text["zh"]), name


def test_every_topic_has_a_title():
    assert {topic.id for topic in TOPICS} <= TEXTS["topics"].keys()


def test_every_rule_and_its_source_have_both_languages():
    """What a source says in words is Chinese; names, titles and numbers stay as they are."""
    for rule in rules():
        for text in (rule.title, rule.when, rule.meaning, rule.advice, rule.source):
            assert set(text) == {"en", "zh"}, rule.id
        words = set(re.findall(r"\b[a-z]+\b", rule.source["zh"]))
        assert not words & {"the", "is", "are", "of", "and", "ours", "from", "with", "too"}, rule.id
        assert re.findall(r"\d+", rule.source["zh"]) == re.findall(r"\d+", rule.source["en"]), (
            rule.id
        )


@pytest.mark.parametrize(
    ("name", "kind", "chinese"),
    [
        ("'so x'", "phrase", "含 'so x' 的回复占比 50%"),
        ("'2'", "answer", "答案为 '2' 的回复占比 50%"),
        ("a/b", "highest", "a/b 最高值 0.5"),
        ("a/b", "mean", "a/b 0.5"),
    ],
)
def test_a_fact_is_described_in_chinese_and_metrics_keep_their_names(name, kind, chinese):
    assert Fact(name, (7, 7), 0.5, kind).text("zh") == f"{chinese}（第 7 步）"
