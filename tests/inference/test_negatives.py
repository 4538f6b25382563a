"""Hard negatives: against plain loops, never a positive, and written so that training reads them as they are."""

import numpy as np
import pytest

import samesense
from samesense.data.tuples.data import Statement, group_statements, tuple_data
from samesense.errors import ConfigError, DataError, ModelError
from samesense.inference import negatives
from samesense.recipes.planning.plan import plan
from tests.command import run_command
from tests.inference.made_vectors import cosines, encode, vector
from tests.messages import listen
from tests.models import made_model
from tests.references.negatives import mined

ROWS = [(f"anchor {i}", [f"near {i}", f"close {i}"][: 1 + i % 2], [f"far {i}"] * (i % 3 == 0)) for i in range(17)]
CORPUS = [f"text {i}" for i in range(60)]


def data_of(rows):
    statements = [
        Statement(anchor, anchor, text, side)
        for anchor, *sides in rows
        for side, texts in zip(("positive", "negative"), sides, strict=True)
        for text in texts
    ]
    return tuple_data(group_statements(statements), source="made", name="made")


def cosine(first, second):
    return cosines(vector(first), [vector(second)])[0]


def by_letters(first, second):
    return sum(map(ord, first + second)) * 7919 % 1000 / 100 - 5


@pytest.fixture
def model():
    return made_model(encode=encode)


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        ({"relative_margin": None}, {}),
        ({"relative_margin": None, "range_min": 4, "range_max": 11}, {"first": 4, "last": 11}),
        ({"relative_margin": 0.2}, {"relative": 0.2}),
        ({"relative_margin": 0.2, "absolute_margin": 0.1}, {"relative": 0.2, "absolute": 0.1}),
        ({"relative_margin": None, "max_score": 0.3, "min_score": -0.4}, {"highest": 0.3, "lowest": -0.4}),
    ],
)
@pytest.mark.parametrize("score", [None, by_letters])
@pytest.mark.parametrize("corpus", [[], CORPUS])
def test_as_by_plain_loops(model, monkeypatch, settings, changes, score, corpus):
    monkeypatch.setattr(negatives, "BLOCK_ANCHORS", 5)
    options = {"count": 3, "first": 0, "last": 100, **changes}
    expected = mined(ROWS, corpus, score or cosine, rank=cosine, **options)
    assert any(expected)
    result = samesense.mine_negatives(
        data_of(ROWS),
        model=model,
        corpus=corpus or None,
        num_negatives=3,
        score=score and (lambda pairs: np.array([score(*pair) for pair in pairs])),
        **settings,
    )
    assert result.negatives == [[*row_negatives, *new] for (*_, row_negatives), new in zip(ROWS, expected, strict=True)]


def test_none_is_a_positive_a_copy_of_one_or_the_anchor_itself(model):
    rows = [("a", ["b", "c"], []), ("B", ["d"], []), ("e", ["C "], []), ("f", ["a"], [])]
    result = samesense.mine_negatives(data_of(rows), model=model, relative_margin=None, corpus=["A", "b", "new"])
    assert [set(negatives) for negatives in result.negatives] == [
        {"d", "new"},
        {"c", "new"},
        {"b", "d", "a", "new"},
        {"b", "c", "d", "new"},
    ]


def test_rows_of_an_iterator_count_all(model):
    rows = [(f"anchor {i}", f"near {i}") for i in range(1200)]
    result = samesense.mine_negatives(iter(rows), model=model, num_negatives=1, range_max=5)
    assert result.anchors == [anchor for anchor, _ in rows]


def test_random_ones_are_the_same_each_time_and_within_the_limits(model):
    options = {"model": model, "relative_margin": None, "sampling": "random", "num_negatives": 4, "range_max": 20}
    negatives, again = (samesense.mine_negatives(data_of(ROWS), seed=1, **options).negatives for _ in range(2))
    other_seed = samesense.mine_negatives(data_of(ROWS), seed=2, **options).negatives
    top = samesense.mine_negatives(data_of(ROWS), **{**options, "sampling": "top", "num_negatives": 20}).negatives
    assert negatives == again != other_seed
    assert all(set(few) <= set(many) for few, many in zip(negatives, top, strict=True))


@pytest.mark.parametrize(("suffix", "form"), [("jsonl", "lists"), ("tsv", "lists"), ("csv", "triplets")])
def test_what_the_command_writes_is_trained_on_as_it_is(capsys, tmp_path, monkeypatch, suffix, form, model):
    monkeypatch.setattr("samesense.inference.models.load.load", lambda name, **options: model)
    pairs, output = tmp_path / "pairs.tsv", tmp_path / f"out.{suffix}"
    rows = "".join(f"{anchor}\t{positives[0]}\n" for anchor, positives, _ in ROWS)
    pairs.write_text(f"question\tanswer\n{rows}")
    arguments = ("--relative-margin", "none", "--num-negatives", "2", "--format", form, "--output", output)
    code, out, err = run_command(capsys, "mine-negatives", pairs, *arguments)
    assert (code, out) == (0, "")
    assert f"{len(ROWS)} anchors with {len(ROWS)} positives and {2 * len(ROWS)} negatives" in err
    expected = mined([(a, p[:1], []) for a, p, _ in ROWS], [], cosine, count=2, first=0, last=100)
    train = plan(str(output), dev="none", method="auto" if form == "lists" else "supmpn").train
    assert (train.anchors, train.negatives) == ([anchor for anchor, *_ in ROWS], expected)


