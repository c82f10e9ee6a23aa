"""Every text of pages, charts and tables exists in both languages."""

from pathlib import Path
from string import Formatter

import pytest
import yaml

from rewardkit.trainlog import translations
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


def test_texts_are_read_by_part_and_language():
    assert translations.translations("tables", "zh")["metric"] == "指标"
