"""Axes and colours: bins of pathways, powers of ten, codons, colour bars."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hpcvdj.report.survey import BINS_PER_DECADE, Survey, coarse

SCALE = LinearSegmentedColormap.from_list("hpcvdj", mpl.colormaps["cividis_r"](np.linspace(0.0, 1.0, 64)))

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(exponent: int) -> str:
    """A power of ten as a label: 1, 10, 100, 1,000, 10⁴ …"""
    return f"{10**exponent:,}" if exponent < 4 else "10" + str(exponent).translate(_RAISED)


def power_or_less(exponent: int) -> str:
    return power(exponent) if exponent >= 0 else f"{10.0**exponent:g}"


def bins_shown(surveys: Sequence[Survey]) -> int:
    """Bins up to the last decade that any junction is in; one decade at least."""
    last = max((int(np.flatnonzero(coarse(one.totals)[1:]).max(initial=0)) for one in surveys), default=0)
    return (last // BINS_PER_DECADE + 1) * BINS_PER_DECADE


def decades(bins: int) -> tuple[list[int], list[str]]:
    """Places and labels of the powers of ten on an axis of bins."""
    exponents = range(bins // BINS_PER_DECADE + 1)
    return [BINS_PER_DECADE * e for e in exponents], [power(e) for e in exponents]


def codon_ticks(axes: Axes, span: int) -> None:
    """Ticks at multiples of three nucleotides."""
    step = next((step for step in (3, 6, 12) if span <= 10 * step), 24)
    axes.xaxis.set_major_locator(mpl.ticker.MultipleLocator(step))


def log_norm(matrices: Sequence[NDArray[np.float64]], cut: float = 0.0) -> LogNorm:
    """A logarithmic scale of what is above zero, less the shares `cut` at both ends."""
    positive = np.concatenate([matrix[matrix > 0] for matrix in matrices])
    low, high = np.quantile(positive, [cut, 1 - cut]) if len(positive) else (1.0, 1.0)
    return LogNorm(float(low), float(high if high > low else low * 10))


def colourbar(figure: Figure, axes: Axes, norm: Normalize, label: str, *, beyond: bool = False) -> None:
    extend = "both" if beyond else "neither"
    bar = figure.colorbar(ScalarMappable(norm, SCALE), ax=axes, location="top", aspect=40, pad=0.015, extend=extend)
    bar.set_label(label)
    bar.ax.minorticks_off()
    if isinstance(norm, LogNorm):
        low, high = np.log10([norm.vmin or 1, norm.vmax or 10])
        exponents = range(int(np.ceil(low - 1e-9)), int(np.floor(high + 1e-9)) + 1)
        if len(exponents) > 1:
            bar.set_ticks([10.0**e for e in exponents], labels=[power_or_less(e) for e in exponents])
        else:
            ends = [float(norm.vmin or 1), float(norm.vmax or 10)]
            bar.set_ticks(ends, labels=[f"{end:,.0f}" if end >= 10 else f"{end:.2g}" for end in ends])
