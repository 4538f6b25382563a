"""The route by which users of the web page label a pair, and the check that the request comes from that page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from fastapi import Depends, FastAPI, Request

from samesense.errors import DataError, OutputError
from samesense.inference.models.chat import SCALES
from samesense.inference.serve.errors import RequestError, invalid
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.schemas import LabelRequest
from samesense.types import Pair

SCALE = SCALES["0-5"]
BY = f"person, {SCALE.name}"
"""Value of the ``by`` column; the same as that of samesense label, so that either can continue the other's file."""


class LabelFile(Protocol):
    """Stores labels, such as :class:`samesense.inference.labelling.file.Labels`."""

    def __len__(self) -> int:
        """Return the number of labels."""

    def __contains__(self, pair: Pair) -> bool:
        """Return whether a pair, in either order, has a label."""

    def check(self, pairs: Sequence[Pair]) -> None:
        """Raise DataError if a text cannot be stored."""

    def add(self, labelled: Sequence[tuple[Pair, float]]) -> None:
        """Store labels of pairs that have none; OutputError if that fails."""


def add_labels(app: FastAPI, labels: LabelFile, limits: Limits) -> None:
    """Add the route by which an application's own page sends labels."""

    @app.post("/label", dependencies=[Depends(from_the_page)])
    async def label(form: LabelRequest) -> dict[str, Any]:
        pair = form.text1, form.text2
        limits.check_texts(pair, "text1")
        # Nothing is awaited from here to the end, so that no other request can label the pair in between.
        if pair in labels:
            raise RequestError(409, "This pair has a label already.", code="labelled")
        try:
            labels.check([pair])
        except DataError as error:
            raise invalid(str(error), param="text1") from error
        save_label(lambda: labels.add([(pair, float(form.score))]))
        return {"object": "label", "labels": len(labels)}


def shown_scale() -> list[dict[str, Any]]:
    """Return the labels that a page offers, with their meanings."""
    return [{"value": value, "meaning": meaning} for value, meaning in SCALE.meanings.items()]


def from_the_page(request: Request) -> None:
    """Refuse cross-origin requests: a browser names the address of the page in the header Origin."""
    # Programs other than browsers send no Origin.
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise RequestError(403, "Labels are given on the page of this server alone.", code="other_origin")


def save_label(write: Callable[[], None]) -> None:
    """Call ``write``, which stores a label; RequestError 507 if it cannot be written."""
    try:
        write()
    except OutputError as error:
        raise RequestError(507, str(error), code="not_kept") from error
