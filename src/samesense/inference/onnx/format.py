"""The files of an exported folder, and its description: how texts are read, and how close the graphs are to torch."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeGuard, get_args

from pydantic import BaseModel, ConfigDict, Field

from samesense.errors import ModelError
from samesense.hashes import content_hash
from samesense.results.shown import Shown
from samesense.results.tables import text_table
from samesense.schemas import read_checked

DESCRIPTION = "samesense_onnx.json"
GraphName = Literal["onnx", "onnx-int8", "openvino-int8"]
"""Graphs that an exported folder may hold."""

GraphBackend = Literal["onnx", "onnx-int8", "openvino", "openvino-bfloat16", "openvino-int8"]
"""Backends that run these graphs."""

GRAPHS: dict[GraphName, str] = {
    "onnx": "onnx/model.onnx",
    "onnx-int8": "onnx/model_quantized.onnx",
    "openvino-int8": "openvino/openvino_model_qint8_quantized.xml",
}
"""File of each graph, named as optimum, transformers.js and sentence-transformers expect."""

VECTOR_OUTPUT = "sentence_embedding"
"""Output of a graph: the vector of a text."""

TOKEN_OUTPUT = "last_hidden_state"
"""Output of a graph: the hidden states of the tokens, before pooling."""

TOKENIZER = "tokenizer.json"
FORMAT = 1
"""Version of the description's format; other versions are refused."""


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class GraphFile(_StrictModel):
    """A graph: its size in bytes and the hash of its content, external weights included."""

    bytes: int
    sha256: str


class Parity(_StrictModel):
    """How far a backend's vectors are from those of torch in float32, on the sentences of the check."""

    texts: int  # number of sentences, of different lengths, each encoded in a batch and alone
    least_cosine: float  # lowest cosine of a vector with that of torch
    scores: float  # largest difference of the cosine of two consecutive sentences from that of torch
    # Largest difference of a coordinate between a text alone and in a batch, as a fraction of the vector's length.
    alone: float


class Agreement(_StrictModel):
    """Agreement of a graph's scores of pairs with those of torch in float32."""

    pairs: int  # number of pairs
    largest: float  # largest difference of a score
    ranks: float  # Spearman correlation of both scores

    def text(self) -> str:
        """Return the agreement as text."""
        return (
            f"scores differ by at most {self.largest:.2g}, ranks agree: Spearman {self.ranks:.4f} ({self.pairs} pairs, "
            "beside torch in float32)"
        )


class Drift(_StrictModel):
    """Spearman on labelled pairs, times 100, of each backend compared with torch in float32."""

    data: str  # name of the pairs
    pairs: int  # number of pairs
    reference: float  # Spearman of torch in float32
    points: dict[str, float]  # each backend's Spearman minus the reference


class Ranges(_StrictModel):
    """The texts on which the ranges of activations were measured, for a graph with static int8 quantization."""

    texts: int  # number of texts
    source: str  # where they are from


class Description(Shown, _StrictModel):
    """The description of an exported folder.

    Attributes:
        format: version of this description.
        samesense: version of the library that wrote it.
        dim: dimensions of a vector.
        max_tokens: longest input, special tokens included; longer ones are truncated. ``None`` for no limit.
        prompt: text put before every input.
        inputs: inputs of the graph, each ``(batch, tokens)`` of int64.
        pad_token: id of the padding token.
        padding_side: ``"right"`` or ``"left"``.
        special_tokens: whether the tokenizer adds its special tokens.
        pooling: the pooling, in words; it is part of the graph.
        modules: names of the modules in the graph, in order.
        graphs: the graphs and their files.
        ranges: texts behind the scales of ``openvino-int8``, if the folder has it.
        parity: how close the vectors of each backend are to those of torch.
        agreement: how close the scores of each backend are to those of torch, on the given pairs or the sample.
        drift: change of Spearman on the given pairs, if any.
    """

    format: int = FORMAT
    samesense: str
    dim: int = Field(ge=1)
    max_tokens: int | None = Field(ge=1, lt=2**31)
    prompt: str
    inputs: list[Literal["input_ids", "attention_mask", "token_type_ids"]]
    pad_token: int = Field(ge=0, lt=2**31)
    padding_side: Literal["left", "right"]
    special_tokens: bool
    pooling: str
    modules: list[str]
    graphs: dict[GraphName, GraphFile]
    ranges: Ranges | None = None
    parity: dict[str, Parity] = {}
    agreement: dict[str, Agreement] = {}
    drift: Drift | None = None

    def __str__(self) -> str:
        longest = "texts of any length"
        if self.max_tokens is not None:
            longest = f"{self.max_tokens} tokens of a text"
        lines = [f"exported model, {self.dim} dimensions, {self.pooling} pooling, reads {longest}"]
        columns = ["backend", "MB", "least cosine to torch", "largest difference of a score"]
        if self.drift is not None:
            columns.append("drift of Spearman x100")
        rows = []
        for backend, graph in self.graphs.items():
            parity = self.parity.get(backend)
            agreement = self.agreement.get(backend)
            cells = [backend, f"{graph.bytes / 1e6:.1f}"]
            cells += ["" if parity is None else f"{parity.least_cosine:.6f}"]
            cells += ["" if agreement is None else f"{agreement.largest:.2g}"]
            if self.drift is not None:
                cells.append(f"{self.drift.points.get(backend, 0.0):+.2f}")
            rows.append(cells)
        lines.append(text_table(columns, rows, left=columns[:1]))
        if self.ranges is not None:
            lines.append(f"ranges of openvino-int8 from {self.ranges.texts} texts of {self.ranges.source}")
        if self.drift is not None:
            lines.append(f"drift on {self.drift.data}, {self.drift.pairs} pairs; torch has {self.drift.reference:.2f}")
        return "\n".join(lines)


def is_exported(name: str | Path) -> bool:
    """Return whether ``name`` is a folder that ``samesense export`` wrote."""
    return (Path(name).expanduser() / DESCRIPTION).is_file()


def read_description(folder: str | Path) -> Description:
    """Return the description of an exported folder; ModelError if it is absent, damaged, or of another version."""
    path = Path(folder).expanduser() / DESCRIPTION
    description = read_checked(path, Description, fix="Export the model again.", error=ModelError)
    if description.format != FORMAT:
        raise ModelError(
            f"{path} is of format {description.format}; this samesense reads {FORMAT}. Export the model again."
        )
    return description


def is_graph_backend(backend: str) -> TypeGuard[GraphBackend]:
    """Return whether a backend runs an exported graph."""
    return backend in get_args(GraphBackend)


def graph_name(backend: GraphBackend) -> GraphName:
    """Return the graph that a backend runs: OpenVINO reads the ONNX graph, and computes it in either precision."""
    if backend == "openvino" or backend == "openvino-bfloat16":  # mypy does not narrow by `in`
        return "onnx"
    return backend


def graph_paths(graph: Path) -> list[Path]:
    """Return the file of a graph, and the file beside it where its weights may be."""
    if graph.suffix == ".xml":
        return [graph, graph.with_suffix(".bin")]
    return [graph, graph.with_name(f"{graph.name}.data")]


def graph_file(path: Path) -> GraphFile:
    """Return size and hash of a graph, weights in a file beside it included."""
    paths = [file for file in graph_paths(path) if file.exists()]
    return GraphFile(bytes=sum(file.stat().st_size for file in paths), sha256=content_hash(paths))
