import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import samesense
from samesense.data import read_pairs
from samesense.encoder.assembly.cross import CachedScore
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, DataError, ModelError
from samesense.evaluation.sts import StsTask, evaluate_pairs
from samesense.inference.explain import explain
from samesense.inference.models.load import apply_maps, load
from samesense.recipes.compare import cost as cost_module
from samesense.recipes.compare.cost import measure_costs
from samesense.recipes.compare.models import _seed, name_models, open_models
from samesense.recipes.compare.recipe import compare, read_runs
from samesense.recipes.compare.sentences import PAIRS, own_sentences, read_topics
from samesense.reports import read_results
from samesense.reports.details import against_gold
from samesense.reports.figures.heatmap import SHOWN_CHARS
from samesense.reports.page import html_page
from tests.conftest import WORDS
from tests.evaluation.toy import Embedder, Overlap, remembering
from tests.messages import listen
from tests.models import made_model
from tests.reports.test_runs import run_folder

pytest.importorskip("matplotlib")


def command(*arguments):
    """Run the command line in this process, and check that it succeeds."""
    from samesense.cli.main import main

    with pytest.raises(SystemExit) as stop:
        main(["compare", *map(str, arguments)])
    assert not stop.value.code


def vectors(home, name="one", seed=None):
    """A folder of a training run that holds a model, or a file of vectors."""
    path = home / f"{name}.jsonl"
    path.write_text("".join(json.dumps({"text": w, "embedding": [1.0, index]}) + "\n" for index, w in enumerate(WORDS)))
    return f"vectors:{path}"


def test_models_are_named_by_the_end_of_their_path_or_as_asked(tmp_path):
    first = vectors(tmp_path, "one")
    second = vectors(tmp_path, "two")
    (tmp_path / "sub").mkdir()
    again = vectors(tmp_path / "sub", "two")
    assert [model.name for _, model in open_models([first, second])] == ["vectors:one.jsonl", "vectors:two.jsonl"]
    assert [model.name for _, model in open_models([second, again])] == [
        f"vectors:{tmp_path.name}/two.jsonl",
        "vectors:sub/two.jsonl",
    ]
    assert [model.name for _, model in open_models([f"mine={first}", second])] == ["mine", "vectors:two.jsonl"]
    assert [spec for spec, _ in open_models([f"mine={first}"])] == [first]


def test_seeds_are_read_from_run_folders(tiny, tmp_path):
    from samesense.encoder.saving.storage import save

    for seed in (1, 2):
        save(tiny, tmp_path / f"run-{seed}" / "model")
        (tmp_path / f"run-{seed}" / "manifest.json").write_text(json.dumps({"settings": {"seed": seed}}))
    models = open_models([f"tiny={tmp_path / 'run-1'}", f"tiny={tmp_path / 'run-2'}"])
    assert [(model.name, model.seed) for _, model in models] == [("tiny", 1), ("tiny", 2)]
    with pytest.raises(ConfigError, match="'tiny' with seed 1"):
        open_models([f"tiny={tmp_path / 'run-1'}"] * 2)


@pytest.fixture
def toy(tmp_path, toy_pairs):
    """Data, and two spellings of a model that knows each word."""
    (tmp_path / "words.txt").write_text(
        "".join(f"{w} {index % 7} {index % 5} 1 {index % 3}\n" for index, w in enumerate(WORDS))
    )
    data = str(toy_pairs / "test.tsv")
    return {"data": [data], "models": [f"plain=words:{tmp_path}/words.txt", f"sif=words:{tmp_path}/words.txt?sif"]}


