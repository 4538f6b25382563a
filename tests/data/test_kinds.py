"""The doctor on data of every kind: the detected kind, the counts, and contradictory rows."""

import json

import pytest

import samesense
from samesense.data import read_pairs
from samesense.data.kinds import detect_kind
from samesense.errors import BadRowsError, DataError
from tests.command import run_command


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


LISTS = [
    {"anchor": "a", "positives": ["b", "c"], "negatives": ["d", "B!"]},
    {"anchor": "e", "positives": [], "negatives": ["f", "g"]},
    {"anchor": "e", "positives": ["g"], "negatives": []},
]
FILES = {
    "scored.tsv": ("sentence1\tsentence2\tscore\na\tb\t1\nc\td\t5\nb\ta\t3\n", "pairs"),
    "binary.csv": ("question1,question2,is_duplicate\nA b?,A c?,yes\nA b?,A c?,no\nx,y,no\n", "pairs"),
    "nli.jsonl": (
        lines({"premise": "p", "hypothesis": "h", "label": label} for label in ("entailment", "neutral")),
        "pairs",
    ),
    "triplets.csv": ("anchor,positive,negative\nx,y,q\nz,w,q\n", "pairs"),
    "positives.csv": ("anchor,positive\nx,y\nz,w\n", "tuples"),
    "lists.jsonl": (lines(LISTS), "tuples"),
    "cells.tsv": ('query\tpos\tneg\na\t["b", "c"]\td\n', "tuples"),
    "classes.tsv": ("text\tlabel\ngood\tpos\nbad\tneg\ngood\tneg\n", "classes"),
    "texts.txt": ("one text\nanother\n\none text\n", "texts"),
    "texts.csv": ("id,body\n1,some text\n2,more text\n", "texts"),
    "sections.jsonl": (lines([{"sections": [{"sentences": ["a", "b"]}, {"sentences": ["c"]}]}]), "documents"),
    "articles.jsonl": (lines([{"article": "One. Two."}, {"article": ""}]), "documents"),
    "folder/a.txt": ("First here. Second.\n\nThird.\n", "documents"),
}


