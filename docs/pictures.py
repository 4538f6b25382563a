"""Draw the picture of each method, of the speed of training and of how soon losses learn, into docs/images/.

python docs/pictures.py            writes them
python docs/pictures.py --check    exits with 1 if one would change

Blue and solid lines mark what is pulled together or in order, orange and dashed ones what is pushed apart or out of
order. Sentences, labels and cosines are examples; the values derived from them are computed.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from pathlib import Path

from drawing import EDGE, WIDTH, Picture, Point

FOLDER = Path(__file__).with_name("images")
MIDDLE = WIDTH / 2
RIGHT = WIDTH - EDGE

CURVES = Path(__file__).parent.parent / "benchmarks/results/curves.jsonl"
WITHOUT_A_FLAG = Path(__file__).parent.parent / "benchmarks/results/without_a_flag.jsonl"
REPRODUCED = Path(__file__).parent.parent / "reproduce/cosent/results"
LEARNT = {"stsb": "STS-B", "sickr": "SICK-R", "mrpc": "MRPC", "paws": "PAWS"}
CURVE_LOOKS = {"samesense": "pull", "sentence-transformers": "push"}


def cosent() -> Picture:
    """Each pair drawn to a value of its own, and all pairs compared by the order of their labels."""
    batch = (
        (5, 0.62, "We open at nine. / Open from 9 am."),
        (2, 0.75, "We open at nine. / We close at nine."),
        (2, 0.45, "It may rain. / Take an umbrella."),
        (0, 0.15, "Two dogs bark. / The train is late."),
    )
    terms = {
        (low[1], high[1]): math.exp((low[1] - high[1]) / 0.05) for low in batch for high in batch if low[0] < high[0]
    }

    def place(score: float) -> float:
        return 45 + 390 * score

    picture = Picture("What CoSENT compares", 652)
    picture.text(EDGE, 28, "One batch of labelled pairs", "bold")
    picture.text(392, 28, "label y", "muted", "end")
    picture.text(RIGHT, 28, "cosine s", "muted", "end")
    picture.text(EDGE, 178, "MSE: each pair alone, from s to y / 5", "bold")
    for row, (label, score, sentences) in enumerate(batch):
        picture.text(EDGE, 56 + 27 * row, sentences, "small")
        picture.dot(370, 51 + 27 * row, str(label))
        picture.text(RIGHT, 56 + 27 * row, f"{score:.2f}", "", "end")
        level = 201 + 25 * row
        goal = place(label / 5)
        picture.line((goal, level - 9), (goal, level + 9), tip=False)
        picture.line((place(score), level), (goal, level))
        picture.dot(place(score), level, str(label))
    picture.text(EDGE, 309, "Cross-entropy: each pair alone too; a head names its class", "small")
    picture.rule(325)
    picture.text(EDGE, 351, "CoSENT: pairs against pairs, by the order of y", "bold")
    level = 460
    picture.line((EDGE, level), (RIGHT, level), tip=False)
    for (low, high), term in terms.items():
        look, bend = ("push", -26) if term > 1 else ("pull", 20 + 90 * (high - low))
        picture.line((place(low), level), (place(high), level), look=look, bend=bend, tip=False)
    for label, score, _ in batch:
        picture.dot(place(score), level, str(label))
    picture.text(RIGHT, level + 22, "cosine s", "muted", "end")
    fine, wrong = (sum(term for term in terms.values() if (term > 1) is over) for over in (False, True))
    words = f"in order: terms that add up to {fine:.2f}", f"2 above 5: exp((0.75 − 0.62) / 0.05) = {wrong:.1f}"
    picture.legend(516, *words)
    picture.formula(
        562,
        "L = log(1 + sum of exp((s_a − s_b) / t)) over all y_a < y_b",
        "s: cosine, y: label, t: temperature; a has the lower label",
        f"here L = log(1 + {fine:.2f} + {wrong:.1f}) = {math.log1p(fine + wrong):.2f}",
    )
    return picture


def supmpn() -> Picture:
    """One anchor, what it is pulled to, and what it is pushed from."""
    groups = (
        ("its positives", "pull", ("Someone makes music.", "A guitar is being played.", "He plays an instrument.")),
        ("its hard negatives", "push", ("The man sleeps.", "The guitar is in its case.")),
        ("positives of other anchors", "push", ("Rain is falling.",)),
        ("negatives of other anchors", "push", ("The sky is clear.",)),
    )
    picture = Picture("One anchor of SupMPN and its candidates", 550)
    picture.text(EDGE, 128, "anchor i", "bold")
    picture.box(EDGE, 138, 130, 92, "A man plays", "the guitar.")
    level = 24
    port = 145
    for name, look, texts in groups:
        picture.text(235, level + 4, name, "bold")
        for text in texts:
            level += 34
            picture.box(235, level - 20, RIGHT - 235, 28, text, look=look)
            ends = [(149, port), (231, level - 6)]
            picture.line(*(ends[::-1] if look == "pull" else ends), look=look)
            port += 13
        level += 34
    picture.text(EDGE, 314, "another anchor", "bold")
    picture.box(EDGE, 324, 130, 28, "It is raining.")
    picture.text(EDGE, 372, "other anchors are left out", "muted")
    picture.rule(394)
    picture.legend(
        416, "pulled: its own positives, a term for each", "pushed: all other candidates c of the batch", tip=True
    )
    picture.formula(
        460,
        "L_i = mean over p of −log(e(p) / (e(p) + sum of e(c)))",
        "p: one of its positives, whose others are not in the sum",
        "e(x) = exp(cos(anchor i, x) / t); t: temperature",
    )
    return picture


def simcse() -> Picture:
    """The cosines of two dropout views: the diagonal is pulled, the rest is pushed."""
    cosines = [["0.93", "0.21", "0.08"], ["0.17", "0.95", "0.12"], ["0.05", "0.14", "0.91"]]
    picture = Picture("SimCSE: each sentence twice through dropout", 542)
    picture.text(EDGE, 28, "A batch", "bold")
    for row, sentence in enumerate(("1  The tram is late.", "2  She paints a door.", "3  Two dogs bark.")):
        picture.text(EDGE, 54 + 24 * row, sentence)
    picture.box(245, 36, 220, 56, "encoder, second pass", "with other dropout")
    picture.box(EDGE, 255, 160, 56, "encoder, first pass", "with dropout")
    picture.line((180, 64), (241, 64))
    picture.line((95, 118), (95, 251))
    picture.text(107, 160, "the same encoder", "muted")
    for view in range(3):
        across = 280 + 75 * view
        down = 208 + 75 * view
        picture.line((across, 96), (across, 140))
        picture.text(across, 160, f"v_{view + 1}", "bold", "middle")
        picture.line((179, 283 + 12 * (view - 1)), (205, down))
        picture.text(212, down + 4, f"u_{view + 1}", "bold")
    picture.grid(245, 172, 75, cosines, lambda row, column: "pull" if row == column else "push")
    picture.rule(408)
    picture.legend(430, "pulled together: the same sentence, twice", "pushed apart: other sentences of the batch")
    picture.formula(
        470, "L = cross-entropy of softmax(row i / t) with class i", "row i: cos(u_i, v) of all v; t: temperature"
    )
    return picture


def rankcse() -> Picture:
    """The student's ranking of a batch beside the teacher's, and the three terms of the loss."""
    teacher = {"No tram came.": 0.81, "The bus is late.": 0.55, "She is painting.": 0.20, "Two dogs bark.": 0.11}
    student = {"No tram came.": 0.78, "She is painting.": 0.43, "The bus is late.": 0.35, "Two dogs bark.": 0.09}
    picture = Picture("RankCSE: the student ranks the batch as the teacher does", 588)
    picture.text(MIDDLE, 28, "“The tram is late.” and the rest of its batch", "bold", "middle")
    picture.text(EDGE, 56, "teacher, frozen", "muted")
    picture.text(RIGHT, 56, "student, in training", "muted", "end")
    for x, ranking in ((EDGE, teacher), (RIGHT - 185, student)):
        for rank, (sentence, score) in enumerate(ranking.items()):
            picture.box(x, 66 + 38 * rank, 185, 30, f"{score:.2f}  {sentence}")
    for rank, sentence in enumerate(teacher):
        student_rank = list(student).index(sentence)
        picture.line(
            (206, 81 + 38 * rank), (274, 81 + 38 * student_rank), look="pull" if rank == student_rank else "push"
        )
    picture.text(MIDDLE, 238, "crossed: an order that the student has still to learn", "small", "middle")
    picture.rule(254)
    picture.text(EDGE, 280, "The terms of the loss", "bold")
    picture.text(EDGE, 302, "S: cosines of two dropout views; T: the teacher’s cosines", "small")
    terms = (
        ("InfoNCE", "a sentence finds", "its other view,", "as in SimCSE"),
        ("consistency", "row i of S ranks", "as column i does,", "the other view"),
        ("rank", "row i of S ranks", "as row i of T does,", "the teacher’s"),
    )
    for term, (name, *lines) in enumerate(terms):
        x = EDGE + 155 * term
        picture.text(x + 70, 332, name, "bold", "middle", room=150)
        for row, words in enumerate(lines):
            picture.text(x + 70, 480 + 18 * row, words, "small", "middle", room=150)
        for cell in range(16):
            row, column = divmod(cell, 4)
            marked = (row == column, 1 in (row, column), row == 1)[term]
            picture.box(x + 14 + 29 * column, 342 + 29 * row, 25, 25, look="pull" if marked else "plain")
    picture.formula(534, "L = InfoNCE + β consistency + γ rank")
    return picture


def origin() -> Picture:
    """A sentence in a prompt, the words that follow two sentences, and the Surrogate that learns from them."""
    words = (
        ("station", 0.8, 0.6),
        ("delay", 0.6, 0.75),
        ("taxi", 0.35, 0.0),
        ("departure", 0.0, 0.5),
    )
    picture = Picture("Origin compares sentences by the words they lead to, and a Surrogate learns from it", 612)
    picture.text(EDGE, 28, "A prompt asks a language model for one word", "bold")
    picture.box(EDGE, 38, RIGHT - EDGE, 46, "The topic of this sentence : “ s ” is in one word: “ …", look="open")
    picture.rule(100)
    picture.text(EDGE, 126, "Two sentences", "bold")
    for row, sentence in enumerate(("She missed the train.", "Her train had already left.")):
        picture.dot(24, 146 + 26 * row, radius=7, look="full" if row == 0 else "")
        picture.text(42, 151 + 26 * row, sentence)
    picture.text(EDGE, 208, "Words that are more likely than usual to come next", "bold")
    picture.line((140, 224), (140, 360), tip=False)
    for row, (word, first, second) in enumerate(words):
        level = 240 + 30 * row
        picture.text(EDGE, level + 5, word)
        picture.line((140, level), (RIGHT, level), tip=False)
        picture.dot(140 + 320 * first, level, radius=7, look="full")
        picture.dot(140 + 320 * second, level, radius=7)
    picture.text(140, 378, "as usual", "muted", "middle")
    picture.text(RIGHT, 378, "more", "muted", "end")
    picture.rule(390)
    picture.text(EDGE, 416, "Origin: a vector for each sentence, compared", "bold")
    for x, look in ((EDGE, "full"), (RIGHT - 180, "")):
        picture.box(x, 430, 180, 58, "", "words, and the model’s", "own states, whitened")
        picture.dot(x + 90, 443, radius=7, look=look)
        picture.line((x + 184 if x == EDGE else x - 4, 459), (213 if x == EDGE else 267, 459), tip=False)
    picture.text(MIDDLE, 464, "cosine", "bold", "middle")
    picture.rule(502)
    picture.text(EDGE, 528, "Surrogate: an encoder that learns from Origin", "bold")
    picture.box(EDGE, 542, 176, 48, "Origin", "a language model: slow")
    picture.line((195, 566), (285, 566))
    picture.text(MIDDLE, 558, "its vectors", "small", "middle")
    picture.box(RIGHT - 176, 542, 176, 48, "Surrogate", "a small encoder: fast")
    return picture


EXPLAINED = (
    (
        "both lead to",
        (("price", 5.10, 3.92), ("increased", 2.79, 3.69), ("production", 4.54, 3.07), ("output", 4.05, 2.95)),
    ),
    ("only the first", (("supply", 6.19, 0.0), ("rising", 3.92, 0.0), ("falls", 3.92, 0.0))),
    ("only the second", (("expensive", 0.0, 3.83), ("cut", 0.0, 2.74), ("curb", 0.0, 2.67))),
)
"""Words of the explanation in docs/methods/origin.md, and how much more likely than usual each sentence makes them."""


def explanation() -> Picture:
    """An explanation of ``samesense explain``: the words that two sentences lead to, as bars to either side."""
    picture = Picture("An explanation: the words that two sentences lead to, and how strongly", 458)
    for row, sentence in enumerate(
        ("Oil prices rise as supply falls.", "Crude gets more expensive after output cuts.")
    ):
        picture.dot(24, 24 + 26 * row, radius=7, look="full" if row == 0 else "")
        picture.text(42, 29 + 26 * row, sentence)
    level = 66.0
    for title, words in EXPLAINED:
        picture.rule(level)
        picture.text(EDGE, level + 22, title, "bold")
        level += 38
        for word, first, second in words:
            picture.text(MIDDLE, level + 5, word, "", "middle")
            for direction, strength, look in ((-1, first, "full"), (1, second, "")):
                if strength:
                    begin = MIDDLE + 52 * direction
                    end = begin + 20 * direction * strength
                    picture.line((begin, level), (end, level), tip=False)
                    picture.dot(end, level, radius=6, look=look)
            level += 26
    picture.text(EDGE, level + 8, "A longer line: more likely than usual.", "muted")
    return picture


def distil() -> Picture:
    """A small student learns the teacher's vectors and its ranking of each batch."""
    picture = Picture("Distillation: a small student learns from a teacher", 514)
    picture.box(EDGE, 16, WIDTH - 2 * EDGE, 32, "sentences without labels")
    picture.box(EDGE, 90, 180, 88, "teacher", "large, frozen: encodes", "each sentence once")
    picture.box(RIGHT - 180, 104, 180, 60, "student", "small, in training")
    picture.line((105, 52), (105, 86))
    picture.line((375, 52), (375, 100))
    for x, top, cells, vector, matrix in ((105, 182, 5, "v", "T"), (375, 168, 3, "u", "S")):
        picture.line((x, top), (x, 208))
        picture.text(x, 228, f"a vector {vector}", "", "middle")
        picture.grid(x - 29 * cells / 2, 238, 29, [[""] * cells], lambda row, column: "plain mid")
        picture.text(x, 300, f"cosines {matrix} of the batch", "", "middle")
        picture.grid(x - 58, 310, 29, [[""] * 4] * 4, lambda row, column: "plain mid" if row == 1 else "plain")
    picture.line((186, 250), (322, 250), look="pull")
    picture.text(MIDDLE + 13, 242, "its vector", "small", "middle")
    picture.line((170, 352), (306, 352), look="pull")
    picture.text(MIDDLE, 344, "its ranking", "small", "middle")
    picture.formula(
        440,
        "L = regress · mean(1 − cos(W u, v)) + γ rank(S, T)",
        "W: a map between the widths, used in training only",
    )
    return picture


