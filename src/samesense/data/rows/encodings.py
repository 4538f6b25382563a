"""Encodings other than UTF-8: recodes files whose encoding is given, and detects encodings for error messages."""

from __future__ import annotations

import codecs
import io
import re
import unicodedata
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import IO

from samesense.errors import DataError

CHUNK = 2**16
"""Bytes that are recoded at once, and that are inspected to detect an encoding."""

FEWEST_CHARACTERS = 24
"""Fewest two-byte characters to detect an encoding; a few decode in several encodings by chance."""

FEWEST_LETTERS = 60
"""Fewest Cyrillic letters to detect an encoding."""

ICONV = {
    "gb18030": "GB18030",
    "big5": "BIG5",
    "cp932": "CP932",
    "euc_jp": "EUC-JP",
    "cp949": "CP949",
    "cp1251": "CP1251",
    "koi8_r": "KOI8-R",
    "iso2022_jp": "ISO-2022-JP",
    "utf_16": "UTF-16",
    "utf_16_le": "UTF-16LE",
    "utf_16_be": "UTF-16BE",
    "utf_32": "UTF-32",
}
"""The iconv names of the encodings that can be detected, by their Python names."""

COMMON = (
    "cp1252 (Western Europe), cp1250 (Central Europe), cp1251 (Cyrillic), cp1254 (Turkish), gb18030 and big5 "
    "(Chinese), cp932 (Japanese), cp949 (Korean)"
)
"""Common encodings, for errors that cannot name the right one."""

_FAMILIES = {
    "iso2022_jp": ("iso2022_jp",),
    "gb18030": ("gb2312", "gbk", "gb18030", "hz"),
    "big5": ("big5", "big5hkscs", "cp950"),
    "cp932": ("cp932", "shift_jis", "shift_jis_2004", "shift_jisx0213"),
    "euc_jp": ("euc_jp", "euc_jis_2004", "euc_jisx0213"),
    "cp949": ("cp949", "euc_kr", "johab"),
    "cp1251": ("cp1251", "mac_cyrillic", "ptcp154", "kz1048"),
    "koi8_r": ("koi8_r", "koi8_u", "koi8_t"),
}
"""Encodings of charset-normalizer that decode most texts alike."""

_KANA = re.compile("[\u3041-\u3093\u30a1-\u30f6]")
_HIRAGANA = re.compile("[\u3041-\u3093]")
_CYRILLIC = re.compile("[\u0410-\u044f\u0401\u0451\u0404\u0454\u0406\u0456\u0407\u0457\u040e\u045e\u0490\u0491]")
_TYPOGRAPHIC = re.compile("[\u00a0\u00ab\u00bb\u2013\u2014\u2018-\u201e\u2026\u2116\u00b0\u00a7\u20ac]")
# a capital after a small letter, as in Cyrillic text decoded with the wrong encoding
_SWAPPED = re.compile("[\u0430-\u045f][\u0400-\u042f]")
# the most frequent letters of Russian and Ukrainian
_FREQUENT = frozenset("оаеинті")


def encoding_of(sample: bytes) -> str:
    """Return the Python name of the encoding of bytes if it is certain, else ``""``.

    UTF-16 and UTF-32 are detected by their byte order mark or the NULs of ASCII characters. A Chinese, Japanese or
    Korean encoding is certain if all characters decode, most are common in the language, no other encoding passes the
    same test, and charset-normalizer agrees; Cyrillic encodings likewise. Encodings of Latin letters are never certain:
    the bytes of ``é`` and ``ř`` are ``č`` and ``ø`` in another encoding.
    """
    return wide_encoding(sample) or _narrow_encoding(sample)


def wide_encoding(sample: bytes) -> str:
    """Return ``utf_16`` or ``utf_32`` by the byte order mark of bytes or the positions of NULs; ``""`` if neither.

    The second byte, or the first in big-endian order, of ASCII characters is NUL.
    """
    if sample.startswith((BOM_UTF32_LE, BOM_UTF32_BE)):
        return "utf_32"
    if sample.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf_16"
    # In UTF-16, one byte of each ASCII character is NUL, always on the same side.
    even = sample[::2].count(0)
    odd = sample[1::2].count(0)
    # NULs at even and odd positions alike are binary data and not UTF-16.
    if max(even, odd) < 2 or min(even, odd) > max(even, odd) / 8:
        return ""
    encoding = "utf_16_le" if odd > even else "utf_16_be"
    if _is_text(_decoded(sample, encoding)):
        return encoding
    return ""


