"""Cost of learning from teachers: SimCSE, RankCSE with its teacher cache, and RankCSE without one.

All three train the same student for the same steps on the same sentences, with the same head and batches, in turns.
The cache is filled once before (its seconds are printed) and then read from disk, as in every further epoch and run.
Without the cache, the sentences of each batch go through each teacher once, not once per view. Only ``train()`` is
timed.

    python benchmarks/teacher_cache.py --model default --teacher BGE --teacher E5 --data sentences.txt --steps 40
"""

from __future__ import annotations

import argparse
import copy
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from alternate import alternate, report, trainer_clock

WAYS = ("SimCSE", "RankCSE, cache", "RankCSE, asking in every step")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default", help="the student")
    parser.add_argument("--teacher", action="append", default=None, help="may be repeated [default]")
    parser.add_argument("--data", action="append", default=None, help="sentences [those of the shipped sample]")
    parser.add_argument("--rank", choices=("listnet", "listmle", "cosent"), default="listmle")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    teachers = args.teacher or ["default"]
    from samesense.data import sample_path
    from samesense.data.sentences import read_unlabelled

    sentences = read_unlabelled(args.data or [sample_path("train")])
    with tempfile.TemporaryDirectory() as folder:
        seconds = alternate(ways(args, teachers, sentences, Path(folder)), args.rounds)
    facts = {"model": args.model, "teachers": teachers, "data": sentences.name, "steps": args.steps, "rank": args.rank}
    facts |= {"batch": args.batch_size, "precision": args.precision}
    report("teacher_cache", seconds, args.batch_size * args.steps, "sentences", WAYS[0], **facts)
    for way in WAYS[1:]:
        ratios = sorted(
            milliseconds / plain for milliseconds, plain in zip(seconds[way], seconds[WAYS[0]], strict=True)
        )
        print(
            f"{way}: {statistics.median(ratios):.3f} times the seconds of SimCSE ({ratios[0]:.3f} to {ratios[-1]:.3f})"
        )


def ways(args: argparse.Namespace, teachers: list[str], sentences, folder: Path) -> dict[str, Callable[[], float]]:
    import torch

    from samesense.encoder.assembly.build import build
    from samesense.losses.rank_cse import RankCSE
    from samesense.recipes.teachers import open_teacher
    from samesense.recipes.unsupervised import rankcse, simcse
    from samesense.recipes.unsupervised.settings import RankcseSettings, SimcseSettings
    from samesense.training.dataset import as_dataset
    from samesense.training.fit import fit
    from samesense.training.teachers import teacher_store

    common = {"batch_size": args.batch_size, "max_steps": args.steps, "eval_steps": args.steps}
    common |= {"precision": args.precision, "pooling": None, "learning_rate": 3e-5, "warmup_ratio": 0.0}
    plain = SimcseSettings(**common)
    ranked = RankcseSettings(**common, teacher=teachers, rank=args.rank)
    start = build(args.model, max_seq_length=plain.max_seq_length)
    teachers_opened = [open_teacher(name, precision=args.precision) for name in teachers]
    began = time.perf_counter()
    stores = [teacher_store(teacher, sentences, folder) for teacher in teachers_opened]
    print(f"{len(teachers)} teachers encoded {len(sentences)} sentences once in {time.perf_counter() - began:.1f} s")

    class Asked:
        """Stands in for a teacher store, but encodes the rows again at every request."""

        def __init__(self, teacher) -> None:
            self.encode = teacher.encode(sentences.texts, folder)

        def rows(self, numbers: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(self.encode([sentences.texts[number] for number in numbers.tolist()]))

    bare = as_dataset({"sentence": sentences.texts})
    numbered = as_dataset(rankcse.columns(sentences, ranked))

    def ranking(teachers):
        return lambda model: RankCSE(model, **rankcse.terms(model, ranked, teachers))

    def trained(settings, dataset, loss_of) -> float:
        model = copy.deepcopy(start)
        with tempfile.TemporaryDirectory() as run:
            clock = trainer_clock()
            fit(model, dataset, loss_of(model), settings, Path(run), callbacks=[clock])
            return time.perf_counter() - clock.started

    wrapped = [Asked(teacher) for teacher in teachers_opened]
    return {
        WAYS[0]: lambda: trained(plain, bare, lambda model: simcse.loss_of(model, plain, {})),
        WAYS[1]: lambda: trained(ranked, numbered, ranking(stores)),
        WAYS[2]: lambda: trained(ranked, numbered, ranking(wrapped)),
    }


if __name__ == "__main__":
    main()
