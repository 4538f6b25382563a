"""Open an exported folder with one of its backends."""

from __future__ import annotations

from pathlib import Path

from samesense.inference.onnx.encoder import OnnxEncoder
from samesense.inference.onnx.format import GraphBackend
from samesense.inference.onnx.graph_encoder import GraphEncoder
from samesense.inference.onnx.openvino_encoder import OpenvinoEncoder


def open_graph(
    folder: str | Path, name: GraphBackend, *, deterministic: bool = False, threads: int | None = None
) -> GraphEncoder:
    """Return the encoder of a backend; ModelError if the folder cannot be read, MissingExtraError without OpenVINO."""
    if name.startswith("openvino"):
        return OpenvinoEncoder(folder, name, deterministic=deterministic, threads=threads)
    return OnnxEncoder(folder, name, deterministic=deterministic, threads=threads)
