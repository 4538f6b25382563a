"""Models that read queries and documents differently: by routes of their own, or behind prompts of their own.

A model with a ``Router`` of sentence-transformers has two encoders in one. Texts of no task go by its default route,
which is said once a model, as their vectors are only half of what the model is for.
"""

from __future__ import annotations

import logging
import weakref
from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Router

from samesense.encoder.names import PROMPTS
from samesense.errors import ModelError
from samesense.types import TaskName

logger = logging.getLogger(__name__)

_said: weakref.WeakSet[Any] = weakref.WeakSet()


def has_routes(model: SentenceTransformer | CrossEncoder) -> bool:
    """Return whether a model sends texts by routes."""
    return any(isinstance(module, Router) for module in model)


def default_prompt(model: SentenceTransformer | CrossEncoder) -> str:
    """Return the text that a model reads before every other; empty for none."""
    return (model.prompts.get(model.default_prompt_name) or "") if model.default_prompt_name else ""


def prompt_of(model: SentenceTransformer | CrossEncoder, task: TaskName | None) -> str:
    """Return the text that a model reads before those of a task: that of the task if it has one, else its default.

    Differs: sentence-transformers reads no prompt where the one of the task is empty. A model that was trained with one
    prompt for all texts, which is then its default, would lose it.
    """
    if task is None or getattr(model, FIXED, False):
        return default_prompt(model)
    own = (model.prompts.get(name) for name in PROMPTS[task])
    return next(filter(None, own), default_prompt(model))


FIXED = "samesense_prompt_for_every_task"
"""Attribute of a model that was opened with a prompt: it takes the place of those of tasks too."""


def tells_tasks_apart(model: SentenceTransformer | CrossEncoder) -> bool:
    """Return whether queries and documents get other vectors than texts of no task do."""
    prompts = {prompt_of(model, task) for task in (None, *PROMPTS)}
    return has_routes(model) or len(prompts) > 1


def route_of(model: SentenceTransformer | CrossEncoder, task: TaskName | None) -> str | None:
    """Return the name of the route that texts of a task go by; ``None`` for a model without routes.

    ModelError if there is no such route, or none for texts of no task.
    """
    if not has_routes(model):
        return None
    router = next(module for module in model if isinstance(module, Router))
    try:
        route: str = router._resolve_route(task=task, modality="text")  # there is no public way to ask
    except ValueError as error:
        wanted = "texts of no task" if task is None else f"a {task}"
        raise ModelError(
            f"The model sends texts by routes ({', '.join(router.sub_modules)}), and has none for {wanted}. Say "
            "`task`, query or document, or give the Router a default_route."
        ) from error
    return route


def say_default_route(model: SentenceTransformer, task: TaskName | None) -> None:
    """Say, once a model, by which route texts of no task go."""
    if task is None and has_routes(model) and model not in _said:
        _said.add(model)
        router = next(module for module in model if isinstance(module, Router))
        logger.warning(
            f"The model has routes ({', '.join(router.sub_modules)}), and these texts go by {route_of(model, None)!r}. "
            "Queries go by their own in index query, match, rerank and serve; encode takes `task`."
        )


def input_of(model: SentenceTransformer | CrossEncoder, task: TaskName | None) -> Any:
    """Return the module that reads the texts of a task first."""
    route = route_of(model, task)
    if route is None:
        return model[0]
    router = next(module for module in model if isinstance(module, Router))
    return router.sub_modules[route][0]


def longest_of(model: SentenceTransformer | CrossEncoder, task: TaskName | None) -> int | None:
    """Return how many tokens are read of a text of a task; ``None`` for any number."""
    module = input_of(model, task)
    own = getattr(module, f"{task}_length", None) if task is not None else None
    longest = own if isinstance(own, int) else getattr(module, "max_seq_length", None)
    return longest if isinstance(longest, int) else None


def refuse_routes(model: SentenceTransformer, what: str) -> None:
    """Raise ModelError for a model with routes, where only a model of one encoder can be used."""
    if has_routes(model):
        raise ModelError(
            f"{what} needs a model that reads every text alike, and this one has a Router with routes for queries and "
            "documents. Take one of its encoders, saved as a model of its own, or use sentence-transformers for it."
        )
