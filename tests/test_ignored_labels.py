"""``Label(N, ignored=-100)``: labels that pick nothing, as torch's ``ignore_index``."""

import pytest
import torch
import torch.nn.functional as F
from forwards import HEAD
from generating import assert_same_gradients, draw, forward_file, generated, pages

from codegen.targets.torch.interpret import Interpreter
from derive import NotationError, check, derive, forward_from
from derive.claims.reading.names import TextNames
from derive.claims.reading.program import TextProgram
from derive.claims.reading.refusals import NotUnderstood
from derive.claims.reading.source import Source
from derive.claims.reading.values import Space

AXES = 'from derive import Axes\n\nN = Axes("N")\n\n\n'
NLL = """
class Nll(Forward):
    logits = Input(N, C)
    labels = Label(N, ignored=-100)
    weight = Given(C, default=1)
    logprobs = log(exp(logits) / Sum(exp(logits), C))
    counted = Kept(labels) * Sum(OneHot(labels, C) * weight, C)
    picked = Sum(OneHot(labels, C) * logprobs, C)
    loss = -Sum(counted * picked, N) / Sum(counted, N)
"""
SMOOTHED = """
class CrossEntropy(Forward):
    logits = Input(N, C)
    labels = Label(N, ignored=-100)
    weight = Given(C, default=1)
    label_smoothing = Scalar(0.0)
    logprobs = log(exp(logits) / Sum(exp(logits), C))
    counted = Sum(OneHot(labels, C) * weight, C)
    picked = Sum(OneHot(labels, C) * logprobs, C)
    smooth = Kept(labels) * Sum(weight * logprobs, C)
    hard = (label_smoothing - 1) * Sum(counted * picked, N)
    loss = (hard - label_smoothing / C * Sum(smooth, N)) / Sum(counted, N)
"""
LABELS = torch.tensor([2, -100, 0, 1, -100, 2])


def made(folder, text):
    file = folder / "mine.py"
    file.write_text(HEAD + AXES + text)
    return generated(file, folder)


@pytest.fixture(scope="module")
def nll(tmp_path_factory):
    return made(tmp_path_factory.mktemp("nll"), NLL)


@pytest.fixture(scope="module")
def smoothed(tmp_path_factory):
    return made(tmp_path_factory.mktemp("smoothed"), SMOOTHED)


