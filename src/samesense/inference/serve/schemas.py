"""The forms of requests, and what OpenAI's embeddings interface takes and gives.

Source: the OpenAI API, POST /v1/embeddings and GET /v1/models. The shape of /v1/rerank is that of Jina (documents may
be objects; the answer has model, results and usage) and of Cohere (the answer has id, results and meta), whose client
for Python, 7.3, asks at /v1/rerank and /v2/rerank.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

Ids = tuple[int, ...]
"""Token ids of one text."""


def read_input(value: object) -> list[str] | list[Ids]:
    """Return the ``input`` of a request as a list: of texts, or of token ids of texts."""
    many = [value] if isinstance(value, str) or _is_ids(value) else value
    if isinstance(many, list) and many:
        if all(isinstance(one, str) for one in many):
            return list(many)
        if all(_is_ids(one) for one in many):
            return [tuple(one) for one in many]
    what = "an empty list" if many == [] else f"a {type(value).__name__}"
    if isinstance(value, list) and value:
        what = f"a list of {' and '.join(sorted({type(one).__name__ for one in value}))}"
    raise ValueError(
        f"must be a text, a list of texts, token ids, or a list of those, all of one kind; received {what}"
    )


def _is_ids(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 2**31 for one in value)
    )


_INPUT = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    ]
}
Input = Annotated[list[str] | list[Ids], PlainValidator(read_input), WithJsonSchema(_INPUT)]


class EmbeddingsRequest(BaseModel):
    """POST /v1/embeddings. Fields that are not listed are ignored, as clients send what other servers know."""

    model: str | None = None
    input: Input
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1)
    user: str | None = None


class _Own(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: str | None = None


class SimilarityRequest(_Own):
    """POST /similarity: the similarity of each of ``pairs``, or of all ``texts`` with each other.

    Beside it, if asked for, the ``calibrated`` one, and yes or no by the threshold of the calibration.
    """

    pairs: list[tuple[str, str]] | None = None
    texts: list[str] | None = None
    calibrated: bool = False
    yes_no: bool = False


class ExplainRequest(_Own):
    """POST /explain: what the similarity of two texts loses without each of their words."""

    text1: str
    text2: str


def read_document(value: object) -> object:
    """Return the text of a document, which may stand in an object under ``text``."""
    return value.get("text") if isinstance(value, dict) else value


Document = Annotated[
    str,
    BeforeValidator(read_document, json_schema_input_type=str | dict[Literal["text"], str]),
]


class LabelRequest(_Own):
    """POST /label: how alike two texts are by a person, 0 to 5."""

    text1: str
    text2: str
    score: int = Field(ge=0, le=5)


class RerankRequest(BaseModel):
    """POST /v1/rerank: ``documents`` in the order of how well they fit ``query``; unlisted fields are ignored.

    Documents are returned at /v1/rerank unless that is refused, as by Jina, and at /v2/rerank, Cohere's, on request.
    """

    model: str | None = None
    query: str
    documents: list[Document]
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool | None = None


class SearchRequest(_Own):
    """POST /search: the texts of the collection nearest to ``query``, only those that meet ``where``.

    By their words alone with ``words``, or by both with ``hybrid``.
    """

    query: str | list[str]
    top: int = Field(default=10, ge=1)
    where: str | dict[str, Any] | None = None
    hybrid: bool = False
    words: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> SearchRequest:
        if self.hybrid and self.words:
            raise ValueError("a query is by 'words' alone, or 'hybrid'; received both")
        return self
