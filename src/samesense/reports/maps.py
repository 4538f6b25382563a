"""Maps of texts: the groups of duplicates, what a new model changes, and the clusters of a collection."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from samesense.errors import DataError
from samesense.files import write_text
from samesense.places import PAGE, check_place, check_suffix, holding
from samesense.reports.projection import project
from samesense.reports.tables import TitledTable
from samesense.reports.text_map import Category, TextMap, text_map_page
from samesense.results.markup import as_sentence, one_line
from samesense.types import Embeddings, Floats, Indices, Scores

logger = logging.getLogger(__name__)

MOST = 2000
"""Most texts of a map: more are neither told apart on a screen nor laid out in seconds."""

LEAST = 5
"""Fewest different texts of a map."""

CLUSTERS = 6
"""Clusters of the map of a collection, as many as there are colours that are told apart."""

SHOWN = 10
"""Rows of a table below a map."""

SHORT = 100
"""Characters of a text in a table, or in the line about another one."""

SEED = 0


@contextmanager
def holding_map(path: str | Path | None, inputs: Iterable[str | Path] = ()) -> Iterator[None]:
    """Check the place of a map, if one is to be written, before long work, and hold it while that goes on.

    Raises:
        ConfigError: if the name does not end in .html.
        OutputError: if the file cannot be written, would replace one of ``inputs``, or another process holds it.
    """
    if path is not None:
        check_suffix(path, "A map is a page, whose name", PAGE)
        check_place(path, inputs)
    with holding(path):
        yield


def check_mapped(texts: Sequence[str], *, fix: str = "Give more, or no `map`.") -> None:
    """Raise DataError, with advice for the user, if there are fewer than :data:`LEAST` different texts."""
    count = len(set(texts))
    if count < LEAST:
        raise DataError(f"A map takes at least {LEAST} different texts; received {count}. {fix}")


def save_map(text_map: TextMap, path: str | Path) -> None:
    """Write a map as one self-contained HTML page, and log where it is and which texts it shows."""
    write_text(Path(path), text_map_page(text_map))
    logger.info(f"written: {path}, a map. {text_map.notes[0]}")


def map_duplicates(
    texts: Sequence[str],
    copies: Indices,
    kept_by: Indices,
    scores: Scores,
    vectors: Embeddings,
    *,
    summary: str,
    model: str,
) -> TextMap:
    """Map which texts are kept, and which are removed in favour of which.

    Args:
        texts: the different texts ``(n,)``.
        copies: number of rows of each ``(n,)``.
        kept_by: index of the text that is kept instead of each, or its own ``(n,)``.
        scores: cosine of each text with that text ``(n,)``.
        vectors: their unit vectors ``(n, dim)``.
        summary: the result in a line.
        model: name of the model.
    """
    # Of the group that each text is in; 1 for a text that is like no other.
    sizes = np.bincount(kept_by, minlength=len(texts))[kept_by]
    grouped = np.flatnonzero(sizes > 1)
    # The largest groups first, and in each the kept text first.
    order = np.lexsort((grouped, kept_by[grouped] != grouped, kept_by[grouped], -sizes[grouped]))
    shown, note = _sample_groups(len(texts), grouped[order])
    position_of = {index: position for position, index in enumerate(shown.tolist())}
    categories = [
        Category("kept, and like no other"),
        Category("kept for others too", 1, wide=True),
        Category("removed", 2),
    ]
    removed = kept_by != np.arange(len(texts))
    category_of = np.select([removed, sizes > 1], [2, 1], 0)

    def describe(index: int) -> str:
        words = ["removed" if removed[index] else "kept"]
        if copies[index] > 1:
            words.append(f"{copies[index]} equal rows")
        if removed[index]:
            words.append(f"cosine {scores[index]:.3f} with {_beginning(texts[kept_by[index]])!r}")
        elif sizes[index] > 1:
            words.append(f"others like it: {sizes[index] - 1}")
        return ", ".join(words)

    # A text may be shown without the one that is kept, which the sample lacks.
    links = [
        (position, position_of[int(kept_by[index])])
        for index, position in position_of.items()
        if removed[index] and int(kept_by[index]) in position_of
    ]
    return TextMap(
        title=f"Near-duplicates among {copies.sum():,} texts by {model}",
        lead=f"{as_sentence(summary)} A line leads from each removed text to the one that is kept instead.",
        notes=[note],
        views={model: project(vectors[shown])},
        texts=[texts[index] for index in shown],
        details=[describe(index) for index in shown.tolist()],
        categories=categories,
        category_of=category_of[shown].tolist(),
        group_of=np.where(sizes > 1, kept_by, -1)[shown].tolist(),
        links=links,
        tables=_group_tables(texts, kept_by, sizes),
    )


def _sample_groups(count: int, grouped: Indices) -> tuple[Indices, str]:
    """Return which of ``count`` texts are shown, ascending, and a sentence on it.

    ``grouped`` are those in groups, in the order in which they are shown.
    """
    if count <= MOST:
        return np.arange(count), _shown_note(count, count, "different texts")
    first = grouped[: MOST // 2]
    others = np.setdiff1d(np.arange(count), first)
    random = np.random.default_rng(SEED).choice(others, size=MOST - len(first), replace=False)
    shown = np.sort(np.concatenate([first, random]))
    return shown, (
        f"Shown are {MOST:,} of {count:,} different texts: {len(first):,} of the largest groups, and {len(random):,} "
        "others at random, the same each time."
    )


def _shown_note(shown: int, total: int, kind: str) -> str:
    """Return a sentence on how many of all texts a map shows."""
    if shown == total:
        return f"All {total:,} {kind} are shown."
    return f"Shown are {shown:,} of {total:,} {kind}, at random, the same each time."


def _group_tables(texts: Sequence[str], kept_by: Indices, sizes: Indices) -> list[TitledTable]:
    """Return the largest groups as a table; none if there is no group."""
    keepers = np.flatnonzero((kept_by == np.arange(len(texts))) & (sizes > 1))
    largest = keepers[np.argsort(-sizes[keepers], kind="stable")][:SHOWN]
    cells = []
    for keeper in largest.tolist():
        members = np.flatnonzero(kept_by == keeper)
        example = next(member for member in members.tolist() if member != keeper)
        cells.append([_beginning(texts[keeper]), f"{sizes[keeper]:,}", _beginning(texts[example])])
    if not cells:
        return []
    return [TitledTable("The largest groups", ["kept", "texts", "removed, for example"], cells, ("texts",))]


def map_drift(
    texts: Sequence[str],
    vectors: tuple[Embeddings, Embeddings],
    overlaps: Floats,
    nearest: tuple[Sequence[str], Sequence[str]],
    *,
    names: tuple[str, str],
    summary: str,
    total: int,
    top: int,
) -> TextMap:
    """Map texts by the old model and by the new one, side by side, in the colour of what became of their neighbours.

    Args:
        texts: the texts whose neighbours were compared ``(n,)``.
        vectors: their unit vectors by the old and the new model, each ``(n, dim)``.
        overlaps: share of the nearest neighbours that both models have in common ``(n,)``.
        nearest: the nearest neighbour of each by the old and the new model.
        names: of the models.
        summary: the result in a line.
        total: number of different texts, of which ``texts`` are some.
        top: number of neighbours that were compared.
    """
    shown = np.arange(len(texts))
    if len(texts) > MOST:
        shown = np.sort(np.random.default_rng(SEED).choice(len(texts), size=MOST, replace=False))
    before, after = (model_vectors[shown] for model_vectors in vectors)
    old_places = project(before)
    # From the places by the old model, so that a text that has not moved is where it was.
    new_places = project(after, old_places)
    categories = [
        Category("half of the neighbours or more are kept"),
        Category("fewer than half", 1),
        Category("none", 2),
    ]
    category_of = np.select([overlaps >= 0.5, overlaps > 0], [0, 1], 2)
    details = [
        f"{round(top * overlaps[index])} of its {top} nearest texts are the same; nearest before: "
        f"{_beginning(nearest[0][index])!r}, after: {_beginning(nearest[1][index])!r}"
        for index in shown.tolist()
    ]
    return TextMap(
        title=f"Drift from {names[0]} to {names[1]}",
        lead=f"{as_sentence(summary)} The same text has the same colour on both maps, and both show it at once.",
        notes=[
            _shown_note(len(shown), total, "different texts"),
            "The second map begins at the places of the first, so that the two can be compared.",
        ],
        views={f"before: {names[0]}": old_places, f"after: {names[1]}": new_places},
        texts=[texts[index] for index in shown.tolist()],
        details=details,
        categories=categories,
        category_of=category_of[shown].tolist(),
        group_of=[-1] * len(shown),
        tables=_drift_tables(texts, overlaps, nearest),
    )


def _drift_tables(
    texts: Sequence[str], overlaps: Floats, nearest: tuple[Sequence[str], Sequence[str]]
) -> list[TitledTable]:
    """Return the texts whose neighbours changed most as a table; none if no neighbour changed."""
    worst = [index for index in np.argsort(overlaps, kind="stable")[:SHOWN].tolist() if overlaps[index] < 1]
    before, after = nearest
    cells = [
        [_beginning(texts[index]), f"{overlaps[index]:.2f}", _beginning(before[index]), _beginning(after[index])]
        for index in worst
    ]
    if not cells:
        return []
    return [TitledTable("What changed most", ["text", "kept", "nearest before", "nearest after"], cells, ("kept",))]


def map_clusters(
    texts: Sequence[str], details: Sequence[str], vectors: Embeddings, *, name: str, model: str, total: int
) -> TextMap:
    """Map texts in clusters by k-means.

    Args:
        texts: the texts ``(n,)``.
        details: what is known of each, in a few words; empty for nothing ``(n,)``.
        vectors: their unit vectors ``(n, dim)``.
        name: of the collection.
        model: its model.
        total: number of texts of the collection, of which these are some.
    """
    count = max(1, min(CLUSTERS, len(set(texts)) // LEAST))
    labels, centers = _find_clusters(vectors, count)
    categories = []
    cells = []
    for number, center in enumerate(centers, 1):
        members = np.flatnonzero(labels == number - 1)
        central = members[np.argsort(-(vectors[members] @ center), kind="stable")]
        examples = [_beginning(text) for text in dict.fromkeys(texts[index] for index in central.tolist())][:3]
        categories.append(Category(f"{examples[0]} ({len(members):,})", number, str(number)))
        cells.append([str(number), f"{len(members):,}", "; ".join(examples)])
    header = ["cluster", "texts", "nearest to its middle"]
    return TextMap(
        title=f"Map of {name}",
        lead=(
            f"{len(texts):,} texts in {count} clusters by {model}. A cluster is named by the text nearest to its "
            "middle; the number of clusters was set, not measured."
        ),
        notes=[_shown_note(len(texts), total, "texts")],
        views={model: project(vectors)},
        texts=texts,
        details=[
            f"cluster {label + 1}, {detail}" if detail else f"cluster {label + 1}"
            for label, detail in zip(labels, details, strict=True)
        ],
        categories=categories,
        category_of=labels.tolist(),
        group_of=[-1] * len(texts),
        tables=[TitledTable("The clusters", header, cells, ("texts",))],
    )


def _find_clusters(vectors: Embeddings, count: int) -> tuple[Indices, Embeddings]:
    """Return the cluster of each vector, the largest cluster being 0, and the centers of the clusters."""
    # Slow to import, and needed for maps alone.
    from sklearn.cluster import KMeans

    fitted = KMeans(count, n_init=4, random_state=SEED).fit(vectors)
    order = np.argsort(-np.bincount(fitted.labels_, minlength=count), kind="stable")
    labels = np.argsort(order, kind="stable")[fitted.labels_]
    return labels, fitted.cluster_centers_[order]


def _beginning(text: str) -> str:
    """Return the beginning of a text, on one line."""
    line = one_line(text)
    return line if len(line) <= SHORT else f"{line[:SHORT]}…"
