"""What a server can do, without HTTP: embed, compare, rerank and search, in batches that requests share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from samesense.encoder.cosine import checked_rows, cosine_score, nonzero_rows
from samesense.errors import ConfigError, DataError, ModelError
from samesense.inference.calibration.calibration import Calibration
from samesense.inference.collection.collection import Found
from samesense.inference.collection.conditions import Where
from samesense.inference.search.exact import unit_rows
from samesense.inference.serve.batching import Batcher
from samesense.inference.serve.exception_handlers import RequestError, invalid
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.schemas import Ids
from samesense.inference.serve.tokens import Tokens
from samesense.inference.serve.traffic import Traffic
from samesense.types import Embeddings, Encode, Pair, Score, Scores

Search = Callable[[Embeddings, int, Where], Sequence[Sequence[Found]]]
"""Query vectors, how many hits, and a condition on their metadata; gives the hits of each query, best first."""


SEARCHED = 64
"""Queries that are searched for at once: between them others have their turn, and work for which no one waits ends."""


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What is served, and how.

    Attributes:
        name: by which callers ask for it.
        encode: texts in, embeddings out.
        tokens: of the model.
        rerank: a cross-encoder, if there is one; else documents are ranked by cosine.
        search: in a collection, if there is one.
        calibration: what the cosines mean on the scale of the user's labels, if it is known.
        threshold: cosine from which on a pair is a yes, said in every answer; by default that of the calibration, which
            is said on request.
        normalize: give vectors of length 1.
        shorten: let callers ask for fewer dimensions; right only for a model trained for it (Matryoshka).
        long: texts longer than the model reads are cut, or refused.
        limits: on what callers may ask.
    """

    name: str
    encode: Encode
    tokens: Tokens
    rerank: Score | None = None
    search: Search | None = None
    calibration: Calibration | None = None
    threshold: float | None = None
    normalize: bool = True
    shorten: bool = False
    long: Literal["cut", "refuse"] = "cut"
    limits: Limits = field(default_factory=Limits)


