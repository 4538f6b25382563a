"""Several models on several tasks: encoded texts, skipped tasks, and failures."""

import numpy as np
import pytest

from samesense.evaluation.run import evaluate_candidates
from tests.evaluation.toy import Embedder, Overlap, remembering
from tests.models import made_model


def test_all_texts_are_encoded_together_once():
    encode = Embedder()
    tasks = [Overlap(), Overlap(dataset="other.test")]
    candidates = [("spec", remembering("a", encode))]
    evaluation = evaluate_candidates(candidates, tasks, sentences=["a cat", "a dog"])
    assert candidates == []
    assert [set(call) for call in encode.calls] == [{*tasks[0].texts(), *tasks[1].texts(), "a cat", "a dog"}]
    assert evaluation.models[0].texts == len(encode.calls[0])
    assert set(evaluation.models[0].seconds) == {"sts"}
    assert {row.dataset for row in evaluation.results} == {"toy.test", "other.test"}
    assert evaluation.sentences["a"].shape == (4,)


def test_a_model_that_fails_has_no_figure_and_the_others_have_theirs():
    models = [("x", remembering("broken", Embedder("NaN in text 3"))), ("y", remembering("whole", Embedder()))]
    evaluation = evaluate_candidates(models, [Overlap()], sentences=["a", "b"])
    assert {row.model for row in evaluation.results} == {"whole"}
    [failed] = evaluation.failures
    assert (failed.model, failed.task, failed.dataset, failed.reason) == ("broken", "sts", "toy.test", "NaN in text 3")
    assert list(evaluation.sentences) == ["whole"]
    assert evaluation.notes == ["heatmap: without broken. NaN in text 3"]


def test_constant_scores_are_a_failure_and_a_defect_is_not_hidden():
    flat = made_model(lambda pairs: np.ones(len(pairs)), name="flat")
    assert [failure.model for failure in evaluate_candidates([("", flat)], [Overlap()]).failures] == ["flat"]

    def defective(pairs):
        raise TypeError("a defect")

    with pytest.raises(TypeError, match="a defect"):
        evaluate_candidates([("", made_model(defective, name="d"))], [Overlap()])


def test_what_only_scores_is_not_asked_to_embed():
    scorer = made_model(lambda pairs: np.arange(len(pairs), dtype=float), name="s")
    tasks = [Overlap(), Overlap(embeds=True, dataset="needs.vectors")]
    evaluation = evaluate_candidates([("", scorer)], tasks, sentences=["a", "b"])
    assert {row.dataset for row in evaluation.results} == {"toy.test"}
    assert evaluation.notes == ["sts: not run with s, which scores pairs and gives no embeddings."]
    assert evaluation.failures == []
    assert evaluation.sentences == {}
