"""Every result of a public function shows itself: briefly in a console, as a table or sentences, and in a notebook."""

import inspect
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import samesense
from samesense.api.index import Index
from samesense.api.label import Labelled
from samesense.context.origin.explain import Contribution
from samesense.context.origin.explain import Explanation as Contexts
from samesense.context.origin.word_explanation import WordExplanation, WordShare
from samesense.encoder.maps.whitening import Whitening
from samesense.inference.onnx.format import Agreement, Description, Drift, GraphFile, Parity
from samesense.recipes.distil.recipe import Distillate
from samesense.recipes.harvest.recipe import HarvestSummary
from samesense.recipes.pretrain.recipe import Pretraining
from samesense.recipes.race.board import Line, RaceResult
from samesense.recipes.run.training_run import TrainingRun
from samesense.reports.run_verdict import Verdict
from samesense.results.results import Results
from samesense.results.shown import Markdown, RowList
from samesense.types import Result

PLAIN = {"Path", "str", "float", "None", "Any", "Embeddings", "Scores", "FastAPI"}
"""Results that are shown by others: paths, numbers, arrays."""

TEXTS = [f"der Zug nach Köln fährt um {hour} Uhr" for hour in range(12)] + ["Öl und Äpfel"] * 8
PAIRS = [(text, other, float(row % 2)) for row, (text, other) in enumerate(zip(TEXTS * 4, TEXTS[1:] * 5, strict=False))]
NLI = [{"anchor": text, "positive": f"{text} genau", "negative": "Öl"} for text in TEXTS[:12]]


def by_letters(texts):
    return np.array([[text.count(letter) + 1.0 for letter in "aeinrstuz"] + [len(text)] for text in texts], "float32")


def by_first_letters(texts):
    return by_letters(texts)[:, :4]


def score_letters(pairs):
    return np.array([float(first.count("e") - second.count("e")) for first, second in pairs])


def training_run(kind=TrainingRun, **more):
    output = SimpleNamespace(
        interrupted=False, steps=40, precision="float32", best_dev_spearman=0.5, best_step=20, start_dev_spearman=0.4
    )
    every = {"task": "sts", "split": "test", "subset": "all", "protocol": "cosine", "model": "a"}
    results = Results([Result(dataset=f"set {n}", metric="spearman", value=0.5, n=9, **every) for n in range(40)])
    return kind(Path("runs/a"), output, results, {"loading": 2.0}, Verdict(reason="dev selected"), **more)


def race_result():
    line = Line(
        name="minilm", form="trained", dev=0.8, low=0.7, high=0.9, speed=9.0, megabytes=90.0, steps=3, place="a"
    )
    return RaceResult(folder=Path("race"), lines=[line] * 30, quality=line, cpu=line, spent=5.0, budget=60.0)


def exported():
    graph, parity = GraphFile(bytes=90_000_000, sha256="0"), Parity(texts=9, least_cosine=0.99, scores=0.01, alone=0.1)
    names = ("onnx", "onnx-int8")
    return Description(
        samesense="1",
        dim=384,
        max_tokens=256,
        prompt="",
        inputs=["input_ids"],
        pad_token=0,
        padding_side="right",
        special_tokens=True,
        pooling="mean",
        modules=["Transformer", "Pooling"],
        graphs=dict.fromkeys(names, graph),
        parity=dict.fromkeys(names, parity),
        agreement=dict.fromkeys(names, Agreement(pairs=9, largest=0.01, ranks=0.99)),
        drift=Drift(data="dev.tsv", pairs=9, reference=80.0, points={"onnx": 0.0, "onnx-int8": -0.2}),
    )


def contexts():
    shares = {"first": 0.5, "second": 0.25, "share": 0.125}
    entry = Contribution(window=1, left=("a",), centre="b", right=("c",), whose="both", **shares)
    return Contexts(sentences=("a", "b"), score=0.5, contexts=9, alike=[entry] * 9, apart=[entry])


def word_explanation():
    share = WordShare(word="guitar", first=1.0, second=2.0, share=0.25)
    amounts = {"score": 0.5, "own": 0.1, "state": 0.1, "words": 0.3, "projection": 0.0}
    return WordExplanation(sentences=("a", "b"), **amounts, both=[share] * 9, only_first=[share], only_second=[])


class FewTexts:
    name = "my.index"

    def __len__(self):
        return 12_345


