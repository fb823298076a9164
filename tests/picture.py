"""The picture in README.md: the top of the page that `gradform show` writes for batch_norm.

python tests/picture.py    # needs chromium; writes docs/images/batch_norm.png
"""

import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from chromium import CHROMIUM, Tab, started
from PIL import Image

from codegen.commands.cli import gradform

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "batch_norm.png"
WIDTH, HEIGHT = 1000, 1120  # pixels
COLOURS = 64  # enough for text, and a third of the size


def main() -> None:
    if CHROMIUM is None:
        sys.exit("no chromium: apt-get install chromium")
    with TemporaryDirectory() as folder, started(Path(folder) / "profile") as browser:
        page = Path(folder) / "batch_norm.html"
        gradform(["show", "batch_norm", "--format", "html", "--output", str(page)])
        screenshot = Image.open(io.BytesIO(Tab(browser, page.as_uri(), WIDTH).screenshot()))
    PICTURE.parent.mkdir(exist_ok=True)
    top = screenshot.convert("RGB").crop((0, 0, screenshot.width, HEIGHT))
    top.quantize(COLOURS).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
