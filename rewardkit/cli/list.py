"""`rewardkit list`."""

from __future__ import annotations

from rewardkit.cli._common import JsonFlag, examples, print_json, print_table

EXAMPLES = examples("rewardkit list", "rewardkit list --json")


def command(as_json: JsonFlag = False) -> None:
    """List datasets, scorers, prompt templates, and the data sources with a scorer."""
    from rewardkit import registry
    from rewardkit.preprocess.card import read_card
    from rewardkit.preprocess.template import BUILT_IN
    from rewardkit.scorers.load import summary

    datasets = [read_card(name) for name in registry.known("datasets")]
    scorers = {name: summary(name) for name in registry.known("scorers")}
    sources = registry.known("data_sources")
    if as_json:
        print_json(
            {
                "datasets": {card.name: card for card in datasets},
                "scorers": scorers,
                "templates": {name: template.text for name, template in BUILT_IN.items()},
                "data_sources": sources,
            }
        )
        return
    print_table(
        ("dataset", "rows", "template", "scorer", "licence", "Hugging Face", "ModelScope"),
        (
            (c.name, c.sizes, c.template, c.scorer, c.licence, c.huggingface, c.modelscope)
            for c in datasets
        ),
    )
    print_table(("scorer", "reads"), scorers.items())
    print_table(
        ("template", "scorer", "text"),
        ((t.name, t.scorer or "the dataset's", t.text) for t in BUILT_IN.values()),
    )
    print_table(("data_source", "scorer"), sources.items())
