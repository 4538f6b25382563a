"""Whether training helped: the trained model compared with its untouched start, set by set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from samesense.errors import DataError
from samesense.reports.significance import p_text, paired_comparisons
from samesense.results.markup import one_line
from samesense.results.measures import Measure, measure_of
from samesense.results.shown import Shown
from samesense.results.tables import Table, text_table
from samesense.types import TaskResult

Word = Literal["better", "no difference", "worse"]

Role = Literal[
    "test",
    "dev",
    "cross-fitted dev",
    "out of fold",
    "held-out sections",
    "held-out anchors",
    "held-out texts",
    "guard",
]
"""What a set measures. All but a guard measure the task: test data, a part of dev, cross-fitted dev, training pairs out
of fold, held-out sections, held-out anchors and held-out texts with classes. A guard must not get worse."""

CROSS_FITTED: Role = "cross-fitted dev"
OUT_OF_FOLD: Role = "out of fold"

CLAIMS: Mapping[Word, str] = {"better": "better than", "no difference": "no difference from", "worse": "worse than"}


FEW_OF_A_LABEL = 20
"""Fewer examples of the rarer label than this tell a gain from a loss only where it is large."""

MANY = 0.1
"""Above this share of examples that were also trained on, a gain is no evidence."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Two models on one set."""

    role: Role
    dataset: str  # name of the set
    n: int  # examples
    metric: str  # name of the figure
    start: float  # figure of the model before
    end: float  # figure of the model after
    low: float  # lower end of the 95 % interval of the difference, by paired bootstrap
    high: float  # upper end of it
    p_value: float  # two-sided, of this set alone
    description: str = ""  # how the set was split off, in words
    against: str = "the start"  # what the model before is
    start_low: float | None = None  # lower end of the 95 % interval of the figure before, where there is one
    start_high: float | None = None  # upper end of it
    end_low: float | None = None  # lower end of that of the figure after
    end_high: float | None = None  # upper end of it
    trained_on: int = 0  # examples that were also trained on, which the model may have memorised
    rarer: int | None = None  # examples of the rarer label, where labels are yes or no

    @property
    def word(self) -> Word:
        """``better`` or ``worse`` if the interval excludes 0, else ``no difference``."""
        if self.low > 0:
            return "better"
        if self.high < 0:
            return "worse"
        return "no difference"

    @property
    def has_few_of_a_label(self) -> bool:
        """Whether the examples of the rarer label are too few to tell a gain from a loss."""
        return self.rarer is not None and self.rarer < FEW_OF_A_LABEL

    @property
    def measure(self) -> Measure:
        """How its figures are shown."""
        return measure_of(self.metric)

    @property
    def sides(self) -> tuple[tuple[str, float, float | None, float | None], ...]:
        """Name, figure and ends of the 95 % interval, of the start and of the trained model."""
        before = ("start", self.start, self.start_low, self.start_high)
        return before, ("trained", self.end, self.end_low, self.end_high)

    @property
    def name(self) -> str:
        """Name of the set, marked if it is a guard."""
        name = one_line(self.dataset)
        if self.role == "guard":
            return f"{name} (guard)"
        return name

    @property
    def lead(self) -> str:
        """The difference as text."""
        return self.measure.text(self.end - self.start, sign="+")

    @property
    def interval(self) -> str:
        """The 95 % interval of the difference as text."""
        return " to ".join(self.measure.text(end, sign="+") for end in (self.low, self.high))

    @property
    def figures(self) -> str:
        """Both figures, after the name of the measure."""
        return f"{self.measure.label} {self.measure.text(self.start)} to {self.measure.text(self.end)}"

    def claim(self) -> str:
        """Return the finding without figures."""
        return f"{CLAIMS[self.word]} {self.against} on {self.dataset}"

    def examples(self) -> str:
        """Return the number of examples, how they were split off, and how many of them were trained on."""
        sentence = f"{self.n:,} examples"
        if self.description:
            sentence += f" {self.description}"
        if self.has_few_of_a_label:
            sentence += f", {self.rarer} of the rarer label"
        if not self.trained_on:
            return sentence
        overlap = f"{self.trained_on:,} of them were trained on"
        if self.word != "better":
            return f"{sentence}, {overlap}"
        effect = "this shows no gain" if self.trained_on > MANY * self.n else "this raises it"
        return f"{sentence}, but {overlap}: {effect}"

    def line(self) -> str:
        """Return the finding in one line: both figures, the difference, its interval and the examples."""
        return f"{self.claim()}: {self.lead} (95 % interval {self.interval}), {self.figures}, {self.examples()}"