def _is_text(text: str) -> bool:
    """Return whether characters are those of texts: most are letters, digits or spaces, and hardly one is a control."""
    kinds = Counter(unicodedata.category(character)[0] for character in text)
    written = kinds["L"] + kinds["M"] + kinds["N"] + kinds["Z"] + sum(map(text.count, "\t\r\n"))
    return 2 * written >= len(text) > 0 and not has_many_controls(text)


def has_many_controls(text: str) -> bool:
    """Return whether more than one of 50 characters is a control or not assigned; tabs and line ends are none."""
    controls = sum(unicodedata.category(character)[0] == "C" for character in text)
    return 50 * (controls - sum(map(text.count, "\t\r\n\ufeff"))) > len(text)


def is_binary(sample: bytes) -> bool:
    """Return whether bytes are of no text: NULs that no encoding of texts explains."""
    return b"\0" in sample and not wide_encoding(sample)


def _narrow_encoding(sample: bytes) -> str:
    natural = [name for name, is_natural in _TESTS.items() if is_natural(_decoded(sample, name))]
    # Text that is natural in several encodings proves none of them.
    if len(natural) != 1 or natural[0] not in ICONV:
        return ""
    # Loaded where bytes are not UTF-8 alone, of which there are few.
    from charset_normalizer import from_bytes

    best = from_bytes(_whole_lines(sample)).best()
    if best is not None and best.encoding in _FAMILIES[natural[0]]:
        return natural[0]
    return ""


def _whole_lines(sample: bytes) -> bytes:
    """Return bytes up to the last line feed, because a character may be cut off after it."""
    end = sample.rfind(b"\n") + 1
    return sample[:end] or sample


