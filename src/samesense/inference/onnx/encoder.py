"""Encode with an exported model, without torch: by onnxruntime and the tokenizers library."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.errors import ModelError
from samesense.failures import first_line
from samesense.inference.onnx.format import VECTOR_OUTPUT, GraphBackend
from samesense.inference.onnx.graph_encoder import GraphEncoder
from samesense.types import Embeddings


class OnnxEncoder(GraphEncoder):
    """Encodes with a folder written by ``samesense export``, by the backend ``onnx`` or ``onnx-int8``."""

    def __init__(
        self,
        folder: str | Path,
        name: GraphBackend = "onnx",
        *,
        deterministic: bool = False,
        threads: int | None = None,
    ) -> None:
        """Open a folder; see :class:`~samesense.inference.onnx.graph_encoder.GraphEncoder`."""
        super().__init__(folder, name, deterministic=deterministic, threads=threads)

    def _open_graph(self, graph: Path) -> tuple[list[str], int | None]:
        threads = 1 if self.deterministic else self._threads
        self._session = _session(graph, threads, self.deterministic)
        # A transformer's graph has a second output, the states of its tokens.
        width = next((tensor.shape[-1] for tensor in self._session.get_outputs() if tensor.name == VECTOR_OUTPUT), None)
        return [tensor.name for tensor in self._session.get_inputs()], width

    def _infer(self, feed: Mapping[str, npt.NDArray[np.int64]]) -> Embeddings:
        rows: Embeddings = self._session.run([VECTOR_OUTPUT], feed)[0]
        return rows


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
