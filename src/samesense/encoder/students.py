"""Students by name: some layers of a teacher, a static model of its tokens, or any smaller encoder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from sentence_transformers import SentenceTransformer

from samesense.encoder.build import build
from samesense.encoder.layers import first_layers, spaced_layers
from samesense.encoder.static import static_student
from samesense.errors import ConfigError
from samesense.types import First, PoolingName

Spacing = Literal["even", "first"]
"""Which layers of a teacher its student keeps: at even distances, the first and the last among them, or the first."""

_MADE = re.compile(r"(?P<kind>layers|static)(?::(?P<number>.*))?")


_NO_MODEL = re.compile(r"(vectors|words):.*|.*\+(whiten|flow)(:\d+)?")


def is_model(teacher: str) -> bool:
    """Return whether a teacher's name is that of a model: no file of vectors, and no map behind it."""
    return _NO_MODEL.fullmatch(teacher) is None


def is_static(student: str) -> bool:
    """Return whether a static model is asked for."""
    match = _MADE.fullmatch(student)
    return match is not None and match["kind"] == "static"


def make_student(
    student: str,
    teacher: str,
    texts: Sequence[str],
    *,
    spacing: Spacing = "even",
    pooling: PoolingName | None = None,
    first: First = "layer",
    teacher_pooling: PoolingName | None = None,
    device: str | None = None,
) -> SentenceTransformer:
    """Return a start point for distillation.

    Args:
        student: ``layers:N``, of the teacher's; ``static`` or ``static:DIM``, see
            :func:`~samesense.encoder.static.static_student`; or a folder or hub name.
        teacher: folder or hub name of the model that the first two are made from.
        texts: to be trained on; a static model counts its tokens in them.
        spacing: which layers are kept.
        pooling: see :func:`~samesense.encoder.build.build`.
        first: what "first" means in ``first-last``.
        teacher_pooling: of the teacher, and of ``layers:N`` where no pooling is given; ``None`` is its own.
        device: torch device; ``None`` lets sentence-transformers choose.

    Raises:
        ConfigError: if the name is malformed, or asks for more than the teacher has.
        ModelError: if a model cannot be read, or is none of which a student can be made.
    """
    match = _MADE.fullmatch(student)
    if match is None:
        return build(student, pooling=pooling, first=first, device=device)
    number = _number(student, match["number"])
    if not is_model(teacher):
        raise ConfigError(
            f"The student {student} is made from the first teacher, which must be a model then; received {teacher}. "
            "Name a model first, or a small encoder as the student."
        )
    if match["kind"] == "static":
        if pooling is not None:
            raise ConfigError(f"A static student takes the mean of its tokens. Leave out pooling {pooling}.")
        return static_student(build(teacher, pooling=teacher_pooling, device=device), texts, number)
    if number is None:
        raise ConfigError("layers takes the number of layers to keep, as in layers:3; received none.")
    cut = spaced_layers if spacing == "even" else first_layers
    return cut(build(teacher, pooling=pooling or teacher_pooling, first=first, device=device), number)


def _number(student: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"A student is named layers:3, static, static:256, or by a model; received {student!r}.")
    return int(text)
