import json
import re

import numpy as np
import pytest

from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.saving.storage import save
from samesense.inference.calibration.storage import read_of
from samesense.inference.models.load import load

PAIR = ("a dog runs", "the cat sleeps")


@pytest.fixture
def folder(tiny_trunk, tmp_path):
    return save(build(str(tiny_trunk), device="cpu"), tmp_path / "model")


@pytest.fixture(scope="module")
def labelled(tiny_trunk, sentences, tmp_path_factory):
    """Files of pairs whose labels rise with the tiny encoder's cosine: graded on 0 to 5, and yes or no."""
    folder = tmp_path_factory.mktemp("labelled")
    pairs = [(sentences[index % 40], sentences[(index * 7 + 3 + index // 40) % 40]) for index in range(240)]
    pairs = [(first, second) for first, second in pairs if first != second]
    scores = load(str(tiny_trunk), precision="float32").scores(pairs)
    noisy = scores + np.random.default_rng(0).normal(0, 0.3 * scores.std(), len(pairs))
    graded = np.round(5 * (noisy - noisy.min()) / np.ptp(noisy), 1)
    for name, labels in (("graded", graded), ("binary", (noisy > np.median(noisy)).astype(int))):
        lines = [f"{label}\t{first}\t{second}" for label, (first, second) in zip(labels, pairs, strict=True)]
        (folder / f"{name}.tsv").write_text("\n".join(["score\tsentence1\tsentence2", *lines]) + "\n", encoding="utf-8")
    return folder


def test_from_graded_labels_to_calibrated_similarity(run, folder, labelled, tmp_path):
    figure = tmp_path / "out.png"
    code, out, err = run("calibrate", folder, "--data", labelled / "graded.tsv", "--figure", figure)
    assert code == 0, err
    assert "isotonic map to 0-5" in out
    assert [line.split()[0] for line in out.splitlines()[2:4]] == ["ece", "mae"]
    assert "no threshold for yes and no" in out
    assert "warning: graded.tsv: most pairs are connected by shared sentences" in err
    assert err.splitlines()[1:] == [f"written: {folder / 'calibration.json'}, {figure}"]
    assert figure.read_bytes().startswith(b"\x89PNG")
    calibration = read_of(str(folder))
    score = load(str(folder), precision="float32").scores([PAIR])
    code, out, err = run("similarity", folder, *PAIR, "--calibrated", "--precision", "float32")
    assert (code, out) == (0, f"{calibration.apply(score)[0]:.4f}\n")
    code, out, err = run("similarity", folder, *PAIR, "--threshold", "calibrated")
    assert code == 2
    assert "has graded labels. Calibrate again" in err


@pytest.mark.parametrize("command", ["evaluate", "calibrate", "train"])
def test_labels_that_look_reversed_are_said_once(run, folder, labelled, tmp_path, command):
    heading, *lines = (labelled / "graded.tsv").read_text(encoding="utf-8").splitlines()
    cells = [line.split("\t", 1) for line in lines]
    data = tmp_path / "reversed.tsv"
    data.write_text("\n".join([heading, *(f"{5 - float(score):g}\t{texts}" for score, texts in cells)]) + "\n")
    arguments = ["calibrate", folder, "--data", data]
    if command == "evaluate":
        arguments = ["evaluate", folder, "--data", data]
    elif command == "train":
        arguments = ["train", data, "--model", folder, "--test", data, "--output", tmp_path / "run", "--max-steps", "1"]
    code, _, err = run(*arguments)
    # No calibration falls.
    expected_code, level = (2, "samesense: error") if command == "calibrate" else (0, "warning")
    assert code == expected_code, err
    assert err.count(f"{level}: reversed.tsv: the labels look reversed") == 1
    assert "covariance" not in err
    assert "if these are distances, write 5 - score in their place" in err


def test_yes_and_no(run, folder, labelled):
    code, out, _ = run("calibrate", folder, "--data", labelled / "binary.tsv", "--decide", "f1", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [row["metric"] for row in rows] == [
        "ece",
        "brier",
        "ece_before",
        "brier_before",
        "accuracy",
        "f1",
        "precision",
        "recall",
    ]
    calibration = read_of(str(folder))
    score = load(str(folder), precision="float32").scores([PAIR])
    word = "yes" if calibration.says_yes(score, "f1")[0] else "no"
    exact = ("--precision", "float32")
    assert run("similarity", folder, *PAIR, "--calibrated", "--threshold", "calibrated", *exact)[1] == (
        f"{calibration.apply(score)[0]:.4f}\t{word}\n"
    )
    assert run("similarity", folder, *PAIR, "--threshold", "calibrated", *exact)[1] == f"{score[0]:.4f}\t{word}\n"
    row = json.loads(run("similarity", folder, *PAIR, "--calibrated", "--threshold", "calibrated", "--json", *exact)[1])
    assert row == {
        "text1": PAIR[0],
        "text2": PAIR[1],
        "score": pytest.approx(score[0], abs=1e-6),
        "calibrated": pytest.approx(calibration.apply(score)[0], abs=1e-6),
        "yes": word == "yes",
    }
    stdout = run("calibrate", folder, "--data", labelled / "binary.tsv")[1]
    assert "(for accuracy); cross-validated precision" in stdout
    assert re.search(rf"^ *{calibration.thresholds['f1']:.4f} .* best f1$", stdout, re.MULTILINE)


def test_a_threshold_at_a_precision_is_taken_by_name(run, folder, labelled, tmp_path):
    data = labelled / "binary.tsv"
    code, out, err = run("calibrate", folder, "--data", data, "--min-precision", 0.8)
    assert code == 0, err
    calibration = read_of(str(folder))
    threshold = calibration.threshold()
    assert f"threshold used: {threshold:.4f} (for precision); cross-validated precision" in out
    assert "on new pairs its precision is 80 % or more, with 95 % confidence" in out
    assert calibration.errors["precision"] > 0.8
    row = next(line for line in out.splitlines() if line.split()[:1] == [f"{threshold:.4f}"])
    assert float(row.split()[1]) >= 80
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in (*PAIR, PAIR[0])), encoding="utf-8")
    for command in ("mine", "dedup"):
        result = run(command, tmp_path / "texts.txt", "--model", folder, "--threshold", "calibrated")
        assert result == run(command, tmp_path / "texts.txt", "--model", folder, "--threshold", threshold), command
        assert result[0] == 0, result
    thresholds = dict(calibration.precisions)
    assert thresholds[0.8] == threshold
    for least in (0.8, 0.75):  # the next higher one that is known
        result = run("dedup", tmp_path / "texts.txt", "--model", folder, "--min-precision", least)
        assert result == run("dedup", tmp_path / "texts.txt", "--model", folder, "--threshold", threshold)
    for command in ("dedup", "match"):
        files = [tmp_path / "texts.txt"] * (2 if command == "match" else 1)
        code, out, err = run(command, *files, "--model", folder, "--min-precision", 1)
        assert (code, out) == (2, "")
        assert "do not show a precision of 1; the precisions that they show are 0.5" in err
        code, out, err = run(command, *files, "--model", folder, "--pairs", data, "--min-precision", 0.99)
        assert (code, out) == (2, "")
        assert "no threshold keeps a precision of 99 %" in err and "ask for --min-precision 0." in err
    for flags in (("--min-precision", 1.5), ("--min-precision", 0.9, "--min-recall", 0.9)):
        code, _, err = run("calibrate", folder, "--data", data, *flags)
        assert (code, "--min-precision" in err) == (2, True)


@pytest.mark.parametrize("name", ["precision", "recall"])
def test_a_promise_that_cannot_be_made_writes_nothing(run, folder, labelled, tmp_path, name):
    """It was exit code 0, "cross-validated precision 75 %", and a file that later commands failed on."""
    flags = ("--data", labelled / "binary.tsv", f"--min-{name}", 0.995, "--figure", tmp_path / "x.png")
    code, out, err = run("calibrate", folder, *flags)
    assert (code, out) == (2, "")
    assert re.search(rf"These \d+ different pairs show \d+ %, by the threshold .*: ask for --min-{name} 0\.\d+\.", err)
    assert not (folder / "calibration.json").exists() and not (tmp_path / "x.png").exists()
    least = re.search(rf"ask for --min-{name} ([\d.]+)\.", err)[1]
    assert run("calibrate", folder, "--data", labelled / "binary.tsv", f"--min-{name}", least)[0] == 0


@pytest.mark.parametrize("name", ["precision", "recall"])
def test_a_promise_about_graded_labels_needs_a_yes(run, folder, labelled, name):
    """It was left aside without a word."""
    code, out, err = run("calibrate", folder, "--data", labelled / "graded.tsv", f"--min-{name}", 0.9)
    assert (code, out) == (2, "")
    assert f"received --min-{name} 0.9. Say from which label on a pair counts, as in: --yes 2.5" in err
    assert not (folder / "calibration.json").exists()


def test_similarity_takes_a_number_for_a_threshold(run, folder):
    score = float(run("similarity", folder, *PAIR, "--precision", "float32")[1])
    for threshold, word in ((score - 0.01, "yes"), (score + 0.01, "no")):
        out = run("similarity", folder, *PAIR, "--precision", "float32", "--threshold", threshold)[1]
        assert out == f"{score:.4f}\t{word}\n"


def test_a_cross_encoder_and_a_file_elsewhere(run, tiny_trunk, labelled, tmp_path):
    cross = save(build_cross(str(tiny_trunk), device="cpu"), tmp_path / "cross")
    scores = load(str(cross), precision="float32")
    rows = [line.split("\t") for line in (labelled / "graded.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    values = scores.scores([(first, second) for _, first, second in rows])
    lines = [
        f"{int(v > np.median(values))}\t{first}\t{second}" for v, (_, first, second) in zip(values, rows, strict=True)
    ]
    data = tmp_path / "own.tsv"
    data.write_text("\n".join(["score\tsentence1\tsentence2", *lines]) + "\n", encoding="utf-8")
    code, out, err = run("calibrate", cross, "--data", data, "--output", tmp_path / "own.json")
    assert code == 0, err
    assert "logistic map to 0-1" in out
    assert not (cross / "calibration.json").exists()
    code, out, _ = run("similarity", cross, *PAIR, "--calibration", tmp_path / "own.json", "--precision", "float32")
    expected = read_of(str(cross), tmp_path / "own.json").apply(scores.scores([PAIR]))[0]
    assert (code, out) == (0, f"{expected:.4f}\n")


def test_what_is_refused_is_said_in_one_line(run, folder, labelled, toy_pairs, tmp_path, tiny_trunk, monkeypatch):
    graded = labelled / "graded.tsv"
    short = tmp_path / "short.tsv"
    short.write_text("".join(graded.read_text(encoding="utf-8").splitlines(keepends=True)[:20]), encoding="utf-8")
    monkeypatch.setattr("samesense.encoder.names.default_folder", lambda: tiny_trunk)
    for arguments, message in (
        (
            ("similarity", folder, *PAIR, "--calibrated"),
            f"has no calibration: there is no {folder / 'calibration.json'}",
        ),
        (("calibrate", folder, "--data", short), "at least 50 pairs, and these are 19"),
        (("calibrate", folder, "--data", graded, "--figure", "x.gif"), "A figure ends in "),
        (("calibrate", folder, "--data", graded, "--folds", 1), "2 to 10 folds; received 1"),
        (("calibrate", folder, "--data", graded, "--output", folder / "own.json"), "counts as part of the model"),
        (("calibrate", "default", "--data", graded), "'default' has none of its own. Name a file for it: --output"),
        (("calibrate", "python:math:sqrt", "--data", graded), "belongs to the files of one model"),
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
    assert run("calibrate", folder, "--data", graded)[0] == 0
    (folder / "config.json").write_text((folder / "config.json").read_text() + "\n")
    assert "other weights or settings" in run("similarity", folder, *PAIR, "--calibrated")[2]


def test_serve_takes_the_threshold_of_a_calibration_and_starts_only_with_one(run, folder, labelled, monkeypatch):
    pytest.importorskip("uvicorn")
    served = []
    monkeypatch.setattr("samesense.inference.serve.run.serve", lambda serving, **_: served.append(serving))
    code, _, err = run("serve", folder, "--threshold", "calibrated")
    assert (code, served) == (2, [])
    assert "has no calibration" in err
    assert run("calibrate", folder, "--data", labelled / "binary.tsv")[0] == 0
    for threshold, expected in (("calibrated", read_of(str(folder)).threshold()), ("-0.25", -0.25)):
        code, _, err = run("serve", folder, "--threshold", threshold)
        assert code == 0, err
        assert served[-1].all[0].serving.threshold == expected
