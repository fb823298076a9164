"""Line numbers of a Function: which line computes or returns a value, as far as its text tells."""

from __future__ import annotations

import ast
import inspect
import textwrap

from codegen.backwards.functions import FunctionSubject
from derive.claims.reading.pasted import pasted_in
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.source import Source
from derive.claims.reading.unknown import lines_for
from derive.language.errors import QuestionError


def computed_on(subject: FunctionSubject, line: int) -> tuple[str, ...]:
    """Gradients that depend on a line of the backward, as far as the text tells."""
    try:
        source, first = inspect.getsourcelines(subject.of_class)
        pasted = pasted_in(Source("".join(source), subject.file).parsed(), with_forward=False)
    except (OSError, QuestionError, Refusal):
        return ()
    own = line - first + 1
    return tuple(
        name
        for name in pasted.returned
        if any(s.lineno <= own <= (s.end_lineno or 0) for s in lines_for(pasted, name))
    )


def returning(subject: FunctionSubject) -> int:
    """Line of the backward's only return; 0 if there are several, or none is known."""
    try:
        source, first = inspect.getsourcelines(inspect.unwrap(subject.of_class.backward))
        tree = ast.parse(textwrap.dedent("".join(source)))
    except (OSError, SyntaxError):
        return 0
    found = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Return)]
    return first + found[0] - 1 if len(found) == 1 else 0
