"""Texts of pages, charts and tables in English and Chinese, read from `translations.yaml`."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def translations(part: str, lang: str) -> Mapping[str, str]:
    """Return the texts of a part by name.

    Args:
        part: `page`, `tables`, `comparison`, `hacking` or `topics`.
        lang: `en` or `zh`.
    """
    return {name: text[lang] for name, text in _read()[part].items()}


def with_note(text: str, note: str, lang: str) -> str:
    """Return a text with a note in parentheses, which are full-width in Chinese."""
    return f"{text} ({note})" if lang == "en" else f"{text}（{note}）"


@cache
def _read() -> dict[str, dict[str, dict[str, str]]]:
    import yaml

    text = Path(__file__).with_name("translations.yaml").read_text(encoding="utf-8")
    parts: dict[str, Any] = yaml.safe_load(text)
    return parts
