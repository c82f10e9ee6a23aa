"""Files of judged responses, as `rewardkit eval run --out` writes them, read again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.evaluate.judge import Outcome, outcome
from rewardkit.evaluate.metrics import Answered, Figures, answered
from rewardkit.lines import checked_lines
from rewardkit.row import question_of


@dataclass
class Results:
    """One run: the judged responses of a file or several, without their texts.

    Attributes:
        name: what it is called beside others.
        files: that were read.
        figures: of all.
        questions: data source and responses of every question, by `question_key`.
        keys: model and sampling, as JSON, with their responses.
    """

    name: str
    files: list[Path] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    questions: dict[bytes, tuple[str, Answered]] = field(default_factory=dict)
    keys: Counter[str] = field(default_factory=Counter)

    @property
    def n(self) -> tuple[int, int]:
        """The least and the most responses to a question."""
        counts = [found.n for _, found in self.questions.values()]
        return min(counts), max(counts)

    def models(self) -> list[str]:
        """The models that responses came from, the most frequent first; none is not known."""
        named = (json.loads(key)["model"] for key, _ in self.keys.most_common())
        return list(dict.fromkeys(str(model) for model in named if model))


def read_results(name: str, files: list[Path]) -> Results:
    """Read the files of a run.

    Raises:
        DataError: one cannot be read, is no file of results or has none, or two answer the same.
    """
    found = Results(name)
    for path in files:
        _read(path, found)
        found.files.append(path)
    return found


def result_lines(path: Path) -> Iterator[tuple[dict[str, Any], Outcome]]:
    """The lines of a result file, each with its outcome.

    Raises:
        DataError: a line is no judged response (named file:line), or there is none.
    """
    number = 0
    try:
        with path.open("rb") as file:
            for number, text in checked_lines(file, path):
                try:
                    line = json.loads(text)
                    found = outcome(line)
                    question_of(line)
                    sampled(line)
                except (
                    ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError,
                ) as error:  # fmt: skip
                    lacks = f"it has no {error}" if isinstance(error, KeyError) else error
                    raise DataError(
                        f"{path}:{number}: no judged response ({lacks}); "
                        "name files that 'rewardkit eval run --out' wrote."
                    ) from error
                yield line, found
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.") from error
    if not number:
        raise DataError(f"{path}: no results.")


def question_key(line: Mapping[str, Any]) -> bytes:
    """The same for the same data source, question and gold, whatever the prompt around it."""
    asked = (str(line["data_source"]), question_of(line), line["ground_truth"])
    return blake2b(json.dumps(asked).encode(), digest_size=16).digest()


def sampled(line: Mapping[str, Any]) -> str:
    """Model and sampling of a line, as JSON.

    Raises:
        TypeError: the sampling is no mapping.
    """
    sampling = line.get("sampling")
    if not isinstance(sampling, (dict, type(None))):
        raise TypeError("its sampling is no object")
    key = {"model": line.get("model"), "sampling": sampling}
    return json.dumps(key, sort_keys=True)


def _read(path: Path, into: Results) -> None:
    copies: Counter[bytes] = Counter()
    for _, lines in groupby(result_lines(path), lambda each: each[1].question):
        first: Mapping[str, Any] = {}
        outcomes: list[Outcome] = []
        for line, found in lines:
            first = first or line
            outcomes.append(found)
            into.keys[sampled(line)] += 1
        into.figures.add(outcomes)
        key = question_key(first)
        copies[key] += 1  # a set may ask a question twice
        numbered = key + copies[key].to_bytes(4, "big")
        if numbered in into.questions:
            others = ", ".join(map(str, into.files))
            raise DataError(
                f"{path} and {others} answer the same questions: name them as two runs."
            )
        into.questions[numbered] = outcomes[0].group[0], answered(outcomes)
