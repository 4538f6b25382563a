from dataclasses import replace

import numpy as np
import pytest
import torch

from samesense.context.corpus.corpus import Corpus, Shape
from samesense.context.discriminator import encoder as module
from samesense.context.discriminator.encoder import (
    Discriminator,
    SentenceEncoder,
    corpus_vectors,
    load_sentence_encoder,
)
from samesense.context.discriminator.lstm import Coherence, Vocabulary
from samesense.errors import ConfigError, DataError, ModelError, OutputError
from tests.context.made_documents import documents

SENTENCES = ["The dog sold a song at night.", "A cat!", "unknown words only", "", "My neighbour forgot the map. " * 9]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_SENTENCES", 64)
    monkeypatch.setattr(module, "BATCH_SENTENCES", 10)
    monkeypatch.setattr(module, "BLOCK_ROWS", 37)


@pytest.fixture(params=[Shape(), Shape(left=1, right=3, least=0)], ids=["even", "uneven"])
def corpus(tmp_path, request):
    return Corpus.build(tmp_path / "corpus", documents(30, seed=3), request.param)


def made(corpus, interaction="bilinear", seed=0):
    torch.manual_seed(seed)
    vocabulary = Vocabulary.count(corpus)
    model = Coherence(len(vocabulary), dim=5, hidden=4, interaction=interaction)
    with torch.no_grad():
        for value in model.parameters():
            value.add_(torch.randn_like(value) * 0.3)
    return SentenceEncoder(model, vocabulary, corpus.shape, most_words=12)


@pytest.mark.parametrize("interaction", ["none", "product", "bilinear"])
def test_scores_are_those_of_the_whole_network(tmp_path, corpus, interaction):
    """Return the scores of the network's own forward, one window at a time, without a cache."""
    encoder = made(corpus, interaction)
    scores = Discriminator(encoder, corpus, tmp_path / "cache").scores(encoder.encode(SENTENCES), corpus.windows)
    assert scores.shape == (len(SENTENCES), len(corpus.windows))
    for index, i in list(enumerate(corpus.windows))[::17]:
        window = corpus.window(int(i))
        texts = [*SENTENCES, *window.left, *window.right]
        numbers = [encoder.vocabulary.numbers(text, 12) for text in texts]
        tokens = torch.zeros(len(texts), 12, dtype=torch.long)
        for row, ids in zip(tokens, numbers, strict=True):
            row[: len(ids)] = torch.tensor(ids)
        count = len(SENTENCES)
        left = len(window.left)
        right = len(window.right)
        sides = torch.full((1, 2, 4), -1)
        sides[0, 0, :left] = torch.arange(left) + count
        sides[0, 1, :right] = torch.arange(right) + count + left
        lengths = torch.tensor([len(ids) for ids in numbers])
        with torch.no_grad():
            logits = encoder.model(tokens, lengths, sides, torch.arange(count)[None], torch.zeros(1, count))["logits"]
        expected = torch.nn.functional.logsigmoid(logits[0].double()).numpy()
        np.testing.assert_allclose(scores[:, index], expected, atol=1e-5)


def orders(scores):
    return {tuple(np.argsort(row)) for row in scores}


