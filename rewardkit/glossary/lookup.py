"""Look-up of verl's metrics and configuration keys, in English and Chinese.

The texts are in `metrics.yaml`, `keys.yaml`, `labels.yaml` and `rules.yaml`. Defaults of keys are those of verl's
releases, and changes are from `key_renames.yaml` (`rewardkit.launch.verl.releases`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import groupby

from rewardkit.errors import UnknownNameError
from rewardkit.registry import did_you_mean
from rewardkit.strict_yaml import read_table
from rewardkit.table import Table

#: A text by language, `en` or `zh`.
Text = Mapping[str, str]


@dataclass(frozen=True)
class MetricEntry:
    """A metric, or several that are read together.

    Attributes:
        names: names in verl's releases; `*` at the end stands for a group of metrics.
        meaning: what it measures.
        healthy: range of values in a healthy run.
        moves: what changes it.
        keys: configuration keys that change it.
    """

    names: Sequence[str]
    meaning: Text
    healthy: Text
    moves: Text
    keys: Sequence[str]


@dataclass(frozen=True)
class KeyEntry:
    """A configuration key: its dotted name, what it does, and how to choose its value."""

    key: str
    meaning: Text
    choose: Text


def find_entries(name: str) -> list[MetricEntry | KeyEntry]:
    """Return the entries of a name: a metric, a configuration key, or one of each.

    The exact name of a metric wins over a group's. A key is named as a whole, by an ending that only
    one key has, or as `+key=value`.

    Raises:
        UnknownNameError: neither has that name (the message suggests the nearest), or several keys
            end in it.
    """
    dotted = name.lstrip("+~").partition("=")[0]
    exact = [entry for entry in keys() if entry.key == dotted]
    matches = exact or [entry for entry in keys() if entry.key.endswith(f".{dotted}")]
    by_name = {one: entry for entry in metrics() for one in entry.names}
    groups = (entry for one, entry in by_name.items() if fnmatchcase(name, one))
    metric = by_name.get(name) or next(groups, None)
    entries = [*filter(None, [metric]), *(matches if len(matches) == 1 else ())]
    if entries:
        return entries
    if matches:
        names = ", ".join(entry.key for entry in matches)
        raise UnknownNameError(f"{name!r} is the end of several keys: {names}.")
    spellings = list(by_name)
    for entry in keys():  # `kl_loss_coef` is near to the last part of a key, not to all of it
        spellings += [entry.key, entry.key.rpartition(".")[2]]
    raise UnknownNameError(
        f"unknown metric or key {name!r}.{did_you_mean(dotted, spellings)} "
        "`rewardkit glossary --all` lists all entries."
    )


@cache
def metrics() -> tuple[MetricEntry, ...]:
    """Return all metrics."""
    return tuple(MetricEntry(**item) for item in read_table(__file__, "metrics.yaml"))


@cache
def keys() -> tuple[KeyEntry, ...]:
    """Return all configuration keys."""
    return tuple(KeyEntry(**item) for item in read_table(__file__, "keys.yaml"))


@cache
def labels(lang: str) -> Text:
    """Return the labels of an entry's rows, and phrases, by their name in `labels.yaml`."""
    return {name: text[lang] for name, text in read_table(__file__, "labels.yaml").items()}


@cache
def chinese_rules() -> Mapping[str, str]:
    """Return the Chinese for a rule, by its name: what it asks for, or what to do about its findings."""
    from rewardkit.launch.rules import RULES

    return {**read_table(__file__, "rules.yaml"), **{rule.id: rule.zh for rule in RULES}}


def key_defaults(name: str, lang: str = "en") -> list[tuple[str, str]]:
    """Return a key's default by range of releases: (`0.7.1 to 0.8.0`, default)."""
    from rewardkit.launch.verl.releases import known_releases, release_of

    words, defaults = labels(lang), []
    absent = words["absent"]
    values = [(verl, release_of(verl).keys.get(name, absent)) for verl in known_releases()]
    for value, group in groupby(values, key=lambda pair: pair[1]):
        first, *others = [verl for verl, _ in group]
        span = words["releases"].format(first=first, last=others[-1]) if others else first
        is_word = value is None or isinstance(value, bool)  # as YAML has it
        defaults.append((span, json.dumps(value) if is_word else str(value)))
    return defaults


def key_changes(name: str, lang: str = "en") -> Iterator[str]:
    """Yield the names of a key in other releases, and the releases that ignore it."""
    from rewardkit.launch.verl.releases import ignored_keys, renames

    def sentence(label: str, since: tuple[int, ...], key: str) -> str:
        return labels(lang)[label].format(since=".".join(map(str, since)), key=key)

    for rename in renames():
        if not rename.old:
            continue
        if _matches(name, rename.new):
            yield sentence("before", rename.since, f"{rename.old}{name.removeprefix(rename.new)}")
        elif _matches(name, rename.old):
            yield sentence("since", rename.since, f"{rename.new}{name.removeprefix(rename.old)}")
    ignored = next((one for one in ignored_keys() if _matches(name, one.key)), None)
    if ignored:
        yield sentence("since", ignored.since, ignored.why)


def markdown(lang: str) -> str:
    """Return all metrics and all keys as two tables in Markdown."""
    words = labels(lang)
    of_metrics = [
        (_code(*one.names), one.meaning[lang], one.healthy[lang], one.moves[lang], _code(*one.keys))
        for one in metrics()
    ]
    of_keys = [
        (_code(one.key), one.meaning[lang], one.choose[lang],
         "; ".join(f"{value} ({span})" for span, value in key_defaults(one.key, lang)))
        for one in keys()
    ]  # fmt: skip
    tables = (
        ("metric meaning healthy moved_by keys", of_metrics),
        ("key meaning choose default_of_release", of_keys),
    )
    return "\n".join(
        Table([words[name] for name in names.split()], rows).markdown() for names, rows in tables
    )


def _matches(name: str, pattern: str) -> bool:
    """Whether a key is the pattern, or below it if the pattern ends in a dot."""
    return name == pattern or (pattern.endswith(".") and name.startswith(pattern))


def _code(*names: str) -> str:
    return ", ".join(f"`{name}`" for name in names)