def _decoded(sample: bytes, encoding: str) -> str:
    """Return bytes decoded, ``""`` if they are not in this encoding; the last character may be cut off."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return ""


def _wide_characters(text: str) -> list[str]:
    return [character for character in text if character > "\x7f"]


def _share(characters: Sequence[str], encoding: str, leads: Sequence[tuple[int, int]], lowest_trail: int = 0) -> float:
    """Return the share of characters with a first byte in one of ``leads`` and a second byte from ``lowest_trail``."""
    if len(characters) < FEWEST_CHARACTERS:
        return 0
    pairs = [character.encode(encoding) for character in characters]
    in_range = (
        len(pair) == 2 and any(low <= pair[0] <= high for low, high in leads) and pair[1] >= lowest_trail
        for pair in pairs
    )
    return sum(in_range) / len(pairs)


def _is_simplified(text: str) -> bool:
    """Return whether nearly all characters are in the first level of GB 2312 or its punctuation, and none is kana."""
    characters = _wide_characters(text)
    # Korean text decodes as GB 18030 too.
    if _KANA.search(text) or _is_korean(_decoded(text.encode("gb18030"), "cp949")):
        return False
    return _share(characters, "gb18030", ((0xA1, 0xA3), (0xB0, 0xD7)), 0xA1) >= 0.9


def _is_traditional(text: str) -> bool:
    characters = _wide_characters(text)
    low = sum(pair[1] < 0xA1 for pair in (character.encode("big5") for character in characters) if len(pair) == 2)
    frequent = _share(characters, "big5", ((0xA1, 0xA3), (0xA4, 0xC6))) >= 0.95
    return frequent and low >= len(characters) / 10  # the second bytes of EUC encodings are never that low


def _is_japanese(text: str, encoding: str, leads: Sequence[tuple[int, int]], lowest_trail: int = 0) -> bool:
    """Return whether a text has hiragana, and nearly all characters are kana or common kanji by their first bytes."""
    characters = _wide_characters(text)
    # Japanese has hiragana in nearly every sentence, and Chinese none.
    has_hiragana = 5 * len(_HIRAGANA.findall(text)) >= len(characters)
    return has_hiragana and _share(characters, encoding, leads, lowest_trail) >= 0.9


def _is_korean(text: str) -> bool:
    characters = _wide_characters(text)
    return _share(characters, "cp949", ((0xA1, 0xA3), (0xB0, 0xC8)), 0xA1) >= 0.97


def _is_russian(text: str) -> bool:
    """Return whether all non-ASCII letters are Cyrillic, with natural frequencies and capitals only at word starts."""
    characters = _wide_characters(text)
    letters = _CYRILLIC.findall(text)
    other_characters = len(characters) - len(letters) - len(_TYPOGRAPHIC.findall(text))
    if len(letters) < FEWEST_LETTERS or other_characters or _SWAPPED.search(text):
        return False
    return sum(letter.casefold() in _FREQUENT for letter in letters) >= 0.4 * len(letters)


_TESTS: dict[str, Callable[[str], bool]] = {
    "gb18030": _is_simplified,
    "big5": _is_traditional,
    "cp932": partial(_is_japanese, encoding="cp932", leads=((0x81, 0x83), (0x88, 0x97))),
    "euc_jp": partial(_is_japanese, encoding="euc_jp", leads=((0xA1, 0xA5), (0xB0, 0xCF)), lowest_trail=0xA1),
    "cp949": _is_korean,
    "cp1251": _is_russian,
    "koi8_r": _is_russian,
    "iso8859_5": _is_russian,
    "mac_cyrillic": _is_russian,
    "cp866": _is_russian,
}
"""Tests of whether a decoded text is natural, by encoding; an encoding that is not in :data:`ICONV` only rules out
others."""


def in_utf8(stream: IO[bytes] | io.BufferedIOBase, encoding: str, source: str) -> IO[bytes]:
    """Return a stream recoded to UTF-8; reading it raises DataError for bytes that are not in the encoding."""
    return io.BufferedReader(_Recoded(stream, encoding, source), CHUNK)


class _Recoded(io.RawIOBase):
    def __init__(self, stream: IO[bytes] | io.BufferedIOBase, encoding: str, source: str) -> None:
        self._stream = stream
        self._encoding = encoding
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._held = b""  # recoded bytes that were not read yet
        self._started = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        # A chunk can decode to nothing if it ends within a character.
        while not self._held:
            raw = self._stream.read(CHUNK)
            self._check_start(raw)
            try:
                self._held = self._decoder.decode(raw, final=not raw).encode()
            except UnicodeError as error:
                raise DataError(
                    f"{self._source}: text must be in {self._encoding}, as `encoding` says, and this is not ({error}). "
                    "Give the encoding that it was written in."
                ) from error
            if not raw:
                break
        count = min(len(buffer), len(self._held))
        buffer[:count] = self._held[:count]
        self._held = self._held[count:]
        return count

    def _check_start(self, raw: bytes) -> None:
        """Raise DataError if the first bytes are certainly UTF-8 and another encoding is given."""
        if self._started:
            return
        self._started = True
        if is_utf8(raw, self._encoding):
            raise DataError(
                f"{self._source}: this is UTF-8, and `encoding` is {self._encoding}. The option is for all files of a "
                "command: convert those in other encodings to UTF-8, or leave it out."
            )


def is_utf8(raw: bytes, encoding: str) -> bool:
    """Return whether bytes are certainly UTF-8, and would not be valid in ``encoding`` except by chance."""
    if raw.startswith(BOM_UTF8):
        return True
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(raw)
    except UnicodeDecodeError:
        return False
    if encoding.startswith("utf"):
        return bool(raw) and b"\0" not in raw  # in UTF-16 and UTF-32 every line feed has a NUL
    wide = sum(character > "\x7f" for character in text)
    # Two bytes of UTF-8 are often a valid character of a double-byte encoding.
    double = encoding in {
        name for family in ("gb18030", "big5", "cp932", "euc_jp", "cp949") for name in _FAMILIES[family]
    }
    return wide >= (4 if double else 1)
