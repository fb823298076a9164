"""The array nodes: what SymPy lacks for writing a network down, and no more.

A node states which of its axes it *binds* (they end inside it) and which it *brings*, its entries,
its adjoint and its bounds in its class, so that no other module knows it for these.
"""

from __future__ import annotations

from derive.language.array_node import ArrayNode as ArrayNode
from derive.language.array_node import Reduction as Reduction
from derive.language.array_node import Whole as Whole
from derive.language.extremes import Max as Max
from derive.language.extremes import Min as Min
from derive.language.extremes import Peak as Peak
from derive.language.extremes import SubtractedPeak as SubtractedPeak
from derive.language.log_scans import LogCumSumExp as LogCumSumExp
from derive.language.log_scans import LogCumSumExpBack as LogCumSumExpBack
from derive.language.matrices import Cholesky as Cholesky
from derive.language.matrices import Inverse as Inverse
from derive.language.matrices import LogDet as LogDet
from derive.language.matrices import MatrixNode as MatrixNode
from derive.language.matrices import Solve as Solve
from derive.language.maxima_so_far import LargestSoFar as LargestSoFar
from derive.language.maxima_so_far import NewMax as NewMax
from derive.language.one_hots import ArgMax as ArgMax
from derive.language.one_hots import OneHot as OneHot
from derive.language.one_hots import Position as Position
from derive.language.renaming import Rename as Rename
from derive.language.renaming import along as along
from derive.language.renaming import renamed as renamed
from derive.language.reshaping import Flatten as Flatten
from derive.language.reshaping import Reindexing as Reindexing
from derive.language.reshaping import Reshaping as Reshaping
from derive.language.reshaping import Unflatten as Unflatten
from derive.language.scans import GoneAlong as GoneAlong
from derive.language.scans import Recurrence as Recurrence
from derive.language.scans import RecurrenceBefore as RecurrenceBefore
from derive.language.scans import Transposed as Transposed
from derive.language.scans import TransposedBefore as TransposedBefore
from derive.language.sums import Broadcast as Broadcast
from derive.language.sums import Sum as Sum
from derive.language.sums import summed as summed
from derive.language.sums import sums_in as sums_in
