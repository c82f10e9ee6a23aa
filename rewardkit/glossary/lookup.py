"""What verl's metrics and configuration keys mean, in English and Chinese.

The texts are in `metrics.yaml` and `keys.yaml`. A key's defaults are those that
verl's releases compose (`rewardkit.launch.verl.releases`), and what became of it is from
`rewardkit.launch.verl.key_renames`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from rewardkit.errors import UnknownNameError
from rewardkit.registry import did_you_mean

#: A text by language, `en` or `zh`.
Text = Mapping[str, str]


@dataclass(frozen=True)
class MetricEntry:
    """A metric, or several that are read together.

    Attributes:
        names: its names in verl's releases; one may end in `*`.
        meaning: what it is; so are the next two texts.
        healthy: the range that a run with nothing wrong has.
        moves: what moves it.
        keys: the configuration keys that do.
    """

    names: tuple[str, ...]
    meaning: Text
    healthy: Text
    moves: Text
    keys: tuple[str, ...]


@dataclass(frozen=True)
class KeyEntry:
    """A configuration key.

    Attributes:
        key: its dotted name.
        meaning: what it does.
        choose: how to choose its value.
    """

    key: str
    meaning: Text
    choose: Text


def find_entries(name: str) -> list[MetricEntry | KeyEntry]:
    """Return the entries of a name: a metric, a configuration key, or one of each.

    Raises:
        UnknownNameError: neither has that name (the message suggests the nearest), or several keys
            end in it.
    """
    entries: list[MetricEntry | KeyEntry] = []
    if found := _metric(name):
        entries.append(found)
    matches = _keys(name)
    if len(matches) == 1:
        entries.append(matches[0])
    if entries:
        return entries
    if matches:
        raise _several_keys(name, matches)
    names = [one for entry in metrics() for one in entry.names] + [entry.key for entry in keys()]
    raise _unknown("metric or key", name, names)


def find_metric(name: str) -> MetricEntry:
    """Return the entry of a metric; its exact name wins over a group's.

    Raises:
        UnknownNameError: no metric has that name; the message suggests the nearest.
    """
    if entry := _metric(name):
        return entry
    raise _unknown("metric", name, [one for entry in metrics() for one in entry.names])


def find_key(name: str) -> KeyEntry:
    """Return the entry of a configuration key, by its dotted name or an ending that only one has.

    Raises:
        UnknownNameError: no key or several keys end in the name.
    """
    matches = _keys(name)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise _several_keys(name, matches)
    raise _unknown("key", name, [entry.key for entry in keys()])


def _metric(name: str) -> MetricEntry | None:
    entries = {one: entry for entry in metrics() for one in entry.names}
    # 0.1 has timing/ where later releases have timing_s/.
    for spelling in (name, name.replace("timing/", "timing_s/", 1)):
        if spelling in entries:
            return entries[spelling]
        for pattern, entry in entries.items():
            if fnmatchcase(spelling, pattern):
                return entry
    return None


def _keys(name: str) -> list[KeyEntry]:
    """The key of that name, or else all keys that end in it; `+key=value` names `key`."""
    dotted = name.lstrip("+~").partition("=")[0]
    exact = [entry for entry in keys() if entry.key == dotted]
    return exact or [entry for entry in keys() if entry.key.endswith(f".{dotted}")]


def _several_keys(name: str, matches: Sequence[KeyEntry]) -> UnknownNameError:
    names = ", ".join(entry.key for entry in matches)
    return UnknownNameError(f"{name!r} is the end of several keys: {names}.")


def _unknown(kind: str, name: str, names: list[str]) -> UnknownNameError:
    return UnknownNameError(
        f"unknown {kind} {name!r}.{did_you_mean(name.lstrip('+~').partition('=')[0], names)} "
        "`rewardkit glossary --all` lists all entries."
    )


@cache
def metrics() -> tuple[MetricEntry, ...]:
    """All metrics."""
    return tuple(
        MetricEntry(
            tuple(item["names"]),
            {"en": item["en"], "zh": item["zh"]},
            item["healthy"],
            item["moves"],
            tuple(item["keys"]),
        )
        for item in _read("metrics.yaml")
    )


@cache
def keys() -> tuple[KeyEntry, ...]:
    """All configuration keys."""
    return tuple(
        KeyEntry(item["key"], {"en": item["en"], "zh": item["zh"]}, item["choose"])
        for item in _read("keys.yaml")
    )


def key_defaults(name: str) -> list[tuple[str, str]]:
    """A key's default by release: (`0.4.1 to 0.8.0`, default), neighbours with the same joined."""
    from rewardkit.launch.verl.releases import known_releases, release_of

    absent = object()
    values = [(verl, release_of(verl).keys.get(name, absent)) for verl in known_releases()]
    found = []
    for value, group in groupby(values, key=lambda pair: pair[1]):
        spans = [verl for verl, _ in group]
        span = spans[0] if len(spans) == 1 else f"{spans[0]} to {spans[-1]}"
        found.append((span, "no such key" if value is absent else _written(value)))
    return found


def key_changes(name: str) -> Iterator[str]:
    """What became of a key: other names, and releases that do not act on it."""
    from rewardkit.launch.verl.key_renames import ignored_keys, renames

    for move in renames():
        since = ".".join(map(str, move.since))
        if _fits(name, move.new) and move.old:
            yield f"before {since}: {move.old}{name.removeprefix(move.new)}"
        elif move.old and _fits(name, move.old):
            yield f"from {since} on: {move.new}{name.removeprefix(move.old)}"
    for dead in ignored_keys():
        if _fits(name, dead.key):
            yield f"from {'.'.join(map(str, dead.since))} on: {dead.why}"
            break


def markdown(lang: str) -> str:
    """Return all metrics and all keys as two tables in Markdown."""
    return f"{markdown_metrics(lang)}\n{markdown_keys(lang)}"


def markdown_metrics(lang: str) -> str:
    """The metrics as a table in Markdown."""
    rows = [
        (_code(*it.names), it.meaning[lang], it.healthy[lang], it.moves[lang], _code(*it.keys))
        for it in metrics()
    ]
    heads = {
        "en": ("metric", "meaning", "healthy", "what moves it", "keys"),
        "zh": ("指标", "含义", "健康范围", "影响因素", "相关配置"),
    }
    return _table(heads[lang], rows)


def markdown_keys(lang: str) -> str:
    """The configuration keys as a table in Markdown."""
    rows = [
        (
            _code(it.key),
            it.meaning[lang],
            it.choose[lang],
            "; ".join(f"{value} ({span})" for span, value in key_defaults(it.key)),
        )
        for it in keys()
    ]
    heads = {
        "en": ("key", "meaning", "how to choose", "default (release)"),
        "zh": ("配置项", "含义", "如何选择", "默认值 (版本)"),
    }
    return _table(heads[lang], rows)


def _read(name: str) -> list[dict[str, Any]]:
    import yaml

    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    found: list[dict[str, Any]] = yaml.safe_load(text)
    return found


def _fits(name: str, wanted: str) -> bool:
    """Whether a key is the wanted one, or below it if that ends in a dot."""
    return name == wanted or (wanted.endswith(".") and name.startswith(wanted))


def _written(value: Any) -> str:
    """A default as YAML writes it."""
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    return str(value)


def _code(*names: str) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )
