"""Near-duplicates of a list, and matches of two, on vectors that say themselves how close they are."""

import math
import pickle
import re

import numpy as np
import pytest

import samesense
from samesense.errors import ConfigError, DataError, OutputError
from samesense.inference.calibration.fit import CalibrationSettings
from samesense.inference.duplicates import dedup as module
from samesense.inference.duplicates import match as match_module
from samesense.inference.duplicates import work as work_module
from samesense.locks import only_writer
from tests.inference.made_vectors import cosines, encode

ANGLES = {"a": 0.0, "aa": 0.3, "aaa": 0.6, "b": 2.0, "bb": 2.1, "c": 4.0}


def angles(texts, angle_by_text=ANGLES):
    return np.array([[np.cos(angle_by_text[text]), np.sin(angle_by_text[text])] for text in texts], dtype=np.float32)


ROWS = ["a", "aa", "aaa", "c", "b", "a", "bb"]
CUT = float(np.cos(0.31))


def test_representatives_are_close_and_linked_rows_may_not_be():
    result = samesense.dedup(ROWS, model=angles, threshold=CUT)
    assert result.kept.tolist() == [0, 2, 3, 4]
    assert [(removal.row, removal.kept) for removal in result.removed] == [(1, 0), (5, 0), (6, 4)]
    assert [removal.score for removal in result.removed] == pytest.approx([np.cos(0.3), 1.0, np.cos(0.1)], abs=1e-6)
    assert str(result) == f"4 of 7 texts kept, 3 removed at a cosine of {CUT:.4g} or more"
    result = samesense.dedup(ROWS, model=angles, threshold=CUT, by="linked")
    assert [(group.kept, group.rows) for group in result.groups] == [(0, (0, 1, 2, 5)), (4, (4, 6))]
    assert result.groups[0].lowest == pytest.approx(np.cos(0.6), abs=1e-6)


@pytest.mark.parametrize(
    ("keep", "by", "expected"),
    [
        ("longest", "representative", [0, 2, 3, 6]),
        ("longest", "linked", [2, 3, 6]),
        ("central", "representative", [1, 3, 4]),
        ("central", "linked", [1, 3, 4]),
        ("first", "linked", [0, 3, 4]),
    ],
)
def test_which_row_stays(keep, by, expected):
    assert samesense.dedup(ROWS, model=angles, threshold=CUT, keep=keep, by=by).kept.tolist() == expected


def test_rows_count_and_not_texts_for_what_is_central():
    model = lambda texts: angles(texts, {"a": 0.0, "b": 0.2, "c": 0.4, "d": 0.6})  # noqa: E731
    for rows, expected in (
        ("abcd", [1, 3]),  # b and c are close to two texts each
        ("abcddd", [0, 2]),  # three rows of d are close to c
        ("cabccd", [0, 1]),  # c stands for itself three times
    ):
        result = samesense.dedup([*rows], model=model, threshold=float(np.cos(0.21)), keep="central")
        assert result.kept.tolist() == expected, rows


def test_rows_of_the_same_text_are_encoded_once_and_score_one():
    encoded = []
    result = samesense.dedup(["x", "y", "x", "x"], model=lambda texts: encoded.extend(texts) or encode(texts))
    assert (sorted(encoded), result.kept.tolist()) == (["x", "y"], [0, 1])
    assert [tuple(removal) for removal in result.removed] == [(2, 0, 1.0), (3, 0, 1.0)]


def test_another_threshold_needs_no_model_and_is_what_it_would_have_been(
    tiny_trunk, sentences, tmp_path, monkeypatch, caplog
):
    texts, work = [*sentences, *sentences[:3]], tmp_path / "work"
    model = samesense.load(str(tiny_trunk), precision="float32")
    first = samesense.dedup(texts, model=model, threshold=0.97, work=work)
    expected = {threshold: samesense.dedup(texts, model=model, threshold=threshold) for threshold in (0.99, 0.92, 0.8)}
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "encode", lambda *_, **__: pytest.fail("encoded again"))
        for threshold, expected_result in expected.items():
            for result in (
                first.with_threshold(threshold),
                samesense.dedup(texts, model=model, threshold=threshold, work=work),
            ):
                assert result.threshold == threshold
                assert np.array_equal(result.kept_by, expected_result.kept_by)
                assert result.scores == pytest.approx(expected_result.scores)
        with pytest.raises(OutputError, match=r"work holds the vectors of another search: it differs in the texts"):
            samesense.dedup(texts[1:], model=model, work=work)
        with pytest.raises(OutputError, match="it differs in the kind"):
            samesense.dedup(texts, model=model, search="approximate", work=work)
    for name in ("links.npz", "vectors.bin", "about.json"):
        (work / "unfinished").mkdir()  # of a process that was killed after about.json
        (work / name).write_bytes(b"PK nonsense")
        result = samesense.dedup(texts, model=model, threshold=0.97, work=work)
        assert np.array_equal(result.kept_by, first.kept_by), name
        assert name in caplog.text and "damaged" in caplog.text and not (work / "unfinished").exists()
        caplog.clear()


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    model = samesense.Model(module_encoder())
    with pytest.raises(OutputError, match="is not empty"):
        samesense.dedup(["x", "y"], model=model, work=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    (tmp_path / "mine.txt").unlink()
    (tmp_path / ".vectors.bin.99999999-0123abcd.part").write_bytes(b"of a process that was killed")
    assert len(samesense.dedup(["x", "y"], model=model, work=tmp_path).kept) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "about.json", "links.npz", "vectors.bin"]
    with pytest.raises(ConfigError):  # a function may change between runs
        samesense.dedup(["x", "y"], model=encode, work=tmp_path / "new")


def module_encoder():
    from samesense.inference.models.functions import FunctionEncoder

    return FunctionEncoder(encode, "hashed", lambda: "hashed words, 1")


def test_above_so_many_rows_it_is_approximate(monkeypatch):
    texts = [f"text {i % 150}{' ' * (i // 150 % 2)}" for i in range(400)]
    near = lambda near_texts: encode([text.strip() for text in near_texts])  # noqa: E731
    exact = samesense.dedup(texts, model=near)
    monkeypatch.setattr(module, "EXACT_ROWS", 100)
    approximate = samesense.dedup(texts, model=near)
    assert (exact.recall, approximate.recall) == (None, 1.0)
    assert (exact.sampled, approximate.sampled > 50) == (0, True)
    assert np.array_equal(approximate.kept_by, exact.kept_by)
    assert f"of {approximate.sampled} sampled pairs, 100.0 % were found" in str(approximate)


def test_a_share_found_of_no_pairs_is_not_called_all(tmp_path):
    model = samesense.Model(module_encoder())
    texts = [f"text {i}" for i in range(40)]
    for work in (None, tmp_path / "work", tmp_path / "work"):  # the last one reads what was kept
        result = samesense.dedup(texts, model=model, threshold=1.0, search="approximate", work=work)
        assert (math.isnan(result.recall), result.sampled) == (True, 0)
        assert "is not known, since no sampled row has any" in str(result)


def test_a_folder_of_work_has_one_writer(tmp_path):
    model = samesense.Model(module_encoder())
    with only_writer(tmp_path / "work"), pytest.raises(OutputError, match="another process writes to"):
        samesense.dedup(["x", "y"], model=model, work=tmp_path / "work")
    samesense.dedup(["x", "y"], model=model, threshold=0.9, work=tmp_path / "work")
    with only_writer(tmp_path / "work"):
        samesense.dedup(["x", "y"], model=model, threshold=0.9, work=tmp_path / "work")  # reading needs no lock
        with pytest.raises(OutputError, match="another process writes to"):
            samesense.dedup(["x", "y"], model=model, threshold=0.5, work=tmp_path / "work")


def test_links_are_kept_whole_or_not_at_all(tmp_path, monkeypatch):
    model = samesense.Model(module_encoder())

    def cut_off(stream, **arrays):
        stream.write(b"PK")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(work_module.np, "savez", cut_off)
        samesense.dedup(["x", "y"], model=model, work=tmp_path)
    assert not (tmp_path / "links.npz").exists()
    assert len(samesense.dedup(["x", "y"], model=model, work=tmp_path).kept) == 2


def test_a_search_that_is_stopped_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("samesense.inference.encode.BLOCK_TEXTS", 4)
    model, encoded, texts = samesense.Model(module_encoder()), [], [f"text {i}" for i in range(10)]
    whole, work = model.encode, tmp_path / "work"

    def stopping(texts_to_encode, **options):
        if len(encoded) == 2:
            raise KeyboardInterrupt
        encoded.append(texts_to_encode)
        return whole(texts_to_encode, **options)

    monkeypatch.setattr(
        samesense.Model, "encode", lambda self, texts_to_encode, **options: stopping(texts_to_encode, **options)
    )
    with pytest.raises(KeyboardInterrupt, match="What is encoded is kept"):
        samesense.dedup(texts, model=model, work=work)
    monkeypatch.setattr(
        samesense.Model,
        "encode",
        lambda self, texts_to_encode, **options: encoded.append(texts_to_encode) or whole(texts_to_encode, **options),
    )
    samesense.dedup(texts, model=model, work=work)
    assert encoded == [texts[:4], texts[4:8], texts[:1], texts[8:]]  # one text tells whether the width is the same
    assert sorted(path.name for path in work.iterdir()) == [".lock", "about.json", "links.npz", "vectors.bin"]
    stored = np.fromfile(work / "vectors.bin", dtype=np.float32).reshape(10, -1)
    np.testing.assert_allclose(stored, whole(texts, normalize=True), rtol=1e-5, atol=1e-6)


def test_nothing_one_and_refusals():
    with pytest.raises(DataError, match="there are no rows"):
        samesense.dedup([], model=encode)
    assert samesense.dedup(["x"], model=encode, search="approximate").kept.tolist() == [0]
    with pytest.raises(ConfigError, match="A threshold is a cosine"):
        samesense.dedup(["x"], model=lambda texts: pytest.fail("encoded"), threshold=9)


def test_matches_are_the_closest_rows_of_the_other_list():
    random = np.random.default_rng(0)
    left, right = random.normal(size=(30, 4)), random.normal(size=(40, 4))
    rows = {**{f"l{i}": row for i, row in enumerate(left)}, **{f"r{i}": row for i, row in enumerate(right)}}
    model = lambda texts: np.array([rows[text] for text in texts], dtype=np.float32)  # noqa: E731
    ones, candidates = [f"l{i}" for i in range(30)], [f"r{i}" for i in range(40)]
    table = np.array([cosines(row, right) for row in left.astype(np.float32)])
    for top in (1, 3):
        result = samesense.match(ones, candidates, model=model, threshold=0.6, top=top)
        true = {(i, int(j)): table[i, j] for i in range(30) for j in np.argsort(-table[i])[:top] if table[i, j] >= 0.6}
        assert {pair[:2]: pair.score for pair in result.pairs} == pytest.approx(true, abs=1e-6)
        assert result.unmatched.tolist() == sorted(set(range(30)) - {i for i, _ in true})
    again = result.with_threshold(0.8)
    assert {pair[:2] for pair in again.pairs} == {pair for pair, score in true.items() if score >= 0.8}


def test_results_are_compared_and_pickled_without_their_search():
    texts = ["on time", "a cab", "no time"]
    for search in (samesense.dedup, lambda texts, **options: samesense.match(texts, texts[1:], **options)):
        result = search(texts, model=encode, threshold=0.9)
        copied = pickle.loads(pickle.dumps(result))
        assert str(copied) == str(result) and copied.to_dicts() == result.to_dicts()
        assert result == result and result != copied and hash(result)
        with pytest.raises(ConfigError, match="A result that was pickled has one threshold"):
            copied.with_threshold(0.8)


def test_more_matches_than_links_of_a_row_can_be_asked_for():
    model = lambda texts: np.array([[1.0, 0.001 * int(t)] for t in texts], dtype=np.float32)  # noqa: E731
    result = samesense.match(["0"], [str(number) for number in range(1, 51)], model=model, threshold=0.9, top=40)
    assert [pair.match for pair in result.pairs] == list(range(40))


def test_the_same_texts_parted_elsewhere_are_another_search(tmp_path):
    model = samesense.Model(module_encoder())
    samesense.match(["a", "b"], ["c"], model=model, threshold=-1, work=tmp_path)
    with pytest.raises(OutputError, match="it differs in the kind"):
        samesense.match(["a"], ["b", "c"], model=model, threshold=-1, work=tmp_path)


def test_no_more_copies_are_formed_than_are_asked_for(monkeypatch):
    created = []
    plain = match_module.Match
    monkeypatch.setattr(match_module, "Match", lambda *arguments: created.append(arguments) or plain(*arguments))
    result = samesense.match(["a"] * 40, ["a"] * 50, model=samesense.load(angles), top=2)
    assert (len(result.pairs), len(created)) == (80, 2)
    assert {match.match for match in result.pairs} == {0, 1}


