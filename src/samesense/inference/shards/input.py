"""Cut files of texts into shards: one pass finds where each shard begins and ends, without loading a whole file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from samesense.data.columns.guesses import text_column
from samesense.data.rows.bad_rows import BadRow, bad_rows_error, bad_texts
from samesense.data.rows.blocks import Block, blocks, rows_at
from samesense.data.rows.compression import split_suffix
from samesense.data.rows.load import names_in, refuse_table
from samesense.data.rows.sources import missing_file_error, refuse_columns
from samesense.data.rows.table_options import current_options
from samesense.data.sampling import spread_over
from samesense.errors import ConfigError, DataError
from samesense.hashes import content_hash
from samesense.inference.columns import check_parquet, join_schemas, kept_columns, schema_of, table_of
from samesense.types import Row
from samesense.urls import is_file, is_pipe, state, whole

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "input.json"

SPREAD = 16
"""Most shards from which a sample of texts is read."""


@dataclass(frozen=True)
class File:
    """An input file."""

    path: str  # path or URL, the same on every machine that reads it
    size: int  # in bytes
    changed: str  # modification time
    form: str = ""  # how its rows are parsed
    options: str = ""  # the reading options, as JSON
    text: str = "text"  # name of the column of texts
    extra_columns: tuple[str, ...] = ()  # names of the columns kept beside them


@dataclass(frozen=True)
class Part:
    """The rows of one shard: index of the file, byte positions in it, number of rows, and SHA-256 of their content."""

    file: int
    start: int
    end: int
    rows: int
    sha256: str


@dataclass(frozen=True)
class Input:
    """Files of texts, cut into shards; no shard has rows of two files."""

    files: tuple[File, ...]
    parts: tuple[Part, ...]  # the shards, in order
    schema: str  # Arrow schema of the kept columns, serialized; empty if there are none
    sha256: str  # hash of texts and kept columns, independent of the shard size

    @property
    def rows(self) -> int:
        """Return the number of texts."""
        return sum(entry.rows for entry in self.parts)

    def sample(self, count: int) -> list[str]:
        """Return ``count`` texts, or all if there are fewer, evenly from at most :data:`SPREAD` shards."""
        # A small sample needs no more shards than texts.
        shards = spread_over(len(self.parts), min(SPREAD, count))
        texts = [self.read(shard)[0] for shard in shards]
        per_shard = -(-count // len(shards))
        return [shard_texts[index] for shard_texts in texts for index in spread_over(len(shard_texts), per_shard)]

    def read(self, shard: int) -> tuple[list[str], pa.Table | None]:
        """Return the texts of a shard and the columns kept beside them, reading little else of the file."""
        entry = self.parts[shard]
        file = self.files[entry.file]
        try:
            rows = list(rows_at(file.path, entry.start, entry.end, file.form))
        except FileNotFoundError as error:
            raise DataError(
                f"Every worker reads the input itself, and there is no file {file.path} where shard {shard} is made. "
                "Put it at the same path on every machine."
            ) from error
        if _hash(_canonical(rows, file)) != entry.sha256:
            raise DataError(
                f"The input must stay as it is; rows {entry.start} to {entry.end} of {file.path} (shard {shard}) are "
                "not what they were when its rows were counted. Put the file back, or encode into another folder."
            )
        texts = [str(cells[file.text]) for _, cells in rows]
        schema = _schema(self.schema)
        column_cells = [(number, {name: cells.get(name) for name in file.extra_columns}) for number, cells in rows]
        return texts, None if schema is None else table_of(column_cells, schema, file.path)


def check_files(names: Sequence[str]) -> list[str]:
    """Return the absolute paths of files, or URLs, that can be read from any position.

    ConfigError for standard input and pipes; DataError if there is no such file.
    """
    for name in names:
        if name == "-":
            raise ConfigError(
                "Shards are read by their place in files, and standard input has none; received -. Write it to a file "
                "first."
            )
        if is_pipe(name):
            raise ConfigError(
                f"Shards are read by their place in files, and {name} is a pipe. Write what it brings to a file first."
            )
        if not is_file(name):
            raise missing_file_error(name)
    return [whole(name) for name in names]


def split_shards(
    paths: Sequence[str],
    shard_size: int,
    columns: str | None = None,
    keep: str | None = None,
    on_rows: Callable[[int], None] = lambda count: None,
) -> Input:
    """Read files once, check their texts, and return them cut into shards.

    Args:
        paths: paths of the files, in the order of the shards.
        shard_size: number of rows of a shard.
        columns: name of the column of texts in tables.
        keep: see :func:`~samesense.inference.columns.kept_columns`.
        on_rows: called with the number of rows that have just been read.

    Raises:
        DataError: if a file cannot be read, a row has no text, or there is no row at all.
        ConfigError: if columns are named for a text file.
    """
    cutter = _Cutter(columns, keep)
    for path in paths:
        for rows in cutter.add(path, shard_size):
            on_rows(rows)
    if not cutter.parts:
        raise DataError(f"{', '.join(paths[:3])} holds no text; one text a line, or a row, is needed.")
    return cutter.result()


class _Cutter:
    """Collects the shards of files."""

    def __init__(self, columns: str | None, keep: str | None) -> None:
        self._columns = columns
        self._keep = keep
        self._files: list[File] = []
        self._schemas: list[pa.Schema] = []
        self.parts: list[Part] = []
        self._digest = hashlib.sha256()

    def add(self, path: str, shard_size: int) -> Iterator[int]:
        """Add a file; yield the number of rows of each shard."""
        file = File(path, *state(path), options=_options())
        problems: list[BadRow] = []
        total = 0
        for number, block in enumerate(blocks(path, shard_size)):
            if number == 0:
                file = self._describe(file, block)
            problems += [problem for row in block.rows for problem in bad_texts(row, [file.text])]
            total += len(block.rows)
            if problems:  # the other rows are read to name all bad ones at once
                yield len(block.rows)
                continue
            encoded = _canonical(block.rows, file)
            self._digest.update(encoded)
            self.parts.append(Part(len(self._files), block.start, block.end, len(block.rows), _hash(encoded)))
            if file.extra_columns:
                self._schemas.append(schema_of(block.rows, file.extra_columns, path))
            yield len(block.rows)
        if problems:
            raise bad_rows_error(path, problems, total, can_drop=False)
        self._files.append(file)

    def _describe(self, file: File, first: Block) -> File:
        """Return the file with its format and columns, from its first rows."""
        if not split_suffix(file.path).suffix:
            refuse_columns(file.path, columns=self._columns, keep=self._keep)
            refuse_table(first.rows, file.path)
            return replace(file, form=first.form)
        text = text_column(first.rows, self._columns, file.path)
        columns = kept_columns(names_in(first.rows), text, self._keep, file.path)
        return replace(file, form=first.form, text=text, extra_columns=tuple(columns))

    def result(self) -> Input:
        """Return the files and their shards."""
        schema = ""
        if self._schemas:
            if len(self._files) > 1:
                sources = f"{len(self._files)} files"
            else:
                sources = self._files[0].path
            whole = join_schemas(self._schemas, sources)
            check_parquet(whole, sources)
            schema = base64.b64encode(whole.serialize().to_pybytes()).decode()
        return Input(tuple(self._files), tuple(self.parts), schema, self._digest.hexdigest())


def _canonical(rows: Sequence[Row], file: File) -> bytes:
    """Return the used cells of rows, a line of JSON each; other columns may change without effect."""
    # As JSON, so that the hash is the same for equal cells of any format.
    lines = ([cells.get(file.text), *map(cells.get, file.extra_columns)] for _, cells in rows)
    # Cells of Parquet may be dates and the like, which JSON has not.
    return "".join(f"{json.dumps(line, default=str)}\n" for line in lines).encode()


def _hash(content: bytes) -> str:
    return content_hash([content])


def _schema(text: str) -> pa.Schema | None:
    if not text:
        return None
    # Loaded where columns are kept beside the texts.
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def _options() -> str:
    return json.dumps(asdict(current_options()))


def recall(content: Mapping[str, Any] | None, paths: Sequence[str]) -> Input | None:
    """Return an input stored as its ``asdict``, ``None`` if the files have changed; workers check the content."""
    try:
        # A copy, from which entries are taken out.
        fields = dict(content or {})
        files = tuple(File(**{**file, "extra_columns": tuple(file["extra_columns"])}) for file in fields.pop("files"))
        entries = tuple(Part(**entry) for entry in fields.pop("parts"))
        recalled = Input(files, entries, **fields)
    except (TypeError, KeyError):
        return None  # the files are cut again
    before = [(file.path, file.size, file.changed, file.options) for file in files]
    now = [(path, *state(path), _options()) for path in paths]
    if before == now:
        return recalled
    return None
