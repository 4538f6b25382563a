"""``samesense serve``: a model behind HTTP."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from samesense.cli.output import Flag, PrecisionFlag, Several, Threshold
from samesense.errors import MissingExtraError
from samesense.inference.models.backends import BackendOption
from samesense.inference.serve.limits import Limits

LIMITS = Limits()


def serve(
    model: str,
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    name: str | None = None,
    api_key_file: Path | None = None,
    allowed_host: Several | None = None,
    collection: Path | None = None,
    reranker: str | None = None,
    calibration: Path | None = None,
    threshold: Annotated[Threshold | None, Parameter(allow_leading_hyphen=True)] = None,
    normalize: bool = True,
    shorten: Flag = False,
    long: Annotated[Literal["cut", "refuse"], Parameter(help="cut or refuse")] = "cut",
    limits: Annotated[Limits, Parameter(name="*")] = LIMITS,
    backend: BackendOption = "auto",
    precision: PrecisionFlag = "auto",
) -> None:
    """Serve a model over HTTP: OpenAI's embeddings, similarity, reranking, search, and a page to try it on.

    samesense serve default --port 8000 --api-key-file keys.txt

    Args:
        model: model folder, output of train or export, hub name, or default.
        host: address to listen on; 0.0.0.0 for all, best with a key.
        port: to listen on; 0 takes a free one.
        name: by which callers ask for the model; by default the last part of its folder or name.
        api_key_file: file of keys, one a line, one of which callers must send; else SAMESENSE_API_KEY, if it is set.
        allowed_host: names by which callers may ask for the server, besides those of this machine; without a key, and
            listening on this machine alone, no others may.
        collection: folder made by samesense index with the same model, for /search.
        reranker: cross-encoder for /rerank; without one, documents are ranked by cosine.
        calibration: file made by samesense calibrate; by default that in the model's folder, if there is one.
        threshold: say yes or no with every similarity: whether it is this or more; calibrated is that of the
            calibration.
        normalize: give vectors of length 1.
        shorten: let callers ask for fewer dimensions; right only for a model trained for it (Matryoshka).
        long: what is done with texts longer than the model reads.
        backend: auto, torch, onnx or onnx-int8, the last two for exported folders; auto is onnx for these.
        precision: arithmetic of torch; auto is bfloat16 where the processor computes in it.
    """
    for package, module in (("fastapi", "fastapi"), ("uvicorn", "uvicorn"), ("prometheus-client", "prometheus_client")):
        if find_spec(module) is None:
            raise MissingExtraError(package, "serve")
    from samesense.inference.serve.run import open_calibration, open_search, read_keys, reranker_of

    keys = read_keys(api_key_file)
    from samesense.inference.calibration.storage import read_of
    from samesense.inference.models.load import load
    from samesense.inference.serve.run import serve as run
    from samesense.inference.serve.service import Serving
    from samesense.inference.serve.tokens import served_tokens

    cut = read_of(model, calibration).threshold() if isinstance(threshold, str) else threshold
    fitted = open_calibration(model, calibration)
    opened = load(model, backend=backend, precision=precision)
    serving = Serving(
        name=name or Path(model).name,
        encode=opened.encode,
        tokens=served_tokens(opened),
        rerank=None if reranker is None else reranker_of(load(reranker, precision=precision)),
        search=None if collection is None else open_search(collection, opened),
        calibration=fitted,
        threshold=cut,
        normalize=normalize,
        shorten=shorten,
        long=long,
        limits=limits,
    )
    run(serving, host=host, port=port, keys=keys, hosts=allowed_host or ())
