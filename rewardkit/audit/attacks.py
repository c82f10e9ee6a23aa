"""All attacks, in the order of reports, and those on a scorer of each sort.

`attacks.yaml` has the attacks that are nothing but texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rewardkit.audit.holes import HOLES, HOSTILE_TEXT, JUDGE_HOLES, states_gold
from rewardkit.audit.misses import MISSES
from rewardkit.audit.model import Attack, Kind, Responses, Target
from rewardkit.strict_yaml import read_yaml_file

_TABLE: Mapping[str, Any] = read_yaml_file(Path(__file__).with_suffix(".yaml"))
_IN_FORM = re.compile(r"<<(.*?)>>", re.DOTALL)

#: Questions with an answer in words, and their golds.
OPEN_QUESTIONS: Mapping[str, str] = _TABLE["open_questions"]


def _read(group: str, kind: Kind) -> list[Attack]:
    """Return the attacks of a group of the table."""
    return [
        Attack(
            name,
            kind,
            entry["severity"],
            entry["about"],
            partial(_write, entry),
            tuple(entry.get("golds", ())),
            entry.get("max_rows", 0),
        )
        for name, entry in _TABLE[group].items()
    ]


def _write(entry: Mapping[str, Any], t: Target) -> Responses:
    """Write the responses of an entry of the table, which says what its lists mean."""

    def texts(name: str) -> Iterator[str]:
        for template in entry.get(name, ()):
            text = template.format(gold=t.gold, wrong=t.wrong, **_TABLE["texts"])
            is_about_row = "{gold}" in template or "{wrong}" in template
            if is_about_row or not states_gold(text, t.gold):
                yield _IN_FORM.sub(lambda match: t.respond(match[1]), text)

    if not getattr(t, entry.get("if", "row")):
        return
    yield from texts("responses")
    yield from map(t.respond, texts("answers"))
    for text in texts("words"):
        yield from (text, t.respond(text))
    # A judge may see the answer only, so that a claim has to be in it. Capitals of a claim in an
    # answer may be letters of a choice.
    for claim in texts("claims"):
        yield from (claim, f"{t.wrong_response}\n{claim}")
        if not t.letters:
            yield t.respond(f"{t.wrong}. {claim}")


_HOLES = [*_read("holes", "hole"), *HOLES]
_JUDGE_HOLES = [*_read("judge_holes", "hole"), *JUDGE_HOLES]
_MISSES = [*_read("misses", "miss"), *MISSES]

#: The checks of conduct, which use the calls of all attacks and a few of their own.
CHECKS = _read("conduct", "conduct")

#: The attacks on a scorer that computes: those on judges with a few rows, because they do not
#: depend on the row.
RULE_AUDIT = (
    *_HOLES,
    *(replace(attack, max_rows=2) for attack in _JUDGE_HOLES),
    *_MISSES,
)

#: The attacks on a scorer that asks a model, which reads neither long text nor a gold of ours.
JUDGE_AUDIT = (
    *(attack for attack in _HOLES if not attack.max_rows),
    *_JUDGE_HOLES,
    *(attack for attack in _MISSES if attack.severity != "low"),
)

#: All attacks by name.
ATTACKS = {
    attack.name: attack for attack in (*_HOLES, *_JUDGE_HOLES, HOSTILE_TEXT, *_MISSES, *CHECKS)
}
