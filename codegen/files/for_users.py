"""Files of the gallery as files of a user's."""

from __future__ import annotations

import re
from pathlib import Path


def text_for_users(file: Path) -> str:
    """The text of a file of the gallery, with the imports of a user's file."""
    text = re.sub(r"^from derive (?=import)", "from gradform ", file.read_text("utf-8"), flags=re.M)
    return re.sub(r"^from derive\.", "from gradform.derive.", text, flags=re.M)