def put(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(FILES[name][0])
    return path.parent if path.parent != tmp_path else path


@pytest.mark.parametrize("name", FILES)
def test_every_kind_is_told_and_reported(tmp_path, name):
    source = put(tmp_path, name)
    assert detect_kind(str(source)).kind == FILES[name][1]
    report = samesense.doctor(source)
    assert report.lines()[0].startswith(f"{source.name if source.is_file() else source}: ")
    assert json.loads(json.dumps(report.to_dict())) == report.to_dict()


@pytest.mark.parametrize(
    ("name", "rows", "labels"),
    [
        ("scored.tsv", [2, 4], ["1", "3"]),
        ("binary.csv", [2, 3], ["1", "0"]),
        ("nli.jsonl", [1, 2], ["entailment", "neutral"]),
        ("classes.tsv", [2, 4], ["pos", "neg"]),
        ("lists.jsonl", [2, 3], ["negative", "positive"]),
    ],
)
def test_rows_that_contradict_each_other_are_named(tmp_path, name, rows, labels):
    report = samesense.doctor(put(tmp_path, name))
    assert [(conflict.rows, conflict.labels) for conflict in report.conflicts] == [(rows, labels)]
    expected_line = (
        f"    rows {rows[0]}, {rows[1]} say {labels[0]}, {labels[1]} of: {' | '.join(report.conflicts[0].texts)}"
    )
    assert report.lines()[-1] == expected_line
    assert any("decide which" in warning for warning in report.warnings)


def test_contradictions_beyond_the_first_few_are_shown_on_request(tmp_path):
    path = tmp_path / "many.tsv"
    path.write_text("text1\ttext2\tscore\n" + "".join(f"a {i}\tb\t{label}\n" for i in range(8) for label in (1, 5)))
    report = samesense.doctor(path)
    assert report.lines()[-1] == "    and 3 more"
    assert report.lines(all_rows=True)[-1] == "    rows 16, 17 say 1, 5 of: a 7 | b"


def test_counts_by_hand(tmp_path):
    reports = {name: samesense.doctor(put(tmp_path, name)) for name, (_, kind) in FILES.items() if kind != "pairs"}
    assert reports["positives.csv"].counts == {"anchors": 2, "positives": 2}
    assert reports["lists.jsonl"].counts == {"anchors": 2, "positives": 2, "negatives": 3}
    assert reports["lists.jsonl"].warnings[1:] == ["1 of 2 anchors have no positive"]
    assert reports["cells.tsv"].counts == {"anchors": 1, "positives": 2, "negatives": 1}
    assert reports["classes.tsv"].counts == {
        "labelled sentences": 3,
        "classes": 2,
        "of class neg": 2,
        "of class pos": 1,
    }
    assert (reports["texts.txt"].counts, reports["texts.txt"].left_out["empty"]) == ({"texts": 2}, 1)
    assert reports["texts.txt"].warnings == ["1 of 3 texts repeat an earlier one"]
    assert reports["sections.jsonl"].counts == {"documents": 1, "sections": 2, "sentences": 3}
    assert reports["articles.jsonl"].warnings == ["1 of 2 documents are empty"]
    assert reports["folder/a.txt"].counts == {"documents": 1, "sections": 2, "sentences": 3}
    assert reports["folder/a.txt"].lines()[2] == "  sentences: 3 distinct; words: median 1, 99 % have at most 2"


@pytest.mark.parametrize(
    ("name", "other_files", "warning"),
    [
        ("scored.tsv", {"triplets.csv": 0, "scored.tsv": 2}, "2 pairs are also in"),
        ("lists.jsonl", {"lists.jsonl": 4, "positives.csv": 0}, "4 pairs also in"),
        ("texts.csv", {"texts.csv": 2, "scored.tsv": 0}, "2 texts also in"),
        ("classes.tsv", {"classes.tsv": 2, "texts.txt": 0}, "2 texts also in"),
        ("sections.jsonl", {"scored.tsv": 3, "lists.jsonl": 3}, "3 sentences also in"),
    ],
)
def test_pairs_are_looked_for_among_pairs_and_texts_among_texts(tmp_path, name, other_files, warning):
    against = [put(tmp_path, file_name) for file_name in other_files]
    report = samesense.doctor(put(tmp_path, name), against=against)
    assert report.overlaps == {str(path): count for path, count in zip(against, other_files.values(), strict=True)}
    assert warning in report.warnings[0]


def test_single_sentences_are_looked_for_beside_pairs(tmp_path):
    lists = put(tmp_path, "lists.jsonl")
    pairs_file = tmp_path / "other.tsv"
    pairs_file.write_text("sentence1\tsentence2\tscore\nA!\tnew\t1\nF\tg\t2\nb\ta\t3\n")
    report = samesense.doctor(lists, against=pairs_file)
    assert (report.overlaps, report.shared_sentences) == (
        {str(pairs_file): 1},
        {str(pairs_file): 3},
    )  # sentences a, b and f are shared
    assert f"  also in {pairs_file}: 1 pairs, 3 of 7 sentences" in report.lines()
    pairs = samesense.doctor(pairs_file, against=lists)
    assert (pairs.overlaps, pairs.shared_sentences) == ({str(lists): 1}, {str(lists): 3})
    assert f"  also in {lists}: 1 pairs, 3 of 6 sentences" in pairs.lines()
    assert sum("also in" in warning for warning in pairs.warnings) == 1  # of pairs; sentences are a note


def test_several_sources_and_read_ones(tmp_path):
    names = ["scored.tsv", "classes.tsv", "texts.txt"]
    reports = samesense.doctor([put(tmp_path, name) for name in names])
    assert [report.name for report in reports] == names
    read = samesense.read(tmp_path / "scored.tsv")
    assert samesense.doctor(read, against=read).overlaps == {"scored.tsv": 2}
    assert samesense.doctor(["a text", "another"]).counts == {"texts": 2}
    assert samesense.doctor((f"a {i}", "b", i) for i in range(6)).rows == 6
    assert samesense.doctor([("a", "b", 1), ("b", "a", 0)]).conflicts[0].rows == [1, 2]


def test_columns_say_what_a_table_is(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("id,left,right,same\n1,a b,c d,0\n2,e,f,1\n")
    assert samesense.doctor(path, columns="left,right,same").rows == 2
    assert samesense.doctor(path, columns="left,same").counts["of class 0"] == 1
    assert samesense.doctor(path, columns="right").counts == {"texts": 2}
    with pytest.raises(DataError, match=r"Its columns: id, left, right, same\. .*`columns` left,right,same"):
        samesense.doctor(path)


@pytest.mark.parametrize(
    "cells",
    [
        [f"0.{1357 + 97 * i}" for i in range(49)] + ["n/a"],
        [f"0,{1357 + 97 * i}" for i in range(50)],
    ],
)
def test_a_label_that_is_no_number_or_has_a_comma_makes_no_texts_of_a_column(tmp_path, cells):
    path = tmp_path / "t.csv"
    path.write_text("left;right;gold\n" + "".join(f"a {i};b {i};{cell}\n" for i, cell in enumerate(cells)))
    report = samesense.doctor(path, columns="left,right,gold", drop_bad_rows=True)
    assert (report.rows, "labelled pairs" in report.read_as) == (len(cells) - ("n/a" in cells), True)


def test_others_are_read_by_their_own_columns(tmp_path):
    qa = tmp_path / "qa.csv"
    other_file = tmp_path / "other.csv"
    qa.write_text("question,answer\n" + "".join(f"what is {i},it is {i}\n" for i in range(9)))
    other_file.write_text("question,answer,note\nwhat is 3,it is 3,far\nwhat is 30,it is 3,near\n")
    for columns in (None, "question,answer"):
        assert samesense.doctor(qa, against=qa, columns=columns).overlaps == {str(qa): 9}
    assert samesense.doctor(qa, against=other_file, columns="question,answer").overlaps == {str(other_file): 1}
    texts = tmp_path / "a.csv"
    titled = tmp_path / "b.csv"
    texts.write_text("body\nit is red\nit is blue\n")
    titled.write_text("title,body\none thing,it is red\nanother thing,it is green\n")
    assert samesense.doctor(texts, columns="body", against=titled).overlaps == {str(titled): 1}
    classes = tmp_path / "c.csv"
    classes.write_text("body,topic\n" + "".join(f"it is {i},{'ab'[i % 2]}\n" for i in range(9)))
    assert samesense.doctor(classes, columns="body,topic", against=classes).overlaps == {str(classes): 9}


def test_what_is_in_memory_is_told_apart_by_numbers(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame
    train = frame({"sentence1": ["a b", "c d"], "sentence2": ["e f", "g h"], "score": [0.1, 0.9], "name": ["x", "y"]})
    dev = train[:1]
    test = frame({"sentence1": ["new"], "sentence2": ["newer"], "score": [0.5]})
    overlaps = samesense.doctor(train, against=[dev, test]).overlaps
    assert overlaps == {"DataFrame in memory": 1, "DataFrame in memory 2": 0}


def test_the_command_on_several_files_with_bad_rows(tmp_path, capsys):
    bad = tmp_path / "bad.tsv"
    bad.write_text("text1\ttext2\tscore\n" + "".join(f"a {i}\t\t{i}\n" for i in range(7)) + "a\tb\t0\nc\td\t5\n")
    good = put(tmp_path, "texts.csv")
    code, out, err = run_command(capsys, "doctor", bad, good)
    assert (code, out.splitlines()[0]) == (2, "texts.csv: 2 texts")
    assert err.splitlines()[0] == f"error: {bad}: 7 of 9 rows cannot be used."
    assert "  and 2 more." in err
    assert "row 8, column 'text2'" in run_command(capsys, "doctor", bad, "--all-rows")[2]
    code, out, _ = run_command(capsys, "doctor", bad, good, "--json")
    first, second = map(json.loads, out.splitlines())
    assert (code, first["name"], second["counts"]) == (2, str(bad), {"texts": 2})
    assert [row["row"] for row in first["bad_rows"]] == list(range(2, 9))
    assert "leave them out with --drop-bad-rows" in first["error"]
    with pytest.raises(BadRowsError) as caught:
        samesense.doctor(bad)
    assert len(caught.value.rows) == 7


@pytest.mark.parametrize("names", ["title,text,label", "Headline,Article,Class", "subject,body,labels"])
def test_a_title_with_its_text_is_taken_for_a_sentence_with_a_class_and_that_is_a_guess(tmp_path, names):
    path = tmp_path / "news.csv"
    path.write_text(f"{names}\nRain soon,It will rain.,weather\nTwo to one,The match is over.,sport\n")
    title, text, label = names.split(",")
    report = samesense.doctor(path)
    assert (report.kind, report.sure, report.counts["of class sport"]) == ("classes", False, 1)
    assert report.read_as == (
        f"read as sentences with classes, by a column of texts, {text}, and {label}, without {title}; for pairs of the "
        f"two, `columns` {names} (a guess: if it is wrong, give other `columns` than {text},{label}); method supmpn "
        "has sentences of one class as positives of each other"
    )
    with pytest.raises(DataError, match=f"two text columns could not be found.*`columns` {names}"):
        read_pairs(path)


def test_lists_of_two_texts_beside_a_score_are_no_documents(tmp_path):
    path = tmp_path / "pairs.jsonl"
    rows = [{"sentences": [f"a {row}", f"b {row}"], "score": row} for row in range(4)]
    path.write_text(lines(rows))
    with pytest.raises(DataError, match=r"two texts in each row, beside 'score'.*two columns, sentence1 and sentence2"):
        detect_kind(path)
    path.write_text(lines([*rows, {"sentences": ["c"], "score": 1}]))
    assert detect_kind(path).kind == "documents"


def test_a_text_that_is_longer_than_the_other_is_not_its_class():
    answers = [f"Yes, at {hour}." for hour in range(6)]
    questions = ["Is the museum open today?"] * 3 + ["Does the train leave this morning?"] * 3
    topics = ["sport"] * 3 + ["food"] * 3
    columns = [(questions, answers, "tuples"), (answers, questions, "tuples")]
    columns += [(topics, answers, "classes"), (answers, topics, "classes")]
    for left, right, kind in columns:
        assert detect_kind({"left": left, "right": right}).kind == kind


def test_long_paths_of_a_catalogue_are_classes_of_its_short_names():
    paths = ["Home and garden > Kitchen > Cookware"] * 10 + ["Clothing > Outdoor > Rain jackets"] * 10
    names = [f"item {number}" for number in range(20)]
    assert detect_kind({"left": names, "right": paths}).kind == "classes"


def test_a_title_with_its_text_and_a_similarity_is_a_pair(tmp_path):
    for name, label in (("score", "1"), ("label", "0.7")):
        path = tmp_path / f"{name}.csv"
        path.write_text(f"title,text,{name}\na b,c d,{label}\ne f,g h,0\n")
        assert detect_kind(path).kind == "pairs"


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
@pytest.mark.parametrize(
    ("second", "kind"), [(["delivery", "billing"] * 10, "classes"), ([f"answer {n}" for n in range(20)], "tuples")]
)
def test_lists_of_two_texts_are_told_from_texts_with_a_class_as_in_memory(tmp_path, name, second, kind):
    rows = [[f"question {number} of a customer", text] for number, text in enumerate(second)]
    lines = [json.dumps(row) for row in rows]
    text = "\n".join(lines) if name.endswith("l") else f"[{','.join(lines)}]"
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert [detect_kind(source).kind for source in (str(tmp_path / name), rows)] == [kind, kind]
