"""Statistics of rows for the reports: kinds of answers, groups, notes on odd rows, lengths of prompts."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit.errors import DataError, MissingPackageError, SourceError, call_catching
from rewardkit.row import IMAGES, METADATA_KEY, Row
from rewardkit.scorers.base import Scorer
from rewardkit.scorers.load import scorer_for
from rewardkit.scorers.options import inner_function
from rewardkit.statistics import percentile_of_counts

Messages: TypeAlias = Sequence[dict[str, Any]]
TokenCounter: TypeAlias = Callable[[Messages], int]

#: Kinds of golds; the first pattern that matches decides.
_KINDS = (
    (
        "placeholder",
        re.compile(r"(?i:#?n/?a|none|nan|todo|tbd|unknown|fixme|xxx)|[?？]+|-+|—|\.+|…"),
    ),
    ("quoted text", re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|“[^”]*”")),
    ("integer", re.compile(r"[-+]?[0-9][0-9,]*")),
    ("decimal", re.compile(r"[-+]?[0-9]*\.[0-9]+")),
    (
        "fraction",
        re.compile(r"-?(?:[0-9]+/[0-9]+|\\[dt]?frac\s*\{?\s*[0-9]+\s*\}?\s*\{?[0-9 ]+\}?)"),
    ),
    ("choice", re.compile(r"[A-J](?:[,、 ]*[A-J])*")),
    ("percent or unit", re.compile(r"[-+]?[0-9][0-9.,]*\s*(?:\\?%|\^?\\?circ|\\text\{.*\}|°).*")),
    ("text", re.compile(r"(?:\\text\{)?[^\W\d_][^\W\d_ ]+(?: [^\W\d_]+)*\}?")),
    (
        "tests",
        re.compile(r"\{\s*\"(?:assert_case|test|zlib|(?:in|out)puts|fn_name)\".*", re.DOTALL),
    ),
    ("alternatives", re.compile(r"\[\s*\".*", re.DOTALL)),
    ("tuple, set or interval", re.compile(r"(?:\\left)?\s*(?:[(\[]|\\\{).*,.*", re.DOTALL)),
    ("equation or inequality", re.compile(r".*(?:[=<>]|\\[lg]eq?(?![a-z])).*", re.DOTALL)),
)

#: Characters of a gold that tell its kind.
_KIND_CHARACTERS = 200

#: A word of a sentence, and a Chinese character; a sentence has at least this number of either.
_WORD, _HAN = re.compile(r"[^\W\d_]{2,}"), re.compile("[\u4e00-\u9fff]")
_SENTENCE_WORDS, _SENTENCE_CHARACTERS = 5, 12


def answer_kind(gold: str) -> str:
    """Return the kind of a gold for reports and hints: `integer`, `choice`, `sentence`, ...

    No verdict depends on it. A gold that matches no pattern is an `expression`.
    """
    gold = gold.strip()[:_KIND_CHARACTERS]
    kind = next((name for name, pattern in _KINDS if pattern.fullmatch(gold)), "expression")
    is_sentence = "\\" not in gold and (
        len(_WORD.findall(gold)) >= _SENTENCE_WORDS
        or len(_HAN.findall(gold)) >= _SENTENCE_CHARACTERS
    )
    return "sentence" if is_sentence and kind not in ("alternatives", "tests") else kind


#: The kinds of golds that are seldom meant.
_DOUBTFUL_KINDS = {
    "placeholder": "a placeholder (N/A, none, TODO, ?)",
    "quoted text": "a text in quotes",
}


#: The letter of an option in a prompt; A may be the article, and I a person.
_OPTION = r"(?<![A-Za-z])(?:[BCD]|{gold})(?![A-Za-z]| [a-z])|\([bcd]\)"


#: Forms as an instruction names them: within a line, because a heading or an example begins with one,
#: not at the end of the prompt, where `Answer:` begins the response, and with a blank or a word in the
#: box, because a question may have a box around a number.
_REQUESTS: Mapping[str, str] = {
    "####": r"(?<=[^\n#])####(?!#)",
    "\\boxed": r"\\boxed(?:(?![a-z{])|\{(?:\s*|[^{}\n]{0,40}(?:[^\W\d_]{3}|[xX\u4e00-\u9fff…]|\.{3})[^{}\n]{0,40})\})",
    "Answer:": r"(?<=[^\n\w])(?i:answer)\*{0,2}[:：](?!\s*\Z)",
    "<answer>": r"</?answer>",
}
_REQUEST = re.compile("|".join(f"({pattern})" for pattern in _REQUESTS.values()))

#: Characters between two forms that are one, as in `Answer: \boxed{...}` and `#### <answer>`.
_FORM_GAP = 4


def requested_forms(prompt: str) -> tuple[str, ...]:
    r"""Return the two forms of an answer that a prompt asks for apart from each other; () if none.

    A question may have its own instruction, such as "in \boxed{}", before that of the template.
    """
    names, requests, end = tuple(_REQUESTS), list[set[str]](), 0
    for match in _REQUEST.finditer(prompt):
        if not requests or match.start() - end > _FORM_GAP:
            requests.append(set())
        requests[-1].add(names[(match.lastindex or 1) - 1])
        end = match.end()
    distinct = dict.fromkeys(map(frozenset, requests))  # a hostile prompt may have a million
    apart = ((min(one), min(other)) for one, other in combinations(distinct, 2) if not one & other)
    return next(apart, ())


@dataclass
class RowStats:
    """Counts of rows, for the charts and the notes of a report.

    Attributes:
        rows: number of rows.
        prompt_chars: number of rows by the length of the prompt in characters (all messages).
        answer_kinds: number of rows by kind of gold.
        groups: number of rows by value of `data_source`, `subject`, `level` and `kind`; rows
            without a value are not counted.
        math_kinds: number of rows whose scorer is `math` by kind of gold.
        hidden_options: number of rows with a letter as gold whose prompt shows no options.
        unread_options: columns of the source that have options which no prompt shows.
        two_forms: number of rows whose prompt asks for the answer in two forms, by these forms.
        instructions_alone: number of rows whose scorer is `instructions`.
    """

    rows: int = 0
    prompt_chars: Counter[int] = field(default_factory=Counter)
    answer_kinds: Counter[str] = field(default_factory=Counter)
    groups: dict[str, Counter[str]] = field(default_factory=dict)
    math_kinds: Counter[str] = field(default_factory=Counter)
    hidden_options: int = 0
    unread_options: tuple[str, ...] = ()
    two_forms: Counter[str] = field(default_factory=Counter)
    instructions_alone: int = 0

    def add(self, row: Row, scorer: Scorer | None = None) -> None:
        """Count a row; `scorer` scores it in place of its own scorer."""
        self.rows += 1
        contents = [str(message["content"]) for message in row["prompt"]]
        self.prompt_chars[sum(map(len, contents))] += 1
        gold = str(row["reward_model"]["ground_truth"]).strip()[:_KIND_CHARACTERS]
        kind = answer_kind(gold)
        self.answer_kinds[kind] += 1
        info: Mapping[str, Any] = row.get("extra_info") or {}
        name = str(info.get("scorer") or "")
        module = _module_of(scorer) if scorer else _own_module(row["data_source"], name)
        if module == "rewardkit.scorers.math":
            self.math_kinds[kind] += 1
        self.instructions_alone += module == "rewardkit.scorers.instructions"
        if kind == "choice" and not row.get(IMAGES.name):
            option = _OPTION.format(gold=re.escape(gold))
            self.hidden_options += not any(re.search(option, text) for text in contents)
        if forms := requested_forms("\n".join(contents)):
            self.two_forms[" and ".join(forms)] += 1
        for name in ("subject", "level", "kind"):
            if value := info.get(name):
                self.groups.setdefault(name, Counter())[str(value)] += 1
        self.groups.setdefault("data_source", Counter())[row["data_source"]] += 1

    def notes(self) -> list[str]:
        """Return sentences about rows that have no fault of their own, but are hardly meant so."""
        notes = [
            f"rows whose gold is {name}: {n:,}; fix or drop them unless it is the answer."
            for kind, name in _DOUBTFUL_KINDS.items()
            if (n := self.answer_kinds[kind])
        ]
        if self.rows and self.math_kinds["choice"] == self.rows:
            notes.append("all golds are letters; prep --scorer mcq reads choices in any form.")
        if n := self.math_kinds["sentence"]:
            notes.append(
                f"golds that are sentences: {n:,}; math compares them word for word, prep --scorer qa "
                "compares short answers by their meaning, and a judge longer ones."
            )
        if n := self.instructions_alone:
            notes.append(
                f"rows whose reward is instructions alone: {n:,}; a text that ignores the question is "
                "paid: train with rewardkit compose and the line `second: judge` (`second_options: "
                "{rubric: open}, ask: correct`), or `parts: {correct: {weight: 1.0, min_chars: 200}}`."
            )
        advice = "put them into the question, or name them as `options` in a dataset card."
        if self.unread_options:
            columns = ", ".join(self.unread_options)
            notes.append(f"no prompt shows the options in {columns}; {advice}")
        elif n := self.hidden_options:
            notes.append(f"prompts without options whose gold is a letter: {n:,}; {advice}")
        return notes + [
            f"prompts that ask for the answer in two forms, {forms}: {n:,}; keep one instruction: "
            "prep --template none adds none to the question."
            for forms, n in self.two_forms.items()
        ]


def unread_options_of(metadata: Mapping[bytes, bytes] | None) -> tuple[str, ...]:
    """Return `RowStats.unread_options` as `prep` wrote them into the metadata of a parquet."""
    values = call_catching(json.loads, (metadata or {}).get(METADATA_KEY, b"{}"))
    names = values.get("unread_options") if isinstance(values, dict) else None
    return tuple(str(name)[:80] for name in names[:20]) if isinstance(names, list) else ()


@lru_cache(1024)
def _own_module(data_source: str, scorer: str) -> str:
    return _module_of(call_catching(scorer_for, data_source, {"scorer": scorer}))


def _module_of(scorer: Any) -> str:
    """Return the name of the module of a scorer, which is not imported for that."""
    return str(getattr(inner_function(scorer), "__module__", ""))


@dataclass
class PromptLengths:
    """The lengths of a file's prompts."""

    unit: str = "characters"
    limit: int | None = None
    counts: Counter[int] = field(default_factory=Counter)

    def percentiles(self) -> dict[str, int]:
        """Return median, p90, p99 and maximum."""
        percents = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
        return {name: percentile_of_counts(self.counts, n) for name, n in percents.items()}

    def summary(self) -> dict[str, float]:
        """Return the percentiles; with a limit also the fraction of longer prompts."""
        if self.limit is None:
            return {**self.percentiles()}
        too_long = sum(count for length, count in self.counts.items() if length > self.limit)
        return {**self.percentiles(), "over": too_long / max(self.counts.total(), 1)}

    def to_dict(self) -> dict[str, object]:
        """Return unit, limit and summary, without the counts."""
        return {"unit": self.unit, "limit": self.limit, **self.summary()}


def token_counter(name: str) -> TokenCounter:
    """Return a function that counts a prompt's tokens with chat template and generation prompt."""
    folder = Path(name).expanduser()
    if not folder.exists() and name.startswith(("/", ".", "~")):
        raise SourceError(f"--tokenizer {name}: no such folder.")
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingPackageError(
            "--tokenizer needs transformers: pip install 'rewardkit[tokenizer]'."
        ) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder) if folder.exists() else name)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0][:160]
        raise SourceError(
            f"--tokenizer {name}: cannot be loaded ({reason}). Without internet, name a folder: "
            "--tokenizer /models/Qwen3-8B."
        ) from error
    has_chat = bool(getattr(tokenizer, "chat_template", None))

    def count_tokens(messages: Messages) -> int:
        if has_chat:
            text = call_catching(
                tokenizer.apply_chat_template,
                list(messages),
                add_generation_prompt=True,
                tokenize=False,
            )
            if isinstance(text, Exception):  # a template may raise an error of its own
                raise DataError(f"--tokenizer {name}: its chat template fails: {text}.") from text
            return len(tokenizer.encode(text, add_special_tokens=False))
        return sum(len(tokenizer.encode(str(m.get("content") or ""))) for m in messages)

    return count_tokens
