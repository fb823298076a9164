"""The notebooks of examples/: they run, and the outputs that they keep are those of today.

    python tests/test_notebook.py

runs them and writes the new outputs into the files.
"""

import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import nbformat
import pytest
import warm
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
NINJA = ROOT / "examples" / "backprop_ninja.ipynb"
SECONDS = 120
LARGEST = 400_000  # bytes of the file
ANSWER = "26 of 26"
NOTHING = {"text/plain": ""}  # a line about progress, in the end
ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # where an object lies in memory


def executed(file: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook, run afresh in ``folder``, its outputs in the form in which they are kept.

    Raises `nbclient.exceptions.CellExecutionError` where a cell fails.
    """
    notebook = nbformat.read(file, as_version=4)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    metadata = notebook.metadata.copy()
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    with TemporaryDirectory() as own:  # no start-up files of the user's, one thread
        settings = dict.fromkeys(("IPYTHONDIR", "JUPYTER_CONFIG_DIR"), own)
        settings |= {"GRADFORM_CACHE": "", "JUPYTER_RUNTIME_DIR": own, "OMP_NUM_THREADS": "1"}
        with patch.dict(os.environ, settings):
            client.execute()
    notebook.metadata = metadata  # the client adds the version of Python
    for cell in code_cells(notebook):
        shown = [kept(output) for output in cell.outputs]
        cell.outputs = [o for o in shown if o.get("data") != NOTHING]
    return notebook


def kept(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """An output without what only this machine has: folders and addresses.

    What shows itself as HTML needs no plain text.
    """
    if "data" in output and "text/html" in output.data:
        output.data.pop("text/plain", None)
    for mime, text in output.get("data", {}).items():
        if mime.startswith("text/"):
            output.data[mime] = without_places(text)
    if "text" in output:
        output.text = without_places(output.text)
    return output


def without_places(text: str) -> str:
    return ADDRESS.sub("", text.replace(f"{ROOT}{os.sep}", ""))


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """What a cell prints and shows as text; of a picture that it is one."""
    found = []
    for output in cell.outputs:
        if "text" in output:
            found.append((output.name, output.text))
        for mime, text in sorted(output.get("data", {}).items()):
            found.append((mime, text if mime.startswith("text/") else ""))
    return found


@pytest.fixture(params=NOTEBOOKS, ids=lambda file: file.stem)
def file(request):
    return request.param


@pytest.fixture
def stored(file):
    return nbformat.read(file, as_version=4)


def test_it_runs_and_the_outputs_in_the_file_are_those_of_today(file, stored):
    fresh = executed(file, file.parent)
    printed = [text for cell in code_cells(fresh) for text in texts(cell)]
    assert [text for kind, text in printed if kind == "stderr"] == []
    whole = "".join(text for _, text in printed)
    assert file != NINJA or ANSWER in whole
    assert "NOT EXACT" not in whole
    assert not re.search(r"autograd.*: +False", whole)
    for before, now in zip(code_cells(stored), code_cells(fresh), strict=True):
        assert texts(before) == texts(now), f"cell {now.id}: run python tests/test_notebook.py"
        assert before.execution_count == now.execution_count


def test_the_file_holds_nothing_of_the_machine_that_wrote_it(file, stored):
    text = file.read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST
    assert str(ROOT) not in text
    assert not re.search(r"/(home|root|tmp|Users)/", text)
    assert all(cell.metadata == {} for cell in stored.cells)
    assert set(stored.metadata) == {"kernelspec", "language_info"}
    assert stored.metadata.language_info == {"name": "python"}


@pytest.mark.parametrize("folder", (ROOT, ROOT / "examples"), ids=("root", "examples"))
def test_the_first_cell_finds_the_root_from(folder, stored):
    source = code_cells(stored)[0].source + "\nprint(root)"
    ran = warm.run(
        [sys.executable, "-P", "-c", source],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert Path(ran.stdout.strip()) == ROOT


if __name__ == "__main__":
    for file in NOTEBOOKS:
        nbformat.write(executed(file, file.parent), file)
