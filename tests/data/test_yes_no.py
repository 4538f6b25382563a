"""Words for yes and no in many languages are labels, if a column has both words of a pair."""

import itertools
import random
import unicodedata

import pytest

import samesense
from samesense.data import read_pairs
from samesense.data.conventions.yes_no import LANGUAGES, are_answers, fold, translate_yes_no
from samesense.data.kinds import detect_kind
from samesense.errors import DataError
from tests.command import run_command


def labels_of(words):
    rows = [{"text1": f"a {row}", "text2": f"b {row}", "label": word} for row, word in enumerate(words)]
    return read_pairs(rows).labels


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ("ja", "nein"),
        ("oui", "non"),
        ("sí", "no"),
        ("sì", "no"),
        ("si", "no"),
        ("sim", "não"),
        ("SIM", "NAO"),
        ("WAHR", "FALSCH"),
        ("VRAI", "FAUX"),
        ("VERDADERO", "FALSO"),
        ("VERO", "FALSO"),
        ("ИСТИНА", "ЛОЖЬ"),
        ("PRAWDA", "FAŁSZ"),
        ("DOĞRU", "YANLIŞ"),
        ("да", "нет"),
        ("是", "否"),
        ("对", "错"),
        ("はい", "いいえ"),
        ("예", "아니요"),
        ("evet", "HAYIR"),
        ("tak", "nie"),
        ("ano", "ne"),
        ("ja", "nee"),
        ("ja", "nej"),
        ("ναι", "ΌΧΙ"),
        ("taip", "ne"),
        ("نعم", "لا"),
        ("हाँ", "नहीं"),
        ("J", "N"),
        ("O", "N"),
        ("ＹＥＳ", "ＮＯ"),
        ("○", "×"),
        ("☑", "☐"),
    ],
)
def test_yes_and_no_are_labels_however_they_are_typed(yes, no):
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        words = [unicodedata.normalize(form, word) for word in (yes, no, f" {yes.lower()}", no.upper())]
        assert labels_of(words) == [1.0, 0.0, 1.0, 0.0]


def test_every_pair_of_a_language_is_read_or_refused_for_another_that_contradicts_it():
    for language in LANGUAGES:
        for yes, no in itertools.product(language.yes, language.no):
            contradicted = any(yes in answers.no and no in answers.yes for answers in LANGUAGES)
            if contradicted:
                with pytest.raises(DataError, match="may mean yes or no"):
                    translate_yes_no([yes, no], "x")
            else:
                assert translate_yes_no([yes, no], "x") == ["yes", "no"], language.language


def test_columns_of_several_languages_are_read_right_or_refused():
    """No word is read as its opposite, in any combination, where the column has both words of the language."""
    draw = random.Random(0)
    outcomes = {"read": 0, "refused": 0}
    for seed in range(2_000):
        draw.seed(seed)
        languages = draw.sample(LANGUAGES, draw.randint(1, 3))
        meant = [
            (word, answer)
            for language in languages
            for answer, words in (("yes", language.yes), ("no", language.no))
            for word in draw.sample(sorted(words), 1)
        ]
        try:
            read = translate_yes_no([word for word, _ in meant], "x")
        except DataError:
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        assert read == [answer for _, answer in meant], meant
    assert outcomes["read"] > 10 * outcomes["refused"] > 0


@pytest.mark.parametrize("third", ["vielleicht", "peut-être", "?", "weiß nicht", "2", "no way"])
def test_a_third_word_is_refused_with_its_row(third):
    with pytest.raises(DataError, match=r"row 3, column 'label': label"):
        labels_of(["ja", "nein", third, "ja"])


def test_rows_without_names_are_pairs_with_labels_in_words_too():
    rows = [("ein Haus", "das Haus", "ja"), ("Hund", "Katze", "nein"), ("a", "b", "vielleicht"), ("a", "b", "ja")]
    with pytest.raises(DataError, match="row 3, column 'score': label 'vielleicht' is not"):
        read_pairs(rows)
    assert read_pairs([*rows[:2], rows[3]]).labels == [1.0, 0.0, 1.0]


def test_an_empty_cell_among_words_has_no_label_and_a_cross_beside_nothing_is_refused():
    assert labels_of(["ja", "nein", "", "-"]) == [1.0, 0.0]
    for mark in ("x", "X", "✓"):
        with pytest.raises(DataError, match="may be a no, or a row without a label"):
            labels_of([mark, "", mark])
    for words in (["o", "x"], ["Ｘ", "Ｏ"]):
        with pytest.raises(DataError, match="may mean yes or no"):
            labels_of(words)


def test_words_without_their_opposite_are_no_labels():
    with pytest.raises(DataError, match="row 1, column 'label': label 'ja' is not"):
        labels_of(["ja", "no", "no"])
    with pytest.raises(DataError, match=r"every label is 1\.0"):
        labels_of(["ja", "Ja"])


def test_a_column_of_answers_is_no_column_of_texts(tmp_path):
    path = tmp_path / "Prüfung neu.csv"
    path.write_text("Frage A;Frage B;label\nein Haus;das Gebäude;ja\nHund;Katze;nein\n", encoding="utf-8-sig")
    assert detect_kind(path).kind == "pairs"
    assert samesense.read(path).labels == [1.0, 0.0]


def test_positives_beside_a_judgement_in_words_are_refused():
    rows = [{"anchor": f"a {row}", "positive": f"b {row}", "relevant": "ja" if row % 2 else "nein"} for row in range(6)]
    with pytest.raises(DataError, match="seems to say how well the texts of a row belong together"):
        detect_kind(rows)


def test_commands_read_them(capsys, tmp_path):
    path = tmp_path / "Étiquettes françaises.csv"
    rows = "".join(f"phrase {row};texte {row};{'oui' if row % 3 else 'NON'}\n" for row in range(30))
    path.write_text(f"text1;text2;label\n{rows}", encoding="utf-8")
    code, out, err = run_command(capsys, "doctor", path)
    assert code == 0, err
    assert "30 binary pairs" in out and "0: 10, 1: 20" in out


def test_folding():
    assert len({fold(word) for word in ("HAYIR", "hayır", "Hayir", "ＨＡＹＩＲ")}) == 1
    assert are_answers(["tak", "NIE"]) and not are_answers(["tak", "nie", "może"])
