import pytest

from samesense.errors import ConfigError
from samesense.recipes.sweep.file import SweepFile, read_sweep
from tests.recipes.sweeps import content


@pytest.fixture
def toy(tiny_trunk, toy_pairs):
    return content(tiny_trunk, toy_pairs)


def test_cases_are_multiplied_with_the_grid_and_named(toy):
    file = SweepFile(
        **{
            **toy,
            "grid": {"literal": [False, True], "threshold": [0, 0.5]},
            "case": [{"loss": "contrastive"}, {"name": "old", "loss": "contrastive", "positive_above": 2.5}],
        }
    )
    assert [variant.name for variant in file.variants()][:5] == [
        "contrastive, literal false, threshold 0",
        "contrastive, literal false, threshold 0.5",
        "contrastive, literal true, threshold 0",
        "contrastive, literal true, threshold 0.5",
        "old, literal false, threshold 0",
    ]
    assert file.variants()[7].settings == {
        "loss": "contrastive",
        "positive_above": 2.5,
        "literal": True,
        "threshold": 0.5,
    }
    assert [variant.name for variant in SweepFile(**{**toy, "grid": {}}).variants()] == ["base"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": [1, 1]}, "The seeds of a sweep must differ; 1 stands there twice."),
        ({"case": [{"loss": "mse"}, {"loss": "mse"}], "grid": {}}, "The variants of a sweep must differ; mse stands"),
        ({"base": {"seed": 3}}, "Seeds of a sweep stand in its list seeds"),
        ({"grid": {"loss": []}}, "needs a value or more; loss has none"),
        ({"against": "start, layers 1", "start": True}, "against names a variant, one of start; temperature 0.05;"),
        (
            {"keep": "best", "data": [{"name": "a", "train": "t", "test": "u", "dev": "none"}]},
            'keep = "best" is chosen on dev, and a has dev = "none". Give it a dev set, or keep "all" or "none".',
        ),
        ({"against": "nothing"}, "against names a variant, one of temperature 0.05; temperature 0.1; received"),
        ({"case": [{"data": ["other"]}]}, "A case is run on data sets of the sweep, toy; received 'other'."),
        ({"start": "whitened"}, "start is true, false or a list of none, mean, whiten, as in"),
        ({"start": ["mean", 3]}, "received ['mean', 3]."),
        ({"start": [True]}, "received [True]."),
        (
            {"data": [{"name": "a", "train": "t", "test": "u", "dev": "hold 10%"}]},
            "as in dev = \"hold 0.1\" for a tenth; received 'hold 10%'.",
        ),
        ({"data": [{"name": "a", "trian": "t", "test": "u"}]}, "no setting 'trian'. Did you mean 'train'?"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(toy, change, message):
    with pytest.raises(ConfigError) as error:
        SweepFile(**{**toy, **change})
    assert message in str(error.value)


def test_one_way_of_standardizing_a_start_needs_no_brackets(toy):
    assert SweepFile(**{**toy, "start": "whiten"}) == SweepFile(**{**toy, "start": ["whiten"]})


def test_placeholders_need_values_and_values_need_placeholders(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(
        'base.model = "${START}/x"\n[[data]]\nname = "a"\ntrain = "${DATA}/t"\ntest = {one = "${DATA}/u"}\n'
    )
    file = read_sweep(path, {"START": "here", "DATA": "there"})
    assert (file.base["model"], file.data[0].train, file.data[0].tests()) == (
        "here/x",
        "there/t",
        {"a/one": "there/u"},
    )
    with pytest.raises(ConfigError, match="needs a value for START"):
        read_sweep(path, {"DATA": "there"})
    with pytest.raises(ConfigError, match=r"has no \$\{MORE\}"):
        read_sweep(path, {"START": "a", "DATA": "b", "MORE": "c"})
    path.write_text("sedes = [1]\n")
    with pytest.raises(ConfigError, match=r"sweep\.toml: There is no setting 'sedes'\. Did you mean 'seeds'\?"):
        read_sweep(path, {})
    path.write_text("seeds = [1]\n")
    with pytest.raises(ConfigError, match="data: field required"):
        read_sweep(path, {})
    with pytest.raises(ConfigError, match=r"none\.toml: there is no such file\. Check the spelling"):
        read_sweep(tmp_path / "none.toml", {})
    path.write_text("=")
    with pytest.raises(ConfigError, match="is no TOML file that can be read"):
        read_sweep(path, {})
