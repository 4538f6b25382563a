"""Splits documents into overlapping passages of whole sentences that fit a model's input length."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from samesense.data.extraction.blocks import Block, ExtractedText
from samesense.errors import ConfigError

CHUNK_SIZE = 128
"""Default of the most tokens of a passage."""

CHUNK_OVERLAP = 32
"""Default of the most tokens that neighbouring passages share."""

CountTokens = Callable[[list[str]], list[int]]
"""Maps texts to their numbers of tokens, without special tokens."""

_CLOSING = "\"'”’»›」』】）)\\]}*_"
_SENTENCE_END = re.compile(
    rf"(?P<wide>[。！？；｡]+[{_CLOSING}]*\s*)(?=\S)|(?P<stop>[.!?…؟।॥۔։።]+)[{_CLOSING}“]*\s+(?=\S)"
)
"""Possible sentence ends, in scripts without spaces between sentences and in those with spaces."""

_ABBREVIATIONS = frozenset(
    "abb abs al approx art bd bzgl bzw ca cf dr eq etc evtl fig ggf hr hrsg inkl inc jr kap ltd max min mr mrs ms nr "
    "no pp prof resp sec sog sr sra st str tab tel usw vgl vol vs zzgl "
    "см рис стр".split()
)
"""Abbreviations: a full stop after one of these words does not end a sentence."""

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|[^\w\s]")


@dataclass(frozen=True)
class Passage:
    """A piece of a document.

    Attributes:
        text: the heading above it, if there is one, and its sentences.
        number: position of the passage in its document, from 1.
        title: title of the document; empty without one.
        section: the headings above it, as in ``"Maintenance > Filter"``; empty without any.
        page: page on which it begins, for a PDF.
        line: line on which it begins, for a text or Markdown file.
    """

    text: str
    number: int
    title: str = ""
    section: str = ""
    page: int | None = None
    line: int | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        """The non-empty attributes other than the text, by name."""
        values = {
            "passage": self.number,
            "title": self.title,
            "section": self.section,
            "page": self.page,
            "line": self.line,
        }
        return {name: value for name, value in values.items() if value not in (None, "")}


@dataclass(frozen=True)
class _Unit:
    """The smallest piece of a passage: a sentence, a table row, a line of code, or a piece of a long one."""

    text: str
    separator: str  # the text before it, unless it begins a passage
    tokens: int
    block: Block


def estimate_tokens(texts: list[str]) -> list[int]:
    """Estimate the numbers of tokens of texts without a tokenizer: words, punctuation marks and CJK characters."""
    return [len(_WORD.findall(text)) for text in texts]


def check_sizes(chunk_size: int, chunk_overlap: int) -> None:
    """Raise ConfigError for invalid sizes of passages."""
    if chunk_size < 16:
        raise ConfigError(f"`chunk_size` is 16 tokens or more; received {chunk_size}.")
    if not 0 <= chunk_overlap <= chunk_size // 2:
        raise ConfigError(
            f"`chunk_overlap` is from 0 to half of `chunk_size`, which is {chunk_size}; received {chunk_overlap}."
        )


def cut_passages(
    document: ExtractedText,
    count_tokens: CountTokens = estimate_tokens,
    *,
    chunk_size: int = CHUNK_SIZE,
    chunk_overlap: int = CHUNK_OVERLAP,
) -> Iterator[Passage]:
    """Cut a document into passages.

    A passage ends where the next sentence would not fit, or at a heading; within a section, the next passage begins
    with its last sentences, up to ``chunk_overlap`` tokens. Sentences, table rows and lines of code are kept whole,
    unless one is longer than a passage. Each passage starts with the headings of its section.

    Args:
        document: the text of a file.
        count_tokens: maps texts to their numbers of tokens.
        chunk_size: most tokens of a passage.
        chunk_overlap: most tokens of the sentences that neighbouring passages share.

    Yields:
        Passages in order, none of them blank.

    Raises:
        ConfigError: for invalid sizes.

    Example:
        >>> text = ExtractedText([Block("Rain fell. The road was closed.")])
        >>> [passage.text for passage in cut_passages(text)]
        ['Rain fell. The road was closed.']
    """
    check_sizes(chunk_size, chunk_overlap)
    number = 0
    for section in _split_sections(document.blocks):
        path = " > ".join(heading.text for heading in section.headings)
        # Headings take up at most a quarter of a passage.
        above = _shorten_heading("\n".join(heading.text for heading in section.above), count_tokens, chunk_size // 4)
        room = chunk_size - (count_tokens([above])[0] if above else 0)
        for units in _pack_units(_split_units(section.blocks, count_tokens, room), room, chunk_overlap):
            number += 1
            text = _join_units(units)
            first = units[0].block
            if above:
                text = f"{above}\n{text}"
            yield Passage(text, number, document.title, path, first.page, first.line)


@dataclass(frozen=True)
class _Section:
    headings: list[Block]  # all headings above the section, the outermost first
    above: list[Block]  # the headings directly before its blocks, without text between them
    blocks: list[Block]


def _split_sections(blocks: Sequence[Block]) -> Iterator[_Section]:
    """Yield the sections of a document; a heading without text below it is a section, so that it can be found."""
    headings: list[Block] = []
    above: list[Block] = []
    body: list[Block] = []
    # None marks the end, so that the last section is yielded as well.
    for block in [*blocks, None]:
        if block is not None and block.kind != "heading":
            body.append(block)
            continue
        if body:
            yield _Section(list(headings), above, body)
            above = []
            body = []
        elif above and (block is None or block.level <= above[-1].level):
            yield _Section(headings[:-1], above[:-1], above[-1:])
            above = []
        if block is not None:
            # A heading ends the sections of its own level and below.
            headings = [heading for heading in headings if heading.level < block.level] + [block]
            above.append(block)


def _split_units(blocks: Sequence[Block], count_tokens: CountTokens, max_tokens: int) -> list[_Unit]:
    """Return the sentences, rows and lines of blocks, each of at most ``max_tokens`` tokens."""
    texts: list[tuple[str, str, Block]] = []
    for block in blocks:
        separator = "\n"
        for text in _split_block(block):
            texts.append((text.strip(), separator, block))
            if block.kind != "code":
                separator = " " if text[-1:].isspace() else ""
    # In one call, because a tokenizer is quicker with many texts.
    counts = count_tokens([text for text, _, _ in texts]) if texts else []
    units = []
    for (text, separator, block), tokens in zip(texts, counts, strict=True):
        # Only units longer than a passage are divided.
        if tokens <= max_tokens:
            units.append(_Unit(text, separator, tokens, block))
            continue
        for piece in _halve(text, count_tokens, max_tokens):
            units.append(_Unit(piece, separator, count_tokens([piece])[0], block))
            separator = " "
    return units


def _split_block(block: Block) -> list[str]:
    """Return the sentences of a block with the spaces after them, or its lines if it is code."""
    if block.kind in ("row", "heading"):
        return [block.text]
    if block.kind == "code":
        return [line for line in block.text.split("\n") if line.strip()]
    return split_by_punctuation(block.text)


def split_by_punctuation(text: str) -> list[str]:
    """Return the sentences of a text in any language, each with the spaces after it.

    A sentence ends at ``.!?…`` and similar marks of other scripts if a space follows, but no lower-case letter after
    it, and at ``。！？；``. A full stop after a short number, a single letter or an abbreviation such as Dr. does not
    end a sentence.
    """
    # Line breaks within a paragraph are no ends of sentences.
    flat = re.sub(r"\s+", " ", text)
    ends = [match.end() for match in _SENTENCE_END.finditer(flat) if match["wide"] or _ends_sentence(flat, match)]
    pieces = [flat[start:end] for start, end in zip([0, *ends], [*ends, len(flat)], strict=True)]
    return [piece for piece in pieces if piece.strip()]


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """Return whether a full stop or a similar mark, followed by a space, ends a sentence."""
    # A sentence begins with a capital, where its script has them.
    if text[match.end()].islower():
        return False
    if match["stop"] != ".":
        return True
    # Far enough back for any abbreviation.
    start = max(0, match.start() - 20)
    word = re.split(r"[\s(\[„“\"'-]", text[start : match.start()])[-1]
    last = word.rpartition(".")[2]  # B for z.B, m for p.m
    # Ordinals and days (3.), initials (J.) and abbreviations do not end a sentence.
    return not (word.isdigit() and len(word) < 4) and len(last) != 1 and last.lower() not in _ABBREVIATIONS


def _halve(text: str, count_tokens: CountTokens, max_tokens: int) -> list[str]:
    """Split a text in halves, at a space near the middle if there is one, until no piece is longer than ``max_tokens``.

    A piece of more than ``16 * max_tokens`` characters is split without counting its tokens.
    """
    pending = [text]
    pieces = []
    while pending:
        piece = pending.pop().strip()
        # Much longer pieces are halved uncounted: a token rarely has 16 characters.
        if len(piece) <= 1 or (len(piece) <= 16 * max_tokens and count_tokens([piece])[0] <= max_tokens):
            pieces.append(piece)
            continue
        middle = len(piece) // 2
        # At a space, if the second quarter of the piece has one.
        space = piece.rfind(" ", middle // 2, middle)
        if space > 0:
            middle = space
        # The first half comes off the stack first, so that pieces stay in order.
        pending += [piece[middle:], piece[:middle]]
    return [piece for piece in pieces if piece]


def _pack_units(units: Sequence[_Unit], max_tokens: int, overlap: int) -> Iterator[list[_Unit]]:
    """Yield runs of units of at most ``max_tokens`` tokens, each beginning with the last units of the run before."""
    run: list[_Unit] = []
    tokens = 0
    for unit in units:
        if run and tokens + unit.tokens > max_tokens:
            yield run
            run = _take_overlap(run, min(overlap, max_tokens - unit.tokens))
            tokens = sum(shared.tokens for shared in run)
        run.append(unit)
        tokens += unit.tokens
    if run:
        yield run


def _take_overlap(run: Sequence[_Unit], max_tokens: int) -> list[_Unit]:
    """Return the last units of a run, of at most ``max_tokens`` tokens, but never all units."""
    shared: list[_Unit] = []
    tokens = 0
    # Never all units, or the next passage would be the same again.
    for unit in reversed(run[1:]):
        tokens += unit.tokens
        if tokens > max_tokens:
            break
        shared.insert(0, unit)
    return shared


def _join_units(units: Sequence[_Unit]) -> str:
    first, *following = units
    return first.text + "".join(unit.separator + unit.text for unit in following)


def _shorten_heading(text: str, count_tokens: CountTokens, max_tokens: int) -> str:
    """Return a heading, shortened to its beginning if it has more than ``max_tokens`` tokens."""
    if not text or count_tokens([text])[0] <= max_tokens:
        return text
    return _halve(text, count_tokens, max_tokens)[0]
