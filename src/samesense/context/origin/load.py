"""Opens the folder of an Origin, of whichever kind it is."""

from __future__ import annotations

from pathlib import Path

from samesense.context.origin.origin import Origin, origin_content
from samesense.context.origin.word_origin import WordOrigin
from samesense.errors import DataError
from samesense.places import check_inside


def open_origin(folder: Path, *, device: str = "cpu") -> Origin | WordOrigin:
    """Open a folder that the recipe has made; DataError or ModelError if a part is missing or damaged."""
    content = origin_content(folder)
    check_inside(folder, *folder.glob("*"), *folder.glob("*/*"))
    try:
        if content["contexts"] == "words":
            return WordOrigin.open(folder, content, device=device)
        return Origin.open(folder, device=device)
    except (LookupError, TypeError, AttributeError) as error:
        raise DataError(
            f"{folder} holds no whole Origin ({error!r}). Make it again, from the same documents."
        ) from error


def contexts_of(folder: Path) -> str:
    """Return where the contexts of an Origin are from, ``"words"`` or ``"retrieved"``; DataError if it is none."""
    return str(origin_content(folder).get("contexts"))
