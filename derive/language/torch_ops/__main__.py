"""``python -m derive.language.torch_ops``: list the supported operations by subject."""

import textwrap

from derive.language.torch_ops.refused import REASONS
from derive.language.torch_ops.table import table

WIDTH = 100  # of a line
DOTTED = ("special_", "linalg_", "fft_", "sparse_")


def spelled(names) -> list[str]:
    """The names in Python; those that begin with ``_`` are ATen's."""
    found = [n for n in names if not n.startswith("_")]
    dotted = [n.replace("_", ".", 1) if n.startswith(DOTTED) else n for n in found]
    return sorted(dotted)


def subjects() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, row in table.items():
        found.setdefault(row.meaning.__module__.rpartition(".")[2], []).append(name)
    return {subject: spelled(names) for subject, names in sorted(found.items())}


def page() -> str:
    said = [(subject, names) for subject, names in subjects().items()]
    said += [(f"refused: {why}", spelled(names.split())) for (why, _), names in REASONS.items()]
    return "\n".join(
        textwrap.fill(f"{subject}: {', '.join(names)}", WIDTH, subsequent_indent="    ")
        for subject, names in said
    )


if __name__ == "__main__":
    print(page())
