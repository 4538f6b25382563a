"""Start models of a race: those at hand and those that are named, opened once and timed."""

from __future__ import annotations

import importlib.util
import logging
import statistics
from collections.abc import Sequence
from pathlib import Path

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.cross import is_cross_encoder
from samesense.encoder.assembly.students import make_student
from samesense.encoder.encode import as_encode
from samesense.encoder.names import DEFAULT, resolve
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, MissingExtraError, OutputError, SamesenseError
from samesense.execution.progress import stage
from samesense.execution.timing import seconds_taken
from samesense.recipes.race.clock import Clock
from samesense.recipes.race.entrants import Start
from samesense.types import Encode

logger = logging.getLogger(__name__)

LARGEST = 600e6
"""Bytes above which a model in the cache of the hub is not taken by itself: it would use up the time of the others."""

STATIC = "static of default"
"""Name of the start model that is made of the default's tokens."""

ROUNDS = 3
"""Rounds of a speed, whose median it is."""

TIMED = 128
"""Texts by which a model is timed."""


def at_hand() -> list[str]:
    """Return the models that need no download: the default if it is installed, and those in the cache of the hub."""
    try:
        resolve(DEFAULT)
    except MissingExtraError:
        return _cached()
    return [DEFAULT, *_cached()]


def _cached() -> list[str]:
    """Return the sentence-transformers models in the cache of the hub, but for very large ones."""
    # Without it no model can have come from the hub, and none is in its cache.
    if importlib.util.find_spec("huggingface_hub") is None:
        return []
    # Takes 0.25 s, and only --at-hand looks into the cache.
    from huggingface_hub import CacheNotFound, scan_cache_dir

    try:
        repos = scan_cache_dir().repos
    except (CacheNotFound, OSError):
        return []
    return sorted(
        repo.repo_id
        for repo in repos
        if repo.repo_type == "model"
        and repo.size_on_disk <= LARGEST
        # This file marks a model of sentence-transformers.
        and any(file.file_name == "modules.json" for revision in repo.revisions for file in revision.files)
    )


def open_named(names: Sequence[str], sample: Sequence[str]) -> list[Start]:
    """Open the start models that are named, each once, and time them on the texts of a sample."""
    once = list(dict.fromkeys(names))
    short = [Path(name).name if Path(name).exists() else name for name in once]
    # Two folders may have one name.
    labels = short if len(set(short)) == len(once) else once
    return [_open(name, sample, label) for name, label in zip(once, labels, strict=True)]


def open_at_hand(
    names: Sequence[str], folder: Path, texts: Sequence[str], sample: Sequence[str], clock: Clock
) -> list[Start]:
    """Open the start models at hand while there is time, and time them; one that fails is left out with a warning.

    Of the default, a static model is made besides, in ``folder``, with the counts of the tokens of ``texts``.
    """
    starts = []
    for name in names:
        if clock.for_starts < 0:
            logger.warning(f"left out: {name}: no time was left to open it")
            continue
        try:
            starts.append(_open(name, sample, name))
            if name == DEFAULT:
                starts.append(_static(folder, texts, sample))
        except OutputError:  # the place is at fault, and not the model
            raise
        except SamesenseError as error:
            logger.warning(f"left out: {name}: {error}")
    return starts


def _open(name: str, sample: Sequence[str], label: str) -> Start:
    with stage(f"opening {name}"):
        if is_cross_encoder(resolve(name)):
            raise ConfigError(
                f"A race is one of encoders, which have vectors; {name} is a cross-encoder. Leave it out."
            )
        return measured(label, name, build(name), sample)


def _static(folder: Path, texts: Sequence[str], sample: Sequence[str]) -> Start:
    with stage("making a static model of the default"):
        # An earlier call may have made it.
        if not (folder / "modules.json").is_file():
            save(make_student("static", DEFAULT, texts), folder, overwrite=True)
        return measured(STATIC, str(folder), build(str(folder)), sample)


def measured(name: str, location: str, model: SentenceTransformer, sample: Sequence[str]) -> Start:
    """Return a model with its speed on the texts of a sample, and its size."""
    return Start(
        name=name,
        model=location,
        static=isinstance(model[0], StaticEmbedding),
        speed=round(speed(as_encode(model), sample), 1),
        megabytes=round(sum(p.numel() * p.element_size() for p in model.parameters()) / 1e6, 1),
    )


def speed(encode: Encode, sample: Sequence[str]) -> float:
    """Return the texts a second that are encoded, the median of three rounds after a first one.

    A round has all texts where that is quick, else a quarter.
    """
    few = sample[: max(1, len(sample) // 4)]
    # The first call loads what later ones have.
    encode(few)
    first = seconds_taken(lambda: encode(few))
    texts = sample if first < 0.5 else few
    rounds = [seconds_taken(lambda: encode(texts)) for _ in range(ROUNDS)]
    return len(texts) / max(statistics.median(rounds), 1e-9)
