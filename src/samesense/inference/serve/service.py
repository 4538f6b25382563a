"""The work of a served model, without HTTP: embed, compare, rerank and search, in batches that requests share."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from samesense.encoder.cosine import checked_rows, cosine_score, nonzero_rows, row_cosines
from samesense.errors import ConfigError, DataError, ModelError
from samesense.inference.calibration.calibration import Calibration
from samesense.inference.collection.collection import SearchHit
from samesense.inference.collection.conditions import Where, condition
from samesense.inference.collection.store import NoCollectionError
from samesense.inference.search.exact import unit_rows
from samesense.inference.search.ties import TIE
from samesense.inference.serve.batching import Batcher, Rows
from samesense.inference.serve.errors import RequestError, invalid
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.metrics import ModelMetrics
from samesense.inference.serve.schemas import Ids, SearchRequest
from samesense.inference.serve.tokens import Tokens
from samesense.types import Embeddings, Encode, Pair, Score, Scores, TaskName


class TaskText(NamedTuple):
    """A text and its task, for models that distinguish queries from documents."""

    task: TaskName | None
    text: str


Item = TypeVar("Item", TaskText, Pair)

COUNTED = 2**16
"""Characters whose tokens are counted at once; other requests are served between two counts."""

TURN = 0.1
"""Target seconds of one block of a request's queries; other requests are served between two blocks."""

SEARCHED = 64
"""Most queries of a block."""


