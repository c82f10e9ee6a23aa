"""A file of scored responses as one HTML page that works without a network.

The figures are plain HTML. The responses are in the page as compressed text in base64, which has no
character that could end an element. `report.js` unpacks those that are shown. The policy of the page
allows this script and no other, and forbids every request.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from rewardkit.errors import DataError
from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS
from rewardkit.output import atomic, require_absent, require_not_input
from rewardkit.pages.formulas import find_formulas, find_value, pack_formulas, utf16_length
from rewardkit.pages.html import render
from rewardkit.pages.text import brief, share
from rewardkit.responses.chunks import expand_paths
from rewardkit.responses.report import figures
from rewardkit.responses.report.figures import AccuracyEstimate, ReportTotals, length_histogram
from rewardkit.responses.report.responses import (
    ResponseView,
    ScoredResponse,
    ShownResponses,
    read_scored_responses,
    view_response,
)
from rewardkit.responses.samples import SkippedRow
from rewardkit.responses.tally import GradientGroups, count_groups
from rewardkit.row import batched
from rewardkit.scorers.base import Status
from rewardkit.scorers.isolated import CALL_TIMEOUT_SECONDS

#: Default number of responses in the list of a page.
MAX_RESPONSES = 50_000

#: Responses that are compressed, and unpacked, together.
PACK_RESPONSES = 256

#: Characters of texts that are searched for formulas, which takes about a second per million; later
#: responses show LaTeX as it is.
MAX_FORMULA_TEXT_CHARACTERS = 5_000_000

#: Separators of fields and of responses: control characters, which a shown text does not have.
FIELD, RECORD = "\x1f", "\x1e"

#: Characters of an answer and of a prompt in the list.
ANSWER_CHARACTERS, PROMPT_CHARACTERS = 40, 90


@dataclass(frozen=True)
class WrittenReport:
    """A report that was written.

    Attributes:
        out: the page.
        totals: the totals of all responses.
        listed: number of responses in the list.
        size: bytes of the page.
    """

    out: Path
    totals: ReportTotals
    listed: int
    size: int

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values, for people and for JSON."""
        total = self.totals.total
        return {
            "out": str(self.out),
            "bytes": self.size,
            "responses": total.n,
            "listed": self.listed,
            "unread": sum(self.totals.unread.values()),
            "accuracy": total.accuracy,
            "mean_score": total.score_sum / max(total.n, 1),
            "no_answer": total.no_answer / max(total.n, 1),
            "groups": vars(count_groups(self.totals.cells.values())),
            "statuses": dict(total.statuses.most_common()),
        }


@dataclass
class PackedResponses:
    """The list of responses: the values that it shows and sorts by, and the compressed texts."""

    columns: dict[str, list[Any]] = field(default_factory=dict)
    chunks: list[str] = field(default_factory=list)
    formulas: list[str] = field(default_factory=list)
    with_formulas: int = 0
    _groups: dict[int, int] = field(default_factory=dict)

    def index(self) -> str:
        """Return the columns, compressed."""
        return pack(_compact_json(self.columns))

    def add(self, response: ScoredResponse, view: ResponseView) -> None:
        """Add a response to the columns."""
        cells = {
            "status": response.status.value,
            "score": round(response.score, 4),
            "step": response.step,
            "source": brief(response.source, PROMPT_CHARACTERS),
            "length": len(response.text),
            "group": self._groups.setdefault(response.group, len(self._groups)),
            "pred": brief(response.pred, ANSWER_CHARACTERS),
            "gold": brief(response.gold, ANSWER_CHARACTERS),
            "line": brief(response.prompt or response.text, PROMPT_CHARACTERS),
            "fold": utf16_length(view.text[: view.fold]),
            "start": utf16_length(view.text[: view.start]),
            "end": utf16_length(view.text[: view.end]),
        }
        for name, value in cells.items():
            self.columns.setdefault(name, []).append(value)


