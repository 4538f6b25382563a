"""``samesense.similarity`` and ``explain``: how alike two texts are, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.api.library_function import library_function
from samesense.choices import ExplainBy, SimilarityBy, check_count
from samesense.data.rows.sources import warn_of_compared_names
from samesense.errors import DataError
from samesense.types import Pair, Precision

if TYPE_CHECKING:
    from samesense.context.origin.explain import Explanation as Contexts
    from samesense.context.origin.word_explanation import WordExplanation
    from samesense.inference.explain import Explanation
    from samesense.inference.sentences import SentenceMatches
    from samesense.types import Scores


@library_function
def similarity(
    model: Any,
    text1: str | Sequence[Pair] | Sequence[str],
    text2: str | Sequence[str] | None = None,
    *,
    calibrated: bool = False,
    calibration: str | Path | None = None,
    by: SimilarityBy = "whole",
    precision: Precision = "auto",
) -> float | Scores:
    """Score pairs of texts: the cosine of their embeddings, from -1 to 1, or the score of a cross-encoder.

    Args:
        model: model folder, output of ``train``, hub name or ``"default"``, or any other model as ``evaluate`` takes
            it; to score more than once, open it by :func:`samesense.load`.
        text1: first text, or pairs, or the first texts of pairs.
        text2: second text, or the second texts of pairs, as many.
        calibrated: give values on the scale of the labels that the model was calibrated on.
        calibration: file of the calibration, which implies ``calibrated``; by default ``calibration.json`` in the
            model's folder.
        by: compare ``"whole"`` texts, or documents by their ``"sentences"``: the score of each sentence with its best
            match, as the mean over both documents.
        precision: arithmetic; ``"auto"`` is bfloat16 where the processor supports it.

    Returns:
        One score, or ``(pairs,)`` of them.
    """
    from samesense.inference.models.load import load

    pairs = _pairs(text1, text2)
    texts = [text for pair in pairs for text in pair]
    path = None if calibration is None else Path(calibration)
    # With few texts, NumPy encodes them, and nothing waits for the import of torch.
    scorer = load(model, precision=precision, texts=texts, calibration=path)
    calibrated = calibrated or calibration is not None
    if by == "sentences":
        from samesense.inference.sentences import check_scale, sentence_scores

        check_scale(calibrated=calibrated)
        scores = sentence_scores(scorer, pairs)
    else:
        scores = scorer.scores(pairs, calibrated=calibrated)
    if isinstance(text1, str):
        return float(scores[0])
    return scores


def _pairs(text1: Any, text2: Any) -> list[Pair]:
    """Return pairs from two texts, two lists of texts, or pairs."""
    from samesense.inference.models.model import checked_pairs

    # A text is a sequence as well, so that two texts come first.
    if isinstance(text1, str) and isinstance(text2, str):
        warn_of_compared_names(text1, text2, "samesense similarity MODEL")
        return [(text1, text2)]
    if isinstance(text1, str) and text2 is None:
        raise DataError("`similarity` compares two texts; received one. Give both, or a list of pairs.")
    for texts in (text1, [] if text2 is None else text2):
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise DataError(
                "`similarity` compares two texts, or two lists of texts; received "
                f"{type(text1).__name__} and {type(text2).__name__}. One text with each of many: "
                "[(text, other) for other in others]."
            )
    if text2 is None:
        pairs = list(text1)
    else:
        first = list(text1)
        second = list(text2)
        if len(first) != len(second):
            raise DataError(
                f"Two lists of texts are compared text by text; received {len(first)} and {len(second)}. For each "
                "with each, take the embeddings: samesense.encode."
            )
        pairs = list(zip(first, second, strict=True))
    return checked_pairs(pairs)


@library_function
def explain(
    model: Any,
    text1: str,
    text2: str,
    *,
    by: ExplainBy = "auto",
    top: int = 10,
    precision: Precision = "auto",
) -> Explanation | Contexts | WordExplanation | SentenceMatches:
    """Explain the score of two texts by their words; of an Origin, by the words or contexts they lead to.

    Args:
        model: model folder, output of ``train``, hub name or ``"default"``, or any other model as ``similarity`` takes
            it; see :func:`samesense.load`.
        text1: first text.
        text2: second text.
        by: ``"tokens"``: exact sums over pairs of token vectors, where the embedding is their mean; ``"occlusion"``:
            the loss of score without a word, for any model; ``"auto"`` is tokens where possible; ``"sentences"``:
            which sentences of two documents match.
        top: number of word pairs that are shown, or of words or contexts of an Origin on each side.
        precision: arithmetic; ``"auto"`` is bfloat16 where the processor supports it.

    Returns:
        Prints as a table: the share of each word of either text, and of pairs of words.
    """
    from samesense.inference.models.load import load

    check_count("top", top)
    if not isinstance(text1, str) or not isinstance(text2, str):
        raise DataError(
            f"`explain` takes two texts; received {type(text1).__name__} and {type(text2).__name__}. Explain pair by "
            "pair."
        )
    from samesense.inference.explain import check_filled

    check_filled(text1, text2)
    warn_of_compared_names(text1, text2, "samesense explain MODEL")
    if by == "sentences":
        from samesense.inference.sentences import match_sentences

        return match_sentences(load(model, precision=precision, texts=[text1, text2]), [(text1, text2)])[0]
    from samesense.inference.explain import explain as run

    loaded = load(model, precision=precision)
    if by == "auto" and loaded.explainer is not None:
        explanation: Contexts | WordExplanation = loaded.explainer(text1, text2, top=top)
        return explanation
    return run(loaded, text1, text2, by=by)
