"""Truncated and unknown text: counted while tokenizing, and reported once."""

import json

import numpy as np
import pytest

import samesense
from samesense.encoder.assembly.build import build
from samesense.encoder.encode import encode
from samesense.encoder.pieces import differ_unread
from samesense.encoder.windows import find_unread
from samesense.execution import unread
from samesense.execution.unread import READS_ALL, counted, log_unread_now, logs_unread
from tests.command import run_command

LONG = "the cat sleeps " * 40  # 120 words; the model reads 64 tokens
TEXTS = ["the cat", LONG, "\N{POUTING FACE}", "the dog \N{SLICE OF PIZZA}", f"{LONG} dog", "\u200b", "cat " * 62]


@pytest.fixture
def heard(monkeypatch):
    """Collect the warnings."""
    lines = []
    monkeypatch.setattr(unread.logger, "warning", lines.append)
    return lines


def figures(model, texts=TEXTS):
    with counted(apart=True) as counters:
        model.encode(texts)
    return counters.figures, counters.texts, counters.longest


@pytest.fixture
def loaded(tiny_trunk):
    return samesense.load(str(tiny_trunk), precision="float32")


def test_cut_and_unknown_texts_are_counted_by_every_backend(one_layer, exported_layer, loaded):
    expected = ({"cut": 2, "unknown": 2}, len(TEXTS), 64)
    assert figures(loaded) == expected
    assert figures(samesense.load(str(one_layer), precision="float32", deterministic=True)) == expected
    exported = samesense.load(exported_layer, backend="onnx")
    assert figures(exported) == expected
    assert find_unread(TEXTS, loaded.reading).figures == expected[0]
    assert find_unread(TEXTS, exported.reading).figures == expected[0]


def test_a_prompt_is_neither_cut_nor_known_text(tiny_trunk):
    loaded = samesense.load(str(tiny_trunk), precision="float32", prompt="the big red ")
    assert figures(loaded, ["cat " * 59, "\N{POUTING FACE}", "cat"])[0] == {"unknown": 1}
    assert figures(loaded, ["cat " * 60])[0] == {"cut": 1}


def test_vectors_that_were_kept_are_counted_too(tiny_trunk, tmp_path):
    for _ in range(2):
        loaded = samesense.load(str(tiny_trunk), precision="float32", cache=tmp_path)
        assert figures(loaded)[0] == {"cut": 2, "unknown": 2}


def test_a_tokenizer_that_cuts_from_the_left_reads_the_end(tiny):
    tiny.tokenizer.truncation_side = "left"
    loaded = samesense.load(tiny)
    same, other_pieces = loaded.reading.pieces_of([f"cat {LONG}", f"dog {LONG}"])
    assert same.cut and differ_unread(same, other_pieces)
    assert not differ_unread(*loaded.reading.pieces_of([f"{LONG} cat", f"{LONG} dog"]))


@pytest.mark.parametrize(
    ("first", "second", "differ"),
    [
        (LONG + "dog", LONG + "bird", True),  # differs after the truncation
        (LONG + "dog", LONG + "DOG", False),  # the tokenizer folds case, so the difference is read
        ("cat " + LONG, "dog " + LONG, False),  # all differences are read
        ("cat dog " + LONG, "dog " + LONG, False),
        (LONG, LONG + "dog", True),
        (LONG, "the cat", True),
        ("the \N{POUTING FACE}", "the \N{SLICE OF PIZZA}", True),
        ("the \N{POUTING FACE}", "the", True),
        ("\N{POUTING FACE} the", "the \N{POUTING FACE}", False),
        ("the \u200b cat", "the cat", True),  # this tokenizer reads it as an unknown word
        ("zzz cat", "ZZZ cat", False),
        ("\N{POUTING FACE}", "the \N{POUTING FACE}", True),  # all words of the first are unknown
    ],
)
def test_texts_differ_in_what_was_not_read(loaded, first, second, differ):
    assert differ_unread(*loaded.reading.pieces_of([first, second])) is differ


