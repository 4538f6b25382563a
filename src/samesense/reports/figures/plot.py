"""Write figures as inline SVG, SVG, PNG and PDF, and define the colours, markers and hatches of all figures.

Series can be told apart by colour-blind readers, in print, on light and on dark ground. A figure is drawn once, in the
light colours below. Each of them has one meaning only, so that a page can replace it by a CSS variable and follow the
reader's preference for light or dark.

Source: Okabe and Ito (2008), "Color universal design", for the series on light ground, less yellow and black.
"""

from __future__ import annotations

import importlib.util
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.errors import ConfigError, MissingExtraError
from samesense.files import write_bytes
from samesense.places import check_place

if TYPE_CHECKING:
    from matplotlib.figure import Figure


INK = "#1b1c1e"
MUTED = "#5f636b"
GRID = "#d3d6db"
GROUND = "#fdfdfc"

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b7f87")
SERIES_ON_DARK = ("#4aa3e0", "#f0782e", "#2fbf95", "#e29cc4", "#f2b632", "#9bd8fb", "#a3a7af")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (2, 1)))

LIGHT = {"ink": INK, "muted": MUTED, "grid": GRID, "ground": GROUND}
DARK = {"ink": "#e8e9eb", "muted": "#a3a7af", "grid": "#3d4148", "ground": "#16181b"}


@dataclass(frozen=True)
class Style:
    """Appearance of one series in all figures."""

    colour: str
    marker: str
    hatch: str
    dash: str | tuple[int, tuple[int, ...]]


def style_of(index: int) -> Style:
    """Return the style of the series with this index; the first 49 styles are all different."""
    colour = index % len(SERIES)
    shape = (index + index // len(SERIES)) % len(SERIES)
    return Style(SERIES[colour], MARKERS[shape], HATCHES[shape], DASHES[shape])


def variables() -> dict[str, tuple[str, str, str]]:
    """Return for each CSS variable the colour that is drawn, and its values on light and on dark ground."""
    palette = {f"--{name}": (LIGHT[name], LIGHT[name], DARK[name]) for name in LIGHT}
    for number, (light, dark) in enumerate(zip(SERIES, SERIES_ON_DARK, strict=True), 1):
        palette[f"--series-{number}"] = (light, light, dark)
    return palette


FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
)
"""Font families by preference; those after the first cover Chinese on one system or another."""

_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.unicode_minus": False,
    "figure.facecolor": GROUND,
    "font.size": 9.5,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.6,
    "legend.facecolor": GROUND,
    "legend.edgecolor": GRID,
    "legend.framealpha": 1.0,
    "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3
    "svg.fonttype": "none",
    "svg.hashsalt": "samesense",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
}


@dataclass(frozen=True)
class Plot:
    """A figure with its name and caption."""

    name: str  # stem of its files
    caption: str  # what it shows; also its text for screen readers
    figure: Figure  # of matplotlib, drawn in the light colours


def need_matplotlib() -> None:
    """Raise MissingExtraError if matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "report")


@contextmanager
def styled() -> Iterator[None]:
    """Set the style in which figures are drawn and written, in place of the user's own settings."""
    need_matplotlib()
    # Of an extra, and slow to load: only when a figure is drawn.
    import matplotlib as mpl
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    families = [family for family in FONTS if family in installed] or ["sans-serif"]
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        style: Any = {**_STYLE, "font.family": families}
        mpl.rcParams.update(style)
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a page is shown in the reader's fonts
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches, laid out so that nothing overlaps."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _settle(figure: Figure) -> None:
    """Fix the layout of a figure, in two passes: a single one misplaces panels of fixed aspect."""
    if figure.get_layout_engine() is not None:
        for _ in range(2):
            figure.draw_without_rendering()
        figure.set_layout_engine("none")


def svg_text(plot: Plot) -> str:
    """Return the figure as SVG with text as text and without a date: the same for the same figure."""
    return _saved(plot, "svg", "Date", "Creator", "Format", "Type").decode()


def _saved(plot: Plot, form: str, *without: str, **options: Any) -> bytes:
    """Return the figure in a format, ``without`` these of its metadata."""
    stream = io.BytesIO()
    with styled():
        _settle(plot.figure)
        plot.figure.savefig(stream, format=form, metadata=dict.fromkeys(without), **options)
    return stream.getvalue()


def inline_svg(plot: Plot, prefix: str) -> str:
    """Return the figure as an SVG element for an HTML page that defines the variables of the palette.

    ``prefix`` is put before every identifier, so that identifiers of several figures on a page do not clash.
    """
    svg = svg_text(plot)
    # An HTML page has no place for the XML declaration and the document type.
    svg = svg[svg.index("<svg") :]
    # Rules of an inline SVG would apply to the whole page.
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)
    # Within HTML, SVG needs no namespaces.
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)
    # The page chooses the fonts.
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)
    for variable, (drawn, _, _) in variables().items():
        svg = svg.replace(drawn, f"var({variable})")
    svg = re.sub(r'(fill|stroke)="(var\([^)]*\))"', r'style="\1: \2"', svg)
    # Rotations by 0 are written for every upright text, and do nothing.
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    # Hundredths of a point are finer than a screen shows.
    svg = re.sub(r'(?<= )(?:d|x|y|transform)="[^"]*"', lambda match: re.sub(r"(\.\d\d)\d+", r"\1", match[0]), svg)
    svg = re.sub(r"\n+", "\n", re.sub(r"\n +", "\n", svg))
    start = f'<svg role="img" aria-label="{escape(plot.caption)}" class="figure"'  # not a pattern: as it stands
    size = r'<svg width="([0-9.]+)pt" height="[0-9.]+pt"'
    return re.sub(size, lambda match: f'{start} style="width: {match[1]}pt"', svg, count=1)


def save_plots(plots: Sequence[Plot], folder: Path) -> list[Path]:
    """Write every figure as SVG, as PNG (200 dots an inch) and as PDF, in the light colours."""
    return [save_plot(plot, folder / f"{plot.name}{kind}") for plot in plots for kind in WRITTEN]


def save_plot(plot: Plot, path: Path) -> Path:
    """Write a figure to one file, as its suffix says: .svg, .pdf, or .png with 200 dots an inch.

    ConfigError if the suffix is another.
    """
    check_figure(path)
    return write_bytes(path, WRITTEN[path.suffix](plot))


def check_figure(path: Path) -> None:
    """Raise, before long work, if a figure could not be written there; errors as :func:`save_plot`."""
    if path.suffix not in WRITTEN:
        raise ConfigError(f"A figure ends in {' or '.join(WRITTEN)}; received {path.name!r}.")
    check_place(path)


WRITTEN: dict[str, Callable[[Plot], bytes]] = {
    ".svg": lambda plot: svg_text(plot).encode(),
    ".png": lambda plot: _saved(plot, "png", "Software", dpi=200),
    # Its fonts are inside.
    ".pdf": lambda plot: _saved(plot, "pdf", "CreationDate", "Creator", "Producer"),
}
"""Writers of figures, by the suffix of the file."""
