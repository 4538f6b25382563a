"""Base class of encoders without torch: the tokenizers library makes tokens, a subclass computes their vectors."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.encoder.distinct import encode_distinct
from samesense.encoder.names import PROMPTS, prompt_for
from samesense.encoder.tokens import reading_by, unknown_id
from samesense.encoder.windows import Reading
from samesense.errors import ModelError
from samesense.execution.threads import cores
from samesense.execution.unread import Unread, note
from samesense.files import read_json
from samesense.inference.onnx.format import Description
from samesense.places import check_inside
from samesense.types import Embeddings, TaskName

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

SETTINGS = "config_sentence_transformers.json"

BATCH_TOKENS = 1024
"""Tokens of a batch, padding included."""


class TokenEncoder(ABC):
    """Encodes with a model in a folder: ``description`` says how texts are read, :meth:`embed` computes vectors."""

    damage = "Export the model again."
    """The fix in messages about a damaged file of the folder."""

    def __init__(self, folder: Path, description: Description, tokenizer: Tokenizer) -> None:
        # Some of its files are read later, when the process may be in another folder.
        self.folder = folder.absolute()
        self.description = description
        self._tokenizer = tokenizer
        self._added_tokens: dict[str, int] = {}  # by prompt

    @abstractmethod
    def embed(self, encodings: list[Encoding], budget: int) -> Embeddings:
        """Return the vectors of tokenised texts, at most ``budget`` tokens at once, padding included."""

    def protocol_details(self, arithmetic: str) -> list[str]:
        """Return in words what changes a figure."""
        description = self.description
        longest = "inputs of any length"
        if description.max_tokens is not None:
            longest = f"at most {description.max_tokens} tokens"
        details = ["cosine", f"{description.pooling} pooling", arithmetic, longest]
        if description.prompt:
            details.append(f"prompt {description.prompt!r}")
        return details

    def reading_for(self, task: TaskName | None) -> Reading:
        """Return how the model reads texts of a task."""
        description = self.description
        return reading_by(
            self._tokenizer,
            prompt=self.prompt_of(task),
            special=description.special_tokens,
            longest=description.max_tokens,
        )

    @cached_property
    def tells_tasks_apart(self) -> bool:
        """Whether queries and documents have prompts of their own."""
        return any(self.prompt_of(task) != self.description.prompt for task in PROMPTS)

    def prompt_of(self, task: TaskName | None) -> str:
        """Return the prompt of a task, or the default prompt if it has none."""
        return prompt_for(task, self._prompts, self.description.prompt)

    @cached_property
    def _prompts(self) -> dict[str, Any]:
        """The prompts of the model by name, as sentence-transformers stores them."""
        prompts = self._settings(SETTINGS).get("prompts")
        if not isinstance(prompts, dict) or not all(isinstance(prompt, str) for prompt in prompts.values()):
            return {}
        return prompts

    @cached_property
    def _leaves_prompt_out(self) -> bool:
        return any(self._settings(path).get("include_prompt") is False for path in self.folder.glob("*/config.json"))

    def _settings(self, name: str | Path) -> dict[str, Any]:
        """Return the JSON object in a file of the folder; an empty one if the file is missing."""
        path = self.folder / name
        check_inside(self.folder, path)
        return read_json(path, self.damage) if path.is_file() else {}

    def encode(
        self,
        texts: Sequence[str],
        *,
        normalize: bool = False,
        batch_tokens: int | None = None,
        on_progress: Callable[[int], None] | None = None,
        task: TaskName | None = None,
    ) -> Embeddings:
        """Return the embeddings of ``texts``, float32 ``(texts, dim)``, in order; see :func:`encode_distinct`.

        ModelError for a ``task`` with its own prompt, if the pooling in the graph excludes the default prompt.
        """
        prompt = self.prompt_of(task)
        if prompt != self.description.prompt and self._leaves_prompt_out:
            raise ModelError(
                f"The graph of {self.folder} leaves the prompt {self.description.prompt!r} out of the mean, and so no "
                f"other; a {task} has the prompt {prompt!r}. Keep to torch for search with this model."
            )
        budget = batch_tokens or BATCH_TOKENS
        unread = Unread()
        unread.longest = self.description.max_tokens or 0

        def embed_block(block: list[str]) -> Embeddings:
            encodings = self._encodings(block, prompt)
            self._count(block, encodings, unread, task)
            return self.embed(encodings, budget)

        rows = encode_distinct(texts, embed_block, self.description.dim, normalize=normalize, on_progress=on_progress)
        note(unread, self)
        return rows

    def _count(self, texts: list[str], encodings: list[Encoding], unread: Unread, task: TaskName | None) -> None:
        """Count texts that are not read in full; see :class:`~samesense.encoder.forward.reading.UnreadWatch`."""
        unread.see(texts)
        longest = self.description.max_tokens
        unknown = unknown_id(self._tokenizer)
        added = self._count_added(self.prompt_of(task))
        suspects = []  # texts with few known tokens: only these are read piece by piece, which is slow
        for text, encoding in zip(texts, encodings, strict=True):
            ids = encoding.ids
            # A text of exactly the full length is not cut; what overflows tells.
            if len(ids) == longest and encoding.overflowing:
                unread.cut.add(text)
            strange = 0 if unknown is None else ids.count(unknown)
            recognised = len(ids) - strange - added
            # As with torch: up to two known tokens may be mere spaces.
            if recognised <= 0 or (strange and recognised <= 2):
                suspects.append(text)
        if not suspects:
            return
        for text, pieces in zip(suspects, self.reading_for(task).pieces_of(suspects), strict=True):
            if not pieces.has_known:
                unread.unknown.add(text)

    def _count_added(self, prompt: str) -> int:
        """Return how many tokens are added to those of a text: those of the prompt, and special ones."""
        if prompt not in self._added_tokens:
            self._added_tokens[prompt] = len(self._encodings([""], prompt)[0].ids)
        return self._added_tokens[prompt]

    def tokenised(self, texts: list[str]) -> list[Encoding]:
        """Return the tokens of texts, after the prompt."""
        return self._encodings(texts, self.description.prompt)

    def token_ids(self, text: str) -> list[int]:
        """Return the token ids of ``text``, prompt and special tokens included."""
        ids: list[int] = self.tokenised([text])[0].ids
        return ids

    def _encodings(self, texts: list[str], prompt: str) -> list[Encoding]:
        try:
            return read_texts(self._tokenizer, self.description, texts, prompt)
        except Exception as error:  # tokenizers raises plain Exception for a damaged file
            raise ModelError(f"The tokenizer of {self.folder} fails ({error}). {self.damage}") from error


def thread_count(threads: int | None) -> int:
    """Return the number of threads: the given one, or ``OMP_NUM_THREADS``, or that of cores the process may use."""
    if threads is not None:
        return threads
    # The variable may list a number for each level of nested threads.
    variable = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if variable.isdigit() and int(variable):
        return int(variable)
    return cores()


def cut_to(tokenizer: Tokenizer, max_tokens: int | None) -> Tokenizer:
    """Return a tokenizer, changed in place, without padding and with truncation to ``max_tokens``, if any."""
    # The file may come with settings of its own.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if max_tokens is not None:
        tokenizer.enable_truncation(max_tokens)
    return tokenizer


def read_texts(tokenizer: Tokenizer, description: Description, texts: Sequence[str], prompt: str) -> list[Encoding]:
    """Return the tokens of texts after a prompt, with special tokens if the model has them."""
    prompted = [prompt + text for text in texts]
    encodings: list[Encoding] = tokenizer.encode_batch(prompted, add_special_tokens=description.special_tokens)
    return encodings
