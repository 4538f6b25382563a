"""Reads a folder of ``samesense harvest`` as training data.

The training set is pairs with scores, or the sentences of a harvest by next words with their vectors. A hash of a pair,
or of a sentence, decides its split, regardless of the order of the sentences and of case. So the splits do not
overlap, and a longer harvest keeps the splits of a shorter one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from pydantic import Field

from samesense.data.pairs.data import PairData
from samesense.data.pairs.keys import pair_key
from samesense.errors import ConfigError, DataError
from samesense.execution.shards.job import MANIFEST, SHARDS
from samesense.files import read_json
from samesense.hashes import content_hash, json_hash
from samesense.parquet.table import FIX, read_table
from samesense.places import JOINT, check_inside
from samesense.recipes.harvest.settings import COLUMNS, VECTORS
from samesense.recipes.surrogate.data import Harvested, digest_of, iterate_rows
from samesense.recipes.surrogate.settings import SurrogateSettings
from samesense.schemas import Record, read_checked

if TYPE_CHECKING:
    import pyarrow as pa

TRAIN = 0
DEV = 1
TEST = 2
"""Splits of a harvest's pairs."""

ROUNDING = 1e-6
"""Tolerance by which a cosine may exceed -1 to 1."""


def read_harvest(sources: Sequence[str], settings: SurrogateSettings) -> Harvested:
    """Read one harvest, or several as one.

    The settings ``learn_from``, ``held_out_share`` and ``most_pairs`` decide the training set.
    """
    # pyarrow is loaded with the first shard: this module is imported for every method's settings.
    import pyarrow as pa

    table = pa.concat_tables([_shards(source) for source in sources])
    name = JOINT.join(Path(source).name for source in sources)
    if _by_sentences(sources, settings):
        training, splits = _sentences(sources, table, settings)
    else:
        training, splits = _pairs(table, settings)
    harvested = Harvested(
        table=training,
        dev=_held_out(table, np.flatnonzero(splits == DEV), f"{name}.dev", settings),
        held=_held_out(table, np.flatnonzero(splits == TEST), f"{name}.held", settings),
        kinds={row["values"]: row["counts"] for row in table["kind"].value_counts().to_pylist()},
        source=JOINT.join(map(str, sources)),
        name=name,
        sha256=digest_of(training),
    )
    different = len(harvested) if harvested.by_sentences else len(np.unique(harvested.labels()))
    if different < 2:
        if harvested.by_sentences:
            left = f"{len(harvested)} sentences are"
        else:
            left = f"{len(harvested)} pairs of one score are"
        raise DataError(f"{name}: {left} left to learn from. Harvest more, or hold out a smaller share.")
    return harvested


def _by_sentences(sources: Sequence[str], settings: SurrogateSettings) -> bool:
    """Return whether to train on sentences; ConfigError if requested for harvests without vectors in one space."""
    without = [source for source in sources if not (Path(source).expanduser() / VECTORS).is_dir()]
    if settings.learn_from == "sentences" and without:
        raise ConfigError(
            f"{without[0]} holds scores of pairs and no vectors of sentences: it is of an Origin with retrieved "
            "contexts. Leave learn_from out, or give a harvest of an Origin by next words."
        )
    if without:
        return False
    spaces = {json_hash(read_json(Path(source).expanduser() / VECTORS / MANIFEST).get("origin")) for source in sources}
    if settings.learn_from == "sentences" and len(spaces) > 1:
        raise ConfigError(
            f"{', '.join(map(str, sources))} are harvests of different Origins, whose vectors have nothing in common. "
            "Leave learn_from out, so that pairs teach, or give harvests of one Origin."
        )
    return settings.sentences_fit() and len(spaces) == 1


def _pairs(table: pa.Table, settings: SurrogateSettings) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return the training pairs, and the split of each pair: :data:`TRAIN`, :data:`DEV` or :data:`TEST`."""
    hashes = np.fromiter(
        (_unit_hash(first, second) for first, second, *_ in iterate_rows(table)), np.float64, table.num_rows
    )
    splits = np.select([hashes < settings.held_out_share, hashes < 2 * settings.held_out_share], [TEST, DEV], TRAIN)
    rows = np.flatnonzero(splits == TRAIN)
    if settings.most_pairs is not None:
        # The smallest hashes are a random sample that does not depend on the order of pairs.
        rows = np.sort(rows[np.argsort(hashes[rows], kind="stable")[: settings.most_pairs]])
    training = table.take(rows).select(["sentence1", "sentence2", "score"])
    return training.rename_columns(["sentence1", "sentence2", "label"]), splits


def _sentences(
    sources: Sequence[str], pairs: pa.Table, settings: SurrogateSettings
) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return the training sentences, and the split of each pair; dev and test are pairs of other sentences.

    As many pairs are held out as in training on pairs: both sentences of a pair are in a share s with probability s
    squared.
    """
    import pyarrow as pa

    folders = [Path(source).expanduser() / VECTORS for source in sources]
    table = pa.concat_tables([_read_shard_table(file) for folder in folders for file in _complete_shards(folder)])
    held_share = math.sqrt(2 * settings.held_out_share)
    rows_by_text: dict[str, int] = {}  # a sentence of several harvests is used once
    for row, text in enumerate(table["text"].to_pylist()):
        rows_by_text.setdefault(text, row)
    # Hashed as a pair with itself, so that case and punctuation are ignored alike.
    held = {text for text in rows_by_text if _unit_hash(text, text) < held_share}
    hashes = [
        _unit_hash(first, second) if first in held and second in held else math.inf
        for first, second, *_ in iterate_rows(pairs)
    ]
    # Half of the held-out pairs test, and the others select.
    splits = np.select([np.array(hashes) < 0.5, np.isfinite(hashes)], [TEST, DEV], TRAIN)
    rows = [row for text, row in rows_by_text.items() if text not in held]
    return table.take(pa.array(rows, pa.int64())), splits