def test_a_report_is_made_from_real_tasks_and_models(toy, tmp_path):
    lines = listen()
    content = compare(**toy, suites=["sts", "geometry", "transfer"])
    assert content.failures == []
    assert {row.model for row in content.results} == {"plain", "sif"}
    value = next(row.value for row in content.results if (row.model, row.metric) == ("sif", "spearman"))
    pairs = read_pairs(toy["data"][0])
    encoder = load(toy["models"][1].partition("=")[2], precision="float32")
    rows = evaluate_pairs(encoder, pairs, intervals=False)
    assert value == pytest.approx(rows[0].value, abs=1e-12)
    assert [(model_row.model, model_row.reference) for model_row in content.comparisons] in (
        [("plain", "sif")],
        [("sif", "plain")],
    )
    assert [plot.name for plot in content.plots()] == ["overview", "plane-test-tsv", "heatmap", "spread-sts-test-tsv"]
    assert "pairs of test.tsv, whose labels are " in content.plots()[2].caption
    assert content.notes[0].startswith("Suite 'transfer' has no data: none of mr, ")
    assert all(model_row.cost.speed.low > 0 and model_row.cost.megabytes > 0 for model_row in content.models)
    assert all(len(model_row.cost.speed.rounds) >= 3 for model_row in content.models)
    assert lines[1:] == ["model 1 of 2: plain", "model 2 of 2: sif", "comparing"]
    assert {"versions", "machine", "threads", "precision", "date", "command", "processor"} <= set(content.environment)
    for path in (tmp_path / "out" / "r.html", tmp_path / "r.md", tmp_path / "r.tex", tmp_path / "r.jsonl"):
        assert content.save(path) == path
    assert len(content.save_figures(tmp_path / "f")) == 3 * 4  # SVG, PNG and PDF of each
    assert read_results(tmp_path / "r.jsonl") == [*content.results, *content.averages]
    answer = " ".join(content.verdict())
    assert str(content).endswith(f"\n\n{answer}")
    assert re.match(r"Take (plain|sif): ", answer)
    assert "<table" in content._repr_html_()
    with pytest.raises(ConfigError, match=r"ends in \.html, \.md, \.tex, \.jsonl; received 'r\.pdf'"):
        content.save(tmp_path / "r.pdf")
    assert "plain" in (tmp_path / "out" / "r.html").read_text(encoding="utf-8")
    written = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert written.startswith(answer)
    assert "\n## sts: Spearman\n" in written
    table = (tmp_path / "r.tex").read_text(encoding="utf-8")
    assert "\\toprule" in table
    assert table.startswith("% Take ")
    assert not list(tmp_path.rglob("*.part"))


def test_words_of_the_pairs_placed_worst_are_shaded_by_what_explains_the_model(toy, tiny, tmp_path):
    folder = str(save(tiny, tmp_path / "tiny"))
    content = compare([folder, f"other={folder}", toy["models"][0]], toy["data"], speed=False)
    assert set(content.marked) == {"tiny", "other", "plain"}
    worst = against_gold(next(evidence for evidence in content.evidence if evidence.model == "tiny"))
    assert set(content.marked["tiny"]) == {case.texts for case in worst} and content.marked["plain"] == {}
    model = load(folder, precision="float32")
    for texts, pieces in content.marked["tiny"].items():
        assert pieces == explain(model, *texts, by="tokens").marked()
    html = str(html_page(content))
    assert '<mark style="--share:1.00">' in html.partition("tiny against the gold")[2].partition("<h3>")[0]
    assert "<mark" not in html.partition("plain against the gold")[2].partition("<h3>")[0]
    assert "The stronger the colour of a word, the more it adds to the score of the model" in html


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"against": "nobody"}, ConfigError, "plain, sif; received 'nobody'"),
        ({"sweep": "temperature"}, ConfigError, "none is given"),
        ({"runs": ["/nowhere"]}, DataError, "/nowhere holds no training run"),
        ({"suites": ["stz"]}, ConfigError, "received stz"),
        ({"data": ["nothing.tsv"]}, DataError, "nothing"),
        ({"models": []}, ConfigError, "There is nothing to compare; received no model"),
        ({"models": ["/no/model"]}, ModelError, "/no/model"),
        ({"models": ["/no/model", "/no/other"]}, ModelError, "2 of 2 models cannot be opened. /no/model: "),
    ],
)
def test_what_cannot_end_well_stops_before_the_first_model(toy, changes, error, message):
    lines = listen()
    with pytest.raises(error, match=re.escape(message)):
        compare(**(toy | changes))
    assert lines == []


def test_functions_are_compared_on_data_in_memory():
    def first(texts):
        return np.array([[len(text), text.count(" "), 1.0] for text in texts], dtype=np.float32)

    def second(texts):
        return first([text[::-1] + "x" for text in texts])

    data = [
        [{"sentence1": "a" * (i + 1), "sentence2": "b c" * (offset + 1), "score": i / 9} for i in range(10)]
        for offset in (0, 1)
    ]
    report = samesense.compare({"x": first, "y": second}, [samesense.read(rows) for rows in data])
    assert sorted({row.dataset for row in report.results}) == ["Rows in memory", "Rows in memory 2"]


