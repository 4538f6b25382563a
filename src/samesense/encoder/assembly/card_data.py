"""Model card data without requests to the hub.

sentence-transformers looks up a model's name on the hub to fill in its card, on loading and at each checkpoint, even if
the name is a local folder. samesense writes its own cards; see :mod:`samesense.encoder.saving.card`.
"""

from __future__ import annotations

from sentence_transformers import CrossEncoderModelCardData, SentenceTransformerModelCardData


def offline_card_data() -> SentenceTransformerModelCardData:
    """Return the card data of a bi-encoder."""
    return SentenceTransformerModelCardData(local_files_only=True)


def offline_cross_card_data() -> CrossEncoderModelCardData:
    """Return the card data of a cross-encoder."""
    return CrossEncoderModelCardData(local_files_only=True)
