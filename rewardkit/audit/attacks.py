"""All attacks, in the order of reports, and those on a scorer of each sort.

`attacks.yaml` has the attacks that are nothing but texts.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import Formatter
from typing import Any

from rewardkit.audit.model import Attack, Kind, Responses, Target
from rewardkit.audit.program_attacks import PROGRAM_AUDIT
from rewardkit.audit.task_attacks import TASK_AUDIT
from rewardkit.audit.written_attacks import HOLES, HOSTILE_TEXT, JUDGE_HOLES, MISSES, states_gold
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
            writes_messages="messages" in entry,
        )
        for name, entry in _TABLE[group].items()
    ]


def _write(entry: Mapping[str, Any], t: Target) -> Responses:
    """Write the responses of an entry of the table, which says what its lists mean."""
    own = {"gold": t.gold, "wrong": t.wrong, **_numbers(t), **_spellings(t)}
    question = str(t.row.extra_info.get("question") or t.row.prompt).strip()
    fields = {**own, **_TABLE["texts"]}
    if question:
        fields |= {"question": question, "statement": question.rstrip("?.")}

    def texts(name: str) -> Iterator[str]:
        for template in entry.get(name, ()):
            names = {name for _, name, _, _ in Formatter().parse(template) if name}
            if names <= fields.keys():
                text = template.format(**fields)
                if names & own.keys() or not states_gold(text, t.gold):
                    yield _IN_FORM.sub(lambda match: t.respond(match[1]), text)

    if not getattr(t, entry.get("if", "row")):
        return
    yield from texts("responses")
    yield from texts("messages")
    yield from map(t.respond, texts("answers"))
    for text in texts("words"):
        yield from (text, t.respond(text))
    # A judge may see the answer only, so that a claim has to be in it. Capitals of a claim in an
    # answer may be letters of a choice.
    for claim in texts("claims"):
        yield from (claim, f"{t.wrong_response}\n{claim}")
        if not t.letters:
            yield t.respond(f"{t.wrong}. {claim}")


def conversation(text: str) -> list[dict[str, Any]]:
    """Return the messages of a conversation in the form of the table."""
    messages: list[dict[str, Any]] = []
    for mark, content in re.findall(
        r"\[(call|tool|model)\](.*?)(?=\[(?:call|tool|model)\]|\Z)", text, re.DOTALL
    ):
        if mark == "call":
            call = {"type": "function", "function": {"name": "search", "arguments": {"query": "x"}}}
            messages.append({"role": "assistant", "content": content, "tool_calls": [call]})
        else:
            messages.append({"role": "tool" if mark == "tool" else "assistant", "content": content})
    return messages


def _numbers(t: Target) -> dict[str, str]:
    """Return an integer in other spellings and within limits, and the numbers near it."""
    n, gold = t.integer, t.gold
    if n is None:
        return {}
    thousands, dollars = f"{n:,}", f"${gold}" if t.is_hash else rf"\${gold}"
    fields = {
        "next": (str(n + 1), True),
        "previous": (str(n - 1), True),
        "near": (f"{n + n / 20_000:.4f}" if abs(n) < 10**9 else "", abs(n) >= 10),
        "negative": (str(-n), n != 0),
        "hundredfold": (str(n * 100), 0 < abs(n) < 10**12),
        "hundredth": (f"{n / 100:.2f}" if abs(n) < 10**12 else "", n != 0),
        "small": (gold, 2 < n < 10_000),
        "thousands": (thousands, abs(n) >= 1000),
        "tex_thousands": (thousands.replace(",", "{,}"), abs(n) >= 1000 and not t.is_hash),
        "tex_number": (gold, not t.is_hash),
        "positive": (gold, n > 0),
        "dollars": (dollars, n > 0),
        "minus": (gold.replace("-", "−"), n < 0),
    }
    return {name: text for name, (text, applies) in fields.items() if applies and text}


def _spellings(t: Target) -> dict[str, str]:
    """Return other spellings of a fraction, of TeX and of a choice, those that the gold has."""
    gold, fields = t.gold, dict[str, str]()
    if t.number is not None and t.number.denominator != 1:
        top, bottom = t.number.numerator, t.number.denominator
        sign = "-" if top < 0 else ""
        fields |= {
            "slash": f"{top}/{bottom}",
            "fraction": rf"{sign}\frac{{{abs(top)}}}{{{bottom}}}",
        }
        if 10**6 % bottom == 0:
            fields["decimal"] = f"{float(t.number):g}"
    texts = {
        "dfrac": gold.replace("\\frac", "\\dfrac"),
        "tfrac": gold.replace("\\frac", "\\tfrac"),
        "tight": re.sub(r"(?<=\d) ([-+]) (?=\d)", r"\1", gold),
        "left_right": gold.replace("\\left", "").replace("\\right", ""),
        "inner_text": re.sub(r"^\\text\{(.*)\}$", r"\1", gold),
    }
    if "\\left" not in gold and gold.count("(") == 1:
        texts["left_right"] = re.sub(r"^\((.*)\)$", r"\\left(\1\\right)", gold)
    fields |= {name: text for name, text in texts.items() if text != gold}
    if t.letters:
        fields["choice"] = gold
    if len(t.letters) == 1:
        fields["letter"] = t.letters
        options, index = t.row.extra_info.get("options"), ord(t.letters) - ord("A")
        if isinstance(options, list) and index < len(options):
            fields["option"] = str(options[index])
    return fields


_HOLES = [*_read("holes", "hole"), *HOLES]
_JUDGE_HOLES = [*_read("judge_holes", "hole"), *JUDGE_HOLES]
_MISSES = [*_read("misses", "miss"), *MISSES]
_CONVERSATIONS = [*_read("conversation_holes", "hole"), *_read("conversation_misses", "miss")]

#: The checks of conduct, which use the calls of all attacks and a few of their own.
CHECKS = _read("conduct", "conduct")

#: The attacks on a scorer that computes: those on judges with a few rows, because they do not
#: depend on the row.
RULE_AUDIT = (
    *_HOLES,
    *(replace(attack, max_rows=2) for attack in _JUDGE_HOLES),
    *_MISSES,
    *_CONVERSATIONS,
    *PROGRAM_AUDIT,
    *TASK_AUDIT,
)

#: The attacks on a scorer that asks a model, which reads neither long text nor a gold of ours.
JUDGE_AUDIT = (
    *(attack for attack in _HOLES if not attack.max_rows),
    *_JUDGE_HOLES,
    *(attack for attack in _MISSES if attack.severity != "low"),
)

#: All attacks by name.
ATTACKS = {
    attack.name: attack
    for attack in (
        *_HOLES,
        *_JUDGE_HOLES,
        HOSTILE_TEXT,
        *_MISSES,
        *_CONVERSATIONS,
        *PROGRAM_AUDIT,
        *TASK_AUDIT,
        *CHECKS,
    )
}
