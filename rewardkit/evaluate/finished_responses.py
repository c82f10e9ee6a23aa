"""The responses of a finished output, which a run with a larger n keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.evaluate.generate import GenerationConfig
from rewardkit.evaluate.results import read_result_lines
from rewardkit.model_client.completions import UNUSABLE
from rewardkit.responses.response_log import ResponseIndex, ResponseLog, read_response_index

#: Fields of a result that its response log has too.
_RESPONSE_FIELDS = ("response", "reasoning", "finish_reason", "tokens")


def add_finished(
    out: Path,
    part: Path,
    log: ResponseLog,
    index: ResponseIndex,
    generation: GenerationConfig,
    rows: int,
) -> ResponseIndex:
    """Append the responses of a finished output to a log, and return the log's new index.

    Responses that the log has already, because an earlier run was killed, are not added again. Those
    that the server refused or withheld are left out, so that they are requested again.

    Args:
        out: the finished jsonl file.
        part: the file of the log.
        log: log that gets the responses.
        index: index of the responses that the log already has.
        generation: the model, the sampling and the larger n.
        rows: number of questions.

    Raises:
        DataError: the output is of another model or sampling, of other rows, or of a larger n.
    """
    expected = json.loads(json.dumps(generation.key()))
    known = set(zip(index.rows, index.samples, strict=True))
    for line, _ in read_result_lines(out):
        for name, value in expected.items():
            if line.get(name) != value:
                raise DataError(
                    f"{out} is of another {name} ({str(line.get(name))[:200]}): choose another --out."
                )
        row, sample, prompt = _place(line, out)
        if row >= rows:
            raise DataError(f"{out} answers row {row}, which the parquet does not have.")
        if sample >= generation.n:
            raise DataError(
                f"{out} has more than {generation.n} responses to a question. --resume only adds "
                "responses: name a larger -n, or another --out."
            )
        if (row, sample) not in known and line.get("finish_reason") not in UNUSABLE:
            response = {name: line[name] for name in _RESPONSE_FIELDS if name in line}
            log.append(row, prompt, sample, [response])
    return read_response_index(part, generation.key())


def _place(line: Mapping[str, Any], out: Path) -> tuple[int, int, str]:
    row, sample, prompt = line.get("row"), line.get("sample"), line.get("prompt_sha256")
    if type(row) is int and type(sample) is int and isinstance(prompt, str):
        return row, sample, prompt
    raise DataError(f"{out}: is not an output of 'rewardkit eval run', so it cannot be continued.")
