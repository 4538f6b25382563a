"""A saved model in three lines of Python: load, encode, compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from samesense.encoder.cosine import cosine_score
from samesense.errors import ConfigError, ModelError
from samesense.inference.backends import Backend, Choice, Way, check_asked, choose, exported_ways
from samesense.inference.backends_missing import has_torch, needs_torch
from samesense.inference.backends_torch import encode_alone
from samesense.inference.onnx_format import is_exported, read_description
from samesense.inference.onnx_model import OnnxEncoder
from samesense.types import Embeddings, Encode, Pair, Precision, Score, Scores

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from samesense.inference.calibrate import Calibration


class Model:
    """An encoder ready for use, or a cross-encoder, which scores pairs and has no embeddings.

    Attributes:
        precision: arithmetic of torch.
        choice: what computes and why it was taken; ``None`` where there was nothing to choose.

    Example:
        >>> model = load("default")  # doctest: +SKIP
        >>> model.similarity("A man is eating.", "Someone has a meal.")  # doctest: +SKIP
        0.60
    """

    def __init__(
        self,
        encoder: SentenceTransformer | OnnxEncoder | None,
        *,
        score: Score | None = None,
        precision: Precision = "auto",
        deterministic: bool = False,
        choice: Choice | None = None,
    ) -> None:
        """Take an encoder of either kind, or the score of a cross-encoder."""
        self._encoder = encoder
        self._score = cosine_score(self.encode) if score is None else score
        self._deterministic = deterministic
        self._home: tuple[str, Path | None] | None = None
        self.precision = precision
        self.choice = choice

    @property
    def encoder(self) -> SentenceTransformer:
        """The encoder as a sentence-transformers model.

        Raises:
            ModelError: for a cross-encoder, or where the model runs without torch.
        """
        if isinstance(self._encoder, OnnxEncoder):
            raise ModelError(
                f"This needs the model in torch, and {self._encoder.folder} was opened by the backend "
                f"{self._encoder.name}. Open it with the backend torch, or give the model it was exported from."
            )
        return self._embedder

    @property
    def onnx(self) -> OnnxEncoder | None:
        """The encoder that runs without torch, if it is one."""
        return self._encoder if isinstance(self._encoder, OnnxEncoder) else None

    @property
    def _embedder(self) -> SentenceTransformer:
        if self._encoder is None or isinstance(self._encoder, OnnxEncoder):
            raise ModelError(
                "A cross-encoder reads both texts of a pair together and has no embeddings. Score pairs with it "
                "(similarity, evaluate, rerank), or encode with another model."
            )
        return self._encoder

    def encode(
        self, texts: Sequence[str], *, normalize: bool = False, on_progress: Callable[[int], None] | None = None
    ) -> Embeddings:
        """Return the embeddings of ``texts``, float32 ``(texts, dim)``, in order.

        Args:
            texts: any number of strings; equal ones are computed once.
            normalize: scale every row to unit length.
            on_progress: called with the number of texts that have just been finished.

        Raises:
            ModelError: for a cross-encoder, or if a text is not a string.
        """
        if isinstance(self._encoder, OnnxEncoder):
            return self._encoder.encode(texts, normalize=normalize, on_progress=on_progress)
        if self._deterministic:
            return encode_alone(
                self.encoder, texts, precision=self.precision, normalize=normalize, on_progress=on_progress
            )
        from samesense.encoder.encode import encode

        return encode(self.encoder, texts, precision=self.precision, normalize=normalize, on_progress=on_progress)

    @cached_property
    def calibration(self) -> Calibration:
        """What the model's scores mean, as fitted by ``samesense calibrate``.

        Raises:
            ModelError: if there is none, or it is that of other weights.
        """
        if self._home is None:
            raise ModelError(
                "A calibration is kept beside a model, and this one is in memory only. Save it, calibrate it, and load "
                "it by its name."
            )
        from samesense.inference.calibrate_file import read_of

        return read_of(*self._home)

    def scores(self, pairs: Sequence[Pair], *, calibrated: bool = False) -> Scores:
        """Return the cosine of each pair, in [-1, 1], or the cross-encoder's score, ``(pairs,)``.

        Each distinct text is encoded once.

        Args:
            pairs: any number of pairs of texts.
            calibrated: give values on the scale of the labels that the model was calibrated on.

        Raises:
            ModelError: if calibrated values are asked for and there is no calibration.
        """
        if calibrated:
            return self.calibration.apply(self._score(pairs))
        return self._score(pairs)

    def similarity(self, text1: str, text2: str, *, calibrated: bool = False) -> float:
        """Return the score of two texts; see :meth:`scores`."""
        return float(self.scores([(text1, text2)], calibrated=calibrated)[0])


def load(
    name: str = "default",
    *,
    backend: Backend = "auto",
    precision: Precision = "auto",
    device: str | None = None,
    deterministic: bool = False,
    sample: Sequence[str] | None = None,
    calibration: Path | None = None,
) -> Model:
    """Open a model: a folder, the output of ``samesense train`` or ``export``, a hub name, or ``"default"``.

    Args:
        name: the model.
        backend: what computes. ``"auto"`` takes what is the fastest by an earlier measurement, or by one now if
            ``sample`` is large; without a sample, onnx for an exported folder and torch for others.
        precision: arithmetic of torch; ``"auto"`` is bfloat16 where the processor computes in it.
        device: torch device; ``None`` lets sentence-transformers choose.
        deterministic: bits of a vector depend on its text alone, not on the texts beside it; slower, and nothing is
            chosen by measuring.
        sample: the texts to be encoded, for the choice.
        calibration: file made by ``samesense calibrate``; ``None`` for the one in the model's folder, read when it is
            asked for.

    Raises:
        ModelError: if there is no such model, or it was not exported for the backend.
        ConfigError: if backend, precision or device contradict each other.
        MissingExtraError: if torch is needed and not installed, or the default's package is not.
    """
    model = _opened(name, backend, precision, device, deterministic, None if deterministic else sample)
    model._home = (name, calibration)
    return model


def _opened(
    name: str,
    backend: Backend,
    precision: Precision,
    device: str | None,
    deterministic: bool,
    sample: Sequence[str] | None,
) -> Model:
    if is_exported(name):
        return _exported(name, backend, precision, device, deterministic, sample)
    check_asked(backend, precision)
    if backend in ("onnx", "onnx-int8"):
        raise ModelError(
            f"The backend {backend} opens exported folders only; {name} is none. Make one: "
            f"samesense export {name} --output FOLDER{' --int8' if backend == 'onnx-int8' else ''}"
        )
    with needs_torch():
        return _by_torch(name, precision, device, deterministic, sample)


def _by_torch(
    name: str, precision: Precision, device: str | None, deterministic: bool, sample: Sequence[str] | None
) -> Model:
    from samesense.encoder import build as encoders
    from samesense.encoder.cross import is_cross_encoder, open_cross_encoder
    from samesense.encoder.precision import has_bfloat16

    source = encoders.resolve(name)
    if is_cross_encoder(source):
        score, _ = open_cross_encoder(source, precision=precision, device=device)
        return Model(None, score=score, precision=precision)
    encoder = encoders.build(name, device=device)
    if precision != "auto" or sample is None or encoder.device.type != "cpu" or not has_bfloat16(encoder.device):
        return Model(encoder, precision=precision, deterministic=deterministic)
    ways: tuple[Way, ...] = ("torch-bfloat16", "torch-float32")
    choice = choose(source, {way: _opener(Model(encoder, precision=_precision(way))) for way in ways}, sample)
    return Model(encoder, precision=_precision(choice.way), choice=choice)


def _exported(
    name: str,
    backend: Backend,
    precision: Precision,
    device: str | None,
    deterministic: bool,
    sample: Sequence[str] | None,
) -> Model:
    if device not in (None, "cpu") and backend != "torch":
        raise ConfigError(
            f"An exported model runs on the CPU; received device {device}. Take the backend torch for it."
        )
    torch_there = has_torch() and any(Path(name).expanduser().rglob("*.safetensors"))
    torch_asked = backend == "torch" or precision == "bfloat16"
    if torch_asked and not torch_there:
        _why_not_torch(name)
    bfloat16_there = torch_there and (torch_asked or sample is not None) and _computes_in_bfloat16()
    ways = exported_ways(
        read_description(name), backend, precision, torch_there=torch_there, bfloat16_there=bfloat16_there
    )

    @cache
    def opened(way: Way) -> Model:
        if way in ("onnx", "onnx-int8"):
            return Model(OnnxEncoder(name, way, deterministic=deterministic))
        return Model(_torch_encoder(name, device), precision=_precision(way), deterministic=deterministic)

    def opener(way: Way) -> Callable[[], Encode]:
        return lambda: opened(way).encode

    choice = choose(name, {way: opener(way) for way in ways}, sample)
    model = opened(choice.way)
    model.choice = choice
    return model


@cache
def _computes_in_bfloat16() -> bool:
    import torch

    from samesense.encoder.precision import has_bfloat16

    return has_bfloat16(torch.device("cpu"))


def _torch_encoder(name: str, device: str | None) -> SentenceTransformer:
    from samesense.encoder.build import build

    return build(name, device=device)


def _why_not_torch(name: str) -> None:
    with needs_torch():
        import sentence_transformers  # noqa: F401  # absent: says what to install
    raise ModelError(
        f"{name} was exported without torch's weights. Take the backend onnx, or export it again with them."
    )


def _precision(way: Way) -> Precision:
    return "bfloat16" if way == "torch-bfloat16" else "float32"


def _opener(model: Model) -> Callable[[], Encode]:
    return lambda: model.encode
