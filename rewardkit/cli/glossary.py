"""`rewardkit explain-metric` and `explain-key`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewardkit.cli.logs import Lang
from rewardkit.cli.shared.console import JsonFlag, examples, print_json, print_table
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.glossary.lookup import KeyEntry, MetricEntry

METRIC_EXAMPLES = examples(
    "rewardkit explain-metric response_length/clip_ratio",
    "rewardkit explain-metric actor/entropy --lang zh",
    "rewardkit explain-metric --all > metrics.md",
)
KEY_EXAMPLES = examples(
    "rewardkit explain-key actor_rollout_ref.actor.kl_loss_coef",
    "rewardkit explain-key clip_ratio_high --lang zh",
    "rewardkit explain-key --all > keys.md",
)

Everything = Annotated[
    bool, typer.Option("--all", help="Print all of them, as a table in Markdown.")
]
Language = Annotated[Lang, typer.Option(help="en or zh.")]


def explain_metric(
    name: Annotated[
        str | None, typer.Argument(help="Metric name as verl logs it, e.g. actor/entropy.")
    ] = None,
    lang: Language = Lang.en,
    everything: Everything = False,
    as_json: JsonFlag = False,
) -> None:
    """Say what a metric means, where it is healthy, and which keys move it."""
    from rewardkit.glossary.lookup import find_metric, markdown_metrics, metrics

    if _asked(name, everything=everything) is not None:
        _say(_metric_facts(find_metric(str(name)), lang.value), as_json=as_json)
    elif as_json:
        print_json([_metric_facts(entry, lang.value) for entry in metrics()])
    else:
        typer.echo(markdown_metrics(lang.value), nl=False)


def _metric_facts(entry: MetricEntry, lang: str) -> dict[str, Any]:
    from rewardkit.trainlog.rules import rules

    judged = [rule for rule in rules() if set(entry.names) & set(rule.metrics)]
    return {
        "names": list(entry.names),
        "meaning": entry.meaning[lang],
        "healthy": entry.healthy[lang],
        "moved_by": entry.moves[lang],
        "keys": list(entry.keys),
        "rules": [f"{rule.id}: {rule.when}" for rule in judged],
    }


def explain_key(
    name: Annotated[str | None, typer.Argument(help="Dotted, or its end.")] = None,
    lang: Language = Lang.en,
    everything: Everything = False,
    as_json: JsonFlag = False,
) -> None:
    """Say what a configuration key does, how to choose it, and its default in each release."""
    from rewardkit.glossary.lookup import find_key, keys, markdown_keys

    if _asked(name, everything=everything) is not None:
        _say(_key_facts(find_key(str(name)), lang.value), as_json=as_json)
    elif as_json:
        print_json([_key_facts(entry, lang.value) for entry in keys()])
    else:
        typer.echo(markdown_keys(lang.value), nl=False)


def _key_facts(entry: KeyEntry, lang: str) -> dict[str, Any]:
    from rewardkit.glossary.lookup import key_changes, key_defaults, metrics

    return {
        "key": entry.key,
        "meaning": entry.meaning[lang],
        "choose": entry.choose[lang],
        "defaults": [f"{value} ({span})" for span, value in key_defaults(entry.key)],
        "changes": list(key_changes(entry.key)),
        "metrics": [it.names[0] for it in metrics() if entry.key in it.keys],
    }


def _asked(name: str | None, *, everything: bool) -> str | None:
    if (name is None) != everything:
        raise UsageError("name one, or say --all.")
    return name


def _say(facts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(facts)
        return
    rows = [
        (name.replace("_", " ") if i == 0 else "", cell)
        for name, value in facts.items()
        for i, cell in enumerate([value] if isinstance(value, str) else value)
    ]
    print_table(("what", ""), rows)
