"""What a served model can do, without HTTP: embed, compare, rerank and search, in batches that requests share."""

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
from samesense.inference.collection.collection import Found
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


class Asked(NamedTuple):
    """A text of a task, where the model tells queries from documents."""

    task: TaskName | None
    text: str


Item = TypeVar("Item", Asked, Pair)

COUNTED = 2**16
"""Characters of texts whose tokens are counted at once: between them others have their turn."""

TURN = 0.1
"""Seconds of a turn in which queries of one request are searched for, about."""

SEARCHED = 64
"""Queries that are searched for in a turn at most; between turns others have theirs."""


class Search(Protocol):
    """Finds texts; a :class:`~samesense.inference.collection.collection.Collection` is one."""

    def search(
        self,
        vectors: Embeddings,
        *,
        top: int,
        where: Where,
        words: Sequence[str] | None,
        texts: Sequence[str],
        stop: threading.Event,
    ) -> Sequence[Sequence[Found]]:
        """Return the hits of each of ``texts``, best first; hybrid where these are given as ``words`` too.

        Once ``stop`` is set, no one waits for them any more.
        """

    def text_search(
        self, texts: Sequence[str], *, top: int, where: Where, stop: threading.Event
    ) -> Sequence[Sequence[Found]]:
        """Return the hits of each query by its words."""


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A model that is served, and how.

    Attributes:
        name: by which callers ask for it.
        tokens: of the model.
        encode: texts in, and of which task they are, where that makes a difference; embeddings out; or else
        score: pairs in, scores out, of a cross-encoder.
        search: in a collection of its vectors, if there is one.
        calibration: what the scores mean on the scale of the user's labels, if it is known.
        threshold: score from which on a pair is a yes, said in every answer; by default that of the calibration, which
            is said on request.
        normalize: give vectors of length 1.
        shorten: let callers ask for fewer dimensions; right only for a model trained for it (Matryoshka).
        token_ids: take token ids in place of texts; right only for callers that use the model's own tokenizer.
        long: texts longer than the model reads are cut, or refused.
        noise: how far a score may move with the texts beside it.
        tells_tasks_apart: queries and documents are encoded apart.
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
        self.serving, self.limits, self.metrics, self.executor = serving, limits, metrics, on
        self.batcher: Batcher[Item] = Batcher(
            run, on, batch_tokens=limits.batch_tokens, queue_tokens=limits.queue_tokens, wait=limits.wait_ms / 1000,
            meter=metrics.batch,
        )  # fmt: skip
        metrics.watch_queue(lambda: self.batcher.queued)

    @abstractmethod
    async def similarities(
        self, pairs: Sequence[Pair], param: str = "pairs", *, cut: bool | None = None
    ) -> tuple[Scores, int]:
        """Return the score of each pair, and the tokens read.

        RequestError if a limit is broken, or the queue is full; ``param`` is the field that holds the texts, and
        ``cut`` whether those that are too long are cut, or refused, in place of what the server was told.
        """

    async def rerank(
        self, query: str, documents: Sequence[str], param: str = "documents", *, cut: bool | None = None
    ) -> tuple[Scores, int]:
        """Return how well each document fits, and the tokens read."""
        self.limits.check_texts(documents, param)
        self.limits.check_texts([query], "query")
        return await self.similarities([(query, document) for document in documents], param, cut=cut)

    def calibrated(self) -> Calibration:
        """Return the calibration; RequestError if there is none."""
        if self.serving.calibration is None:
            raise RequestError(
                404, "This model has no calibration; whoever serves it makes one with samesense calibrate.",
                code="no_calibration",
            )  # fmt: skip
        return self.serving.calibration

    def cut(self) -> float:
        """Return the score from which on a pair is a yes; RequestError if there is none."""
        given = self.serving.threshold
        try:
            return self.calibrated().threshold() if given is None else given
        except ConfigError as error:
            raise RequestError(404, str(error), code="no_threshold", param="yes_no") from error

    def facts(self) -> dict[str, Any]:
        """Return what callers may know of the model, as JSON types."""
        return {
            "name": self.serving.name,
            "calibration": self.serving.calibration is not None,
            "threshold": self._threshold(),
            "search": self.serving.search is not None,
        }

    def _threshold(self) -> dict[str, float | None] | None:
        """Return the score from which on a pair is a yes, with its precision on new pairs where that is known."""
        calibration, given = self.serving.calibration, self.serving.threshold
        fitted = None if calibration is None else calibration.thresholds.get(calibration.decide)
        if given is None and fitted is None:
            return None
        known = calibration is not None and given in (None, fitted)
        precision = calibration.errors["precision"] if calibration is not None and known else None
        return {"score": fitted if given is None else given, "precision": precision}

    async def _sizes(self, texts: Sequence[str], param: str, cut: bool | None) -> list[int]:
        """Return the tokens of each text that the model reads."""
        self.limits.check_texts(texts, param)
        return self._read(await self._count(texts), "text", param, cut)

    async def _count(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text before any cut."""
        sizes: list[int] = []
        while len(sizes) < len(texts):
            end, characters = len(sizes), 0
            while end < len(texts) and characters < COUNTED:
                characters += len(texts[end])
                end += 1
            sizes += await asyncio.to_thread(self.serving.tokens.count, texts[len(sizes) : end])
        return sizes

    def _read(self, sizes: Sequence[int], what: str, param: str, cut: bool | None) -> list[int]:
        """Return how many tokens are read of texts, or pairs, of so many; RequestError if none may be cut."""
        longest = self.serving.tokens.longest
        long = [place for place, size in enumerate(sizes) if size > longest]
        may_cut = self.serving.long == "cut" if cut is None else cut
        if long and not may_cut:
            raise invalid(
                f"The model reads {longest} tokens; {what} {long[0]} of '{param}' has {sizes[long[0]]}. Split it.",
                param=param, status=413,
            )  # fmt: skip
        read = [min(size, longest) for size in sizes]
        self.metrics.received(len(read), sum(read), len(long))
        return read


class CrossEncoderService(Service[Pair]):
    """A model that reads both texts of a pair at once."""

    def __init__(self, serving: Serving, score: Score, limits: Limits, metrics: ModelMetrics, on: Executor) -> None:
        super().__init__(serving, score, limits, metrics, on)

    def facts(self) -> dict[str, Any]:
        """Return what callers may know of the model, as JSON types."""
        return super().facts() | {"kind": "cross-encoder"}

    async def similarities(
        self, pairs: Sequence[Pair], param: str = "pairs", *, cut: bool | None = None
    ) -> tuple[Scores, int]:
        """Return the model's score of each pair, and the tokens read."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        self.limits.check_texts(texts, param)
        size_of = dict(zip(texts, await self._count(texts), strict=True))
        sizes = self._read([size_of[left] + size_of[right] for left, right in pairs], "pair", param, cut)
        scores = await self.batcher.submit(pairs, sizes)
        if scores.ndim != 1 or not np.isfinite(scores).all():
            raise ModelError(f"A cross-encoder must give one finite score a pair; it gave {scores.tolist()[:5]}.")
        return scores, sum(sizes)


class EmbeddingService(Service[Asked]):
    """A model of embeddings; ModelError at once if it cannot encode a text.

    ``dimension`` is that of the embeddings. A collection is searched in ``search_on``: a search may take long, and
    what the model computes for others does not wait for it.
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
        def rows_of(texts: Sequence[str], task: TaskName | None) -> Embeddings:
            as_task: dict[str, Any] = {} if task is None else {"task": task}
            run: Encode = partial(encode, **as_task)
            vectors = checked_rows(np.asarray(run(texts)), texts).astype(np.float32)
            return unit_rows(np.asarray(nonzero_rows(vectors, texts))) if serving.normalize else vectors

        def rows(items: Sequence[Asked]) -> Embeddings:
            tasks = list(dict.fromkeys(item.task for item in items))
            if len(tasks) == 1:
                return rows_of([item.text for item in items], tasks[0])
            indices_by_task = [[index for index, item in enumerate(items) if item.task == task] for task in tasks]
            blocks = [
                rows_of([items[position].text for position in indices], task)
                for indices, task in zip(indices_by_task, tasks, strict=True)
            ]
            return np.concatenate(blocks)[np.argsort(np.concatenate(indices_by_task))]

        super().__init__(serving, rows, limits, metrics, on)
        self._search_on = search_on
        self.dimension = rows([Asked(None, "One text.")]).shape[1]

    def facts(self) -> dict[str, Any]:
        """Return what callers may know of the model, as JSON types."""
        return super().facts() | {"kind": "embeddings", "dimension": self.dimension}

    async def embed(
        self,
        given: Sequence[str] | Sequence[Ids],
        param: str,
        *,
        cut: bool | None = None,
        task: TaskName | None = None,
    ) -> tuple[Embeddings, int]:
        """Return one vector an input ``(texts, dim)``, in order, and the tokens that the model reads.

        ``task`` says whether they are queries or documents, for a model that tells them apart.

        RequestError if a limit is broken, or the queue is full.
        """
        texts = await self._as_texts(given, param)
        sizes = await self._sizes(texts, param, cut)
        task = task if self.serving.tells_tasks_apart else None
        return await self.batcher.submit([Asked(task, text) for text in texts], sizes), sum(sizes)

    async def similarities(
        self, pairs: Sequence[Pair], param: str = "pairs", *, cut: bool | None = None
    ) -> tuple[Scores, int]:
        """Return the cosine of each pair, and the tokens read."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        rows, tokens = await self.embed(texts, param, cut=cut)
        return await asyncio.to_thread(_cosines, texts, rows, pairs), tokens

    async def rerank(
        self, query: str, documents: Sequence[str], param: str = "documents", *, cut: bool | None = None
    ) -> tuple[Scores, int]:
        """Return how well each document fits, and the tokens read."""
        if not self.serving.tells_tasks_apart:
            return await super().rerank(query, documents, param, cut=cut)
        self.limits.check_texts(documents, param)
        once = list(dict.fromkeys(documents))
        (query_row, first), (rows, document_tokens) = (
            await self.embed([query], "query", cut=cut, task="query"),
            await self.embed(once, param, cut=cut, task="document"),
        )
        index_of = {document: number for number, document in enumerate(once)}
        scores = await asyncio.to_thread(row_cosines, query_row, rows)
        return scores[[index_of[document] for document in documents]], first + document_tokens

    async def search(self, queries: Sequence[str], form: SearchRequest) -> tuple[Sequence[Sequence[Found]], int]:
        """Return the hits of each query, best first, and the tokens read."""
        if self.serving.search is None:
            raise RequestError(
                404, "This model has no collection; the server is given one with --collection DIR.",
                code="no_collection",
            )  # fmt: skip
        self.limits.check_where(form.where)
        await self._check_condition(form.where)
        collection, rows, tokens = self.serving.search, np.empty((len(queries), 0), dtype=np.float32), 0
        if form.words:
            self.limits.check_texts(queries, "query")
        else:
            rows, tokens = await self.embed(queries, "query", task="query")

        def find(texts: Sequence[str], vectors: Embeddings) -> Sequence[Sequence[Found]]:
            if form.words:
                return collection.text_search(texts, top=form.top, where=form.where, stop=stop)
            words = texts if form.hybrid else None
            return collection.search(vectors, top=form.top, where=form.where, words=words, texts=texts, stop=stop)

        stop = threading.Event()
        hits: list[Sequence[Found]] = []
        loop = asyncio.get_running_loop()
        count = 1
        try:
            while len(hits) < len(queries):
                block = slice(len(hits), len(hits) + count)
                started = time.perf_counter()
                hits += await loop.run_in_executor(self._search_on, find, queries[block], rows[block])
                count = min(2 * count, SEARCHED) if time.perf_counter() - started < TURN else max(1, count // 2)
        except NoCollectionError as error:  # it was deleted, or is just built, while it is served
            raise RequestError(503, str(error), code="no_collection") from error
        except (ConfigError, DataError) as error:
            raise invalid(str(error), param="where") from error
        except ModelError as error:  # the collection was built anew while it is served
            raise RequestError(503, str(error), code="other_model") from error
        finally:
            stop.set()  # where no one waits for the answer any more
        return hits, tokens

    async def _check_condition(self, where: Where) -> None:
        """Raise RequestError for a condition that cannot be read, before the model computes for it."""
        try:
            await asyncio.to_thread(condition, where)
        except ConfigError as error:
            raise invalid(str(error), param="where") from error

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
        leading = rows[:, :dimensions]
        return unit_rows(leading) if self.serving.normalize else leading

    async def _as_texts(self, given: Sequence[str] | Sequence[Ids], param: str) -> list[str]:
        self.limits.check_count(len(given), param)
        texts = [item for item in given if isinstance(item, str)]
        if len(texts) == len(given):
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
                for item in given
            ]
        except DataError as error:
            raise invalid(str(error), param=param) from error


def _cosines(texts: Sequence[str], rows: Embeddings, pairs: Sequence[Pair]) -> Scores:
    row_of = dict(zip(texts, rows, strict=True))
    return cosine_score(lambda wanted: np.stack([row_of[text] for text in wanted]))(pairs)
