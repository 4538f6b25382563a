"""Measure a bank of contexts on STS-B and on other sets; the protocols are in reproduce/context/bank.md.

python benchmarks/origin_bank.py read --corpus CORPUS --model smollm2 --data data/en --folder readings [--seconds 240]
python benchmarks/origin_bank.py table --data data/en --folder readings                # settings on dev
python benchmarks/origin_bank.py chosen --corpus CORPUS --data data/en --folder readings --on test --layer 8    # once
python benchmarks/origin_bank.py cost --corpus CORPUS --model smollm2 --data data/en --folder .

Readings are kept in parts, so that a run that was stopped goes on; several processes share them by ``--share 0/2``.
Everything about one folder of readings has the same ``--pairs`` and ``--reference``.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np

EVALUATED, REFERENCE = ("dev", "test"), ("train", "corpus")
SETS = ("sts12", "sts13", "sts14", "sts15", "sickr")
"""Other test sets."""

SEED = 5
PARTS = {**dict.fromkeys((*EVALUATED, *REFERENCE), 10), **dict.fromkeys(SETS, 50)}
"""Sentences that are read at a time and kept as one file."""
LAYERS = (1, 2, 4, 6, 8, 10, 12, 15, 20, 30)


def pairs_of(given, name):
    """The random subset of a split: pairs and labels."""
    from samesense.data import read_pairs

    read = read_pairs(str(given.data / (f"{name}.test.tsv.gz" if name in SETS else f"stsb.{name}.tsv.gz")))
    chosen = np.random.default_rng(SEED).permutation(len(read.labels))[: given.pairs]
    every = list(read.pairs())
    return [every[i] for i in chosen], np.asarray(read.labels)[chosen]


def sentences_of(given, corpus, name):
    """The distinct sentences of a part, in a fixed order; those of train and corpus occur in no evaluated pair."""
    if name in (*EVALUATED, *SETS):
        return list(dict.fromkeys(text for pair in pairs_of(given, name)[0] for text in pair))
    from samesense.data import read_pairs

    def texts_of(part):
        return [text for pair in read_pairs(str(given.data / f"stsb.{part}.tsv.gz")).pairs() for text in pair]

    evaluated = {text for part in EVALUATED for text in texts_of(part)}
    every = texts_of("train") if name == "train" else (text for text in corpus if 5 <= len(text.split()) <= 30)
    found = [text for text in dict.fromkeys(every) if text not in evaluated]
    return [found[i] for i in np.random.default_rng(SEED).permutation(len(found))[: given.reference]]


def read(given):
    import torch

    from samesense.context.corpus.corpus import Corpus
    from samesense.context.generator.language_models import open_language_model
    from samesense.context.origin.bank import Bank
    from samesense.context.origin.reader import Reader

    end = time.perf_counter() + given.seconds
    torch.set_num_threads(given.threads)
    corpus = Corpus(given.corpus)
    generator = open_language_model(str(given.model), precision="bfloat16")
    reader = Reader(generator, given.own_layer or 0)
    given.folder.mkdir(parents=True, exist_ok=True)
    bank = Bank.draw(corpus, reader.tail, windows=given.windows, tokens=given.tokens, seed=42)
    mine, others = map(int, given.share.split("/"))
    for name in given.parts:
        texts, size = sentences_of(given, corpus, name), PARTS[name]
        if name in SETS:  # those of one length are read together
            texts = [texts[at] for at in reader.order(texts)]
        for number, start in enumerate(range(0, len(texts), size)):
            path = given.folder / f"{name}-{number:03d}.npz"
            if number % others != mine or path.exists():
                continue
            if time.perf_counter() > end:
                return
            began, cpu = time.perf_counter(), time.process_time()
            part = texts[start : start + size]
            found = reader.read(part, bank.tails)
            if given.own_layer is None:
                hidden = layers(reader, part)
            else:
                hidden = np.full((len(part), 3, len(LAYERS), reader.width), np.nan, dtype=np.float16)
                hidden[:, 0, LAYERS.index(given.own_layer)] = found.own
            beside = path.with_suffix(".tmp.npz")
            np.savez(beside, texts=part, logs=found.logs, layers=hidden)
            beside.rename(path)
            seconds = (time.perf_counter() - began) / len(part)
            print(
                f"{path.name} {seconds:.2f} s {(time.process_time() - cpu) / len(part):.2f} cpu s a sentence",
                flush=True,
            )


def layers(reader, texts):
    """Mean hidden states of sentences at some layers, ``(sentences, 3, layers, width)``.

    Behind a start token; without one, the first token left out; without one, of all tokens. What is padded comes last,
    where a model that reads forwards does not see it.
    """
    import torch

    from samesense.context.origin.reader import closed

    rows = [reader.generator.ids(closed(text), inside=False) for text in texts]
    found = np.empty((len(rows), 3, len(LAYERS), reader.width), dtype=np.float32)
    for kind, start in ((0, [reader.generator.start]), (1, [])):
        longest = max(map(len, rows)) + len(start)
        ids = torch.tensor([[*start, *row, *[0] * (longest - len(start) - len(row))] for row in rows])
        with torch.inference_mode():
            states = reader.generator.model.model(input_ids=ids, output_hidden_states=True).hidden_states
        kept = torch.stack([states[at] for at in LAYERS]).float()
        for at, row in enumerate(rows):
            own = kept[:, at, : len(start) + len(row)]
            found[at, kind] = own[:, min(1, len(row) - 1) :].mean(1)
            if not start:
                found[at, 2] = own.mean(1)
    return found


def cost(given):
    """Print what a sentence costs, where the time goes, and the time of its matrix products alone."""
    import torch

    from samesense.context.corpus.corpus import Corpus
    from samesense.context.generator.language_models import open_language_model
    from samesense.context.origin.bank import Bank
    from samesense.context.origin.reader import Reader

    torch.set_num_threads(given.threads)
    reader = Reader(open_language_model(str(given.model), precision="bfloat16"))
    bank = Bank.draw(Corpus(given.corpus), reader.tail, windows=given.windows, tokens=given.tokens, seed=42)
    texts = sentences_of(given, (), "dev")[:4]

    def seconds(run):
        run()
        began, cpu = time.perf_counter(), time.process_time()
        run()
        return np.array([time.perf_counter() - began, time.process_time() - cpu]) / len(texts)

    model, rows = reader.generator.model, given.windows * (given.tokens - 1)
    weights = [part.weight for part in model.modules() if isinstance(part, torch.nn.Linear)]

    def products():
        with torch.inference_mode():
            for weight in weights:
                given_rows = torch.zeros(rows, weight.shape[1], dtype=weight.dtype)
                for _ in texts:
                    torch.nn.functional.linear(given_rows, weight)

    parts = {
        "a sentence": lambda: reader.read(texts, bank.tails),
        "reading the sentence itself": lambda: reader.read(texts, bank.tails[:, :1]),
        "matrix products alone": products,
    }
    found = {name: seconds(run) for name, run in parts.items()}
    for name, (wall, cpu) in found.items():
        print(f"{name:30} {wall:6.2f} s, {cpu:6.2f} s of a core, {wall / found['a sentence'][0]:.2f}")


def gathered(folder: Path, name: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return what was read of each sentence of a part: its log probabilities and its hidden states."""
    found = {}
    for path in sorted(folder.glob(f"{name}-*.npz")):
        with np.load(path) as arrays:
            rows = zip(arrays["texts"].tolist(), arrays["logs"], arrays["layers"], strict=True)
            found |= {text: (logs, states) for text, logs, states in rows}
    return found


