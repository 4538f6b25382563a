"""Words for yes and no, true and false, in many languages, and the translation of label columns with such words.

A column is read in a language if it has a yes and a no of that language. So a word that means yes in one language and
no in another is settled by the other words of the column, or the column is refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from samesense.errors import DataError


class Answers(NamedTuple):
    """The words of one language, or one set of marks, normalized by :func:`fold`."""

    language: str
    yes: frozenset[str]
    no: frozenset[str]


_TABLE = """
English: yes, true, y, t | no, false, n, f
German: ja, wahr, richtig, stimmt, zutreffend, gleich, j, w | nein, falsch, unzutreffend, ungleich, verschieden, n, f
French: oui, vrai, identique, pareil, o, v | non, faux, différent, différente, n, f
Spanish: sí, verdadero, cierto, igual, s, v | no, falso, distinto, diferente, n, f
Portuguese: sim, verdadeiro, igual, s, v | não, falso, diferente, n, f
Italian: sì, vero, uguale, s, v | no, falso, diverso, n, f
Catalan: sí, cert, s | no, fals, n
Romanian: da, adevărat | nu, fals
Dutch: ja, waar, juist, hetzelfde, j | nee, neen, onwaar, onjuist, verschillend, n
Swedish: ja, sant, sann, lika, j | nej, falskt, falsk, olika, n
Danish: ja, sand, sandt, ens, j | nej, falsk, falskt, forskellig, n
Norwegian: ja, sann, sant, lik, j | nei, usann, usant, falsk, ulik, n
Icelandic: já, satt | nei, ósatt
Finnish: kyllä, tosi, sama | ei, epätosi, eri
Estonian: jah, tõene | ei, väär
Latvian: jā, patiess | nē, aplams
Lithuanian: taip, tiesa | ne, netiesa
Polish: tak, prawda, t | nie, fałsz, n
Czech: ano, pravda | ne, nepravda
Slovak: áno, pravda | nie, nepravda
Slovenian: da, drži | ne, napačno
Croatian: da, istina, točno, tačno | ne, laž, netočno, netačno
Serbian: да, истина, тачно | не, лаж, нетачно
Bulgarian: да, истина, вярно | не, лъжа, невярно
Russian: да, истина, верно, правда, д | нет, ложь, неверно, н
Ukrainian: так, істина, правда | ні, хибність, неправда
Greek: ναι, αληθές, αληθής, σωστό | όχι, ψευδές, ψευδής, λάθος
Hungarian: igen, igaz | nem, hamis
Turkish: evet, doğru, e | hayır, yanlış, h
Azerbaijani: bəli, doğru | xeyr, yalan
Chinese: 是, 对, 對, 真, 相同, 一样, 相似 | 否, 不是, 错, 錯, 假, 不同, 不相同, 不一样, 不相似
Japanese: はい, 真, 同じ | いいえ, 偽, 違う
Korean: 예, 네, 참, 같음 | 아니요, 아니오, 거짓, 다름
Vietnamese: có, đúng | không, sai
Indonesian: ya, benar | tidak, salah
Thai: ใช่, จริง | ไม่ใช่, ไม่, เท็จ
Hindi: हाँ, हां, सही, सत्य | नहीं, गलत, असत्य
Bengali: হ্যাঁ, সত্য | না, মিথ্যা
Arabic: نعم, صحيح, صواب | لا, خطأ
Hebrew: כן, נכון, אמת | לא, שגוי, שקר
Persian: بله, بلی, آری, درست | خیر, نه, نادرست
Urdu: ہاں, درست | نہیں, غلط
Swahili: ndiyo, kweli | hapana, uongo
marks: ✓, ✔, ✅ | ✗, ✘, ❌
boxes: ☑ | ☐
circle and cross: ○, ◯ | ×, ✕
thumbs: 👍 | 👎
circle and cross in letters: o | x
cross and circle in letters: x | o
"""
"""One language a line. The last two contradict each other: O and X may be a circle (yes) and a cross (no), as in Korea
and Japan, or a ticked box and an empty one. So a column of them is refused."""

_ACCENTS = re.compile("[\u0300-\u036f\ufe0e\ufe0f\u0640]")
"""Accents of Latin, Greek and Cyrillic letters, variation selectors, and the Arabic tatweel."""


def fold(text: str) -> str:
    """Return a word without differences of case, width, Unicode form and accents.

    >>> fold(" Sí "), fold("ＮＯ"), fold("HAYIR") == fold("hayır")
    ('si', 'no', True)
    """
    # Twice: case is folded on composed letters, accents are taken off decomposed ones.
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).strip().casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", letters)).replace("ı", "i")


def _read_table() -> Iterator[Answers]:
    for line in _TABLE.strip().splitlines():
        language, words = line.split(": ")
        yes, no = words.split(" | ")
        yield Answers(language, frozenset(map(fold, yes.split(", "))), frozenset(map(fold, no.split(", "))))


LANGUAGES = tuple(_read_table())


def translate_yes_no(cells: Sequence[object], location: str) -> Sequence[object]:
    """Return the cells of a label column with words for yes and no in other languages replaced by ``yes`` and ``no``.

    A language counts if the column has a yes and a no of it. A column with only one such word is translated if all
    languages with the word agree. Other cells are unchanged.

    Args:
        cells: all cells of the column.
        location: name of the column in messages.

    Raises:
        DataError: if a word has different meanings in two languages, and the column has a yes and a no of both.
    """
    # Each different cell once, as labels repeat.
    texts = {cell for cell in cells if isinstance(cell, str) and len(cell) <= LONGEST_WORD}
    words = {text: fold(text) for text in texts}
    values = _values(set(words.values()), location)
    if not values:
        return cells
    return [values.get(words[cell], cell) if isinstance(cell, str) and cell in words else cell for cell in cells]


def are_answers(texts: Iterable[str]) -> bool:
    """Return whether all texts of a column are words for yes and no, with both words of each language.

    >>> are_answers(["ja", "nein", "ja"]), are_answers(["ja", "non"]), are_answers(["ja"])
    (True, False, False)
    """
    words = set(map(fold, texts))
    languages = _languages_of(words)
    return bool(languages) and words <= frozenset[str]().union(*(language.yes | language.no for language in languages))


LONGEST_WORD = 40
"""Most characters of a word for yes or no, so that long texts are not compared."""


def _languages_of(words: set[str]) -> list[Answers]:
    """Return the languages whose yes and no both occur in a column."""
    return [language for language in LANGUAGES if language.yes & words and language.no & words]


def _values(words: set[str], location: str) -> dict[str, str]:
    """Return ``yes`` or ``no`` for each known word of a column."""
    languages = _languages_of(words)
    certain = bool(languages)
    # Without both a yes and a no, a word is used only if all languages agree on it.
    if not certain and words:
        languages = [language for language in LANGUAGES if words <= language.yes or words <= language.no]
    yes = frozenset[str]().union(*(language.yes for language in languages)) & words
    no = frozenset[str]().union(*(language.no for language in languages)) & words
    ambiguous = sorted(yes & no)
    if ambiguous and not certain:
        return {}
    if ambiguous:
        listed = " and ".join(map(repr, ambiguous))
        raise DataError(
            f"{location} holds {listed}, which may mean yes or no, and nothing in the column settles it. Write 1 for "
            "a pair that belongs together, and 0 for one that does not."
        )
    return {**dict.fromkeys(yes, "yes"), **dict.fromkeys(no, "no")}
