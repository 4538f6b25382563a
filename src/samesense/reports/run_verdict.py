"""Whether training helped, in words: the trained model beside its untouched start, set by set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from samesense.errors import DataError
from samesense.reports.significance import p_text, paired_comparisons
from samesense.results import Measure, Shown, Table, measure_of, one_line, text_table
from samesense.types import TaskResult

Word = Literal["better", "no difference", "worse"]

Role = Literal["test", "dev", "cross-fitted dev", "out of fold", "held-out sections", "guard"]
"""What a set is for: the task, by test, by a part of dev, by dev whose pairs choose for each other, by the training
pairs out of fold, or by sections; or a guard, which must not suffer."""

CROSS_FITTED: Role = "cross-fitted dev"
OUT_OF_FOLD: Role = "out of fold"

CLAIMS: Mapping[Word, str] = {"better": "better than", "no difference": "no difference from", "worse": "worse than"}


MANY = 0.1
"""Share of the examples that were trained on from which on a gain shows nothing."""


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
    how: str = ""  # how the set was cut, in words
    against: str = "the start"  # what the model before is
    start_low: float | None = None  # lower end of the 95 % interval of the figure before, where there is one
    start_high: float | None = None  # upper end of it
    end_low: float | None = None  # lower end of that of the figure after
    end_high: float | None = None  # upper end of it
    trained_on: int = 0  # examples that were also trained on, for which the model may know the answer by heart

    @property
    def word(self) -> Word:
        """``worse`` or ``better`` where the interval leaves out 0."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "no difference"

    @property
    def measure(self) -> Measure:
        """How its figures are shown."""
        return measure_of(self.metric)

    @property
    def sides(self) -> tuple[tuple[str, float, float | None, float | None], ...]:
        """Start and trained model: their names, their figures, and the ends of the 95 % intervals of these."""
        before = ("start", self.start, self.start_low, self.start_high)
        return before, ("trained", self.end, self.end_low, self.end_high)

    @property
    def name(self) -> str:
        """The set, marked if it is a guard."""
        return f"{one_line(self.dataset)}{' (guard)' if self.role == 'guard' else ''}"

    @property
    def lead(self) -> str:
        """The difference, as it is shown."""
        return self.measure.text(self.end - self.start, sign="+")

    @property
    def interval(self) -> str:
        """Its 95 % interval, as it is shown."""
        return " to ".join(self.measure.text(end, sign="+") for end in (self.low, self.high))

    def claim(self) -> str:
        """Return what was found, without figures."""
        return f"{CLAIMS[self.word]} {self.against} on {self.dataset}"

    def examples(self) -> str:
        """Return on how many examples, how they were cut, and how many of them were trained on."""
        said = f"{self.n:,} examples{f' {self.how}' if self.how else ''}"
        if not self.trained_on:
            return said
        known = f"{self.trained_on:,} of them were trained on"
        if self.word != "better":
            return f"{said}, {known}"
        return f"{said}, but {known}: {'this shows no gain' if self.trained_on > MANY * self.n else 'this raises it'}"

    def line(self) -> str:
        """Return the finding in a line for people: both figures, the difference, its interval and the examples."""
        shown = self.measure
        figures = f"{shown.label} {shown.text(self.start)} to {shown.text(self.end)}"
        return f"{self.claim()}: {self.lead} (95 % interval {self.interval}), {figures}, {self.examples()}"


