"""Texts of pages, charts and tables in English and Chinese, read from `translations.yaml`."""

from collections.abc import Mapping
from functools import cache

from rewardkit.strict_yaml import read_table


@cache
def translations(part: str, lang: str) -> Mapping[str, str]:
    """Return the texts of a part (`page`, `tables`, `comparison`, `hacking`, `facts`, `topics`) by name."""
    table = read_table(__file__, "translations.yaml")[part]
    return {name: text[lang] for name, text in table.items()}


def with_note(text: str, note: str, lang: str) -> str:
    """Return a text with a note in parentheses, which are full-width in Chinese."""
    return f"{text} ({note})" if lang == "en" else f"{text}（{note}）"
