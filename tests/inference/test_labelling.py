"""Which pairs are labelled, and the file of labels."""

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder

import samesense
from samesense.errors import ConfigError, DataError, ModelError, OutputError
from samesense.inference.labelling import choose
from samesense.inference.labelling.choose import disagreement, in_bands, near_pairs, ordered, pairs_of, random_pairs
from samesense.inference.labelling.file import HEADER, open_labels
from samesense.inference.models import chat
from tests.chat_stub import stub
from tests.command import run_command
from tests.messages import listen
from tests.network import _no_network  # noqa: F401

TEXTS = [f"text number {number}" for number in range(40)]
PAIRS = [(TEXTS[number], TEXTS[number + 1]) for number in range(0, 40, 2)]


def rng():
    return np.random.default_rng(0)


def on_a_circle(texts):
    """Each text beside those whose number is next to its own."""
    angles = [int(text.split()[-1]) * 2 * np.pi / 40 for text in texts]
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def apart(pair):
    gap = abs(int(pair[0].split()[-1]) - int(pair[1].split()[-1]))
    return min(gap, 40 - gap)


def test_quoted_texts_are_read_back_as_they_were_shown(tmp_path):
    texts = ['"a ""b"" c"', '"whole"', '"open', 'an "inner" one', '"Yes," she said, "no."', "plain"]
    pairs = [(first, second) for first in texts for second in texts if first < second]
    path = tmp_path / "labels.tsv"
    with open_labels(path, "rule") as labels:
        labels.add([(pair, float(number % 6)) for number, pair in enumerate(pairs)])
    with open_labels(path, "rule") as labels:
        assert all(pair in labels for pair in pairs)
        assert len(labels) == len(pairs)
    data = samesense.read(str(path))
    assert list(zip(data.sentences1, data.sentences2, strict=True)) == pairs


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("one\n\ntwo\nthree\n", "left out: 1 empty of 4 texts"),
        ("sentence1\tsentence2\tscore\na\tb\t1\n\tc\t2\nd\te\t\n", "left out: 1 of 3 pairs, which lack a text"),
    ],
)
def test_texts_that_are_left_out_are_counted(tmp_path, content, message):
    path = tmp_path / ("a.tsv" if "\t" in content else "a.txt")
    path.write_text(content)
    messages = listen()
    samesense.label(
        path, output=tmp_path / "labels.jsonl", pairs_by="random", scorer=lambda pairs: np.arange(float(len(pairs)))
    )
    assert f"{path}: {message}" in messages


def test_neighbours_are_the_nearest_texts_each_pair_once():
    pairs = near_pairs(TEXTS, on_a_circle, 1000, rng())
    assert {apart(pair) for pair in pairs} == {1, 2, 3}  # five nearest: two at 1, two at 2, one at 3
    assert sum(apart(pair) < 3 for pair in pairs) == 80
    assert len(set(map(frozenset, pairs))) == len(pairs)


def test_random_pairs_are_different_and_all_if_there_are_few(monkeypatch):
    few = random_pairs(TEXTS[:5], 100, rng())
    assert len(set(map(frozenset, few))) == len(few) == 10
    for count in (100, 190, 700):
        many = random_pairs(TEXTS, count, rng())
        assert len(set(map(frozenset, many))) == len(many) == count
        assert all(first != second for first, second in many)


def test_candidates_are_near_and_far_and_bounded(monkeypatch):
    monkeypatch.setattr(choose, "CANDIDATES", 100)
    pairs = pairs_of([*TEXTS, *TEXTS], "bands", on_a_circle, 1, rng())
    assert 90 <= len(pairs) <= 100
    assert {1, 20} <= {apart(pair) for pair in pairs}
    monkeypatch.setattr(choose, "TEXTS", 10)
    assert len({text for pair in pairs_of(TEXTS, "bands", on_a_circle, 1, rng()) for text in pair}) == 10
    with pytest.raises(ConfigError, match="two different texts or more; received 1"):
        pairs_of(["same", "same"], "bands", on_a_circle, 1, rng())


def test_as_many_candidates_as_are_wanted(monkeypatch):
    monkeypatch.setattr(choose, "CANDIDATES", 10)
    assert len(near_pairs(TEXTS, on_a_circle, 10, rng())) == 10
    assert len(pairs_of(TEXTS, "neighbours", on_a_circle, 90, rng())) == 90
    assert len(pairs_of(TEXTS, "random", None, 100, rng())) == 100
    assert len(choose.some_of(PAIRS, 15, rng())) == 15


