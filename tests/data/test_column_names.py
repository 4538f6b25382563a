"""Which columns are taken, and what is said when they cannot be."""

import pytest

from samesense.data.formats.columns import TEXT_PAIRS, Columns, resolve_columns
from samesense.errors import ConfigError, DataError


@pytest.mark.parametrize("pair", TEXT_PAIRS)
def test_every_known_pair_is_found_in_any_case(pair):
    names = [pair[1].upper(), "id", pair[0].title(), "Label", "Genre"]
    assert resolve_columns(names, None, "x") == Columns(pair[0].title(), pair[1].upper(), "Label", "Genre")


def test_preferences_decide_between_several_columns():
    sick = ["subset", "score", "sentence1", "sentence2", "label"]
    assert resolve_columns(sick, None, "x") == Columns("sentence1", "sentence2", "score", "subset")
    inference = ["premise", "hypothesis", "score", "gold_label"]
    assert resolve_columns(inference, None, "x").label == "gold_label"
    assert resolve_columns(["text1", "text2", "sentence1", "sentence2", "score"], None, "x").text1 == "sentence1"


def test_triples_have_a_negative_in_place_of_a_label():
    assert resolve_columns(["sent0", "sent1", "hard_neg"], None, "x") == Columns("sent0", "sent1", negative="hard_neg")
    override = resolve_columns(["anchor", "positive", "negative", "label"], "anchor,positive,negative", "x")
    assert override == Columns("anchor", "positive", negative="negative")


def test_an_override_names_any_three_columns():
    names = ["q1", "q2", "same", "subset"]
    assert resolve_columns(names, "q1, Q2,same", "x") == Columns("q1", "q2", "same", "subset")


def test_an_override_of_columns_that_are_absent_is_refused():
    with pytest.raises(DataError) as caught:
        resolve_columns(["q1", "q2", "same"], "q1,q3,label", "x.tsv")
    assert str(caught.value) == (
        "x.tsv: `columns` names 'q3', 'label', which this source does not have. Its columns: q1, q2, same. "
        "Use three of these."
    )


@pytest.mark.parametrize("override", ["a,b", "a,b,", "a,a,b", "a,b,c,d"])
def test_an_override_must_be_three_different_names(override):
    with pytest.raises(ConfigError) as caught:
        resolve_columns(["a", "b", "c"], override, "x.tsv")
    assert str(caught.value) == (
        f"`columns` takes three different names, first,second,label; received {override!r}. "
        "Example: `columns` question1,question2,is_duplicate"
    )


def test_positives_without_label_or_negative_are_refused_with_the_reason():
    with pytest.raises(DataError) as caught:
        resolve_columns(["anchor", "positive"], None, "x.tsv")
    assert str(caught.value) == (
        "x.tsv: these rows have no label. Columns found: anchor, positive. Pairs with only positives are "
        "trained on by `method` supmpn `tuples` ragged; CoSENT needs labels or negatives. Add a column 'negative' or "
        "'label', or name an existing one with `columns` first,second,label."
    )


def test_a_label_beside_a_negative_is_refused():
    with pytest.raises(DataError) as caught:
        resolve_columns(["query", "positive", "negative", "score"], None, "x.tsv")
    assert str(caught.value) == (
        "x.tsv: a row needs either a label or a negative, and this has both columns, 'score' and 'negative'. "
        "Choose one as the third name of `columns` query,positive,score."
    )


def test_a_missing_label_column_is_named():
    with pytest.raises(DataError) as caught:
        resolve_columns(["sentence1", "sentence2", "is_same"], None, "x.tsv")
    assert str(caught.value).startswith(
        "x.tsv: a label column could not be found. Columns found: sentence1, sentence2, is_same. Accepted text columns"
    )
