"""The digest of texts, which identifies them."""

from __future__ import annotations

import hashlib


def digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
