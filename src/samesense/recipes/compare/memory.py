"""How much memory a model takes: the peak of a process of its own that opens it and reads some texts.

In the process that compares models, the memory of one is mixed with that of the others. So one helper process
imports the libraries once and forks for each model.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

from samesense.data.sampling import spread_over
from samesense.evaluation.run import Cost
from samesense.execution.progress import stage
from samesense.inference.models.model import Model
from samesense.inference.names import split_kind, split_maps
from samesense.inference.onnx.format import is_graph_backend
from samesense.types import Precision, Scorer

logger = logging.getLogger(__name__)

TEXTS = 64
"""Texts that each process reads."""

SECONDS = 30
"""Models that are not measured after so long, all together, are left without a figure."""

STATUS = Path("/proc/self/status")
"""Where Linux writes the peak of this process; ``ru_maxrss`` of a child begins with that of its parent."""


def add_memory(
    costs: Sequence[Cost], models: Sequence[tuple[str, Scorer]], texts: Sequence[str], precision: Precision
) -> list[Cost]:
    """Return the costs with the memory of each model that has a name, on a system that tells it."""
    needs_torch = {
        spec: not is_graph_backend(model.backend)
        for spec, model in models
        if isinstance(model, Model) and _can_reopen(spec, model)
    }
    if not STATUS.is_file() or not texts or not needs_torch:
        return list(costs)
    sample = [texts[row] for row in spread_over(len(texts), TEXTS)]
    with stage("measuring memory"):
        memory = measure_memory(needs_torch, sample, precision)
    missing = [spec for spec in needs_torch if spec not in memory]
    if missing:
        logger.info(f"memory was not measured: {', '.join(missing)}")
    return [replace(cost, memory=memory.get(spec)) for cost, (spec, _) in zip(costs, models, strict=True)]


def _can_reopen(spec: str, model: Model) -> bool:
    """Return whether a model can be opened by its name: not an object, a function, or maps that are fitted first."""
    base, maps = split_maps(spec)
    return model.home is not None and not maps and not split_kind(base)[0]


def measure_memory(needs_torch: dict[str, bool], texts: Sequence[str], precision: Precision) -> dict[str, float]:
    """Return the peak resident memory in 10^6 bytes of a process for each model that reads ``texts``.

    ``needs_torch`` says of each model whether it runs on torch. A model that could not be opened in time is left out.
    """
    specs = sorted(needs_torch, key=needs_torch.__getitem__)  # without torch first: its import would count for them
    requests = [{"spec": spec, "torch": needs_torch[spec]} for spec in specs]
    request = json.dumps({"models": requests, "texts": list(texts), "precision": precision})
    program = [sys.executable, "-m", "samesense.recipes.compare.memory"]
    try:
        # The exit code is not looked at: after the alarm, the models that were measured still count.
        output = subprocess.run(program, input=request.encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return {}
    return _read_peaks(output.stdout)


def _read_peaks(output: bytes) -> dict[str, float]:
    """Return the peaks by model from lines of JSON; the last line may be cut off."""
    peaks: dict[str, float] = {}
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            peaks.update(json.loads(line))
        except (ValueError, TypeError):  # printed by a model of the user's
            continue
    return peaks


def peak_memory() -> float:
    """Return the peak resident memory of this process so far in 10^6 bytes."""
    line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def _read_texts(spec: str, texts: Sequence[str], precision: Precision) -> None:
    """Open a model by its name, read the texts with it, and print the peak."""
    # In the process that is measured, which imports what the model needs and nothing else.
    from samesense.inference.models.load import load

    reader_of(load(spec, precision=precision))(texts)
    sys.stdout.write(json.dumps({spec: peak_memory()}) + "\n")
    # os._exit does not flush.
    sys.stdout.flush()


def main() -> None:
    """Read models and texts on standard input, and fork for each model."""
    deadline = time.monotonic() + SECONDS
    signal.alarm(SECONDS)  # ends this process even while it waits
    request = json.load(sys.stdin)
    for model in request["models"]:
        if model["torch"]:
            import sentence_transformers  # noqa: F401 - once here, which forks share; it uses no thread yet
        process = os.fork()
        if process == 0:
            signal.alarm(max(1, ceil(deadline - time.monotonic())))  # a fork does not inherit it
            try:
                _read_texts(model["spec"], request["texts"], request["precision"])
            finally:
                # Without the parent's clean-up, and above all without going on with its loop.
                os._exit(0)
        os.waitpid(process, 0)


def reader_of(model: Model) -> Callable[[Sequence[str]], object]:
    """Return what reads sentences: one by one, or two at a time where only pairs are scored."""
    if model.embeds:
        return model.encode_uncached
    # Not strict: an odd last text is left out.
    return lambda texts: model.scores_uncached(list(zip(texts[::2], texts[1::2], strict=False)))


if __name__ == "__main__":
    main()
