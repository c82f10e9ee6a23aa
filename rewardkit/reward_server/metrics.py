"""The metrics of a reward server, in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from rewardkit.reward_server.payload import ItemResult

#: Upper bounds of the buckets of latency, in seconds.
LATENCY_BUCKETS_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)

#: The weight of one request in the running mean of latency.
_MEAN_WEIGHT = 0.1


class Metrics:
    """The metrics of one server.

    Attributes:
        waiting: requests accepted and not yet answered.
        mean_seconds: running mean of the latency of scored requests; recent requests weigh more.
    """

    def __init__(self, max_waiting: int, count_busy: Callable[[], int]) -> None:
        """Create the metrics.

        Args:
            max_waiting: the limit of waiting requests.
            count_busy: returns the number of scorers that are running in threads.
        """
        disable_created_metrics()  # type: ignore[no-untyped-call,unused-ignore]
        self.waiting = 0
        self.mean_seconds = 0.0
        self._registry = CollectorRegistry()
        self._requests = self._add_counter("requests", "Requests", "path", "status")
        self._responses = self._add_counter("responses", "Responses scored", "scorer", "status")
        self._errors = self._add_counter("errors", "Responses that could not be scored", "scorer")
        self._latency = Histogram(
            "rewardkit_request_seconds",
            "Seconds from the arrival of a scored request to its answer.",
            buckets=LATENCY_BUCKETS_SECONDS,
            registry=self._registry,
        )
        self._add_gauge("waiting", "Requests accepted and not yet answered.", lambda: self.waiting)
        self._add_gauge("waiting_limit", "Maximum number of waiting requests.", lambda: max_waiting)
        self._add_gauge("judging", "Scorers that are running in threads.", count_busy)

    def _add_counter(self, name: str, description: str, *labels: str) -> Callable[..., Counter]:
        """Register a counter; return the function from labels to their series, which are few."""
        text = f"{description}, by {' and '.join(labels)}."
        counter = Counter(f"rewardkit_{name}_total", text, labels, registry=self._registry)
        return cache(counter.labels)

    def _add_gauge(self, name: str, description: str, value: Callable[[], int]) -> None:
        Gauge(f"rewardkit_{name}", description, registry=self._registry).set_function(value)

    def count_request(self, path: str, status: int) -> None:
        """Count a request by the HTTP status of its answer."""
        self._requests(path, status).inc()

    def count_results(self, scorers: Iterable[str], results: Iterable[ItemResult]) -> None:
        """Count the items of a request, each with the name of its scorer."""
        for scorer, result in zip(scorers, results, strict=True):
            self._responses(scorer, result.score.status.value).inc()
            if result.error:
                self._errors(scorer).inc()

    def add_latency(self, seconds: float) -> None:
        """Count the time that a scored request took."""
        self._latency.observe(seconds)
        self.mean_seconds += _MEAN_WEIGHT * (seconds - self.mean_seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format 0.0.4."""
        return generate_latest(self._registry)
