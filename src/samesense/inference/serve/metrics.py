"""What a server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


class Metrics:
    """The counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        own = self._registry = CollectorRegistry()
        self.requests = Counter("samesense_requests", "Requests answered.", ["route", "status"], registry=own)
        self.seconds = Histogram(
            "samesense_request_seconds", "From a request's arrival to its answer.", ["route"],
            buckets=SECONDS, registry=own,
        )  # fmt: skip
        self.texts = Counter("samesense_texts", "Texts received.", registry=own)
        self.tokens = Counter("samesense_tokens", "Tokens of the texts received, as read by the model.", registry=own)
        self.cut = Counter("samesense_cut_texts", "Texts longer than the model reads, which were cut.", registry=own)
        self.batch_items = Histogram(
            "samesense_batch_items", "Distinct inputs of a batch.", ["work"], buckets=SIZES, registry=own
        )
        self.batch_tokens = Histogram(
            "samesense_batch_tokens", "Tokens of a batch.", ["work"], buckets=SIZES, registry=own
        )
        self.batch_seconds = Histogram(
            "samesense_batch_seconds", "Computation of a batch.", ["work"], buckets=SECONDS, registry=own
        )
        self._queued = Gauge("samesense_queue_tokens", "Tokens that wait or are computed.", ["work"], registry=own)
        self.running = Gauge("samesense_requests_running", "Requests accepted and not answered.", registry=own)

    def meter(self, work: str) -> Callable[[int, int, float], None]:
        """Return what is to be told of every batch of a kind of work."""
        items, size, seconds = (h.labels(work) for h in (self.batch_items, self.batch_tokens, self.batch_seconds))

        def tell(count: int, tokens: int, taken: float) -> None:
            items.observe(count)
            size.observe(tokens)
            seconds.observe(taken)

        return tell

    def watch_queue(self, work: str, queued: Callable[[], int]) -> None:
        """Show the length of a queue whenever the figures are read."""
        self._queued.labels(work).set_function(queued)

    def text(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        return generate_latest(self._registry)
