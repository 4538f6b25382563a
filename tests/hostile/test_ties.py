"""Random lists of texts that one model folds into few vectors: the same text is always found first."""

import random

import samesense
from samesense.inference.collection.collection import Collection
from samesense.inference.collection.embedder import embedder_of
from samesense.inference.collection.entries import Entry
from tests.conftest import WORDS
from tests.hostile.conftest import figures, rounds


def folded(source, count):
    """Texts of few meanings, which differ in case and spaces alone."""
    base = [" ".join(source.choices(WORDS, k=source.randint(1, 30))) for _ in range(max(1, count // 8))]
    return ["".join(source.choice((sign, sign.upper())) for sign in source.choice(base)) for _ in range(count)]


def test_the_same_text_is_first_among_equals(tiny_trunk, tmp_path):
    model = samesense.load(str(tiny_trunk), precision="float32")
    source = random.Random(11)
    embedder = embedder_of(model, "tiny")
    query_count = 0
    for number in range(rounds(4, 60)):
        texts = folded(source, source.choice([5, 40, 150]))
        first = {text: texts.index(text) for text in reversed(texts)}
        queries = source.sample(texts, min(len(texts), 20))
        matches = samesense.match(queries, texts, model=model, threshold=0.9)
        assert [pair.match for pair in matches.pairs] == [first[query] for query in queries]
        collection = Collection.build(tmp_path / str(number), map(Entry, texts), embedder)
        hits = collection.query(queries, embedder, top=source.choice([1, 3, 10]))
        assert [answer[0].id for answer in hits] == [first[query] for query in queries]
        shuffled = source.sample(texts, len(texts))
        pairs = samesense.match(texts, shuffled, model=model, one_to_one=True).pairs
        assert all(texts[pair.row] == shuffled[pair.match] for pair in pairs) and len(pairs) == len(texts)
        query_count += len(queries) * 2 + len(texts)
    figures("the same text among equal ones", {"asked": query_count, "not first": 0})
