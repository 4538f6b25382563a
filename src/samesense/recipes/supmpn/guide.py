"""A guide that tells false negatives: its vectors of all texts, computed once before the first step."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from torch import Tensor

from samesense.data.sentences import Sentences
from samesense.data.tuples.data import TupleData
from samesense.errors import ConfigError
from samesense.recipes.supmpn.settings import SupmpnSettings
from samesense.recipes.teachers import open_teacher
from samesense.training.teachers import Teacher, TeacherStore, teacher_store


class Guide:
    """The guide of a run, whose vectors are kept as teachers' are; see :mod:`samesense.training.teachers`.

    Args:
        data: anchors, positives and negatives, the texts that the guide embeds.
        settings: settings of the run.
        output: run folder, in which the vectors are kept unless the settings name another folder.

    Raises:
        ConfigError: if the settings name no guide, or it does not embed, or the data have classes, which tell false
            negatives by themselves.
        ModelError: if the guide cannot be read.
    """

    def __init__(self, data: TupleData, settings: SupmpnSettings, output: Path) -> None:
        if settings.guide is None:
            raise ConfigError(
                "Loss gist takes a guide, a model that tells false negatives; received none. Give one, as in --guide "
                "default, or take loss info-nce."
            )
        if data.classes is not None:
            raise ConfigError(
                f"Loss gist guesses false negatives by a guide, and {data.source} has classes, which tell them. Take "
                "loss supmpn or supcon, and leave out the guide."
            )
        texts = list(dict.fromkeys(chain(data.anchors, *data.positives, *data.negatives)))
        self.sentences = Sentences(texts=texts, source=data.source, name=data.name)
        self.cache = Path(settings.teacher_cache).expanduser() if settings.teacher_cache else output / "teachers"
        self._rows = {text: row for row, text in enumerate(texts)}
        self._teacher: Teacher | None = open_teacher(settings.guide)
        self._store: TeacherStore | None = None

    def row(self, text: str) -> int:
        """Return the row number of a text."""
        return self._rows[text]

    def encode(self) -> None:
        """Encode all texts, unless their vectors are stored already, and release the model."""
        if self._teacher is not None:
            self._store = teacher_store(self._teacher, self.sentences, self.cache)
            self._teacher = None

    def vectors(self, rows: Tensor) -> Tensor:
        """Return the unit vectors ``(texts, dim)`` of these row numbers ``(texts,)``."""
        if self._store is None:
            raise RuntimeError("Guide.encode comes before Guide.vectors.")
        return self._store.rows(rows)