def test_a_model_that_was_opened_twice_is_compared_with_itself(tiny, tmp_path):
    save(tiny, tmp_path / "model")
    models = [load(str(tmp_path / "model"), precision="float32") for _ in range(2)]
    data = [("a cat", "the cat", 1.0), ("a dog", "noon", 0.0), ("snow", "the snow", 0.8)] * 3
    report = samesense.compare(models, data)
    assert len({row.model for row in report.results}) == 2
    assert len({model.cost.parameters for model in report.models}) == 1


def test_topics_are_parted_by_empty_lines(tmp_path):
    path = tmp_path / "topics.txt"
    path.write_text("\none\n two \n\n\nthree\n", encoding="utf-8")
    assert read_topics(path).groups == [["one", "two"], ["three"]]
    path.write_text("one\n\n")
    with pytest.raises(DataError, match="2 to 40 sentences, one a line; received 1"):
        read_topics(path)
    path.write_text("a sentence\n" * 41)
    with pytest.raises(DataError, match="2 to 40 sentences, one a line; received 41"):
        read_topics(path)
    with pytest.raises(DataError, match="there is no such file"):
        read_topics(tmp_path / "absent.txt")


def test_the_command(toy, tmp_path, capsys):
    page = tmp_path / "report.html"
    command(
        *toy["models"],
        "--data",
        *toy["data"],
        "--output",
        page,
        "--results",
        tmp_path / "r.jsonl",
    )
    captured = capsys.readouterr()
    assert captured.out.startswith("## sts: Spearman\n\n| model | test.tsv |")
    assert captured.out.splitlines()[-1].startswith("Take ")
    assert " ms a text" in captured.out.splitlines()[-1]
    command(*toy["models"], "--data", *toy["data"], "--output", page, "--no-speed")
    assert "What the models cost was not measured." in capsys.readouterr().out
    assert captured.err.splitlines()[-1] == f"written: {page}"
    command(*toy["models"], "--data", *toy["data"], "--output", page, "--json")
    *rows, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert last["recommendation"]["model"] in ("plain", "sif")
    assert last["recommendation"]["text"][0].startswith(f"Take {last['recommendation']['model']}: ")
    assert {(row["model"], row["metric"]) for row in rows} == {
        (model, metric) for model in ("plain", "sif") for metric in ("spearman", "pearson")
    }
    assert rows == [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]


def test_a_place_that_cannot_be_written_stops_before_the_first_model(toy, tmp_path, capsys):
    from samesense.cli.main import main

    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "report.html", tmp_path / "report.txt"):
        with pytest.raises(SystemExit) as stop:
            main(["compare", *toy["models"], "--data", *toy["data"], "--output", str(path)])
        captured = capsys.readouterr()
        assert (stop.value.code, captured.out, captured.err.count("\n")) == (2, "", 1)
        assert str(path) in captured.err


def test_a_page_and_figures_at_one_place_are_refused_and_nothing_is_made(toy, tmp_path, capsys):
    from samesense.cli.main import main

    place = str(tmp_path / "o.html")
    with pytest.raises(SystemExit) as stop:
        main(["compare", *toy["models"], "--data", *toy["data"], "--output", place, "--figures", place])
    assert stop.value.code == 2 and "Each output is a file of its own" in capsys.readouterr().err
    assert not Path(place).exists()


@pytest.mark.posix
def test_several_outputs_may_be_one_device(toy, tmp_path):
    page = tmp_path / "r.html"
    command(*toy["models"], "--data", *toy["data"], "--output", page, "--markdown", os.devnull, "--latex", os.devnull)
    assert page.exists()


def test_the_command_names_failures_and_ends_well(toy, tmp_path, capsys):
    models = [toy["models"][0], f"lacking={vectors(tmp_path)}"]
    command(*models, "--data", *toy["data"], "--output", tmp_path / "r.html")
    captured = capsys.readouterr()
    assert "| lacking | undefined |" in captured.out
    assert "undefined: lacking on sts test.tsv: " in captured.err