def write_report(
    files: Iterable[Path | str],
    out: Path,
    *,
    scorer: str = "auto",
    options: Mapping[str, Any] | None = None,
    response_key: str | None = None,
    gold_key: str | None = None,
    max_responses: int = MAX_RESPONSES,
    seconds: float = CALL_TIMEOUT_SECONDS,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
    right_score: float | None = None,
    announce: Callable[[str], object] = lambda _: None,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> WrittenReport:
    """Write the report of scored responses; rows without a score are scored.

    Args:
        files: jsonl or parquet files, or folders of them, such as verl's dumps.
        out: the page.
        scorer: scorer of rows without a score; `auto` scores each row with its own.
        options: the scorer's options.
        response_key: the field with the response; see `read_samples`.
        gold_key: the field with the ground truth.
        max_responses: size of the list; the figures count all responses.
        seconds: timeout per response for a custom scorer.
        load_seconds: timeout for importing a custom scorer.
        right_score: the lowest right score; None to learn it (`scorers.reward_result`).
        announce: called with a sentence about which scores are right, unless the rows state it.
        overwrite: replace `out` if it exists.
        progress: called with 1 for every row.

    Raises:
        DataError: a file cannot be read, or there is no response.
        OutputError: `out` cannot be written.
    """
    names = expand_paths([str(file) for file in files])
    require_absent(out, overwrite=overwrite)
    for name in names:
        require_not_input(out, Path(name))
    responses = read_scored_responses(
        names,
        scorer,
        options,
        response_key,
        gold_key,
        seconds,
        load_seconds,
        right_score,
        announce,
    )
    with atomic(out, overwrite=overwrite) as page, TemporaryFile(dir=page.parent) as spool:
        totals, sample = ReportTotals(), ShownResponses(max_responses, spool)
        for item in responses:
            progress(1)
            if isinstance(item, SkippedRow):
                totals.skip(item)
            else:
                totals.add(item)
                sample.add(item)
        if not totals.total.n:
            raise DataError(f"{', '.join(names[:3])}: no responses{_first_reason(totals)}.")
        packed = _pack_responses(sample, options)
        _write(page, names, totals, packed, sample.reserved)
        listed = len(packed.columns["status"])
        return WrittenReport(out, totals, listed, page.stat().st_size)


def _first_reason(totals: ReportTotals) -> str:
    return "".join(f": {reason.removesuffix('.')}" for reason in islice(totals.unread, 1))


def _pack_responses(
    responses: Iterable[ScoredResponse], options: Mapping[str, Any] | None
) -> PackedResponses:
    packed = PackedResponses()
    searched = 0
    for batch in batched(responses, PACK_RESPONSES):
        views = [view_response(response, options) for response in batch]
        for response, view in zip(batch, views, strict=True):
            packed.add(response, view)
        texts = ((v.where, v.prompt, v.text, v.gold, v.pred, v.why) for v in views)
        packed.chunks.append(pack(RECORD.join(map(FIELD.join, texts))))
        if searched < MAX_FORMULA_TEXT_CHARACTERS:
            searched += sum(len(view.prompt) + len(view.text) for view in views)
            packed.formulas.append(pack(RECORD.join(map(_formulas_of, views))))
            packed.with_formulas += len(views)
    return packed


def _formulas_of(view: ResponseView) -> str:
    """Return the formulas of a response's prompt, text, gold and answer as JSON."""
    found = (
        (find_formulas, view.prompt),
        (find_formulas, view.text),
        (find_value, view.gold),
        (find_value, view.pred),
    )
    return _compact_json([pack_formulas(find(text), text) for find, text in found])


def _compact_json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def pack(text: str) -> str:
    """Compress a text to letters, digits, `+`, `/` and `=`, always to the same."""
    return b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode("ascii")


def _write(
    page: Path, names: list[str], totals: ReportTotals, packed: PackedResponses, reserved: int
) -> None:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    files = f"{names[0]}{more}"
    groups = count_groups(totals.cells.values())
    overall = totals.accuracies(lambda *_: None)[None]
    pieces = render(
        "responses/report/report.html.j2",
        title=files,
        script=Path(__file__).with_name("report.js").read_text(encoding="utf-8"),
        overall=overall,
        facts=list(_page_facts(files, totals, groups, overall)),
        totals=totals,
        groups=groups,
        figures=figures,
        lengths=length_histogram(totals.lengths) if totals.has_verdicts else None,
        listed=len(packed.columns["status"]),
        reserved=reserved,
        index=packed.index(),
        chunks=packed.chunks,
        formulas=packed.formulas,
        with_formulas=packed.with_formulas,
        chunk=PACK_RESPONSES,
    )
    with page.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(pieces)


def _page_facts(
    files: str, totals: ReportTotals, groups: GradientGroups, overall: AccuracyEstimate
) -> Iterator[tuple[str, str]]:
    total = totals.total
    yield "file", files
    if totals.has_verdicts:
        yield "95% interval", f"{overall.low:.1%} to {overall.high:.1%}"
    yield "mean score", f"{total.score_sum / total.n:.4f}"
    yield "prompts", f"{len(totals.heads):,}"
    yield "no answer", share(total.no_answer, total.n)
    if bad_gold := total.statuses[Status.BAD_GROUND_TRUTH.value]:
        yield "gold cannot be scored", f"{bad_gold:,}"
    if groups.n:
        yield "groups without a gradient", share(groups.without_gradient, groups.n)
    if unread := totals.unread.total():
        yield "unreadable lines", f"{unread:,}"
