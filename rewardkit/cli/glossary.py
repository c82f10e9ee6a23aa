"""`rewardkit glossary`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewardkit.cli.shared.console import print_json, print_table
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import JsonFlag, Language, LanguageCode
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.glossary.lookup import KeyEntry, MetricEntry

EXAMPLES = examples(
    "rewardkit glossary response_length/clip_ratio",
    "rewardkit glossary actor_rollout_ref.actor.kl_loss_coef",
    "rewardkit glossary clip_ratio_high --lang zh",
    "rewardkit glossary --all > glossary.md",
)


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Metric as verl logs it (actor/entropy), or a configuration key or its last parts "
            "(kl_loss_coef)."
        ),
    ] = None,
    lang: Language = LanguageCode.en,
    all_entries: Annotated[
        bool, typer.Option("--all", help="Print all entries as Markdown tables.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Explain a verl metric or configuration key.

    A metric: what it means, which range is healthy, and which keys move it. A key: what it does,
    how to choose it, and its default in each release of verl.
    """
    from rewardkit.glossary.lookup import find_entries, keys, markdown, metrics

    if (name is None) != all_entries:
        raise UsageError("name a metric or key, or use --all.")
    entries: list[MetricEntry | KeyEntry] = find_entries(name) if name else [*metrics(), *keys()]
    if as_json:
        print_json([_facts(entry, lang.value) for entry in entries])
    elif name is None:
        typer.echo(markdown(lang.value), nl=False)
    else:
        for entry in entries:
            _print(_facts(entry, lang.value), lang.value)


def _facts(entry: MetricEntry | KeyEntry, lang: str) -> dict[str, Any]:
    from rewardkit.glossary.lookup import MetricEntry

    return _metric_facts(entry, lang) if isinstance(entry, MetricEntry) else _key_facts(entry, lang)


def _metric_facts(entry: MetricEntry, lang: str) -> dict[str, Any]:
    from rewardkit.trainlog.rules import rules

    return {
        "metric": list(entry.names),
        "meaning": entry.meaning[lang],
        "healthy": entry.healthy[lang],
        "moved_by": entry.moves[lang],
        "keys": list(entry.keys),
        "rules": [
            f"{rule.id}: {rule.when[lang]}"
            for rule in rules()
            if set(entry.names) & set(rule.metrics)
        ],
    }


def _key_facts(entry: KeyEntry, lang: str) -> dict[str, Any]:
    from rewardkit.glossary.lookup import key_changes, key_defaults, metrics

    return {
        "key": entry.key,
        "meaning": entry.meaning[lang],
        "choose": entry.choose[lang],
        "defaults": [f"{value} ({span})" for span, value in key_defaults(entry.key, lang)],
        "changes": list(key_changes(entry.key, lang)),
        "metrics": [metric.names[0] for metric in metrics() if entry.key in metric.keys],
    }


def _print(facts: dict[str, Any], lang: str) -> None:
    """Print a table with one row per value; only the first row of a list is labelled."""
    from rewardkit.glossary.lookup import labels

    rows = [
        (labels(lang)[name] if i == 0 else "", cell)
        for name, value in facts.items()
        for i, cell in enumerate([value] if isinstance(value, str) else value)
    ]
    print_table(("", ""), rows, wrap={""})
