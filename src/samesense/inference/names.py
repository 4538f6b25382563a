"""What the name of a model says: its kind, its pooling, and the maps behind it.

    FOLDER, owner/name, default   a sentence-transformers model, a run folder, a bare transformer, a cross-encoder, or
                                  an exported folder
    NAME?cls, NAME?first-last     the same with another pooling, for models whose folder does not state theirs
    NAME?template=TEXT            the same with each text in a template, such as: "{text}" means in one word:"
    vectors:FILE                  vectors computed elsewhere, with their texts
    words:PATH                    word vectors, averaged; words:PATH?sif weights rare words more
    python:module:function        a function from texts to a matrix, one row a text
    python-score:module:function  a function from pairs to scores
    origin:FOLDER                 an Origin
    chat:MODEL                    a language model behind a chat endpoint, asked for a score from 0 to 5

Maps may follow every name that gives embeddings. They are fitted on unlabelled texts, and applied from left to right:

    NAME+whiten  NAME+whiten:256

One map is fitted on nothing: NAME+dim:64 keeps the first 64 numbers of each vector, at unit length.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from samesense.encoder.names import NAME_KINDS

_MAPS = re.compile(r"(?P<base>.+?)(?P<maps>(?:\+(?:whiten|dim)(?::\d+)?)*)")
_MAP = re.compile(r"\+(whiten|dim)(?::(\d+))?")


def split_maps(name: str) -> tuple[str, str]:
    """Return what a name names, and the maps behind it, as ``("a/model", "+whiten:64")``; a path may hold a plus."""
    match = _MAPS.fullmatch(name)
    return (match["base"], match["maps"]) if match else (name, "")


def parse_maps(maps: str) -> list[tuple[str, int | None]]:
    """Return each map of ``"+whiten:64+dim:32"`` with its dimensions, where they are stated."""
    return [(name, int(dim) if dim else None) for name, dim in _MAP.findall(maps)]


def split_kind(name: str) -> tuple[str, str]:
    """Return the kind of a name and what stands behind its colon; for a model, ``""`` and the name."""
    kind, colon, target = name.partition(":")
    return (kind, target) if colon and kind in NAME_KINDS else ("", name)


def settled_name(name: str) -> str:
    """Return a name that means the same from every folder: the path of a file or folder made absolute."""
    base, maps = split_maps(name)
    kind, target = split_kind(base)
    path, mark, options = target.partition("?")
    # "default" is the embedded model even where a folder has that name.
    if kind in ("python", "python-score", "chat") or path == "default":
        return name
    with suppress(OSError, RuntimeError):  # no file has such a name
        expanded = Path(path).expanduser()
        if expanded.exists():
            prefix = f"{kind}:" if kind else ""
            return f"{prefix}{expanded.resolve()}{mark}{options}{maps}"
    return name


def place_of(name: str) -> str:
    """Return the file or folder that a name reads, of a run folder the model in it; a name of the hub as it is."""
    target = split_kind(split_maps(name)[0])[1].partition("?")[0]
    with suppress(OSError, RuntimeError):  # no file has such a name
        inner = Path(target).expanduser() / "model"
        return str(inner) if inner.is_dir() else target
    return target