def test_one_to_one_forms_as_many_matches_as_there_are(monkeypatch):
    created = []
    plain = match_module.Match
    monkeypatch.setattr(match_module, "Match", lambda *arguments: created.append(arguments) or plain(*arguments))
    result = samesense.match(["a"] * 40, ["a"] * 50, model=samesense.load(angles), one_to_one=True)
    assert (len(result.pairs), len(created)) == (40, 40)
    assert all(match.row == match.match for match in result.pairs)


@pytest.mark.parametrize("seed", range(5))
def test_one_to_one_is_greedy_over_all_pairs_of_rows(seed):
    random = np.random.default_rng(seed)
    angle_by_text = {f"t{i}": 0.2 * i for i in range(8)}  # angles that tie

    def model(texts):
        return angles(texts, angle_by_text)

    ones, candidates = ([f"t{i}" for i in random.integers(0, 8, count)] for count in (30, 25))
    every = samesense.match(ones, candidates, model=model, threshold=0.7, top=30).pairs
    taken: list[match_module.Match] = []
    for pair in sorted(every, key=lambda pair: (-round(pair.score, 6), pair.row, pair.match)):
        if all(pair.row != earlier.row and pair.match != earlier.match for earlier in taken):
            taken.append(pair)
    result = samesense.match(ones, candidates, model=model, threshold=0.7, one_to_one=True)
    assert result.pairs == sorted(taken)


def test_one_to_one_takes_the_closest_first():
    rows = {"a": 0.0, "b": 0.1, "x": 0.12, "y": 0.5}
    model = lambda texts: np.array([[np.cos(rows[t]), np.sin(rows[t])] for t in texts], dtype=np.float32)  # noqa: E731
    free = samesense.match(["a", "b"], ["x", "y"], model=model, threshold=0.8)
    assert [pair[:2] for pair in free.pairs] == [(0, 0), (1, 0)]
    once = samesense.match(["a", "b"], ["x", "y"], model=model, threshold=0.8, one_to_one=True)
    assert [pair[:2] for pair in once.pairs] == [(0, 1), (1, 0)]
    copies = samesense.match(["a", "a", "a"], ["a", "a"], model=model, one_to_one=True)
    assert [tuple(pair) for pair in copies.pairs] == [(0, 0, 1.0), (1, 1, 1.0)]
    assert copies.unmatched.tolist() == [2]
    with pytest.raises(ConfigError, match="`top` 2 and `one_to_one`"):
        samesense.match(["a"], ["x"], model=model, one_to_one=True, top=2)


def test_a_threshold_from_pairs_and_from_a_calibration(tmp_path):
    rows = {"p0": 0.0, "p1": 0.2, "p2": 0.4, "p3": 0.6, "p4": 0.8}
    model = lambda texts: np.array([[np.cos(rows[t]), np.sin(rows[t])] for t in texts], dtype=np.float32)  # noqa: E731
    labelled = [("p0", "p1", 1), ("p0", "p2", 0), ("p0", "p3", 1), ("p0", "p4", 0)]
    result = samesense.dedup(list(rows), model=model, pairs=labelled)
    assert np.cos(0.8) < result.threshold < np.cos(0.6)  # F1 of 4/5
    with pytest.raises(DataError, match=r"no threshold keeps a precision of 90 %.* These 4 different pairs show none"):
        samesense.dedup(list(rows), model=model, pairs=labelled, min_precision=0.9)
    angle_by_text = {f"p{number}": number / 400 for number in range(400)}

    def many(texts):
        return angles(texts, angle_by_text)

    pairs = [
        (f"p{number}", f"p{number + step}", int(step < 90))
        for number in range(0, 200, 7)
        for step in range(number % 7, 199, 11)
    ]
    result = samesense.dedup(list(angle_by_text), model=many, pairs=pairs, min_precision=0.9)
    assert 0.96 < result.threshold <= np.cos(81 / 400)
    with pytest.raises(ConfigError, match="A threshold is a number, or comes from `pairs`"):
        samesense.dedup(list(rows), model=model, threshold=0.5, pairs=labelled)
    with pytest.raises(ConfigError, match="A calibrated threshold is read by the name of its model"):
        samesense.dedup(list(rows), model=model, min_precision=0.9)


