"""Cost of a harvested pair by the number of sentences paired with each other, extrapolated to 100M pairs.

python benchmarks/harvest.py --origin origins/mine --pairs 120 --units 2 8 32

Each row is one shard, made by one worker in this process; planning (drawing and screening) is measured apart.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
from alternate import RESULTS

DAY = 86400
AIM = 100_000_000


def measure(scorer, kind: str, pairs: int, unit: int) -> dict[str, object]:
    """Return the cost of the pairs of one shard of one kind."""
    from samesense.context.harvest.plan import Mixture, Plan

    shares = {"random": 0.0, "neighbours": 0.0, "section": 0.0, kind: 1.0}
    mixture = Mixture(pairs=pairs, **shares, shard_size=pairs, unit=unit)
    plan = Plan(scorer.corpus, scorer.tfidf, mixture)
    planning = time.process_time()
    planned = plan.shard(0)
    texts = planned.texts(scorer.corpus)
    planning = time.process_time() - planning
    computing = time.process_time()
    started = time.perf_counter()
    scored = scorer.score(texts)
    cpu = time.process_time() - computing
    wall = time.perf_counter() - started
    return {
        "kind": kind,
        "unit": unit,
        "pairs": len(texts),
        "sentences": len({text for pair in texts for text in pair}),
        "plan_ms_a_pair": 1000 * planning / len(texts),
        "terms_a_pair": scored.cells / len(texts),
        "cpu_ms_a_term": 1000 * cpu / scored.cells if scored.cells else None,
        "cpu_s_a_pair": cpu / len(texts),
        "wall_s_a_pair": wall / len(texts),
        "score_deciles": [round(float(value), 3) for value in np.quantile(scored.scores, np.arange(0, 1.01, 0.1))],
        "worker_days_for_100M": AIM * (planning + cpu) / len(texts) / DAY,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--origin", required=True, type=Path)
    parser.add_argument("--pairs", type=int, default=120)
    parser.add_argument("--units", type=int, nargs="+", default=[2, 8, 32])
    parser.add_argument("--kinds", nargs="+", default=["random", "neighbours", "section"])
    args = parser.parse_args()
    from samesense.context.harvest.scores import open_scorer

    scorer = open_scorer(args.origin, "cpu")
    scorer.score([(scorer.corpus.sentence(0), scorer.corpus.sentence(1))])  # warm-up: libraries initialise
    rows = []
    for unit in args.units:
        for kind in args.kinds:
            rows.append(measure(scorer, kind, args.pairs, unit))
            print(json.dumps(rows[-1]), flush=True)
    print("\n| kind | sentences of a unit | plan, ms a pair | terms a pair | CPU s a pair | 100M pairs, worker-days |")
    print("|---|---:|---:|---:|---:|---:|")
    for row in rows:
        print(
            f"| {row['kind']} | {row['unit']} | {row['plan_ms_a_pair']:.1f} | {row['terms_a_pair']:.0f} | "
            f"{row['cpu_s_a_pair']:.3f} | {row['worker_days_for_100M']:,.0f} |"
        )
    machine = {"cores": os.cpu_count(), "machine": platform.machine()}
    facts = {"benchmark": "harvest", "machine": machine, "protocol": f"{len(scorer.corpus)} sentences"}
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "speed.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(facts | {"rows": rows}) + "\n")


if __name__ == "__main__":
    main()
