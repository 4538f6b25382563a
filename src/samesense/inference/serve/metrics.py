"""Metrics of a server, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Upper bounds of the histograms of seconds."""

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


class Metrics:
    """The metrics of one server, in a registry of their own, so that several servers can run in one process."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self.requests = Counter("samesense_requests", "Requests answered.", ["route", "status"], registry=registry)
        self.seconds = Histogram(
            "samesense_request_seconds",
            "From a request's arrival to its answer.",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self._texts = Counter("samesense_texts", "Texts received.", ["model"], registry=registry)
        self._tokens = Counter(
            "samesense_tokens", "Tokens received, as read by the model.", ["model"], registry=registry
        )
        self._truncated = Counter(
            "samesense_cut_texts", "Texts longer than the model reads, which were cut.", ["model"], registry=registry
        )
        self._batch_items = Histogram(
            "samesense_batch_items", "Distinct inputs of a batch.", ["model"], buckets=SIZES, registry=registry
        )
        self._batch_tokens = Histogram(
            "samesense_batch_tokens", "Tokens of a batch.", ["model"], buckets=SIZES, registry=registry
        )
        self._batch_seconds = Histogram(
            "samesense_batch_seconds", "Computation of a batch.", ["model"], buckets=SECONDS, registry=registry
        )
        self._queued = Gauge(
            "samesense_queue_tokens", "Tokens that wait or are computed.", ["model"], registry=registry
        )
        self.running = Gauge("samesense_requests_running", "Requests accepted and not answered.", registry=registry)

    def of(self, model: str) -> ModelMetrics:
        """Return the metrics of one model."""
        received = [metric.labels(model) for metric in (self._texts, self._tokens, self._truncated)]
        batch = [metric.labels(model) for metric in (self._batch_items, self._batch_tokens, self._batch_seconds)]
        return ModelMetrics(received, batch, self._queued.labels(model))

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class ModelMetrics:
    """The metrics of one model of a server."""

    def __init__(self, received: Sequence[Counter], batch: Sequence[Histogram], queued: Gauge) -> None:
        self._received = received
        self._batch = batch
        self._queued = queued

    def received(self, texts: int, tokens: int, truncated: int) -> None:
        """Count the texts of a request, their tokens, and the texts that were truncated."""
        for counter, amount in zip(self._received, (texts, tokens, truncated), strict=True):
            counter.inc(amount)

    def batch(self, items: int, tokens: int, seconds: float) -> None:
        """Count a batch."""
        for histogram, amount in zip(self._batch, (items, tokens, seconds), strict=True):
            histogram.observe(amount)

    def watch_queue(self, queued: Callable[[], int]) -> None:
        """Report the length of the queue, which is read whenever the metrics are."""
        self._queued.set_function(queued)
