import io
import json
import logging
import re
import subprocess
import sys

import numpy as np
import pytest

import samesense
from samesense.cli.main import COMMANDS, GROUPS, summary_of
from samesense.encoder.assembly.build import build
from samesense.encoder.encode import encode
from samesense.encoder.saving.storage import save
from tests.models import made_model


@pytest.fixture(scope="module")
def folder(tiny_trunk, tmp_path_factory):
    return save(build(str(tiny_trunk), device="cpu"), tmp_path_factory.mktemp("saved") / "model")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_an_example(run, command):
    code, out, err = run(command, "--help")
    assert (code, err) == (0, "")
    assert f"samesense {command} " in out.split("╭")[0].split("\n", 1)[1]


def test_misuse_is_one_line_and_exit_code_2(run, folder, tmp_path):
    for arguments in (["trane"], ["train", "x.tsv"], ["similarity", folder, "a"], ["encode", tmp_path / "no", "-"]):
        code, out, err = run(*arguments, stdin="text\n")
        assert (code, out) == (2, "")
        assert err.startswith("samesense: error: ")
        assert err.count("\n") == 1


def test_backticks_of_a_user_stay(run, tmp_path):
    rows = ["text1,text2,label", "use `foo_bar` now,call `x_y`,1", "use `foo_bar` now,call `x_y`,0", "c,d,1", ""]
    (tmp_path / "texts.csv").write_text("\n".join(rows))
    code, out, _ = run("doctor", tmp_path / "texts.csv")
    assert code == 0
    assert "use `foo_bar` now | call `x_y`" in out
    (tmp_path / "labels.csv").write_text("text1,text2,label\nuse it,now,`my_label`\nc,d,1\n")
    code, _, err = run("doctor", tmp_path / "labels.csv")
    assert code == 2
    assert "'`my_label`'" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("doctor", "caf\udce9.tsv"), "Arguments must be UTF-8; received 'caf\\udce9.tsv'. Set the terminal to UTF-8."),
        (("similarity", "default", "a", "\udcff"), "Arguments must be UTF-8; received '\\udcff'."),
        (("doctor", ""), "The name of a source is empty"),
        (("dedup", "", "--model", "default"), "The name of a source is empty"),
        (("train", "", "--output", "o", "--dry-run"), "The name of a source is empty"),
        (("doctor", "x" * 300 + ".tsv"), ".tsv: there is no such file"),
        (("doctor", "x" * 300), "this is no existing file or folder"),
        (("mine", "x" * 300 + ".txt"), ": there is no such file"),
        (("index", "build", "x" * 300, "y.txt"), "File name too long"),
        (("train", "a", "--output", "o", "--method", "simcse", "--config", "x" * 300), "--config takes a TOML file"),
        (("sweep", "x" * 300, "--output", "o"), "File name too long"),
    ],
)
def test_what_cannot_be_a_name_or_text_is_said_in_one_line(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "y.txt").write_text("a text\n")
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("samesense: error: ")
    assert message in err
    assert err.count("\n") == 1


def test_pairs_on_standard_input_that_are_no_utf8(run):
    code, _, err = run("similarity", "default", stdin=b"a\tb\n\xff\tb\n")
    assert code == 2
    assert err.startswith("samesense: error: standard input, row 2: text must be UTF-8; byte 0xff")


@pytest.mark.parametrize(
    ("shell", "written"),
    [
        ("bash", ".local/share/bash-completion/completions/samesense"),
        ("zsh", ".zsh/completions/_cyclopts_samesense"),
        ("fish", ".config/fish/completions/samesense.fish"),
    ],
)
def test_completion_for_a_shell_is_installed(run, tmp_path, monkeypatch, shell, written):
    monkeypatch.setenv("HOME", str(tmp_path))
    code, out, err = run("--install-completion", "--shell", shell)
    assert (code, err) == (0, "")
    assert str(tmp_path / written) in out
    script = (tmp_path / written).read_text()
    assert all(word in script for word in (*COMMANDS, "--columns", "--threshold"))