def test_anchors_without_any_text_are_not_written(capsys, tmp_path, monkeypatch, model):
    monkeypatch.setattr("samesense.inference.models.load.load", lambda name, **options: model)
    nli, output = tmp_path / "nli.tsv", tmp_path / "out.jsonl"
    nli.write_text("premise\thypothesis\tlabel\na\tb\tentailment\nc\td\tentailment\ne\tf\tneutral\n")
    code, _, err = run_command(capsys, "mine-negatives", nli, "--min-score", "2", "--output", output)
    assert (code, "left out: 1 anchors with neither positives nor negatives" in err) == (0, True)
    assert samesense.doctor(output).counts["anchors"] == 2
    output = tmp_path / "out.csv"
    code, _, err = run_command(capsys, "mine-negatives", nli, "--format", "triplets", "--range-min", "1", "-o", output)
    assert (code, "left out: 3 anchors without a positive or without a negative" in err) == (0, True)


def test_labels_say_what_is_a_positive(model):
    binary = [("a", "b", 1), ("a", "x", 0), ("c", "d", 1)]
    result = samesense.mine_negatives(binary, model=model, relative_margin=None)
    assert (result.anchors, result.positives) == (["a", "c"], [["b"], ["d"]])
    assert [set(negatives) for negatives in result.negatives] == [{"x", "d"}, {"b", "x"}]
    nli = [
        {"premise": "a", "hypothesis": text, "label": label} for text, label in (("b", "entailment"), ("c", "neutral"))
    ]
    nli += [
        {"premise": "d", "hypothesis": text, "label": label}
        for text, label in (("e", "entailment"), ("f", "contradiction"))
    ]
    result = samesense.mine_negatives(nli, model=model, relative_margin=None)
    assert [set(negatives) for negatives in result.negatives] == [{"e", "f"}, {"f", "b"}]


def test_no_anchor_is_left_without_negatives_in_silence(model):
    with pytest.raises(DataError, match=r"`range_min` skips the nearest 31 texts, and there are 31 candidates"):
        samesense.mine_negatives(data_of(ROWS), model=model, range_min=31)
    messages = listen()
    mined_data = samesense.mine_negatives(data_of(ROWS), model=model, range_min=30, relative_margin=None)
    assert mined_data.negatives.count([]) == 11
    assert messages == [
        "made: 11 of 17 anchors have no negative, as all candidates are positives of theirs, were skipped, or are "
        "beyond a margin or limit. Lower `range_min` or the margins, change the limits, or give a larger `corpus`."
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([("a", "b", 0.5), ("c", "d", 4.5)], "scores do not say which pairs are positives"),
        (["one text", "another text"], "holds unlabelled sentences"),
    ],
)
def test_what_has_no_positives(model, data, message):
    with pytest.raises(DataError, match=message):
        samesense.mine_negatives(data, model=model)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_negatives": 0}, "num_negatives"),
        ({"range_min": 5, "range_max": 5}, "received 5 and 5"),
        ({"relative_margin": -0.1}, "`relative_margin` is 0 or more; received -0.1"),
        ({"relative_margin": "0.1"}, "`relative_margin` is a number; received '0.1'"),
        ({"max_score": True}, "`max_score` is a number; received True"),
        ({"min_score": 0.5, "max_score": 0.4}, "received 0.5 and 0.4"),
        ({"model": made_model(score=lambda pairs: np.zeros(len(pairs)))}, "Give it as `score`"),
    ],
)
def test_what_cannot_be_asked_for(model, settings, message):
    with pytest.raises(ConfigError, match=message):
        samesense.mine_negatives(data_of(ROWS), **{"model": model, **settings})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output", "out.txt"), "A table ends in .tsv, .csv, .jsonl, .parquet"),
        (("--output", "pairs.tsv"), "would be written over"),
        (("--output", "out.jsonl", "--range-max", "0"), "--range-max"),
        (("--output", "out.jsonl", "--score", "broken"), "Scores must be finite"),
    ],
)
def test_nothing_half_written(capsys, tmp_path, monkeypatch, arguments, message):
    broken = made_model(encode=encode, score=lambda pairs: np.full(len(pairs), np.nan))
    monkeypatch.setattr("samesense.inference.models.load.load", lambda name, **options: broken)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("anchor\tpositive\na\tb\nc\td\n")
    code, out, err = run_command(capsys, "mine-negatives", "pairs.tsv", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]


def test_a_score_that_cannot_be_used(model):
    with pytest.raises(ModelError, match="one score for each"):
        samesense.mine_negatives(data_of(ROWS), model=model, score=lambda pairs: np.zeros(3))


def test_rows_of_the_corpus_without_a_text_are_left_out_where_that_is_asked_for(model, tmp_path):
    corpus = tmp_path / "corpus.csv"
    corpus.write_text("text,note\nfirst text,x\n,y\nthird text,z\n")
    rows = [("a", "b"), ("c", "d")]
    with pytest.raises(DataError, match=r"row 3, column 'text': the text is empty(.|\n)*leave them out with"):
        samesense.mine_negatives(rows, model=model, corpus=corpus, corpus_columns="text")
    result = samesense.mine_negatives(
        rows, model=model, corpus=corpus, corpus_columns="text", relative_margin=None, drop_bad_rows=True
    )
    assert {"first text", "third text"} <= {text for negatives in result.negatives for text in negatives}
