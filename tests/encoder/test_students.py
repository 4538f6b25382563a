"""Students made from a teacher: some of its layers, or a vector for each of its tokens."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.students import COMMON, is_model, make_student, spaced_layers
from samesense.encoder.encode import encode
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, ModelError


@pytest.mark.parametrize(("layers", "layers_kept"), [(1, [0]), (2, [0, 2]), (3, [0, 1, 2])])
def test_layers_at_even_distances_with_the_first_and_the_last(tiny_trunk, layers, layers_kept):
    whole = dict(build(str(tiny_trunk), device="cpu")[0].model.named_parameters())
    student = make_student(f"layers:{layers}", str(tiny_trunk), [], device="cpu")
    parameters = dict(student[0].model.named_parameters())
    for index, before in enumerate(layers_kept):
        name = "encoder.layer.{}.output.dense.weight"
        assert torch.equal(parameters[name.format(index)], whole[name.format(before)])
    assert student[0].model.config.num_hidden_layers == layers


@pytest.mark.parametrize(
    ("depth", "layers", "layers_kept"),
    [(6, 3, [0, 3, 5]), (12, 4, [0, 4, 7, 11]), (12, 6, [0, 2, 4, 7, 9, 11]), (5, 5, [0, 1, 2, 3, 4])],
)
def test_which_layers_are_kept(depth, layers, layers_kept):
    """Of a language model, whose layers know their places and their kinds."""
    from sentence_transformers import SentenceTransformer
    from transformers import LlamaConfig, LlamaModel

    class Trunk(torch.nn.Module):
        def __init__(self):
            super().__init__()
            sizes = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2, "vocab_size": 9}
            self.model = LlamaModel(LlamaConfig(num_hidden_layers=depth, **sizes))

    trunk = Trunk()
    stack = list(trunk.model.layers)
    spaced_layers(SentenceTransformer(modules=[trunk], device="cpu"), layers)
    assert list(trunk.model.layers) == [stack[index] for index in layers_kept]
    assert [layer.self_attn.layer_idx for layer in trunk.model.layers] == list(range(layers))


def test_a_static_student_is_made_of_the_vectors_of_single_tokens(tiny_trunk, sentences):
    teacher = build(str(tiny_trunk), device="cpu")
    vocabulary = teacher.tokenizer.get_vocab()
    student = make_student("static:5", str(tiny_trunk), sentences, device="cpu")
    words = [word for word in vocabulary if not word.startswith("[")]
    alone = encode(teacher, words, precision="float32")

    # twin: the teacher embeds words as texts, scikit-learn computes the PCA, split() the counts
    table = {vocabulary[word]: row for word, row in zip(words, alone, strict=True)}
    with torch.no_grad():
        for mark in (name for name in vocabulary if name.startswith("[")):
            ids = torch.tensor([[2, vocabulary[mark], 3]])
            features = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            table[vocabulary[mark]] = teacher.eval()(features)["sentence_embedding"][0].numpy()
    matrix = np.stack([table[index] for index in range(len(vocabulary))])
    turned = PCA(5, svd_solver="full").fit_transform(matrix / np.linalg.norm(matrix, axis=1, keepdims=True))
    spoken = [word for text in sentences for word in text.split()]
    shares = np.array([spoken.count(word) / len(spoken) for word in sorted(vocabulary, key=vocabulary.get)])
    expected = turned * (COMMON / (COMMON + shares))[:, None]

    weights = student[0].embedding.weight.detach().numpy()
    for axis in range(5):  # the sign of a principal axis is arbitrary
        sign = np.sign(weights[:, axis] @ expected[:, axis])
        np.testing.assert_allclose(sign * weights[:, axis], expected[:, axis], atol=2e-4)


def test_a_static_student_is_saved_and_opened_again(tiny_trunk, sentences, tmp_path):
    student = make_student("static", str(tiny_trunk), sentences, device="cpu")
    assert student.get_embedding_dimension() == 32
    reopened = build(str(save(student, tmp_path / "static")), device="cpu")
    np.testing.assert_allclose(encode(reopened, sentences), encode(student, sentences), atol=1e-6)
    again = make_student("static:8", str(tmp_path / "static"), sentences, device="cpu")  # of a static teacher
    assert again.get_embedding_dimension() == 8


@pytest.mark.parametrize(
    ("student", "options", "error", "message"),
    [
        ("layers", {}, ConfigError, "layers takes the number of layers to keep"),
        ("layers:half", {}, ConfigError, "A student is named layers:3, static, static:256, or by a model"),
        ("layers:4", {}, ConfigError, "between 1 and 3, the depth of this model; received 4"),
        ("static:0", {}, ConfigError, "A student is named"),
        ("static:33", {}, ConfigError, "at most as wide as its teacher, 1 to 32; received 33"),
        ("static", {"pooling": "cls"}, ConfigError, "Leave out pooling cls"),
        ("./nowhere", {}, ModelError, "There is no model folder at"),
    ],
)
def test_what_no_student_can_be_made_of_is_refused(tiny_trunk, sentences, student, options, error, message):
    with pytest.raises(error, match=message):
        make_student(student, str(tiny_trunk), sentences, device="cpu", **options)


def test_a_student_is_made_from_a_model():
    models = ("default", "/home/c++/model", "a/b")
    no_models = ("vectors:x.npz", "words:w", "a/b+whiten:8", "a+whiten+whiten:2")
    assert [is_model(name) for name in (*models, *no_models)] == [True] * 3 + [False] * 4
    for teacher in no_models:
        with pytest.raises(ConfigError, match=r"made from the first teacher, which must be a model then; received "):
            make_student("layers:1", teacher, [])
