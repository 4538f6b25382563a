"""Near-duplicates of real sentences and edited copies of them, beside SemHash and community detection.

python benchmarks/dedup.py make FILES --rows 1000000 --output texts.txt
python benchmarks/dedup.py make FILES --rows 10000000 --splice --output texts.txt
samesense dedup texts.txt --model MODEL --output kept.txt
samesense encode MODEL texts.txt --normalize --output vectors.npy
python benchmarks/dedup.py samesense --texts texts.txt --vectors vectors.npy --rows 200000

All ways get the same vectors, each in a separate process; only ``semhash`` needs that package. ``--splice`` makes as
many originals as copies: where sentences are few, each other one begins like one of them and ends like another.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import time
from importlib import import_module
from pathlib import Path

import numpy as np

PACKAGES = {
    "samesense": "samesense",
    "exact": "samesense",
    "semhash": "semhash",
    "community_detection": "sentence_transformers.util",
}
"""What each way loads."""


def sentences(path: Path) -> list[str]:
    """Return the cells of a table, or the sentences of documents with sections."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        if ".jsonl" in path.name:
            return [
                text for line in stream for section in json.loads(line)["sections"] for text in section["sentences"]
            ]
        return [cell for line in stream for cell in line.rstrip("\n").split("\t")]


def edited(text: str, draw: random.Random) -> str:
    """Return a text with one edit that is common in real copies."""
    words = text.split()
    position = draw.randrange(len(text.split()) - 1)
    kind = draw.randrange(4)
    if kind == 0:
        return text.lower().rstrip(".!?")
    if kind == 1:
        words[position], words[position + 1] = words[position + 1], words[position]
    elif kind == 2:
        del words[position]
    else:
        words[position] = words[position][:-1] + draw.choice("aeinrst")
    return " ".join(words)


def spliced(texts: list[str], draw: random.Random) -> str:
    """Return the first half of a text and the second half of another."""
    first, second = draw.choice(texts).split(), draw.choice(texts).split()
    return " ".join(first[: len(first) // 2] + second[len(second) // 2 :])


def make(files: list[Path], rows: int, output: Path, *, splice: bool) -> None:
    cells = dict.fromkeys(cell.strip() for path in files for cell in sentences(path))
    real = [text for text in cells if len(text.split()) > 1 and len(text) < 300 and text.isprintable()]
    draw = random.Random(0)
    originals = dict.fromkeys(real[: rows // 2 if splice else rows])
    while splice and len(originals) < rows // 2:
        originals[spliced(real, draw)] = None
    texts = list(originals)
    texts += [edited(draw.choice(texts), draw) for _ in range(rows - len(texts))]
    draw.shuffle(texts)
    output.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    print(
        f"{len(originals)} sentences, {max(0, len(originals) - len(real))} of them spliced, and "
        f"{rows - len(originals)} edited copies, {sum(map(len, texts)) / rows:.0f} characters each"
    )


def by_samesense(texts: list[str], vectors: np.ndarray, threshold: float, search: str) -> int:
    import samesense

    row_of = {text: row for row, text in enumerate(texts)}
    result = samesense.dedup(
        texts, model=lambda some: vectors[[row_of[text] for text in some]], threshold=threshold, search=search
    )
    print(result)
    return len(result.kept)


def by_semhash(texts: list[str], vectors: np.ndarray, threshold: float) -> int:
    from semhash import SemHash

    class Given:
        def encode(self, some: list[str], **_: object) -> np.ndarray:
            raise NotImplementedError

    index = SemHash.from_embeddings(vectors, texts, Given())
    return len(index.self_deduplicate(threshold=threshold).selected)


def by_communities(texts: list[str], vectors: np.ndarray, threshold: float) -> int:
    from sentence_transformers.util import community_detection

    communities = community_detection(vectors, threshold=threshold, min_community_size=2)
    return len(texts) - sum(len(community) - 1 for community in communities)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=["make", "samesense", "exact", "semhash", "community_detection"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--output", type=Path, default=Path("texts.txt"))
    parser.add_argument("--texts", type=Path, default=Path("texts.txt"))
    parser.add_argument("--vectors", type=Path, default=Path("vectors.npy"))
    parser.add_argument("--splice", action="store_true")
    parser.add_argument("--threshold", type=float, default=0.9)
    chosen = parser.parse_args()
    if chosen.way == "make":
        make(chosen.files, chosen.rows, chosen.output, splice=chosen.splice)
        return
    texts = chosen.texts.read_text(encoding="utf-8").split("\n")[: chosen.rows]
    vectors = np.load(chosen.vectors, mmap_mode="r")[: chosen.rows]
    ways = {
        "samesense": lambda: by_samesense(texts, vectors, chosen.threshold, "auto"),
        "exact": lambda: by_samesense(texts, vectors, chosen.threshold, "exact"),
        "semhash": lambda: by_semhash(texts, np.array(vectors), chosen.threshold),
        "community_detection": lambda: by_communities(texts, np.array(vectors), chosen.threshold),
    }
    import_module(PACKAGES[chosen.way])  # not timed: seconds of import are no seconds of search
    started = time.perf_counter()
    retained = ways[chosen.way]()
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{chosen.way}: {len(texts)} texts, {retained} kept, {seconds:.1f} s, peak {peak:.0f} MiB")


if __name__ == "__main__":
    main()
