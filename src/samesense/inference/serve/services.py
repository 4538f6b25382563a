"""The models of a server, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from samesense.errors import ConfigError
from samesense.inference.serve.errors import RequestError, invalid
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.service import CrossEncoderService, EmbeddingService, Service, Serving
from samesense.inference.serve.traffic import Traffic

DEFAULT_LIMITS = Limits()


class Services(Traffic):
    """What a server serves: one model or several, which compute in one thread, so that they do not fight.

    A collection is searched in another thread.

    ``any_name`` lets callers ask by any name; ConfigError if there are several models of a kind to choose from, or two
    have one name.
    """

    def __init__(self, servings: Sequence[Serving], *, limits: Limits = DEFAULT_LIMITS, any_name: bool = False) -> None:
        super().__init__(limits)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="inference")
        self._search_thread = ThreadPoolExecutor(1, thread_name_prefix="search")
        self._any_name = any_name
        self.all: list[Service[Any]] = [self._service(serving) for serving in servings]
        self._by_name = {one.serving.name: one for one in self.all}
        if len(self._by_name) < len(self.all):
            names = ", ".join(one.serving.name for one in self.all)
            raise ConfigError(f"Each model has a name of its own; received {names}. Name them, as in NAME=FOLDER.")
        if any_name and len({type(one) for one in self.all}) < len(self.all):
            raise ConfigError("`any_model_name` is for one model, or one of each kind; received several of a kind.")

    def start(self) -> None:
        """Begin to work, in the running event loop."""
        for one in self.all:
            one.batcher.start()

    async def stop(self) -> None:
        """Stop; what still waits is not answered."""
        for one in self.all:
            await one.batcher.stop()
        for thread in (self._thread, self._search_thread):
            thread.shutdown(wait=False, cancel_futures=True)

    @property
    def alive(self) -> bool:
        """Whether everything works that should."""
        return all(one.batcher.alive for one in self.all)

    def find(self, wanted: str | None, fit: Callable[[Service[Any]], Any] = lambda _: 0) -> Service[Any]:
        """Return the model that callers want by name; without a name the first of those with the highest ``fit``.

        RequestError if there is none of this name.
        """
        if wanted in self._by_name:
            return self._by_name[wanted]
        if wanted is not None and not self._any_name:
            names = ", ".join(map(repr, self._by_name))
            has = f"has one model, {names}" if len(self.all) == 1 else f"has the models {names}"
            raise RequestError(
                404, f"This server {has}; received {wanted[:100]!r}.", code="model_not_found", param="model"
            )
        return max(self.all, key=fit)

    def reranker(self, wanted: str | None) -> Service[Any]:
        """Return what ranks: a cross-encoder where callers leave the choice and there is one."""
        return self.find(wanted, lambda one: isinstance(one, CrossEncoderService))

    def embedder(self, wanted: str | None) -> EmbeddingService:
        """Return a model of embeddings, one with a collection where callers leave the choice and there is one.

        RequestError for a model without embeddings.
        """
        found = self.find(wanted, lambda one: (isinstance(one, EmbeddingService), one.serving.search is not None))
        if not isinstance(found, EmbeddingService):
            raise invalid(
                f"{found.serving.name!r} scores pairs of texts and has no embeddings. Ask it for similarity or rerank, "
                "or ask another model.",
                param="model",
            )
        return found

    def _service(self, serving: Serving) -> Service[Any]:
        shared = self.limits, self.metrics.of(serving.name), self._thread
        if serving.encode is not None:
            return EmbeddingService(serving, serving.encode, *shared, self._search_thread)
        if serving.score is None:
            raise ConfigError(f"A model encodes or scores; {serving.name!r} does neither.")
        return CrossEncoderService(serving, serving.score, *shared)
