import numpy as np
import pytest
import torch
from transformers import TrainerCallback

from samesense.context.corpus.corpus import Corpus
from samesense.context.discriminator.batching import RUN_WINDOWS, Collate, HeldOut, Schedule, Steps
from samesense.context.discriminator.encoder import Discriminator
from samesense.context.discriminator.training import DiscriminatorTraining, train_discriminator

TOPICS = {
    "sea": "ship wave sailor harbour storm anchor".split(),
    "kitchen": "bread oven flour spoon butter kettle".split(),
    "school": "pupil lesson chalk essay desk bell".split(),
}
TRAINING = DiscriminatorTraining(
    dim=24,
    hidden=16,
    dropout=0.1,
    batch_size=32,
    epochs=8,
    learning_rate=1e-2,
    held_out_windows=60,
    eval_steps=10,
    seed=3,
)


def on_topics(count, seed):
    """Documents of one topic each, so that a sentence from another document does not fit."""
    draw = np.random.default_rng(seed)
    for number in range(count):
        words = list(TOPICS.values())[number % 3]
        picks = draw.integers(0, 6, size=(int(draw.integers(8, 15)), 3))
        yield [[f"the {words[a]} and {words[b]} near {words[c]}" for a, b, c in picks]]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus.build(tmp_path_factory.mktemp("c") / "corpus", on_topics(60, 0))


@pytest.fixture(scope="module")
def trained(tmp_path_factory, corpus):
    return train_discriminator(corpus, TRAINING, tmp_path_factory.mktemp("t"))


def test_it_learns_what_fits(tmp_path, corpus, trained):
    assert trained.accuracies["anywhere"] > 0.6
    assert trained.accuracies["positive"] > 0.9
    assert trained.held_out >= 60
    assert not trained.interrupted
    fresh = Corpus.build(tmp_path / "fresh", on_topics(30, 1))
    discriminator = Discriminator(trained.encoder, fresh, tmp_path / "cache")
    probes = [f"the {words[0]} and {words[1]} near {words[2]}" for words in TOPICS.values()]
    scores = discriminator.scores(discriminator.encoder.encode(probes), fresh.windows)
    topics = fresh.documents_of(fresh.windows) % 3
    table = np.stack([scores[:, topics == topic].mean(axis=1) for topic in range(3)], axis=1)
    assert (table.argmax(axis=0) == [0, 1, 2]).all()


class Stop(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 17:
            control.should_save = control.should_training_stop = True


def test_a_stopped_run_goes_on_to_the_same_end(tmp_path, corpus, trained):
    first = train_discriminator(corpus, TRAINING, tmp_path, callbacks=[Stop()])
    assert first.interrupted
    assert first.steps == 17
    second = train_discriminator(corpus, TRAINING, tmp_path, resume_from=tmp_path / "checkpoint-17")
    assert second.steps == trained.steps
    assert second.accuracies == trained.accuracies
    for name, value in second.encoder.model.state_dict().items():
        torch.testing.assert_close(value, trained.encoder.model.state_dict()[name], rtol=0, atol=1e-6)


def test_words_start_from_given_vectors(tmp_path, corpus):
    words_given = []

    def word_vectors(words):
        words_given.extend(words)
        return np.arange(len(words) * 7, dtype=np.float32).reshape(-1, 7) / 1e3

    still = DiscriminatorTraining(hidden=4, epochs=1, learning_rate=1e-12, weight_decay=0.0, held_out_windows=60)
    encoder = train_discriminator(corpus, still, tmp_path, word_vectors=word_vectors).encoder
    assert encoder.vocabulary.words == words_given
    weights = encoder.model.embedding.weight.detach().numpy()
    np.testing.assert_allclose(weights[2:], word_vectors(list(words_given)), atol=1e-6)
    assert not weights[0].any()


def test_an_epoch_takes_every_window_once_with_fresh_negatives(corpus):
    steps = Steps(corpus, corpus.windows, Schedule(batch_size=32, epochs=3, negatives=2, seed=5))
    batches = [steps[index] for index in range(len(steps))]
    an_epoch = len(steps) // 3
    drawn = []
    for epoch in range(3):
        epoch_batches = batches[epoch * an_epoch : (epoch + 1) * an_epoch]
        windows = np.concatenate([batch.windows for batch in epoch_batches])
        np.testing.assert_array_equal(np.sort(windows), corpus.windows)
        follows = np.diff(windows) == 1
        assert follows.mean() > 1 - 2 / RUN_WINDOWS
        drawn.append(np.concatenate([batch.centres for batch in epoch_batches])[np.argsort(windows)])
    assert (drawn[0][:, 0] == corpus.windows).all()
    assert (drawn[0][:, 1:] != drawn[1][:, 1:]).mean() > 0.8
    late = Steps(corpus, corpus.windows, Schedule(batch_size=32, epochs=3, negatives=2, seed=5))[an_epoch + 2]
    np.testing.assert_array_equal(late.centres, batches[an_epoch + 2].centres)
    assert all((batch.labels == [1, 0, 0]).all() for batch in batches)


def test_a_batch_encodes_each_sentence_once(corpus, trained):
    batch = Steps(corpus, corpus.windows, Schedule(batch_size=32, epochs=1, negatives=1, seed=0))[0]
    inputs = Collate(trained.encoder, corpus)([batch])
    vocabulary = trained.encoder.vocabulary
    sentences = [tuple(row[:n].tolist()) for row, n in zip(inputs["tokens"], inputs["lengths"], strict=True)]
    expected = set()
    for index, i in enumerate(batch.windows):
        window = corpus.window(int(i))
        for side, texts in zip(inputs["sides"][index].tolist(), (window.left, window.right), strict=True):
            assert [sentences[row] for row in side if row >= 0] == [tuple(vocabulary.numbers(t, 64)) for t in texts]
        centres = corpus.sentences(batch.centres[index])
        assert [sentences[row] for row in inputs["centres"][index]] == [
            tuple(vocabulary.numbers(t, 64)) for t in centres
        ]
        first, end = corpus.window_bounds(np.array([i]))
        expected |= {*range(first[0], end[0]), *batch.centres[index]}
    assert len(sentences) == len(expected) < 3.2 * len(batch.windows)


def test_accuracies_by_kind(corpus):
    evaluated = HeldOut(corpus, corpus.windows, Schedule(batch_size=16, epochs=1, negatives=1, seed=0))
    labels = np.concatenate([evaluated[index].labels for index in range(len(evaluated))])
    centres = np.concatenate([evaluated[index].centres for index in range(len(evaluated))])
    windows = np.concatenate([evaluated[index].windows for index in range(len(evaluated))])
    near = evaluated.kinds["same document"][:, 1]
    documents = corpus.documents_of(windows)
    assert (corpus.documents_of(centres[:, 1])[near] == documents[near]).all()
    logits = np.where(labels > 0, 1.0, -1.0)
    logits[near, 1] = 1.0  # wrong on every negative of the same document
    logits[:10, 0] = -1.0  # and on ten positives
    accuracies = evaluated.accuracies(type("P", (), {"predictions": logits, "label_ids": labels}))
    n = len(windows)
    assert accuracies["same document"] == 0
    assert accuracies["anywhere"] == 1
    assert accuracies["positive"] == pytest.approx(1 - 10 / n)
    assert accuracies["all"] == pytest.approx(1 - (10 + near.sum()) / (2 * n))
