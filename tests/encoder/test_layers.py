import pytest
import torch

from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.students import first_layers, make_student
from samesense.encoder.encode import encode
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, ModelError


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_bert_keeps_what_its_layer_gave(tiny_trunk, sentences, layers):
    whole = build(str(tiny_trunk), device="cpu")
    features = whole.preprocess(sentences)
    mask = features["attention_mask"][:, :, None].float()
    with torch.no_grad():
        states = whole[0].model.eval()(**features, output_hidden_states=True).hidden_states[layers]
    expected = (states * mask).sum(1) / mask.sum(1)
    truncated = first_layers(build(str(tiny_trunk), device="cpu"), layers)
    assert truncated[0].model.config.num_hidden_layers == layers
    truncated_vectors = torch.from_numpy(encode(truncated, sentences, precision="float32"))
    torch.testing.assert_close(truncated_vectors, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("pooling", "first", "from_state"),
    [("first-last", "layer", 1), ("first-last", "embeddings", 0), ("last-2", "layer", 1)],
)
def test_a_pooling_of_layers_takes_those_that_are_left(tiny_trunk, sentences, tmp_path, pooling, first, from_state):
    """As a teacher's own pooling, and as one that is chosen for its student."""
    whole = build(str(tiny_trunk), device="cpu")
    features = whole.preprocess(sentences)
    mask = features["attention_mask"][:, :, None].float()
    with torch.no_grad():
        states = whole[0].model.eval()(**features, output_hidden_states=True).hidden_states
    expected = ((states[from_state] + states[2]) / 2 * mask).sum(1) / mask.sum(1)
    folder = save(build(str(tiny_trunk), pooling=pooling, first=first, device="cpu"), tmp_path / "own")
    for student in (
        make_student("layers:2", str(folder), [], spacing="first", device="cpu"),
        make_student("layers:2", str(tiny_trunk), [], spacing="first", pooling=pooling, first=first, device="cpu"),
    ):
        reopened = build(str(save(student, tmp_path / "student", overwrite=True)), device="cpu")
        student_vectors = torch.from_numpy(encode(reopened, sentences, precision="float32"))
        torch.testing.assert_close(student_vectors, expected, atol=1e-5, rtol=1e-4)
        assert not any(p.requires_grad for p in student[1].parameters())


@pytest.fixture
def tiny_llama(tiny_trunk, tmp_path):
    """Folder of a causal language model of four layers, with the words of the tiny BERT."""
    from transformers import AutoTokenizer, LlamaConfig, LlamaModel

    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        pad_token_id=0,
    )
    LlamaModel(config).save_pretrained(tmp_path / "llama")
    tokenizer.save_pretrained(tmp_path / "llama")
    return tmp_path / "llama"


def test_a_cut_language_model_is_saved_and_opened_again(tiny_llama, sentences, tmp_path):
    whole = build(str(tiny_llama), device="cpu")
    with torch.no_grad():
        features = whole.preprocess(sentences[:3])
        trunk = whole[0].model.eval()
        states = trunk(**features, output_hidden_states=True).hidden_states[2]
        expected = trunk.norm(states)  # the final norm follows the last layer that is kept
        mask = features["attention_mask"][:, :, None].float()
    truncated = first_layers(build(str(tiny_llama), device="cpu"), 2)
    reopened = build(str(save(truncated, tmp_path / "cut")), device="cpu")
    assert len(reopened[0].model.layers) == 2
    truncated_vectors = torch.from_numpy(encode(reopened, sentences[:3], precision="float32"))
    torch.testing.assert_close(truncated_vectors, (expected * mask).sum(1) / mask.sum(1), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("layers", [0, 4])
def test_more_layers_than_there_are_is_refused(tiny, layers):
    with pytest.raises(ConfigError, match=rf"between 1 and 3, the depth of this model; received {layers}"):
        first_layers(tiny, layers)


def test_what_cannot_be_cut_is_refused(tiny_trunk):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

    with pytest.raises(ModelError, match="begins with Dense"):
        first_layers(SentenceTransformer(modules=[Dense(2, 2)], device="cpu"), 1)
    weighed = build(str(tiny_trunk), pooling="first-last", device="cpu")
    weighed[1].layer_weights.data[0] = 0.3
    with pytest.raises(ModelError, match=r"weighs its layers in a way of its own.*Choose another pooling"):
        first_layers(weighed, 1)
    twice = build(str(tiny_trunk), device="cpu")
    twice[0].model.encoder.other = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])
    with pytest.raises(ModelError, match="has 2 lists of its 3 layers"):
        first_layers(twice, 1)