def test_models_without_a_figure_are_not_advised_to_take_another_suite(caplog):
    rows = [("the same text", "the same text", score) for score in (0.0, 0.5, 1.0)]
    samesense.compare({"x": lambda texts: np.ones((len(texts), 2), np.float32)}, rows, speed=False)
    (message,) = [record.getMessage() for record in caplog.records if "figure" in record.getMessage()]
    assert message.startswith("No model has a figure; x on Rows in memory: The correlation is undefined")


def rows(labels):
    pairs = [(f"first of {index}", f"second of {index}") for index in range(len(labels))]
    return read_pairs([{"sentence1": a, "sentence2": b, "score": s} for (a, b), s in zip(pairs, labels, strict=True)])


def test_sentences_of_the_heatmap_are_evaluated_pairs_from_the_most_to_the_least_similar():
    labels = [float(index % 6) for index in range(60)]
    heatmap = own_sentences([Overlap(), StsTask(rows(labels))])
    assert len(heatmap.groups) == PAIRS
    assert heatmap.origin.endswith(", whose labels are 5, 4, 3, 2, 1, 0")
    texts = [text for group in heatmap.groups for text in group]
    assert len(set(texts)) == 2 * PAIRS
    assert own_sentences([Overlap()]).groups == ()
    long = rows(labels)
    long.sentences1[:] = [text * SHOWN_CHARS for text in long.sentences1]
    assert len(own_sentences([StsTask(long)]).groups) == PAIRS  # no text is short: the data are shown anyway


def test_speed_is_measured_again_and_leaves_what_is_remembered_alone(toy):
    encode = Embedder()
    model = remembering("a", encode)
    before = model.encode(["a cat", "a dog"])
    [cost] = measure_costs([("a", model)], ["a cat", "a dog"])
    assert cost.speed.median > 0
    assert (cost.parameters, cost.megabytes) == (None, None)
    assert encode.calls[0] == ["a cat", "a dog"]
    assert len(encode.calls) > 2
    count = len(encode.calls)
    assert np.array_equal(model.encode(["a cat", "a dog"]), before)
    assert len(encode.calls) == count


def test_models_are_timed_in_turns():
    turns = []

    def named(name):
        return remembering(name, lambda texts: turns.append((name, len(texts))) or Embedder()(texts))

    texts = [" ".join(WORDS[start : start + 3]) for start in range(20)]
    costs = measure_costs([(name, named(name)) for name in "ab"], texts)
    assert [len(cost.speed.rounds) for cost in costs] == [5, 5]
    order = re.sub(r"(.)\1+", r"\1", "".join(name for name, _ in turns))
    assert order == "abababab"  # a and b warm up, then a b, b a, a b, b a, a b
    assert all(cost.speed.low > 0 for cost in costs)


def test_a_mapped_model_pays_for_the_model_under_it(monkeypatch):
    monkeypatch.setattr(cost_module, "SECONDS", 0.0)
    encode = Embedder()
    texts = [" ".join(WORDS[start : start + 3]) for start in range(20)]
    model = apply_maps(remembering("a", encode), "+whiten:2", texts, cache=True)
    model.encode(texts)
    count = len(encode.calls)
    [cost] = measure_costs([("a+whiten:2", model)], texts)
    assert cost.speed.low > 0
    assert [len(call) for call in encode.calls[count:]] == [16] * 6  # the warm-up, and five rounds


def test_a_scorer_of_pairs_reads_two_sentences_at_a_time():
    calls = []
    score = CachedScore(lambda pairs: calls.append(list(pairs)) or np.zeros(len(pairs)))
    [cost] = measure_costs([("s", made_model(score, name="s"))], ["a", "b", "c", "d"])
    assert calls[:2] == [[("a", "b"), ("c", "d")]] * 2
    assert cost.speed.low > 0


def test_what_is_remembered_is_not_said_to_cost_nothing(toy, tiny, tmp_path):
    """With kept embeddings the page said that encoding took 0.0 s, and each data set 0.00 s."""
    options = {"cache": tmp_path / "cache", "speed": False, "suites": ["sts", "geometry"]}
    models = [str(save(tiny, tmp_path / "tiny"))]
    first, again = (compare(models, toy["data"], **options) for _ in range(2))
    assert [model.remembered for model in first.models] == [0]
    assert all(model.remembered == model.texts > 0 for model in again.models)
    assert "not measured" in html_page(again) and "not measured</td>" not in html_page(first)
    for report in (first, again):
        assert all(row.seconds is None for row in report.results)
        assert " 0.00 s" not in html_page(report)


