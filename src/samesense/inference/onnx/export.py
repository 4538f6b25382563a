"""Export a model to a folder that runs without torch, and compare its vectors with those of torch."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer

from samesense.data import read_pairs, sample_path
from samesense.data.pairs.data import PairData
from samesense.data.rows.table_options import table_options
from samesense.data.sampling import spread_over
from samesense.encoder.assembly.build import build_named
from samesense.encoder.assembly.cross import is_cross_encoder
from samesense.encoder.assembly.pooling import describe_pooling
from samesense.encoder.assembly.vocabulary import fast_tokenizer
from samesense.encoder.cosine import checked_rows, cosine_score, unit
from samesense.encoder.encode import encode
from samesense.encoder.forward.batching import tokenize_texts
from samesense.encoder.forward.precision import has_bfloat16
from samesense.encoder.forward.reading import reading_of
from samesense.encoder.forward.routes import default_prompt, refuse_routes
from samesense.encoder.names import resolve, split_options
from samesense.encoder.saving.card import FILE as CARD
from samesense.encoder.saving.card import Card, add_section, is_ours, write_card
from samesense.encoder.saving.storage import check_free, save
from samesense.errors import DataError, MissingExtraError, ModelError
from samesense.execution.progress import stage
from samesense.execution.unread import counted
from samesense.files import replacing_folder, write_text
from samesense.inference.onnx.encoder import OnnxEncoder
from samesense.inference.onnx.format import (
    DESCRIPTION,
    GRAPHS,
    TOKENIZER,
    Agreement,
    Description,
    Drift,
    GraphBackend,
    GraphName,
    Parity,
    Ranges,
    graph_file,
)
from samesense.inference.onnx.graph import check_modules, graph_inputs, write_graph, write_int8, write_openvino_int8
from samesense.inference.onnx.graph_encoder import GraphEncoder
from samesense.inference.onnx.open_graph import open_graph
from samesense.inference.onnx.openvino_encoder import openvino_has_bfloat16
from samesense.inference.onnx.token_encoder import cut_to, read_texts
from samesense.locks import only_writer_of
from samesense.metrics import spearman
from samesense.results.markup import plain
from samesense.types import Embeddings, Encode, Floats, Scores

LEAST_COSINE = 0.9999
"""Least cosine between the vectors of a float32 graph and of torch; an export below it fails."""

RANGE_TEXTS = 300
"""Number of texts on which the ranges of activations are measured for static int8."""

CHECKED = 300
"""Number of sentences of the check, besides the awkward ones."""

_FLOAT32: dict[GraphBackend, str] = {
    "onnx": "Its modules cannot be recorded faithfully; keep to torch for this model.",
    "openvino": "OpenVINO computes this graph wrongly; export without OpenVINO.",
}
"""Backends that must give the vectors of torch, and what helps where they do not."""

AWKWARD = (
    "a",
    "  Spaces before, a tab\tbetween, and a line\nbreak.  ",
    "UPPER CASE and Zürich, naïve, 100 %",
    "两个人在公园里散步。",
    "\N{GRINNING FACE} \N{THUMBS UP SIGN}",
    "one sentence that is far longer than any model reads at once, said again and again; " * 60,
)
"""Texts that reveal differences of tokenizers and limits."""


def check_tokens(model: SentenceTransformer, ids: Callable[[str], list[int]], texts: Sequence[str]) -> None:
    """Raise ModelError unless the tokenizer alone gives the same ids as sentence-transformers."""
    for text in texts:
        expected = tokenize_texts(model, [text])["input_ids"].flatten().tolist()
        tokens = ids(text)
        if tokens != expected:
            raise ModelError(
                "An exported model reads text by its tokenizer.json alone; for "
                f"{text[:60]!r} that gives {len(tokens)} ids where the model is given {len(expected)} others. A chat "
                "template, or changes that sentence-transformers makes to texts, cannot be exported: save the model "
                "without them. To train without a chat template, start from a copy of the start's folder, without "
                '"message" in modality_config of its sentence_bert_config.json.'
            )


def parity(exported: GraphEncoder, reference: Embeddings, texts: list[str]) -> Parity:
    """Return how far the vectors of a graph, computed in batches and alone, are from those of ``reference``."""
    # Only the check of an export needs scikit-learn.
    from sklearn.metrics.pairwise import paired_cosine_distances

    together = exported.encode(texts)
    alone = np.concatenate([exported.encode([text]) for text in texts])
    least = 1.0
    largest_change = 0.0
    for rows in (together, alone):
        change = float(np.abs(_next_cosines(rows) - _next_cosines(reference)).max())
        largest_change = max(largest_change, change)
        distances = paired_cosine_distances(checked_rows(rows, texts), reference)  # 0 where both are zeros
        least = min(least, 1 - float(distances.max()))
    if exported.name in _FLOAT32 and least < LEAST_COSINE:
        raise ModelError(
            f"The graph must give the model's own vectors; a cosine with them is {least:.6f}, and {LEAST_COSINE} is "
            f"the least. {_FLOAT32[exported.name]}"
        )
    lengths = np.maximum(np.linalg.norm(reference, axis=1), 1e-12)
    batch_effect = float((np.abs(together - alone).max(axis=1) / lengths).max())
    return Parity(
        texts=len(texts),
        least_cosine=round(least, 8),
        scores=float(f"{largest_change:.3g}"),
        alone=float(f"{batch_effect:.3g}"),
    )


def _next_cosines(rows: Embeddings) -> Floats:
    """Return the cosine of each row and the next one ``(n - 1,)``."""
    normalized = unit(rows.astype(np.float64))
    cosines: Floats = (normalized[:-1] * normalized[1:]).sum(axis=1)
    return cosines


def drift(pairs: PairData, reference: Scores, backend_scores: Mapping[str, Scores]) -> Drift:
    """Return the change of each backend's Spearman on ``pairs`` against that of ``reference``, times 100.

    All scores are ``(pairs,)``.
    """
    base = 100 * spearman(reference, pairs.labels)
    points = {name: round(100 * spearman(scores, pairs.labels) - base, 4) for name, scores in backend_scores.items()}
    return Drift(data=pairs.name, pairs=len(pairs), reference=round(base, 4), points=points)


def agreement(reference: Scores, scores: Scores) -> Agreement:
    """Return how far scores of pairs ``(pairs,)`` are from those of ``reference``."""
    largest = float(np.abs(reference - scores).max())
    return Agreement(pairs=len(reference), largest=float(f"{largest:.3g}"), ranks=round(spearman(reference, scores), 6))


def export(
    model: str | SentenceTransformer,
    output: str | Path,
    *,
    int8: bool = False,
    openvino_int8: bool = False,
    range_texts: RangeTexts | None = None,
    pairs: PairData | None = None,
    weights: bool = True,
    overwrite: bool = False,
) -> Description:
    """Export a model to ONNX, with pooling, layers and normalisation in the graph, and return its description.

    The folder is also an ordinary sentence-transformers folder, with torch's ``weights`` if they are kept; the graph is
    in ``onnx/``. It is written completely or not at all. ``int8`` adds a graph with weights of eight bits,
    ``openvino_int8`` one for OpenVINO with activations of eight bits as well, whose ranges are those of
    ``range_texts``, by default of texts of ``pairs`` or of the sample. On ``pairs`` the drift of Spearman is measured.
    ModelError if the model is a cross-encoder, cannot be exported, or the graph gives other vectors; OutputError if the
    folder is not empty and ``overwrite`` is not given, or another process exports to it.
    """
    target = Path(output)
    check_free(target, overwrite=overwrite)
    MissingExtraError.check("export", "onnx", "onnxscript")
    if openvino_int8:
        MissingExtraError.check("openvino-export", "openvino", "nncf")
        range_texts = range_texts or _default_range_texts(pairs)
    else:
        range_texts = None
    with only_writer_of(target.resolve()):
        check_free(target, overwrite=overwrite)  # another export may have ended since
        with stage("loading the model"):
            encoder = _open(model)
        refuse_routes(encoder, "An export")
        description = _describe_model(encoder)
        with replacing_folder(target) as folder:
            save(encoder, folder)
            description = _write(encoder, folder, description, int8, range_texts)
            with stage("checking the graphs against torch"):
                description = description.model_copy(update=_compare(encoder, folder, description, pairs))
            _write_description(folder, description)
            _finish(model, folder, target.name, weights, description)
        return description


def _open(model: str | SentenceTransformer) -> SentenceTransformer:
    if isinstance(model, SentenceTransformer):
        return model.to("cpu").eval()
    if is_cross_encoder(resolve(split_options(model).base)):
        raise ModelError(f"An export ends in a sentence's vector; {model} is a cross-encoder, which has none.")
    return build_named(model, device="cpu").eval()


def _describe_model(encoder: SentenceTransformer) -> Description:
    """Return the description of an export, still without graphs; ModelError if the model cannot be exported."""
    check_modules(encoder)
    tokenizer = fast_tokenizer(encoder, "An export")
    static = isinstance(encoder[0], StaticEmbedding)
    description = Description(
        samesense=version("samesense"),
        dim=int(encoder.get_embedding_dimension() or 0),
        max_tokens=reading_of(encoder).longest,
        prompt=default_prompt(encoder),
        inputs=graph_inputs(encoder),
        pad_token=0 if static else int(encoder.tokenizer.pad_token_id or 0),
        padding_side="right" if static else encoder.tokenizer.padding_side,
        special_tokens=not static,
        pooling=describe_pooling(encoder),
        modules=[type(module).__name__ for module in encoder],
        graphs={},
    )
    # A copy, because the limit is set in place.
    reader = cut_to(Tokenizer.from_str(tokenizer.to_str()), description.max_tokens)
    check_tokens(encoder, lambda text: read_texts(reader, description, [text], description.prompt)[0].ids, AWKWARD)
    return description


def _write(
    encoder: SentenceTransformer, folder: Path, description: Description, int8: bool, range_texts: RangeTexts | None
) -> Description:
    """Write tokenizer, graphs and description, and return the description with the graphs."""
    write_text(folder / TOKENIZER, fast_tokenizer(encoder, "An export").to_str())
    graph = folder / GRAPHS["onnx"]
    with stage("recording the graph"):
        write_graph(encoder, graph)
    description = _with_graph(folder, description, "onnx")
    if int8:
        with stage("rounding weights to eight bits"):
            write_int8(graph, folder / GRAPHS["onnx-int8"])
        description = _with_graph(folder, description, "onnx-int8")
    if range_texts is not None:
        with stage("quantizing for OpenVINO"):
            write_openvino_int8(graph, folder / GRAPHS["openvino-int8"], _range_inputs(folder, range_texts.texts))
        ranges = Ranges(texts=len(range_texts.texts), source=range_texts.source)
        description = description.model_copy(update={"ranges": ranges})
        description = _with_graph(folder, description, "openvino-int8")
    return description


def _with_graph(folder: Path, description: Description, name: GraphName) -> Description:
    """Return the description with a graph of the folder, and write it there, where encoders read it."""
    graphs = {**description.graphs, name: graph_file(folder / GRAPHS[name])}
    description = description.model_copy(update={"graphs": graphs})
    _write_description(folder, description)
    return description


@dataclass(frozen=True)
class RangeTexts:
    """Texts on which the ranges of activations are measured, and where they are from."""

    texts: list[str]
    source: str

    @classmethod
    def spread(cls, texts: Iterable[str], source: str) -> Self:
        """Return at most ``RANGE_TEXTS`` distinct texts, taken evenly from all of them."""
        distinct = list(dict.fromkeys(texts))
        return cls([distinct[index] for index in spread_over(len(distinct), RANGE_TEXTS)], source)


def _default_range_texts(pairs: PairData | None) -> RangeTexts:
    source = pairs if pairs is not None else _sample_pairs()
    return RangeTexts.spread([*source.sentences1, *source.sentences2], source.name)


def _range_inputs(folder: Path, texts: list[str]) -> list[dict[str, Any]]:
    """Return the inputs of the graph for each text by itself, so that no padding takes part in the ranges."""
    encoder = OnnxEncoder(folder)
    return [encoder.inputs([encoding]) for encoding in encoder.tokenised(texts)]


def _sample_pairs() -> PairData:
    with table_options():
        # With names, as its other columns need no warning.
        return read_pairs(sample_path("dev"), columns="question1,question2,label")


def _compare(
    encoder: SentenceTransformer, folder: Path, description: Description, pairs: PairData | None
) -> dict[str, Any]:
    """Return parity and agreement of the graphs with torch, and with labelled pairs also the drift."""
    names: list[GraphBackend] = [*description.graphs]
    if "openvino-int8" in names:
        names.append("openvino")  # which runs the graph of onnx
        if openvino_has_bfloat16():
            names.append("openvino-bfloat16")
    exported: dict[str, GraphEncoder] = {name: open_graph(folder, name) for name in names}
    checked_pairs = pairs if pairs is not None else _sample_pairs()
    # The awkward texts come first, so that the limit leaves none of them out.
    texts = [*AWKWARD, *dict.fromkeys([*checked_pairs.sentences1, *checked_pairs.sentences2])][: CHECKED + len(AWKWARD)]
    check_tokens(encoder, exported["onnx"].token_ids, texts)
    with counted(apart=True):  # truncation of our own texts is not worth a warning
        reference = checked_rows(encode(encoder, texts, precision="float32"), texts)
        figures: dict[str, Any] = {
            "parity": {name: parity(backend, reference, texts) for name, backend in exported.items()}
        }
        if pairs is None:
            return figures | _agreement_on_sample(encoder, exported, checked_pairs)
    backends: dict[str, Encode] = {name: backend.encode for name, backend in exported.items()}
    if has_bfloat16(torch.device("cpu")):
        backends["torch-bfloat16"] = partial(encode, encoder, precision="bfloat16")
    base, scores = _scores(encoder, backends, pairs)
    agreements = {name: agreement(base, backend) for name, backend in scores.items()}
    return figures | {"agreement": agreements, "drift": drift(pairs, base, scores)}


def _agreement_on_sample(
    encoder: SentenceTransformer, exported: Mapping[str, GraphEncoder], sample: PairData
) -> dict[str, Any]:
    """Return the agreement on the sample pairs; nothing if a model of another language cannot read them."""
    try:
        base, scores = _scores(encoder, {name: backend.encode for name, backend in exported.items()}, sample)
        return {"agreement": {name: agreement(base, backend) for name, backend in scores.items()}}
    except (DataError, ModelError):
        return {}


def _scores(
    encoder: SentenceTransformer, backends: Mapping[str, Encode], pairs: PairData
) -> tuple[Scores, dict[str, Scores]]:
    """Return the scores of pairs by torch in float32 and by each backend."""
    base = cosine_score(partial(encode, encoder, precision="float32"))(pairs.pairs())
    return base, {name: cosine_score(encoding)(pairs.pairs()) for name, encoding in backends.items()}


def _write_description(folder: Path, description: Description) -> None:
    write_text(folder / DESCRIPTION, description.model_dump_json(indent=2) + "\n")


def _finish(model: str | SentenceTransformer, folder: Path, name: str, weights: bool, description: Description) -> None:
    """Remove torch's weights unless they are kept, and write the model card."""
    if not weights:
        for path in folder.rglob("*.safetensors"):
            path.unlink()
    if not isinstance(model, str):
        return  # a model in memory has no source that a card could name
    source = Path(resolve(split_options(model).base))
    if is_ours(source):
        shutil.copyfile(source / CARD, folder / CARD)
    else:
        write_card(folder, Card(name=name, base=model, method="exported to ONNX"))
    add_section(folder, "Export", _card_section(description))


def _card_section(description: Description) -> str:
    """Return the section of the model card on the graphs and their agreement with torch."""
    lines = []
    for name, graph in description.graphs.items():
        graph_parity = description.parity[name]
        line = (
            f"- `{GRAPHS[name]}`, {graph.bytes / 1e6:.1f} MB: the least cosine of a vector with that of torch in "
            f"float32 is {graph_parity.least_cosine:.6f} over {graph_parity.texts} texts"
        )
        measured = description.drift
        if measured is not None:
            line += f"; Spearman x100 {measured.points[name]:+.2f} on {measured.pairs} pairs of {plain(measured.data)}"
        lines.append(line)
    return "\n".join(["Graphs that need no torch (`samesense similarity` opens them):", "", *lines])
