"""Evaluate the variants of an Origin, and write the results into the pages of this folder.

python reproduce/context/run.py --data stsb.test.tsv.gz --origin origins/2M --tables sets size terms   # run
python reproduce/context/run.py --data stsb.test.tsv.gz --origin a/100K a/500K a/2M --tables corpus    # Table 6
python reproduce/context/run.py --data stsb.test.tsv.gz --origin o/2M --tables size --variants "20 contexts"
python reproduce/context/run.py            # rewrite the pages from results/
python reproduce/context/run.py --check    # exit 1 if that would change one

An Origin caches its computations in its folder, so variants share them and a stopped run resumes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from samesense.context.corpus.words import words
from samesense.context.origin.origin import Origin
from samesense.context.origin.scheme import Scheme
from samesense.data import PairData, read_pairs
from samesense.evaluation.sts import evaluate_pairs
from samesense.inference.models.model import Model
from samesense.reports.tables import markdown
from samesense.types import Pair, Score, Scores

HERE = Path(__file__).parent
RESULTS = HERE / "results"
BEGIN = "<!-- here: written by run.py -->"
END = "<!-- end of here -->"
FULL = "full"

Change = Callable[[Scheme], Scheme]


def _selection(**changes: object) -> Change:
    return lambda scheme: replace(scheme, selection=replace(scheme.selection, **changes))


def _sized(size: int) -> Change:
    """Return the change to another |C|; the ratio of scored to chosen contexts stays."""

    def change(scheme: Scheme) -> Scheme:
        ratio = scheme.selection.rescored / scheme.selection.size
        return _selection(size=size, rescored=round(ratio * size))(scheme)

    return change


def _without(*terms: str) -> Change:
    return lambda scheme: replace(scheme, weights=replace(scheme.weights, **dict.fromkeys(terms, 0.0)))


TABLES: dict[str, dict[str, Change]] = {
    "corpus": {FULL: lambda scheme: scheme},
    "size": {f"{size} contexts": _sized(size) for size in (20, 100, 500, 1000)},
    "sets": {
        FULL: lambda scheme: scheme,
        "random contexts": _selection(strategy="random"),
        "without diversity": _selection(strategy="no-diversity"),
    },
    "terms": {
        FULL: lambda scheme: scheme,
        "w/o discriminative": _without("discriminative"),
        "w/o left-context": _without("left"),
        "w/o right-context": _without("right"),
        "w/o both contexts": _without("left", "right"),
    },
    "normalisation": {
        name: lambda scheme, name=name: replace(scheme, normalisation=name)
        for name in ("raw", "centred", "standardised", "both")
    },
    "generator": {
        "discriminator": _without("sentence", "left", "right"),
        "discriminator and sentence": _without("left", "right"),
    },
    "baselines": {},
}
"""The variants of each table: Tables 6 and 7, section 5.4, Table 9, and three that the paper does not have."""


def overlap(pairs: Sequence[Pair]) -> Scores:
    """Return the Jaccard overlap of the words of each pair; 1 if neither sentence has a word."""
    sets = [(set(words(first)), set(words(second))) for first, second in pairs]
    return np.array(
        [
            len(first_words & second_words) / len(first_words | second_words) if first_words | second_words else 1.0
            for first_words, second_words in sets
        ]
    )


def tfidf(origin: Origin) -> Score:
    """Return a scorer by the cosine of TF-IDF vectors of words, fitted on the sentences of the corpus."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(analyzer=words, sublinear_tf=True).fit(origin.corpus)

    def score(pairs: Sequence[Pair]) -> Scores:
        first, second = (weights.transform([pair[side] for pair in pairs]) for side in (0, 1))
        return np.asarray(first.multiply(second).sum(axis=1)).ravel()

    return score


def run(
    table: str, folder: Path, data: PairData, vectors: str | None, device: str, chosen: Sequence[str] | None = None
) -> None:
    """Evaluate the chosen variants of a table (default: all) on ``data``, and append the results."""
    for variant, change in TABLES[table].items():
        if chosen and variant not in chosen:
            continue
        scheme = Origin.open(folder, device=device).scheme
        origin = Origin.open(folder, scheme=change(scheme), device=device)
        _judge(table, variant, origin, origin, data, origin.protocol)
    if table == "baselines":
        from samesense.inference.models.load import load

        origin = Origin.open(folder, device=device)
        _judge(table, "word overlap (Jaccard)", overlap, origin, data, "Jaccard of words")
        _judge(table, "TF-IDF cosine", tfidf(origin), origin, data, "TF-IDF of words over the corpus, cosine")
        if vectors is not None:
            for spec in (f"words:{vectors}", f"words:{vectors}?sif"):
                model = load(spec)
                name = f"averaged word vectors{', SIF weights' * spec.endswith('?sif')}"
                _judge(table, name, model.scores, origin, data, model.protocol)


