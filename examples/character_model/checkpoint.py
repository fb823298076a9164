"""A run as a file, written atomically and read without running code."""

from __future__ import annotations

import dataclasses
import io
import warnings
from pathlib import Path

import torch

from character_model import files
from character_model.mistakes import Mistake
from character_model.network import TARGETS, Calibration, parameter_shapes
from character_model.training import Run, Settings

MADE_BY = "gradform makemore, checkpoint 1"


def write(run: Run, path: Path) -> None:
    """Write a run. Raises Mistake."""
    content = io.BytesIO()
    torch.save(_fields(run), content)
    files.write(path, content.getvalue())


def read(path: Path) -> Run:
    """The run of a checkpoint. Raises Mistake for a missing, damaged or foreign one."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise Mistake(f"{path} does not exist: there is no run to continue") from None
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}") from None
    try:
        with warnings.catch_warnings(action="ignore"):  # of what the error below says
            fields = torch.load(io.BytesIO(content), weights_only=True)
    except Exception:  # torch lets through whatever the bytes lead its readers to
        raise Mistake(f"{path} is damaged, or not a checkpoint") from None
    if not isinstance(fields, dict) or fields.get("made by") != MADE_BY:
        raise Mistake(f"{path} is not a checkpoint of this program")
    try:
        return _run(fields)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError):
        raise Mistake(f"{path} is damaged: its parts do not fit together") from None


def _fields(run: Run) -> dict:
    """The run as tensors, numbers and text: all that torch reads with ``weights_only``."""
    return {
        "made by": MADE_BY,
        "settings": dataclasses.asdict(run.settings),
        "symbols": run.symbols,
        "data": run.data,
        "fingerprint": run.fingerprint,
        "step": run.step,
        "losses": run.losses,
        "parameters": run.parameters,
        "generator": run.generator.get_state(),
        "calibration": run.calibration and run.calibration._asdict(),
        "seconds": run.seconds,
    }


def _run(fields: dict) -> Run:
    generator = torch.Generator()
    generator.set_state(fields["generator"])
    run = Run(
        settings=Settings(**fields["settings"]),
        symbols=fields["symbols"],
        data=fields["data"],
        fingerprint=fields["fingerprint"],
        losses=fields["losses"],
        parameters=fields["parameters"],
        generator=generator,
        calibration=fields["calibration"] and Calibration(**fields["calibration"]),
        seconds=fields["seconds"],
    )
    if run.settings.target not in TARGETS:
        raise ValueError(f"the target {run.settings.target!r}")
    shapes = {name: tuple(tensor.shape) for name, tensor in run.parameters.items()}
    if shapes != parameter_shapes(len(run.symbols), run.settings.hidden):
        raise ValueError(f"parameters of the shapes {shapes}")
    if run.losses.shape != (fields["step"],) or run.step > run.settings.steps:
        raise ValueError(f"{run.losses.shape} losses after {fields['step']} steps")
    return run
