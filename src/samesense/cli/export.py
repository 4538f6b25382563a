"""``samesense export``: a model as a folder that runs without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samesense.cli.output import (
    DEFAULT_FORMAT,
    DEFAULT_PAIRS,
    Flag,
    Json,
    Output,
    PairFlags,
    TableFlags,
    logger,
    put,
    put_json,
    reads_tables,
)

if TYPE_CHECKING:
    from samesense.inference.onnx.format import Description


@reads_tables
def export(
    model: str,
    /,
    *,
    output: Output,
    int8: Flag = False,
    data: str | None = None,
    weights: bool = True,
    pair_options: PairFlags = DEFAULT_PAIRS,
    reading: TableFlags = DEFAULT_FORMAT,
    overwrite: Flag = False,
    json: Json = False,
) -> None:
    """Write a model as a folder that runs without torch, in float32 and int8, and check it against torch.

    samesense export runs/first --output models/first-onnx --int8 --data dev.tsv

    Args:
        model: model folder, output of train, hub name, or default.
        output: folder to write, which is also an ordinary model folder.
        int8: also write a graph with 8-bit weights.
        data: labelled pairs on which the drift of Spearman is measured, 500 or more for a valid check; the model's
            calibration is fitted again on them. Without them it is copied.
        weights: keep the torch weights in the folder, so that sentence-transformers can load it.
        overwrite: replace what is in the output folder.
        json: print JSON lines.
    """
    import samesense

    description = samesense.export(
        model, output=output, int8=int8, data=data, weights=weights, **vars(pair_options), overwrite=overwrite
    )
    if json:
        put_json([description.model_dump(mode="json")])
    else:
        _tell(description)
    logger.info(f"{output}: opens without torch; samesense similarity {output} ...")


def _tell(description: Description) -> None:
    put("backend\tMB\tleast cosine with torch\tchange by neighbours\tSpearman x100")
    drift = description.drift
    for name, graph in description.graphs.items():
        parity = description.parity[name]
        cells = (name, f"{graph.bytes / 1e6:.1f}", f"{parity.least_cosine:.6f}", f"{parity.alone:.1e}")
        put("\t".join((*cells, "not measured" if drift is None else _points(drift.reference, drift.points[name]))))
    if drift is not None and "torch-bfloat16" in drift.points:
        put("\t".join(("torch-bfloat16", "", "", "", _points(drift.reference, drift.points["torch-bfloat16"]))))
    for backend in ("onnx-int8", "torch-bfloat16"):
        if backend in description.agreement:
            logger.info(f"{backend}: {description.agreement[backend].text()}")
    if drift is not None:
        logger.info(f"drift: on {drift.pairs} pairs of {drift.data}, where torch in float32 has {drift.reference:.2f}")


def _points(reference: float, points: float) -> str:
    return f"{reference + points:.2f} ({points:+.2f})"
