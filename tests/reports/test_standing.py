"""The ranking of models, and its verdict in words."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from samesense.errors import DataError
from samesense.evaluation.run import Cost, EvaluatedModel
from samesense.execution.speed import Speed
from samesense.metrics import bootstrap_interval
from samesense.metrics.resampling import resamples
from samesense.reports.recommendation import MARGIN, needed_examples, recommend
from samesense.reports.significance import p_text, paired_comparisons
from samesense.reports.standing import rank
from samesense.reports.tables import ranking_cells
from samesense.reports.verdict import count_text, direction, losses, span, verdict, verdict_notes
from samesense.results.measures import measure_of
from tests.reports.made import evidence, result, scored


def model(name, **cost):
    return EvaluatedModel(
        name=name, spec=name, protocol="cosine", cost=Cost(computed="in float32 on 2 threads", **cost)
    )


def test_on_one_set_the_verdict_is_that_of_the_tables():
    results, behind = scored(300)
    ranking = rank(behind, results, against="c")
    comparisons, _ = paired_comparisons(behind, results, against="c")
    assert {comparison.model: comparison for comparison in comparisons} == ranking.against_reference
    assert [standing.model for standing in ranking.standings] == ["a", "b", "c"]
    assert [standing.score for standing in ranking.standings] == pytest.approx(
        [row.value for row in results], abs=1e-12
    )
    low, high = bootstrap_interval(behind[0].values, behind[0].labels, "spearman", samples=2000)
    assert (ranking.standings[0].low, ranking.standings[0].high) == pytest.approx((low, high), abs=1e-12)


def test_the_best_is_chosen_by_its_figure_and_pays_for_it():
    results, behind = scored(300)
    ranking = rank(behind, results, against="c")
    [direct], _ = paired_comparisons(behind[:2], results[:2], against="b")
    beside = {comparison.reference: comparison for comparison in ranking.best_others}
    assert beside["b"] == direct  # by Holm over three pairs: the other two have smaller p-values
    assert beside["c"].adjusted == pytest.approx(3 * beside["c"].p_value)
    assert rank(behind, results).best_others == ranking.best_others  # with any reference


def rights(rate, n, seed=0):
    """Return outcomes; this rate of them is right."""
    return (np.random.default_rng(seed).random(n) < rate).astype(float)


def of_outcomes(**outcomes):
    """Results and evidence of models by their outcomes."""
    behind = [evidence(name, item, metric="accuracy", task="sections") for name, item in outcomes.items()]
    rows = [result(item.model, item.values.mean(), metric="accuracy", task="sections") for item in behind]
    return behind, rows


def test_the_best_of_many_models_can_be_shown():
    worse = {f"m{seed}": rights(0.4, 300, seed=seed) for seed in range(11)}
    first, lead = verdict(rank(*of_outcomes(**worse, best=rights(0.97, 300, seed=20))))
    assert first.startswith("best is the best of 12 models"), (first, lead)


def test_a_third_from_which_the_best_cannot_be_told_apart_is_named():
    best = rights(0.7, 300)
    second = best.copy()
    second[np.flatnonzero(best)[:12]] = 0  # makes the errors of the best, and a few more
    third = np.random.default_rng(5).permutation(np.arange(300) < best.sum() - 18).astype(float)
    ranking = rank(*of_outcomes(best=best, second=second, third=third))
    assert [standing.model for standing in ranking.standings] == ["best", "second", "third"]
    first, lead = verdict(ranking)
    assert first.startswith("best has the highest score of 3 models")
    assert " above second (" in lead
    assert "cannot be told apart from third (" in lead
    further_models = {f"more {number}": third for number in range(3)}
    assert lead.count("cannot be told") == 1
    assert " or 2 more." in verdict(rank(*of_outcomes(best=best, second=second, third=third, **further_models)))[1]


def test_a_model_of_which_one_run_has_failed_is_not_ranked():
    labels = np.arange(30.0) % 5
    behind = [evidence("base", labels, labels)]
    behind += [evidence("m", labels[::-1], labels, seed=seed) for seed in (1, 2)]
    rows = [result(item.model, 0.5, seed=item.seed) for item in behind]
    runs_of_model = [EvaluatedModel(name="m", spec="m", protocol="", seed=seed) for seed in (1, 2, 3)]
    assert rank(behind, rows, [model("base"), *runs_of_model]).unranked == ("m",)
    assert rank(behind, rows, [model("base"), *runs_of_model[:2]]).unranked == ()


def test_the_mean_of_several_sets_is_resampled_set_by_set():
    both = [scored(80, seed=seed, dataset=name) for seed, name in ((1, "one.test"), (2, "two.test"))]
    results, behind = ([item for set_of_models in both for item in set_of_models[side]] for side in (0, 1))
    ranking = rank(behind, results)
    drawn = {name: [] for name in "ab"}
    for name in "ab":
        sets = [item for item in behind if item.model == name]
        again = [[rows for block in resamples(80, 2000, number) for rows in block] for number in (0, 1)]
        for first, second in zip(*again, strict=True):
            pairs_of_sets = zip(sets, (first, second), strict=True)
            drawn[name].append(
                np.mean([spearmanr(o.values[rows], o.labels[rows]).statistic for o, rows in pairs_of_sets])
            )
    differences = np.array(drawn["b"]) - drawn["a"]
    comparison = ranking.against_reference["b"]
    assert (comparison.low, comparison.high) == pytest.approx(
        tuple(np.quantile(differences, [0.025, 0.975])), abs=1e-12
    )
    smaller = min((differences <= 0).sum(), (differences >= 0).sum())
    assert comparison.p_value == pytest.approx(min(1, 2 * (smaller + 1) / 2001))
    standing = next(item for item in ranking.standings if item.model == "a")
    assert (standing.low, standing.high) == pytest.approx(tuple(np.quantile(drawn["a"], [0.025, 0.975])), abs=1e-12)
    assert (ranking.n, ranking.datasets) == (160, ("one.test", "two.test"))
    assert ranking.on == "the mean of 2 sts sets"


def test_sets_of_the_same_examples_are_resampled_together():
    results, behind = scored(80)
    again = [[replace(item, dataset="again") for item in items] for items in (results, behind)]
    alone = rank(behind, results)
    twice = rank([*behind, *again[1]], [*results, *again[0]])
    assert (twice.n, len(twice.datasets)) == (80, 2)
    for name, item in alone.against_reference.items():
        doubled = twice.against_reference[name]
        assert (doubled.low, doubled.high, doubled.p_value) == pytest.approx((item.low, item.high, item.p_value))
    assert twice.of_means[0].dataset == "mean of 2" and not alone.of_means


def test_seeds_of_a_model_count_together_and_the_verdict_says_what_they_allow():
    labels = np.arange(120.0) % 6
    rng = np.random.default_rng(0)
    runs = [evidence("trained", labels + rng.normal(size=120), labels, seed=seed) for seed in (1, 2, 3)]
    base = evidence("base", labels + 4 * rng.normal(size=120), labels)
    rows = [result("base", spearmanr(base.values, labels).statistic)]
    rows += [result("trained", spearmanr(item.values, labels).statistic, seed=item.seed) for item in runs]
    ranking = rank([base, *runs], rows)
    best = ranking.standings[0]
    assert (best.model, best.seeds) == ("trained", 3)
    assert best.low < best.score < best.high
    assert ", mean of 3 seeds)" in verdict(ranking)[0]
    assert "fewer than 5 seeds" in verdict_notes(ranking)[0]


def test_a_model_that_lacks_a_set_is_not_ranked_and_named():
    results, behind = scored(80)
    second_set = evidence("a", np.arange(9.0), np.arange(9.0), dataset="two.test")
    ranking = rank([*behind, second_set], [*results, result("a", 1.0, dataset="two.test")])
    assert [standing.model for standing in ranking.standings] == ["a"]
    assert verdict_notes(ranking) == ["Not ranked, for want of a figure on every set: b, c."]
    second_evidence = evidence("b", np.arange(9.0), np.arange(9.0), dataset="two.test")
    with pytest.raises(DataError, match="no model has a figure on each of"):
        rank([behind[0], second_evidence], [results[0], result("b", 1.0, dataset="two.test")])


def test_a_model_of_which_one_run_lacks_a_set_is_not_ranked():
    labels = np.arange(30.0) % 5
    behind = [evidence("base", labels, labels, dataset=name) for name in ("one.test", "two.test")]
    behind += [evidence("m", labels[::-1], labels, dataset="one.test", seed=seed) for seed in (1, 2)]
    behind.append(evidence("m", labels[::-1], labels, dataset="two.test", seed=1))
    ranking = rank(behind, [result(item.model, 0.5, dataset=item.dataset, seed=item.seed) for item in behind])
    assert ([standing.model for standing in ranking.standings], ranking.unranked) == (["base"], ("m",))


def test_what_has_no_better_has_no_ranking():
    assert rank([], [result("a", 0.2, task="geometry", metric="alignment")]) is None


def test_the_sentences():
    results, behind = scored(1000)
    fast = Speed((1043.7, 1012.0, 1060.0))
    slow = Speed((9.94, 9.3, 11.2))
    models = [model("a", speed=fast, parameters=22_700_000, megabytes=90.9), model("c", speed=slow)]
    first, lead, cost = verdict(rank(behind, results, models, against="c"))
    assert first.startswith("a is the best of 3 models: Spearman ")
    assert first.endswith(" on one.test, 1,000 examples.")
    assert lead.startswith("It is ")
    assert " above c (95 % interval " in lead
    assert " above b (95 % interval " in lead
    assert cost == (
        "Measured here in float32 on 2 threads: a reads 1,040 (1,010 to 1,060) sentences a second (22.7 million "
        "parameters, 90.9 MB on disk); c reads 9.9 (9.3 to 11) sentences a second."
    )


def test_speeds_whose_ranges_overlap_are_not_ranked_and_a_machine_that_was_not_quiet_is_named():
    """Two measurements of the same models said 366 and 220, then 294 and 534, each time as a ranking."""
    results, behind = scored(1000)
    reason = "5.1 processes wanted 2 processors when it began"
    models = [
        model(name, speed=Speed(rounds), disturbed=reason)
        for name, rounds in (("a", (366.0, 294.0, 330.0)), ("c", (220.0, 534.0, 301.0)))
    ]
    ranking = rank(behind, results, models, against="c")
    assert verdict(ranking)[-1].endswith("; the ranges overlap, so neither is known to be faster.")
    assert f"The machine was not quiet while speeds were measured ({reason})" in verdict_notes(ranking)[-1]
    assert ranking_cells(ranking)[1][0][4] == "3.0 (2.7 to 3.4)"


def test_one_figure_has_one_interval():
    """The answer said 54.7 to 69.8, the table below it 55.02 to 69.63."""
    results, behind = scored(100)
    with_intervals = [replace(row, low=row.value - 0.08, high=row.value + 0.07) for row in results]
    for standing, row in zip(rank(behind, with_intervals).standings, with_intervals, strict=True):
        assert (standing.low, standing.high) == (row.low, row.high)


def test_the_headline_reads_all_suites():
    """It said "the best of 4 models" of one that was worse in another suite."""
    results, behind = scored(1000)
    first = np.arange(1000) < 700
    accuracies = {"a": first, "b": first | (np.arange(1000) >= 980), "c": first & (np.arange(1000) % 3 > 0)}
    section_evidence = [
        evidence(name, right, metric="accuracy", task="sections", dataset="s.test")
        for name, right in accuracies.items()
    ]
    rows = [
        result(item.model, item.values.mean(), metric="accuracy", task="sections", dataset="s.test")
        for item in section_evidence
    ]
    assert verdict(rank(behind, results))[0].startswith("a is the best of 3 models")
    ranking = rank([*behind, *section_evidence], [*results, *rows])
    assert (ranking.counted, ranking.on) == (("sts", "sections"), "the mean of 2 suites (sts, sections)")
    on_sts = {row.model: row.value for row in results}
    for standing in ranking.standings:
        assert standing.score == pytest.approx((on_sts[standing.model] + accuracies[standing.model].mean()) / 2)
    [loss] = ranking.elsewhere["a"]
    assert (loss.suite, loss.comparison.reference) == ("sections", "b")
    assert loss.comparison.difference == pytest.approx(-0.02) and loss.comparison.p_value < 0.01
    assert [item.suite for item in ranking.elsewhere["b"]] == ["sts"]
    [sentence] = losses(ranking, "a")
    assert sentence.startswith("But on sections (s.test) b is 2.0 above a (95 % interval ")
    equal = [replace(item, values=section_evidence[0].values) for item in section_evidence]
    assert rank([*behind, *equal], [*results, *rows]).elsewhere["a"] == ()


def test_a_suite_that_a_model_cannot_do_counts_for_none_but_a_failure_does_not_take_it_from_the_others():
    results, behind = scored(300)
    transfer_evidence = [
        evidence(name, rights(0.7, 300, seed=seed), metric="accuracy", task="transfer", dataset="mr")
        for seed, name in enumerate("ab")
    ]
    rows = [
        result(item.model, item.values.mean(), metric="accuracy", task="transfer", dataset="mr")
        for item in transfer_evidence
    ]
    ranking = rank([*behind, *transfer_evidence], [*results, *rows])
    assert (ranking.counted, ranking.unranked) == (("sts",), ())
    assert recommend(ranking).lines()[-1] == "Not counted, for not every model can do it: transfer."
    ranking = rank([*behind, *transfer_evidence], [*results, *rows], failed={"c"})
    assert (ranking.counted, ranking.unranked) == (("sts", "transfer"), ("c",))


def test_the_recommendation_of_a_clear_winner():
    results, behind = scored(1000)
    models = [
        model("a", speed=Speed((1043.7, 1012.0, 1060.0)), megabytes=90.9, memory=612.0),
        model("b", speed=Speed((99.4, 93.0, 112.0))),
    ]
    recommendation = recommend(rank(behind, results, models))
    assert (recommendation.model, recommendation.equals) == ("a", ("a",))
    choice, cost = recommendation.lines()
    assert re.fullmatch(
        r"Take a: Spearman \d+\.\d \(95 % interval [\d.]+ to [\d.]+\) on one\.test, 1,000 examples, \d\.\d above "
        r"b, the next \(95 % interval \d\.\d to \d\.\d, p [<=] [\d.]+\) and further above the other\.",
        choice,
    ), choice
    assert cost == (
        "a takes 0.96 (0.94 to 0.99) ms a text, 612 MB of memory and 90.9 MB on disk (measured here in float32 on 2 "
        "threads); b takes 10 (8.9 to 11) ms a text."
    )


def test_of_models_that_cannot_be_told_apart_the_cheapest_is_recommended():
    results, behind = scored(60)
    assert 0 < results[0].value - results[1].value < MARGIN
    fast = model("b", speed=Speed((800.0, 790.0, 810.0)), megabytes=22.0)
    slow = model("a", speed=Speed((200.0, 190.0, 210.0)), megabytes=22.0)
    recommendation = recommend(rank(behind, results, [slow, fast]))
    assert (recommendation.model, recommendation.equals) == ("b", ("a", "b"))
    choice, _, power = recommendation.lines()
    assert choice.startswith("Take b: it is within 1 point of a, the highest, and not shown to be worse (")
    assert ", at about a quarter of the time; Spearman " in choice
    assert re.match("(No data of this size would|To) show a difference as (small|large) as that of a and b", power)
    alike = model("b", speed=Speed((195.0, 191.0, 200.0)), megabytes=11.0)
    recommendation = recommend(rank(behind, results, [slow, alike]))
    assert recommendation.model == "b" and ", at about half of the size on disk; " in recommendation.lines()[0]
    unmeasured = recommend(rank(behind, results))
    assert unmeasured.model == "a" and unmeasured.lines()[1] == "What the models cost was not measured."


@pytest.mark.parametrize("measured", [True, False])
def test_few_pairs_do_not_recommend_a_weak_model_because_it_is_cheap(measured):
    """With 15 pairs no model is shown to be worse, not even one that is far below."""
    results, behind = scored(15, noise=(0.5, 1.2, 1.2))
    slow = model("a", speed=Speed((200.0, 190.0, 210.0)), megabytes=90.0)
    fast = [model(name, speed=Speed((9000.0, 8900.0, 9100.0)), megabytes=2.0) for name in "bc"]
    ranking = rank(behind, results, [slow, *fast] if measured else ())
    recommendation = recommend(ranking)
    assert recommendation.equals[0] == "a" and len(recommendation.equals) > 1  # not shown to be worse
    assert ranking.standings[0].score - ranking.standings[1].score > MARGIN
    assert (recommendation.model, recommendation.near) == ("a", ("a",))
    text = " ".join(recommendation.lines())
    assert "the highest, and not shown to be better than " in text
    assert ("; no other model is within 1 point of it." in text) == measured
    assert re.search(r"about [\d,]+ examples of this kind would be needed; these are 15\.", text), text


def test_the_margin_is_the_border_between_the_cheaper_and_the_highest():
    results, behind = scored(60)
    ranking = rank(
        behind,
        results,
        [model("a", speed=Speed((200.0, 190.0, 210.0))), model("b", speed=Speed((900.0, 890.0, 910.0)))],
    )
    best, second, third = ranking.standings
    chosen = [
        recommend(replace(ranking, standings=(best, replace(second, score=best.score - below), third))).model
        for below in (0.99 * MARGIN, 1.01 * MARGIN)
    ]
    assert chosen == ["b", "a"]


def test_the_highest_that_is_also_the_cheapest_says_so():
    results, behind = scored(15, noise=(0.5, 1.2, 1.2))
    fast = model("a", speed=Speed((9000.0, 8900.0, 9100.0)), megabytes=2.0)
    slow = [model(name, speed=Speed((200.0, 190.0, 210.0)), megabytes=90.0) for name in "bc"]
    [choice, *_] = recommend(rank(behind, results, [fast, *slow])).lines()
    assert choice.startswith("Take a: ") and choice.endswith("; none of these is known to be cheaper.")


def test_a_model_is_not_called_cheaper_than_one_whose_cost_is_unknown():
    results, behind = scored(60)
    fast = model("b", speed=Speed((900.0, 890.0, 910.0)), megabytes=22.0)
    assert recommend(rank(behind, results, [model("a"), fast])).model == "a"
    assert recommend(rank(behind, results, [model("a"), model("b", megabytes=22.0)])).model == "a"


def test_copies_of_a_model_are_equal_and_neither_is_the_best():
    results, behind = scored(80)
    copy = [replace(results[0], model="copy"), replace(behind[0], model="copy")]
    recommendation = recommend(rank([behind[0], copy[1]], [results[0], copy[0]]))
    assert len(recommendation.lines()) == 2 and "equal to copy on every example" in recommendation.lines()[0]
    assert "best" not in " ".join(recommendation.lines())
    text, _, power = recommend(rank([*behind[:2], copy[1]], [*results[:2], copy[0]])).lines()
    assert "copy (equal on every example)" in text and "b (" in text, text
    assert "of a and b" in power


def test_the_needed_examples_reach_the_power_that_they_promise():
    """Of paired outcomes whose difference is known, the share of clear differences at that size is about 80 %."""
    rng = np.random.default_rng(0)
    differences = rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.7, 0.2], size=100_000)
    error = 1.96 * differences[:200].std() / np.sqrt(200)
    of_sample = replace(
        rank(*of_outcomes(a=rights(0.7, 200), b=rights(0.6, 200, seed=1))).best_others[0],
        difference=0.1,
        low=0.1 - error,
        high=0.1 + error,
        n=200,
    )
    needed = needed_examples(of_sample, 1)
    samples = rng.choice(differences, size=(2000, needed))
    significant = samples.mean(axis=1) / (samples.std(axis=1) / np.sqrt(needed)) > 1.96
    assert 0.7 < significant.mean() < 0.9
    assert needed_examples(replace(of_sample, difference=0.0), 1) is None


def test_the_best_that_cannot_be_told_apart_is_not_called_the_best():
    results, behind = scored(60)
    first, lead = verdict(rank(behind[:2], results[:2]))
    assert first.startswith("a has the highest score of 2 models")
    assert lead.startswith("It cannot be told apart from b (")
    assert " below to " in lead
    assert "-" not in lead
    [alone] = verdict(rank(behind[:1], results[:1]))
    assert alone.startswith("a has Spearman ")


def test_differences_are_read_without_signs():
    spearman = measure_of("spearman")
    assert direction(0.179, spearman, 1) == "17.9 above"
    assert direction(-0.179, spearman) == "17.90 below"
    assert direction(0.00001, spearman, 1) == "less than 0.1 above"
    assert direction(-0.00001, spearman) == "less than 0.01 below"
    assert direction(0.0, spearman, 1) == "equal to"
    assert span(-0.206, -0.153, spearman, 1) == "15.3 to 20.6 below"
    assert span(-0.004, 0.01, spearman, 1) == "0.4 below to 1.0 above"
    assert [p_text(p) for p in (0.0004, 0.24, 1.0)] == ["p < 0.001", "p = 0.24", "p = 1"]
    assert [count_text(n) for n in (1.66, 23.4, 1043.7, 17_649)] == ["1.7", "23", "1,040", "17,600"]


def test_every_ranked_model_has_a_row():
    results, behind = scored(200)
    header, rows = ranking_cells(rank(behind, results, [model("b", speed=Speed((20.0, 19.0, 21.0)))], against="c"))
    assert header[3] == "against c"
    assert [row[0] for row in rows] == ["a", "b", "c"]
    assert rows[2][3] == "the reference"
    assert [row[4] for row in rows] == ["-", "50 (48 to 53)", "-"]
    assert header[4:] == ["ms a text (range)"]  # their sizes are unknown
    models = [model("a"), replace(model("b"), cost=Cost(computed="in int8 on 1 thread"))]
    header, rows = ranking_cells(rank(behind, results, models, against="c"))
    assert header[4:] == ["computed"]  # only where it differs
    assert [row[4] for row in rows] == ["in float32 on 2 threads", "in int8 on 1 thread", ""]