def test_version(run):
    from samesense import __version__

    assert run("--version")[1].strip() == __version__


def test_names_of_files_that_are_compared_as_texts_are_said(run, folder, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.txt").write_text("a dog\n")
    (tmp_path / "u.txt").write_text("a cat\n")
    for command in ("similarity", "explain"):
        code, _, err = run(command, folder, "a b.txt", "u.txt")
        assert code == 0 and err.count("'a b.txt' and 'u.txt' are files, and their names are compared") == 1
        assert f"""samesense {command} MODEL "$(cat 'a b.txt')" "$(cat u.txt)";""" in err
        assert "line by line: paste 'a b.txt' u.txt | samesense similarity MODEL" in err
        assert "are files" not in run(command, folder, "a b.txt", "a dog")[2]
    caplog.clear()
    samesense.similarity(str(folder), "a b.txt", "u.txt")
    assert "are files" in caplog.text


def test_similarity_from_arguments_and_from_standard_input(run, folder):
    code, out, _ = run("similarity", folder, "a dog runs", "a dog runs")
    assert (code, out) == (0, "1.0000\n")
    code, out, _ = run("similarity", folder, "--json", stdin="a dog\ta cat\nthe sun\tthe rain\n")
    rows = [json.loads(line) for line in out.splitlines()]
    vectors = encode(build(str(folder), device="cpu"), ["a dog", "a cat"], normalize=True, precision="float32")
    assert [row["text2"] for row in rows] == ["a cat", "the rain"]
    assert rows[0]["score"] == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)


def test_an_origin_in_the_place_of_the_model(run, monkeypatch):
    def known(name, **options):
        assert name == "origin:origins/mine"
        score = lambda pairs: np.array([len(a) - len(b) for a, b in pairs], dtype=float)  # noqa: E731
        return made_model(score, name=name, protocol="lengths")

    monkeypatch.setattr("samesense.inference.models.load.load", known)
    assert run("similarity", "--origin", "origins/mine", "three", "two")[:2] == (0, "2.0000\n")
    assert run("similarity", "--origin", "origins/mine", stdin="a\tbb\n")[:2] == (0, "-1.0000\n")
    code, _, err = run("similarity", "a/model", "three", "two", "--origin", "origins/mine")
    assert code == 2 and "received the model 'a/model' too" in err
    code, _, err = run("similarity")
    assert code == 2 and "similarity needs a model" in err


def test_similarity_names_the_bad_line(run, folder):
    code, _, err = run("similarity", folder, stdin="a\tb\nonly one\n")
    assert (code, err) == (
        2,
        "samesense: error: Each line must hold two texts with one tab between them; "
        "standard input, row 2, has 1 fields: 'only one'.\n",
    )


def test_encode_keeps_order_in_every_format(run, folder, sentences, tmp_path):
    import pyarrow.parquet as pq

    texts = [*sentences, sentences[0]]
    (tmp_path / "in.txt").write_text("\n".join(texts) + "\n")
    expected = encode(build(str(folder), device="cpu"), texts, precision="float32")
    options = ["--precision", "float32"]
    for name in ("out.npy", "out.parquet", "out.jsonl"):
        assert run("encode", folder, tmp_path / "in.txt", "--output", tmp_path / name, *options)[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=2e-6)  # few texts, by NumPy
    table = pq.read_table(tmp_path / "out.parquet").to_pydict()
    assert table["text"] == texts
    np.testing.assert_array_equal(np.array(table["embedding"], dtype=np.float32), np.load(tmp_path / "out.npy"))
    code, out, err = run("encode", folder, "-", *options, stdin="\n".join(texts) + "\n")
    assert (code, err) == (0, "")
    assert out == (tmp_path / "out.jsonl").read_text()
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["text"] for row in rows] == texts
    np.testing.assert_allclose([row["embedding"] for row in rows], expected, atol=2e-6)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.txt", "out.jsonl", "out.npy", "out.parquet"]


