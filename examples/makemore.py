"""Learn names and make up new ones: a small network, trained by closed forms without autograd.

    python examples/makemore.py train                            # on examples/words.txt
    python examples/makemore.py train --data names.txt --out names
    python examples/makemore.py train --resume names             # continue after Ctrl-C
    python examples/makemore.py sample names --count 50

Exit status: 0 done; 1 the training diverged; 2 invalid arguments; 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from character_model import checkpoint, files
from character_model.interrupt import Interrupt
from character_model.mistakes import Mistake
from character_model.network import (
    CPP,
    TARGETS,
    TORCH,
    calibrate,
    logits_gradient,
    mean_loss,
    sampled_names,
)
from character_model.progress import clock, progress
from character_model.training import BATCH, Diverged, Run, Settings, begin, train
from character_model.words import OWN_WORDS, Dataset, Examples, load
from rich.console import Console
from rich.table import Table

PROGRAM = Path(__file__).name
DONE, DIVERGED, NOT_UNDERSTOOD, INTERRUPTED = 0, 1, 2, 130
OUT = Path("makemore-run")
CHECKPOINT, LOSS_CURVE, GRADIENT = "checkpoint.pt", "loss.png", "logits_gradient.png"
IN_OUT = ""  # --resume without a value: the checkpoint in --out
NAMES = 20
SAMPLING_SEED = 10  # added to the run's own, so that sampling does not repeat its draws
SECONDS_BETWEEN_CHECKPOINTS = 10.0
MOST_HIDDEN = 100_000
LARGEST_SEED = 2**63 - 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; errors become one line on standard error and an exit status."""
    options = _parser().parse_args(arguments)
    try:
        status = options.verb(options)
        sys.stdout.flush()
        return status
    except Mistake as mistake:
        return _failed(mistake, NOT_UNDERSTOOD)
    except Diverged as diverged:
        return _failed(diverged, DIVERGED)
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)
    except BrokenPipeError:  # whoever reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _failed(message: object, status: int) -> int:
    sys.stderr.write(f"{PROGRAM}: {message}\n")
    return status


# The verbs


def train_command(options: argparse.Namespace) -> int:
    """Train or resume; then evaluate, sample and plot."""
    _require_matplotlib()
    resuming = options.resume is not None
    run, dataset, out = (_resumed if resuming else _fresh)(options)
    torch.set_num_threads(run.settings.threads)
    _describe(run, dataset)
    file = out / CHECKPOINT
    with Interrupt() as interrupt:
        checkpoint.write(run, file)  # a folder that cannot be written is found before the work
        _take_on(run, dataset.training, file, interrupt)
    if interrupt.requested:
        command = shlex.join(["python", sys.argv[0], "train", "--resume", str(out)])
        where = f"stopped after {run.step:,} of {run.settings.steps:,} steps"
        return _failed(f"{where}; go on with: {command}", INTERRUPTED)
    _finish(run, dataset, out)
    return DONE


def sample_command(options: argparse.Namespace) -> int:
    """Sample names from the checkpoint of a finished run."""
    file = _checkpoint_file(options.checkpoint)
    run = checkpoint.read(file)
    if run.calibration is None:
        raise Mistake(f"{file} holds an unfinished run: continue it with train --resume {file}")
    seed = run.settings.seed + SAMPLING_SEED if options.seed is None else options.seed
    torch.set_num_threads(run.settings.threads)
    _print_names(run, seed, options.count)
    return DONE


def _fresh(options: argparse.Namespace) -> tuple[Run, Dataset, Path]:
    out = options.out or OUT
    given = {name: value for name, value in _settings(options).items() if value is not None}
    dataset = load(options.data or OWN_WORDS)
    _prepare(out, source=None)
    data = options.data and str(options.data.absolute())
    return begin(Settings(**given), data, dataset.fingerprint), dataset, out


def _resumed(options: argparse.Namespace) -> tuple[Run, Dataset, Path]:
    """The run of a checkpoint, with its settings and data."""
    wanted = (options.out or OUT) if options.resume == IN_OUT else Path(options.resume)
    source = _checkpoint_file(wanted)
    run = checkpoint.read(source)
    for name, given in _settings(options).items():
        own = getattr(run.settings, name)
        if given not in (None, own):
            raise Mistake(
                f"--{name} {given} does not fit {source}, a run with --{name} {own}: leave it out"
            )
    data = options.data or Path(run.data or OWN_WORDS)
    if options.data is None and not data.exists():
        raise Mistake(f"{data}, the data of {source}, no longer exists: pass its path with --data")
    dataset = load(data, run.symbols)
    if dataset.fingerprint != run.fingerprint:
        raise Mistake(f"{data} does not hold the words that {source} was trained with")
    if options.data is not None:
        run.data = str(options.data.absolute())
    out = options.out or source.parent
    _prepare(out, source)
    return run, dataset, out


def _settings(options: argparse.Namespace) -> dict[str, int | str | None]:
    """The given settings; None for those omitted."""
    return {field.name: getattr(options, field.name) for field in dataclasses.fields(Settings)}


def _checkpoint_file(path: Path) -> Path:
    """The checkpoint file, given the file or its folder."""
    return path / CHECKPOINT if path.is_dir() else path


def _prepare(out: Path, source: Path | None) -> None:
    """Make the folder. Raises Mistake if this would overwrite an unfinished run."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"--out {out} is not a folder to write to: {error.strerror}") from None
    files.keep_what_is_others([out / LOSS_CURVE, out / GRADIENT])
    file = out / CHECKPOINT
    if not file.exists() or (source is not None and file.samefile(source)):
        return
    try:
        earlier = checkpoint.read(file)
    except Mistake as mistake:
        raise Mistake(f"{mistake}; choose another folder with --out") from None
    if earlier.step and not earlier.finished:
        raise Mistake(
            f"{file} holds a run after {earlier.step:,} of {earlier.settings.steps:,} steps: "
            f"go on with --resume {out}, or choose another folder with --out"
        )


def _require_matplotlib() -> None:
    """Raises Mistake before the run, not after it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise Mistake("the pictures need matplotlib: pip install matplotlib")


