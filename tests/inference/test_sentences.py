"""Documents compared by their sentences: the definition in plain loops, what matches, and the commands."""

import json

import numpy as np
import pytest

import samesense
from samesense.cli.commands.explain import explain as explain_command
from samesense.cli.commands.similarity import similarity as similarity_command
from samesense.errors import ConfigError, DataError
from samesense.inference.models.model import Model
from samesense.inference.sentences import match_sentences, sentence_scores

ONE = "一个人在吃饭。外面下雨了。\n\n狗在跑！"  # Chinese is split by a plain rule
OTHER = "外面下雨了。狗在睡觉。"
SENTENCES = (["一个人在吃饭。", "外面下雨了。", "狗在跑！"], ["外面下雨了。", "狗在睡觉。"])
ENGLISH = "Dr. Smith eats. It rains outside."


def like(a, b):
    """Share of equal characters, not symmetric."""
    return sum(character in b for character in a) / len(a)


MODEL = Model(score=lambda pairs: np.array([like(a, b) for a, b in pairs]), name="characters")


def test_scores_are_those_of_plain_loops():
    first, second = SENTENCES
    forth = [max(like(a, b) for b in second) for a in first]
    back = [max(like(a, b) for a in first) for b in second]
    expected = (sum(forth) / 3 + sum(back) / 2) / 2
    matches = match_sentences(MODEL, [(ONE, OTHER), (OTHER, OTHER), (ONE, ONE)])
    assert [text_matches.score for text_matches in matches] == pytest.approx([expected, 1.0, 1.0])
    assert [match.score for match in matches[0].first] == forth and [match.score for match in matches[0].second] == back
    assert [match.text for match in matches[0].first] == first
    assert [match.best for match in matches[0].first][1] == "外面下雨了。" == matches[0].second[0].best
    np.testing.assert_array_equal(sentence_scores(MODEL, [(ONE, OTHER)]), [matches[0].score])


def test_a_cosine_gives_the_same_in_either_order(tiny_trunk):
    model = samesense.load(str(tiny_trunk), precision="float32", device="cpu")
    pytest.importorskip("nupunkt")
    first, second = "A dog runs. The child reads a book.", "A woman sings in the rain. A cat sleeps. A dog runs."
    there, back = (float(sentence_scores(model, [pair])[0]) for pair in ((first, second), (second, first)))
    assert there == pytest.approx(back, abs=1e-12) and there < 1 - 1e-6


def test_commands_and_functions_say_the_same(tiny_trunk, capsys):
    options = {"precision": "float32"}
    name = str(tiny_trunk)
    score = samesense.similarity(name, ONE, OTHER, by="sentences", **options)
    assert samesense.similarity(name, [(ONE, OTHER)], by="sentences", **options).tolist() == [score]
    similarity_command(name, ONE, OTHER, by="sentences", **options)
    assert capsys.readouterr().out == f"{score:.4f}\n"
    explain_command(name, ONE, OTHER, by="sentences", **options)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{score:.4f}  by the best matches of sentences"
    assert [line.split("  ")[1] for line in printed if "  =  " in line] == [*SENTENCES[0], *SENTENCES[1]]
    explain_command(name, ONE, OTHER, by="sentences", json=True, **options)
    output = json.loads(capsys.readouterr().out)
    assert output["score"] == score and [match["text"] for match in output["second"]] == SENTENCES[1]


def test_what_cannot_be_compared_is_said(tiny_trunk):
    with pytest.raises(DataError, match="one is empty"):
        match_sentences(MODEL, [(ONE, " \n")])
    with pytest.raises(ConfigError, match="calibration is that of whole texts"):
        samesense.similarity(str(tiny_trunk), ONE, OTHER, by="sentences", calibrated=True)
    with pytest.raises(ConfigError, match="calibration is that of whole texts"):
        similarity_command(str(tiny_trunk), ONE, OTHER, by="sentences", threshold="calibrated")


def test_english_is_split_by_a_model_that_knows_abbreviations():
    pytest.importorskip("nupunkt")
    matches = match_sentences(MODEL, [(ENGLISH, ENGLISH)])[0]
    assert [match.text for match in matches.first] == ["Dr. Smith eats.", "It rains outside."]


def test_of_equal_sentences_the_same_one_is_the_best():
    flat = Model(score=lambda pairs: np.ones(len(pairs)), name="all alike")
    (matches,) = match_sentences(flat, [("狗在跑！外面下雨了。", "外面下雨了。狗在跑！")])
    assert [match.best for match in matches.first] == [match.text for match in matches.first]
