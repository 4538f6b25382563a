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
        models: model folders, outputs of train or export, hub names, or default; requests name a model by the last part
            of its path, or by NAME of NAME=PATH.
        host: address to listen on; 0.0.0.0 for all, best with a key.
        port: to listen on; 0 takes a free one.
        any_model_name: accept any model name in requests, such as text-embedding-3-small, for the only model; also
            with one model of embeddings and one cross-encoder.
        api_key_file: file of keys, one a line; requests must carry one of them; else SAMESENSE_API_KEY, if it is set.
        allowed_host: accepted Host headers, besides the names of this machine; without a key, and listening on this
            machine only, no others are accepted.
        collection: folder made by samesense index with one of the models, for /search.
        labels: file, .tsv or .jsonl, that keeps the labels given to pairs on the page, as samesense label does.
        calibration: file made by samesense calibrate for the one model; by default that in each model's folder, if
            there is one.
        threshold: answer yes or no with every similarity: yes if it is at least this; calibrated takes the threshold of
            each model's calibration.
        normalize: return vectors of length 1.
        shorten: allow requests for fewer dimensions; right only for a model trained for it (Matryoshka).
        token_ids: accept token ids in place of texts; right only for clients that use the served model's tokenizer.
        long: what to do with texts longer than the model reads.
        backend: auto, torch, onnx or onnx-int8, the last two for exported folders; auto is onnx for these.
        precision: arithmetic of torch; auto is bfloat16 where the processor supports it.
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