def _judge(table: str, variant: str, score: Score, origin: Origin, data: PairData, protocol: str) -> None:
    results = evaluate_pairs(Model(score=score, name=variant, protocol=protocol), data)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE)
    row = results[0].to_dict() | {
        "table": table,
        "variant": variant,
        "sha256": data.sha256,
        "commit": commit.stdout.strip(),
        "corpus": {
            "sha256": origin.corpus.sha256,
            "sentences": len(origin.corpus),
            "words": sum(len(sentence.split()) for sentence in origin.corpus),
        },
        "computed": origin.terms.computed,
        "undefined": origin.undefined,
        "short": origin.sets.short,
        "widened": origin.sets.widened,
    }
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{table}.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(row, ensure_ascii=False) + "\n")
    sys.stdout.write(f"{table}, {variant}: {100 * row['value']:.2f} on {row['n']} pairs in {row['seconds']:.0f} s\n")


def newest(table: str) -> list[dict]:
    """Return the last row of each variant, corpus, scoring protocol (with its generator) and data set."""
    path = RESULTS / f"{table}.jsonl"
    last = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        row = json.loads(line)
        last[row["variant"], row["corpus"]["sha256"], row["protocol"], row["sha256"], row["n"]] = row
    return list(last.values())


def _interval(row: dict) -> str:
    return f"{100 * row['low']:z.1f} to {100 * row['high']:z.1f}" if "low" in row else ""


def part_of_page(table: str) -> str:
    """Return the Markdown of a table's results, or a note that it was not run."""
    rows = newest(table)
    if not rows:
        return "Not run yet."
    cells = [
        [
            row["variant"],
            f"{row['corpus']['words'] / 1e6:.2f}M",
            f"{row['dataset']} ({row['n']})",
            f"{100 * row['value']:z.2f}",
            _interval(row),
            f"{row['seconds']:.0f}",
            str(row["computed"]),
            row["commit"],
        ]
        for row in rows
    ]
    header = [
        "variant",
        "words of corpus",
        "data (pairs)",
        "Spearman x100",
        "95 %",
        "seconds",
        "cells computed",
        "commit",
    ]
    notes = "\n".join(f"- {row['variant']}: {row['protocol']}" for row in rows)
    return f"{markdown(header, cells, numeric=(header[1], *header[3:7]))}\n\n{notes}"


def pages(*, check: bool) -> bool:
    """Write the pages from the results, or only compare them if ``check``; return whether one changes."""
    changed = False
    for table in TABLES:
        path = HERE / f"{table}.md"
        text = path.read_text(encoding="utf-8")
        before, remainder = text.split(BEGIN)
        updated = f"{before}{BEGIN}\n{part_of_page(table)}\n{END}{remainder.split(END)[1]}"
        changed |= updated != text
        if not check:
            path.write_text(updated, encoding="utf-8")
    return changed


def main() -> None:
    """Run the requested tables, then write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="labelled pairs")
    parser.add_argument("--origin", nargs="+", type=Path, default=[], help="folders of samesense origin")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=[])
    variant_names = list(dict.fromkeys(variant for variants in TABLES.values() for variant in variants))
    parser.add_argument(
        "--variants", nargs="+", choices=variant_names, metavar="VARIANT", help=f"of {', '.join(variant_names)}; all"
    )
    parser.add_argument("--pairs", type=int, help="only this number of pairs, drawn at random with a fixed seed")
    parser.add_argument("--words", help="word vectors for the baselines")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if (args.tables or args.data or args.origin) and not (args.tables and args.data and args.origin):
        parser.error("to run a table takes --data, --origin and --tables")
    if args.tables:
        data = read_pairs(args.data)
        if args.pairs and args.pairs < len(data):
            data = data.take(np.sort(np.random.default_rng(0).permutation(len(data))[: args.pairs]))
        for table in args.tables:
            for folder in args.origin:
                run(table, folder, data, args.words, args.device, args.variants)
    changed = pages(check=args.check)
    sys.exit(int(args.check and changed))


if __name__ == "__main__":
    main()
