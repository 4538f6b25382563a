import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from samesense.cli.main import main
from samesense.encoder.assembly.build import build
from samesense.encoder.encode import encode
from samesense.encoder.maps.whitening import Whitening
from samesense.encoder.saving.storage import save
from samesense.locks import only_writer_of


def run(*arguments):
    """Return the exit code."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


def test_whiten_saves_a_folder_that_every_reader_opens(tiny_trunk, sentences, toy_pairs, tmp_path, capsys):
    source = save(build(str(tiny_trunk), device="cpu"), tmp_path / "model")
    (tmp_path / "more.txt").write_text("\n".join(sentences) + "\n")
    target = tmp_path / "white"
    assert run("whiten", source, toy_pairs / "dev.tsv", tmp_path / "more.txt", "--dim", 12, "-o", target) == 0
    # the mean over tokens after a fresh layer norm sums to zero: one direction of 32 is empty
    message = f"{target}: fitted on 160 texts, from 32 dimensions, 1 of them without variance, to 12\n"
    assert capsys.readouterr().err == message
    table = [line.split("\t") for line in (toy_pairs / "dev.tsv").read_text().splitlines()[1:]]
    texts = [text for _, *pair in table for text in pair] + sentences
    rows = encode(build(str(source), device="cpu"), texts, precision="float32")
    expected = Whitening.fit(rows, 12).apply(rows)
    encoded = SentenceTransformer(str(target), device="cpu").encode(texts)
    signs = np.sign((encoded * expected).sum(axis=0))
    np.testing.assert_allclose(encoded * signs, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("folder", "extra", "message"),
    [("out", ["--dim", 9], "2 of 32, from 3 embeddings; received 9"), (".", [], "is not empty")],
)
def test_whiten_refuses(tiny_trunk, tmp_path, capsys, folder, extra, message):
    (tmp_path / "t.txt").write_text("a dog\na cat\nthe sun\n")
    assert run("whiten", tiny_trunk, tmp_path / "t.txt", "--output", tmp_path / folder, *extra) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.txt"]


@pytest.mark.parametrize(("extra", "warned"), [([], True), (["--dim", 2], True), (["--dim", 1], False)])
def test_texts_that_are_too_few_for_the_dimensions_are_said(tiny_trunk, tmp_path, capsys, extra, warned):
    (tmp_path / "t.txt").write_text("a dog\na cat\nthe sun\n")
    assert run("whiten", tiny_trunk, tmp_path / "t.txt", "--output", tmp_path / "out", *extra) == 0
    assert ("warning: 3 texts are too few to whiten 2 dimensions" in capsys.readouterr().err) == warned
    three = encode(build(str(tmp_path / "out"), device="cpu"), ["a dog", "a cat", "the sun"], precision="float32")
    distances = [np.linalg.norm(three[one] - three[two]) for one, two in ((0, 1), (0, 2), (1, 2))]
    assert (np.ptp(distances) < 0.1) == warned


def test_a_file_with_a_space_in_its_name_is_no_text(tiny_trunk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my texts").write_text("a dog\na cat\nthe sun\n")
    assert run("whiten", tiny_trunk, "my texts", "--output", "out") == 0


def test_empty_texts_are_counted(tiny_trunk, tmp_path, capsys):
    (tmp_path / "t.txt").write_text("a dog\n\na cat\n \nthe sun\n")
    assert run("whiten", tiny_trunk, tmp_path / "t.txt", "--output", tmp_path / "out", "--dim", 2) == 0
    assert f"{tmp_path / 't.txt'}: left out: 2 empty of 5 texts\n" in capsys.readouterr().err


def test_a_second_whitening_of_a_folder_is_refused_at_the_start(tiny_trunk, tmp_path, capsys):
    (tmp_path / "t.txt").write_text("a dog\na cat\nthe sun\n")
    with only_writer_of(tmp_path / "out"):
        assert run("whiten", tiny_trunk, tmp_path / "t.txt", "--output", tmp_path / "out") == 2
    assert "one writer at a time" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.txt"]


def test_what_cannot_be_whitened_is_refused(tiny, tiny_trunk, toy_pairs, tmp_path, capsys):
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    config = BertConfig.from_pretrained(tiny_trunk, num_labels=1)
    BertForSequenceClassification(config).save_pretrained(tmp_path / "cross")
    AutoTokenizer.from_pretrained(tiny_trunk).save_pretrained(tmp_path / "cross")
    assert run("whiten", tmp_path / "cross", toy_pairs / "dev.tsv", "-o", tmp_path / "out") == 2
    assert "is a cross-encoder: it scores pairs" in capsys.readouterr().err
    tiny.truncate_dim = 8
    save(tiny, tmp_path / "cut")
    assert run("whiten", tmp_path / "cut", toy_pairs / "dev.tsv", "-o", tmp_path / "out") == 2
    assert "vectors are cut to their first 8 numbers" in capsys.readouterr().err
    assert run("whiten", tmp_path / "cut", toy_pairs / "dev.tsv", "-o", tmp_path / "cut" / "white") == 2
    assert "lies in the folder of the model that is read" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
