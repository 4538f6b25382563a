"""``samesense.build_index`` and ``samesense.open_index``: a collection with the model that searches it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from samesense.api.library_function import library_function
from samesense.data.rows.sources import leads_to
from samesense.data.rows.table_options import Header, Quoting
from samesense.errors import ConfigError
from samesense.execution.progress import stage
from samesense.inference.collection.conditions import Where
from samesense.results.markup import one_line
from samesense.results.shown import RowList
from samesense.types import Precision

if TYPE_CHECKING:
    from samesense.inference.collection.collection import Collection
    from samesense.inference.collection.documents import ReadingReport
    from samesense.inference.collection.embedder import Embedder
    from samesense.inference.collection.entries import Entry


class Index:
    """A collection on disk with the model that it was built with; see :func:`build_index` and :func:`open_index`.

    Attributes:
        collection: adds and deletes texts, and searches by vectors.
        embedder: the model.
    """

    def __init__(self, collection: Collection, embedder: Embedder) -> None:
        self.collection = collection
        self.embedder = embedder

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.collection)

    def __repr__(self) -> str:
        """Return its folder, number of texts, and model."""
        return f"index {self.collection.name}: {len(self):,} texts by {self.embedder.name}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"

    @library_function
    def query(
        self,
        text: str,
        *,
        top: int = 10,
        where: Where = None,
        hybrid: bool = False,
        words: bool = False,
        exact: bool = False,
    ) -> RowList:
        """Find the texts nearest in meaning, or by their words, or by both, the nearest first.

        Args:
            text: the query.
            top: number of texts to find.
            where: which texts, by their metadata, as in ``"topic = 'sport' AND year >= 2020"``; also IN, LIKE, IS NULL,
                OR, NOT and parentheses.
            hybrid: merge the nearest texts and those with the same words, by reciprocal ranks.
            words: find texts by their words alone, without the model (BM25).
            exact: compare with every text even if there is an approximate index.

        Returns:
            Matches with ``id``, ``score``, ``text`` and ``metadata``, which for a passage has its ``file``.

        Raises:
            DataError: for an empty query, or a name of metadata that no text has.
            ConfigError: for ``words`` and ``hybrid`` together, or a condition that cannot be parsed.
        """
        if hybrid and words:
            raise ConfigError("A query is by `words` alone, or `hybrid`; received both.")
        if words:
            return RowList(self.collection.text_search([text], top=top, where=where)[0])
        answers = self.collection.query([text], self.embedder, top=top, where=where, exact=exact, hybrid=hybrid)
        return RowList(answers[0])

    @library_function
    def update(self, *, strict: bool = False, encoding: str | None = None) -> ReadingReport:
        """Bring a collection of documents up to date with its files: only new and changed ones are encoded.

        Args:
            strict: refuse a document that cannot be read, rather than skip it with a warning.
            encoding: see :func:`samesense.read`.

        Returns:
            How many files were read, unchanged and removed, and which could not be read.

        Raises:
            DataError: if the collection was not built from documents, or a source no longer exists.
        """
        from samesense.inference.collection.documents import update_from_documents

        return update_from_documents(self.collection.folder, self.embedder, strict=strict)

    def map(self, output: str | Path, *, where: Where = None) -> None:
        """Write a map of the texts, on which near texts lie close, in clusters, as a self-contained HTML page.

        Args:
            output: the file, whose name ends in .html.
            where: which texts, by their metadata; see :meth:`query`. Of more than 2,000 the map shows a sample.

        Raises:
            DataError: if there are fewer than five different texts, or a name of metadata that no text has.
            ConfigError: if the name does not end in .html, or a condition cannot be parsed.
            OutputError: if the file cannot be written.
        """
        write_map(self.collection, output, where=where)


def write_map(collection: Collection, output: str | Path, *, where: Where = None) -> None:
    """Write a map of a collection, whose model it does not need; see :meth:`Index.map`."""
    from samesense.reports.maps import MOST, check_mapped, holding_map, map_clusters, save_map

    with holding_map(output, [collection.folder]):
        entries, vectors, total = collection.sample(MOST, where=where)
        texts = [entry.text for entry in entries]
        fix = "Add texts to the collection."
        if where is not None:
            fix = "Choose more by `where`, or leave it out."
        check_mapped(texts, fix=fix)
        with stage("drawing the map"):
            text_map = map_clusters(
                texts,
                [_describe(entry) for entry in entries],
                vectors,
                name=collection.folder.name,
                model=Path(collection.about()["model"]).name,
                total=total,
            )
            save_map(text_map, output)


def _describe(entry: Entry) -> str:
    """Return the id and the metadata of a text in a line."""
    metadata = ", ".join(f"{name} {value}" for name, value in entry.metadata.items())
    return one_line(f"id {entry.id}, {metadata}" if metadata else f"id {entry.id}")


@library_function
def build_index(  # noqa: PLR0913 - each is one flag of the command
    folder: str | Path,
    sources: str | Path | Sequence[str | Path],
    *,
    model: Any = "default",
    columns: str | None = None,
    documents: bool | None = None,
    chunk_size: int | None = None,
    chunk_overlap: int | None = None,
    strict: bool = False,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    drop_bad_rows: bool = False,
    vectors: Literal["float32", "float16"] = "float32",
    approximate: Literal["auto", "always", "never"] = "auto",
    precision: Precision = "auto",
    overwrite: bool = False,
) -> Index:
    """Build a collection from a folder of documents, or from a file of texts.

    Args:
        folder: folder of the new collection.
        sources: folders, patterns or files of documents (.txt, .md, .html, .pdf, .docx), cut into passages; or one file
            of rows: text with one text a line, TSV, CSV, JSON lines, Parquet, where a column id gives ids and other
            columns become metadata.
        model: model folder, output of ``train``, hub name or ``"default"``; queries are encoded with it too; see
            :func:`samesense.load` for models in memory.
        columns: column of a table whose texts are read, if several hold texts.
        documents: split .txt files into passages too, rather than read one text a line.
        chunk_size: maximum tokens of a passage; by default 128.
        chunk_overlap: tokens that neighbouring passages share; by default 32.
        strict: refuse a document that cannot be read, rather than skip it with a warning.
        drop_bad_rows: leave out rows without a text, and log which.
        vectors: how vectors are stored; ``"float16"`` halves the size.
        approximate: an approximate index: ``"auto"`` from 200,000 texts on if usearch is installed, ``"always"``, or
            ``"never"``.
        precision: arithmetic; ``"auto"`` is bfloat16 where the processor supports it.
        overwrite: replace an existing collection, once the new one is complete.

    Returns:
        The collection with its model.

    Raises:
        DataError: if there is no document or row, or none can be read.
        ConfigError: for options that do not go together.
        OutputError: if the folder holds something else.
        MissingExtraError: if the reader of a format is not installed.

    Example:
        >>> index = samesense.build_index("my.index", "docs/")  # doctest: +SKIP
        >>> index.query("When does the train leave?", top=1)[0].metadata["file"]  # doctest: +SKIP
        'docs/timetable.pdf'
    """
    from samesense.inference.collection.build import prepare
    from samesense.places import check_folder

    names = _checked_names(sources)
    prepared = prepare(
        names,
        columns=columns,
        documents=documents,
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        strict=strict,
        drop_bad_rows=drop_bad_rows,
    )
    check_folder(folder)
    embedder = _embedder(model, precision)
    collection = prepared.build(folder, embedder, dtype=vectors, approximate=approximate, overwrite=overwrite)
    return Index(collection, embedder)


def _checked_names(sources: Any) -> list[str]:
    """Return the names of files and folders; ConfigError for data in memory."""
    # A string is a sequence too, of its letters.
    names = [sources] if isinstance(sources, str | Path) else sources
    # A single value of NumPy, an array without dimensions, cannot be iterated over.
    is_single = getattr(names, "shape", None) == ()
    if is_single or hasattr(names, "columns") or not isinstance(names, Iterable) or isinstance(names, Mapping):
        raise _in_memory_error(type(sources).__name__)
    names = list(names)
    others = [name for name in names if not isinstance(name, str | Path)]
    if others:
        raise _in_memory_error(f"a list of {type(others[0]).__name__}")
    if names and not isinstance(sources, str | Path) and all(map(_is_text, names)):
        raise _in_memory_error("a list of texts")
    return [str(name) for name in names]


_ENDING_OR_SLASH = re.compile(r"[/\\]|\.\w{1,8}$")


def _is_text(name: str | Path) -> bool:
    """Return whether a string is a text, and hardly a misspelt name: it has a space, and neither slash nor ending."""
    words = str(name)
    return " " in words and _ENDING_OR_SLASH.search(words) is None and not leads_to(words, Path.exists)


def _in_memory_error(received: str) -> ConfigError:
    return ConfigError(
        f"A collection is built from files or folders; received {received}. Write the data into a file first, such as "
        "texts.parquet."
    )


@library_function
def open_index(folder: str | Path, *, model: Any = None) -> Index:
    """Open a collection with its model.

    Args:
        folder: the collection.
        model: the model, or its present path, if it has moved or was in memory.

    Raises:
        DataError: if there is no collection, or it is damaged.
        ModelError: if the model is another than it was built with.
    """
    from samesense.inference.collection.collection import Collection

    collection = Collection.open(folder)
    about = collection.about()
    # The precision of the build: queries are encoded as the stored texts were.
    embedder = _embedder(about["model"] if model is None else model, about["precision"])
    collection.check_model(embedder)
    return Index(collection, embedder)


def _embedder(model: Any, precision: Any) -> Embedder:
    from samesense.inference.collection.embedder import embedder_of, open_embedder
    from samesense.inference.models.load import load

    if isinstance(model, str | Path):
        return open_embedder(str(model), precision)
    loaded = load(model)
    return embedder_of(loaded, loaded.name)
