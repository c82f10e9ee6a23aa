"""What a reward server counts, in Prometheus' text format (0.0.4), written by hand: no dependency."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

#: Seconds, upper bounds of the buckets of latency.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

#: The weight of a request in the running mean of latency.
_WEIGHT = 0.1


class Metrics:
    """Counts of one server. Not locked: only the event loop writes them.

    Attributes:
        requests: by path and HTTP status.
        responses: that were judged, by scorer and status.
        errors: those that got no score worth the name, by scorer.
        waiting: requests taken and not answered yet.
        mean: of the latency of requests that were judged, in seconds; the latest count most.
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.responses: Counter[tuple[str, str]] = Counter()
        self.errors: Counter[str] = Counter()
        self.waiting = 0
        self.mean = 0.0
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._sum = 0.0

    def answered(self, path: str, status: int) -> None:
        """Count a request by what it was answered."""
        self.requests[path, status] += 1

    def took(self, seconds: float) -> None:
        """Count the time of a request that was judged."""
        self._buckets[bisect_left(BUCKETS, seconds)] += 1
        self._sum += seconds
        self.mean += _WEIGHT * (seconds - self.mean)

    def text(self, *, limit: int, judging: int) -> str:
        """All of it, for a scrape.

        Args:
            limit: of requests that may wait.
            judging: scorers that are judging in threads.
        """
        return "".join(f"{line}\n" for line in self._lines(limit, judging))

    def _lines(self, limit: int, judging: int) -> Iterator[str]:
        name = "rewardkit_requests_total"
        yield from _head(name, "counter", "Requests, by path and HTTP status.")
        for (path, status), n in sorted(self.requests.items()):
            yield _sample(name, {"path": path, "status": str(status)}, n)
        name = "rewardkit_responses_total"
        yield from _head(name, "counter", "Responses judged, by scorer and status.")
        for (scorer, verdict), n in sorted(self.responses.items()):
            yield _sample(name, {"scorer": scorer, "status": verdict}, n)
        name = "rewardkit_errors_total"
        yield from _head(name, "counter", "Responses that could not be scored, by scorer.")
        for scorer, n in sorted(self.errors.items()):
            yield _sample(name, {"scorer": scorer}, n)
        yield from self._latency()
        gauges = (
            ("waiting", "Requests taken and not answered yet.", self.waiting),
            ("waiting_limit", "Requests that may wait; one more is answered 429.", limit),
            ("judging", "Scorers that are judging in threads.", judging),
        )
        for short, text, value in gauges:
            yield from _head(f"rewardkit_{short}", "gauge", text)
            yield _sample(f"rewardkit_{short}", {}, value)

    def _latency(self) -> Iterator[str]:
        name = "rewardkit_request_seconds"
        yield from _head(name, "histogram", "From a request's arrival to its answer, if judged.")
        bounds: Iterable[str] = (*map(repr, BUCKETS), "+Inf")
        for bound, n in zip(bounds, accumulate(self._buckets), strict=True):
            yield _sample(f"{name}_bucket", {"le": bound}, n)
        yield _sample(f"{name}_sum", {}, self._sum)
        yield _sample(f"{name}_count", {}, sum(self._buckets))


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
    return f"{name}{{{inside}}} {value}" if inside else f"{name} {value}"


def _escaped(label: str) -> str:
    r"""Backslash, quote and line feed are escaped in a label, nothing else."""
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
