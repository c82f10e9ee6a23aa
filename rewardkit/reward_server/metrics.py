"""The metrics of a reward server, in Prometheus' text format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable

from rewardkit.reward_server.payload import ItemResult


class Metrics:
    """The metrics of one server, whose labels are never text of a client's.

    Attributes:
        waiting: requests accepted and not yet answered.
    """

    def __init__(self, gauges: Callable[[], dict[str, float]]) -> None:
        """Create the metrics; `gauges` returns further values by name."""
        self.waiting = 0
        self._gauges = gauges
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, name: str, value: float = 1, **labels: object) -> None:
        """Add to a counter with these labels."""
        text = ",".join(f"{label}={json.dumps(str(each))}" for label, each in labels.items())
        self._counts[name, f"{{{text}}}" if text else ""] += value  # type: ignore[assignment]

    def count_results(self, scorer: str, results: Iterable[ItemResult]) -> None:
        """Count the items of a request."""
        for score, error in results:
            self.count("responses_total", scorer=scorer, status=score.status.value)
            self.count("errors_total", bool(error), scorer=scorer)

    def add_latency(self, seconds: float) -> None:
        """Count the time that a scored request took."""
        self.count("request_seconds_count")
        self.count("request_seconds_sum", seconds)

    def text(self) -> str:
        """Return all metrics in Prometheus' text format 0.0.4."""
        gauges = {(name, ""): value for name, value in self._gauges().items()}
        values = {("waiting", ""): self.waiting, **gauges, **self._counts}
        return "".join(f"rewardkit_{n}{labels} {v}\n" for (n, labels), v in values.items())
