"""Schemas of requests.

Source: the OpenAI API, POST /v1/embeddings and GET /v1/models. The format of /v1/rerank is that of Jina (documents may
be objects; the answer has model, results and usage) and of Cohere (the answer has id, results and meta), whose Python
client 7.3 sends to /v1/rerank and /v2/rerank.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    PlainValidator,
    Strict,
    WithJsonSchema,
    model_validator,
)
from typing_extensions import TypeAliasType

from samesense.failures import abridged
from samesense.inference.serve.errors import invalid
from samesense.types import TaskName

Ids = tuple[int, ...]
"""Token ids of one text."""

SHOWN_NAMES = 3
"""Most unknown fields that a message names."""


def json_kind(value: object) -> str:
    """Return the kind of a value in JSON's terms, for a message."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    kinds: dict[type, str] = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), type(value).__name__)


def json_excerpt(value: object) -> str:
    """Return the beginning of a value as JSON, at a cost that does not grow with the value."""
    if isinstance(value, str):
        return json.dumps(value[:60])
    if isinstance(value, bool | int | float | None):
        return json.dumps(value)[:60]
    if isinstance(value, dict):
        # With a range, zip reads only the first names of a large object.
        names = ", ".join(json.dumps(str(name)[:40]) for name, _ in zip(value, range(SHOWN_NAMES), strict=False))
        if not names:
            return "an empty object"
        return f"an object with the fields {names}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return json_kind(value)


def read_input(value: object) -> list[str] | list[Ids]:
    """Return the ``input`` of a request as a list: of texts, or of the token ids of texts."""
    items = [value] if isinstance(value, str) or _is_ids(value) else value
    if isinstance(items, list) and items:
        items = [_unwrap_text(item) for item in items]
        if all(isinstance(item, str) for item in items):
            return list(items)
        if all(_is_ids(item) for item in items):
            return [tuple(item) for item in items]
    what = "an empty list" if items == [] else json_kind(value)
    if isinstance(value, list) and value:
        what = f"a list of {' and '.join(sorted({_item_kind(entry) for entry in value}))}"
    raise ValueError(
        f"must be a text, a list of texts, token ids, or a list of those, all of one kind; received {what}"
    )


def _unwrap_text(value: Any) -> Any:
    """Return the text of ``{"text": ...}``, which Jina's clients send, or the value itself."""
    if isinstance(value, dict) and list(value) == ["text"]:
        return value["text"]
    return value


def _item_kind(value: object) -> str:
    """Return the kind of a list's item, in the plural, for a message: not every number is a token id."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "numbers"
    if isinstance(value, list):
        if _is_ids(value):
            return "lists of token ids"
        return "lists of other values"
    kinds: dict[type, str] = {str: "texts", dict: "objects"}
    return kinds.get(type(value), json_kind(value))


def _is_ids(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 2**31 for item in value)
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


# FailFast: pydantic would otherwise report an error of a kilobyte for each of a million wrong documents.
Texts = TypeAliasType("Texts", Annotated[list[str], FailFast()])
# JSON has no tuples: a strict schema would refuse its lists.
TextPairs = TypeAliasType("TextPairs", Annotated[list[Annotated[tuple[str, str], Strict(False)]], FailFast()])


class UnknownFieldError(ValueError):
    """A request has a field, named ``param``, that its schema does not know or does not allow with this value."""

    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param


class Form(BaseModel):
    """A request. Types are strict: neither true nor "1" is a number. A field that is null counts as missing."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        fields = cls.model_fields
        return {
            name: content
            for name, content in value.items()
            # The null of a required field stays, so that the message says what it must be.
            if content is not None or (name in fields and fields[name].is_required())
        }


