"""As type checkers see it: a name in a class body is the tensor that its line declares."""

from sympy import Expr

from codegen.backwards.checking import assert_gradient as assert_gradient
from codegen.called.checking import check as check
from codegen.called.functions import function as function
from codegen.importing.driver import from_torch as from_torch
from derive.derivation import derive as derive
from derive.gradient.found.findings import findings as findings
from derive.language.detached import Detach as Detach
from derive.language.diagonals import Diagonal as Diagonal
from derive.language.diagonals import Identity as Identity
from derive.language.errors import NotationError as NotationError
from derive.language.errors import QuestionError as QuestionError
from derive.language.errors import UndecidedError as UndecidedError
from derive.language.errors import UnprovedError as UnprovedError
from derive.language.extremes import Max as Max
from derive.language.extremes import Min as Min
from derive.language.functions import Round as Round
from derive.language.gradient import Gradient as Gradient
from derive.language.kept_labels import Kept as Kept
from derive.language.matrices import Cholesky as Cholesky
from derive.language.matrices import Inverse as Inverse
from derive.language.matrices import LogDet as LogDet
from derive.language.matrices import Solve as Solve
from derive.language.maxima_so_far import CumMax as CumMax
from derive.language.notation.forward import Forward as Forward
from derive.language.notation.library import forward_from as forward_from
from derive.language.notation.ordered import Ordered as Ordered
from derive.language.notation.outputs import Outputs as Outputs
from derive.language.notation.reduced import Reduced as Reduced
from derive.language.one_hots import OneHot as OneHot
from derive.language.one_hots import Position as Position
from derive.language.reading_at import At as At
from derive.language.renaming import Rename as Rename
from derive.language.reshaping import Flatten as Flatten
from derive.language.reshaping import Unflatten as Unflatten
from derive.language.scans import CumProd as CumProd
from derive.language.scans import CumSum as CumSum
from derive.language.scans import Next as Next
from derive.language.scans import Previous as Previous
from derive.language.scans import Scan as Scan
from derive.language.segments import Gather as Gather
from derive.language.segments import SegmentMax as SegmentMax
from derive.language.segments import SegmentMean as SegmentMean
from derive.language.segments import SegmentSum as SegmentSum
from derive.language.sums import Broadcast as Broadcast
from derive.language.sums import Sum as Sum
from derive.language.symbols import Axes as Axes
from derive.language.symbols import Axis as Axis
from derive.language.symbols import Tensor
from derive.language.windows import Concat as Concat
from derive.language.windows import Flip as Flip
from derive.language.windows import Pad as Pad
from derive.language.windows import Shift as Shift
from derive.language.windows import Slice as Slice
from derive.language.windows import Window as Window
from derive.proof.proving.proved import Proved as Proved

def Input(*axes: Axis, default: float | None = None, broadcast: bool = False) -> Tensor: ...
def Given(*axes: Axis, default: float | None = None, broadcast: bool = False) -> Tensor: ...
def Label(*axes: Axis, ignored: int | None = None) -> Tensor: ...
def Size(axis: Axis) -> Axis: ...
def Scalar(
    default: float | Expr,
    *,
    above: float | Expr | None = None,
    at_least: float | Expr | None = None,
    below: float | Expr | None = None,
    at_most: float | Expr | None = None,
) -> Tensor: ...