def mixed() -> Picture:
    """Each kind of data has its own loss, all train one encoder, and four orders of the batches."""
    kinds = (("1  scored pairs", "CoSENT"), ("2  anchors", "SupMPN"), ("3  sentences", "SimCSE"))
    orders = (
        ("proportional", "121131211232", "at random, all data once"),
        ("round-robin", "123123", "one of each, until one part is through"),
        ("weighted 1:1:1", "312231132132", "at random in these shares, small parts again"),
        ("in-turn", "111111222233", "one part after the other"),
    )
    picture = Picture("Data of several kinds train one encoder", 450)
    picture.text(EDGE, 28, "Each kind of data keeps its own loss", "bold")
    picture.box(365, 42, 100, 126, "one", "encoder")
    looks = {"1": "plain dark", "2": "plain mid", "3": "plain"}
    for row, (data, loss) in enumerate(kinds):
        level = 42 + 45 * row
        picture.box(EDGE, level, 150, 36, data, look=looks[data[0]])
        picture.line((169, level + 18), (211, level + 18))
        picture.box(215, level, 100, 36, loss)
        picture.line((319, level + 18), (361, level + 18))
    picture.rule(184)
    picture.text(EDGE, 210, "A step is one batch of one part", "bold")
    for row, (name, order, meaning) in enumerate(orders):
        level = 226 + 56 * row
        picture.text(EDGE, level + 18, name)
        for step, digit in enumerate(order):
            picture.box(142 + 27 * step, level, 24, 24, digit, look=looks[digit])
        picture.text(142, level + 41, meaning, "small")
    return picture


