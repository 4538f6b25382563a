"""An encoder that computes embeddings with a SentenceTransformer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sentence_transformers import SentenceTransformer

from samesense.encoder.assembly.pooling import describe_pooling
from samesense.encoder.distinct import encode_distinct
from samesense.encoder.encode import encode
from samesense.encoder.forward.batching import tokenize_texts
from samesense.encoder.forward.dropout import without_dropout
from samesense.encoder.forward.precision import autocast, inference_precision
from samesense.encoder.forward.reading import UnreadWatch, reading_of
from samesense.encoder.forward.routes import (
    has_routes,
    longest_of,
    prompt_of,
    route_of,
    say_default_route,
    tells_tasks_apart,
)
from samesense.encoder.names import PROMPTS
from samesense.encoder.saving.storage import model_identity
from samesense.encoder.windows import Reading
from samesense.execution.threads import survive_forks, torch_threads
from samesense.execution.unread import note
from samesense.types import Embeddings, Precision, TaskName


class TorchEncoder:
    """An :class:`~samesense.inference.models.model.Encoder` by torch, ``torch-float32`` or ``torch-bfloat16``."""

    def __init__(
        self,
        model: SentenceTransformer,
        precision: Precision = "auto",
        *,
        deterministic: bool = False,
        threads: int | None = None,
    ) -> None:
        """Wrap a model, which keeps its own maximum length, prompt and pooling.

        ``precision`` ``"auto"`` is bfloat16 if the device supports it; ``deterministic`` encodes every text in a batch
        of its own, so that its bits depend on nothing else; ``threads`` is the number of threads, ``None`` for the
        current one.
        """
        self.sentence_transformer = model
        self._precision = inference_precision(precision, model.device)
        self._deterministic = deterministic
        self._threads = threads
        self.name = f"torch-{self._precision}"
        survive_forks()

    @property
    def protocol(self) -> str:
        """Everything that changes a figure, in words."""
        model = self.sentence_transformer
        longest = longest_of(model, None)
        details = [
            "cosine",
            f"{describe_pooling(model)} pooling",
            self._precision,
            f"at most {longest} tokens" if isinstance(longest, int) else "inputs of any length",
        ]
        if model.default_prompt_name is not None:
            details.append(f"prompt {model.prompts[model.default_prompt_name]!r}")
        if has_routes(model):
            details.append(f"route {route_of(model, None)!r} for texts that are neither query nor document")
        elif self.tells_tasks_apart:
            details += [f"prompt of a {task} {prompt_of(model, task)!r}" for task in PROMPTS]
        if model.truncate_dim is not None:
            details.append(f"first {model.truncate_dim} dimensions")
        return ", ".join(details)

    @property
    def identity(self) -> str:
        """The identity; see :func:`~samesense.encoder.saving.storage.model_identity`."""
        return model_identity(self.sentence_transformer, self._precision)

    @property
    def tells_tasks_apart(self) -> bool:
        """Whether queries and documents are encoded differently."""
        return tells_tasks_apart(self.sentence_transformer)

    def reading_for(self, task: TaskName | None) -> Reading:
        """Return how the model reads texts of a task."""
        return reading_of(self.sentence_transformer, task)

    def encode(
        self,
        texts: Sequence[str],
        *,
        normalize: bool = False,
        on_progress: Callable[[int], None] | None = None,
        task: TaskName | None = None,
    ) -> Embeddings:
        """Return the embeddings; see :func:`samesense.encoder.encode.encode`."""
        run = _encode_alone if self._deterministic else encode
        with torch_threads(1 if self._deterministic else self._threads):
            return run(
                self.sentence_transformer,
                texts,
                precision=self._precision,
                normalize=normalize,
                on_progress=on_progress,
                task=task,
            )


def _encode_alone(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    precision: Precision = "auto",
    normalize: bool = False,
    on_progress: Callable[[int], None] | None = None,
    task: TaskName | None = None,
) -> Embeddings:
    """Return the embeddings of ``texts``, bit by bit independent of the other texts.

    Every text is a batch of its own: the shape of a batch decides how products are split and summed, and so the last
    bits. They also depend on the number of threads, which must be one. See :func:`samesense.encoder.encode.encode`.
    """
    say_default_route(model, task)
    watch = UnreadWatch(model, task)
    prompt = prompt_of(model, task)
    as_task = {} if task is None else {"task": task}
    always_read = _is_read(model, "", task)  # with special tokens every text has tokens

    def embed(block: list[str]) -> Embeddings:
        watch.read(block)
        rows = np.zeros((len(block), model.get_embedding_dimension() or 0), dtype=np.float32)
        read = [index for index, text in enumerate(block) if always_read or _is_read(model, text, task)]
        with autocast(model.device, inference_precision(precision, model.device)):
            if read:
                some = [block[index] for index in read]
                rows[read] = model.encode(some, batch_size=1, show_progress_bar=False, prompt=prompt, **as_task)
        return rows

    with without_dropout(model):
        rows = encode_distinct(
            texts, embed, model.get_embedding_dimension() or 0, normalize=normalize, on_progress=on_progress
        )
    note(watch.unread, model)
    return rows


def _is_read(model: SentenceTransformer, text: str, task: TaskName | None) -> bool:
    """Return whether a text has any tokens; an empty text has none if the tokenizer adds no special tokens."""
    mask = tokenize_texts(model, [text], task=task).get("attention_mask")
    return mask is None or bool(mask.any())
