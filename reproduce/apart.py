"""Write the test sets STS 2012 to 2015 without the pairs that stand in STS-B, of whose parts they are the source.

python reproduce/apart.py DATA OUTPUT

DATA has ``en/stsb.train.tsv.gz``, ``en/sts12.test.tsv.gz`` and so on; OUTPUT gets ``sts12.tsv`` to ``sts15.tsv``.
"""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path

PARTS = ("train", "dev", "test")
YEARS = ("12", "13", "14", "15")


def pairs_in(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table with the columns ``sentence1``, ``sentence2`` and ``score``."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def sentences(row: dict[str, str]) -> frozenset[str]:
    """Return the two sentences of a pair in any order, without regard to case or space at the ends."""
    return frozenset(row[name].strip().lower() for name in ("sentence1", "sentence2"))


def main(data: Path, output: Path) -> None:
    """Write the four sets, and print how many pairs of each are left."""
    benchmark = {sentences(row) for part in PARTS for row in pairs_in(data / "en" / f"stsb.{part}.tsv.gz")}
    output.mkdir(parents=True, exist_ok=True)
    for year in YEARS:
        rows = pairs_in(data / "en" / f"sts{year}.test.tsv.gz")
        apart = [row for row in rows if sentences(row) not in benchmark]
        with (output / f"sts{year}.tsv").open("w", encoding="utf-8") as file:
            file.write("sentence1\tsentence2\tscore\n")
            file.writelines(f"{row['sentence1']}\t{row['sentence2']}\t{row['score']}\n" for row in apart)
        sys.stdout.write(f"sts{year}: {len(apart)} of {len(rows)} pairs\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