def test_encode_refuses_what_would_shift_rows(run, folder, tmp_path):
    (tmp_path / "in.txt").write_text("one\n\nthree\n")
    code, _, err = run("encode", folder, tmp_path / "in.txt")
    assert code == 2
    assert err == (
        f"samesense: error: {tmp_path / 'in.txt'}: 1 of 3 rows cannot be used.\n"
        "  row 2, column 'text': the text is empty. Fix: give the text or delete the row.\n"
        "Correct these rows, or leave them out with --drop-bad-rows.\n"
    )
    code, _, err = run("encode", folder, tmp_path / "in.txt", "--output", tmp_path / "out.bin")
    assert code == 2
    assert "--output must end in .npy, .parquet, .jsonl, or --format must say one" in err


def test_encode_into_shards_refuses_flags_that_do_not_fit(run, tmp_path):
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    encode_it = ["encode", "no/model", tmp_path / "in.txt"]
    for words, message in (
        (["--output", tmp_path / "v", "--workers", "2"], "--workers is for shards; received 2 without --shard-size"),
        (["--output", tmp_path / "v", "--executor", "ray"], "--executor is for shards"),
        (["--output", tmp_path / "v.npy", "--shard-size", "1"], "--output is a folder; received"),
        (["--shard-size", "1"], "--output is a folder; received '-'"),
        (["--output", tmp_path / "v", "--shard-size", "1", "--format", "jsonl"], "npy or parquet; received jsonl"),
        (["--output", tmp_path / "v", "--shard-size", "0"], "shard_size: input should be greater than or equal to 1"),
        (["--output", tmp_path / "v", "--shard-size", "1", "--address", "auto"], "address is for the ray executor"),
    ):
        code, out, err = run(*encode_it, *words)
        assert (code, out, err.count("\n")) == (2, "", 1) and message in err, err
    assert not (tmp_path / "v").exists()


def test_a_message_is_written_once_whatever_a_library_does_to_the_root_logger(run, toy_pairs):
    logging.getLogger().addHandler(handler := logging.StreamHandler(io.StringIO()))
    try:
        words = ["train", toy_pairs / "train.tsv", "-o", "nowhere", "--model", "absent/model", "--dry-run"]
        assert "selection: " in run(*words)[2] and handler.stream.getvalue() == ""
    finally:
        logging.getLogger().removeHandler(handler)


def test_doctor(run, toy_pairs):
    code, out, _ = run("doctor", toy_pairs / "train.tsv", "--against", toy_pairs / "test.tsv")
    assert code == 0
    assert out.startswith("train.tsv: 160 scored pairs, labels 0 to 5")
    code, out, _ = run("doctor", toy_pairs / "train.tsv", "--json")
    assert json.loads(out)["rows"] == 160