MADE = {
    "Results": lambda: samesense.evaluate(by_letters, PAIRS),
    "Report": lambda: samesense.compare({"all": by_letters, "four": by_first_letters}, PAIRS, speed=False),
    "Deduplicated": lambda: samesense.dedup(TEXTS, model=by_letters),
    "Matched": lambda: samesense.match(TEXTS, TEXTS[::-1], model=by_letters),
    "MinedPairs": lambda: samesense.mine(TEXTS, model=by_letters),
    "RowList": lambda: samesense.rerank(TEXTS, model=by_letters, cross=SCORER, query="Zug"),
    "Drift": lambda: samesense.drift(by_letters, by_first_letters, TEXTS),
    "Explanation": lambda: samesense.explain(by_letters, TEXTS[0], TEXTS[1]),
    "PairData": lambda: samesense.read(PAIRS),
    "TupleData": lambda: samesense.mine_negatives(NLI, model=by_letters),
    "Sentences": lambda: samesense.read(TEXTS),
    "LabelledSentences": lambda: samesense.read([{"text": text, "class": text[:1]} for text in TEXTS]),
    "DataReport": lambda: samesense.doctor(PAIRS),
    "KindReport": lambda: samesense.doctor(TEXTS),
    "TrainingRun": training_run,
    "Distillate": lambda: training_run(Distillate),
    "Pretraining": lambda: training_run(Pretraining, before=9.0, after=8.0),
    "HarvestSummary": lambda: HarvestSummary(Path("h"), 9, {"a": 9}, {"a": 9}, {"a": 9}, {"no context": 2}, 3, {}),
    "RaceResult": race_result,
    "Description": exported,
    "Whitening": lambda: Whitening.fit(by_letters(TEXTS), 2),
    "Labelled": lambda: Labelled(Path("labels.tsv"), 20, 9),
    "Contexts": contexts,
    "WordExplanation": word_explanation,
    "SentenceMatches": lambda: samesense.explain(by_letters, "It rains. We stay.", "It snows.", by="sentences"),
    "Calibrated": lambda: calibrated(),
    "Markdown": lambda: Markdown("| loss | score |\n| --- | ---: |\n" + "| a | 1 |\n" * 40),
    "Model": lambda: samesense.load(by_letters),
    "Index": lambda: Index(FewTexts(), SimpleNamespace(name="default")),
}
SCORER = samesense.load("python-score:tests.contracts.test_every_result:score_letters")


def calibrated():
    from samesense.inference.calibration.fit import calibrate

    rng = np.random.default_rng(0)
    rows = [(f"text {n}", f"other {n}", float(n % 2)) for n in range(120)]
    scores = {row[:2]: row[2] + rng.normal(scale=0.4) for row in rows}
    model = SimpleNamespace(
        name="m",
        protocol="made",
        seed=None,
        embeds=False,
        scores=lambda pairs: np.array([scores[pair] for pair in pairs]),
    )
    return calibrate(model, samesense.read(rows), "none")


@pytest.fixture(scope="module")
def results():
    return {}


@pytest.mark.parametrize("name", MADE)
def test_it_is_brief_in_a_console_readable_in_print_and_shown_in_a_notebook(name):
    result = MADE[name]()
    console, printed = repr(result), str(result)
    assert len(console) <= 400 and len(console.splitlines()) <= 6, console
    assert " object at 0x" not in console and "array(" not in console + printed
    assert printed.strip() and "namespace(" not in printed
    assert not re.match(r"\w+\(.*=", printed) or name == "Model", "a dump of fields"
    if name != "Model":
        html = result._repr_html_()
        assert html.startswith(("<pre>", "<p>", "<table>", "<h3")), html[:60]
    if isinstance(result, RowList) or hasattr(result, "to_pandas"):
        assert len(result.to_pandas()) == len(result.to_dicts())


def test_every_public_function_is_covered():
    named = set()
    for name in samesense.__all__:
        function = getattr(samesense, name)
        if inspect.isfunction(function):
            named |= set(re.findall(r"\w+", str(inspect.signature(function).return_annotation))) - PLAIN
    assert named - set(MADE) == set()


def test_mined_pairs_are_a_list_with_their_texts():
    mined = samesense.mine(["a dog", "a cat", "a dog"], model=by_letters, top=1)
    assert [pair[:2] for pair in mined] == [(0, 2)]
    assert mined.to_dicts()[0]["text2"] == "a dog"
    assert str(mined).splitlines()[0].split() == ["first", "second", "score", "text1", "text2"]
    assert str(samesense.mine(["a dog", "zz"], model=by_letters, threshold=1)) == "none"
