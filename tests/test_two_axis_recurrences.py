"""A recurrence along two axes: by anti-diagonals in a forward, refused as two loops."""

import re
from pathlib import Path

import pytest
import torch
from generating import generated

from codegen.backwards.checking import check_function
from codegen.importing.driver import imported
from derive import check, derive, forward_from
from derive.language.errors import QuestionError

DOCS = Path(__file__).parents[1] / "docs" / "notation.md"
FAR = 10**8


def by_loops(cost):
    n, m = cost.shape
    r = torch.full((n + 1, m + 1), float(FAR), dtype=cost.dtype)
    r[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            before = torch.stack([r[i - 1, j], r[i, j - 1], r[i - 1, j - 1]])
            r[i, j] = cost[i - 1, j - 1] - torch.logsumexp(-before, 0)
    return r[n, m]


class ByLoops(torch.autograd.Function):
    @staticmethod
    def forward(ctx, cost):
        ctx.save_for_backward(cost)
        return by_loops(cost)

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.saved_tensors[0]


def in_a_dictionary(cost):
    n, m = cost.shape
    r = {}
    for i in range(n):
        for j in range(m):
            r[i, j] = cost[i, j] + (r[i - 1, j] if i else 0) + (r[i, j - 1] if j else 0)
    return r[n - 1, m - 1]


@pytest.fixture
def soft_dtw(tmp_path):
    """The forward of the page."""
    (text,) = re.findall(r"```python\n# soft_dtw.py\n(.*?)```", DOCS.read_text(), re.S)
    path = tmp_path / "soft_dtw_forward.py"
    path.write_text(text)
    return path


def test_anti_diagonals_are_proved_for_every_size_and_are_the_loops(soft_dtw, tmp_path):
    assert derive(forward_from(soft_dtw)).every_size
    function, _, _ = generated(soft_dtw, tmp_path)
    for shape in ((3, 4), (5, 2), (1, 1), (1, 4), (6, 6)):
        cost = (5 * torch.rand(shape, dtype=torch.float64)).requires_grad_()
        ours, theirs = function(cost), _read_at_places(cost)
        torch.testing.assert_close(ours, theirs)
        torch.testing.assert_close(
            torch.autograd.grad(ours, cost), torch.autograd.grad(theirs, cost)
        )


def _read_at_places(cost):
    """The loops without writes in place, for autograd."""
    n, m = cost.shape
    far, r = cost.new_tensor(float(FAR)), {}
    for i in range(n):
        for j in range(m):
            places = ((i - 1, j), (i, j - 1), (i - 1, j - 1))
            before = torch.stack([r.get(place, far) for place in places])
            r[i, j] = cost[i, j] - torch.logsumexp(-before, 0) * (i + j > 0)
    return r[n - 1, m - 1]


@pytest.mark.parametrize(
    ("door", "asked"),
    [(imported, by_loops), (imported, in_a_dictionary), (check_function, ByLoops)],
    ids=["import", "import of a dictionary", "check"],
)
def test_two_loops_are_refused_with_the_way(door, asked):
    with pytest.raises(QuestionError, match="a recurrence along two axes") as raised:
        door(asked, "cost: N M")
    assert "docs/notation.md#recurrences" in raised.value.remedy
    assert raised.value.place is not None and raised.value.place.line


PASTED = """dx = torch.zeros_like(x)
for i in range(N):
    for j in range(C):
        dx[i, j] = dx[i, j - 1] + dy[i, j]
"""


def test_pasted_loops_are_refused_with_the_way():
    with pytest.raises(QuestionError, match="reads what another one wrote") as raised:
        check("softmax", PASTED)
    assert "docs/notation.md#recurrences" in raised.value.remedy


def test_loops_over_numbers_are_read():
    assert "OneHot" in imported(in_a_dictionary, "cost: 2 2").text