def test_train_evaluate_resume(run, tiny_trunk, toy_pairs, tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text("learning_rate = 1e-3\nprecision = 'float32'\nepochs = 2\n")
    common = ["--model", tiny_trunk, "--config", config, "--test", toy_pairs / "test.tsv"]
    code, out, err = run(
        "train", toy_pairs / "train.tsv", "-o", tmp_path / "dry", *common, "--dry-run", "--batch-size", 8
    )
    assert code == 0
    plan = json.loads(out)
    assert (plan["batch_size"], plan["learning_rate"], plan["epochs"], plan["weight_decay"]) == (8, 1e-3, 2, 0.01)
    assert not (tmp_path / "dry").exists()
    code, out, err = run("train", toy_pairs / "train.tsv", "-o", tmp_path / "run", *common, "--json")
    assert code == 0, err
    *rows, verdict = [json.loads(line) for line in out.splitlines()]
    assert [row["metric"] for row in rows] == ["spearman", "pearson"] * 2
    assert (verdict["sets"][0]["dataset"], verdict["sets"][0]["end"]) == ("test.tsv", rows[2]["value"])
    assert "pairs held out" in err
    code, out, err = run(
        "evaluate", tmp_path / "run", "--data", toy_pairs / "test.tsv", toy_pairs / "dev.tsv", "--json"
    )
    assert code == 0, err
    judged = [json.loads(line) for line in out.splitlines()]
    assert [row["dataset"] for row in judged] == ["test.tsv", "test.tsv", "dev.tsv", "dev.tsv", "mean of 2"]
    assert judged[0]["value"] == pytest.approx(rows[2]["value"], abs=1e-6)
    assert judged[0]["low"] < judged[0]["value"] < judged[0]["high"]
    assert "mean pooling, float32" in judged[0]["protocol"]
    code, _, err = run("train", toy_pairs / "train.tsv", "-o", tmp_path / "run", *common)
    assert code == 2
    assert err.splitlines()[-1].endswith("Choose another output folder, or pass --overwrite to replace it.")


def test_evaluate_shows_subsets_on_request(run, tiny_trunk, toy_pairs, tmp_path):
    header, *rows = (toy_pairs / "test.tsv").read_text(encoding="utf-8").splitlines()
    lines = [f"{header}\tsubset", *(f"{row}\tpart {index % 3}" for index, row in enumerate(rows))]
    (tmp_path / "parts.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    call = ["evaluate", tiny_trunk, "--data", tmp_path / "parts.tsv", "--no-intervals"]
    code, out, err = run(*call, "--output", tmp_path / "results.jsonl")
    assert code == 0, err
    assert [line.split()[0] for line in out.splitlines()] == ["dataset", "---------", "parts.tsv"]
    assert "3 subsets: --subsets shows them\n" in err
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 12
    code, out, err = run(*call, "--subsets")
    assert len(out.splitlines()) == 2 + 6
    assert "--subsets" not in err


def test_evaluate_takes_folders_of_benchmarks_and_suites_and_ends_with_the_mean(run, tiny_trunk, toy_pairs, tmp_path):
    for name in ("sts12.test.tsv", "stsb.test.tsv", "stsb.dev.tsv"):
        (tmp_path / name).write_bytes((toy_pairs / "test.tsv").read_bytes())
    code, out, err = run("evaluate", tiny_trunk, "--data", tmp_path, "--suite", "sts,geometry")
    assert code == 0, err
    sts, geometry = (table.splitlines() for table in out.split("\n\n"))
    assert [line[7:21].strip() for line in sts[2:]] == ["sts12.test", "stsb.test", "sts-avg-2 of 7"]
    assert [line.count("[") for line in sts[2:]] == [2, 2, 1]
    assert [line.split()[1] for line in geometry[2:]] == ["stsb.dev"]
    assert "stsb.test has 60 rows instead of 1379" in err
    assert "protocol: cosine, mean pooling, float32" in err
    code, out, _ = run("evaluate", tiny_trunk, "--data", tmp_path / "stsb.test.tsv", "--columns", "s1,s2,score")
    assert code == 2  # a file of one's own is read as one says, whatever its name
    code, out, err = run("evaluate", tiny_trunk)
    assert (code, out) == (2, "")
    assert "Suite 'sts' needs --data: files, folders of benchmarks, or names of benchmarks." in err


def test_nli_takes_the_papers_nli_settings(run, tiny_trunk, tmp_path):
    rows = ["premise\thypothesis\tlabel"]
    for i in range(12):
        rows += [f"a dog {i}\ta cat {i}\t{label}" for label in ("entailment", "neutral", "contradiction")]
    (tmp_path / "nli.tsv").write_text("\n".join(rows) + "\n")
    code, out, err = run(
        "train", tmp_path / "nli.tsv", "-o", tmp_path / "run", "--model", tiny_trunk, "--dry-run", "--dev", "none"
    )
    assert code == 0, err
    assert (json.loads(out)["batch_size"], json.loads(out)["epochs"]) == (64, 1)
    assert "settings: cosent-nli" in err


def test_bad_rows_stop_training_with_file_and_row(run, tiny_trunk, tmp_path):
    (tmp_path / "bad.tsv").write_text("score\tsentence1\tsentence2\n1\ta\tb\nnan\tc\td\n3\te\t \n")
    code, out, err = run("train", tmp_path / "bad.tsv", "-o", tmp_path / "run", "--model", tiny_trunk)
    assert (code, out) == (2, "")
    assert "row 3, column 'score'" in err
    assert "row 4, column 'sentence2'" in err
    assert "--drop-bad-rows" in err


def test_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "samesense", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip()


def test_the_scale_can_be_given(run, tmp_path):
    rows = "".join(f"{i % 8}\ta {i}\tb {i}\n" for i in range(40))
    (tmp_path / "seven.tsv").write_text("score\tsentence1\tsentence2\n" + rows)
    code, out, _ = run("doctor", tmp_path / "seven.tsv", "--label-range", "0", "7", "--json")
    assert (code, json.loads(out)["scale"]) == (0, [0, 7])
    code, _, err = run("doctor", tmp_path / "seven.tsv", "--label-range", "0", "5")
    assert code == 2
    assert "outside" in err


def test_help_of_all_names_every_command_without_loading_one(run):
    code, out, _ = run("--help")
    assert code == 0
    for name in COMMANDS:
        assert name in out
        assert summary_of(name)[:30] in out


def test_the_doctor_reads_no_labels_of_other_data(run, tmp_path):
    nli, scored = tmp_path / "nli.tsv", tmp_path / "scored.tsv"
    nli.write_text("premise\thypothesis\tlabel\na\tb\t0\na\tc\t2\n")
    scored.write_text("score\tsentence1\tsentence2\n3.2\tB.\tA\n4.1\tx\ty\n")
    order = ("--label-order", "entailment,neutral,contradiction", "--json")
    code, out, err = run("doctor", nli, "--against", scored, nli, *order)
    assert (code, err) == (0, "")
    assert json.loads(out)["overlaps"] == {str(scored): 1, str(nli): 2}
    rows = "question1,question2,same\na,b,0\nc,d,1\n"
    (tmp_path / "train.csv").write_text(rows)
    (tmp_path / "test.csv").write_text("question1,question2\nD,c\n")
    columns = ("--columns", "question1,question2,same", "--json")
    code, out, _ = run("doctor", tmp_path / "train.csv", "--against", tmp_path / "test.csv", *columns)
    assert list(json.loads(out)["overlaps"].values()) == [1]


def test_help_of_training_is_short_and_a_method_has_its_own(run):
    code, out, _ = run("train", "--help")
    assert code == 0
    assert len(out.splitlines()) <= 100
    assert "--learning-rate" in out
    assert "--positives" not in out
    for words in (("--help", "--method", "supmpn"), ("--method", "supmpn", "-h")):
        code, out, _ = run("train", *words)
        assert code == 0
        assert "--positives" in out
        assert "--teacher-weights" not in out
    code, _, err = run("train", "--help", "--method", "nothing")
    assert (code, "received 'nothing'" in err) == (2, True)


def test_an_error_points_to_the_help_of_its_command(run):
    assert run("train", "x.tsv", "--nothing", "1")[2].rstrip().endswith("See: samesense train --help")
    assert run("index", "query")[2].rstrip().endswith("See: samesense index query --help")


def test_every_command_stands_in_one_group_of_the_help(run):
    out = run("--help")[1]
    positions = [out.index(f"─ {title} ─") for title in GROUPS]
    assert positions == sorted(positions)
    for name in COMMANDS:
        assert len(re.findall(rf"^│ {name} ", out, re.MULTILINE)) == 1


@pytest.mark.parametrize(
    "command", [("train", "nosuchfolder", "-o", "run"), ("evaluate", "default", "--data", "nosuch")]
)
def test_a_misspelt_name_is_no_sentence_to_train_on(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(*command)
    assert code == 2 and "nosuch" in err and "memory" not in err
    assert not (tmp_path / "run").exists()
