"""Several models on several tasks: what is encoded, what is not run, and what fails."""

import numpy as np
import pytest

from samesense.evaluation.run import evaluate_candidates
from tests.evaluation.toy import Embedder, Overlap, remembering
from tests.models import made_model


def test_all_texts_are_encoded_together_once():
    encode, tasks = Embedder(), [Overlap(), Overlap(dataset="other.test")]
    opened = [("spec", remembering("a", encode))]
    found = evaluate_candidates(opened, tasks, sentences=["a cat", "a dog"])
    assert opened == []
    assert [set(call) for call in encode.calls] == [{*tasks[0].texts(), *tasks[1].texts(), "a cat", "a dog"}]
    assert found.models[0].texts == len(encode.calls[0])
    assert set(found.models[0].seconds) == {"sts"}
    assert {row.dataset for row in found.results} == {"toy.test", "other.test"}
    assert found.sentences["a"].shape == (4,)


def test_a_model_that_fails_has_no_figure_and_the_others_have_theirs():
    models = [("x", remembering("broken", Embedder("NaN in text 3"))), ("y", remembering("whole", Embedder()))]
    found = evaluate_candidates(models, [Overlap()], sentences=["a", "b"])
    assert {row.model for row in found.results} == {"whole"}
    [failed] = found.failures
    assert (failed.model, failed.task, failed.dataset, failed.reason) == ("broken", "sts", "toy.test", "NaN in text 3")
    assert list(found.sentences) == ["whole"]
    assert found.notes == ["heatmap: without broken. NaN in text 3"]


def test_constant_scores_are_a_failure_and_a_defect_is_not_hidden():
    flat = made_model(lambda pairs: np.ones(len(pairs)), name="flat")
    assert [one.model for one in evaluate_candidates([("", flat)], [Overlap()]).failures] == ["flat"]

    def defective(pairs):
        raise TypeError("a defect")

    with pytest.raises(TypeError, match="a defect"):
        evaluate_candidates([("", made_model(defective, name="d"))], [Overlap()])


def test_what_only_scores_is_not_asked_to_embed():
    scorer = made_model(lambda pairs: np.arange(len(pairs), dtype=float), name="s")
    tasks = [Overlap(), Overlap(embeds=True, dataset="needs.vectors")]
    found = evaluate_candidates([("", scorer)], tasks, sentences=["a", "b"])
    assert {row.dataset for row in found.results} == {"toy.test"}
    assert found.notes == ["sts: not run with s, which scores pairs and gives no embeddings."]
    assert found.failures == []
    assert found.sentences == {}