# The run


def _take_on(run: Run, examples: Examples, file: Path, interrupt: Interrupt) -> None:
    """Train to the last step or Ctrl-C, with regular checkpoints and one at the end."""
    saved = time.monotonic()
    with progress(run) as report:
        for loss in train(run, examples, interrupt):
            report(loss)
            if time.monotonic() - saved >= SECONDS_BETWEEN_CHECKPOINTS:
                checkpoint.write(run, file)
                saved = time.monotonic()
    checkpoint.write(run, file)


def _finish(run: Run, dataset: Dataset, out: Path) -> None:
    """Calibrate, save and plot; then print the losses and some names."""
    from character_model.pictures import gradient_picture, loss_curve, write_png

    run.calibration = calibrate(run.parameters, dataset.training.contexts)
    checkpoint.write(run, out / CHECKPOINT)
    batch = Examples(dataset.training.contexts[:BATCH], dataset.training.labels[:BATCH])
    gradient = logits_gradient(run.parameters, batch.contexts, batch.labels)
    write_png(loss_curve(run.losses), out / LOSS_CURVE)
    write_png(gradient_picture(gradient, batch, run.symbols), out / GRADIENT)
    _print_table(run, dataset)
    seed = run.settings.seed + SAMPLING_SEED
    print(f"{NAMES} names, drawn with the seed {seed}:")
    _print_names(run, seed, NAMES)
    print(f"written to {out}: {CHECKPOINT}, {LOSS_CURVE}, {GRADIENT}")


# What is printed


def _describe(run: Run, dataset: Dataset) -> None:
    counts = ", ".join(f"{len(part):,} {name}" for name, part in dataset.parts.items())
    print(f"{Path(run.data or OWN_WORDS).name}: {dataset.words:,} words; examples: {counts}")
    if run.step:
        print(f"going on after {run.step:,} of {run.settings.steps:,} steps")
    sys.stdout.flush()  # before the bar, where both go to one file


def _print_table(run: Run, dataset: Dataset) -> None:
    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, part in dataset.parts.items():
        # Two words leave nothing for a part of 10 %.
        loss = mean_loss(run.parameters, run.calibration, part) if len(part) else None
        table.add_row(f"{name} loss", "too few words" if loss is None else f"{loss:.4f}")
    table.add_row("parameters", f"{sum(p.numel() for p in run.parameters.values()):,}")
    table.add_row("steps", f"{run.step:,}")
    table.add_row("time", clock(run.seconds))
    table.add_row("steps per second", f"{run.step / run.seconds:,.0f}")
    console = Console(highlight=False)
    with console.capture() as text:  # a closed pipe is for main to settle, not for rich
        console.print(table)
    print(text.get(), end="")


def _print_names(run: Run, seed: int, count: int) -> None:
    for name in sampled_names(run.parameters, run.calibration, run.symbols, seed, count):
        print(name or "(the empty name)")


# The command line


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def error(self, message: str):
        self.exit(NOT_UNDERSTOOD, f"{PROGRAM}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog=PROGRAM, description=__doc__.splitlines()[0], allow_abbrev=False)
    verbs = parser.add_subparsers(required=True, metavar="train or sample")
    _add_train(verbs)
    _add_sample(verbs)
    return parser


def _add_train(verbs) -> None:
    own = Settings()
    verb = verbs.add_parser("train", help="train, evaluate, sample and plot", allow_abbrev=False)
    verb.set_defaults(verb=train_command)
    verb.add_argument("--data", type=Path, metavar="FILE", help="words, one per line, a to z")
    verb.add_argument("--steps", type=_whole(1), help=f"steps of gradient descent ({own.steps})")
    verb.add_argument("--hidden", type=_whole(1, MOST_HIDDEN), help=f"hidden units ({own.hidden})")
    verb.add_argument("--seed", type=_whole(0, LARGEST_SEED), help=f"random seed ({own.seed})")
    verb.add_argument(
        "--threads",
        type=_whole(1, os.cpu_count() or 1),
        help=f"torch threads ({own.threads}, the fastest for a small network)",
    )
    verb.add_argument(
        "--target",
        choices=TARGETS,
        help=f"{TORCH}: the generated functions; {CPP}: a step in one call ({own.target})",
    )
    verb.add_argument("--out", type=Path, metavar="DIR", help=f"the folder to write to ({OUT})")
    verb.add_argument(
        "--resume",
        nargs="?",
        const=IN_OUT,
        metavar="CHECKPOINT",
        help="continue the run of a checkpoint or its folder (the one in --out)",
    )


def _add_sample(verbs) -> None:
    verb = verbs.add_parser("sample", help="names from a finished run", allow_abbrev=False)
    verb.set_defaults(verb=sample_command)
    verb.add_argument(
        "checkpoint", nargs="?", type=Path, default=OUT, help=f"the file or its folder ({OUT})"
    )
    verb.add_argument("--count", type=_whole(1), default=NAMES, help=f"how many names ({NAMES})")
    verb.add_argument("--seed", type=_whole(0, LARGEST_SEED), help="random seed (that of train)")


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """An argparse type: an integer in a range."""

    def whole(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if number < least or (most is not None and number > most):
            allowed = f"at least {least}" if most is None else f"{least} to {most}"
            raise argparse.ArgumentTypeError(f"{number} is out of range: {allowed}")
        return number

    return whole


if __name__ == "__main__":
    sys.exit(main())