def assert_as_torch(function, logits, labels, exactly=False, **options):
    """Value and gradient are those of ``cross_entropy``; what is NaN there is NaN here."""
    ours, theirs = (logits.detach().clone().requires_grad_() for _ in range(2))
    loss = function(ours, labels, **options)
    expected = F.cross_entropy(theirs, labels, **options)
    loss.backward()
    expected.backward()
    near = {"rtol": 0, "atol": 0} if exactly else {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(loss, expected, equal_nan=True, **near)
    torch.testing.assert_close(ours.grad, theirs.grad, equal_nan=True, **near)
    return ours.grad


def test_rows_that_are_ignored_count_for_nothing(nll):
    function, *_ = nll
    assert_as_torch(function, draw(6, 3), LABELS)
    gradient = assert_as_torch(function, draw(6, 3), LABELS, weight=draw(3).abs())
    assert not gradient[LABELS == -100].any()


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_in_full(smoothed, label_smoothing, weighted):
    function, *_ = smoothed
    weight = draw(3).abs() if weighted else None
    options = {"weight": weight, "label_smoothing": label_smoothing}
    assert_as_torch(function, draw(6, 3), LABELS, **options)
    assert_as_torch(function, draw(6, 3), LABELS.clamp(min=0), ignore_index=0, **options)
    assert_as_torch(function, draw(6, 3), LABELS.clamp(min=0), **options)


@pytest.mark.parametrize("which", ["nll", "smoothed"])
def test_all_rows_ignored_is_no_number_and_the_gradient_is_exactly_zero(which, nll, smoothed):
    function, *_ = {"nll": nll, "smoothed": smoothed}[which]
    labels = torch.full((4,), -100)
    gradient = assert_as_torch(function, draw(4, 3), labels, exactly=True)
    assert torch.equal(gradient, torch.zeros(4, 3, dtype=torch.float64))
    assert function(draw(4, 3), labels).isnan()


def test_one_row_without_other_dimensions(nll):
    function, *_ = nll
    assert_as_torch(function, draw(3), torch.tensor(1))
    gradient = assert_as_torch(function, draw(3), torch.tensor(-100), exactly=True)
    assert not gradient.any()
    labels = LABELS.reshape(2, 3)
    ours = function(draw(6, 3).reshape(2, 3, 3), labels)
    assert torch.equal(ours, function(draw(6, 3), LABELS))


@pytest.mark.parametrize("format", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_formats_of_numbers_and_of_labels(nll, format, kind):
    function, *_ = nll
    logits = draw(6, 3).to(format).requires_grad_()
    same = logits.detach().double().requires_grad_()
    loss, expected = function(logits, LABELS.to(kind)), F.cross_entropy(same, LABELS)
    loss.backward()
    expected.backward()
    assert loss.dtype == logits.grad.dtype == format
    bound = 4 * torch.finfo(format).eps
    torch.testing.assert_close(loss.double(), expected, rtol=bound, atol=bound)
    torch.testing.assert_close(logits.grad.double(), same.grad, rtol=bound, atol=bound)


@pytest.mark.parametrize("wrong", [3, -1, -100])
def test_a_label_outside_that_is_not_ignored_is_refused(nll, wrong):
    function, *_ = nll
    labels = torch.tensor([0, wrong, 1, 2])
    with pytest.raises((IndexError, RuntimeError), match=rf"(?<![\d-]){wrong}\b"):
        function(draw(4, 3), labels, ignore_index=1)


CALLER = """
class Outer(Forward):
    x = Input(N, C)
    targets = Label(N{ignored})
    doubled = 2 * x
    loss = Nll(doubled, targets)
"""


def test_in_a_composition_the_label_of_the_caller_decides(tmp_path):
    file = tmp_path / "outer.py"
    plain = NLL.replace(", ignored=-100", "").replace("Kept(labels) * ", "")
    for number, callee in enumerate((NLL, plain)):
        file = tmp_path / f"outer{number}.py"
        file.write_text(HEAD + AXES + callee + CALLER.format(ignored=", ignored=7"))
        function, _, result = generated_from(f"{file}:Outer", tmp_path)
        assert "ignore_index: int = 7" in result.text
        labels = torch.where(LABELS == -100, 7, LABELS)
        ours, theirs = (draw(6, 3).requires_grad_() for _ in range(2))
        function(ours, labels).backward()
        F.cross_entropy(2 * theirs, labels, ignore_index=7).backward()
        torch.testing.assert_close(ours.grad, theirs.grad)
    file.write_text(HEAD + AXES + NLL + CALLER.format(ignored=""))
    definition = derive(forward_from(f"{file}:Outer")).definition
    assert not any(t.role == "kept" for t in definition.inputs)


def generated_from(name, folder):
    from generating import module_from

    from codegen.driver.lean import generate

    result = generate(forward_from(name))
    module = module_from(result.text, folder, f"{result.program.name}_{len(result.text)}")
    return getattr(module, result.program.name), module, result


def test_every_page_says_what_is_ignored(nll):
    *_, result = nll
    for format, page in pages(result.proved).items():
        assert "ignored where" in page, format


def test_a_formula_is_proved_or_refuted(tmp_path):
    forward = forward_from(forward_file(tmp_path, "Nll", NLL.partition(":\n")[2]))
    right = "dloss/Sum(counted, N)*counted*(exp(logprobs) - OneHot(labels, C))"
    assert check(forward, right, of="logits").right
    assert check(forward, f"Kept(labels)*{right}", of="logits").right
    torchs = "dloss/counted.sum()*(labels_kept*weight[labels])[:, None]*(logprobs.exp() - hot)"
    torchs = torchs.replace("hot", "F.one_hot(labels, C)")
    assert check(forward, torchs, of="logits").right
    for mask in ("(labels != ignore_index)", "labels.ne(-100)"):
        asked = torchs.replace("labels_kept", mask)
        assert check(forward, asked, of="logits").right
    with pytest.raises(NotUnderstood, match="write labels != -100"):
        check(forward, asked.replace("-100", "-1"), of="logits")
    shown = "counted·dloss·(exp(logprobs) - 1[labels = C])"
    shown += "·(1/sum_counted if labels_kept ≠ 0, else 0)"
    assert check(forward, shown, of="logits").right
    wrong = check(forward, torchs.replace("labels_kept*", ""), of="logits")
    assert wrong.right is False
    assert "labels_kept" in str(wrong)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("i = Label(N, ignored=0.5)", "not an integer"),
        ("i = Label(N, ignored=-1)\n    j = Label(N, ignored=-2)", "is one number"),
        ("ignore_index = Scalar(1)\n    i = Label(N, ignored=-1)", "defined already"),
        ("i = Label(N, ignored=-1)\n    i_kept = Given(N)", "defined already"),
        ("z = Kept(x)", "not a label"),
    ],
)
def test_mistakes_say_what_to_do(line, words, tmp_path):
    body = f"    x = Input(N)\n    {line}\n    y = x**2\n"
    with pytest.raises(NotationError, match=words):
        forward_from(forward_file(tmp_path, "Mine", body))


