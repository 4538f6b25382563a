"""The forms of requests, and what OpenAI's embeddings interface takes and gives.

Source: the OpenAI API, POST /v1/embeddings and GET /v1/models. The shape of /v1/rerank is that of Jina (documents may
be objects; the answer has model, results and usage) and of Cohere (the answer has id, results and meta), whose client
for Python, 7.3, asks at /v1/rerank and /v2/rerank.
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

from samesense.inference.serve.errors import invalid
from samesense.types import TaskName

Ids = tuple[int, ...]
"""Token ids of one text."""

SHOWN_NAMES = 3
"""Unknown fields that a message names."""


def json_kind(value: object) -> str:
    """Return what a value is in the words of JSON."""
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
        names = ", ".join(json.dumps(str(name)[:40]) for name, _ in zip(value, range(SHOWN_NAMES), strict=False))
        return f"an object with the fields {names}" if names else "an empty object"
    return f"a list of {len(value)}" if isinstance(value, list) else json_kind(value)


def read_input(value: object) -> list[str] | list[Ids]:
    """Return the ``input`` of a request as a list: of texts, or of token ids of texts."""
    many = [value] if isinstance(value, str) or _is_ids(value) else value
    if isinstance(many, list) and many:
        many = [_text_in(item) for item in many]
        if all(isinstance(entry, str) for entry in many):
            return list(many)
        if all(_is_ids(entry) for entry in many):
            return [tuple(entry) for entry in many]
    what = "an empty list" if many == [] else json_kind(value)
    if isinstance(value, list) and value:
        what = f"a list of {' and '.join(sorted({_item_kind(entry) for entry in value}))}"
    raise ValueError(
        f"must be a text, a list of texts, token ids, or a list of those, all of one kind; received {what}"
    )


def _text_in(value: Any) -> Any:
    """Return the text of an object that has nothing else, as Jina's clients send it, or the value itself."""
    return value["text"] if isinstance(value, dict) and list(value) == ["text"] else value


def _item_kind(value: object) -> str:
    """Return what items like this one are: not every number is a token id."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "numbers"
    if isinstance(value, list):
        return "lists of token ids" if _is_ids(value) else "lists of other values"
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


# Reading ends at the first error: a million wrong documents would be a million errors, of a kilobyte each.
Texts = TypeAliasType("Texts", Annotated[list[str], FailFast()])
TextPairs = TypeAliasType("TextPairs", Annotated[list[Annotated[tuple[str, str], Strict(False)]], FailFast()])


class UnknownFieldError(ValueError):
    """A form has no field of the name ``param``."""

    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param


class Form(BaseModel):
    """A request. Types are those of JSON: true is no number, and "1" none either; null is a field that is not given."""

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
            if content is not None or (name in fields and fields[name].is_required())
        }


class OwnForm(Form):
    """A request in a form of our own, of which every field is known."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        fields = cls.model_fields
        if isinstance(value, dict) and (unknown := [name for name in value if name not in fields]):
            names = ", ".join(repr(name[:60]) for name in unknown[:SHOWN_NAMES])
            more = f" and {len(unknown) - SHOWN_NAMES} more" if len(unknown) > SHOWN_NAMES else ""
            message = f"There is no field {names}{more}; the fields are {', '.join(fields)}"
            raise UnknownFieldError(message, unknown[0])
        return value


class _ModelForm(OwnForm):
    model: str | None = None


Truncation = bool | Literal["NONE", "END", "START"]
"""Whether texts that are too long are cut, for clients of other servers."""

ONLY: dict[str, tuple[Any, ...]] = {
    "embedding_type": ("float", ["float"]),
    "late_chunking": (False,),
    "normalized": (True,),
    "output_dimension": (),
    "output_dtype": ("float",),
}
"""Fields of Jina and Voyage that change the vectors, and the values with which they do not."""


class EmbeddingsRequest(Form):
    """POST /v1/embeddings. Unlisted fields, which other servers know, are ignored unless they change vectors."""

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
    """Return whether texts that are too long may be cut; ``None`` where the server decides."""
    if truncate == "START":
        raise invalid("Texts that are too long are cut at their end; received 'truncate' START.", param="truncate")
    return {"NONE": False, "END": True}.get(truncate) if isinstance(truncate, str) else truncate


TASKS: dict[str, TaskName] = {
    **dict.fromkeys(("query", "search_query", "retrieval.query"), "query"),
    **dict.fromkeys(("document", "passage", "search_document", "retrieval.passage"), "document"),
}
"""What clients call the task of texts, as ``input_type`` or ``task``; other names are none."""


def task_of(input_type: str | None) -> TaskName | None:
    """Return the task of texts by the name that a client gives it."""
    return TASKS.get(input_type.lower()) if input_type is not None else None


class SimilarityRequest(_ModelForm):
    """POST /similarity: the similarity of each of ``pairs``, or of all ``texts`` with each other.

    Beside it, if asked for, the ``calibrated`` one, and yes or no by the threshold of the calibration.
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
    """Return the text of a document, which may stand in an object under ``text``."""
    if isinstance(value, Mapping):
        if not isinstance(value.get("text"), str):
            raise ValueError(f"a document is a text, or an object with a 'text'; received {json_excerpt(value)}")
        return value["text"]
    return value


Document = Annotated[str, BeforeValidator(read_document, json_schema_input_type=str | dict[Literal["text"], str])]


Documents = TypeAliasType("Documents", Annotated[list[Document], FailFast()])


class LabelRequest(_ModelForm):
    """POST /label: how alike two texts are by a person, 0 to 5."""

    text1: str
    text2: str
    score: int = Field(ge=0, le=5)


class RerankRequest(Form):
    """POST /v1/rerank: ``documents`` in the order of how well they fit ``query``; unlisted fields are ignored.

    Documents are returned at /v1/rerank unless that is refused, as by Jina, and at /v2/rerank, Cohere's, on request.
    """

    model: str | None = None
    query: str
    documents: Documents
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool | None = None


class SearchRequest(_ModelForm):
    """POST /search: the texts of the collection nearest to ``query``, only those that meet ``where``.

    By their words alone with ``words``, or by both with ``hybrid``.
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
