"""Encode with an exported model, without torch: by onnxruntime and the tokenizers library."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.failures import opening
from samesense.inference.onnx.format import VECTOR_OUTPUT
from samesense.inference.onnx.graph_encoder import GraphEncoder
from samesense.types import Embeddings

SPIN_MICROSECONDS = "10"
"""How long a thread spins while it waits for the next operation of a graph, before it sleeps.

A thread that sleeps at once is woken late: on two free cores, graphs in int8 then take 1.16 to 1.24 times as long. A
thread that spins as long as onnxruntime lets it keeps other work, and the other threads of its own graph, from the
core: beside a busy process, graphs then take up to 3 times as long, with this duration up to 1.2 times.
"""

SLOW_FUSIONS = ["SkipLayerNormFusion", "BiasGeluFusion"]
"""Optimizers of onnxruntime whose fused operations are slower on a CPU than the operations that they replace.

The fused layer normalisation takes 35 to 39 microseconds for 13 rows of 384, the separate addition and normalisation
together about 10; ``benchmarks/LOG.md`` has the figures of whole graphs.
"""


class OnnxEncoder(GraphEncoder):
    """Encodes with a folder written by ``samesense export``, by the backend ``onnx`` or ``onnx-int8``."""

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
    """Return a session whose threads soon sleep while they wait, instead of spinning; see :data:`SPIN_MICROSECONDS`."""
    # Of an extra: only exported folders need it.
    import onnxruntime

    if os.environ.get("ORT_DISABLE_TELEMETRY") not in {"0", "false"}:
        onnxruntime.disable_telemetry_events()  # Windows does not read the variable
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.use_deterministic_compute = deterministic
    options.add_session_config_entry("session.intra_op.spin_duration_us", SPIN_MICROSECONDS)
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    with opening(f"the graph {graph}", "Export the model again."):
        return onnxruntime.InferenceSession(
            str(graph), options, providers=["CPUExecutionProvider"], disabled_optimizers=SLOW_FUSIONS
        )
