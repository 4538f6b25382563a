"""Passages fit, hold whole sentences, overlap, and together hold every sentence of the document."""

import random

import pytest

from samesense.data.extraction.blocks import Block, ExtractedText
from samesense.data.passages import check_sizes, cut_passages, estimate_tokens, split_by_punctuation
from samesense.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Am 3. Oktober kam Dr. Maß. Er blieb z. B. lang.", ["Am 3. Oktober kam Dr. Maß.", "Er blieb z. B. lang."]),
        (
            "It costs $5.00. It left at 10 p.m. on foot. „Wirklich?“ Nein!",
            [
                "It costs $5.00.",
                "It left at 10 p.m. on foot.",
                "„Wirklich?“",
                "Nein!",
            ],
        ),
        ("今天下雨。我没有带伞！你呢？“好的。”他说。", ["今天下雨。", "我没有带伞！", "你呢？", "“好的。”", "他说。"]),
        ("Это так. привет. См. рис. 5. Конец.", ["Это так. привет.", "См. рис. 5. Конец."]),
        ("वह गया। वह आया।", ["वह गया।", "वह आया।"]),
        ("¿Qué? Sí. Élan vital… Oui", ["¿Qué?", "Sí.", "Élan vital…", "Oui"]),
        ("no end at all", ["no end at all"]),
    ],
)
def test_sentences_end_where_punctuation_ends_them(text, sentences):
    pieces = split_by_punctuation(text)
    assert [piece.strip() for piece in pieces] == sentences
    assert "".join(pieces) == text


def made(generator):
    """Return a document of random sections, and its sentences."""
    blocks = []
    sentences = []
    for number in range(generator.randint(1, 6)):
        if generator.random() < 0.7:
            blocks.append(Block(f"Heading {number}", "heading", generator.randint(1, 3)))
        for _ in range(generator.randint(0, 3)):
            block_sentences = [
                f"Word{generator.randint(0, 9**6)} {'x ' * generator.randint(0, 12)}end." for _ in range(4)
            ]
            sentences += block_sentences
            blocks.append(Block(" ".join(block_sentences)))
    return ExtractedText(blocks, "Title"), sentences


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_and_all_fits(seed):
    generator = random.Random(seed)
    document, sentences = made(generator)
    size = generator.choice([20, 40, 100])
    overlap = generator.randint(0, size // 2)
    passages = list(cut_passages(document, estimate_tokens, chunk_size=size, chunk_overlap=overlap))
    joined = "\n".join(passage.text for passage in passages)
    assert all(sentence in joined for sentence in sentences)
    assert all(block.text in joined for block in document.blocks if block.kind == "heading")
    assert max(estimate_tokens([passage.text for passage in passages]), default=0) <= size
    assert [passage.number for passage in passages] == list(range(1, len(passages) + 1))
    assert list(cut_passages(document, estimate_tokens, chunk_size=size, chunk_overlap=overlap)) == passages


def test_neighbours_share_whole_sentences():
    text = " ".join(f"This is the sentence number n{number}." for number in range(12))
    passages = [p.text for p in cut_passages(ExtractedText([Block(text)]), chunk_size=24, chunk_overlap=8)]
    assert (
        passages[0] == "This is the sentence number n0. This is the sentence number n1. This is the sentence number n2."
    )
    assert passages[1].startswith("This is the sentence number n2. This is the sentence number n3.")
    apart = [p.text for p in cut_passages(ExtractedText([Block(text)]), chunk_size=24, chunk_overlap=0)]
    assert " ".join(apart) == text


def test_headings_stand_above_and_in_the_metadata():
    blocks = [
        Block("Manual", "heading", 1),
        Block("Care", "heading", 2, line=3),
        Block("Clean it.", line=5),
        Block("Filter", "heading", 3),
        Block("Change it.", page=2),
        Block("Last", "heading", 1),
    ]
    passages = list(cut_passages(ExtractedText(blocks, "Pump")))
    assert [(p.text, p.section) for p in passages] == [
        ("Manual\nCare\nClean it.", "Manual > Care"),
        ("Filter\nChange it.", "Manual > Care > Filter"),
        ("Last", ""),
    ]
    assert passages[0].metadata == {"passage": 1, "title": "Pump", "section": "Manual > Care", "line": 5}
    assert passages[1].metadata == {"passage": 2, "title": "Pump", "section": "Manual > Care > Filter", "page": 2}


@pytest.mark.parametrize("text", ["word " * 500, "字" * 500, "x" * 9000, "a" + " " * 5000 + "b"])
def test_what_has_no_sentences_is_divided(text):
    def count(texts):
        return [len(sentence) // 4 + 1 for sentence in texts]

    passages = [p.text for p in cut_passages(ExtractedText([Block(text)]), count, chunk_size=64, chunk_overlap=16)]
    assert max(count(passages)) <= 64
    whole = list(cut_passages(ExtractedText([Block(text)]), count, chunk_size=64, chunk_overlap=0))
    assert "".join("".join(p.text for p in whole).split()) == "".join(text.split())


def test_rows_and_code_stay_apart():
    blocks = [Block("A | 1. B", "row"), Block("C | 2", "row"), Block("if x:\n  y. Z", "code")]
    (passage,) = cut_passages(ExtractedText(blocks))
    assert passage.text == "A | 1. B\nC | 2\nif x:\ny. Z"


@pytest.mark.parametrize("sizes", [(8, 0), (64, 33), (64, -1)])
def test_sizes_that_cannot_be(sizes):
    with pytest.raises(ConfigError, match="chunk_"):
        check_sizes(*sizes)
