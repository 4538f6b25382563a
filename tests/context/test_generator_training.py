import numpy as np
import pytest
import torch
from transformers import TrainerCallback

from samesense.context.corpus.corpus import Corpus, hold_out
from samesense.context.generator.base import KINDS
from samesense.context.generator.seq2seq import Seq2SeqGenerator
from samesense.context.generator.training import GeneratorTraining, _ByLength, _Targets, train_generator
from samesense.errors import ConfigError
from tests.context.worlds import log_probability, small_tokenizer, some_documents


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus.build(tmp_path_factory.mktemp("corpus") / "c", some_documents(30))


SETTINGS = {"size": "tiny", "batch_size": 16, "held_out_windows": 20, "max_tokens": 24, "eval_steps": 6, "dropout": 0.1}


class StopAt(TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            control.should_save = control.should_training_stop = True


def measured(trained, tokenizer, corpus, kind):
    generator = Seq2SeqGenerator(dict.fromkeys(KINDS, trained.model), tokenizer)
    windows = [corpus.window(int(i)) for i in hold_out(corpus, 20, 42)[1][:10]]
    return log_probability(generator, kind, [window.centre for window in windows], windows)[0]


@pytest.mark.slow
def test_training_lowers_the_cost_of_unseen_documents(corpus, tmp_path):
    tokenizer = small_tokenizer()
    settings = GeneratorTraining(**{**SETTINGS, "max_steps": 40, "eval_steps": 40})
    trained = train_generator(corpus, tokenizer, KINDS, settings, tmp_path / "c")
    assert (trained.steps, trained.interrupted) == (40, False)
    untrained = train_generator(
        corpus, tokenizer, KINDS, GeneratorTraining(**{**SETTINGS, "max_steps": 1}), tmp_path / "d"
    )
    for kind in KINDS:
        gain = measured(trained, tokenizer, corpus, kind) - measured(untrained, tokenizer, corpus, kind)
        assert gain.mean() > 1, kind


@pytest.mark.slow
@pytest.mark.parametrize("documents", [pytest.param(30, marks=pytest.mark.long), 11])  # stopped in epoch 1, in epoch 2
def test_a_stopped_training_goes_on_as_if_it_had_not_stopped(documents, tmp_path):
    corpus = Corpus.build(tmp_path / "corpus", some_documents(documents))
    tokenizer = small_tokenizer()
    settings = GeneratorTraining(**SETTINGS, max_steps=12)
    an_epoch = -(-len(hold_out(corpus, 20, 42)[0]) // 16)
    assert an_epoch > 12 if documents == 30 else an_epoch < 8 < 2 * an_epoch
    whole = train_generator(corpus, tokenizer, ("left",), settings, tmp_path / "whole")
    stopped = train_generator(corpus, tokenizer, ("left",), settings, tmp_path / "c", callbacks=[StopAt(8)])
    assert (stopped.steps, stopped.interrupted) == (8, True)
    resumed = train_generator(
        corpus, tokenizer, ("left",), settings, tmp_path / "c", resume_from=tmp_path / "c" / "checkpoint-8"
    )
    assert (resumed.steps, resumed.interrupted) == (12, False)
    for name, value in whole.model.state_dict().items():
        torch.testing.assert_close(resumed.model.state_dict()[name], value, rtol=1e-4, atol=1e-5)


def test_whole_documents_are_held_out(corpus):
    learnt, held = hold_out(corpus, 20, 42)
    assert sorted([*learnt, *held]) == corpus.windows.tolist()
    assert 20 <= len(held) < 20 + 12
    assert not set(corpus.documents_of(learnt)) & set(corpus.documents_of(held))
    assert hold_out(corpus, 20, 42)[1].tolist() == held.tolist()
    assert hold_out(corpus, 20, 43)[1].tolist() != held.tolist()
    for count in (0, 1000):
        with pytest.raises(ConfigError, match=f"held_out_windows is {count}"):
            hold_out(corpus, count, 42)


def test_of_one_document_the_end_is_held_out(tmp_path):
    corpus = Corpus.build(tmp_path / "c", some_documents(1))
    learnt, held = hold_out(corpus, 3, 42)
    assert [*learnt, *held] == corpus.windows.tolist()
    assert len(held) == 3


def test_lengths_are_those_of_the_targets(corpus):
    targets = _Targets(corpus, corpus.windows[::7], KINDS)
    texts = {
        "sentence": lambda window: (window.centre,),
        "left": lambda window: window.left,
        "right": lambda window: window.right,
    }
    expected = [
        sum(map(len, texts[kind](window))) for kind, window in (targets[index] for index in range(len(targets)))
    ]
    assert targets.lengths() == expected
    assert len(np.unique(expected)) > 10


def test_the_order_of_an_epoch_is_the_same_whenever_it_is_drawn():
    lengths = np.random.default_rng(0).integers(1, 50, 100).tolist()
    epoch = [0]
    in_turn = _ByLength(lengths, 5, 42, lambda: epoch[0])
    orders = []
    for epoch[0] in range(3):
        orders.append(list(in_turn))
    assert all(sorted(order) == list(range(100)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    assert [list(_ByLength(lengths, 5, 42, lambda number=number: number)) for number in range(3)] == orders
