"""Which setting belongs to which loss, and which of them win."""

import json

import pytest

from samesense.errors import ConfigError, DataError
from samesense.losses.registry import PAIR_LOSSES, TUPLE_LOSSES
from samesense.recipes.cosent.settings import CosentSettings, belongs, choose
from samesense.recipes.supmpn.settings import SupmpnSettings
from samesense.recipes.sweep.file import read_sweep
from samesense.recipes.sweep.plan import make_plan
from tests.training.registered import other_value

OWNED = sorted({name for spec in PAIR_LOSSES.specs for name in spec.fields})
LOSSES = PAIR_LOSSES.names("bi")


@pytest.mark.parametrize(("losses", "settings"), [(PAIR_LOSSES, CosentSettings), (TUPLE_LOSSES, SupmpnSettings)])
def test_losses_that_share_a_setting_mean_the_same(losses, settings):
    for spec in losses.specs:
        for name, field in spec.fields.items():
            taken = settings.model_fields[name]
            assert (taken.annotation, taken.default, taken.metadata) == (
                field.annotation,
                field.default,
                field.metadata,
            )
            owners = f"{', '.join(losses.owners(name))}: "
            assert taken.description.removeprefix(owners) == field.description.removeprefix(owners)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_setting_of_another_loss_is_refused_and_not_ignored(loss):
    for name in OWNED:
        value = other_value(CosentSettings.model_fields[name])
        if loss in PAIR_LOSSES.owners(name):
            assert getattr(CosentSettings(loss=loss, **{name: value}), name) == value
            continue
        owners = " or ".join(PAIR_LOSSES.owners(name))
        with pytest.raises(ConfigError) as error:
            CosentSettings(loss=loss, **{name: value})
        assert str(error.value) == (
            f"{name} belongs to loss {owners}, and this is loss {loss} with encoder bi. "
            f"Leave it out, or choose loss {owners}."
        )
        assert not belongs(name, loss)


def test_a_flag_is_refused_even_at_its_default():
    with pytest.raises(ConfigError, match=r"^temperature belongs to loss cosent or .*info-nce.*, and this is loss mse"):
        choose("auto", {"loss": "mse", "temperature": 0.05}, kind="scored")


