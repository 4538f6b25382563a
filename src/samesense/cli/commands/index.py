"""Keep a collection of texts on disk and search it by meaning.

samesense index build texts.index texts.txt

samesense index query texts.index "How do I get home?"
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from samesense.api import index as api
from samesense.cli.command import command_of, reads_tables
from samesense.cli.output import DropTexts, Flag, Json, Text, logger, put, put_json, put_row
from samesense.errors import ConfigError
from samesense.execution.progress import progress_bar
from samesense.execution.timing import Laps, time_summary
from samesense.inference.stores.copy import StoreName
from samesense.types import Precision

if TYPE_CHECKING:
    from samesense.inference.collection.collection import Collection, SearchHit
    from samesense.inference.collection.embedder import Embedder

Folder = Annotated[Path, Parameter(help="the collection.")]
Sources = Annotated[list[str], Parameter(negative="")]
MovedModel = Annotated[str | None, Parameter(help="where the collection's model is now, if it has moved.")]
DescriptionJson = Annotated[
    bool, Parameter(name="--json", negative="", help="print the description of the collection as JSON.")
]

index = App(name="index", help=__doc__, help_format="plaintext")


@index.command
@command_of(api.build_index)
def build(
    folder: Path,
    sources: Sources,
    /,
    *,
    json: DescriptionJson = False,
    **options: Any,
) -> None:
    """samesense index build my.index docs/"""
    from samesense.inference.collection.build import prepare
    from samesense.places import check_folder

    laps = Laps()
    reading = ("columns", "documents", "chunk_size", "chunk_overlap", "strict", "drop_bad_rows")
    # The data are read before the model is loaded, so that their mistakes show at once.
    prepared = prepare(sources, **{name: options[name] for name in reading})
    check_folder(folder)
    embedder = _embedder(options["model"], options["precision"])
    laps.count("loading")
    with progress_bar("index", "text") as bar:
        collection = prepared.build(
            folder,
            embedder,
            dtype=options["vectors"],
            approximate=options["approximate"],
            overwrite=options["overwrite"],
            on_progress=bar.update,
        )
    laps.count("building")
    _tell(collection, json)
    logger.info(time_summary(laps.seconds))
    logger.info(f'next: samesense index query {quote(str(folder))} "TEXT"')


@index.command
@reads_tables
def add(
    folder: Folder,
    sources: Sources,
    /,
    *,
    model: MovedModel = None,
    columns: str | None = None,
    documents: Flag | None = None,
    strict: Flag = False,
    drop_bad_rows: DropTexts = False,
    upsert: Flag = False,
    json: DescriptionJson = False,
) -> None:
    """Add the texts of a file, or documents, all or none.

    Args:
        sources: as for build; update keeps added documents up to date too.
        columns, documents, strict, drop_bad_rows: as for build.
        upsert: replace texts whose ids exist.
    """
    from samesense.inference.collection.build import prepare

    collection = _open_to_change(folder)
    prepared = prepare(sources, columns=columns, documents=documents, strict=strict, drop_bad_rows=drop_bad_rows)
    embedder = _embedder_of(collection, model)
    # To tell added texts from replaced ones.
    before = len(collection)
    with progress_bar("index", "text") as bar:
        count = prepared.add(collection, embedder, upsert=upsert, on_progress=bar.update)
    added = len(collection) - before
    replaced = f", {count - added} replaced" if count > added else ""
    logger.info(f"{added} texts added{replaced}")
    _tell(collection, json)


@index.command
@reads_tables
@command_of(api.Index.update)
def update(folder: Folder, /, *, model: MovedModel = None, strict: Flag = False, json: DescriptionJson = False) -> None:
    """samesense index update my.index"""
    from samesense.inference.collection.documents import update_from_documents

    collection = _open_to_change(folder)
    embedder = _embedder_of(collection, model)
    before = len(collection)
    with progress_bar("index", "text") as bar:
        update_from_documents(folder, embedder, strict=strict, on_progress=bar.update)
    logger.info(f"passages: {before} before, {len(collection)} now")
    _tell(collection, json)


@index.command
def delete(
    folder: Folder,
    ids: Annotated[list[int] | None, Parameter(negative="")] = None,
    /,
    *,
    where: str | None = None,
    json: DescriptionJson = False,
) -> None:
    """Delete texts by their ids, or by metadata.

    Args:
        ids: numbers of the texts, as query shows them.
        where: which texts, by their metadata, as in: "topic = 'sport' AND year < 2020"
    """
    collection = _open(folder)
    logger.info(f"{collection.delete(ids or (), where=where)} texts deleted")
    _tell(collection, json)


@index.command
@command_of(api.Index.query)
def query(folder: Folder, text: Text, /, *, model: MovedModel = None, json: Json = False, **options: Any) -> None:
    """samesense index query my.index "How do I get home?"

    Args:
        text: the query, or - for one query a line of standard input.
        json: print JSON lines with query, id, score, text and metadata.
    """
    from samesense.data.texts import read_texts

    top, where, words, hybrid = (options[name] for name in ("top", "where", "words", "hybrid"))
    if hybrid and words:
        raise ConfigError("A query is by `words` alone, or `hybrid`; received both.")
    collection = _open(folder)
    texts = read_texts("-") if text == "-" else [text]
    if words:
        answers = collection.text_search(texts, top=top, where=where)
    else:
        from samesense.inference.collection.embedder import open_for_queries

        # Before the model is opened, which takes longer than the search.
        collection.check(texts, top=top, where=where)
        built = collection.stored()
        embedder = open_for_queries(model or built.model, built, texts)
        answers = collection.query(texts, embedder, top=top, where=where, exact=options["exact"], hybrid=hybrid)
    for question, answer in zip(texts, answers, strict=True):
        if not answer:
            logger.info(_nothing_found(question, words, where))
        for match in answer:
            if json:
                row = {"query": question, "id": match.id, "score": round(match.score, 6), "text": match.text}
                put_json([{**row, "metadata": dict(match.metadata)}])
            else:
                _put_match(match, question if len(texts) > 1 else None)


@index.command(name="map")
@command_of(api.Index.map)
def draw_map(folder: Folder, /, *, output: Annotated[str, Parameter(name=["--output", "-o"])], **options: Any) -> None:
    """samesense index map my.index --output map.html"""
    api.write_map(_open(folder), output, **options)


@index.command
def compact(folder: Folder, /, *, json: DescriptionJson = False) -> None:
    """Free the space of deleted texts, and rebuild the approximate index."""
    collection = _open(folder)
    collection.compact()
    _tell(collection, json)


@index.command
def migrate(folder: Folder, /, *, model: str, precision: Precision = "auto", json: DescriptionJson = False) -> None:
    """Re-encode every text with another model; queries use the old one until the new vectors are complete.

    Args:
        model: the new model.
        precision: arithmetic; auto is bfloat16 where the processor supports it.
    """
    from samesense.inference.collection.migrate import migrate as migrate_collection

    collection = _open(folder)
    embedder = _embedder(model, precision)
    with progress_bar("index", "text", len(collection)) as bar:
        count = migrate_collection(folder, embedder, on_progress=bar.update)
    logger.info(f"{count} texts encoded again")
    _tell(collection, json)


@index.command
def export(
    folder: Folder,
    /,
    *,
    to: StoreName,
    output: Annotated[str, Parameter(name=["--output", "-o"])],
    table: str | None = None,
    overwrite: Flag = False,
) -> None:
    """Copy a collection into another store: texts, metadata, vectors, and the name of their model.

    Args:
        to: parquet, lancedb, qdrant or pgvector.
        output: a Parquet file; a folder or address of LanceDB or Qdrant; the address of a Postgres database, as in
            postgresql://me@host/news
        table: its name, in Qdrant that of the collection; by default the folder's without its ending.
        overwrite: replace an existing table or file.
    """
    from samesense.inference.stores.copy import copy

    with progress_bar("export", "text") as bar:
        count = copy(folder, to=to, output=output, table=table, overwrite=overwrite, on_progress=bar.update)
    logger.info(f"{count} texts copied")


@index.command
def info(folder: Folder, /, *, check: Flag = False, model: MovedModel = None, json: Json = False) -> None:
    """Describe a collection: texts, model, vectors, and the recall of its approximate index.

    Args:
        check: encode a few of its texts again, and fail if their vectors have changed.
        json: print it as JSON.
    """
    from samesense.inference.collection.migrate import check_vectors

    collection = _open(folder)
    lowest = check_vectors(folder, _embedder_of(collection, model)) if check else None
    _tell(collection, json, on_output=True, lowest=lowest)


def _nothing_found(question: str, words: bool, where: str | None) -> str:
    """Return the message for a query without matches."""
    reasons = []
    if words:
        reasons.append("has one of its words")
    if where is not None:
        reasons.append(f"meets {where!r}")
    return f"nothing found for {question[:60]!r}: no text {' and '.join(reasons) or 'is there'}"


def _open(folder: Path) -> Collection:
    from samesense.inference.collection.collection import Collection

    return Collection.open(folder)


def _open_to_change(folder: Path) -> Collection:
    """Open a collection that may be written to; OutputError, before a model is loaded, for one that may not."""
    from samesense.inference.collection.store import check_writable

    collection = _open(folder)
    check_writable(folder)
    return collection


def _put_match(match: SearchHit, query: str | None) -> None:
    """Write one match; a passage with its location in its file, shortened to the width of a terminal."""
    cells = []
    # A single query needs no name beside its matches.
    if query is not None:
        cells.append(query)
    cells += [f"{match.score:.4f}", str(match.id)]
    if not {"file", "passage"} <= match.metadata.keys():  # a table may have a column of either name
        put_row(*cells, match.text)
        return
    cells.append(_location(match))
    text = " ".join(match.text.split())
    # A program that reads the output needs the whole text.
    if sys.stdout.isatty():
        # At least 40 characters, however narrow the terminal; the tab before the text takes up to 8.
        width = max(40, shutil.get_terminal_size().columns - len("\t".join(cells).expandtabs()) - 9)
        if len(text) > width:
            text = f"{text[: width - 1]}…"
    put_row(*cells, text)


def _location(match: SearchHit) -> str:
    """Return the file of a passage, and its page, line or number in it."""
    metadata = match.metadata
    name = next((name for name in ("page", "line", "passage") if name in metadata), None)
    if name is None:
        return str(metadata["file"])
    return f"{metadata['file']}, {name} {metadata[name]}"


def _embedder(name: str, precision: Any) -> Embedder:
    from samesense.inference.collection.embedder import open_embedder

    return open_embedder(name, precision)


def _embedder_of(collection: Collection, model: str | None) -> Embedder:
    about = collection.about()
    return _embedder(model or about["model"], about["precision"])


def _tell(collection: Collection, json: bool, *, on_output: bool = False, lowest: float | None = None) -> None:
    about = dict(collection.about())
    if lowest is not None:
        about["lowest_cosine"] = lowest
    if json:
        put_json([about])
        return
    # The description is the result of info, and a message of all other commands.
    write = put if on_output else logger.info
    write(f"{collection.name}: {about['texts']} texts, {about['deleted']} deleted ones")
    write(f"vectors: {about['dim']} dimensions in {about['vectors']}, by {about['model']} in {about['precision']}")
    write(f"search: {about['search']}")
    if lowest is not None:
        write(f"model: gives the same vectors as at the build, lowest cosine {lowest:.4f}")
