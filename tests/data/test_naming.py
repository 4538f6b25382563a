"""Names of sources that cannot be confused, as short as that allows."""

import pytest

from samesense.data.formats.naming import distinct_names


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        (["a/train.tsv", "b/test.tsv"], ["train.tsv", "test.tsv"]),
        (["a/train.tsv", "b/train.tsv", "b/test.tsv"], ["a/train.tsv", "b/train.tsv", "test.tsv"]),
        (["/x/a/ü/t.tsv", "/y/a/ü/t.tsv"], ["x/a/ü/t.tsv", "y/a/ü/t.tsv"]),
        (["t.tsv", "b/t.tsv"], ["t.tsv", "b/t.tsv"]),
        (["b/t.tsv", "a/b/t.tsv", "c/t.tsv"], ["b/t.tsv", "a/b/t.tsv", "c/t.tsv"]),
        (["a/t.tsv", "a/t.tsv"], ["t.tsv", "t.tsv"]),
    ],
)
def test_the_shortest_end_that_no_namesake_has(sources, names):
    assert distinct_names([source.rpartition("/")[2] for source in sources], sources) == names


def test_joined_sources_and_names_of_the_hub_stay_whole():
    joined = ["x/a.tsv + x/b.tsv", "y/a.tsv + y/b.tsv", "owner/set:train"]
    assert distinct_names(["a.tsv + b.tsv", "a.tsv + b.tsv", "owner/set:train"], joined) == joined
