"""Keep a collection of texts on disk and search it by meaning.

samesense index build texts.index texts.txt, then: samesense index query texts.index "How do I get home?"
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from samesense.cli.output import (
    BY_THE_RULES,
    DropTexts,
    Flag,
    Json,
    PrecisionFlag,
    TableFlags,
    TextColumns,
    logger,
    put,
    put_json,
    put_row,
    reads_tables,
)
from samesense.errors import ConfigError
from samesense.execution.progress import Laps, progress_bar, where_time_went
from samesense.inference.stores.copy import StoreName

if TYPE_CHECKING:
    from samesense.inference.collection.collection import Collection
    from samesense.inference.collection.embedder import Embedder
    from samesense.inference.collection.entries import Entry


index = App(name="index", help=__doc__, help_format="plaintext")


@index.command
@reads_tables
def build(
    folder: Path,
    source: str,
    /,
    *,
    model: str = "default",
    columns: TextColumns = None,
    reading: TableFlags = BY_THE_RULES,
    drop_bad_rows: DropTexts = False,
    vectors: Literal["float32", "float16"] = "float32",
    approximate: Literal["auto", "always", "never"] = "auto",
    precision: PrecisionFlag = "auto",
    overwrite: Flag = False,
    json: Json = False,
) -> None:
    """Build a collection from a file of texts.

    Args:
        folder: where the collection will be.
        source: text file with one text a line, or TSV, CSV, JSON lines, Parquet; a column id gives ids, other columns
            become metadata.
        model: model folder, output of train, hub name, or default; every query is answered with the same.
        vectors: how vectors are kept; float16 halves the size.
        approximate: an approximate index: auto from 200,000 texts on if usearch is installed, always, or never.
        overwrite: replace a collection that is there, once the new one is complete.
        json: print what the collection is as JSON.
    """
    from samesense.inference.collection.collection import Collection

    laps = Laps()
    entries = _begun(source, columns, drop_bad_rows=drop_bad_rows)
    embedder = _embedder(model, precision)
    laps.count("loading")
    with progress_bar("index", "text") as bar:
        collection = Collection.build(
            folder,
            entries,
            embedder,
            dtype=vectors,
            approximate=approximate,
            overwrite=overwrite,
            on_progress=bar.update,
        )
    laps.count("building")
    _tell(collection, json)
    logger.info(where_time_went(laps.seconds))
    logger.info(f'next: samesense index query {folder} "TEXT"')


@index.command
@reads_tables
def add(
    folder: Path,
    source: str,
    /,
    *,
    model: str | None = None,
    columns: TextColumns = None,
    reading: TableFlags = BY_THE_RULES,
    drop_bad_rows: DropTexts = False,
    upsert: Flag = False,
    json: Json = False,
) -> None:
    """Add the texts of a file, all or none.

    Args:
        folder: the collection.
        source: file of texts, as for build.
        model: where the collection's model is now, if it has moved.
        upsert: replace the texts whose ids are there.
        json: print what the collection is as JSON.
    """
    collection = _open(folder)
    entries = _begun(source, columns, drop_bad_rows=drop_bad_rows)
    embedder = _embedder_of(collection, model)
    before = len(collection)
    with progress_bar("index", "text") as bar:
        kept = collection.add(entries, embedder, upsert=upsert, on_progress=bar.update)
    added = len(collection) - before
    logger.info(f"{added} texts added" + (f", {kept - added} replaced" if upsert else ""))
    _tell(collection, json)


@index.command
def delete(
    folder: Path,
    ids: Annotated[list[int] | None, Parameter(negative="")] = None,
    /,
    *,
    where: str | None = None,
    json: Json = False,
) -> None:
    """Delete texts by their ids, or by metadata.

    Args:
        folder: the collection.
        ids: numbers of the texts, as query shows them.
        where: which texts, by their metadata, as in: "topic = 'sport' AND year < 2020"
        json: print what the collection is as JSON.
    """
    collection = _open(folder)
    logger.info(f"{collection.delete(ids or (), where=where)} texts deleted")
    _tell(collection, json)


@index.command
def query(
    folder: Path,
    text: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    top: int = 10,
    where: str | None = None,
    hybrid: Flag = False,
    words: Flag = False,
    exact: Flag = False,
    model: str | None = None,
    json: Json = False,
) -> None:
    """Find the texts nearest in meaning, or by their words, or by both.

    Args:
        folder: the collection.
        text: what is looked for, or - for one query a line of standard input.
        top: texts of an answer.
        where: which texts, by their metadata, as in: "topic = 'sport' AND year >= 2020"; also IN, LIKE, IS NULL, OR,
            NOT and parentheses.
        hybrid: merge the nearest texts and those with the same words, by reciprocal ranks.
        words: find texts by their words alone, without the model (BM25).
        exact: compare with every text even if there is an approximate index.
        model: where the collection's model is now, if it has moved.
        json: print JSON lines with query, id, score, text and metadata.
    """
    from samesense.inference.stream import read_texts

    if hybrid and words:
        raise ConfigError("A query is by `words` alone, or `hybrid`; received both.")
    collection = _open(folder)
    texts = read_texts("-") if text == "-" else [text]
    if words:
        answers = collection.text_search(texts, top=top, where=where)
    else:
        collection.check(texts, top=top, where=where)
        embedder = _embedder_of(collection, model)
        answers = collection.query(texts, embedder, top=top, where=where, exact=exact, hybrid=hybrid)
    for asked, answer in zip(texts, answers, strict=True):
        if not answer:
            logger.info(_nothing_found(asked, words, where))
        for one in answer:
            if json:
                found = {"query": asked, "id": one.id, "score": round(one.score, 6), "text": one.text}
                put_json([{**found, "metadata": dict(one.metadata)}])
            else:
                put_row(*([asked] if len(texts) > 1 else []), f"{one.score:.4f}", one.id, one.text)


@index.command
def compact(folder: Path, /, *, json: Json = False) -> None:
    """Free the space of deleted texts, and make the approximate index anew.

    Args:
        folder: the collection.
        json: print what the collection is as JSON.
    """
    collection = _open(folder)
    collection.compact()
    _tell(collection, json)


@index.command
def migrate(folder: Path, /, *, model: str, precision: PrecisionFlag = "auto", json: Json = False) -> None:
    """Encode every text with another model; queries are answered with the old one until all is there.

    Args:
        folder: the collection.
        model: the new model.
        json: print what the collection is as JSON.
    """
    from samesense.inference.collection.migrate import migrate as migrate_collection

    collection = _open(folder)
    embedder = _embedder(model, precision)
    with progress_bar("index", "text", len(collection)) as bar:
        count = migrate_collection(folder, embedder, on_progress=bar.update)
    logger.info(f"{count} texts encoded anew")
    _tell(collection, json)


@index.command
def export(
    folder: Path,
    /,
    *,
    to: StoreName,
    output: Annotated[str, Parameter(name=["--output", "-o"])],
    table: str | None = None,
    overwrite: Flag = False,
) -> None:
    """Copy a collection into a store that people run: texts, metadata, vectors, and which model made them.

    Args:
        folder: the collection.
        to: parquet, lancedb, qdrant or pgvector.
        output: a Parquet file; a folder or address of LanceDB or Qdrant; the address of a Postgres database, as in
            postgresql://me@host/news
        table: its name, in Qdrant that of the collection; by default the folder's without its ending.
        overwrite: replace a table, or a file, that is there.
    """
    from samesense.inference.stores.copy import copy

    with progress_bar("export", "text") as bar:
        count = copy(folder, to=to, output=output, table=table, overwrite=overwrite, on_progress=bar.update)
    logger.info(f"{count} texts copied")


@index.command
def info(folder: Path, /, *, check: Flag = False, model: str | None = None, json: Json = False) -> None:
    """Say what a collection is: texts, model, vectors, and the recall of its approximate index.

    Args:
        folder: the collection.
        check: encode a few of its texts again, and fail if their vectors have changed.
        model: where the collection's model is now, if it has moved.
        json: print it as JSON.
    """
    from samesense.inference.collection.migrate import check_vectors

    collection = _open(folder)
    lowest = check_vectors(folder, _embedder_of(collection, model)) if check else None
    _tell(collection, json, on_output=True, lowest=lowest)


def _nothing_found(asked: str, words: bool, where: str | None) -> str:
    """Return a line for people where a query has no answer."""
    reasons = [*(["has one of its words"] if words else []), *([f"meets {where!r}"] if where is not None else [])]
    return f"nothing found for {asked[:60]!r}: no text {' and '.join(reasons) or 'is there'}"


def _open(folder: Path) -> Collection:
    from samesense.inference.collection.collection import Collection

    return Collection.open(folder)


def _begun(source: str, columns: str | None, *, drop_bad_rows: bool) -> Iterator[Entry]:
    """Return the entries of a file, the first of which is read: no model is opened for a file that cannot be."""
    from samesense.inference.collection.entries import read_entries

    entries = read_entries(source, columns=columns, drop_bad_rows=drop_bad_rows)
    return chain([next(entries)], entries)


def _embedder(name: str, precision: Any) -> Embedder:
    from samesense.inference.collection.embedder import open_embedder

    return open_embedder(name, precision)


def _embedder_of(collection: Collection, model: str | None) -> Embedder:
    about = collection.about()
    return _embedder(model or about["model"], about["precision"])


def _tell(collection: Collection, json: bool, *, on_output: bool = False, lowest: float | None = None) -> None:
    about = {**collection.about(), **({} if lowest is None else {"lowest_cosine": lowest})}
    if json:
        put_json([about])
        return
    write = put if on_output else logger.info
    write(f"{collection.folder}: {about['texts']} texts, {about['deleted']} deleted ones")
    write(f"vectors: {about['dim']} dimensions in {about['vectors']}, by {about['model']} in {about['precision']}")
    write(f"search: {about['search']}")
    if lowest is not None:
        write(f"model: gives the same vectors as at the build, lowest cosine {lowest:.4f}")
