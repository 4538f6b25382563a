"""``samesense serve``: models behind HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from samesense.api.serve import LIMITS
from samesense.api.serve import serve as run
from samesense.cli.output import Flag, PrecisionFlag, Several, Threshold
from samesense.inference.models.backends import BackendOption
from samesense.inference.serve.limits import Limits


def serve(
    models: Several,
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    any_model_name: Flag = False,
    api_key_file: Path | None = None,
    allowed_host: Several | None = None,
    collection: Path | None = None,
    labels: Path | None = None,
    calibration: Path | None = None,
    threshold: Annotated[Threshold | None, Parameter(allow_leading_hyphen=True)] = None,
    normalize: bool = True,
    shorten: Flag = False,
    token_ids: Flag = False,
    long: Annotated[Literal["cut", "refuse"], Parameter(help="cut or refuse")] = "cut",
    limits: Annotated[Limits, Parameter(name="*")] = LIMITS,
    backend: BackendOption = "auto",
    precision: PrecisionFlag = "auto",
) -> None:
    """Serve models over HTTP: OpenAI's embeddings, similarity, reranking, search, and a page to try them on.

    samesense serve default small=models/small cross=runs/cross --port 8000 --api-key-file keys.txt

    Args:
        models: model folders, outputs of train or export, hub names, or default; callers ask for one by the last part
            of its place, or as NAME=PLACE says.
        host: address to listen on; 0.0.0.0 for all, best with a key.
        port: to listen on; 0 takes a free one.
        any_model_name: take any name that callers ask by, such as text-embedding-3-small, for the one model; also
            with one model of embeddings and one cross-encoder.
        api_key_file: file of keys, one a line, one of which callers must send; else SAMESENSE_API_KEY, if it is set.
        allowed_host: names by which callers may ask for the server, besides those of this machine; without a key, and
            listening on this machine alone, no others may.
        collection: folder made by samesense index with one of the models, for /search.
        labels: file, .tsv or .jsonl, that keeps the labels given to pairs on the page, as samesense label does.
        calibration: file made by samesense calibrate for the one model; by default that in each model's folder, if
            there is one.
        threshold: say yes or no with every similarity: whether it is this or more; calibrated is that of each
            model's calibration.
        normalize: give vectors of length 1.
        shorten: let callers ask for fewer dimensions; right only for a model trained for it (Matryoshka).
        token_ids: take token ids in place of texts; right only for callers that use the served model's own tokenizer.
        long: what is done with texts longer than the model reads.
        backend: auto, torch, onnx or onnx-int8, the last two for exported folders; auto is onnx for these.
        precision: arithmetic of torch; auto is bfloat16 where the processor computes in it.
    """
    run(
        models,
        host=host,
        port=port,
        any_model_name=any_model_name,
        api_key_file=api_key_file,
        allowed_host=allowed_host,
        collection=collection,
        labels=labels,
        calibration=calibration,
        threshold=threshold,
        normalize=normalize,
        shorten=shorten,
        token_ids=token_ids,
        long=long,
        limits=limits,
        backend=backend,
        precision=precision,
    )