def test_a_pair_that_a_cross_encoder_cuts_is_counted(tiny_trunk):
    from sentence_transformers import CrossEncoder

    model = samesense.load(CrossEncoder(str(tiny_trunk), num_labels=1, max_length=32, device="cpu"))
    with counted(apart=True) as counters:
        model.scores([("the cat", "cat " * 40), ("the cat", "\N{POUTING FACE}"), ("cat " * 14, "dog " * 15)])
    assert counters.figures == {"cut": 1, "unknown": 1}
    assert counters.cut.example == "cat " * 40


def test_outside_a_command_it_is_said_once_a_model(tiny_trunk, heard):
    model = build(str(tiny_trunk), device="cpu")
    encode(model, [LONG])
    encode(model, [LONG, "dog " * 100])
    assert [line[:40] for line in heard] == ["1 of 1 texts are longer than the 64 toke"]


def test_counts_of_inner_calls_reach_the_command_once(loaded):
    @logs_unread
    def inner():
        loaded.encode([LONG])

    with counted("encode", apart=True) as counters:
        inner()
        inner()
        counters.name_rows(["cat", LONG], [4, 7])
    assert counters.figures == {"cut": 1}
    assert "such as row 8: 'the cat" in counters.lines()[0]
    assert "`chunk` reads them whole" in counters.lines()[0]
    assert set(READS_ALL) > {"encode", "dedup"}


