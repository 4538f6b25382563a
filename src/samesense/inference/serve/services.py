"""The models that a server serves, by name."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from samesense.errors import ConfigError
from samesense.inference.serve.errors import RequestError, invalid
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.service import CrossEncoderService, EmbeddingService, Service, Serving
from samesense.inference.serve.traffic import Traffic

DEFAULT_LIMITS = Limits()


def leave_out_of_collections() -> None:
    """Exclude all existing objects from garbage collection.

    torch and transformers create a million objects; full collections over them delayed requests by a third of a second.
    """
    # First, because what is frozen is never freed.
    gc.collect()
    gc.freeze()


class Services(Traffic):
    """The models of a server; they compute in one thread, so that they do not compete for the processor.

    A collection is searched in another thread.

    ``servings`` are opened models, or a function that opens them when the server starts: in the process that serves
    them, since the threads of torch and onnxruntime do not survive a fork. ``any_name`` accepts any model name.
    ConfigError if two models have the same name, or if ``any_name`` leaves a choice among several models of a kind.
    """

    def __init__(
        self,
        servings: Sequence[Serving] | Callable[[], Sequence[Serving]],
        *,
        limits: Limits = DEFAULT_LIMITS,
        any_name: bool = False,
    ) -> None:
        super().__init__(limits)
        self._any_name = any_name
        self._open_servings = servings if callable(servings) else None
        self._servings = None if callable(servings) else servings
        self._loop: asyncio.AbstractEventLoop | None = None  # the loop in which the batchers run
        self._starting: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        # Already here, so that names that clash are refused before the server starts.
        self._set_models(self._servings or [])

    def _set_models(self, servings: Sequence[Serving]) -> None:
        # New threads, as those of a stopped server take no more work.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="inference")
        self._search_thread = ThreadPoolExecutor(1, thread_name_prefix="search")
        self.all: list[Service[Any]] = [self._service(serving) for serving in servings]
        self._by_name = {service.serving.name: service for service in self.all}
        if len(self._by_name) < len(self.all):
            names = ", ".join(service.serving.name for service in self.all)
            raise ConfigError(f"Each model has a name of its own; received {names}. Name them, as in NAME=FOLDER.")
        if self._any_name and len({type(service) for service in self.all}) < len(self.all):
            raise ConfigError("`any_model_name` is for one model, or one of each kind; received several of a kind.")

    async def start(self) -> None:
        """Open the models unless they are open, and start their batchers in the running event loop."""
        loop = asyncio.get_running_loop()
        # A lock belongs to the loop in which it was first awaited.
        if self._starting is None or self._starting[0] is not loop:
            self._starting = loop, asyncio.Lock()
        async with self._starting[1]:
            # Another request has started the models while this one waited.
            if self._loop is loop:
                return
            if self._servings is None and self._open_servings is not None:
                # In a thread, so that the event loop goes on meanwhile.
                self._servings = await asyncio.to_thread(self._open_servings)
                leave_out_of_collections()
            if self._loop is not None or not self.all:  # the tasks of another loop have ended with that loop
                self._set_models(self._servings or [])
            for service in self.all:
                service.batcher.start()
            self._loop = loop

    async def stop(self) -> None:
        """Stop, and close the models opened by :meth:`start`; requests in the queue are not answered."""
        for service in self.all:
            await service.batcher.stop()
        for thread in (self._thread, self._search_thread):
            # A computation that is running cannot be stopped, and is not waited for.
            thread.shutdown(wait=False, cancel_futures=True)
        if self._open_servings is not None:
            # Without a reference the opened models can be freed.
            self._servings = None
            self._set_models([])
            self._loop = None

    @property
    def alive(self) -> bool:
        """Whether the server is started and the batcher of every model is running."""
        return self._loop is not None and all(service.batcher.alive for service in self.all)

    def find(self, name: str | None, fit: Callable[[Service[Any]], Any] = lambda _: 0) -> Service[Any]:
        """Return the model of a name; without a name the first of those with the highest ``fit``.

        RequestError if there is no model of this name.
        """
        if name in self._by_name:
            return self._by_name[name]
        if name is not None and not self._any_name:
            names = ", ".join(map(repr, self._by_name))
            has = f"has one model, {names}" if len(self.all) == 1 else f"has the models {names}"
            raise RequestError(
                404, f"This server {has}; received {name[:100]!r}.", code="model_not_found", param="model"
            )
        return max(self.all, key=fit)

    def reranker(self, name: str | None) -> Service[Any]:
        """Return the model of a name for reranking; without a name a cross-encoder is preferred."""
        return self.find(name, lambda service: isinstance(service, CrossEncoderService))

    def embedder(self, name: str | None) -> EmbeddingService:
        """Return the embedding model of a name; without a name one with a collection is preferred.

        RequestError for a model without embeddings.
        """
        model = self.find(
            name, lambda service: (isinstance(service, EmbeddingService), service.serving.search is not None)
        )
        if not isinstance(model, EmbeddingService):
            raise invalid(
                f"{model.serving.name!r} scores pairs of texts and has no embeddings. Ask it for similarity or rerank, "
                "or ask another model.",
                param="model",
            )
        return model

    def _service(self, serving: Serving) -> Service[Any]:
        shared = self.limits, self.metrics.of(serving.name), self._thread
        if serving.encode is not None:
            return EmbeddingService(serving, serving.encode, *shared, self._search_thread)
        if serving.score is None:
            raise ConfigError(f"A model encodes or scores; {serving.name!r} does neither.")
        return CrossEncoderService(serving, serving.score, *shared)
