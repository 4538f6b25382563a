"""Models that encode queries and documents differently, by separate routes or separate prompts.

A model with a ``Router`` of sentence-transformers combines two encoders. Texts without a task take its default route,
with one warning per model, as such a model is meant for queries against documents.
"""

from __future__ import annotations

import logging
import weakref
from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Router

from samesense.encoder.names import PROMPTS, prompt_for
from samesense.errors import ModelError
from samesense.types import TaskName

logger = logging.getLogger(__name__)

_announced: weakref.WeakSet[Any] = weakref.WeakSet()


def has_routes(model: SentenceTransformer | CrossEncoder) -> bool:
    """Return whether a model has a router."""
    return any(isinstance(module, Router) for module in model)


def default_prompt(model: SentenceTransformer | CrossEncoder) -> str:
    """Return the text of a model's default prompt; empty for none."""
    if not model.default_prompt_name:
        return ""
    return model.prompts.get(model.default_prompt_name) or ""


def prompt_of(model: SentenceTransformer | CrossEncoder, task: TaskName | None) -> str:
    """Return the prompt that a model reads before texts of a task; see :func:`prompt_for`."""
    prompts = {} if getattr(model, FIXED, False) else model.prompts
    return prompt_for(task, prompts, default_prompt(model))


FIXED = "samesense_prompt_for_every_task"
"""Attribute of a model that was opened with a prompt, which then also replaces the prompts of tasks."""


def tells_tasks_apart(model: SentenceTransformer | CrossEncoder) -> bool:
    """Return whether a model may encode queries, documents and texts without a task differently."""
    prompts = {prompt_of(model, task) for task in (None, *PROMPTS)}
    return has_routes(model) or len(prompts) > 1


def route_of(model: SentenceTransformer | CrossEncoder, task: TaskName | None) -> str | None:
    """Return the name of the route for texts of a task; ``None`` for a model without routes.

    ModelError if there is no such route, or no default route for texts without a task.
    """
    if not has_routes(model):
        return None
    router = next(module for module in model if isinstance(module, Router))
    try:
        route: str = router._resolve_route(task=task, modality="text")  # there is no public method for this
    except ValueError as error:
        kind = "texts of no task" if task is None else f"a {task}"
        raise ModelError(
            f"The model sends texts by routes ({', '.join(router.sub_modules)}), and has none for {kind}. Say "
            "`task`, query or document, or give the Router a default_route."
        ) from error
    return route


def say_default_route(model: SentenceTransformer, task: TaskName | None) -> None:
    """Warn once per model which route texts without a task take."""
    if task is None and has_routes(model) and model not in _announced:
        _announced.add(model)
        router = next(module for module in model if isinstance(module, Router))
        logger.warning(
            f"The model has routes ({', '.join(router.sub_modules)}), and these texts go by {route_of(model, None)!r}. "
            "Queries go by their own in index query, match, rerank and serve; encode takes `task`."
        )


def input_of(model: SentenceTransformer | CrossEncoder, task: TaskName | None) -> Any:
    """Return the first module on the route of a task."""
    route = route_of(model, task)
    if route is None:
        return model[0]
    router = next(module for module in model if isinstance(module, Router))
    return router.sub_modules[route][0]


def longest_of(model: SentenceTransformer | CrossEncoder, task: TaskName | None) -> int | None:
    """Return the maximum length in tokens for texts of a task; ``None`` for no limit."""
    module = input_of(model, task)
    task_length = None if task is None else getattr(module, f"{task}_length", None)
    longest = task_length
    if not isinstance(task_length, int):
        longest = getattr(module, "max_seq_length", None)
    if isinstance(longest, int):
        return longest
    return None


def refuse_routes(model: SentenceTransformer, purpose: str) -> None:
    """Raise ModelError if a model has routes, where a single encoder is needed."""
    if has_routes(model):
        raise ModelError(
            f"{purpose} needs a model that reads every text alike, and this one has a Router with routes for queries "
            "and documents. Take one of its encoders, saved as a model of its own, or use sentence-transformers for it."
        )