class Service(Traffic):
    """Answers requests; see :class:`Serving`. ModelError at once, if the model cannot encode a text.

    ``dimension`` is that of the embeddings.
    """

    def __init__(self, serving: Serving) -> None:
        super().__init__(serving.limits)
        self.serving = serving
        self.dimension = self._rows(["One text."]).shape[1]
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="inference")
        self._texts: Batcher[str] | None = None
        self._pairs: Batcher[Pair] | None = None

    def start(self) -> None:
        """Begin to work, in the running event loop."""
        self._texts = self._batcher("embed", self._rows)
        if self.serving.rerank is not None:
            self._pairs = self._batcher("rerank", self.serving.rerank)

    async def stop(self) -> None:
        """Stop; what still waits is not answered."""
        for batcher in self._batchers():
            await batcher.stop()
        self._thread.shutdown(wait=False, cancel_futures=True)

    @property
    def alive(self) -> bool:
        """Whether everything works that should."""
        return self._texts is not None and all(batcher.alive for batcher in self._batchers())

    async def embed(self, given: Sequence[str] | Sequence[Ids], param: str) -> tuple[Embeddings, int]:
        """Return one vector an input ``(texts, dim)``, in order, and the tokens that the model reads.

        RequestError if a limit is broken, or the queue is full.
        """
        texts = self._as_texts(given, param)
        sizes = await self._sizes(texts, param)
        return await _started(self._texts).submit(texts, sizes), sum(sizes)

    async def similarities(self, pairs: Sequence[Pair], param: str = "pairs") -> tuple[Scores, int]:
        """Return the cosine of each pair, and the tokens read."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        rows, tokens = await self.embed(texts, param)
        return await asyncio.to_thread(_cosines, texts, rows, pairs), tokens

    def calibrated(self) -> Calibration:
        """Return the calibration; RequestError if there is none."""
        if self.serving.calibration is None:
            raise RequestError(
                404, "This server has no calibration; whoever serves the model makes one with samesense calibrate.",
                code="no_calibration",
            )  # fmt: skip
        return self.serving.calibration

    def cut(self) -> float:
        """Return the cosine from which on a pair is a yes; ConfigError or RequestError if there is none."""
        given = self.serving.threshold
        return self.calibrated().threshold() if given is None else given

    async def rerank(self, query: str, documents: Sequence[str]) -> tuple[Scores, int]:
        """Return how well each document fits, by the cross-encoder or, where there is none, by cosine."""
        self.serving.limits.check_texts(documents, "documents")
        self.serving.limits.check_texts([query], "query")
        pairs = [(query, document) for document in documents]
        if self._pairs is None:
            return await self.similarities(pairs, "documents")
        texts = [query, *documents]
        sizes = await self._sizes(texts, "documents")
        scores = await self._pairs.submit(pairs, [sizes[0] + size for size in sizes[1:]])
        if scores.ndim != 1 or not np.isfinite(scores).all():
            raise ModelError(f"The reranker must give one finite score a pair; it gave {scores.tolist()[:5]}.")
        return scores, sum(sizes)

    async def search(self, queries: Sequence[str], top: int, where: Where) -> tuple[Sequence[Sequence[Found]], int]:
        """Return the hits of each query, best first, and the tokens read."""
        if self.serving.search is None:
            raise RequestError(
                404, "This server has no collection; start it with --collection DIR.", code="no_collection"
            )
        rows, tokens = await self.embed(queries, "query")
        search, loop = self.serving.search, asyncio.get_running_loop()
        hits: list[Sequence[Found]] = []
        try:
            for start in range(0, len(rows), SEARCHED):
                part = rows[start : start + SEARCHED]
                hits += await loop.run_in_executor(self._thread, search, part, top, where)
        except (ConfigError, DataError) as error:
            raise invalid(str(error), param="where") from error
        return hits, tokens

    def shortened(self, rows: Embeddings, dimensions: int | None) -> Embeddings:
        """Return vectors of as many dimensions as asked for."""
        if dimensions is None or dimensions == self.dimension:
            return rows
        if dimensions > self.dimension or not self.serving.shorten:
            raise invalid(
                f"'dimensions' must be {self.dimension}; received {dimensions}. Vectors can be cut only where a model "
                "was trained for it, which whoever serves it says with --shorten. Leave 'dimensions' out.",
                param="dimensions",
            )
        cut = rows[:, :dimensions]
        return unit_rows(cut) if self.serving.normalize else cut

    def _rows(self, texts: Sequence[str]) -> Embeddings:
        rows = checked_rows(np.asarray(self.serving.encode(texts)), texts).astype(np.float32)
        return unit_rows(np.asarray(nonzero_rows(rows, texts))) if self.serving.normalize else rows

    def _batchers(self) -> list[Batcher[Any]]:
        both: tuple[Batcher[Any] | None, ...] = (self._texts, self._pairs)
        return [batcher for batcher in both if batcher is not None]

    def _batcher(self, work: str, run: Callable[[Sequence[Any]], Any]) -> Batcher[Any]:
        limits = self.serving.limits
        batcher: Batcher[Any] = Batcher(
            run, self._thread, batch_tokens=limits.batch_tokens, queue_tokens=limits.queue_tokens,
            wait=limits.wait_ms / 1000, meter=self.metrics.meter(work),
        )  # fmt: skip
        self.metrics.watch_queue(work, lambda: batcher.queued)
        batcher.start()
        return batcher

    def _as_texts(self, given: Sequence[str] | Sequence[Ids], param: str) -> list[str]:
        limits = self.serving.limits
        if len(given) > limits.max_texts:
            limits.check_texts([str(one) for one in given], param)
        try:
            texts = [one if isinstance(one, str) else self.serving.tokens.text(one) for one in given]
        except DataError as error:
            raise invalid(str(error), param=param) from error
        limits.check_texts(texts, param)
        return texts

    async def _sizes(self, texts: Sequence[str], param: str) -> list[int]:
        """Return the tokens of each text that the model reads."""
        sizes, longest = await asyncio.to_thread(self.serving.tokens.count, texts), self.serving.tokens.longest
        long = [place for place, size in enumerate(sizes) if size > longest]
        if long and self.serving.long == "refuse":
            raise invalid(
                f"The model reads {longest} tokens; text {long[0]} of '{param}' has {sizes[long[0]]}. Split it.",
                param=param, status=413,
            )  # fmt: skip
        read = [min(size, longest) for size in sizes]
        for counter, amount in zip(
            (self.metrics.texts, self.metrics.tokens, self.metrics.cut), (len(read), sum(read), len(long)), strict=True
        ):
            counter.inc(amount)
        return read


def _started(batcher: Batcher[str] | None) -> Batcher[str]:
    if batcher is None:
        raise RuntimeError("The service has not been started.")
    return batcher


def _cosines(texts: Sequence[str], rows: Embeddings, pairs: Sequence[Pair]) -> Scores:
    row_of = dict(zip(texts, rows, strict=True))
    return cosine_score(lambda wanted: np.stack([row_of[text] for text in wanted]))(pairs)
