"""A file of scored responses as one HTML page that works without a network.

The figures are plain HTML. The responses are in the page as compressed text: base64 has no
character that could end an element, whatever a response holds. `report.js` unpacks what is looked
at. The policy in the page lets that script run and no other, and lets nothing be fetched.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from rewardkit.errors import DataError
from rewardkit.output import atomic, require_absent, require_not_input
from rewardkit.pages.html import render
from rewardkit.pages.text import brief, share
from rewardkit.responses.chunks import expand_paths
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.report import figures
from rewardkit.responses.report.figures import GradientGroups
from rewardkit.responses.report.lengths import lengths
from rewardkit.responses.report.response_view import ResponseView, view_response
from rewardkit.responses.report.scored_responses import read_scored_responses
from rewardkit.responses.report.shown_responses import ShownResponses
from rewardkit.responses.report.totals import AccuracyEstimate, ReportTotals, ScoredResponse
from rewardkit.scorers.base import Status
from rewardkit.scorers.isolated import CALL_TIMEOUT_SECONDS

#: Responses that a page holds, if not told otherwise.
MAX_RESPONSES = 50_000

#: Responses that are compressed together, and unpacked together when one is opened.
CHUNK = 256

#: Between the fields of a response, and between responses: controls, which no shown text has.
FIELD, RECORD = "\x1f", "\x1e"

#: Characters of answers and prompts in the list.
CELL, LINE = 40, 90


@dataclass(frozen=True)
class WrittenReport:
    """What `write_report` wrote: all responses are in `sums`, `kept` of them in the list."""

    out: Path
    sums: ReportTotals
    kept: int
    reserved: int
    size: int

    def summary(self) -> dict[str, Any]:
        """The report as plain values, for people and for JSON."""
        total = self.sums.total
        return {
            "out": str(self.out),
            "bytes": self.size,
            "responses": total.n,
            "listed": self.kept,
            "unread": sum(self.sums.unread.values()),
            "no_answer": total.no_answer / max(total.n, 1),
            "statuses": dict(total.statuses.most_common()),
        }


@dataclass
class PackedResponses:
    """The list of responses: a column for each thing it shows or sorts by, and the texts."""

    columns: dict[str, list[Any]] = field(default_factory=dict)
    chunks: list[str] = field(default_factory=list)
    _groups: dict[bytes, int] = field(default_factory=dict)

    def index(self) -> str:
        """The columns, packed."""
        return pack(json.dumps(self.columns, ensure_ascii=False, separators=(",", ":")))

    def add(self, response: ScoredResponse, seen: ResponseView) -> None:
        """Put a response into the columns."""
        cells = {
            "status": response.status.value,
            "score": round(response.score, 4),
            "step": response.step,
            "source": brief(response.source, LINE),
            "length": len(response.text),
            "group": self._groups.setdefault(response.group, len(self._groups)),
            "pred": brief(response.pred, CELL),
            "gold": brief(response.gold, CELL),
            "line": brief(response.prompt or response.text, LINE),
            "fold": utf16(seen.text, seen.fold),
            "start": utf16(seen.text, seen.start),
            "end": utf16(seen.text, seen.end),
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
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> WrittenReport:
    """Write the report of scored responses; rows that have no score are scored.

    Args:
        files: jsonl or parquet files, or folders of them, as verl's dumps are.
        out: the page.
        scorer: of rows without a score; `auto` is each row's own.
        options: of the scorer.
        response_key: the field with the response; see `read_samples`.
        gold_key: the field with the ground truth.
        max_responses: how many the list holds; the figures count all.
        seconds: that a scorer of the user's may take for a response.
        overwrite: replace `out` if it exists.
        progress: called with 1 for every line.

    Raises:
        DataError: a file cannot be read, or there is not one response.
        OutputError: `out` cannot be written.
    """
    names = expand_paths([str(file) for file in files])
    require_absent(out, overwrite=overwrite)
    for name in names:
        require_not_input(out, Path(name))
    with atomic(out, overwrite=overwrite) as page, TemporaryFile(dir=page.parent) as spool:
        sums, kept = ReportTotals(), ShownResponses(max_responses, spool)
        for item in read_scored_responses(names, scorer, options, response_key, gold_key, seconds):
            progress(1)
            if isinstance(item, SkippedRow):
                sums.skip(item)
            else:
                sums.add(item)
                kept.add(item)
        if not sums.total.n:
            raise DataError(f"{', '.join(names[:3])}: no responses.{_first_reason(sums)}")
        packed = _packed(kept, options)
        _write(page, names, sums, packed, kept.reserved)
        listed = len(packed.columns["status"])
        return WrittenReport(out, sums, listed, kept.reserved, page.stat().st_size)


def _first_reason(sums: ReportTotals) -> str:
    return "".join(f" {reason}." for reason, _ in sums.unread.most_common(1))


def _packed(kept: Iterable[ScoredResponse], options: Mapping[str, Any] | None) -> PackedResponses:
    packed, records = PackedResponses(), []
    for response in kept:
        seen = view_response(response, options)
        packed.add(response, seen)
        fields = (seen.where, seen.prompt, seen.text, seen.gold, seen.pred, seen.why)
        records.append(FIELD.join(fields))
        if len(records) == CHUNK:
            packed.chunks.append(pack(RECORD.join(records)))
            records = []
    if records:
        packed.chunks.append(pack(RECORD.join(records)))
    return packed


def pack(text: str) -> str:
    """Compressed, in letters, digits, `+`, `/` and `=`; the same text is the same bytes."""
    return b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode("ascii")


def utf16(text: str, at: int) -> int:
    """A place in a text as JavaScript counts it."""
    return len(text[:at].encode("utf-16-le")) // 2


def _write(
    page: Path, names: list[str], sums: ReportTotals, packed: PackedResponses, reserved: int
) -> None:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    files = f"{names[0]}{more}"
    groups = figures.count_groups(sums.cells.values())
    overall = sums.accuracies(lambda *_: None)[None]
    pieces = render(
        "responses/report/report.html.j2",
        title=files,
        script=Path(__file__).with_name("report.js").read_text(encoding="utf-8"),
        overall=overall,
        facts=list(_facts(files, sums, groups, overall)),
        sums=sums,
        groups=groups,
        figures=figures,
        lengths=lengths(sums.lengths),
        listed=len(packed.columns["status"]),
        reserved=reserved,
        index=packed.index(),
        chunks=packed.chunks,
        chunk=CHUNK,
    )
    with page.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(pieces)


def _facts(
    files: str, sums: ReportTotals, groups: GradientGroups, overall: AccuracyEstimate
) -> Iterator[tuple[str, str]]:
    total = sums.total
    yield "file", files
    yield "95% interval", f"{overall.low:.1%} to {overall.high:.1%}"
    yield "mean score", f"{total.score_sum / total.n:.4f}"
    yield "prompts", f"{len(sums.heads):,}"
    yield "no answer", share(total.no_answer, total.n)
    if bad_gold := total.statuses[Status.BAD_GROUND_TRUTH.value]:
        yield "gold cannot be scored", f"{bad_gold:,}"
    if groups.n:
        yield "groups without a gradient", share(groups.flat, groups.n)
    if unread := sums.unread.total():
        yield "lines not read", f"{unread:,}"