def compare(
    role: Role, before: TaskResult, after: TaskResult, *, description: str = "", against: str = "the start"
) -> Finding:
    """Compare the model after with the one before by their first figure on one set.

    DataError if the comparison is undefined.
    """
    name = before.evidence[0].model
    comparisons, problems = paired_comparisons(
        [*before.evidence, *after.evidence], [*before.results, *after.results], against=name
    )
    if not comparisons:
        raise DataError(*problems[:1] or [f"{before.evidence[0].dataset}: there is no figure to compare."])
    comparison = comparisons[0]
    start, end = (
        next(row for row in side.results if (row.metric, row.subset) == (comparison.metric, "all"))
        for side in (before, after)
    )
    return Finding(
        role=role,
        dataset=comparison.dataset,
        n=comparison.n,
        metric=comparison.metric,
        start=start.value,
        end=end.value,
        low=comparison.low,
        high=comparison.high,
        p_value=comparison.p_value,
        description=description,
        against=against,
        start_low=start.low,
        start_high=start.high,
        end_low=end.low,
        end_high=end.high,
    )


@dataclass(frozen=True, kw_only=True)
class Merged:
    """Which weights between start and end were chosen on dev."""

    share: float  # of the way from the start to the end; 1 is the end itself
    dev: Mapping[str, float]  # Spearman on dev by share
    beside_end: Finding | None = None  # the merged model compared with the end, on the set of the verdict

    def line(self) -> str:
        """Return in one line what was chosen, and whether it beats the end."""
        scores = {float(share): 100 * score for share, score in self.dev.items()}
        if self.share == 1:
            return f"merge: the end itself is the best on dev ({scores[1.0]:.2f}), and is what is kept"
        sentence = (
            f"merge: {self.share:.0%} of the way from the start to the end, chosen on dev "
            f"({scores[self.share]:.2f}, the end {scores[1.0]:.2f})"
        )
        if self.beside_end:
            return f"{sentence}; {self.beside_end.line()}"
        return f"{sentence}; beside the end not tested"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """What more labels would give, extrapolated from models that were trained on parts of the data."""

    rows: int  # all of the training data
    points: Sequence[tuple[int, float]]  # rows and figure of each model
    gain: float  # of twice the rows, by the curve
    low: float  # lower end of its 95 % band
    high: float  # upper end of it
    band: Sequence[tuple[float, float, float, float]]  # rows, figure, lower and upper end of its band
    dataset: str

    def line(self) -> str:
        """Return in one line what twice the labels would give."""
        return (
            f"learning curve: twice the data ({2 * self.rows:,}) would give about {100 * self.gain:+.1f} "
            f"(band {100 * self.low:+.1f} to {100 * self.high:+.1f}) on {self.dataset}"
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict(Shown):
    """Whether a run made its model better than the untouched start, and what follows from that.

    Attributes:
        task: the finding on the task (test, dev, or training pairs out of fold); ``None`` if there is no verdict.
        guards: the findings on the sets that must not get worse.
        reason: why there is no verdict.
        problems: guards that could not be compared, and why.
        merge: what ``merge`` chose, if it was requested.
        curve: what more labels would give, if that was requested.
        advice: what to do if something got worse.
        keep_reason: why the run kept the start as its model, if it did.
        refit: on what its model was trained again after the verdict, if it was.
    """

    task: Finding | None = None
    guards: tuple[Finding, ...] = ()
    reason: str = ""
    problems: tuple[str, ...] = ()
    merge: Merged | None = None
    curve: Curve | None = None
    advice: tuple[str, ...] = ()
    keep_reason: str = ""
    refit: str = ""

    @property
    def word(self) -> Word | Literal["none"]:
        """``better``, ``no difference`` or ``worse``; ``none`` if there is no verdict."""
        if self.task is None:
            return "none"
        return self.task.word

    @property
    def findings(self) -> list[Finding]:
        """The findings on the task and on the guards."""
        if self.task is None:
            return list(self.guards)
        return [self.task, *self.guards]

    @property
    def harmed(self) -> bool:
        """Whether the task or a guard got worse."""
        return any(finding.word == "worse" for finding in self.findings)

    def table(self) -> Table:
        """Return a table with a row per set: figures, the difference with its 95 % interval and p-value, the word."""
        alike = len({finding.metric for finding in self.findings}) == 1
        corner = self.findings[0].measure.heading if alike else "set"
        rows = []
        for finding in self.findings:
            name = finding.name if alike else f"{finding.name}, {finding.measure.heading}"
            figures = [finding.measure.text(value) for _, value, *_ in finding.sides]
            p_value = p_text(finding.p_value).removeprefix("p ").removeprefix("= ")
            rows.append([name, *figures, finding.lead, finding.interval, p_value, finding.word])
        return [corner, "start", "trained", "difference", "95 % interval", "p", ""], rows

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the verdict as lines of text: the word, its figures as a table, and what follows from it."""
        lines = [f"no verdict: {self.reason}"]
        if self.task is not None:
            lines = [f"verdict: {_loud(self.task)}"]
        if self.findings:
            header, rows = self.table()
            lines += text_table(header, rows, left=(header[0], header[-1])).splitlines()
        lines += [f"guard: {_loud(guard)}" for guard in self.guards if guard.word == "worse"]
        lines += self.problems
        lines += [follow_up.line() for follow_up in (self.merge, self.curve) if follow_up]
        lines += [f"advice: {line}" for line in self.advice]
        if self.keep_reason:
            lines.append(f"kept: {self.keep_reason}")
        if self.refit:
            lines.append(f"refit: {self.refit}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain JSON types."""
        content = asdict(replace(self, task=None, guards=()))
        sets = [
            {**asdict(finding), "difference": finding.end - finding.start, "verdict": finding.word}
            for finding in self.findings
        ]
        return {"verdict": self.word, "sets": sets} | {
            name: value for name, value in content.items() if value and name not in ("task", "guards")
        }


def _loud(finding: Finding) -> str:
    """Return the finding without figures, with WORSE in capitals."""
    sentence = f"{finding.claim()}, {finding.examples()}"
    if finding.word != "worse":
        return sentence
    return sentence.replace("worse", "WORSE", 1)


def verdict_from(content: Mapping[str, Any]) -> Verdict:
    """Return the verdict that :meth:`Verdict.to_dict` wrote, without its learning curve."""
    sets = [
        Finding(**{name: value for name, value in finding.items() if name not in ("difference", "verdict")})
        for finding in content["sets"]
    ]
    return Verdict(
        task=next((finding for finding in sets if finding.role != "guard"), None),
        guards=tuple(finding for finding in sets if finding.role == "guard"),
        reason=content.get("reason", ""),
        problems=tuple(content.get("problems", ())),
        merge=merged_from(content["merge"]) if "merge" in content else None,
        advice=tuple(content.get("advice", ())),
        keep_reason=content.get("keep_reason", ""),
        refit=content.get("refit", ""),
    )


def merged_from(content: Mapping[str, Any]) -> Merged:
    """Return the merge that :func:`dataclasses.asdict` turned into ``content``."""
    finding = content["beside_end"]
    return Merged(**{**content, "beside_end": finding and Finding(**finding)})
