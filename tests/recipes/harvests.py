"""Generated harvest folders."""

import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from samesense.encoder.vectors.quantize import Quantizer
from samesense.inference.output import Encoded, write_encoded
from tests.conftest import WORDS

KINDS = ("random", "neighbour", "section")


def some_pairs(rows, *, seed=1):
    """Pairs scored from -1 to 1 by the share of a hidden topic's words; see the fixture toy_pairs."""
    source = random.Random(seed)
    topics = [WORDS[i : i + 8] for i in range(0, 48, 8)]
    rows_written = []
    for row in range(rows):
        topic, second_topic = source.sample(topics, 2)
        topic = source.sample(topic, 8)
        overlap = source.randint(0, 4)
        second = topic[4 : 4 + overlap] + source.sample(second_topic, 4 - overlap)
        source.shuffle(second)
        score = (overlap - 2) / 2 + source.uniform(-0.02, 0.02)
        rows_written.append((" ".join(topic[:4]), " ".join(second), max(-1.0, min(1.0, score)), KINDS[row % 3]))
    return rows_written


def cross_pairs(rows, *, seed=1):
    """Pairs scored from -1 to 1 by the words of the second text that are of the first half of the vocabulary."""
    source = random.Random(seed)
    half = len(WORDS) // 2
    pairs = []
    for row in range(rows):
        overlap = source.randint(0, 4)
        second = source.sample(WORDS[:half], overlap) + source.sample(WORDS[half:], 4 - overlap)
        source.shuffle(second)
        pairs.append((" ".join(source.sample(WORDS, 4)), " ".join(second), (overlap - 2) / 2, KINDS[row % 3]))
    return pairs


def some_sentences(count, *, seed=1):
    """Sentences with a vector each: the shares of the topics of their words, so that it can be learnt from these."""
    source = random.Random(seed)
    vector_of = {}
    while len(vector_of) < count:
        chosen = source.sample(WORDS[:48], 4)
        vector_of[" ".join(chosen)] = [sum(word in WORDS[i : i + 8] for word in chosen) for i in range(0, 48, 8)]
    vectors = np.array(list(vector_of.values()), dtype=np.float32)
    return list(vector_of), vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def pairs_of(texts, vectors, count, *, seed=1):
    """Random pairs of sentences with the cosines of their vectors."""
    source = random.Random(seed)
    drawn = [source.sample(range(len(texts)), 2) for _ in range(count)]
    return [(texts[a], texts[b], float(np.clip(vectors[a] @ vectors[b], -1, 1)), "random") for a, b in drawn]


def write_vectors(folder, texts, vectors):
    """Write the sentences of a harvest by next words, in two shards."""
    shards = folder / "vectors" / "shards"
    shards.mkdir(parents=True)
    for number, rows in enumerate(np.array_split(np.arange(len(texts)), 2)):
        shard = Encoded([texts[row] for row in rows], vectors[rows], Quantizer("float32", vectors.shape[1]))
        write_encoded(shard, str(shards / f"{number:05}.parquet"), "parquet")
    _manifest(folder / "vectors")
    return str(folder)


def write_harvest(folder, rows, *, shard=100):
    """Write rows of sentence1, sentence2, score and kind as shards."""
    (folder / "shards").mkdir(parents=True)
    for number, start in enumerate(range(0, len(rows), shard)):
        columns = zip(*rows[start : start + shard], strict=True)
        table = pa.table(dict(zip(("sentence1", "sentence2", "score", "kind"), map(list, columns), strict=True)))
        pq.write_table(table, folder / "shards" / f"{number:05}.parquet")
    _manifest(folder)
    return str(folder)


def _manifest(folder):
    files = [{"file": path.name} for path in sorted((folder / "shards").iterdir())]
    (folder / "manifest.json").write_text(json.dumps({"status": "finished", "shards": files}))
