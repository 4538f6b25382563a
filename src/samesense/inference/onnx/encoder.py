"""An exported model without torch: onnxruntime and the tokenizers library, texts in, embeddings out."""

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
    """A folder written by ``samesense export``, ready to encode by the backend ``onnx`` or ``onnx-int8``."""

    def __init__(
        self, folder: str | Path, name: OnnxName = "onnx", *, deterministic: bool = False, threads: int | None = None
    ) -> None:
        """Open a folder; ModelError if the folder, its graph or its tokenizer cannot be read.

        ``deterministic`` computes every text alone and on one thread, so that the bits of its vector depend on nothing
        else; several texts are computed at the same time. int8 needs it most: its scale is taken from all texts of a
        batch together. ``threads`` are ``OMP_NUM_THREADS``, or those the process may use, unless given.
        """
        place = Path(folder).expanduser()
        description = read_description(place)
        super().__init__(place, description, _tokenizer(place, description.max_tokens))
        self.name: OnnxName = name
        self.deterministic = deterministic
        self._threads = thread_count(threads)
        self._session = _session(self._graph(), 1 if deterministic else self._threads, deterministic)
        self._check_session()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the place of the folder and what it holds: a graph is opened again where it is unpickled."""
        return _reopened, (self.folder.absolute(), self.name, self.deterministic, self._threads, self.identity)

    def _graph(self) -> Path:
        """Return the graph; ModelError if it is not the one that was exported."""
        if self.name not in self.description.graphs:
            hint = " Export the model again with `int8`." if self.name == "onnx-int8" else ""
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
        """Raise ModelError if the graph takes or gives something else than the description says."""
        takes = sorted(tensor.name for tensor in self._session.get_inputs())
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
        """A text that is the same only for models that give the same vectors."""
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
        """In words, everything that changes a figure."""
        description = self.description
        longest = (
            "inputs of any length" if description.max_tokens is None else f"at most {description.max_tokens} tokens"
        )
        details = ["cosine", f"{description.pooling} pooling", self.name, longest]
        if description.prompt:
            details.append(f"prompt {description.prompt!r}")
        return ", ".join(details)

    def embed(self, encodings: list[Encoding], budget: int) -> Embeddings:
        """Return the vectors of tokenised texts by the graph; see :class:`TokenEncoder`."""
        return self._alone(encodings) if self.deterministic else self._together(encodings, budget)

    def _together(self, encodings: list[Encoding], budget: int) -> Embeddings:
        out = np.empty((len(encodings), self.description.dim), dtype=np.float32)
        for indices in token_batches([len(encoding.ids) for encoding in encodings], budget):
            out[indices] = self._run([encodings[index] for index in indices])
        return out

    def _alone(self, encodings: list[Encoding]) -> Embeddings:
        """Return each row from a run of its own: the batch, and so every kernel's shape, is that of one text."""
        with ThreadPoolExecutor(self._threads) as pool:
            return np.concatenate(list(pool.map(lambda encoding: self._run([encoding]), encodings)))

    def _run(self, encodings: list[Encoding]) -> Embeddings:
        width = max(1, *(len(encoding.ids) for encoding in encodings))
        feed = {name: self._padded(name, encodings, width) for name in self.description.inputs}
        try:
            rows: Embeddings = self._session.run([VECTOR_OUTPUT], feed)[0]
        except Exception as error:  # the library raises its own, one class for each of its codes
            raise ModelError(
                f"The graph of {self.folder} cannot be computed: {first_line(error)}. Do tokenizer and graph "
                "belong together? Export the model again."
            ) from error
        return rows

    def _padded(self, name: str, encodings: list[Encoding], width: int) -> npt.NDArray[np.int64]:
        """Return one input of the graph, ``(batch, width)``."""
        fill = self.description.pad_token if name == "input_ids" else 0
        matrix = np.full((len(encodings), width), fill, dtype=np.int64)
        left = self.description.padding_side == "left"
        for row, encoding in zip(matrix, encodings, strict=True):
            values = getattr(encoding, _FIELDS[name])
            if values:
                row[slice(width - len(values), None) if left else slice(len(values))] = values
        return matrix


def _reopened(folder: Path, name: OnnxName, deterministic: bool, threads: int, identity: str) -> OnnxEncoder:
    """Open a folder of which the encoder was pickled; ModelError if it holds another model now."""
    encoder = OnnxEncoder(folder, name, deterministic=deterministic, threads=threads)
    if encoder.identity != identity:
        raise ModelError(
            f"What was pickled is the exported model in {folder}, which holds another one now. Load that one, or put "
            "the former back."
        )
    return encoder


_FIELDS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""Where an input of the graph stands in what the tokenizer gives."""

INPUTS = tuple(_FIELDS)
"""Inputs that an exported graph may have."""


def _tokenizer(folder: Path, max_tokens: int | None) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # the library raises nothing narrower
        raise ModelError(f"Cannot read the tokenizer {folder / TOKENIZER}: {error}. Export the model again.") from error
    return cut_to(tokenizer, max_tokens)


def _session(graph: Path, threads: int, deterministic: bool) -> Any:
    """Return a session whose threads sleep while they wait, and leave the processor to others."""
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
    except Exception as error:  # the library raises its own, one class for each of its codes
        raise ModelError(f"Cannot open the graph {graph}: {first_line(error)}. Export the model again.") from error
