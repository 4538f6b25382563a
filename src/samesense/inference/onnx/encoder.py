"""Encode with an exported model, without torch: by onnxruntime and the tokenizers library."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from samesense.encoder.distinct import token_batches
from samesense.encoder.names import PROMPTS
from samesense.errors import ModelError
from samesense.failures import first_line
from samesense.inference.onnx.format import (
    DESCRIPTION,
    GRAPHS,
    TOKENIZER,
    VECTOR_OUTPUT,
    OnnxName,
    graph_file,
    read_description,
)
from samesense.inference.onnx.token_encoder import TokenEncoder, cut_to, thread_count
from samesense.places import check_inside
from samesense.types import Embeddings

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


class OnnxEncoder(TokenEncoder):
    """Encodes with a folder written by ``samesense export``, by the backend ``onnx`` or ``onnx-int8``."""

    def __init__(
        self, folder: str | Path, name: OnnxName = "onnx", *, deterministic: bool = False, threads: int | None = None
    ) -> None:
        """Open a folder; ModelError if the folder, its graph or its tokenizer cannot be read.

        ``deterministic`` encodes every text in a batch of its own and on one thread, so that the bits of its vector
        depend on nothing else; several texts are encoded in parallel. int8 needs this most, because its scale depends
        on all texts of a batch. ``threads`` defaults to ``OMP_NUM_THREADS``, or those the process may use.
        """
        path = Path(folder).expanduser()
        description = read_description(path)
        super().__init__(path, description, _tokenizer(path, description.max_tokens))
        self.name: OnnxName = name
        self.deterministic = deterministic
        self._threads = thread_count(threads)
        self._session = _session(self._graph(), 1 if deterministic else self._threads, deterministic)
        self._check_session()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path of the folder and the identity; unpickling opens the graph again."""
        return _reopen, (self.folder.absolute(), self.name, self.deterministic, self._threads, self.identity)

    def _graph(self) -> Path:
        """Return the path of the graph; ModelError if it is not the file that was exported."""
        if self.name not in self.description.graphs:
            hint = ""
            if self.name == "onnx-int8":
                hint = " Export the model again with `int8`."
            raise ModelError(
                f"{self.folder} has no graph for the backend {self.name}; it has "
                f"{', '.join(self.description.graphs)}.{hint}"
            )
        graph = self.folder / GRAPHS[self.name]
        check_inside(self.folder, DESCRIPTION, TOKENIZER, graph, graph.with_name(f"{graph.name}.data"))
        if not graph.is_file() or graph_file(graph) != self.description.graphs[self.name]:
            raise ModelError(
                f"{graph} is not the graph that was exported and checked: it is absent, damaged, or another one. "
                "Export the model again."
            )
        return graph

    def _check_session(self) -> None:
        """Raise ModelError if inputs or output of the graph differ from the description."""
        takes = sorted(tensor.name for tensor in self._session.get_inputs())
        # A transformer's graph has a second output, the states of its tokens.
        gives = next((tensor.shape[-1] for tensor in self._session.get_outputs() if tensor.name == VECTOR_OUTPUT), None)
        inputs = sorted(self.description.inputs)
        dim = self.description.dim
        if takes != inputs or gives != dim:
            raise ModelError(
                f"{self.folder / DESCRIPTION} says that its graph takes {', '.join(inputs)} and gives {dim} numbers; "
                f"it takes {', '.join(takes)} and gives {gives}. Export the model again."
            )

    @property
    def identity(self) -> str:
        """A text that only models with the same vectors share."""
        description = self.description
        reading = description.model_dump(
            include={"prompt", "max_tokens", "pad_token", "padding_side", "special_tokens"}
        )
        content = [description.graphs[self.name].sha256, self._tokenizer.to_str(), reading, self.deterministic]
        if self.tells_tasks_apart:
            content.append({task: self.prompt_of(task) for task in PROMPTS})
        return json.dumps({"backend": self.name, "content": content})

    @property
    def protocol(self) -> str:
        """Everything that changes a figure, in words."""
        description = self.description
        longest = "inputs of any length"
        if description.max_tokens is not None:
            longest = f"at most {description.max_tokens} tokens"
        details = ["cosine", f"{description.pooling} pooling", self.name, longest]
        if description.prompt:
            details.append(f"prompt {description.prompt!r}")
        return ", ".join(details)

    def embed(self, encodings: list[Encoding], budget: int) -> Embeddings:
        """Return the vectors of tokenised texts, computed by the graph; see :class:`TokenEncoder`."""
        if self.deterministic:
            return self._alone(encodings)
        return self._together(encodings, budget)

    def _together(self, encodings: list[Encoding], budget: int) -> Embeddings:
        out = np.empty((len(encodings), self.description.dim), dtype=np.float32)
        for indices in token_batches([len(encoding.ids) for encoding in encodings], budget):
            out[indices] = self._run([encodings[index] for index in indices])
        return out

    def _alone(self, encodings: list[Encoding]) -> Embeddings:
        """Return the vectors, each from a batch of its own, so that no kernel's shape depends on other texts."""
        with ThreadPoolExecutor(self._threads) as pool:
            # map keeps the order of the texts.
            return np.concatenate(list(pool.map(lambda encoding: self._run([encoding]), encodings)))

    def _run(self, encodings: list[Encoding]) -> Embeddings:
        width = max(1, *(len(encoding.ids) for encoding in encodings))
        feed = {name: self._padded(name, encodings, width) for name in self.description.inputs}
        try:
            rows: Embeddings = self._session.run([VECTOR_OUTPUT], feed)[0]
        except Exception as error:  # onnxruntime has one class for each of its codes, without a common base
            raise ModelError(
                f"The graph of {self.folder} cannot be computed: {first_line(error)}. Do tokenizer and graph "
                "belong together? Export the model again."
            ) from error
        return rows

    def _padded(self, name: str, encodings: list[Encoding], width: int) -> npt.NDArray[np.int64]:
        """Return an input of the graph, padded, ``(batch, width)``."""
        # Only ids have a padding token: 0 is no attention, and the first type.
        fill = self.description.pad_token if name == "input_ids" else 0
        matrix = np.full((len(encodings), width), fill, dtype=np.int64)
        left = self.description.padding_side == "left"
        for row, encoding in zip(matrix, encodings, strict=True):
            values = getattr(encoding, _FIELDS[name])
            if values:
                start = width - len(values) if left else 0
                row[start : start + len(values)] = values
        return matrix


def _reopen(folder: Path, name: OnnxName, deterministic: bool, threads: int, identity: str) -> OnnxEncoder:
    """Open the folder of a pickled encoder; ModelError if it holds another model now."""
    encoder = OnnxEncoder(folder, name, deterministic=deterministic, threads=threads)
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

    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # tokenizers raises plain Exception
        raise ModelError(f"Cannot read the tokenizer {folder / TOKENIZER}: {error}. Export the model again.") from error
    return cut_to(tokenizer, max_tokens)


def _session(graph: Path, threads: int, deterministic: bool) -> Any:
    """Return a session whose threads sleep while they wait, instead of spinning."""
    # Of an extra: only exported folders need it.
    import onnxruntime

    if os.environ.get("ORT_DISABLE_TELEMETRY") not in {"0", "false"}:
        onnxruntime.disable_telemetry_events()  # Windows does not read the variable
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.use_deterministic_compute = deterministic
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has one class for each of its codes, without a common base
        raise ModelError(f"Cannot open the graph {graph}: {first_line(error)}. Export the model again.") from error