class Search(Protocol):
    """Searches texts, such as a :class:`~samesense.inference.collection.collection.Collection`."""

    def search(
        self,
        vectors: Embeddings,
        *,
        top: int,
        where: Where,
        words: Sequence[str] | None,
        texts: Sequence[str],
        stop: threading.Event,
    ) -> Sequence[Sequence[SearchHit]]:
        """Return the hits of each of ``texts``, best first; hybrid search where they are given as ``words`` too.

        ``stop`` is set when no one waits for the hits any more.
        """

    def text_search(
        self, texts: Sequence[str], *, top: int, where: Where, stop: threading.Event
    ) -> Sequence[Sequence[SearchHit]]:
        """Return the hits of each query by its words."""


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A model that is served, and its options.

    Attributes:
        name: the name that clients send.
        tokens: counts the model's tokens.
        encode: encodes texts, for the given task if any, of a model of embeddings.
        score: scores pairs, of a cross-encoder.
        search: searches a collection of the model's vectors, if there is one.
        calibration: maps scores to the scale of the user's labels, if there is one.
        threshold: score from which on a pair is a yes; every answer then says yes or no. Without it answers do so on
            request, by the threshold of the calibration.
        normalize: return vectors of length 1.
        shorten: let clients ask for fewer dimensions; right only for a model trained for it (Matryoshka).
        token_ids: accept token ids in place of texts; right only for clients that use the model's own tokenizer.
        long: texts longer than the model reads are truncated, or refused.
        noise: how far a score may vary with the other texts of its batch.
        tells_tasks_apart: queries and documents are encoded differently.
    """

    name: str
    tokens: Tokens
    encode: Encode | None = None
    score: Score | None = None
    search: Search | None = None
    calibration: Calibration | None = None
    threshold: float | None = None
    normalize: bool = True
    shorten: bool = False
    token_ids: bool = False
    long: Literal["cut", "refuse"] = "cut"
    noise: float = TIE
    tells_tasks_apart: bool = False


class Service(ABC, Generic[Item]):
    """Answers requests for one model; ``run`` computes one row an item."""

    def __init__(
        self,
        serving: Serving,
        run: Callable[[Sequence[Item]], Rows],
        limits: Limits,
        metrics: ModelMetrics,
        on: Executor,
    ) -> None:
        self.serving = serving
        self.limits = limits
        self.metrics = metrics
        self.batcher: Batcher[Item] = Batcher(
            run,
            on,
            batch_tokens=limits.batch_tokens,
            queue_tokens=limits.queue_tokens,
            wait=limits.wait_ms / 1000,
            meter=metrics.batch,
        )
        metrics.watch_queue(lambda: self.batcher.queued)

    @abstractmethod
    async def similarities(
        self, pairs: Sequence[Pair], param: str = "pairs", *, truncate: bool | None = None
    ) -> tuple[Scores, int]:
        """Return the score of each pair, and the tokens read.

        RequestError if a limit is exceeded, or the queue is full. ``param`` is the field that holds the texts.
        ``truncate`` overrides the server's setting for texts that are too long: cut them, or refuse the request.
        """

    async def rerank(
        self, query: str, documents: Sequence[str], param: str = "documents", *, truncate: bool | None = None
    ) -> tuple[Scores, int]:
        """Return how well each document fits, and the tokens read."""
        self.limits.check_texts(documents, param)
        self.limits.check_texts([query], "query")
        return await self.similarities([(query, document) for document in documents], param, truncate=truncate)

    def calibrated(self) -> Calibration:
        """Return the calibration; RequestError if there is none."""
        if self.serving.calibration is None:
            message = "This model has no calibration; whoever serves it makes one with samesense calibrate."
            raise RequestError(404, message, code="no_calibration")
        return self.serving.calibration

    def yes_threshold(self) -> float:
        """Return the score from which on a pair is a yes; RequestError if there is none."""
        threshold = self.serving.threshold
        try:
            if threshold is not None:
                return threshold
            return self.calibrated().threshold()
        except ConfigError as error:
            raise RequestError(404, str(error), code="no_threshold", param="yes_no") from error

    def facts(self) -> dict[str, Any]:
        """Return what clients may know about the model, as JSON types."""
        return {
            "name": self.serving.name,
            "calibration": self.serving.calibration is not None,
            "threshold": self._threshold(),
            "search": self.serving.search is not None,
        }

    def _threshold(self) -> dict[str, float | None] | None:
        """Return the score from which on a pair is a yes, with its precision on new pairs where that is known."""
        calibration = self.serving.calibration
        threshold = self.serving.threshold
        if calibration is None:
            if threshold is None:
                return None
            return {"score": threshold, "precision": None}
        calibrated = calibration.thresholds.get(calibration.decide)
        if threshold is None and calibrated is None:
            return None
        # The calibration measured precision at its own threshold only.
        if threshold in (None, calibrated):
            return {"score": calibrated, "precision": calibration.errors["precision"]}
        return {"score": threshold, "precision": None}

    async def _sizes(self, texts: Sequence[str], param: str, truncate: bool | None) -> list[int]:
        """Return the number of tokens that the model reads of each text."""
        self.limits.check_texts(texts, param)
        return self._read(await self._count(texts), "text", param, truncate)

    async def _count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text before truncation."""
        sizes: list[int] = []
        while len(sizes) < len(texts):
            end = len(sizes)
            characters = 0
            # One text is counted in any case, however long it is.
            while end < len(texts) and characters < COUNTED:
                characters += len(texts[end])
                end += 1
            sizes += await asyncio.to_thread(self.serving.tokens.count, texts[len(sizes) : end])
        return sizes

    def _read(self, sizes: Sequence[int], what: str, param: str, truncate: bool | None) -> list[int]:
        """Return the number of tokens read of texts, or pairs, of these sizes.

        RequestError 413 if one is too long and may not be truncated.
        """
        longest = self.serving.tokens.longest
        long = [index for index, size in enumerate(sizes) if size > longest]
        may_truncate = truncate
        if truncate is None:
            may_truncate = self.serving.long == "cut"
        if long and not may_truncate:
            message = f"The model reads {longest} tokens; {what} {long[0]} of '{param}' has {sizes[long[0]]}. Split it."
            raise invalid(message, param=param, status=413)
        read = [min(size, longest) for size in sizes]
        self.metrics.received(len(read), sum(read), len(long))
        return read


