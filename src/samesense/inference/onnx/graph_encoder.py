"""Base class of encoders that run an exported graph: batches, padding and identity; a subclass runs the graph."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from samesense.encoder.distinct import token_batches
from samesense.encoder.names import PROMPTS
from samesense.errors import ModelError
from samesense.failures import first_line, opening
from samesense.inference.onnx.format import (
    DESCRIPTION,
    GRAPHS,
    TOKENIZER,
    GraphBackend,
    graph_file,
    graph_name,
    graph_paths,
    read_description,
)
from samesense.inference.onnx.token_encoder import TokenEncoder, cut_to, thread_count
from samesense.places import check_inside
from samesense.types import Embeddings

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

EXPORT_FLAGS = {"onnx-int8": "--int8", "openvino-int8": "--openvino-int8"}
"""Flag of ``samesense export`` that writes the graph of a backend; the others have that of every export."""


class GraphEncoder(TokenEncoder):
    """Encodes with a folder written by ``samesense export``; a subclass opens and runs the graph."""

    def __init__(
        self,
        folder: str | Path,
        name: GraphBackend = "onnx",
        *,
        deterministic: bool = False,
        threads: int | None = None,
    ) -> None:
        """Open a folder; ModelError if the folder, its graph or its tokenizer cannot be read.

        ``deterministic`` encodes every text in a batch of its own and on one thread, so that the bits of its vector
        depend on nothing else; several texts are encoded in parallel. onnx-int8 needs this most, because its scale
        depends on all texts of a batch. ``threads`` defaults to ``OMP_NUM_THREADS``, or those the process may use.
        """
        path = Path(folder).expanduser()
        description = read_description(path)
        super().__init__(path, description, _tokenizer(path, description.max_tokens))
        self.name: GraphBackend = name
        self.deterministic = deterministic
        self._threads = thread_count(threads)
        self._check_signature(*self._open_graph(self._graph()))

    @abstractmethod
    def _open_graph(self, graph: Path) -> tuple[list[str], int | None]:
        """Open a graph, and return the names of its inputs and the width of its vectors."""

    @abstractmethod
    def _infer(self, feed: Mapping[str, npt.NDArray[np.int64]]) -> Embeddings:
        """Return the vectors of a batch, whose inputs are each ``(batch, tokens)``; called from several threads."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path of the folder and the identity; unpickling opens the graph again."""
        return _reopen, (
            type(self),
            self.folder.absolute(),
            self.name,
            self.deterministic,
            self._threads,
            self.identity,
        )

    def _graph(self) -> Path:
        """Return the path of the graph; ModelError if it is not the file that was exported."""
        name = graph_name(self.name)
        if name not in self.description.graphs:
            hint = ""
            if name in EXPORT_FLAGS:
                hint = f" Export the model again with {EXPORT_FLAGS[name]}."
            raise ModelError(
                f"{self.folder} has no graph for the backend {self.name}; it has "
                f"{', '.join(self.description.graphs)}.{hint}"
            )
        graph = self.folder / GRAPHS[name]
        check_inside(self.folder, DESCRIPTION, TOKENIZER, *graph_paths(graph))
        if not graph.is_file() or graph_file(graph) != self.description.graphs[name]:
            raise ModelError(
                f"{graph} is not the graph that was exported and checked: it is absent, damaged, or another one. "
                "Export the model again."
            )
        return graph

    def _check_signature(self, takes: list[str], gives: int | None) -> None:
        """Raise ModelError if inputs or output of the graph differ from the description."""
        inputs = sorted(self.description.inputs)
        dim = self.description.dim
        if sorted(takes) != inputs or gives != dim:
            raise ModelError(
                f"{self.folder / DESCRIPTION} says that its graph takes {', '.join(inputs)} and gives {dim} numbers; "
                f"it takes {', '.join(sorted(takes))} and gives {gives}. Export the model again."
            )

    @property
    def identity(self) -> str:
        """A text that only models with the same vectors share."""
        description = self.description
        reading = description.model_dump(
            include={"prompt", "max_tokens", "pad_token", "padding_side", "special_tokens"}
        )
        content = [
            description.graphs[graph_name(self.name)].sha256,
            self._tokenizer.to_str(),
            reading,
            self.deterministic,
        ]
        if self.tells_tasks_apart:
            content.append({task: self.prompt_of(task) for task in PROMPTS})
        return json.dumps({"backend": self.name, "content": content})

    @property
    def protocol(self) -> str:
        """Everything that changes a figure, in words."""
        return ", ".join(self.protocol_details(self.name))

    def embed(self, encodings: list[Encoding], budget: int) -> Embeddings:
        """Return the vectors of tokenised texts, computed by the graph; see :class:`TokenEncoder`."""
        if self.deterministic:
            return self._alone(encodings)
        return self._together(encodings, budget)

    def _together(self, encodings: list[Encoding], budget: int) -> Embeddings:
        out = np.empty((len(encodings), self.description.dim), dtype=np.float32)

        def run(indices: list[int]) -> None:
            out[indices] = self._run([encodings[index] for index in indices])

        self._run_batches(run, list(token_batches([len(encoding.ids) for encoding in encodings], budget)))
        return out

    def _run_batches(self, run: Callable[[list[int]], None], batches: list[list[int]]) -> None:
        """Run every batch, one after another; a subclass may run several at once."""
        for indices in batches:
            run(indices)

    def _alone(self, encodings: list[Encoding]) -> Embeddings:
        """Return the vectors, each from a batch of its own, so that no kernel's shape depends on other texts."""
        with ThreadPoolExecutor(self._threads) as pool:
            # map keeps the order of the texts.
            return np.concatenate(list(pool.map(lambda encoding: self._run([encoding]), encodings)))

    def inputs(self, encodings: list[Encoding]) -> dict[str, npt.NDArray[np.int64]]:
        """Return the inputs of the graph for a batch, padded to its longest text, each ``(batch, tokens)``."""
        width = max(1, *(len(encoding.ids) for encoding in encodings))
        return {name: self._padded(name, encodings, width) for name in self.description.inputs}

    def _run(self, encodings: list[Encoding]) -> Embeddings:
        try:
            return self._infer(self.inputs(encodings))
        except Exception as error:  # onnxruntime and OpenVINO raise many classes, without a common base
            raise ModelError(
                f"The graph of {self.folder} cannot be computed: {first_line(error)}. Do tokenizer and graph "
                "belong together? Export the model again."
            ) from error

    def _padded(self, name: str, encodings: list[Encoding], width: int) -> npt.NDArray[np.int64]:
        """Return an input of the graph, padded, ``(batch, width)``."""
        # Only ids have a padding token: 0 is no attention, and the first type.
        fill = self.description.pad_token if name == "input_ids" else 0
        token_lists = [getattr(encoding, _FIELDS[name]) for encoding in encodings]
        if all(len(values) == width for values in token_lists):
            return np.array(token_lists, dtype=np.int64)
        matrix = np.full((len(encodings), width), fill, dtype=np.int64)
        left = self.description.padding_side == "left"
        for row, values in zip(matrix, token_lists, strict=True):
            if values:
                start = width - len(values) if left else 0
                row[start : start + len(values)] = values
        return matrix


def _reopen(
    kind: type[GraphEncoder], folder: Path, name: GraphBackend, deterministic: bool, threads: int, identity: str
) -> GraphEncoder:
    """Open the folder of a pickled encoder; ModelError if it holds another model now."""
    encoder = kind(folder, name, deterministic=deterministic, threads=threads)
    if encoder.identity != identity:
        raise ModelError(
            f"What was pickled is the exported model in {folder}, which holds another one now. Load that one, or put "
            "the former back."
        )
    return encoder


_FIELDS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""Attribute of the tokenizer's ``Encoding`` for each input of a graph."""

INPUTS = tuple(_FIELDS)
"""Inputs that an exported graph may have."""


def _tokenizer(folder: Path, max_tokens: int | None) -> Tokenizer:
    from tokenizers import Tokenizer

    with opening(f"the tokenizer {folder / TOKENIZER}", "Export the model again."):
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    return cut_to(tokenizer, max_tokens)