COUNTED = {
    "OverASum": ("y = OneHot(labels, C)/(1 + x**2)", lambda x, hot: hot / (1 + x**2)),
    "ASumOverIt": ("y = x/(1 + OneHot(labels, C)*x**2)", lambda x, hot: x / (1 + hot * x**2)),
    "OverARoot": ("y = Kept(labels)*x/sqrt(1 + x**2)", lambda x, hot: counts(hot) * x / root(x)),
    "PowerOverAPower": (
        "y = (OneHot(labels, C)*x)**3/(1 + x**2)**Rational(3, 2)",
        lambda x, hot: hot * x**3 / root(x) ** 3,
    ),
    "TimesALogarithm": (
        "s = Sum(exp(x), C)\n    y = Kept(labels)*log(s)",
        lambda x, hot: counts(hot)[:, 0] * x.logsumexp(1),
    ),
    "WeightedMean": (
        "y = Sum(x*Kept(labels)/(1 + x**2), N)/Sum(x**2*Kept(labels), N)",
        lambda x, hot: (counts(hot) * x / root(x) ** 2).sum(0) / (counts(hot) * x**2).sum(0),
    ),
}


def root(x):
    return (1 + x**2).sqrt()


def counts(hot):
    return hot.sum(1, keepdim=True)


@pytest.mark.parametrize("name", COUNTED)
def test_nothing_is_divided_by_what_is_zero_where_a_label_is_ignored(name, tmp_path):
    line, reference = COUNTED[name]
    body = f"    x = Input(N, C)\n    labels = Label(N, ignored=-100)\n    {line}\n"
    function, _, _ = generated(forward_file(tmp_path, name, body), tmp_path)
    hot = torch.eye(4, dtype=torch.float64)[LABELS.clamp(min=0)] * (LABELS != -100)[:, None]
    assert_same_gradients(lambda x: function(x, LABELS), lambda x: reference(x, hot), draw(6, 4))


READ = [
    "F.cross_entropy(logits, labels)",
    "F.cross_entropy(logits, labels, reduction='none', ignore_index=-100)",
    "F.cross_entropy(logits, labels, weight=weight, label_smoothing=0.1)",
    "F.nll_loss(logits, labels, ignore_index=ignore_index)",
]


def run_as_text(file, text):
    definition = forward_from(file).definition
    source = Source(f"result = {text}", "text")
    space = Space(definition)
    program = TextProgram(source, space, TextNames(definition, {}), definition.differentiable[0])
    program.run(source.parsed().body)
    return space.definition, program.cells["result"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    found = tmp_path_factory.mktemp("read") / "mine.py"
    found.write_text(HEAD + AXES + NLL)
    return found


@pytest.mark.parametrize("text", READ)
def test_a_loss_that_is_read_ignores_the_labels_of_the_mathematics(file, text):
    definition, cell = run_as_text(file, text)
    given = {"logits": draw(6, 3), "labels": LABELS, "weight": draw(3).abs()}
    expected = eval(text, {"F": F, "ignore_index": -100, **given})
    given |= {"labels": LABELS.clamp(min=0), "labels_kept": (LABELS != -100).double()}
    found = Interpreter(definition, given)
    found.run()
    read = found.value(cell.value.expression)
    torch.testing.assert_close(read.reshape(expected.shape), expected, rtol=1e-12, atol=1e-12)


def test_labels_that_the_mathematics_keeps_are_not_left_out(file):
    _, cell = run_as_text(file, "F.cross_entropy(logits, labels, ignore_index=0)")
    assert "labels equal to 0 are ignored here" in str(cell.broken.problem)