@pytest.fixture
def here(tmp_path, monkeypatch, sentences):
    few = [text.strip() for text in (*TEXTS[:5], *sentences[:12])]
    (tmp_path / "texts.txt").write_text("\n".join(few) + "\n", encoding="utf-8")
    rows = [f"{i % 6}\t{few[i]}\t{few[-i - 1]}" for i in range(len(few))]
    (tmp_path / "pairs.tsv").write_text("score\tsentence1\tsentence2\n" + "\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_json_says_which_texts_were_not_read(here, capsys, tiny_trunk):
    _, out, _ = run_command(capsys, "similarity", tiny_trunk, LONG, "\N{POUTING FACE}", "--json")
    assert json.loads(out)["unread"] == {"text1": "cut", "text2": "unknown"}
    _, out, _ = run_command(capsys, "similarity", tiny_trunk, "the cat", "the dog", "--json")
    assert "unread" not in json.loads(out)
    _, out, _ = run_command(capsys, "evaluate", tiny_trunk, "--data", "pairs.tsv", "--json")
    assert all(json.loads(line)["unread"] == {"cut": 2, "unknown": 1} for line in out.splitlines())
    _, out, err = run_command(
        capsys, "dedup", "texts.txt", "--model", tiny_trunk, "--threshold", "0.999", "--output", "kept.txt", "--json"
    )
    printed = json.loads(out)
    assert (printed["removed"], printed["unmerged"], printed["unread"]) == (0, 2, {"cut": 2, "unknown": 1})
    assert "2 texts are close to others that differ from them in what the model did not read" in err


def test_shards_name_the_row_of_an_example_also_if_they_are_there_already(here, capsys, tiny_trunk):
    for _ in range(2):
        code, _, err = run_command(
            capsys, "encode", tiny_trunk, "texts.txt", "--shard-size", "2", "--workers", "1", "--output", "shards"
        )
        assert code == 0, err
        assert (
            f"2 of 17 texts are longer than the 64 tokens that the model reads, and the rest of each was left out, "
            f"such as row 2: {LONG[:57] + '...'!r}" in err
        )
        assert f"1 of 17 texts hold nothing that the model knows, such as row 3: {TEXTS[2]!r}" in err


def test_chunks_read_to_the_end(here, capsys, tiny_trunk):
    (here / "long.txt").write_text(f"{LONG}dog\n{LONG}dog\n{LONG}DOG\n{LONG}bird\n", encoding="utf-8")
    model = samesense.load(str(tiny_trunk), precision="float32")
    deduplicated = samesense.dedup("long.txt", model=model, threshold=0.999)
    assert (deduplicated.kept.tolist(), deduplicated.unmerged.tolist()) == ([0, 3], [0, 3])
    read = samesense.dedup("long.txt", model=model, threshold=0.9999999, chunk="mean")
    assert (read.kept.tolist(), read.unmerged.tolist()) == ([0, 3], [])
    assert np.isclose(samesense.dedup("long.txt", model=model, threshold=-1.0, chunk="mean").scores[2], 1.0)
    assert run_command(capsys, "dedup", "long.txt", "--model", tiny_trunk, "--chunk", "max", "--json")[0] == 2


def test_a_server_says_it_at_the_first_text_and_at_its_end(loaded, heard):
    with counted("serve"):
        loaded.encode(["cat"])
        assert not heard
        loaded.encode([LONG])
        assert len(heard) == 1
        loaded.encode([f"dog {LONG}"])
        assert len(heard) == 1
    assert [line[:32] for line in heard] == ["1 of 2 texts are longer than the", "2 of 3 texts are longer than the"]


def test_what_was_said_is_not_said_again_unless_it_is_more(loaded, heard):
    with counted("serve"):
        loaded.encode([LONG])
        loaded.encode(["cat"])
    assert len(heard) == 1
    with counted("label"):
        with counted("label"):
            loaded.encode([LONG])
            log_unread_now()
        assert len(heard) == 2
    assert len(heard) == 2


def test_training_texts_are_counted_each_once(tiny_trunk, toy_pairs, tmp_path, capsys):
    rows = [f"{i % 6}\t{LONG} {i % 4}\tthe cat {i}" for i in range(40)]
    (tmp_path / "long.tsv").write_text("score\tsentence1\tsentence2\n" + "\n".join(rows) + "\n")
    code, _, err = run_command(
        capsys,
        "train",
        tmp_path / "long.tsv",
        "--model",
        tiny_trunk,
        "--dev",
        toy_pairs / "dev.tsv",
        "--max-steps",
        "12",
        "--batch-size",
        "10",
        "--output",
        tmp_path / "run",
        "--max-seq-length",
        "64",
    )
    assert code == 0, err
    assert "4 of " in err and "longer than the 64 tokens that the model reads" in err


def test_windows_are_mined_to_their_ends(tiny_trunk):
    texts = [f"{LONG}dog", f"{LONG}bird", f"{LONG}dog dog"]
    model = samesense.load(str(tiny_trunk), precision="float32")
    assert samesense.mine(texts, model=model, top=1)[0].score == pytest.approx(1.0, abs=1e-6)
    assert samesense.mine(texts, model=model, top=1, chunk="mean")[0].score < 1.0 - 1e-6


def test_static_models_and_word_vectors_keep_unknown_words_apart(tmp_path):
    (tmp_path / "words.vec").write_text("the 1 0\ncat 0 1\ndog 1 1\n")
    texts = ["the cat Zurich", "the cat Basel", "The CAT", "Zurich", "Basel"]
    deduplicated = samesense.dedup(texts, model=f"words:{tmp_path / 'words.vec'}", threshold=0.99)
    assert deduplicated.kept.tolist() == [0, 1, 2, 3, 4]
    assert figures(samesense.load(f"words:{tmp_path / 'words.vec'}"), texts)[0] == {"unknown": 2}


def test_signs_that_a_tokenizer_takes_for_control_characters_are_not_read():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    from samesense.encoder.tokens import reading_by

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "love": 1}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    reading = reading_by(tokenizer, prompt="", special=False, longest=None)
    texts = ["lo\ue000ve", "lo\ue001ve", "love \ue000", "love", "lo\u00adve"]
    first, second, third, plain, soft = reading.pieces_of(texts)
    assert differ_unread(first, second) and differ_unread(third, plain) and differ_unread(first, plain)
    assert not differ_unread(plain, soft)
