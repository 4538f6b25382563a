"""How much memory a model takes: the peak of a process of its own that opens it and reads some texts.

In the process that compares models, the memory of one cannot be told from that of the others.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from samesense.data.examples import spread_over
from samesense.errors import SamesenseError
from samesense.evaluation.run import Cost
from samesense.inference.names import split_kind, split_maps
from samesense.types import Precision, Scorer

logger = logging.getLogger(__name__)

TEXTS = 64
"""Texts that the process reads."""

SECONDS = 60
"""A model that takes longer is left unmeasured."""

STATUS = Path("/proc/self/status")
"""Where Linux writes the peak of this process; ``ru_maxrss`` of a child begins with that of its parent."""


def add_memory(
    costs: Sequence[Cost], models: Sequence[tuple[str, Scorer]], texts: Sequence[str], precision: Precision
) -> list[Cost]:
    """Return the costs with the memory of each model that has a name, on a system that tells it."""
    if not STATUS.is_file() or not texts:
        return list(costs)
    sample = [texts[row] for row in spread_over(len(texts), TEXTS)]
    return [
        replace(cost, memory=measure_memory(spec, sample, precision)) if _can_reopen(spec, model) else cost
        for cost, (spec, model) in zip(costs, models, strict=True)
    ]


def _can_reopen(spec: str, model: Scorer) -> bool:
    """Return whether a model can be opened by its name: not an object, a function, or maps that are fitted first."""
    base, maps = split_maps(spec)
    return getattr(model, "home", None) is not None and not maps and not split_kind(base)[0]


def measure_memory(spec: str, texts: Sequence[str], precision: Precision) -> float | None:
    """Return the peak resident memory in 10^6 bytes of a process that reads ``texts``; ``None`` if it did not end."""
    request = json.dumps({"spec": spec, "texts": list(texts), "precision": precision})
    program = [sys.executable, "-m", "samesense.recipes.compare.memory"]
    try:
        ended = subprocess.run(program, input=request, capture_output=True, text=True, timeout=SECONDS, check=True)
        return float(ended.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
        logger.info(f"memory of {spec} was not measured: {type(error).__name__}")
        return None


def peak_memory() -> float:
    """Return the peak resident memory of this process so far in 10^6 bytes."""
    line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def main() -> None:
    """Read a model by the name on standard input, read the texts with it, and print the peak."""
    from samesense.inference.models.load import load
    from samesense.recipes.compare.cost import reader_of

    request = json.load(sys.stdin)
    try:
        model = load(request["spec"], precision=request["precision"])
        reader_of(model)(request["texts"])
    except SamesenseError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{peak_memory()}\n")


if __name__ == "__main__":
    main()
