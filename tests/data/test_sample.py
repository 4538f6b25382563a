"""The sample of a support desk's questions: whole, balanced, and no question in two parts."""

import csv
import re
from collections import Counter
from itertools import pairwise

import pytest

from samesense.data import examine, read_pairs, sample_path
from samesense.errors import DataError

PARTS = {"train": 360, "dev": 120, "test": 280}


def rows(split):
    with sample_path(split).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def questions(split):
    return {" ".join(row[key].casefold().split()) for row in rows(split) for key in ("question1", "question2")}


def overlap(row):
    """Share of common words."""
    first, second = (set(re.findall(r"[\w']+", row[key].lower())) for key in ("question1", "question2"))
    return len(first & second) / len(first | second)


@pytest.mark.parametrize("split", PARTS)
def test_a_part_is_clean(split):
    other_splits = {name: read_pairs(sample_path(name)) for name in PARTS if name != split}
    report = examine(read_pairs(sample_path(split)), against=other_splits)
    assert (report.kind, report.scale, report.warnings) == ("binary", (0, 1), [])
    assert report.duplicate_pairs == report.equal_pairs == 0


def test_parts_share_no_question():
    assert not questions("train") & questions("dev")
    assert not questions("train") & questions("test")
    assert not questions("dev") & questions("test")


@pytest.mark.parametrize(("split", "size"), PARTS.items())
def test_half_of_a_part_is_hard_and_half_of_either_is_the_same(split, size):
    sorts = Counter((row["kind"], row["label"]) for row in rows(split))
    assert sorts == dict.fromkeys([(kind, label) for kind in ("hard", "easy") for label in "01"], size // 4)


@pytest.mark.parametrize("split", PARTS)
def test_words_mislead_in_hard_pairs_and_help_in_easy_ones(split):
    shares = {}
    for row in rows(split):
        shares.setdefault((row["kind"], row["label"]), []).append(overlap(row))
    mean = {sort: sum(values) / len(values) for sort, values in shares.items()}
    assert mean["hard", "1"] < mean["hard", "0"] - 0.1
    assert mean["easy", "1"] > mean["easy", "0"] + 0.3


@pytest.mark.parametrize("split", PARTS)
def test_every_part_has_every_topic_in_mixed_order(split):
    questions_of_split = rows(split)
    assert {row["topic"] for row in questions_of_split} == {row["topic"] for row in rows("train")}
    changes = sum(preceding["label"] != following["label"] for preceding, following in pairwise(questions_of_split))
    assert changes > len(questions_of_split) / 3


def test_the_sample_has_no_other_parts():
    with pytest.raises(DataError) as caught:
        sample_path("valid")
    assert str(caught.value) == "The sample has the parts train, dev, test; received 'valid'. Name one of these."
