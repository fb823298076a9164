"""The law of the house: what a template may do, that every table is complete, how long a file and a
function may be, and that numbers have names; who imports whom is in ``test_rooms.py``.
"""

import ast
import dataclasses
import re
from functools import cache
from pathlib import Path

import jinja2
import pytest

import derive
from codegen.program import arrays, steps, values
from codegen.program.steps import Step
from codegen.program.values import Value
from codegen.targets.torch.printer import Printer

ROOT = Path(derive.__file__).parents[1]

# What is longer says why: a line of its docstring begins with `REASON`.
MOST_LINES, MOST_PARAMETERS = 40, 6  # of a function; a file is as long as its subject
REASON = "Long: "
# A larger number in a function, or a fraction, has a name there is a reason beside.
PLAIN_NUMBERS = {*range(5), 10, 0.5}


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


@cache
def parsed(file: Path) -> ast.Module:
    """Shared by all tests: nobody changes it."""
    return ast.parse(file.read_text("utf-8"))


def place(file: Path, node: ast.AST) -> str:
    return f"{file.relative_to(ROOT)}:{node.lineno}"


def test_no_machinery_knows_a_function_by_name():
    known = re.compile(
        r"batch_?norm|soft_?max|layer_?norm|rms_?norm|cross_?entropy|attention|gelu|xhat|inv_std|logits",
        re.I,
    )
    torchs_names = [  # in torch's code, and where somebody types softmax as such
        *(ROOT / "codegen" / "importing" / "operations").glob("*.py"),
        *(ROOT / "derive" / "language" / "torch_ops").glob("*.py"),
        *(ROOT / "derive" / "language" / "source" / name for name in ("shown.py", "spellings.py")),
    ]
    for file in [*files("derive"), *files("codegen")]:
        text = file.read_text("utf-8")
        if "math" in file.parts or file in torchs_names or not known.search(text):
            continue
        tree = ast.parse(text)  # its own: it is changed
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
                node
            ):
                node.body = node.body[1:] or [ast.Pass()]
        for line in ast.unparse(tree).split("\n"):
            assert not known.search(line.split("help=")[0]), f"{file}: {line}"


TEMPLATES = sorted(
    file
    for folder in ("codegen/report/templates", "codegen/targets", "derive/show/templates")
    for file in (ROOT / folder).rglob("*.jinja")
)


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda f: f.name)
def test_templates_only_loop_and_print(file):
    """No arithmetic, no comparison, no choice of words, no assignment, nothing called; only the
    pages of derivations leave out what is empty.
    """
    tree = jinja2.Environment().parse(file.read_text())
    decisions = ["Add", "Sub", "Mul", "Div", "Pow", "Assign", "Compare", "CondExpr", "Test"]
    decisions += ["And", "Or", "Not", "Filter", "Call"]
    decisions += ["If"] * ("codegen" in file.parts)
    for kind in decisions:
        assert not list(tree.find_all(getattr(jinja2.nodes, kind))), kind
    assert not re.search(r"batch_norm|softmax|logits|\bgain\b|inv_std|xhat|probs", file.read_text())


def records(base: type) -> list[type]:
    found = (vars(values) | vars(arrays) | vars(steps)).values()
    return [c for c in found if isinstance(c, type) and issubclass(c, base) and c is not base]


@pytest.mark.parametrize("record", records(Value) + records(Step), ids=lambda c: c.__name__)
def test_every_value_and_step_has_a_printer_line(record):
    assert record in Printer.rows


def test_the_records_at_the_doors_are_frozen():
    from codegen.files.quality import Emitted, Quality
    from codegen.program import Program
    from derive.gradient.chain.chain import Chain
    from derive.gradient.closing.closed_form import ClosedForm
    from derive.gradient.closing.steps import RewriteStep as DerivationStep
    from derive.language.notation.definition import Definition
    from derive.proof.proving.proved import Proved

    doors = (Definition, Chain, ClosedForm, Proved, Program, DerivationStep, Emitted, Quality)
    for record in (*doors, *records(Value)):
        assert dataclasses.fields(record) is not None
        assert record.__dataclass_params__.frozen, record


def test_nothing_evaluates_text():
    for file in [*files("derive"), *files("codegen"), *files("generated")]:
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "parse_expr"), file
                if node.func.id == "sympify":
                    assert any(k.arg == "strict" for k in node.keywords), file


FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
KEPT_SHORT = ("derive", "codegen", "gradform")  # the packages that are held to it
SHORT = [f for folder in KEPT_SHORT for f in files(folder) if "math" not in f.parts]


def has_reason(node: ast.AST) -> bool:
    lines = (ast.get_docstring(node) or "").splitlines()
    return any(line.startswith(REASON) and line != REASON.strip() for line in lines)


def length(function: ast.FunctionDef) -> int:
    """Its lines without those of its docstring, and without its decorators."""
    first = function.body[0]
    words = first.end_lineno - first.lineno + 1 if ast.get_docstring(function) else 0
    return function.end_lineno - function.lineno + 1 - words


def parameters(function: ast.FunctionDef) -> list[str]:
    of = function.args
    names = [a.arg for a in (*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg) if a]
    return [name for i, name in enumerate(names) if i or name not in ("self", "cls", "mcs")]


def test_a_class_name_means_one_thing():
    """In all rooms; templates are copied and stand alone."""
    places: dict[str, list[str]] = {}
    for file in (file for file in SHORT if "templates" not in file.parts):
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{module_of(file)}:{node.lineno}")
    assert not {name: found for name, found in places.items() if len(found) > 1}


def is_row(function: ast.FunctionDef) -> bool:
    """Whether it is a row of `derive.language.torch_ops`: its parameters are torch's."""
    calls = [d.func for d in function.decorator_list if isinstance(d, ast.Call)]
    return any(isinstance(call, ast.Name) and call.id == "op" for call in calls)


@cache
def functions_in(file: Path) -> tuple[ast.FunctionDef, ...]:
    return tuple(node for node in ast.walk(parsed(file)) if isinstance(node, FUNCTION))


EVERY_FUNCTION = [(file, function) for file in SHORT for function in functions_in(file)]


def test_a_long_function_gives_its_reason():
    found = []
    for file, function in EVERY_FUNCTION:
        said = f"{place(file, function)}: {function.name}"
        lines, given = length(function), parameters(function)
        if lines > MOST_LINES and not has_reason(function):
            found.append(f"{said} has {lines} lines")
        if len(given) > MOST_PARAMETERS and not is_row(function) and not has_reason(function):
            found.append(f"{said} takes {', '.join(given)}: make a record")
    assert not found, "\n".join(found)


def test_a_reason_to_be_long_is_one_for_something_long():
    assert not [file for file in SHORT if has_reason(parsed(file))]
    for file, function in EVERY_FUNCTION:
        if has_reason(function):
            many = len(parameters(function)) > MOST_PARAMETERS
            assert many or length(function) > MOST_LINES, place(file, function)


def test_a_number_in_a_function_has_a_name():
    """The argument ``maxsize`` names the size of a cache; rows of torch's operations are formulas,
    as the gallery is.
    """
    found = []
    for file in (file for file in SHORT if file.parent.name != "torch_ops"):
        of_caches = {
            keyword.value
            for node in ast.walk(parsed(file))
            if isinstance(node, ast.Call)
            for keyword in node.keywords
            if keyword.arg == "maxsize"
        }
        found += [
            f"{place(file, node)}: {node.value}"
            for function in functions_in(file)
            for node in ast.walk(function)
            if isinstance(node, ast.Constant) and type(node.value) in (int, float)
            if node not in of_caches and node.value not in PLAIN_NUMBERS
        ]
    assert not found, "\n".join(found)


def test_a_named_number_has_a_reason():
    """Behind it, or on the line above."""
    found = []
    for file in SHORT:
        lines = file.read_text("utf-8").splitlines()
        for node in parsed(file).body:
            if isinstance(node, ast.Assign) and is_number(node.value):
                own, above = lines[node.end_lineno - 1], lines[node.lineno - 2]
                if "#" not in own and not above.startswith("#"):
                    found.append(f"{place(file, node)}: {own}")
    assert not found, "\n".join(found)


def is_number(e: ast.AST) -> bool:
    """Whether it is a number other than 0 and 1, or made of such by arithmetic and in tuples."""
    if isinstance(e, ast.Tuple):
        return any(map(is_number, e.elts))
    if isinstance(e, ast.BinOp):
        return is_number(e.left) or is_number(e.right)
    return isinstance(e, ast.Constant) and type(e.value) in (int, float) and e.value not in (0, 1)