def test_a_file_may_list_the_defaults_of_all_losses(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text("loss = 'mse'\ntemperature = 0.05\n")
    assert choose(str(mine), {}, kind="scored")[1] == CosentSettings(loss="mse")
    mine.write_text("loss = 'mse'\ntemperature = 0.1\n")
    with pytest.raises(ConfigError, match=r"^temperature belongs to"):
        choose(str(mine), {}, kind="scored")
    assert choose(str(mine), {"loss": "info-nce"}, kind="scored")[1].temperature == 0.1


def test_a_file_of_ones_own_begins_with_the_defaults_for_any_data(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text("loss = 'mse'\n")
    assert choose(str(mine), {}, kind="nli")[1] == CosentSettings(loss="mse")


def test_losses_batches_and_encoders_that_do_not_go_together():
    with pytest.raises(ConfigError) as error:
        CosentSettings(loss="cross-entropy")
    assert str(error.value) == f"The losses of encoder bi are {', '.join(LOSSES)}; received cross-entropy."
    with pytest.raises(ConfigError, match=r"The nearest to that of sentence-transformers is info-nce\.$"):
        choose("auto", {"loss": "CachedMultipleNegativesRankingLoss"}, kind="scored")
    cross = ", ".join(PAIR_LOSSES.names("cross"))
    with pytest.raises(ConfigError, match=rf"^The losses of encoder cross are {cross}; received mse\.$"):
        CosentSettings(encoder="cross", loss="mse")
    with pytest.raises(
        ConfigError, match=r"^pooling belongs to encoder bi, and this is loss cosent with encoder cross"
    ):
        CosentSettings(encoder="cross", pooling="cls")
    made_for = (
        r"^batches label-aware are made for loss cosent or .* or cross-entropy; received loss triplet\. Leave it out"
    )
    with pytest.raises(ConfigError, match=made_for):
        CosentSettings(loss="triplet", batches="label-aware")
    with pytest.raises(ConfigError, match=r"batches no-duplicates are made for loss info-nce.*; received loss cosent"):
        CosentSettings(batches="no-duplicates")


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_is_trained_with_the_papers_settings(loss):
    for kind, batch_size in [("nli", 64), ("binary", 16), ("scored", 16)]:
        name, chosen = choose("auto", {"loss": loss}, kind=kind)
        assert name == ("cosent-nli" if kind == "nli" else "cosent")
        assert (chosen.loss, chosen.batch_size) == (loss, batch_size)
        assert CosentSettings(**chosen.model_dump()) == chosen


def test_a_cross_encoder_takes_its_own_file():
    name, chosen = choose("auto", {"encoder": "cross"}, kind="nli")
    assert (name, chosen.encoder, chosen.loss, chosen.temperature) == ("cosent-cross", "cross", "cosent", 1.0)
    assert choose("auto", {"encoder": "cross", "loss": "cross-entropy"}, kind="binary")[1].loss == "cross-entropy"
    assert choose("cosent-cross", {"temperature": 0.5}, kind="binary")[1].temperature == 0.5
    by_name = choose("cosent-cross", {"loss": "cross-entropy"}, kind="binary")[1]  # its temperature is left out
    assert (by_name.encoder, by_name.loss, by_name.temperature) == ("cross", "cross-entropy", 0.05)
    assert choose("cosent-nli", {"loss": "mse"}, kind="binary")[1].batch_size == 64


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = " + b"[" * 2000 + b"]" * 2000, "is no TOML file that can be read: it is nested too deep."),
        (b"seed = " + b"1" * 5000, "is no TOML file that can be read: Exceeds the limit"),
        (b"\xff", "is no TOML file that can be read: 'utf-8' codec"),
        (b"seed = ", "is no TOML file that can be read: Invalid value"),
        (b'learning_rate = "fast"\n', ": learning_rate: input should be a valid number, unable to parse"),
        (b"seed = -1", ": seed: input should be greater than or equal to 0; received -1."),
        (b"seed = 4294967296", ": seed: input should be at most 4294967295; received 4294967296."),
        (b'guard = "own.tsv"', ": guard: is a list, in brackets; received 'own.tsv'."),
        (b"sede = 1", ": There is no setting 'sede'. Did you mean 'seed'?"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path, content, message):
    path = tmp_path / "own.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        choose(str(path), {}, kind="scored")
    assert str(caught.value).startswith(f"{path}{'' if message[0] == ':' else ' '}{message}")
    with pytest.raises(ConfigError) as caught:
        read_sweep(path, {})
    assert str(path) in str(caught.value)


def test_a_file_may_begin_with_a_byte_order_mark_and_flags_are_not_its_own(tmp_path):
    path = tmp_path / "own.toml"
    path.write_bytes(b"\xef\xbb\xbfseed = 3\n")
    assert choose(str(path), {}, kind="scored")[1].seed == 3
    with pytest.raises(ConfigError, match=r"^seed: input should be greater"):
        choose(str(path), {"seed": -1}, kind="scored")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("case", 5),
        ("case", [{"data": 5}]),
        ("case", [{"data": True}]),
        ("data", {}),
        ("grid", {"a": {"b": 1}}),
        ("seeds", [10**30, "a"]),
        ("base", {"method": []}),
        ("base", {"loss": [[]]}),
        ("base", {"layers": [1]}),
        ("against", {}),
        ("start", [1]),
        ("config", {}),
        ("data", [{"name": "d", "train": "x.tsv", "test": {"a": 5}}]),
    ],
)
def test_a_sweep_of_wrong_types_is_refused(tmp_path, field, value):
    (tmp_path / "x.tsv").write_text("text1\ttext2\tscore\n" + "".join(f"a {i}\tb\t{i}\n" for i in range(30)))
    content = {"seeds": [1], "data": [{"name": "d", "train": "x.tsv", "test": "x.tsv"}], field: value}
    path = tmp_path / "sweep.toml"
    written = "".join(f"{key} = {as_toml(value)}\n" for key, value in content.items())
    path.write_text(written.replace("x.tsv", str(tmp_path / "x.tsv")))
    with pytest.raises((ConfigError, DataError)):
        make_plan(read_sweep(path, {}))


def as_toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {as_toml(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(as_toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


def test_a_model_in_memory_is_told_to_be_saved():
    class Loaded:
        def encode(self):
            raise NotImplementedError

        def __repr__(self):
            return "Loaded(" + "layers, " * 100

    with pytest.raises(ConfigError, match=r"^model: is a name; save what is in memory.*received Loaded\.$"):
        choose("auto", {"model": Loaded()}, kind="scored")


def test_the_model_may_be_a_path(tmp_path):
    assert choose("auto", {"model": tmp_path}, kind="scored")[1].model == str(tmp_path)


def test_an_object_that_is_no_model_is_not_told_to_be_saved():
    with pytest.raises(ConfigError, match=r"^license: input should be a valid string; received <object"):
        choose("auto", {"license": object()}, kind="scored")
