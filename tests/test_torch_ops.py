"""What each of torch's operations means: one line for each row, read as text, traced, and run by
torch. The lines are in ``torch_ops_rows.py``.

Of the traced ones a few are in the suite, all of them where that is asked for
(``make test-thorough``).
"""

import functools

import pytest
import torch
from both_doors import by_text, by_torch, by_trace
from torch_ops_rows import DECOMPOSED, IMPORTED_ALONE, READ_ALONE, ROWS

from codegen.importing.calls import STORAGE
from codegen.importing.rules import rules
from derive.claims.reading.operations.vocabulary import OPERATIONS
from derive.language.torch_ops import table
from derive.language.torch_ops.refused import refused

SOME = 8  # of so many lines one is imported in the suite
LINES = {name: (axes, f"result = {text}") for name, (axes, text) in ROWS.items()}


@pytest.fixture
def reached(monkeypatch):
    """The rows whose meaning is asked."""
    found = set()
    for row in {id(row): row for row in table.values()}.values():

        @functools.wraps(row.meaning)
        def watched(*args, row=row, meaning=row.meaning, **named):
            found.update(row.names)
            return meaning(*args, **named)

        monkeypatch.setitem(row.__dict__, "meaning", watched)
    return found


def sampled(names):
    """As parameters of a test: one of several, and the rest where all are asked for."""
    return [
        pytest.param(name, marks=[] if i % SOME == 0 else [pytest.mark.thorough])
        for i, name in enumerate(names)
    ]


def test_every_row_has_a_line():
    rows = {row.names[0] for row in table.values()}
    assert not rows - LINES.keys()
    assert not {name.partition("(")[0] for name in LINES} - table.keys()


@pytest.mark.parametrize("name", [n for n in LINES if n.partition("(")[0] not in IMPORTED_ALONE])
def test_a_line_is_read_as_torch_runs_it(name, tmp_path, reached):
    found = by_text(*LINES[name], tmp_path)
    expected = torch.as_tensor(by_torch(*LINES[name])).to(found.dtype)
    assert name.partition("(")[0] in reached
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", sampled(n for n in LINES if n.partition("(")[0] not in READ_ALONE))
def test_a_line_is_traced_as_torch_runs_it(name, tmp_path, reached):
    agreement = by_trace(*LINES[name], tmp_path)
    assert {name.partition("(")[0]} <= reached | DECOMPOSED
    assert agreement.values <= 1e-12 and agreement.gradients <= 1e-10


def schemas():
    """Torch's own, by name, without those of out= and of names of dimensions."""
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        words = {argument.name for argument in schema.arguments}
        named = any(str(argument.type).startswith("str") for argument in schema.arguments[1:])
        if space == "aten" and not words & {"out", "dimname"} and not named:
            found.setdefault(name, []).append(schema)
    return found


SCHEMAS = schemas()


@pytest.mark.parametrize("name", sorted(table.keys() & SCHEMAS.keys()))
def test_a_signature_is_torchs(name):
    """Some schema of that name has no argument that the row lacks; and the same order, but for
    those of `torch.nn.functional`, which has its own.
    """
    row = table[name]
    own = [p.name for p in row.arguments]
    ordered = [p.name for p in row.arguments if p.kind is not p.KEYWORD_ONLY]
    problems = []
    for schema in SCHEMAS[name]:
        torchs = [row.aten.get(a.name, a.name) for a in schema.arguments]
        torchs = ["input" if a == "self" else a for a in torchs]
        kept = [a for a in torchs if a not in STORAGE]
        missing = [a for a in kept if a not in own]
        order = row.forms == {"F"} or [a for a in ordered if a in kept] == [
            a for a in kept if a in ordered
        ]
        if not missing and order:
            return
        problems.append(f"{schema}: {missing}")
    pytest.fail("\n".join(problems))


# OpInfo's names for what Python writes as a sign or in place, and for what torch calls by itself.
SIGNS = "T __getitem__ __radd__ __rdiv__ __rmatmul__ __rmod__ __rmul__ __rpow__ __rsub__ zero_"
INSIDE = (
    "_batch_norm_with_update _softmax_backward_data _unsafe_masked_index"
    " _unsafe_masked_index_put_accumulate max_pool2d_with_indices_backward native_dropout_backward"
    " torch.ops.aten._efficient_attention_forward torch.ops.aten._flash_attention_forward"
    " torch.ops.aten._safe_softmax.default"
)
OTHERWISE = {*SIGNS.split(), *INSIDE.split()}


def test_every_differentiable_operation_is_a_row_or_has_its_reason():
    """Those that torch tests its own derivatives with."""
    from torch.testing._internal.common_methods_invocations import op_db  # takes seconds

    known = table.keys() | rules.keys() | OPERATIONS.keys() | refused.keys() | OTHERWISE
    missing = []
    for name in sorted({op.name for op in op_db if op.supports_autograd}):
        plain = name.removeprefix("nn.functional.").replace(".", "_")
        short = plain.removeprefix("linalg_").removeprefix("special_")
        if not {plain, short, plain.removesuffix("_copy"), name} & known:
            missing.append(name)
    assert not missing
