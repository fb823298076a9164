"""How each word of the notation is written in a formula."""

from __future__ import annotations

from derive.language.segments import SEGMENTS

USAGE = {
    **{name: f"write {name}(x, labels, V), with the axis of the labels" for name in SEGMENTS},
    "Sum": "write Sum(x, axis), with the names of the axes",
    "Max": "write Max(x, axis) along one axis",
    "Min": "write Min(a, b)",
    "ArgMax": "write ArgMax(x, C)",
    "OneHot": "write OneHot(labels, C)",
    "Kept": "write Kept(labels)",
    "Identity": "write Identity(N, M), for two axes of one size",
    "Diagonal": "write Diagonal(x, N, M), with two axes of x",
    "Position": "write Position(N)",
    "Broadcast": "write Broadcast(x, K)",
    "Rename": "write Rename(x, N, M), M an axis of the same size that x lacks",
    "Flatten": "write Flatten(x, T, E, into=K), as the mathematics does",
    "Unflatten": "write Unflatten(x, K, into=(T, E))",
    "Axis": 'write D = Axis("D", T - 1)',
    "At": "write At(x, T, 2*Position(To) + Position(K) - 1)",
    "Flip": "write Flip(x, T)",
    "Shift": "write Shift(x, T, 1)",
    "Slice": "write Slice(x, T, into=D, start=1)",
    "Pad": "write Pad(x, T, into=P, before=1)",
    "Window": "write Window(x, T, into=(To, K), stride=2, padding=1)",
    "Concat": "write Concat((a, N), (b, M), into=K)",
    "CumSum": "write CumSum(x, T)",
    "CumProd": "write CumProd(x, T)",
    "CumMax": "write CumMax(x, T)",
    "NewMax": "write NewMax(x, T)",
    "Scan": "write Scan(a, b, T)",
    "Previous": "write Previous(x, T)",
    "Next": "write Next(x, T)",
    "Inverse": "write Inverse(A, I, J), with the axes of the rows and the columns",
    "LogDet": "write LogDet(A, I, J), with the axes of the rows and the columns",
    "Solve": "write Solve(A, b, I, J): the solution lies along J, where b lies along I",
    "Cholesky": "write Cholesky(A, I, J), with the axes of the rows and the columns",
    "Rational": "write Rational(-1, 2)",
    "Piecewise": "write Piecewise((a, x > 0), (b, True))",
}