def training() -> Picture:
    """Pairs a second and peak memory of training, by batch size, length and model."""
    lines = [json.loads(line) for line in CURVES.read_text(encoding="utf-8").splitlines()]
    picture = Picture("Training: speed and memory", 706)
    picture.legend(24, "samesense", "sentence-transformers, with its fastest settings")
    for row, of in enumerate(dict.fromkeys(line["of"] for line in lines)):
        for column, (measure, unit) in enumerate((("pairs_a_second", "pairs/s"), ("mib", "MiB added"))):
            ways = {way: [line for line in lines if (line["of"], line["way"]) == (of, way)] for way in CURVE_LOOKS}
            corner = (EDGE + column * WIDTH / 2, 80 + 208 * row)
            _panel(
                picture,
                corner,
                f"{unit} by {of}",
                {way: [(x["at"], x.get(measure)) for x in ways[way]] for way in ways},
            )
    return picture


def _panel(picture: Picture, corner: Point, title: str, ways: dict[str, list[tuple[object, float | None]]]) -> None:
    """Draw a line per way on a logarithmic scale, with each figure above the upper point or below the lower one.

    Points that ran out of memory have no figure.
    """
    width = WIDTH / 2 - 2 * EDGE
    height = 110
    values = [max(1, value) for way in ways.values() for _, value in way if value is not None]
    low = math.log(min(values))
    high = math.log(max(values))
    names = [index for index, _ in next(iter(ways.values()))]

    def place(index: int, value: float) -> Point:
        up = (math.log(max(1, value)) - low) / max(high - low, 1e-9)
        return corner[0] + 22 + index * (width - 44) / (len(names) - 1), corner[1] + 40 + height * (1 - up)

    picture.text(corner[0], corner[1] + 5, title, "small", room=width)
    for way, points in ways.items():
        other_points = next(points for name, points in ways.items() if name != way)
        drawn = [(index, value, other_points[index][1]) for index, (_, value) in enumerate(points) if value is not None]
        for (index, value, _), (after, following, _) in itertools.pairwise(drawn):
            picture.line(place(index, value), place(after, following), look=CURVE_LOOKS[way], tip=False)
        for index, value, other_value in drawn:
            x, y = place(index, value)
            picture.dot(x, y, radius=2.5, look="full")
            level = y - 8 if other_value is None or value > other_value else y + 18
            picture.text(x, level, f"{value:,.{0 if value >= 10 else 1}f}", "small", "middle", room=60)
    for index, name in enumerate(names):
        picture.text(place(index, 1)[0], corner[1] + height + 74, str(name), "muted", "middle", room=70)