class CrossEncoderService(Service[Pair]):
    """A model that reads both texts of a pair at once."""

    def facts(self) -> dict[str, Any]:
        """Return what clients may know about the model, as JSON types."""
        return super().facts() | {"kind": "cross-encoder"}

    async def similarities(
        self, pairs: Sequence[Pair], param: str = "pairs", *, truncate: bool | None = None
    ) -> tuple[Scores, int]:
        """Return the model's score of each pair, and the tokens read."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        self.limits.check_texts(texts, param)
        size_of = dict(zip(texts, await self._count(texts), strict=True))
        sizes = self._read([size_of[left] + size_of[right] for left, right in pairs], "pair", param, truncate)
        scores = await self.batcher.submit(pairs, sizes)
        if scores.ndim != 1 or not np.isfinite(scores).all():
            raise ModelError(f"A cross-encoder must give one finite score a pair; it gave {scores.tolist()[:5]}.")
        return scores, sum(sizes)


class EmbeddingService(Service[TaskText]):
    """A model of embeddings; ModelError at once if it cannot encode a text.

    ``dimension`` is that of the embeddings. A collection is searched in the executor ``search_on``: a search may take
    long, and the model must not wait for it.
    """

    def __init__(
        self,
        serving: Serving,
        encode: Encode,
        limits: Limits,
        metrics: ModelMetrics,
        on: Executor,
        search_on: Executor,
    ) -> None:
        self._encode = encode
        super().__init__(serving, self._rows, limits, metrics, on)
        self._search_on = search_on
        # One text shows that the model works, and how wide its vectors are.
        self.dimension = self._rows([TaskText(None, "One text.")]).shape[1]

    def _rows(self, items: Sequence[TaskText]) -> Embeddings:
        """Return the embedding of each text, in order; the texts of each task are encoded together."""
        tasks = list(dict.fromkeys(item.task for item in items))
        if len(tasks) == 1:
            return self._task_rows([item.text for item in items], tasks[0])
        indices_by_task = [[index for index, item in enumerate(items) if item.task == task] for task in tasks]
        blocks = [
            self._task_rows([items[index].text for index in indices], task)
            for indices, task in zip(indices_by_task, tasks, strict=True)
        ]
        # The argsort of a permutation is its inverse, which restores the order.
        return np.concatenate(blocks)[np.argsort(np.concatenate(indices_by_task))]

    def _task_rows(self, texts: Sequence[str], task: TaskName | None) -> Embeddings:
        """Return the checked embeddings of texts of one task."""
        # A function may not take a task at all.
        options: dict[str, Any] = {} if task is None else {"task": task}
        run: Encode = partial(self._encode, **options)
        vectors = checked_rows(np.asarray(run(texts)), texts).astype(np.float32)
        if not self.serving.normalize:
            return vectors
        return unit_rows(np.asarray(nonzero_rows(vectors, texts)))

    def facts(self) -> dict[str, Any]:
        """Return what clients may know about the model, as JSON types."""
        return super().facts() | {"kind": "embeddings", "dimension": self.dimension}

    async def embed(
        self,
        inputs: Sequence[str] | Sequence[Ids],
        param: str,
        *,
        truncate: bool | None = None,
        task: TaskName | None = None,
    ) -> tuple[Embeddings, int]:
        """Return one vector an input ``(texts, dim)``, in order, and the tokens that the model reads.

        ``task`` says whether they are queries or documents, for a model that distinguishes them. RequestError if a
        limit is exceeded, or the queue is full.
        """
        texts = await self._as_texts(inputs, param)
        sizes = await self._sizes(texts, param, truncate)
        if not self.serving.tells_tasks_apart:
            task = None
        return await self.batcher.submit([TaskText(task, text) for text in texts], sizes), sum(sizes)

    async def similarities(
        self, pairs: Sequence[Pair], param: str = "pairs", *, truncate: bool | None = None
    ) -> tuple[Scores, int]:
        """Return the cosine of each pair, and the tokens read."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        rows, tokens = await self.embed(texts, param, truncate=truncate)
        return await asyncio.to_thread(_cosines, texts, rows, pairs), tokens

    async def rerank(
        self, query: str, documents: Sequence[str], param: str = "documents", *, truncate: bool | None = None
    ) -> tuple[Scores, int]:
        """Return how well each document fits, and the tokens read."""
        if not self.serving.tells_tasks_apart:
            return await super().rerank(query, documents, param, truncate=truncate)
        self.limits.check_texts(documents, param)
        distinct = list(dict.fromkeys(documents))
        # The query has a task of its own, and so is encoded by itself.
        query_row, query_tokens = await self.embed([query], "query", truncate=truncate, task="query")
        rows, document_tokens = await self.embed(distinct, param, truncate=truncate, task="document")
        index_of = {document: index for index, document in enumerate(distinct)}
        scores = await asyncio.to_thread(row_cosines, query_row, rows)
        return scores[[index_of[document] for document in documents]], query_tokens + document_tokens

    async def search(self, queries: Sequence[str], form: SearchRequest) -> tuple[Sequence[Sequence[SearchHit]], int]:
        """Return the hits of each query, best first, and the tokens read.

        The queries are searched in blocks of about ``TURN`` seconds, so that other requests are served in between.
        """
        if self.serving.search is None:
            message = "This model has no collection; the server is given one with --collection DIR."
            raise RequestError(404, message, code="no_collection")
        self.limits.check_where(form.where)
        await self._check_condition(form.where)
        collection = self.serving.search
        rows = np.empty((len(queries), 0), dtype=np.float32)
        tokens = 0
        if form.words:
            self.limits.check_texts(queries, "query")
        else:
            rows, tokens = await self.embed(queries, "query", task="query")

        def find(texts: Sequence[str], vectors: Embeddings) -> Sequence[Sequence[SearchHit]]:
            if form.words:
                return collection.text_search(texts, top=form.top, where=form.where, stop=stop)
            words = texts if form.hybrid else None
            return collection.search(vectors, top=form.top, where=form.where, words=words, texts=texts, stop=stop)

        stop = threading.Event()
        hits: list[Sequence[SearchHit]] = []
        loop = asyncio.get_running_loop()
        # One query first, as it is not known how long it takes.
        count = 1
        try:
            while len(hits) < len(queries):
                block = slice(len(hits), len(hits) + count)
                started = time.perf_counter()
                hits += await loop.run_in_executor(self._search_on, find, queries[block], rows[block])
                quick = time.perf_counter() - started < TURN
                count = min(2 * count, SEARCHED) if quick else max(1, count // 2)
        except NoCollectionError as error:  # it was deleted, or is being rebuilt, while it is served
            raise RequestError(503, str(error), code="no_collection") from error
        except (ConfigError, DataError) as error:
            raise invalid(str(error), param="where") from error
        except ModelError as error:  # the collection was rebuilt with another model while it is served
            raise RequestError(503, str(error), code="other_model") from error
        finally:
            stop.set()  # if the client has gone, a search that is still running ends early
        return hits, tokens

    async def _check_condition(self, where: Where) -> None:
        """Raise RequestError for a condition that cannot be parsed, before the model computes anything."""
        try:
            await asyncio.to_thread(condition, where)
        except ConfigError as error:
            raise invalid(str(error), param="where") from error

    def shortened(self, rows: Embeddings, dimensions: int | None) -> Embeddings:
        """Return the vectors with the requested number of dimensions; RequestError if they cannot be shortened."""
        if dimensions is None or dimensions == self.dimension:
            return rows
        if dimensions > self.dimension or not self.serving.shorten:
            raise invalid(
                f"'dimensions' must be {self.dimension}; received {dimensions}. Vectors can be cut only where a model "
                "was trained for it, which whoever serves it says with --shorten. Leave 'dimensions' out.",
                param="dimensions",
            )
        leading = rows[:, :dimensions]
        if not self.serving.normalize:
            return leading
        # The first numbers of a unit vector have a smaller length.
        return unit_rows(leading)

    async def _as_texts(self, inputs: Sequence[str] | Sequence[Ids], param: str) -> list[str]:
        """Return the texts of inputs, decoding token ids where the server accepts them."""
        # Before token ids are decoded, one text after the other.
        self.limits.check_count(len(inputs), param)
        texts = [item for item in inputs if isinstance(item, str)]
        if len(texts) == len(inputs):
            return texts
        if not self.serving.token_ids:
            raise invalid(
                f"'{param}' must hold texts; received token ids, and those of another tokenizer would give vectors of "
                "other texts. LangChain's OpenAIEmbeddings sends texts with check_embedding_ctx_length=False. "
                "`samesense serve --token-ids` takes ids, which must be those of the served model's own tokenizer.",
                param=param,
            )
        try:
            return [
                item if isinstance(item, str) else await asyncio.to_thread(self.serving.tokens.text, item)
                for item in inputs
            ]
        except DataError as error:
            raise invalid(str(error), param=param) from error


def _cosines(texts: Sequence[str], rows: Embeddings, pairs: Sequence[Pair]) -> Scores:
    row_of = dict(zip(texts, rows, strict=True))
    return cosine_score(lambda batch: np.stack([row_of[text] for text in batch]))(pairs)
