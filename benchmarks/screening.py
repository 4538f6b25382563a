"""Milliseconds of processor time a search of screening takes, over corpora of growing size made of the same documents.

python benchmarks/screening.py --documents wikitext2.jsonl.gz brown.jsonl.gz --queries stsb.test.tsv.gz
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import tempfile
import time
from itertools import chain
from pathlib import Path

import numpy as np
from alternate import RESULTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", nargs="+", required=True, help="running text")
    parser.add_argument("--queries", help="file of labelled pairs [the shipped sample]")
    parser.add_argument("--sentences", type=int, nargs="+", default=[10_000, 20_000, 40_000, 80_000])
    parser.add_argument("--count", type=int, default=300, help="how many sentences are searched for")
    parser.add_argument("--chunks", type=int, default=20_000, help="how many chunks a sentence may have")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    from samesense.data import read_pairs, sample_path
    from samesense.data.documents import read_documents

    documents = list(chain.from_iterable(map(read_documents, args.documents)))
    random.Random(0).shuffle(documents)
    queries = read_pairs(args.queries or sample_path("train")).sentences1[: args.count]
    rows = [measure(documents, size, queries, args.chunks, args.rounds) for size in args.sentences]
    print(
        "| sentences | index, s | postings a search | search, ms | with its windows, ms |\n|---:|---:|---:|---:|---:|"
    )
    for row in rows:
        print(
            f"| {row['sentences']} | {row['index_seconds']:.1f} | {row['postings']:.0f} | {row['search_ms']:.2f} | "
            f"{row['windows_ms']:.2f} |"
        )
    machine = {"cores": os.cpu_count(), "machine": platform.machine()}
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "screening.jsonl").open("a", encoding="utf-8") as out:
        facts = {"benchmark": "screening", "machine": machine, "rounds": args.rounds, "queries": len(queries)}
        out.write(json.dumps(facts | {"chunks": args.chunks, "rows": rows}) + "\n")


def measure(
    documents: list[list[list[str]]], size: int, queries: list[str], k: int, rounds: int
) -> dict[str, float | int]:
    """Index the first documents until there are ``size`` sentences, and search for every query in them."""
    from samesense.context.corpus.corpus import Corpus
    from samesense.context.retrieval.tfidf import Tfidf

    ends = np.cumsum([sum(map(len, document)) for document in documents])
    if ends[-1] < size:
        raise SystemExit(f"The documents have {ends[-1]} sentences, and {size} were asked for.")
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus.build(Path(folder) / "corpus", documents[: 1 + int(np.searchsorted(ends, size))])
        index_seconds, tfidf = timed(lambda: Tfidf(corpus, Path(folder)))
        alone = []
        both = []
        for _ in range(rounds):
            alone.append(timed(lambda: [tfidf.chunks(query, k) for query in queries])[0])
            both.append(timed(lambda: tfidf.search(queries, k))[0])
        postings = statistics.mean(tfidf.postings_of(query) for query in queries)
    return {
        "sentences": len(corpus),
        "index_seconds": index_seconds,
        "postings": postings,
        "search_ms": 1e3 * statistics.median(alone) / len(queries),
        "windows_ms": 1e3 * statistics.median(both) / len(queries),
    }


def timed(run):
    started = time.process_time()
    result = run()
    return time.process_time() - started, result


if __name__ == "__main__":
    main()
