"""Read result files, which `rewardkit eval run --out` writes: one scored response per line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError, SourceError, UsageError, unreadable_file
from rewardkit.evaluate.evaluated_responses import EvaluatedResponse, parse_result_line
from rewardkit.evaluate.metrics import EvaluationMetrics, QuestionResult, question_result
from rewardkit.jsonl import checked_lines
from rewardkit.row import question_of


@dataclass
class RunResults:
    """The results of one run, from one file or several, without the texts.

    Attributes:
        name: name of the run in tables.
        files: the files.
        metrics: metrics of all responses.
        questions: data source and result of every question, by `question_key`.
        keys: number of responses by `sampling_key`.
    """

    name: str
    files: list[Path] = field(default_factory=list)
    metrics: EvaluationMetrics = field(default_factory=EvaluationMetrics)
    questions: dict[bytes, tuple[str, QuestionResult]] = field(default_factory=dict)
    keys: Counter[str] = field(default_factory=Counter)

    @property
    def n(self) -> tuple[int, int]:
        """The smallest and the largest number of responses to a question."""
        counts = [result.n for _, result in self.questions.values()]
        return min(counts), max(counts)

    def origins(self) -> list[dict[str, Any]]:
        """Return model, sampling and number of responses of each origin, the most frequent first."""
        return [{**json.loads(key), "responses": n} for key, n in self.keys.most_common()]


def result_files(path: Path) -> list[Path]:
    """Return the result files of a run: the file, or those in the folder that `--suite` wrote.

    Raises:
        SourceError: the path does not exist.
        UsageError: a folder has no result file.
    """
    if path.is_file():
        return [path]
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder.")
    files = sorted(
        file for file in path.glob("*.jsonl") if file.is_file() and not file.name.startswith(".")
    )
    if not files:
        raise UsageError(f"{path}: neither a result file nor a folder of them (.jsonl).")
    return files


def read_results(name: str, files: list[Path]) -> RunResults:
    """Read the result files of a run.

    Raises:
        SourceError: a file cannot be opened.
        DataError: a file is not a result file or is empty, or two files answer the same question.
    """
    results = RunResults(name)
    for path in files:
        _read_file(path, results)
        results.files.append(path)
    return results


def read_result_lines(path: Path) -> Iterator[tuple[dict[str, Any], EvaluatedResponse]]:
    """Yield the lines of a result file, each as a dictionary and parsed.

    Raises:
        SourceError: the file cannot be opened.
        DataError: a line is not a scored response (named file:line), or the file is empty.
    """
    number = 0
    try:
        with path.open("rb") as file:
            for number, text in checked_lines(file, path):
                try:
                    line = json.loads(text)
                    response = parse_result_line(line)
                    question_of(line)
                    sampling_key(line)
                except (
                    ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError,
                ) as error:  # fmt: skip
                    reason = f"{error} is missing" if isinstance(error, KeyError) else error
                    raise DataError(
                        f"{path}:{number}: not a scored response ({reason}); name files that "
                        "'rewardkit eval run --out' wrote."
                    ) from error
                yield line, response
    except OSError as error:
        raise unreadable_file(path, error) from error
    if not number:
        raise DataError(f"{path}: the file has no results.")


def question_key(line: Mapping[str, Any]) -> bytes:
    """Return a key of data source, question and gold, which does not depend on the prompt."""
    parts = (str(line["data_source"]), question_of(line), line["ground_truth"])
    return blake2b(json.dumps(parts).encode(), digest_size=16).digest()


def sampling_key(line: Mapping[str, Any]) -> str:
    """Return model and sampling of a line as JSON.

    Raises:
        TypeError: the sampling is not an object.
    """
    sampling = line.get("sampling")
    if not isinstance(sampling, (dict, type(None))):
        raise TypeError("its sampling is not an object")
    key = {"model": line.get("model"), "sampling": sampling}
    return json.dumps(key, sort_keys=True)


def _read_file(path: Path, results: RunResults) -> None:
    copies: Counter[bytes] = Counter()
    for _, lines in groupby(read_result_lines(path), lambda pair: pair[1].question):
        first: Mapping[str, Any] = {}
        responses: list[EvaluatedResponse] = []
        for line, response in lines:
            first = first or line
            responses.append(response)
            results.keys[sampling_key(line)] += 1
        results.metrics.add(responses)
        key = question_key(first)
        copies[key] += 1  # a set may contain a question twice
        numbered_key = key + copies[key].to_bytes(4, "big")
        if numbered_key in results.questions:
            others = ", ".join(map(str, results.files))
            raise DataError(
                f"{path} and {others} answer the same questions: name them as two runs."
            )
        results.questions[numbered_key] = responses[0].group[0], question_result(responses)