@pytest.mark.parametrize("threshold", ["0.5", "high", True, [0.5], math.nan])
@pytest.mark.parametrize(
    "compute",
    [
        lambda **options: samesense.dedup(ROWS, model=angles, **options),
        lambda **options: samesense.match(ROWS, ROWS, model=angles, **options),
        lambda **options: samesense.mine(ROWS, model=angles, **options),
        lambda **options: samesense.score([("a", "b")], model=angles, **options),
        lambda **options: samesense.drift(angles, angles, ROWS, **options),
    ],
    ids=["dedup", "match", "mine", "score", "drift"],
)
def test_a_threshold_is_a_number_or_that_of_a_calibration(compute, threshold):
    with pytest.raises(
        ConfigError, match=rf"`threshold` is a number, or calibrated; received {re.escape(repr(threshold))}"
    ):
        compute(threshold=threshold)


@pytest.mark.parametrize("name", ["min_precision", "min_recall", "yes"])
def test_a_number_of_a_calibration_is_no_text(name):
    computations = [lambda value: CalibrationSettings(**{name: value})]
    if name == "min_precision":
        computations += [
            lambda value: samesense.dedup(ROWS, model=angles, min_precision=value),
            lambda value: samesense.score([("a", "b")], model=angles, min_precision=value),
        ]
    for compute in computations:
        for value in ("0.9", True, math.inf):
            with pytest.raises(ConfigError, match=f"`{name}` is a number; received {value!r}"):
                compute(value)


def test_approximate_matches_are_measured():
    random = np.random.default_rng(1)
    rows = random.normal(size=(900, 8))
    rows[:300] = rows[300:600] + 0.15 * random.normal(size=(300, 8))
    model = lambda texts: np.array([rows[int(text)] for text in texts], dtype=np.float32)  # noqa: E731
    ones, candidates = [str(i) for i in range(300)], [str(i) for i in range(300, 900)]
    exact = samesense.match(ones, candidates, model=model, search="exact", top=3)
    result = samesense.match(ones, candidates, model=model, search="approximate", top=3)
    for row, match, score in result.pairs:
        (expected,) = cosines(rows[row], rows[300:][[match]])
        assert result.threshold <= score == pytest.approx(expected, abs=1e-6)
    assert len(result.pairs) >= 0.97 * len(exact.pairs)
    assert result.recall >= 0.97


def test_the_command_takes_labelled_pairs(tiny_trunk, tmp_path, capsys):
    from tests.command import run_command

    (tmp_path / "texts.txt").write_text("a dog sleeps\na dog sleeps\nthe red river\n")
    lines = ["sentence1\tsentence2\tlabel", "a cat\ta cat\t1", "a fish eats\ta fish eats\t1"]
    lines += ["a cat\tthe blue train runs\t0", "rain at night\tan old woman\t0"]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    flags = ("--model", tiny_trunk, "--pairs", tmp_path / "pairs.tsv", "--precision", "float32")
    code, out, err = run_command(capsys, "dedup", tmp_path / "texts.txt", *flags)
    assert (code, out) == (0, "a dog sleeps\nthe red river\n")
    assert "on 4 pairs of pairs.tsv, 2 of them the same, precision 100.0 %, recall 100.0 %" in err
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tscore\na cat\ta cat\t4.5\na cat\ta dog\t2\n")
    code, _, err = run_command(capsys, "dedup", tmp_path / "texts.txt", *flags)
    assert (code, "pairs for a threshold are labelled 1 (the same) or 0 (not)" in err) == (2, True)


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda _: b"", lambda data: b"PK" + data[9:]])
def test_damaged_links_in_a_folder_of_work_are_searched_again(tmp_path, damage, caplog):
    model, texts = samesense.Model(module_encoder()), [f"text {n}" for n in range(20)]
    first = samesense.dedup(texts, model=model, threshold=0.5, work=tmp_path / "work")
    links = tmp_path / "work" / "links.npz"
    links.write_bytes(damage(links.read_bytes()))
    again = samesense.dedup(texts, model=model, threshold=0.5, work=tmp_path / "work")
    assert np.array_equal(again.kept, first.kept) and "links.npz is damaged" in caplog.text
