"""Sentence similarity: train from any supervision, evaluate, compare, and put to work.

import samesense
train, dev, test = (samesense.read(f"{part}.tsv") for part in ("train", "dev", "test"))
run = samesense.train(train, dev=dev, output="runs/a")
print(samesense.evaluate(run.model, test))
model = samesense.load("runs/a")
model.similarity("A man is eating.", "Someone has a meal.")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samesense.telemetry import disable_telemetry

if TYPE_CHECKING:
    from samesense.api.data import doctor, mine_negatives, read
    from samesense.api.duplicates import dedup, match
    from samesense.api.evaluation import calibrate, compare, evaluate
    from samesense.api.index import build_index, open_index
    from samesense.api.label import label
    from samesense.api.publish import export, push
    from samesense.api.race import race
    from samesense.api.score import score
    from samesense.api.sentence_encoder import SentenceEncoder
    from samesense.api.serve import app, serve
    from samesense.api.similarity import explain, similarity
    from samesense.api.training import cross_validate, distil, harvest, origin, pretrain, sweep, train
    from samesense.api.use import drift, encode, mine, read_vectors, rerank, whiten
    from samesense.execution.audience import disable_progress_bars, enable_progress_bars
    from samesense.inference.models.load import load
    from samesense.inference.models.model import Model

    __version__: str

# Before any module of a dependency is imported: onnxruntime starts its telemetry during its import.
disable_telemetry()

_HOMES = {
    "samesense.api.data": ("doctor", "mine_negatives", "read"),
    "samesense.api.evaluation": ("calibrate", "compare", "evaluate"),
    "samesense.api.index": ("build_index", "open_index"),
    "samesense.api.label": ("label",),
    "samesense.api.publish": ("export", "push"),
    "samesense.api.race": ("race",),
    "samesense.api.sentence_encoder": ("SentenceEncoder",),
    "samesense.api.serve": ("app", "serve"),
    "samesense.api.training": ("cross_validate", "distil", "harvest", "origin", "pretrain", "sweep", "train"),
    "samesense.api.duplicates": ("dedup", "match"),
    "samesense.api.score": ("score",),
    "samesense.api.similarity": ("explain", "similarity"),
    "samesense.api.use": ("drift", "encode", "mine", "read_vectors", "rerank", "whiten"),
    "samesense.execution.audience": ("disable_progress_bars", "enable_progress_bars"),
    "samesense.inference.models.load": ("load",),
    "samesense.inference.models.model": ("Model",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Model",
    "SentenceEncoder",
    "__version__",
    "app",
    "build_index",
    "calibrate",
    "compare",
    "cross_validate",
    "dedup",
    "disable_progress_bars",
    "distil",
    "doctor",
    "drift",
    "enable_progress_bars",
    "encode",
    "evaluate",
    "explain",
    "export",
    "harvest",
    "label",
    "load",
    "match",
    "mine",
    "mine_negatives",
    "open_index",
    "origin",
    "pretrain",
    "push",
    "race",
    "read",
    "read_vectors",
    "rerank",
    "score",
    "serve",
    "similarity",
    "sweep",
    "train",
    "whiten",
]


if not TYPE_CHECKING:  # else a type checker takes every misspelt name for one of these

    def __getattr__(name: str) -> Any:
        """Import a public name on first use, so that ``import samesense`` does not load torch."""
        if name == "__version__":
            # The reader of installed packages takes half of the time of ``import samesense``.
            from importlib.metadata import version

            return version("samesense")
        if name not in _HOME_OF:
            raise AttributeError(f"module 'samesense' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
