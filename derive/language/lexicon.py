"""All words of the notation: the modules that define some are imported here."""

from derive.language import diagonals as _diagonals  # noqa: F401
from derive.language import gradient as _gradient  # noqa: F401
from derive.language import kept_labels as _kept_labels  # noqa: F401
from derive.language import nodes as _nodes  # noqa: F401
from derive.language import reading_at as _reading_at  # noqa: F401
from derive.language import segments as _segments  # noqa: F401
from derive.language import windows as _windows  # noqa: F401
from derive.language.words import WORDS as WORDS