class Parts:
    """Vectors of evaluated sentences, whitened by others."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.pairs, self.labels = pairs_of(given, given.on)
        self.read = {name: gathered(given.folder, name) for name in (given.on, *REFERENCE)}
        whole = [at for at, pair in enumerate(self.pairs) if all(text in self.read[given.on] for text in pair)]
        self.pairs, self.labels = [self.pairs[at] for at in whole], self.labels[whole]
        self.texts = list(dict.fromkeys(text for pair in self.pairs for text in pair))
        self.on = given.on
        print(f"{len(self.pairs)} pairs; reference: { ({name: len(self.read[name]) for name in REFERENCE}) }")

    def numbers(self, name: str, what: tuple[object, ...]) -> np.ndarray:
        """Numbers of the sentences of a part: ("bank", windows, tokens, form) or ("layer", layer, kind)."""
        texts = self.texts if name == self.on else list(self.read[name])
        if what[0] == "bank":
            logs = np.stack([self.read[name][text][0][: what[1], : what[2]] for text in texts])
            return logs.mean(axis=2) if what[3] == "means" else logs.reshape(len(texts), -1)
        return np.stack([self.read[name][text][1][what[2], LAYERS.index(what[1])] for text in texts])

    def vectors(self, what: tuple[object, ...], by: str) -> np.ndarray:
        """Unit vectors of the evaluated sentences."""
        from samesense.encoder.maps.whitening import Whitening

        rows = self.numbers(self.on, what).astype(np.float64)
        if by == "centred":
            rows = rows - self.numbers("train", what).mean(axis=0)
        elif by != "raw":
            rows = Whitening.shrunk(self.numbers(by, what)).apply(rows).astype(np.float64)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def scores(self, vectors: np.ndarray) -> np.ndarray:
        place = {text: at for at, text in enumerate(self.texts)}
        sides = [vectors[[place[pair[side]] for pair in self.pairs]] for side in (0, 1)]
        return np.einsum("nd,nd->n", *sides)

    def figure(self, scores: np.ndarray) -> float:
        from scipy.stats import spearmanr

        return 100 * float(spearmanr(scores, self.labels)[0])


def table(given):
    """Print what settings give, whitened by train and by the corpus."""
    parts = Parts(given)
    bys = [name for name in ("raw", "centred", *REFERENCE) if name not in REFERENCE or len(parts.read[name]) > 100]

    def show(name, what):
        print(f"{name:34}", *(f"{by} {parts.figure(parts.scores(parts.vectors(what, by))):6.2f}" for by in bys))

    most = next(iter(parts.read[given.on].values()))[0].shape  # of the bank that was read
    counts = [count for count in (8, 16, 32, 64, 128, 256) if count <= most[0]]
    lengths = [length for length in (1, 2, 3, 4, 6, 10) if length <= most[1]]
    for windows, tokens, form in product(counts, lengths, ("means", "tokens")):
        show(f"bank {windows} x {tokens} {form}", ("bank", windows, tokens, form))
    kinds = ("behind a start token", "first token left out", "all tokens")
    for layer, kind in product(LAYERS, range(3)):
        show(f"layer {layer}, {kinds[kind]}", ("layer", layer, kind))
    sizes = product(counts[-3:], lengths[-2:])
    for by, form, (windows, tokens), layer in product(bys[2:], ("means", "tokens"), sizes, (1, 2, 4, 6, 8)):
        bank = parts.scores(parts.vectors(("bank", windows, tokens, form), by))
        own = parts.scores(parts.vectors(("layer", layer, 0), by))
        both = [parts.figure(bank + weight * own) for weight in (0.5, 1, 2)]
        print(f"joined {windows} x {tokens} {form}, layer {layer}, by {by}: own x 0.5, 1, 2", *np.round(both, 2))


def baselines(parts, corpus):
    """Scores of what needs no model: overlap of words, and TF-IDF over the corpus."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    from samesense.context.corpus.words import words

    weights = TfidfVectorizer(analyzer=words, sublinear_tf=True).fit(corpus)
    one, other = (weights.transform([pair[side] for pair in parts.pairs]) for side in (0, 1))
    sets = [[set(words(text)) for text in pair] for pair in parts.pairs]
    return {
        "TF-IDF": np.asarray(one.multiply(other).sum(axis=1)).ravel(),
        "word overlap": np.array([len(a & b) / len(a | b) for a, b in sets]),
    }


