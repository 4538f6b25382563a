"""Two views by dropout, heads, and the settings that SimCSE and RankCSE share."""

import json

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from transformers import AutoTokenizer

from samesense.encoder.encode import encode
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, ModelError
from samesense.recipes.distil.settings import DistilSettings
from samesense.recipes.methods import METHODS
from samesense.recipes.settings import bind, read_settings
from samesense.recipes.unsupervised.settings import RankcseSettings, SimcseSettings, read_bare, read_for_simcse
from samesense.recipes.unsupervised.views import check_two_views, new_head, set_dropout
from tests.pages import assert_settings_are_listed, section


def static(tiny_trunk):
    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk).backend_tokenizer
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")


def test_a_model_without_dropout_has_no_two_views(tiny, tiny_trunk, sentences):
    state = torch.get_rng_state()
    check_two_views(tiny, sentences, "")
    assert torch.equal(torch.get_rng_state(), state)
    for module in tiny.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for model in (tiny, static(tiny_trunk)):
        model.eval()
        with pytest.raises(ConfigError, match=r"this model has none: it embeds a text twice alike\. Do this\."):
            check_two_views(model, sentences, "Do this.")
        assert not model.training
    set_dropout(tiny, 0.2)
    check_two_views(tiny, sentences, "")
    assert {m.p for m in tiny.modules() if isinstance(m, torch.nn.Dropout)} == {0.2}