def compare(role: Role, before: TaskResult, after: TaskResult, *, how: str = "", against: str = "the start") -> Finding:
    """Return how the model after stands beside the one before, by their first figure on one set.

    DataError if the comparison is undefined.
    """
    name = before.evidence[0].model
    comparisons, problems = paired_comparisons(
        [*before.evidence, *after.evidence], [*before.results, *after.results], against=name
    )
    if not comparisons:
        raise DataError(problems[0] if problems else f"{before.evidence[0].dataset}: there is no figure to compare.")
    one = comparisons[0]
    start, end = (
        next(row for row in side.results if (row.metric, row.subset) == (one.metric, "all")) for side in (before, after)
    )
    return Finding(
        role=role, dataset=one.dataset, n=one.n, metric=one.metric, start=start.value, end=end.value, low=one.low,
        high=one.high, p_value=one.p_value, how=how, against=against,
        start_low=start.low, start_high=start.high, end_low=end.low, end_high=end.high,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Merged:
    """Which weights between start and end were chosen on dev."""

    share: float  # of the way from the start to the end; 1 is the end itself
    dev: Mapping[str, float]  # Spearman on dev by share
    beside_end: Finding | None = None  # the merged model and the end, on the set of the verdict

    def line(self) -> str:
        """Return in a line for people what was chosen, and whether it beats the end."""
        scores = {float(share): 100 * score for share, score in self.dev.items()}
        if self.share == 1:
            return f"merge: the end itself is the best on dev ({scores[1.0]:.2f}), and is what is kept"
        said = (
            f"merge: {self.share:.0%} of the way from the start to the end, chosen on dev "
            f"({scores[self.share]:.2f}, the end {scores[1.0]:.2f})"
        )
        return f"{said}; {self.beside_end.line()}" if self.beside_end else f"{said}; beside the end not tested"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """What more labels would give, by models that were trained on parts of the data."""

    rows: int  # all of the training data
    points: Sequence[tuple[int, float]]  # rows and figure of each model
    gain: float  # of twice the rows, as the curve has it
    low: float  # lower end of its 95 % band
    high: float  # upper end of it
    band: Sequence[tuple[float, float, float, float]]  # rows, figure, lower and upper end of its band
    dataset: str

    def line(self) -> str:
        """Return in a line for people what twice the labels would give."""
        return (
            f"learning curve: twice the data ({2 * self.rows:,}) would give about {100 * self.gain:+.1f} "
            f"(band {100 * self.low:+.1f} to {100 * self.high:+.1f}) on {self.dataset}"
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict(Shown):
    """Whether a run has made its model better than the untouched start, and what follows.

    Attributes:
        task: on test, on dev, or on the training pairs out of fold; ``None`` where there is no verdict.
        guards: on the sets that must not suffer.
        reason: why there is none.
        problems: guards that could not be compared, and why.
        merge: what ``merge`` chose, where it was asked for.
        curve: what more labels would give, where that was asked for.
        advice: what to do, where something got worse.
        kept: why the model of the run is the start, where it is.
    """

    task: Finding | None = None
    guards: tuple[Finding, ...] = ()
    reason: str = ""
    problems: tuple[str, ...] = ()
    merge: Merged | None = None
    curve: Curve | None = None
    advice: tuple[str, ...] = ()
    kept: str = ""

    @property
    def word(self) -> Word | Literal["none"]:
        """``better``, ``no difference`` or ``worse``; ``none`` where there is no verdict."""
        return "none" if self.task is None else self.task.word

    @property
    def findings(self) -> list[Finding]:
        """Those of the task and of the guards."""
        return [*([self.task] if self.task else []), *self.guards]

    @property
    def harmed(self) -> bool:
        """Whether the task or a guard got worse."""
        return any(one.word == "worse" for one in self.findings)

    def table(self) -> Table:
        """Return a row a set: both figures, the difference with its 95 % interval and p-value, and the word."""
        alike = len({one.metric for one in self.findings}) == 1
        corner = self.findings[0].measure.heading if alike else "set"
        rows = []
        for one in self.findings:
            name = one.name if alike else f"{one.name}, {one.measure.heading}"
            figures = [one.measure.text(value) for _, value, *_ in one.sides]
            p_value = p_text(one.p_value).removeprefix("p ").removeprefix("= ")
            rows.append([name, *figures, one.lead, one.interval, p_value, one.word])
        return [corner, "start", "trained", "difference", "95 % interval", "p", ""], rows

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the verdict for people, in lines: what it is, its figures as a table, and what follows."""
        return [
            *([f"verdict: {_loud(self.task)}"] if self.task else []),
            *([] if self.task else [f"no verdict: {self.reason}"]),
            *self._drawn(),
            *(f"guard: {_loud(one)}" for one in self.guards if one.word == "worse"),
            *self.problems,
            *([self.merge.line()] if self.merge else []),
            *([self.curve.line()] if self.curve else []),
            *(f"advice: {one}" for one in self.advice),
            *([f"kept: {self.kept}"] if self.kept else []),
        ]

    def _drawn(self) -> list[str]:
        if not self.findings:
            return []
        header, rows = self.table()
        return text_table(header, rows, left=(header[0], header[-1])).splitlines()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        content = asdict(replace(self, task=None, guards=()))
        sets = [{**asdict(one), "difference": one.end - one.start, "verdict": one.word} for one in self.findings]
        return {"verdict": self.word, "sets": sets} | {
            name: value for name, value in content.items() if value and name not in ("task", "guards")
        }


def _loud(one: Finding) -> str:
    said = f"{one.claim()}, {one.examples()}"
    return said.replace("worse", "WORSE", 1) if one.word == "worse" else said


def verdict_from(content: Mapping[str, Any]) -> Verdict:
    """Return the verdict that :meth:`Verdict.to_dict` wrote, less its learning curve."""
    sets = [
        Finding(**{name: value for name, value in one.items() if name not in ("difference", "verdict")})
        for one in content["sets"]
    ]
    return Verdict(
        task=next((one for one in sets if one.role != "guard"), None),
        guards=tuple(one for one in sets if one.role == "guard"),
        reason=content.get("reason", ""),
        problems=tuple(content.get("problems", ())),
        merge=merged_from(content["merge"]) if "merge" in content else None,
        advice=tuple(content.get("advice", ())),
        kept=content.get("kept", ""),
    )


def merged_from(content: Mapping[str, Any]) -> Merged:
    """Return what :func:`dataclasses.asdict` made of it."""
    beside = content["beside_end"]
    return Merged(**{**content, "beside_end": None if beside is None else Finding(**beside)})