def chosen(given):
    """Print the chosen setting beside its parts and the baselines, with paired tests."""
    from samesense.context.corpus.corpus import Corpus
    from samesense.metrics.significance import bootstrap_interval, holm, paired_bootstrap

    parts, corpus = Parts(given), Corpus(given.corpus)
    layer, by = given.layer, given.by
    bank = parts.scores(parts.vectors(("bank", given.windows, given.tokens, given.form), by))
    own = parts.scores(parts.vectors(("layer", layer, 0), by))
    rows = {
        "bank and own vectors": bank + given.own * own,
        "bank": bank,
        "own vectors, whitened": own,
        "own vectors": parts.scores(parts.vectors(("layer", layer, 0), "raw")),
        **baselines(parts, corpus),
    }
    first = rows["bank and own vectors"]
    found = {name: paired_bootstrap(first, row, parts.labels, "spearman") for name, row in list(rows.items())[1:]}
    adjusted = dict(zip(found, holm([one.p_value for one in found.values()]), strict=True))
    for name, row in rows.items():
        low, high = bootstrap_interval(row, parts.labels, "spearman")
        line = f"| {name} | {parts.figure(row):.2f} [{100 * low:.1f}, {100 * high:.1f}] |"
        if name not in found:
            print(f"{line} | |")
            continue
        one = found[name]
        gap = f"{100 * one.difference:+.2f} [{100 * one.low:+.1f}, {100 * one.high:+.1f}]"
        print(f"{line} {gap} | {adjusted[name]:.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=["read", "table", "chosen", "cost"])
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--parts", nargs="+", default=["dev", "train", "test", "corpus"])
    parser.add_argument("--share", default="0/1")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--on", default="dev", choices=EVALUATED)
    parser.add_argument("--pairs", type=int, default=120, help="pairs of each evaluated split")
    parser.add_argument("--reference", type=int, default=600, help="sentences that whiten")
    parser.add_argument("--windows", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=6)
    parser.add_argument("--form", default="means", choices=["means", "tokens"])
    parser.add_argument("--layer", type=int, default=8)
    parser.add_argument("--own-layer", type=int, choices=LAYERS, help="read: own vectors of this layer alone [all]")
    parser.add_argument("--own", type=float, default=1.0, help="weight of the own vectors beside the bank")
    parser.add_argument("--by", default="train", choices=REFERENCE)
    given = parser.parse_args()
    {"read": read, "table": table, "chosen": chosen, "cost": cost}[given.do](given)


if __name__ == "__main__":
    main()
