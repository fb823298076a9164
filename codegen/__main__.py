"""``python -m codegen [NAME or FILE ...] [--out DIR] [--check]``, and the console script."""

from derive.running.starting import run


def gradform() -> None:
    """The console script ``gradform``."""
    run(f"{__package__}.commands.cli", "gradform")


if __name__ == "__main__":  # the processes that derive in parallel import this file
    run(f"{__package__}.commands.cli", "main")