class OwnForm(Form):
    """A request of our own API, where an unknown field is an error."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, value: object) -> object:
        fields = cls.model_fields
        if isinstance(value, dict) and (unknown := [name for name in value if name not in fields]):
            names = abridged([repr(name[:60]) for name in unknown], SHOWN_NAMES)
            message = f"There is no field {names}; the fields are {', '.join(fields)}"
            raise UnknownFieldError(message, unknown[0])
        return value


class _ModelForm(OwnForm):
    model: str | None = None


Truncation = bool | Literal["NONE", "END", "START"]
"""Whether texts that are too long are truncated, in the values of several servers."""

ONLY: dict[str, tuple[Any, ...]] = {
    "embedding_type": ("float", ["float"]),
    "late_chunking": (False,),
    "normalized": (True,),
    "output_dimension": (),
    "output_dtype": ("float",),
}
"""Fields of Jina and Voyage that would change the vectors, with the values under which they do not."""


class EmbeddingsRequest(Form):
    """POST /v1/embeddings. Fields that only other servers know are ignored unless they would change the vectors."""

    model: str | None = None
    input: Input
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1)
    input_type: str | None = None
    task: str | None = None
    truncate: Truncation | None = None
    user: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _nothing_else(cls, value: object) -> object:
        for name, values in ONLY.items():
            content = value.get(name) if isinstance(value, dict) else None
            if content is not None and content not in values:
                message = f"'{name}' is not known here; received {json_excerpt(content)}. Leave it out"
                raise UnknownFieldError(f"{message}; 'encoding_format' and 'dimensions' say the form of vectors", name)
        return value


def may_cut(truncate: Truncation | None) -> bool | None:
    """Return whether texts that are too long may be truncated; ``None`` where the server decides."""
    if truncate == "START":
        raise invalid("Texts that are too long are cut at their end; received 'truncate' START.", param="truncate")
    if isinstance(truncate, str):
        return truncate == "END"
    return truncate


TASKS: dict[str, TaskName] = {
    **dict.fromkeys(("query", "search_query", "retrieval.query"), "query"),
    **dict.fromkeys(("document", "passage", "search_document", "retrieval.passage"), "document"),
}
"""Values of ``input_type`` or ``task`` in the APIs of other servers; other values mean no task."""


def task_of(input_type: str | None) -> TaskName | None:
    """Return the task that a client's ``input_type`` or ``task`` means."""
    if input_type is None:
        return None
    return TASKS.get(input_type.lower())


class SimilarityRequest(_ModelForm):
    """POST /similarity: the similarity of each of ``pairs``, or of all ``texts`` with each other.

    On request also the ``calibrated`` score, and yes or no by the threshold of the calibration.
    """

    pairs: TextPairs | None = None
    texts: Texts | None = None
    calibrated: bool = False
    yes_no: bool = False


class ExplainRequest(_ModelForm):
    """POST /explain: what the similarity of two texts loses without each of their words."""

    text1: str
    text2: str


def read_document(value: object) -> object:
    """Return the text of a document, which may be an object with the field ``text``."""
    if isinstance(value, Mapping):
        if not isinstance(value.get("text"), str):
            raise ValueError(f"a document is a text, or an object with a 'text'; received {json_excerpt(value)}")
        return value["text"]
    return value


Document = Annotated[str, BeforeValidator(read_document, json_schema_input_type=str | dict[Literal["text"], str])]


Documents = TypeAliasType("Documents", Annotated[list[Document], FailFast()])


class LabelRequest(_ModelForm):
    """POST /label: a person's label of the similarity of two texts, 0 to 5."""

    text1: str
    text2: str
    score: int = Field(ge=0, le=5)


class RerankRequest(Form):
    """POST /v1/rerank: ``documents`` ranked by how well they fit ``query``; unknown fields are ignored.

    The answer of /v1/rerank holds the documents unless the request refuses them, as Jina's; that of /v2/rerank only on
    request, as Cohere's.
    """

    model: str | None = None
    query: str
    documents: Documents
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool | None = None


class SearchRequest(_ModelForm):
    """POST /search: the texts of the collection nearest to ``query`` among those that meet ``where``.

    With ``words`` by full-text search alone, with ``hybrid`` by vectors and words.
    """

    query: str | Texts
    top: int = Field(default=10, ge=1)
    where: str | dict[str, Any] | None = None
    hybrid: bool = False
    words: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> SearchRequest:
        if self.hybrid and self.words:
            raise ValueError("a query is by 'words' alone, or 'hybrid'; received both")
        return self
