"""How much one request may ask, and how much may wait."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

from samesense.data.formats.files import holds_half_character
from samesense.errors import ConfigError
from samesense.inference.serve.errors import RequestError, invalid


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of a server; every one is positive, ``wait_ms`` may be 0.

    Attributes:
        max_texts: texts of one request.
        max_chars: characters of one text.
        max_body: bytes of one request.
        max_matrix: texts of one request for all their similarities.
        max_top: hits a query.
        max_hits: hits of one request, over all its queries.
        queue_tokens: tokens that wait or are computed for one model; a request beyond is asked to come again.
        batch_tokens: tokens of one batch.
        wait_ms: milliseconds that an idle server waits for more requests to batch.
        max_seconds: from the arrival of a request to its answer.
        max_header_seconds: in which the head of a request must arrive.
        grace: seconds that a stopping server gives to what it has accepted.

    Raises:
        ConfigError: if a bound is not positive, or not finite.
    """

    max_texts: int = 2048
    max_chars: int = 32_768
    max_body: int = 8 * 2**20
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

    def check_texts(self, texts: Sequence[str], param: str) -> None:
        """Raise RequestError 400 for empty texts, 413 for too much, naming the first text concerned."""
        if not texts:
            raise invalid(f"'{param}' holds no text; give at least one.", param=param)
        if len(texts) > self.max_texts:
            raise invalid(
                f"A request may hold {self.max_texts} texts; received {len(texts)} in '{param}'. Send them in parts.",
                param=param, status=413,
            )  # fmt: skip
        for place, text in enumerate(texts):
            if not text.strip():
                raise invalid(f"'{param}' must not hold an empty text; text {place} is empty.", param=param)
            if len(text) > self.max_chars:
                raise invalid(
                    f"A text may have {self.max_chars} characters; text {place} of '{param}' has {len(text)}. Cut it.",
                    param=param, status=413,
                )  # fmt: skip
            if holds_half_character(text):
                raise invalid(
                    f"Text {place} of '{param}' holds half a surrogate pair; send valid Unicode.", param=param
                )

    def check_hits(self, queries: int, top: int) -> None:
        """Raise RequestError 413 for too many hits of a query, or of all queries together."""
        if top > self.max_top:
            raise invalid(f"'top' may be {self.max_top}; received {top}.", param="top", status=413)
        if queries * top > self.max_hits:
            raise invalid(
                f"The queries of a request may have {self.max_hits} hits together; received {queries} queries with "
                f"'top' {top}. Send them in parts.",
                param="top", status=413,
            )  # fmt: skip

    def late(self) -> RequestError:
        """Return the error of a request that took too long."""
        return RequestError(
            504, f"There was no answer within {self.max_seconds:g} s. Send fewer texts at once, or come again.",
            code="timeout",
        )  # fmt: skip
