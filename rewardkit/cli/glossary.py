"""`rewardkit glossary`."""

from typing import Annotated, Any

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import print_json, print_table
from rewardkit.cli.shared.options import argument, examples, option
from rewardkit.errors import UsageError
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
from rewardkit.table import Table
from rewardkit.trainlog.rules import rules
from rewardkit.trainlog.topics import metric_of_title
from rewardkit.trainlog.translations import with_note

EXAMPLES = examples(
    "rewardkit glossary response_length/clip_ratio",
    "rewardkit glossary actor_rollout_ref.actor.kl_loss_coef",
    "rewardkit glossary clip_ratio_high --lang zh",
    "rewardkit glossary L-27",
    "rewardkit glossary --all > glossary.md",
)


def command(
    name: Annotated[
        str | None,
        argument(
            "Metric as verl logs it (actor/entropy), a configuration key or its last parts "
            "(kl_loss_coef), a curve of logs (response length), or a rule of check, train or logs "
            "(L-27, truncation)."
        ),
    ] = None,
    lang: opt.Language = "en",
    all_entries: Annotated[bool, option("Print all entries as Markdown tables.", "--all")] = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Explain a metric or key of verl, or a rule.

    A metric: what it means, which range is healthy, and which keys move it. A key: what it does,
    how to choose it, and its default in each release of verl. A rule: what it looks for, and its
    source.
    """
    if (name is None) != all_entries:
        raise UsageError("name a metric, key or rule, or use --all.")
    facts = _rule_facts(name, lang) if name else []
    if not facts:
        entries: list[MetricEntry | KeyEntry] = (
            find_entries(metric_of_title(name) or name) if name else [*metrics(), *keys()]
        )
        facts = [_facts(entry, lang) for entry in entries]
    if as_json:
        print_json(facts)
    elif name is None:
        typer.echo(markdown(lang), nl=False)
    else:
        for entry in facts:
            _print(entry, lang)


def _rule_facts(name: str, lang: str) -> list[dict[str, Any]]:
    """Return what there is to know of the rule of a name, in a list; an empty list if none has it."""
    from rewardkit.launch.rules import RULES

    chinese = chinese_rules() if lang == "zh" else {}
    on_plans = [
        {
            "rule": rule.id,
            "severity": rule.severity,
            "meaning": chinese.get(rule.id, rule.about),
            "keys": [rule.key],
            "source": rule.source,
        }
        for rule in RULES
        if rule.id.lower() == name.lower()
    ]
    on_logs = [
        {
            "rule": rule.id,
            "severity": rule.severity,
            "condition": rule.when[lang],
            "meaning": rule.meaning[lang],
            "advice": rule.advice[lang],
            "keys": list(rule.keys),
            "source": rule.source[lang],
        }
        for rule in rules()
        if rule.id == name
    ]
    return on_plans + on_logs


def _facts(entry: MetricEntry | KeyEntry, lang: str) -> dict[str, Any]:
    if isinstance(entry, KeyEntry):
        defaults = key_defaults(entry.key, lang)
        return {
            "key": entry.key,
            "meaning": entry.meaning[lang],
            "choose": entry.choose[lang],
            "defaults": [with_note(value, span, lang) for span, value in defaults],
            "changes": list(key_changes(entry.key, lang)),
            "metrics": [metric.names[0] for metric in metrics() if entry.key in metric.keys],
        }
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


def _print(facts: dict[str, Any], lang: str) -> None:
    """Print a table with one row per value, headed by the entry; a list is labelled once."""
    rows = [
        (labels(lang)[name] if i == 0 else "", cell)
        for name, value in facts.items()
        for i, cell in enumerate([value] if isinstance(value, str) else value)
    ]
    head, *rows = rows
    print_table(Table(head, rows, wrap={head[1]}))