def _shards(source: str) -> pa.Table:
    """Return the checked rows of one harvest, shard by shard."""
    import pyarrow as pa

    files = _complete_shards(Path(source).expanduser())
    text = pa.large_string()  # the shards of a large harvest together exceed the limit of a string array
    wide = pa.schema([("sentence1", text), ("sentence2", text), ("score", pa.float64()), ("kind", pa.string())])
    return pa.concat_tables([_shard(file).cast(wide) for file in files])


class HarvestedShard(Record):
    """A shard of a harvest."""

    file: str
    sha256: str | None = None


class HarvestRecord(Record):
    """The manifest of a harvest."""

    method: str = ""
    status: str = ""
    shards: list[HarvestedShard] = Field(default_factory=list)


def _complete_shards(folder: Path) -> list[Path]:
    """Return the shards in a folder of a harvest; DataError if it is none, or incomplete."""
    files = sorted((folder / SHARDS).glob("*.parquet"))
    manifest = folder / MANIFEST
    check_inside(folder, manifest, *files)
    record = read_checked(manifest, HarvestRecord) if files or manifest.is_file() else HarvestRecord()
    if not files and record.method != "harvest":
        raise DataError(
            f"{folder} is no harvest: a folder with {SHARDS}/*.parquet is needed, as samesense harvest writes it. "
            "Labelled pairs in a file are for method cosent, with loss mse."
        )
    hashes = {entry.file: entry.sha256 for entry in record.shards}
    lost = hashes.keys() - {file.name for file in files}
    if record.status != "finished" or lost:
        what = "is not finished"
        if lost:
            what = f"has lost {len(lost)} of its shards, {min(lost)} among them"
        raise DataError(f"The harvest {folder} {what}. Give the command that made it again to resume it.")
    for file in files:
        if hashes.get(file.name) not in (None, content_hash([file])):
            raise DataError(f"{file} is not the shard that was made. Delete it, and give the same command again.")
    return files


def _shard(file: Path) -> pa.Table:
    """Return the checked rows of one shard."""
    table = _read_shard_table(file, COLUMNS)
    _check(table, file)
    return table


def _read_shard_table(file: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a shard with memory bounded by its file size, as a hash in the same folder does not make it trusted."""
    try:
        return read_table(file, columns)
    except DataError as error:
        problem = str(error).removesuffix(FIX).rstrip()
        raise DataError(f"{problem} Delete the shard, and give the command that made it again.") from error


def _check(table: pa.Table, file: Path) -> None:
    scores = table["score"].to_numpy().astype(np.float64)
    # Negated, so that NaN counts as wrong too.
    # Runs once at most: the first bad row is enough for the message.
    for row in np.flatnonzero(~(np.abs(scores) <= 1 + ROUNDING))[:1]:
        raise DataError(
            f"{file}, row {row + 1}: a score is a cosine, from -1 to 1; received {scores[row]:g}. Harvest this shard "
            "again: delete the file and give the same command."
        )
    for name in ("sentence1", "sentence2"):
        for row, text in enumerate(table[name].to_pylist()):
            if not isinstance(text, str) or not text.strip():
                raise DataError(f"{file}, row {row + 1}: {name} must be a text that is not blank; received {text!r}.")


def _unit_hash(first: str, second: str) -> float:
    """Return a hash of a pair's content as a number from 0 to 1."""
    digest = hashlib.blake2b(json.dumps(pair_key(first, second)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def _held_out(table: pa.Table, rows: npt.NDArray[np.intp], name: str, settings: SurrogateSettings) -> PairData:
    """Return a held-out split as labelled pairs."""
    split = table.take(rows)
    first, second, scores = (split[column].to_pylist() for column in COLUMNS[:3])
    if len(set(scores)) < 2:
        raise DataError(
            f"{name}: a share of {settings.held_out_share:g} of {table.num_rows} pairs holds {len(rows)} out, with "
            f"{len(set(scores))} different scores, and 2 are needed. Harvest more, or give a larger held_out_share."
        )
    return PairData(
        sentences1=first,
        sentences2=second,
        labels=scores,
        subsets=None,
        kind="scored",
        scale=(-1.0, 1.0),
        source=name,
        label_column="score",
    )
