"""`rewardkit doctor`."""

from __future__ import annotations

from typing import Annotated

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import print_json, print_table
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import option

EXAMPLES = examples("rewardkit doctor", "rewardkit doctor --offline --json")


def command(
    offline: Annotated[bool, option("Do not try to reach the hubs.", "--offline")] = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Report versions, verl's config keys, hubs and devices."""
    from rewardkit.doctor import examine

    facts = examine(offline=offline)
    if as_json:
        print_json(facts)
        return
    for section, values in facts.items():
        print_table((section, ""), values.items(), wrap={""})
