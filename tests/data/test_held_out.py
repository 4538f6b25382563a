"""Held-out documents, and the comparison on them."""

import numpy as np
import pytest

from samesense.data.held_out import FEWEST, MOST, MOST_SHARE, PER_DOCUMENT, compare_held_out, hold_out_documents
from samesense.data.sentences import read_unlabelled


def made(count, sections=2):
    return [
        [[f"document {number} section {section} line {line}" for line in range(4)] for section in range(sections)]
        for number in range(count)
    ]


def test_a_tenth_is_held_out_by_content_in_any_order():
    documents = made(200)
    train, held_out = hold_out_documents(documents)
    again, same = hold_out_documents(documents[::-1])
    assert len(train) == 180
    assert sorted(map(str, train)) == sorted(map(str, again))
    assert {triplet[0] for triplet in held_out.triplets} == {triplet[0] for triplet in same.triplets}
    trained_on = {text for document in train for section in document for text in section}
    assert trained_on.isdisjoint(text for triplet in held_out.triplets for text in triplet)


def test_of_few_documents_more_than_a_tenth_is():
    train, held_out = hold_out_documents(made(40))
    assert len(train) == 30
    assert len(set(held_out.documents)) == 10
    assert held_out.unit == "section"
    for anchor, positive, negative in held_out.triplets:
        assert anchor.split(" line")[0] == positive.split(" line")[0] != negative.split(" line")[0]
        assert anchor.split(" section")[0] == negative.split(" section")[0]


def test_too_few_are_all_trained_on_and_the_reason_says_how_many_are_needed():
    documents = made(int(FEWEST / MOST_SHARE) - 1)
    train, held_out = hold_out_documents(documents)
    assert train == documents
    assert not held_out.triplets
    assert held_out.reason.startswith(
        f"of the documents, {len(documents)} have sentences to compare, and 27 are needed"
    )


@pytest.mark.parametrize("documents", [[], [[]] * 50, [[["one line"]]] * 50, made(1)])
def test_nothing_to_hold_out(documents):
    assert hold_out_documents(documents)[0] == documents


def test_documents_of_one_section_are_sections_themselves():
    train, held_out = hold_out_documents(made(100, sections=1))
    assert held_out.unit == "document"
    assert len(train) == 90
    assert np.bincount(held_out.documents).max() <= PER_DOCUMENT
    for (anchor, positive, negative), number in zip(held_out.triplets, held_out.documents, strict=True):
        assert anchor.split(" section")[0] == positive.split(" section")[0] != negative.split(" section")[0]
        first = held_out.triplets[held_out.documents.index(number)]
        assert anchor.split(" section")[0] == first[0].split(" section")[0]


def test_a_folder_of_text_files_gives_its_sentences(tmp_path):
    pytest.importorskip("nupunkt")
    (tmp_path / "a b.txt").write_text("One thing. Another thing.\n\nA third.\n", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    assert list(read_unlabelled(str(tmp_path)).texts) == ["One thing.", "Another thing.", "A third."]


def test_documents_that_were_held_out_are_compared_by_section_where_enough_have_several():
    assert compare_held_out(made(12) + made(30, sections=1)).unit == "section"
    by_document = compare_held_out(made(4) + made(30, sections=1))
    assert by_document.unit == "document"
    assert len(set(by_document.documents)) >= 30
    assert len(set(compare_held_out(made(MOST + 50)).documents)) == MOST


@pytest.mark.parametrize("documents", [[], made(1, sections=1), [[["one line"]]] * 50, made(FEWEST - 1)])
def test_too_few_held_out_documents_are_not_compared(documents):
    comparable = compare_held_out(documents)
    assert not comparable.triplets
    assert comparable.reason.startswith(f"{len(documents)} documents were held out, and {FEWEST} ")
