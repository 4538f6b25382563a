"""``samesense export``: a model as a folder that runs without torch."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

from samesense.api import publish
from samesense.cli.command import command_of
from samesense.cli.output import Json, Output, logger, put, put_json

if TYPE_CHECKING:
    from samesense.inference.onnx.format import Description


@command_of(publish.export)
def export(model: str, /, *, output: Output, json: Json = False, **options: Any) -> None:
    """samesense export runs/first --output models/first-onnx --int8 --data dev.tsv

    Args:
        json: print JSON lines.
    """
    description = publish.export(model, output=output, **options)
    if json:
        put_json([description.model_dump(mode="json")])
    else:
        _tell(description)
    logger.info(f"{output}: opens without torch; samesense similarity {quote(str(output))} ...")


def _tell(description: Description) -> None:
    put("backend\tMB\tleast cosine with torch\tchange by neighbours\tSpearman x100")
    drift = description.drift
    for name, graph in description.graphs.items():
        parity = description.parity[name]
        cells = (name, f"{graph.bytes / 1e6:.1f}", f"{parity.least_cosine:.6f}", f"{parity.alone:.1e}")
        change = "not measured" if drift is None else _points(drift.reference, drift.points[name])
        put("\t".join((*cells, change)))
    # Those without a graph of their own; what torch itself changes at lower precision is to judge the others by.
    for backend in ("openvino-bfloat16", "torch-bfloat16"):
        if drift is not None and backend in drift.points:
            put("\t".join((backend, "", "", "", _points(drift.reference, drift.points[backend]))))
    for backend in ("onnx-int8", "openvino-int8", "openvino-bfloat16", "torch-bfloat16"):
        if backend in description.agreement:
            logger.info(f"{backend}: {description.agreement[backend].text()}")
    if description.ranges is not None:
        ranges = description.ranges
        logger.info(f"openvino-int8: ranges of activations from {ranges.texts} texts of {ranges.source}")
    if drift is not None:
        logger.info(f"drift: on {drift.pairs} pairs of {drift.data}, where torch in float32 has {drift.reference:.2f}")


def _points(reference: float, points: float) -> str:
    return f"{reference + points:.2f} ({points:+.2f})"
