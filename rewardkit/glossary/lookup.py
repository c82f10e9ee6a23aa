"""Look-up of verl's metrics and configuration keys, in English and Chinese.

The texts are in `metrics.yaml`, `keys.yaml`, `labels.yaml` and `rules.yaml`. Defaults of keys are those of verl's
releases (`rewardkit.launch.verl.releases`), changes are from `rewardkit.launch.verl.key_renames`.
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


@dataclass(frozen=True, kw_only=True)
class MetricEntry:
    """A metric, or several that are read together.

    Attributes:
        names: names in verl's releases; `*` at the end stands for a group of metrics.
        meaning: what it measures.
        healthy: range of values in a healthy run.
        moves: what changes it.
        keys: configuration keys that change it.
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
        key: dotted name.
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
    if metric := _metric_entry(name):
        entries.append(metric)
    matches = _key_entries(name)
    if len(matches) == 1:
        entries.append(matches[0])
    if entries:
        return entries
    if matches:
        raise _several_keys(name, matches)
    names = [one for entry in metrics() for one in entry.names]
    for entry in keys():  # `kl_loss_coef` is near to the last part of a key, not to all of it
        names += [entry.key, entry.key.rpartition(".")[2]]
    raise _unknown("metric or key", name, names)


def find_metric(name: str) -> MetricEntry:
    """Return the entry of a metric; its exact name wins over a group's.

    Raises:
        UnknownNameError: no metric has that name; the message suggests the nearest.
    """
    if entry := _metric_entry(name):
        return entry
    raise _unknown("metric", name, [one for entry in metrics() for one in entry.names])


def find_key(name: str) -> KeyEntry:
    """Return the entry of a configuration key, by its dotted name or an ending that only one has.

    Raises:
        UnknownNameError: no key or several keys end in the name.
    """
    matches = _key_entries(name)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise _several_keys(name, matches)
    raise _unknown("key", name, [entry.key for entry in keys()])


def _metric_entry(name: str) -> MetricEntry | None:
    entries = {one: entry for entry in metrics() for one in entry.names}
    # 0.1 has timing/ where later releases have timing_s/.
    for spelling in (name, name.replace("timing/", "timing_s/", 1)):
        if spelling in entries:
            return entries[spelling]
        for pattern, entry in entries.items():
            if fnmatchcase(spelling, pattern):
                return entry
    return None


def _key_entries(name: str) -> list[KeyEntry]:
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
    """Return all metrics."""
    return tuple(
        MetricEntry(
            names=tuple(item["names"]),
            meaning={"en": item["en"], "zh": item["zh"]},
            healthy=item["healthy"],
            moves=item["moves"],
            keys=tuple(item["keys"]),
        )
        for item in _read_yaml("metrics.yaml")
    )


@cache
def keys() -> tuple[KeyEntry, ...]:
    """Return all configuration keys."""
    return tuple(
        KeyEntry(item["key"], {"en": item["en"], "zh": item["zh"]}, item["choose"])
        for item in _read_yaml("keys.yaml")
    )


@cache
def labels(lang: str) -> Text:
    """Return the labels of an entry's rows, and phrases, by their name in `labels.yaml`."""
    return {name: text[lang] for name, text in _read_yaml("labels.yaml").items()}


@cache
def chinese_rules() -> Mapping[str, str]:
    """Return the Chinese for a rule, by its name: what it asks for, or what to do about its findings."""
    from rewardkit.launch.rules import RULES

    return {**_read_yaml("rules.yaml"), **{rule.id: rule.zh for rule in RULES}}


def key_defaults(name: str, lang: str = "en") -> list[tuple[str, str]]:
    """Return a key's default by range of releases: (`0.7.1 to 0.8.0`, default)."""
    from rewardkit.launch.verl.releases import known_releases, release_of

    absent, words = object(), labels(lang)
    values = [(verl, release_of(verl).keys.get(name, absent)) for verl in known_releases()]
    defaults = []
    for value, group in groupby(values, key=lambda pair: pair[1]):
        releases = [verl for verl, _ in group]
        span = words["releases"].format(first=releases[0], last=releases[-1])
        text = words["absent"] if value is absent else _as_yaml(value)
        defaults.append((span if len(releases) > 1 else releases[0], text))
    return defaults


def key_changes(name: str, lang: str = "en") -> Iterator[str]:
    """Yield the names of a key in other releases, and the releases that ignore it."""
    from rewardkit.launch.verl.key_renames import ignored_keys, renames

    words = labels(lang)
    for rename in renames():
        since = ".".join(map(str, rename.since))
        if _matches(name, rename.new) and rename.old:
            old = f"{rename.old}{name.removeprefix(rename.new)}"
            yield words["before"].format(since=since, key=old)
        elif rename.old and _matches(name, rename.old):
            new = f"{rename.new}{name.removeprefix(rename.old)}"
            yield words["since"].format(since=since, key=new)
    for ignored in ignored_keys():
        if _matches(name, ignored.key):
            since = ".".join(map(str, ignored.since))
            yield words["since"].format(since=since, key=ignored.why)
            break


def markdown(lang: str) -> str:
    """Return all metrics and all keys as two tables in Markdown."""
    return f"{markdown_metrics(lang)}\n{markdown_keys(lang)}"


def markdown_metrics(lang: str) -> str:
    """Return all metrics as a Markdown table."""
    rows = [
        (
            _code(*entry.names),
            entry.meaning[lang],
            entry.healthy[lang],
            entry.moves[lang],
            _code(*entry.keys),
        )
        for entry in metrics()
    ]
    return _markdown_table(("metric", "meaning", "healthy", "moved_by", "keys"), rows, lang)


def markdown_keys(lang: str) -> str:
    """Return all configuration keys as a Markdown table."""
    rows = [
        (
            _code(entry.key),
            entry.meaning[lang],
            entry.choose[lang],
            "; ".join(f"{value} ({span})" for span, value in key_defaults(entry.key, lang)),
        )
        for entry in keys()
    ]
    return _markdown_table(("key", "meaning", "choose", "default_of_release"), rows, lang)


def _read_yaml(name: str) -> Any:
    import yaml

    return yaml.safe_load(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def _matches(name: str, pattern: str) -> bool:
    """Whether a key is the pattern, or below it if the pattern ends in a dot."""
    return name == pattern or (pattern.endswith(".") and name.startswith(pattern))


def _as_yaml(value: Any) -> str:
    """A default as YAML writes it."""
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    return str(value)


def _code(*names: str) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _markdown_table(heads: Sequence[str], rows: Sequence[tuple[str, ...]], lang: str) -> str:
    words = labels(lang)
    lines = [tuple(words[head] for head in heads), tuple("---" for _ in heads), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )
