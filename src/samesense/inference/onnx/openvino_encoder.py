"""Encode with an exported model, without torch: by OpenVINO and the tokenizers library."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.errors import ConfigError
from samesense.failures import imported, opening
from samesense.inference.onnx.format import VECTOR_OUTPUT
from samesense.inference.onnx.graph_encoder import GraphEncoder
from samesense.types import Embeddings

PARALLEL_BATCHES = 8
"""Batches a thread from which on each thread computes batches of its own.

With two threads and AMX this is 1.0 to 1.3 times as fast. The graph is compiled a second time for it, in half a second.
"""


class OpenvinoEncoder(GraphEncoder):
    """Encodes with a folder written by ``samesense export``, by a backend whose name begins with ``openvino``.

    ``openvino`` runs the ONNX graph in float32, also where the processor has bfloat16, and ``openvino-bfloat16`` in
    that, ConfigError where the processor has none. ``openvino-int8`` runs the graph that ``export --openvino-int8``
    adds. MissingExtraError without the extra ``openvino``.
    """

    def _open_graph(self, graph: Path) -> tuple[list[str], int | None]:
        precision = "f32"
        if self.name == "openvino-bfloat16":
            if not openvino_has_bfloat16():
                raise ConfigError("This processor does not compute in bfloat16. Take the backend openvino.")
            precision = "bf16"
        self._compile = partial(_compiled, graph, self._threads, precision)
        self._compiled = self._compile(streams=self._threads if self.deterministic else 1)
        self._parallel: Any = None  # the graph for many batches, compiled when it is first needed
        self._parallel_lock = threading.Lock()
        self._requests = threading.local()
        widths = [_width(output) for output in self._compiled.outputs if VECTOR_OUTPUT in output.names]
        return [name.any_name for name in self._compiled.inputs], next(iter(widths), None)

    def _run_batches(self, run: Callable[[list[int]], None], batches: list[list[int]]) -> None:
        if self._threads == 1 or len(batches) < PARALLEL_BATCHES * self._threads:
            super()._run_batches(run, batches)
            return
        with self._parallel_lock:
            if self._parallel is None:
                self._parallel = self._compile(streams=self._threads)

        def take_request() -> None:
            self._requests.request = self._parallel.create_infer_request()

        with ThreadPoolExecutor(self._threads, initializer=take_request) as pool:
            list(pool.map(run, batches))  # raises the first error

    def _infer(self, feed: Mapping[str, npt.NDArray[np.int64]]) -> Embeddings:
        # A request runs one batch at a time.
        if not hasattr(self._requests, "request"):
            self._requests.request = self._compiled.create_infer_request()
        rows: Embeddings = self._requests.request.infer(dict(feed))[VECTOR_OUTPUT]
        return rows


def openvino_core() -> Any:
    """Return the one ``openvino.Core`` of this process.

    On Linux, each Core sets a stack for signals as it loads its CPU plugin (for AMX), and restores the previous
    one as it ends. Of two that end in the order in which they began, the second restores freed memory. The next signal,
    such as Ctrl-C, then ends the process by a segmentation fault. This Core never ends.
    """
    return _core(imported("openvino", "openvino"))


@cache
def _core(openvino: ModuleType) -> Any:
    return openvino.Core()


def _width(output: Any) -> int | None:
    """Return the last dimension of an output; ``None`` if it is not fixed."""
    last = output.partial_shape[-1]
    if last.is_dynamic:
        return None
    return int(last.get_length())


def openvino_has_bfloat16() -> bool:
    """Return whether OpenVINO computes in bfloat16 on this processor."""
    return "BF16" in openvino_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def _compiled(graph: Path, threads: int, precision: str, *, streams: int) -> Any:
    """Return a compiled graph that shares the threads out to ``streams`` batches at once."""
    core = openvino_core()
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": streams,
        # By itself OpenVINO takes bfloat16 where the processor has it; vectors must not differ so much by machine.
        "INFERENCE_PRECISION_HINT": precision,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        # Pinned threads of two processes would share the same cores.
        "ENABLE_CPU_PINNING": False,
    }
    with opening(f"the graph {graph}", "Export the model again."):
        return core.compile_model(core.read_model(graph), "CPU", settings)