def test_parameters_and_size_are_read_from_the_files(tiny, tmp_path):
    from samesense.encoder.saving.storage import save

    save(tiny, tmp_path / "model")
    name = str(tmp_path / "model")
    [cost] = measure_costs([(name, load(name, precision="float32"))], ["a cat"])
    assert cost.parameters == sum(tensor.numel() for tensor in tiny.state_dict().values())
    assert cost.megabytes == (tmp_path / "model" / "model.safetensors").stat().st_size / 1e6
    assert cost.computed.startswith("in float32 on ")


def test_models_have_the_shortest_names_that_tell_them_apart(tmp_path):
    for run, seed in (("a-1", 1), ("a-2", 2), ("other", 1)):
        (tmp_path / "runs" / run / "model").mkdir(parents=True)
        (tmp_path / "runs" / run / "manifest.json").write_text(json.dumps({"settings": {"seed": seed}}))
    (tmp_path / "old" / "other").mkdir(parents=True)
    runs = tmp_path / "runs"
    specs = [f"{runs}/a-1/model", f"{runs}/a-2/model+whiten", f"{runs}/other", f"{tmp_path}/old/other", "default"]
    assert [name for name, _ in name_models(specs)] == ["a-1", "a-2+whiten", "runs/other", "old/other", "default"]
    assert [_seed(spec) for spec in specs] == [1, 2, 1, None, None]
    assert _seed(f"{runs}/a-2?cls") == 2
    assert [name for name, _ in name_models([f"{runs}/other"] * 2)] == [f"{runs}/other"] * 2  # refused later
    objects = [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2), torch.nn.ReLU()]
    assert [name for name, _ in name_models(objects)] == ["Linear", "Linear 2", "ReLU"]


def lengths(texts):
    return np.array([[len(text), 1.0] for text in texts])


def test_what_was_evaluated_before_a_model_that_stops_is_kept(toy, tmp_path):
    def stops(texts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        samesense.compare({"first": lengths, "second": stops}, toy["data"], results=tmp_path / "r.jsonl", speed=False)
    assert {row.model for row in read_results(tmp_path / "r.jsonl")} == {"first"}


def test_the_first_model_is_the_reference_even_if_it_has_no_figure(toy):
    models = {"flat": lambda texts: np.ones((len(texts), 2)), "lengths": lengths}
    report = samesense.compare(models, toy["data"], speed=False)
    assert report.comparisons == []
    assert report.ranking.reference == "flat"
    assert report.ranking.unranked == ("flat",)


def test_runs_are_named_as_models_are_and_only_seeds_of_one_thing_have_one_name(tmp_path):
    for method in ("cosent", "mse"):
        (tmp_path / method).mkdir()
        for seed in (1, 2):
            run_folder(tmp_path / method, f"seed-{seed}", {"loss": method, "seed": seed}, [(5, 0.5)])
    first, second, mse = (str(tmp_path / name) for name in ("cosent/seed-1", "cosent/seed-2", "mse/seed-1"))
    assert [run.name for run in read_runs([first, mse])] == ["cosent/seed-1", "mse/seed-1"]
    assert [run.curve.name for run in read_runs([f"a={first}", f"a={second}", mse])] == ["a", "a", "seed-1"]
    for specs, why in (([f"a={first}", f"a={mse}"], "two named 'a' differ in loss"), ([first, first], "have seed 1")):
        with pytest.raises(ConfigError, match=why):
            read_runs(specs)


def test_a_run_that_no_curve_shows_is_named(toy, tmp_path):
    run_folder(tmp_path, "bare", {"seed": 1})
    run_folder(tmp_path, "seen", {"seed": 1}, [(5, 0.5)])
    runs = [str(tmp_path / name) for name in ("bare", "seen")]
    report = compare(toy["models"][:1], toy["data"], runs=runs, speed=False)
    assert "bare: no learning curve, since it was never evaluated on dev." in report.notes