def test_as_printed_every_sentence_ranks_the_contexts_alike(tmp_path, corpus):
    """Eq. 1 is additive: log p differs between sentences by a monotone function, the same for all contexts."""
    sentences = corpus.sentences(range(0, 60, 4))
    literal = Discriminator(made(corpus, "none"), corpus, tmp_path / "cache")
    scores = literal.scores(literal.encoder.encode(sentences), corpus.windows)
    logits = scores - np.log(-np.expm1(scores))
    np.testing.assert_allclose(
        logits - logits[:, :1], np.broadcast_to(logits[0] - logits[0, 0], logits.shape), atol=1e-5
    )
    spread = np.argsort(logits[0])[:: len(corpus.windows) // 12]  # far enough apart for rounding
    assert len(orders(scores[:, spread])) == 1
    for interaction in ("product", "bilinear"):
        other_discriminator = Discriminator(made(corpus, interaction), corpus, tmp_path / "cache")
        assert (
            len(
                orders(
                    other_discriminator.scores(other_discriminator.encoder.encode(sentences), corpus.windows)[:, spread]
                )
            )
            > 5
        )


def test_order_and_company_of_windows_do_not_matter(tmp_path, corpus):
    discriminator = Discriminator(made(corpus), corpus, tmp_path / "cache")
    whole = discriminator.scores(discriminator.encoder.encode(SENTENCES), corpus.windows)
    draw = np.random.default_rng(0).permutation(len(corpus.windows))[:40]
    subset = discriminator.scores(discriminator.encoder.encode(SENTENCES[::-1]), list(corpus.windows[draw]))
    np.testing.assert_allclose(subset[::-1], whole[:, draw], atol=1e-6)
    np.testing.assert_array_equal(discriminator.scores(discriminator.encoder.encode(SENTENCES), corpus.windows), whole)
    assert discriminator.scores(discriminator.encoder.encode(SENTENCES), []).shape == (len(SENTENCES), 0)


def test_vectors_are_kept_by_weights_words_and_corpus(tmp_path, corpus, monkeypatch):
    encoder = made(corpus)
    first = np.array(corpus_vectors(encoder, corpus, tmp_path / "cache"))
    np.testing.assert_allclose(first, encoder.encode(list(corpus)), atol=1e-6)
    other_corpus = Corpus.build(tmp_path / "other", documents(30, seed=4), corpus.shape)
    shorter = made(corpus)
    shorter.most_words = 3
    variants = [(made(corpus, seed=1), corpus), (shorter, corpus), (encoder, other_corpus)]
    for other_encoder, where in variants:
        assert not np.array_equal(corpus_vectors(other_encoder, where, tmp_path / "cache"), first)
    assert len(list((tmp_path / "cache").iterdir())) == 4

    def refuse(self, texts):
        raise AssertionError("encoded again")

    monkeypatch.setattr(SentenceEncoder, "encode", refuse)
    np.testing.assert_array_equal(corpus_vectors(made(corpus), corpus, tmp_path / "cache"), first)


@pytest.mark.parametrize("torn", [0, 13])
def test_a_killed_encoding_goes_on(tmp_path, corpus, monkeypatch, torn):
    encoder = made(corpus)
    inner = SentenceEncoder.encode
    counts = []

    def encode(self, texts):
        if len(counts) == 2:
            raise KeyboardInterrupt
        counts.append(len(texts))
        return inner(self, texts)

    monkeypatch.setattr(SentenceEncoder, "encode", encode)
    with pytest.raises(KeyboardInterrupt):
        corpus_vectors(encoder, corpus, tmp_path / "cache")
    (partial,) = (tmp_path / "cache").iterdir()
    with partial.open("ab") as stream:
        stream.write(b"x" * torn)
    counts[:] = [0, 0, 0]  # no further interruption
    vectors = corpus_vectors(encoder, corpus, tmp_path / "cache")
    assert sum(counts) == len(corpus) - 2 * 64
    np.testing.assert_allclose(vectors, inner(encoder, list(corpus)), atol=1e-6)
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_saved_network_is_the_same(tmp_path, corpus):
    encoder = made(corpus, "product")
    encoder.save(tmp_path / "model")
    again = load_sentence_encoder(tmp_path / "model")
    assert again.identity() == encoder.identity()
    assert (again.shape, again.most_words, again.dim) == (corpus.shape, 12, 8)
    reopened = Discriminator.open(tmp_path / "model", corpus, tmp_path / "cache")
    direct = Discriminator(encoder, corpus, tmp_path / "cache")
    scores = [scorer.scores(scorer.encoder.encode(SENTENCES), corpus.windows[:9]) for scorer in (reopened, direct)]
    np.testing.assert_array_equal(*scores)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "corpus", "model"]
    with pytest.raises(OutputError, match="exists already"):
        encoder.save(tmp_path / "model")


def test_errors(tmp_path, corpus):
    encoder = made(corpus)
    wider = Corpus(corpus.folder, replace(corpus.shape, left=corpus.shape.left + 1))
    with pytest.raises(ConfigError, match="was trained on"):
        Discriminator(encoder, wider, tmp_path)
    with pytest.raises(ModelError, match="must be of one training run"):
        SentenceEncoder(encoder.model, Vocabulary(["a"]), corpus.shape)
    with pytest.raises(ConfigError, match="most_words must be at least 1"):
        SentenceEncoder(encoder.model, encoder.vocabulary, corpus.shape, most_words=0)
    with pytest.raises(ModelError, match="holds no discriminator"):
        load_sentence_encoder(tmp_path)
    encoder.save(tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ModelError, match="Cannot open the discriminator"):
        load_sentence_encoder(tmp_path / "model")
    corpus_vectors(encoder, corpus, tmp_path / "cache")
    (cached,) = (tmp_path / "cache").iterdir()
    cached.write_bytes(cached.read_bytes()[:-4])
    with pytest.raises(DataError, match="must hold"):
        corpus_vectors(encoder, corpus, tmp_path / "cache")