def convergence() -> Picture:
    """Spearman on dev along the steps of CoSENT, beside MSE and softmax: mean over seeds."""
    picture = Picture("How soon CoSENT, MSE and softmax get there", 560)
    picture.legend(24, "CoSENT", "MSE, or softmax where it says so")
    panels = [
        *(("tuned", dataset, "mse", name) for dataset, name in LEARNT.items()),
        ("tuned-bq", "bq", "mse", "BQ"),
        ("tuned-softmax", "mrpc", "softmax", "MRPC, softmax"),
    ]
    for panel, (sweep, dataset, rival, name) in enumerate(panels):
        lines = [json.loads(line) for line in (REPRODUCED / f"{sweep}.jsonl").read_text(encoding="utf-8").splitlines()]
        ways = {
            look: _mean_curve([row["curve"] for row in lines if (row["variant"], row["dataset"]) == (variant, dataset)])
            for variant, look in (("cosent", "pull"), (rival, "push"))
        }
        corner = (EDGE + panel % 2 * WIDTH / 2, 78 + 160 * (panel // 2))
        last = max(step for points in ways.values() for step, _ in points)
        _lines(picture, corner, name, ways, ("0", f"{last:g} steps"))
    return picture


def _mean_curve(seeds: list[list[Point]]) -> list[Point]:
    """Return the mean score x100 at each step that all seeds were evaluated at."""
    runs = [dict(seed) for seed in seeds]
    return [
        (step, 100 * sum(run[step] for run in runs) / len(runs)) for step in runs[0] if all(step in r for r in runs)
    ]


def _lines(picture: Picture, corner: Point, title: str, ways: dict[str, list[Point]], ends: tuple[str, str]) -> None:
    """Draw a line per way, each in the look of its name; the ends of both axes are labelled."""
    left = corner[0] + 24
    top = corner[1] + 16
    width = WIDTH / 2 - 2 * EDGE - 24
    height = 96
    places = [along for points in ways.values() for along, _ in points]
    first = min(places)
    last = max(places)
    scores = [score for points in ways.values() for _, score in points]
    low = math.floor(min(scores))
    high = math.ceil(max(scores))

    def place(along: float, score: float) -> Point:
        return round(left + width * (along - first) / (last - first), 1), round(
            top + height * (high - score) / (high - low), 1
        )

    picture.text(left, corner[1] + 5, title, "small")
    for score in (low, high):
        picture.text(left - 4, place(first, score)[1] + 5, str(score), "muted", "end", room=24)
    picture.line((left, top + height), (left + width, top + height), tip=False)
    picture.text(left, top + height + 18, ends[0], "muted", "middle")
    picture.text(left + width, top + height + 18, ends[1], "muted", "end")
    for look, points in ways.items():
        for before, after in itertools.pairwise(points):
            picture.line(place(*before), place(*after), look=look, tip=False)


def without_a_flag() -> Picture:
    """How far a training without a flag and each recipe raise the figure of the start, by task."""
    lines = [json.loads(line) for line in WITHOUT_A_FLAG.read_text(encoding="utf-8").splitlines()]
    parts = {part: [line for line in lines if line["part"] == part] for part in ("final", "fresh", "development")}
    parts = {part: of_part for part, of_part in parts.items() if of_part}
    lines = [line for of_part in parts.values() for line in of_part]
    gains = [value - line["start"] for line in lines for value in (line["ours"], *line["rivals"].values())]
    lowest, highest = math.floor(min(0, *gains) / 5) * 5, math.ceil(max(gains) / 5) * 5
    left = EDGE + 12

    def place(gain: float) -> float:
        return round(left + (RIGHT - 12 - left) * (gain - lowest) / (highest - lowest), 1)

    picture = Picture("samesense train without a flag, and recipes", 92 + 38 * len(lines) + 38 * len(parts))
    picture.dot(EDGE + 6, 24, radius=6, look="ours")
    picture.text(EDGE + 20, 29, "samesense train, no flag", "small")
    picture.dot(226, 24, radius=5, look="rival")
    picture.text(238, 29, "recipes that people copy", "small")
    picture.text(EDGE, 52, "Points that a training adds to the figure of its start", "muted")
    level = 60
    for part, of_part in parts.items():
        picture.text(EDGE, level + 26, f"{part.capitalize()} tasks", "bold")
        level += 38
        top = level
        for line in of_part:
            picture.text(RIGHT, level + 12, line["task"], "small", "end")
            for value in line["rivals"].values():
                picture.dot(place(value - line["start"]), level + 24, radius=5, look="rival")
            picture.dot(place(line["ours"] - line["start"]), level + 24, radius=6, look="ours")
            level += 38
        picture.line((place(0), top), (place(0), level), tip=False)
    step = 10 if highest - lowest > 20 else 5
    for gain in range(math.ceil(lowest / step) * step, highest + 1, step):
        picture.text(place(gain), level + 20, f"{gain:+d}" if gain else "start", "muted", "middle")
    return picture


def few_labels() -> Picture:
    """How the figure of a training without a flag and of the best recipe grows with the number of labels."""
    lines = [json.loads(line) for line in WITHOUT_A_FLAG.read_text(encoding="utf-8").splitlines()]
    by_set: dict[str, list[tuple[int, dict[str, float]]]] = {}
    for line in lines:
        if line["part"] == "curves":
            name, labels = line["task"].rsplit(", ", 1)
            figures = {"pull": line["ours"], "push": line["rivals"][line["best"]], "plain": line["start"]}
            by_set.setdefault(name, []).append((int(labels.replace(",", "")), figures))
    picture = Picture("Few and many labels", 78 + 160 * math.ceil(len(by_set) / 2))
    picture.legend(24, "samesense train, no flag", "the best recipe; grey: the start")
    for panel, (name, points) in enumerate(by_set.items()):
        ways = {look: [(math.log(labels), figures[look]) for labels, figures in points] for look in points[0][1]}
        corner = (EDGE + panel % 2 * WIDTH / 2, 78 + 160 * (panel // 2))
        _lines(picture, corner, name, ways, (str(points[0][0]), f"{points[-1][0]:,} labels"))
    return picture


PICTURES = (
    cosent,
    supmpn,
    simcse,
    rankcse,
    origin,
    explanation,
    distil,
    mixed,
    training,
    convergence,
    without_a_flag,
    few_labels,
)


def main(arguments: list[str]) -> int:
    """Write or check the pictures; return the exit code."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python docs/pictures.py [--check]\n")
        return 2
    stale = 0
    for draw in PICTURES:
        path = FOLDER / f"{draw.__name__}.svg"
        now = draw().svg()
        if path.exists() and path.read_text(encoding="utf-8") == now:
            continue
        if arguments:
            sys.stderr.write(f"{path.name} is not what docs/pictures.py draws. Run: sh scripts/docs\n")
            stale = 1
        else:
            path.write_text(now, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
