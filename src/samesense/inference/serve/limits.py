"""Limits on the size of a request, on the queue and on time."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from samesense.data.conventions.texts import holds_half_character
from samesense.errors import ConfigError
from samesense.inference.serve.errors import RequestError, invalid
from samesense.inference.serve.structure import Structure, measure


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a server; all are positive, ``wait_ms`` may be 0.

    Attributes:
        max_texts: texts of one request.
        max_chars: characters of one text.
        max_body: bytes of one request.
        max_bodies: bytes of all requests in progress together, plus 200 for each JSON value; requests of at most 64 KiB
            do not count.
        max_values: texts, numbers, lists and objects of one request.
        max_keys: keys in the objects of one request, which cost more than values.
        max_depth: nesting of lists and objects of one request.
        max_where: bytes of the condition of a search.
        max_matrix: texts of one request for all their similarities.
        max_top: hits of one query.
        max_hits: hits of one request, over all its queries.
        queue_tokens: tokens that wait or are computed for one model; a request that exceeds them is refused with 429.
        batch_tokens: tokens of one batch.
        wait_ms: milliseconds that an idle server waits for more requests to batch.
        max_seconds: seconds from the arrival of a request to its answer.
        max_header_seconds: seconds in which the head of a request must arrive.
        grace: seconds that a stopping server gives to the requests it has accepted.

    Raises:
        ConfigError: if a bound is not positive, or not finite.
    """

    max_texts: int = 2048
    max_chars: int = 32_768
    max_body: int = 8 * 2**20
    max_bodies: int = 32 * 2**20
    max_values: int = 50_000
    max_keys: int = 10_000
    max_depth: int = 64
    max_where: int = 2**16
    max_matrix: int = 200
    max_top: int = 1000
    max_hits: int = 20_480
    queue_tokens: int = 200_000
    batch_tokens: int = 4096
    wait_ms: float = 2.0
    max_seconds: float = 30.0
    max_header_seconds: float = 10.0
    grace: float = 30.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not math.isfinite(value) or value < 0 or (value == 0 and field.name != "wait_ms"):
                raise ConfigError(f"The limit {field.name} must be positive; received {value}.")

    def check_count(self, count: int, param: str) -> None:
        """Raise RequestError 413 for too many texts, pairs or documents in one request."""
        if count > self.max_texts:
            message = f"A request may hold {self.max_texts} texts; received {count} in '{param}'. Send them in parts."
            raise _beyond(message, "max_texts", param)

    def check_texts(self, texts: Sequence[str], param: str) -> None:
        """Raise RequestError, naming the first text concerned: 400 for an empty one, 413 for too many or too long."""
        if not texts:
            raise invalid(f"'{param}' holds no text; give at least one.", param=param)
        self.check_count(len(texts), param)
        for index, text in enumerate(texts):
            if len(text) > self.max_chars:
                message = (
                    f"A text may have {self.max_chars} characters; text {index} of '{param}' has {len(text)}. Cut it."
                )
                raise _beyond(message, "max_chars", param)
            if not text.strip():
                raise invalid(f"'{param}' must not hold an empty text; text {index} is empty.", param=param)
            if holds_half_character(text):
                raise invalid(
                    f"Text {index} of '{param}' holds half a surrogate pair; send valid Unicode.", param=param
                )

    def check_hits(self, queries: int, top: int) -> None:
        """Raise RequestError 413 for too many hits of a query, or of all queries together."""
        if top > self.max_top:
            raise _beyond(f"'top' may be {self.max_top}; received {top}.", "max_top", "top")
        if queries * top > self.max_hits:
            message = (
                f"The queries of a request may have {self.max_hits} hits together; received {queries} queries with "
                f"'top' {top}. Send them in parts."
            )
            raise _beyond(message, "max_hits", "top")

    def check_side(self, count: int) -> None:
        """Raise RequestError 413 for a similarity matrix of too many texts."""
        if count > self.max_matrix:
            message = f"'texts' may be 1 to {self.max_matrix}; received {count}. Send 'pairs'."
            raise _beyond(message, "max_matrix", "texts")

    def check_words(self, count: int) -> None:
        """Raise RequestError 413 for too many words to explain; each word is one pair to score."""
        if count > self.max_texts:
            message = (
                f"Each word is left out in turn, and two texts may have {self.max_texts} words and marks together; "
                f"received {count}. Cut them."
            )
            raise _beyond(message, "max_texts", "text1")

    def check_where(self, where: str | Mapping[str, Any] | None) -> None:
        """Raise RequestError 413 for a condition that is too long, as text or as JSON."""
        if isinstance(where, str):
            size = len(where)
        else:
            size = len(json.dumps(where, ensure_ascii=False))
        if size > self.max_where:
            message = f"A condition may have {self.max_where} bytes; received {size}. Ask for fewer values at once."
            raise _beyond(message, "max_where", "where")

    def check_body(self, size: int) -> None:
        """Raise RequestError 413 for a request of too many bytes."""
        if size > self.max_body:
            message = f"A request may have {self.max_body} bytes; received {size} or more. Send it in parts."
            raise _beyond(message, "max_body", None)

    def check_structure(self, body: bytes) -> int:
        """Return the number of values in JSON.

        RequestError 413 if they are too many or too deep, 400 if the body is not UTF-8 or a name stands twice.
        """
        if b"\0" in body:  # UTF-16 and UTF-32 have zero bytes
            raise invalid("The body must be JSON in UTF-8; received a zero byte.")
        try:
            body.decode()
        except UnicodeDecodeError as error:
            byte = body[error.start]
            raise invalid(
                f"The body must be JSON in UTF-8; received the byte 0x{byte:02x} at position {error.start}."
            ) from error
        most = Structure(self.max_values, self.max_keys, self.max_depth)
        values, keys, depth = measure(body, most)
        if values > most.values:
            message = f"A request may hold {most.values} texts, numbers, lists and objects; received more."
            raise _beyond(f"{message} Send it in parts.", "max_values", None)
        if keys > most.keys:
            message = f"The objects of a request may have {most.keys} names together; received more."
            raise _beyond(f"{message} Send it in parts.", "max_keys", None)
        if depth > most.depth:
            message = f"Lists and objects may be nested {most.depth} deep; received more."
            raise _beyond(message, "max_depth", None)
        if keys > 1:
            _check_names(body)
        return values

    def late(self) -> RequestError:
        """Return the error of a request that took too long."""
        message = f"There was no answer within {self.max_seconds:g} s. Send fewer texts at once, or come again."
        return RequestError(504, message, code="timeout")


def _check_names(body: bytes) -> None:
    """Raise RequestError 400 if a name stands more than once in an object, of which a parser keeps the last value."""
    # A body that is no JSON is refused where it is parsed.
    with suppress(ValueError):
        _distinct.decode(body.decode())


def _check_pairs(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)[:60]
        message = f"The names of an object must differ; {repeated!r} stands more than once. Send one."
        raise invalid(message, param=repeated)


_distinct = json.JSONDecoder(object_pairs_hook=_check_pairs)


def _beyond(message: str, limit: str, param: str | None) -> RequestError:
    """Return the error of a request that exceeds a limit, with the option that sets the limit."""
    option = limit.replace("_", "-")
    return invalid(f"{message} The limit is that of `samesense serve --{option}`.", param=param, status=413)
