import pytest

from samesense.data.section_triplets import draw_section_triplets
from samesense.errors import ConfigError, DataError


def document(name, sizes):
    return [[f"{name}, section {s}, sentence {i}" for i in range(size)] for s, size in enumerate(sizes)]


DOCUMENTS = [document("first", [3, 1, 5]), document("second", [2, 2]), document("alone", [9])]


def section_of(document, sentence):
    return next(index for index, section in enumerate(document) if sentence in section)


def test_triplets_follow_the_rule():
    triplets = draw_section_triplets(DOCUMENTS, per_document=4, seed=1)
    assert len(triplets) == 8  # the document of one section has none
    for anchor, positive, negative in triplets:
        source_document = DOCUMENTS[0] if anchor.startswith("first") else DOCUMENTS[1]
        assert anchor != positive
        assert (
            section_of(source_document, anchor)
            == section_of(source_document, positive)
            != section_of(source_document, negative)
        )


def test_no_anchor_twice_and_no_more_than_there_are():
    anchors = [anchor for anchor, _, _ in draw_section_triplets(DOCUMENTS, per_document=100)]
    assert len(anchors) == len(set(anchors)) == 12  # a section of one sentence has no anchor


def test_everything_allowed_is_drawn_about_equally_often():
    drawn = [triplet for seed in range(900) for triplet in draw_section_triplets([DOCUMENTS[0]], 1, seed)]
    for column, expected in ((0, 8), (1, 8), (2, 9)):
        counts = {}
        for triplet in drawn:
            counts[triplet[column]] = counts.get(triplet[column], 0) + 1
        assert len(counts) == expected
        assert max(counts.values()) < 900 * 0.25
    last = {positive[-1] for anchor, positive, _ in drawn if anchor.endswith("section 2, sentence 0")}
    assert last == {"1", "2", "3", "4"}


def test_seed_and_position_fix_the_draws():
    same = draw_section_triplets(DOCUMENTS, 2, seed=3)
    assert draw_section_triplets(DOCUMENTS, 2, seed=3) == same
    assert draw_section_triplets(DOCUMENTS, 2, seed=4) != same
    assert draw_section_triplets([DOCUMENTS[0], document("other", [4, 4])], 2, seed=3)[:2] == same[:2]


def test_repeated_sentences_are_never_positive_and_negative_at_once():
    repeated = [["a", "a", "b"], ["b", "c"], ["a", "d"]]
    for seed in range(60):
        for anchor, positive, negative in draw_section_triplets([repeated], 9, seed):
            assert len({anchor, positive, negative}) == 3
            assert any({anchor, positive} <= set(section) and negative not in section for section in repeated)


@pytest.mark.parametrize("documents", [[], [[["a", "b"]]], [[["a"], ["b"]]], [[["a", "b"], ["b", "a"]]], [[[], []]]])
def test_refuses_documents_without_a_triplet(documents):
    with pytest.raises(DataError, match=f"none of {len(documents)} documents"):
        draw_section_triplets(documents, 3)


@pytest.mark.parametrize(
    ("documents", "text"),
    [
        ([[["a", "b"], "one text"]], "section 1 of document 0 is one text"),
        ([[["a", "b"], ["c"]], [["a", " "], ["c"]]], "section 0 of document 1 holds ' '"),
        ([[["a", None], ["c"]]], "holds None"),
    ],
)
def test_refuses_what_is_no_sentence(documents, text):
    with pytest.raises(DataError, match=text):
        draw_section_triplets(documents, 3)


@pytest.mark.parametrize("settings", [{"per_document": 0}, {"per_document": 1, "seed": -1}])
def test_refuses_settings_out_of_range(settings):
    with pytest.raises(ConfigError):
        draw_section_triplets(DOCUMENTS, **settings)
