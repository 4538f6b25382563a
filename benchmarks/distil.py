"""Sentences a second of students against their teacher, in turns, and what they keep of its Spearman.

python benchmarks/distil.py --student runs/small --student runs/tiny --teacher default --data stsb.test.tsv.gz
"""

from __future__ import annotations

import argparse
from functools import partial

from alternate import alternate, report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--student", action="append", required=True, help="model or run folder; may be repeated")
    parser.add_argument("--teacher", default="default")
    parser.add_argument("--data", default=None, help="file of labelled pairs [the shipped sample]")
    parser.add_argument("--precision", choices=("float32", "bfloat16", "auto"), default="auto")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    from samesense.data import read_pairs, sample_path
    from samesense.encoder.assembly.build import build
    from samesense.encoder.encode import encode
    from samesense.evaluation.sts import evaluate_pairs
    from samesense.inference.models.load import load

    data = read_pairs(args.data or sample_path("train"))
    texts = list(dict.fromkeys([*data.sentences1, *data.sentences2]))
    models = {name: build(name) for name in (args.teacher, *args.student)}
    quality = {
        name: next(
            result.value
            for result in evaluate_pairs(load(model, precision="float32"), data, intervals=False)
            if result.metric == "spearman"
        )
        for name, model in models.items()
    }

    def timed(name: str) -> None:
        encode(models[name], texts, precision=args.precision)

    seconds = alternate({name: partial(timed, name) for name in models}, args.rounds)
    facts = {"data": data.name, "texts": len(texts), "precision": args.precision, "spearman": quality}
    report("distil", seconds, len(texts), "sentences", args.teacher, **facts)
    for name, value in quality.items():
        print(f"{name}: Spearman x100 {100 * value:.2f}, {100 * value / quality[args.teacher]:.1f} % of the teacher's")


if __name__ == "__main__":
    main()
