"""The loss curve and the gradient of the logits, as figures and as PNG."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from character_model import files
from character_model.training import LATER_RATE, RATE
from character_model.words import Examples

LONGEST_MEAN = 1000
POINTS = 50  # of a curve at least, where the run has as many steps
DOTS_PER_INCH = 120


def loss_curve(losses: Tensor) -> Figure:
    """The loss, averaged over 1000 steps (fewer in a short run)."""
    length = max(1, min(LONGEST_MEAN, len(losses) // POINTS))
    points = len(losses) // length
    means = losses[: points * length].view(points, length).mean(1)
    steps = [(point + 0.5) * length for point in range(points)]
    figure = Figure(figsize=(8, 4.5), dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.add_subplot()
    axes.plot(steps, means.tolist(), color="black", linewidth=1)
    axes.axvline(len(losses) / 2, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xlim(0, len(losses))
    axes.set_xlabel(f"step (dotted: the rate falls from {RATE} to {LATER_RATE})")
    axes.set_ylabel("loss" if length == 1 else f"loss, mean of {length:,} steps")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(color="0.9")
    return figure


def gradient_picture(dlogits: Tensor, batch: Examples, symbols: str) -> Figure:
    """A row per example, a column per symbol; darker symbols are pulled up more.

    Descent moves against the gradient, so the label's entry is negative. The grey scale is
    symmetric: zero is the middle grey.
    """
    bound = dlogits.abs().max().item()
    figure = Figure(figsize=(7, 7), dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(
        dlogits.numpy(), cmap="gray", vmin=-bound, vmax=bound, interpolation="nearest"
    )
    axes.set_xticks(range(len(symbols)), list(symbols))
    rows = [
        f"{''.join(symbols[s] for s in context)} {symbols[label]}"
        for context, label in zip(batch.contexts.tolist(), batch.labels.tolist(), strict=True)
    ]
    axes.set_yticks(range(len(rows)), rows, family="monospace", fontsize=8)
    axes.set_xlabel("symbol")
    axes.set_ylabel("context, and the label that follows")
    axes.set_title("gradient of the logits: dark is pulled up, light is pushed down", fontsize=10)
    figure.colorbar(image, shrink=0.6)
    return figure


def write_png(figure: Figure, path: Path) -> None:
    """Render with Agg, which needs no display. Raises Mistake."""
    content = io.BytesIO()
    FigureCanvasAgg(figure).print_png(content, metadata={"Software": "gradform makemore"})
    files.write(path, content.getvalue())
