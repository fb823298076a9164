"""Which operations on whole arrays a library computes, between the loops of all else."""

from __future__ import annotations

from codegen.program import arrays
from codegen.program.loops import Collected, Looped
from codegen.program.reads import Convolve, Placed
from codegen.program.values import Value
from codegen.targets.functions import IN_TARGETS

# Products and additions by index, of which libraries have better loops; what goes along an axis
# from place to place; what is made of matrices; with what they are called where they have no name.
LIBRARY: dict[type[Value], str] = {
    arrays.Contract: "product",
    arrays.Gathered: "added",
    arrays.Scattered: "added",
    arrays.SegmentMax: "largest",
    arrays.SegmentArgMax: "place",
    arrays.ArgMaxOf: "place",
    arrays.Cumulate: "cumulated",
    arrays.Scanned: "scanned",
    arrays.OfMatrix: "of_matrix",
    arrays.Solved: "solved",
    Convolve: "product",
    Placed: "placed",
    Looped: "places",
    Collected: "collected",
}
# Functions that C++ and CUDA lack.
FUNCTIONS = {name for name, row in IN_TARGETS.items() if row.cpp is None}
PLACES = (arrays.ArgMaxOf, arrays.SegmentArgMax)  # whole numbers
