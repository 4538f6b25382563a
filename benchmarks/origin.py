"""Cost of Origin with retrieved contexts, against |C|, the corpus and the size of the generator.

python benchmarks/origin.py                                  # a small made-up corpus, a minute or two
python benchmarks/origin.py --documents docs.jsonl.gz --sizes tiny small --contexts 20 100 --words 500000 2000000

Models are random: the cost does not depend on what they have learnt. Everything is computed from scratch for each row.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from samesense.context.corpus.corpus import Corpus
from samesense.context.discriminator.encoder import Discriminator, SentenceEncoder
from samesense.context.discriminator.lstm import Coherence, Vocabulary
from samesense.context.generator.base import KINDS
from samesense.context.generator.seq2seq import Seq2SeqGenerator
from samesense.context.generator.tokens import train_tokenizer
from samesense.context.generator.transformer import Architecture, Seq2Seq
from samesense.context.origin.context_set import Selection
from samesense.context.origin.origin import Origin
from samesense.context.origin.scheme import Scheme
from samesense.context.retrieval.tfidf import Tfidf
from samesense.data.documents import first_words


def made_up(count: int) -> Iterator[list[list[str]]]:
    """Yield documents of twenty sentences whose words follow Zipf's law."""
    draw = random.Random(0)
    vocabulary = [f"w{i}" for i in range(20000)]
    weights = [1 / (i + 1) for i in range(20000)]
    for _ in range(count):
        yield [[" ".join(draw.choices(vocabulary, weights, k=draw.randint(5, 25))) + "." for _ in range(20)]]


def measure(corpus: Corpus, folder: Path, size: str, contexts: int, pairs: int, precision: str) -> dict[str, object]:
    """Return the cost of scoring some pairs of sentences of the corpus."""
    torch.manual_seed(0)
    vocabulary = Vocabulary.count(corpus, least=2)
    discriminator = Discriminator(SentenceEncoder(Coherence(len(vocabulary)), vocabulary, corpus.shape), corpus, folder)
    tokenizer = train_tokenizer(corpus, 8000)
    model = Seq2Seq(Architecture.of(size, tokenizer.get_vocab_size()))
    generator = Seq2SeqGenerator(dict.fromkeys(KINDS, model), tokenizer, precision=precision)
    tfidf = Tfidf(corpus, folder)
    scheme = Scheme(selection=Selection(size=contexts, rescored=2 * contexts), reference=16)
    origin = Origin(corpus, tfidf, discriminator, generator, scheme)
    drawn = corpus.sentences(corpus.random_windows(1, 2 * pairs))
    started = time.perf_counter()
    pools = tfidf.search(drawn, scheme.selection.screened)
    screened = time.perf_counter()
    origin.terms.ranked(drawn, pools, scheme.selection.rescored)
    ranked = time.perf_counter()
    computing = time.process_time()
    origin(list(zip(drawn[::2], drawn[1::2], strict=True)))
    scored = time.perf_counter()
    return {
        "sentences": len(corpus),
        "size": size,
        "contexts": contexts,
        "pairs": pairs,
        "precision": precision,
        "screening_ms_a_sentence": 1000 * (screened - started) / len(drawn),
        "ranking_ms_a_sentence": 1000 * (ranked - screened) / len(drawn),
        "seconds_a_pair": (scored - ranked) / pairs,
        "cpu_seconds_a_pair": (time.process_time() - computing) / pairs,
        "cells_a_pair": origin.terms.computed / pairs,
        "ms_a_cell": 1000 * (scored - ranked) / origin.terms.computed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", help="what samesense origin reads [made up]")
    parser.add_argument("--words", nargs="+", type=int, default=[20000, 80000])
    parser.add_argument("--sizes", nargs="+", default=["tiny"])
    parser.add_argument("--contexts", nargs="+", type=int, default=[10, 40])
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"])
    args = parser.parse_args()
    rows = []
    for words in args.words:
        with tempfile.TemporaryDirectory() as name:
            source = made_up(10**6)
            if args.documents:
                from samesense.data.documents import read_documents

                source = read_documents(args.documents)
            corpus = Corpus.build(Path(name) / "corpus", first_words(source, words))
            for size in args.sizes:
                for contexts in args.contexts:
                    rows.append(measure(corpus, Path(name), size, contexts, args.pairs, args.precision))
                    print(json.dumps(rows[-1]), flush=True)
    names = list(rows[0])
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(f"{v:.2f}" if isinstance(v, float) else str(v) for v in row.values()) + " |")


if __name__ == "__main__":
    main()
