"""Forward mathematics in, a proved backward pass out."""

from derive.choices import Kept as Kept
from derive.declarations import Given as Given
from derive.declarations import Input as Input
from derive.declarations import Label as Label
from derive.declarations import Scalar as Scalar
from derive.declarations import Size as Size
from derive.derivation import derive as derive
from derive.errors import NotationError as NotationError
from derive.errors import QuestionError as QuestionError
from derive.errors import UnprovedError as UnprovedError
from derive.findings import findings as findings
from derive.forward import Forward as Forward
from derive.library import forward_from as forward_from
from derive.nodes import Broadcast as Broadcast
from derive.nodes import Flatten as Flatten
from derive.nodes import Max as Max
from derive.nodes import OneHot as OneHot
from derive.nodes import Position as Position
from derive.nodes import Rename as Rename
from derive.nodes import Sum as Sum
from derive.nodes import Unflatten as Unflatten
from derive.proof import Proved as Proved
from derive.symbols import Axes as Axes
from derive.symbols import Axis as Axis


def __getattr__(name: str):
    """`check` with all that it needs, imported when it is asked for."""
    if name == "check":
        from derive.checking.check import check

        return check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), "check"])
