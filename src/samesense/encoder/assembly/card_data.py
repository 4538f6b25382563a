"""Data of model cards that ask no hub.

sentence-transformers looks the name of a model up on the hub to fill in its card, when the model is loaded and at each
checkpoint, also where that name is a local folder. The cards of samesense are its own; see
:mod:`samesense.encoder.saving.card`.
"""

from __future__ import annotations

from sentence_transformers import CrossEncoderModelCardData, SentenceTransformerModelCardData


def offline_card_data() -> SentenceTransformerModelCardData:
    """Return the card data of a bi-encoder."""
    return SentenceTransformerModelCardData(local_files_only=True)


def offline_cross_card_data() -> CrossEncoderModelCardData:
    """Return the card data of a cross-encoder."""
    return CrossEncoderModelCardData(local_files_only=True)