def test_bands_are_equally_full_in_every_first_part():
    scores = np.concatenate([rng().uniform(0, 0.1, 900), rng().uniform(0.1, 1, 100)])
    order = in_bands(scores, rng().permutation(1000), rng())
    assert sorted(order) == list(range(1000))
    edges = np.linspace(scores.min(), scores.max(), 11)[1:-1]
    for count in (10, 40):
        assert set(Counter(np.searchsorted(edges, scores[order[:count]], side="right")).values()) == {count // 10}
    assert len(in_bands(np.ones(7), np.arange(7), rng())) == 7


def test_disagreement_is_within_bands_and_scales_do_not_count():
    scores = np.array([0.0, 0.01, 0.02, 1.0, 0.99, 0.98])
    assert disagreement(scores, scores * 100 - 3) == pytest.approx(np.zeros(6), abs=1e-9)
    assert disagreement(scores, np.ones(6)) == pytest.approx(np.abs(scores - scores.mean()) / scores.std())
    other_scores = np.array([0.0, 0.6, 0.0, 1.0, 1.0, 0.3])
    pairs = ordered(PAIRS[:6], "disagreement", lambda _: scores, lambda _: other_scores, rng())
    assert set(pairs[:2]) == {PAIRS[1], PAIRS[5]}, "of each of the two bands the one on which they differ most"


@pytest.mark.parametrize("name", ["labels.tsv", "labels.jsonl"])
def test_labels_are_kept_known_again_and_taken_back(tmp_path, name):
    path = tmp_path / name
    with open_labels(path, "me") as labels:
        labels.add([(PAIRS[0], 3.0), (PAIRS[1], 0.123456789)])
        labels.add([(PAIRS[2], 1)])
        labels.undo()
        labels.add([(PAIRS[3], 5)])
    with open_labels(path, "me") as labels:
        assert [pair in labels for pair in PAIRS[:5]] == [True, True, False, True, False]
        assert tuple(reversed(PAIRS[0])) in labels
        labels.add([(PAIRS[4], 2)])
    read = samesense.read(path, label_range=(0, 5))
    assert read.labels == [3, 0.123457, 5, 2]
    assert read.sentences1 == [PAIRS[index][0] for index in (0, 1, 3, 4)]


@pytest.mark.parametrize("name", ["labels.tsv", "labels.jsonl"])
@pytest.mark.parametrize("removed", [1, 2, 10, 30])
def test_a_line_that_a_kill_cut_off_is_dropped_and_asked_again(tmp_path, name, removed):
    path = tmp_path / name
    with open_labels(path, "me") as labels:
        labels.add([(PAIRS[0], 3), (PAIRS[1], 4)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-removed])
    with open_labels(path, "me") as labels:
        assert PAIRS[0] in labels
        assert (PAIRS[1] in labels) == (removed == 1), "nothing but the end of the line is missing"
        if removed > 1:
            labels.add([(PAIRS[1], 4)])
    assert path.read_bytes().rstrip(b"\n") == whole.rstrip(b"\n")


@pytest.mark.parametrize("name", ["labels.tsv", "labels.jsonl"])
def test_a_last_line_that_lost_its_end_is_kept_and_the_next_label_has_its_own(tmp_path, name, caplog):
    path = tmp_path / name
    with open_labels(path, "me") as labels:
        labels.add([(PAIRS[0], 3)])
        path.write_bytes(path.read_bytes().rstrip(b"\n"))
        labels.add([(PAIRS[1], 4)])
        labels.undo()
        path.write_bytes(path.read_bytes().rstrip(b"\n"))
    with open_labels(path, "me") as labels:
        labels.add([(PAIRS[2], 5)])
    assert samesense.read(path, label_range=(0, 5)).labels == [3, 5]
    assert "cut off" not in caplog.text


def test_what_is_dropped_is_said(tmp_path, caplog):
    path = tmp_path / "labels.tsv"
    path.write_text(f"{HEADER}a\tb\t1\tme\nc\td\t2")
    with open_labels(path, "me"):
        pass
    assert r"the last label was cut off and is dropped: 'c\td\t2'" in caplog.text


@pytest.mark.parametrize("row", ['{"sentence1": "c", "sentence2": "d", "score": 4.5}', "notes", '"notes"'])
def test_a_last_row_of_someone_else_stays(tmp_path, row):
    path = tmp_path / "labels.jsonl"
    with open_labels(path, "me") as labels:
        labels.add([(PAIRS[0], 3)])
    path.write_text(path.read_text() + row)
    content = path.read_bytes()
    with pytest.raises(DataError, match="row 2: it is no label"), open_labels(path, "me"):
        pass
    assert path.read_bytes() == content
    path = tmp_path / "labels.tsv"
    path.write_text(f"{HEADER}a\tb\t1\tyou")
    with pytest.raises(ConfigError, match="those by 'you', and now it is 'me'"), open_labels(path, "me"):
        pass
    assert path.read_text() == f"{HEADER}a\tb\t1\tyou"


def test_a_file_that_was_moved_meanwhile_is_said(tmp_path):
    with open_labels(tmp_path / "labels.tsv", "me") as labels:
        labels.add([(PAIRS[0], 3)])
        labels.path.rename(tmp_path / "moved.tsv")
        with pytest.raises(OutputError, match=r"labels\.tsv cannot be written"):
            labels.add([(PAIRS[1], 3)])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "sentence1\tsentence2\tscore\na\tb\t1\n"),
        ("a.tsv", ""),
        ("a.tsv", "my notes"),
        ("a.jsonl", "notes\n"),
        ("a.jsonl", '{"sentence1": "a", "sentence2": "b", "score": 1}\n'),
        ("a.jsonl", "my notes"),
        ("a.jsonl", '{"sentence1": "a", "sentence2": "b", "score": 1}'),
        ("a.jsonl", "{"),
    ],
)
def test_a_file_of_another_kind_is_left_as_it_is(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(OutputError, match="is no file of labels made here"), open_labels(path, "me"):
        pass
    assert path.read_text() == content


def test_what_is_wrong_with_a_file_is_said(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text(f"{HEADER}a\tb\t1\tme\nc\td\n")
    with pytest.raises(DataError, match=r"labels.tsv, row 3: it is no label"), open_labels(path, "me"):
        pass
    path.write_text(f"{HEADER}a\tb\t1\tme\n")
    with pytest.raises(ConfigError, match="those by 'me', and now it is 'you'"), open_labels(path, "you"):
        pass
    with pytest.raises(ConfigError, match=r"ends in .tsv or .jsonl; received"), open_labels(tmp_path / "a.txt", "me"):
        pass
    with pytest.raises(OutputError, match="would be written over"), open_labels(path, "me", [path]):
        pass
    with open_labels(tmp_path / "b.tsv", "me") as labels:
        with pytest.raises(DataError, match=r"Name an output that ends in \.jsonl"):
            labels.check([("a\tb", "c")])
        for text in ("a\0", "\ud800"):
            with pytest.raises(DataError, match="which is no character"):
                labels.check([("c", text)])
        labels.add([(PAIRS[0], 1)])
        (tmp_path / "b.tsv").write_text(HEADER)
        with pytest.raises(OutputError, match="changed by another program"):
            labels.undo()


def test_two_at_once_are_refused(tmp_path):
    code = (
        f"from pathlib import Path; from samesense.inference.labelling.file import open_labels as o\n"
        f"with o(Path({str(tmp_path / 'labels.tsv')!r}), 'me'): print('open', flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"open\n"
        with pytest.raises(OutputError, match="one writer at a time"), open_labels(tmp_path / "labels.tsv", "me"):
            pass
        process.kill()
    with open_labels(tmp_path / "labels.tsv", "me") as labels:  # the lock of a dead process holds no one up
        assert len(labels) == 0


def scored(pairs):
    return np.array([len(first) + len(second) for first, second in pairs], dtype=float)


def test_a_function_labels_and_the_same_call_does_nothing_more(tmp_path):
    path = tmp_path / "labels.tsv"
    scored_pairs = []

    def score(pairs):
        scored_pairs.extend(pairs)
        return scored(pairs)

    result = samesense.label(TEXTS, output=path, scorer=score, pairs=30, pairs_by="random")
    assert str(result) == f"30 of 30 pairs have a label in {path}"
    assert len(scored_pairs) == len(set(map(frozenset, scored_pairs))) == 30
    content = path.read_text()
    samesense.label(TEXTS, output=path, scorer=score, pairs=30, pairs_by="random")
    assert (len(scored_pairs), path.read_text()) == (30, content)
    samesense.label(TEXTS, output=path, scorer=score, pairs=50, pairs_by="random")
    assert len(scored_pairs) == len(set(map(frozenset, scored_pairs))) == 50
    assert path.read_text().startswith(content)


@pytest.mark.parametrize("by", ["bands", "neighbours", "disagreement"])
def test_models_choose_among_texts(tmp_path, by):
    other_model = samesense.load(lambda texts: on_a_circle(texts)[:, ::-1] * [1, 0.1] + [0, 1])
    result = samesense.label(
        TEXTS,
        output=tmp_path / "labels.tsv",
        scorer=scored,
        pairs=20,
        pairs_by=by,
        model=samesense.load(on_a_circle),
        other=other_model if by == "disagreement" else None,
    )
    assert result.labelled == 20
    read = samesense.read(result.path)
    if by == "neighbours":
        assert max(map(apart, zip(read.sentences1, read.sentences2, strict=True))) <= 3


def test_pairs_are_taken_as_they_are_whatever_their_labels(tmp_path):
    rows = [(*pair, float(index)) for index, pair in enumerate(PAIRS)]
    for index, source in enumerate((rows, PAIRS, samesense.read(rows))):
        result = samesense.label(source, output=tmp_path / f"{index}.tsv", scorer=scored, pairs_by="random")
        assert result.requested == result.labelled == 20
        read = samesense.read(result.path)
        assert set(zip(read.sentences1, read.sentences2, strict=True)) == set(PAIRS)
        assert read.labels == scored(zip(read.sentences1, read.sentences2, strict=True)).tolist()


def test_rows_of_an_iterator_count_all(tmp_path):
    rows = [(f"one {index}", f"other {index}") for index in range(1200)]
    result = samesense.label(iter(rows), output=tmp_path / "a.tsv", scorer=scored, pairs=1200, pairs_by="random")
    assert result.labelled == 1200


def test_a_model_that_fails_on_the_way_keeps_what_it_labelled(tmp_path):
    calls = []

    def score(pairs):
        calls.append(len(pairs))
        return np.full(len(pairs), np.nan if len(calls) == 2 else 1.0)

    with pytest.raises(ModelError, match=r"one finite number a pair, 36 of them; .* with 36 that are not finite"):
        samesense.label(TEXTS, output=tmp_path / "a.tsv", scorer=score, pairs=100, pairs_by="random")
    with open_labels(tmp_path / "a.tsv", score.__qualname__) as labels:
        assert len(labels) == 64


def test_a_function_that_gives_words_is_no_scorer(tmp_path):
    def words(pairs):
        return ["yes"] * len(pairs)

    with pytest.raises(ModelError, match=r"one finite number a pair; it gave no numbers: .* 'yes'"):
        samesense.label(TEXTS, output=tmp_path / "a.tsv", scorer=words, pairs=10, pairs_by="random")


def change_weights(model):
    with torch.no_grad():
        next(model.parameters()).mul_(1.5)


def test_a_model_that_was_trained_again_is_another_scorer(tmp_path, tiny):
    folder = tmp_path / "model"
    options = {"output": tmp_path / "labels.tsv", "scorer": folder, "pairs_by": "random"}
    tiny.save(str(folder))
    path = samesense.label(TEXTS, pairs=5, **options).path
    content = path.read_text()
    assert f"\t{folder}, content " in content
    (folder / "README.md").write_text("a note changes no score")
    assert samesense.label(TEXTS, pairs=5, **options).labelled == 5
    change_weights(tiny)
    tiny.save(str(folder))
    with pytest.raises(ConfigError, match="A file holds the labels of one"):
        samesense.label(TEXTS, pairs=9, **options)
    assert path.read_text() == content


def test_models_in_memory_are_told_apart_by_their_weights(tmp_path, tiny, tiny_trunk):
    for scorer in (tiny, CrossEncoder(str(tiny_trunk), num_labels=1, device="cpu")):
        options = {"output": tmp_path / f"{type(scorer).__name__}.tsv", "scorer": scorer, "pairs_by": "random"}
        samesense.label(TEXTS, pairs=5, **options)
        assert samesense.label(TEXTS, pairs=9, **options).labelled == 9
        change_weights(scorer)
        with pytest.raises(ConfigError, match="A file holds the labels of one"):
            samesense.label(TEXTS, pairs=12, **options)


def test_a_chat_endpoint_is_resumed_and_each_answer_kept_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(chat, "PAUSE", 0.001)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    output = tmp_path / "labels.jsonl"
    command = [
        "label",
        tmp_path / "texts.txt",
        "--scorer",
        "chat:m",
        "--pairs-by",
        "random",
        "--pairs",
        30,
        "--output",
        output,
    ]
    with stub(lambda texts, count: (401, {}, {}) if count == 12 else str(count % 6)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert run_command(capsys, *command, "--max-calls", 8)[0] == 2
        assert len(output.read_text().splitlines()) == 8
        code, _, stderr = run_command(capsys, *command)
        assert (code, "refuses the model 'm'" in stderr) == (2, True)
        answered = len(server.asked) - 1
        assert len(output.read_text().splitlines()) == answered
        code, out, stderr = run_command(capsys, *command)
        assert (code, out) == (0, "")
        assert f"30 of 30 pairs have a label in {output}, {30 - answered} calls, " in stderr
        assert len(server.asked) == 31, "a pair that has a label is not asked for again"
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert len({frozenset((row["sentence1"], row["sentence2"])) for row in rows}) == len(rows) == 30
    assert {row["labelled_by"] for row in rows} == {"chat:m, 0 to 5"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": 0}, "`pairs` is a whole number of 1 or more"),
        ({"pairs_by": "disagreement"}, "without `other`"),
        ({"other": "x"}, "received `pairs_by` bands with `other`"),
        ({"pairs_by": "random", "model": "x"}, "Random pairs are chosen without a model; received `model`"),
        ({"max_calls": 3}, "`max_calls` is for a chat"),
        ({"scorer": "chat:m", "max_calls": 0}, "`max_calls` is a whole number of 1 or more; received 0"),
        ({"scale": "yes-no"}, "`scale` is for a person or a chat model"),
        ({"scorer": "wordllama", "scale": "0-5"}, "`scale` is for a person or a chat model"),
        ({"port": 8001}, "`port` is for the page"),
        ({"scale": "0-4"}, "0-4"),
        ({"scorer": None, "port": 99999}, "A port is 0 to 65535"),
    ],
)
def test_options_that_contradict_each_other_are_said_at_once(tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        samesense.label(TEXTS, **{"output": tmp_path / "a.tsv", "scorer": scored, **options})
    assert not (tmp_path / "a.tsv").exists()


def test_neighbours_are_not_sought_among_pairs(tmp_path):
    with pytest.raises(ConfigError, match="the source holds pairs"):
        samesense.label(PAIRS, output=tmp_path / "a.tsv", scorer=scored, pairs_by="neighbours")


@pytest.mark.parametrize(
    ("rows", "message"),
    [("sentence1\tsentence2\none\tone\n\tb\n", "holds no pair of two different texts"), ("text\na\n\n", "received 1")],
)
def test_data_without_a_pair_are_said_and_leave_no_file(tmp_path, rows, message):
    (tmp_path / "a.tsv").write_text(rows)
    with pytest.raises((ConfigError, DataError), match=message):
        samesense.label(tmp_path / "a.tsv", output=tmp_path / "b.tsv", scorer=scored, pairs_by="random")
    assert not (tmp_path / "b.tsv").exists()


def test_documents_are_read_as_their_sentences(tmp_path):
    pytest.importorskip("nupunkt")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("One is here. Two is there.\n\nThree is gone.\n")
    result = samesense.label(tmp_path / "docs", output=tmp_path / "b.tsv", scorer=scored, pairs_by="random")
    assert result.requested == 3


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("sentence1,sentence2,source,date", "{0},{1},web,2024-01-01"),
        ("premise,hypothesis,label", "{0},{1},{2}"),
        ("question,answer,category", "{0},{1},billing"),
        ("anchor,positive,negative", "{0},{1},{0} not"),
    ],
)
def test_pairs_that_have_no_label_yet_are_labelled(tmp_path, header, row):
    path = tmp_path / "pairs.csv"
    rows = [row.format(f"a text {number}", f"another {number}", number % 3) for number in range(9)]
    path.write_text("\n".join([header, *rows]) + "\n")
    output = tmp_path / "labels.jsonl"
    labelled = samesense.label(
        path, output=output, pairs=5, pairs_by="random", scorer=lambda pairs: np.arange(float(len(pairs)))
    )
    assert "5 of 5 pairs have a label" in str(labelled)
    assert all(first.startswith("a text") for first in samesense.read(output).sentences1)


def test_anchors_that_were_read_before_are_labelled(tmp_path):
    data = samesense.read([("a", "b"), ("c", "d"), ("e", "f")])
    samesense.label(
        data, output=tmp_path / "l.jsonl", pairs=3, pairs_by="random", scorer=lambda pairs: np.arange(float(len(pairs)))
    )
    assert len(samesense.read(tmp_path / "l.jsonl")) == 3
