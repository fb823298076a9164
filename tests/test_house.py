"""The law of the house: what a template may do, and that every table is complete; who imports whom
is in ``test_rooms.py``.
"""

import ast
import dataclasses
import inspect
import re
from pathlib import Path

import jinja2
import pytest

import codegen.program
import derive.language.nodes
from codegen.program import Step, Value
from codegen.targets import targets
from codegen.targets.torch.printer import Printer
from derive.chain.rules import rules
from derive.language.nodes import ArrayNode, Broadcast, Reduction, Reshaping

ROOT = Path(derive.__file__).parents[1]


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def test_no_machinery_knows_a_function_by_name():
    known = re.compile(
        r"batch_?norm|soft_?max|layer_?norm|rms_?norm|cross_?entropy|attention|gelu|xhat|inv_std|logits",
        re.I,
    )
    torchs_names = ROOT / "derive" / "reading" / "operations" / "reductions.py"  # softmax is read
    for file in [*files("derive"), *files("codegen")]:
        if "math" in file.parts or file == torchs_names:
            continue
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
                node
            ):
                node.body = node.body[1:] or [ast.Pass()]
        for line in ast.unparse(tree).split("\n"):
            assert not known.search(line.split("help=")[0]), f"{file}: {line}"


TEMPLATES = sorted(
    file
    for folder in ("codegen/templates", "codegen/targets", "derive/presentation/templates")
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


def nodes() -> list[type[ArrayNode]]:
    found = [
        c
        for c in vars(derive.language.nodes).values()
        if isinstance(c, type) and issubclass(c, ArrayNode)
    ]
    return [
        c for c in found if c not in (ArrayNode, Reduction, Reshaping, Broadcast)
    ]  # a mark, gone before derivation


@pytest.mark.parametrize("node", nodes(), ids=lambda c: c.__name__)
def test_every_array_node_has_a_rule(node):
    assert rules[node].reason


def records(base: type) -> list[type]:
    found = vars(codegen.program).values()
    return [c for c in found if isinstance(c, type) and issubclass(c, base) and c is not base]


@pytest.mark.parametrize("record", records(Value) + records(Step), ids=lambda c: c.__name__)
def test_every_value_and_step_has_a_printer_line(record):
    assert hasattr(Printer, f"_{record.__name__}")


def test_every_target_keeps_the_contract():
    for target in targets.values():
        assert target.suffix.startswith(".")
        assert list(inspect.signature(target.render).parameters) == ["program"]
        assert list(inspect.signature(target.counts).parameters) == ["program"]
        for measure in (target.largest_difference, target.rounding):
            parameters = list(inspect.signature(measure).parameters)
            assert parameters == ["text", "definition", "program"]


def test_the_records_at_the_doors_are_frozen():
    from codegen.program import Program
    from codegen.quality import Emitted, Quality
    from derive.chain.chain import Chain
    from derive.closing.closed_form import ClosedForm
    from derive.closing.steps import Step as DerivationStep
    from derive.notation.definition import Definition
    from derive.proving.proved import Proved

    doors = (Definition, Chain, ClosedForm, Proved, Program, DerivationStep, Emitted, Quality)
    for record in (*doors, *records(Value)):
        assert dataclasses.fields(record) is not None
        assert record.__dataclass_params__.frozen, record


def test_nothing_evaluates_text():
    for file in [*files("derive"), *files("codegen"), *files("generated")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "parse_expr"), file
                if node.func.id == "sympify":
                    assert any(k.arg == "strict" for k in node.keywords), file