def test_dropout_of_attention_that_is_a_number_is_set_too(sentences, tiny_trunk):
    """As in decoders, which may have no other."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=72, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    trunk = LlamaModel(config).train()
    ids = torch.arange(10)[None]
    assert torch.equal(trunk(ids)[0], trunk(ids)[0])
    set_dropout(trunk, 0.3)
    assert not torch.equal(trunk(ids)[0], trunk(ids)[0])
    trunk.eval()
    assert torch.equal(trunk(ids)[0], trunk(ids)[0])


def test_heads(tiny, sentences, tmp_path):
    plain = encode(tiny, sentences, precision="float32")
    torch.manual_seed(0)
    thrown = new_head(tiny, "train-only")
    assert (len(list(tiny)), new_head(tiny, "none")) == (2, None)
    torch.manual_seed(0)
    assert new_head(tiny, "kept") is None
    with torch.no_grad():
        expected = thrown(torch.tensor(plain)).numpy()
    encoded = encode(tiny, sentences, precision="float32")
    assert abs(encoded - expected).max() < 1e-5
    reopened = SentenceTransformer(str(save(tiny, tmp_path / "m")), device="cpu")
    assert abs(encode(reopened, sentences, precision="float32") - expected).max() < 1e-5


def test_without_a_head_a_model_need_not_say_its_width(tiny, monkeypatch):
    monkeypatch.setattr(tiny, "get_embedding_dimension", lambda: None)
    assert new_head(tiny, "none") is None
    with pytest.raises(ModelError, match="Set head to none"):
        new_head(tiny, "kept")


def test_shipped_settings_are_the_defaults_and_the_papers():
    simcse = read_settings("simcse")
    rankcse = read_settings("rankcse")
    assert bind(SimcseSettings, simcse) == SimcseSettings()
    assert bind(RankcseSettings, rankcse) == RankcseSettings()
    sup = bind(SimcseSettings, simcse, read_settings("simcse-sup"))
    assert (sup.supervised, sup.head, sup.batch_size, sup.epochs, sup.learning_rate) == (True, "kept", 512, 3, 5e-5)
    mle = bind(RankcseSettings, rankcse)
    assert (mle.learning_rate, mle.tau2, mle.batch_size, mle.epochs, mle.warmup_ratio) == (2e-5, 0.05, 128, 4, 0.05)
    net = bind(RankcseSettings, rankcse, read_settings("rankcse-listnet"))
    assert (net.rank, net.learning_rate, net.tau2, net.tau3) == ("listnet", 3e-5, 0.025, 0.0125)
    ranked = bind(RankcseSettings, rankcse, read_settings("rankcse-cosent"))
    assert (ranked.rank, ranked.learning_rate, ranked.tau2) == ("cosent", 2e-5, 1 / 20)


def test_a_short_run_is_looked_at_once():
    settings = SimcseSettings()
    assert (settings.steps(1000), settings.steps_between_evaluations(1000)) == (16, 16)
    assert settings.steps_between_evaluations(10**6) == 125


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SimcseSettings(own_negative_weight=1),
            "unlabelled sentences have none. Leave it out, or set supervised",
        ),
        (lambda: SimcseSettings(mlm_weight=0.1, mini_batch_num_tokens=64), "mini_batch_num_tokens would bound nothing"),
        (lambda: RankcseSettings(teacher=["a"], teacher_weights=[1, 2]), "received 1 teachers and 1.0, 2.0"),
        (lambda: RankcseSettings(teacher=["a"], teacher_weights=[0]), "none below 0 and one above"),
        (lambda: RankcseSettings(contrast=0, beta=0, gamma=0), "leaves nothing to learn"),
        (lambda: RankcseSettings(views="one"), "views one goes with beta 0 and gamma above 0; received beta 1.0"),
        (lambda: RankcseSettings(views="one", beta=0, gamma=0), "received beta 0.0 and gamma 0.0"),
        (
            lambda: SimcseSettings(mlm_share=0.3),
            r"mlm_share has an effect where mlm_weight is above 0; received mlm_share 0\.3 and mlm_weight 0\.0\. Leave",
        ),
        (
            lambda: RankcseSettings(tau3=0.01),
            r"where rank is listnet; received tau3 0\.01 and rank listmle\. Leave it out, or change rank\.",
        ),
        (lambda: RankcseSettings(rank="cosent", tau3=0.01), "received tau3 0.01 and rank cosent"),
        (lambda: RankcseSettings(consistency="community", beta=0), "consistency has an effect where beta is above 0"),
        (lambda: RankcseSettings(gamma=0, tau2=0.1), "tau2 has an effect where gamma is above 0"),
        (lambda: RankcseSettings(gamma=0, rank="listnet"), "received rank listnet and gamma 0.0"),
        (lambda: RankcseSettings(gamma=0, include_diagonal=False), "received include_diagonal False and gamma 0.0"),
        (lambda: DistilSettings(rank="cosent", tau3=0.1), "received tau3 0.1 and rank cosent"),
    ],
)
def test_settings_that_contradict_each_other(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_a_shipped_file_is_changed_by_what_is_given_and_a_file_of_ones_own_must_fit_it(tmp_path):
    choose = METHODS["rankcse"].choose
    net = read_settings("rankcse-listnet")
    for overrides, retained in [
        ({}, {"rank", "learning_rate", "tau2", "tau3"}),
        ({"rank": "listmle"}, {"learning_rate", "tau2"}),
        ({"gamma": 0.0}, {"learning_rate"}),
        ({"gamma": 0.0, "tau2": 0.05}, {"learning_rate"}),  # the default, equal to no override
    ]:
        name, settings = choose("rankcse-listnet", overrides, lambda: None)
        assert name == "rankcse-listnet"
        expected = {key: value for key, value in net.items() if key in retained} | overrides
        assert settings == RankcseSettings(**expected), overrides
    with pytest.raises(ConfigError, match="tau3 has an effect where rank is listnet"):
        choose("rankcse-listnet", {"rank": "listmle", "tau3": 0.0125}, lambda: None)
    config_file = tmp_path / "own.toml"
    config_file.write_text("tau3 = 0.0125\n")
    with pytest.raises(ConfigError, match="tau3 has an effect where rank is listnet"):
        choose(str(config_file), {}, lambda: None)
    assert choose(str(config_file), {"rank": "listnet"}, lambda: None)[1].tau3 == 0.0125


def test_settings_decide_what_is_read(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\none\nseventeen\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": "three"}) + "\n")
    sources = [str(tmp_path / "a.txt"), str(tmp_path / "b.jsonl")]
    assert read_bare(sources, RankcseSettings(max_chars=6)).texts == ["one", "two", "three"]
    assert read_for_simcse(sources, SimcseSettings(keep_repeated=True)).texts == [
        "one",
        "two",
        "one",
        "seventeen",
        "three",
    ]
    (tmp_path / "nli.tsv").write_text("premise\thypothesis\tlabel\na\tb\tentailment\na\tc\tcontradiction\n")
    assert read_for_simcse([str(tmp_path / "nli.tsv")], SimcseSettings(supervised=True)).kind == "nli"


@pytest.mark.parametrize(("page", "settings"), [("simcse", SimcseSettings), ("rankcse", RankcseSettings)])
def test_the_pages_list_every_setting_with_its_default(page, settings):
    assert_settings_are_listed(section(f"methods/{page}.md", "Settings"), settings.model_fields)
