"""Well-known functions as people write them: a name, the usual spelling, an unusual one.

A letter says what stands under it; `DECLARED` has them all. Lines are separated by a semicolon.
"""

from __future__ import annotations

import re

DECLARED = {
    **dict.fromkeys(("x", "w"), "Input(N, C)"),
    "p": "Input(N, C)",  # drawn above 0
    "u": "Input(N, C)",  # drawn between -1 and 1
    "g": "Input(N, C)",  # drawn above 1
    "t": "Given(N, C)",  # drawn between 0 and 1
    "labels": "Label(N)",
    "q": "Input(N, D)",
    "k": "Input(K, D)",
    "v": "Input(K, D)",
    "s": "Scalar(2.0)",
}

SIGMOID, SOFTPLUS, TANH = "y = 1/(1 + exp(-x))", "y = log(1 + exp(x))", "y = tanh(x)"
SILU, GELU, MISH = (
    "y = x/(1 + exp(-x))",
    "y = x*(1 + erf(x/sqrt(2)))/2",
    "y = x*tanh(log(1 + exp(x)))",
)
LOG_SIGMOID, LOG_COSH = "y = -log(1 + exp(-x))", "y = log(cosh(x))"
SOFTMAX, LOG_SOFTMAX = "y = exp(x)/Sum(exp(x), C)", "y = x - log(Sum(exp(x), C))"
P, Q = "a = exp(x)/Sum(exp(x), C)", "b = exp(w)/Sum(exp(w), C)"
KL = f"{P}; {Q}; y = Sum(a*(log(a) - log(b)), C)"
WEIGHTED = "y = log(Sum(t*exp(x), C))"
ENTROPY = f"{P}; y = -Sum(a*log(a), C)"
CROSS = f"{P}; y = -Sum(t*log(a), C)"
NLL = "y = -Sum(OneHot(labels, C)*(x - log(Sum(exp(x), C))), N, C)/N"
BCE = "y = log(1 + exp(x)) - t*x"
MEAN = "m = Sum(x, C)/C; d = x - m"
VARIANCE = f"{MEAN}; y = Sum(d**2, C)/C"
LAYER_NORM = f"{MEAN}; y = d/sqrt(Sum(d**2, C)/C + 1e-5)"
RMS_NORM = "y = x/sqrt(Sum(x**2, C)/C + 1e-5)"
SCORES = "score = Sum(q*k, D)/2"
ATTENTION = f"{SCORES}; a = exp(score)/Sum(exp(score), K); y = Sum(a*v, K)"
RELU = "y = Piecewise((x, x > 0), (0, True))"
LEAKY = "y = Piecewise((x, x > 0), (x/10, True))"
ELU = "y = Piecewise((x, x > 0), (exp(x) - 1, True))"
CLAMP = "y = Piecewise((-1, x < -1), (1, x > 1), (x, True))"
HUBER = "d = x - w; y = Piecewise((d**2/2, Abs(d) <= 1), (Abs(d) - Rational(1, 2), True))"
LSE2 = "y = log(exp(x) + exp(w))"

SPELLED: tuple[tuple[str, str, str], ...] = (
    ("sigmoid by tanh", SIGMOID, "y = (1 + tanh(x/2))/2"),
    ("sigmoid from above", SIGMOID, "y = exp(x)/(1 + exp(x))"),
    ("sigmoid as a remainder", SIGMOID, "y = 1 - 1/(1 + exp(x))"),
    ("sigmoid by halves", SIGMOID, "y = exp(x/2)/(exp(x/2) + exp(-x/2))"),
    ("sigmoid by cosh", SIGMOID, "y = exp(x/2)/(2*cosh(x/2))"),
    ("sigmoid by softplus", SIGMOID, "y = exp(-log(1 + exp(-x)))"),
    (
        "sigmoid in two pieces",
        SIGMOID,
        "y = Piecewise((1/(1 + exp(-x)), x >= 0), (exp(x)/(1 + exp(x)), True))",
    ),
    ("tanh by both", TANH, "y = (exp(x) - exp(-x))/(exp(x) + exp(-x))"),
    ("tanh by one", TANH, "y = (exp(2*x) - 1)/(exp(2*x) + 1)"),
    ("tanh as a remainder", TANH, "y = 1 - 2/(exp(2*x) + 1)"),
    ("tanh by sigmoid", TANH, "y = 2/(1 + exp(-2*x)) - 1"),
    ("tanh by sinh", TANH, "y = sinh(x)/cosh(x)"),
    ("tanh in lines", TANH, "e = exp(x); r = 1/e; y = (e - r)/(e + r)"),
    ("softplus by its larger", SOFTPLUS, "y = Larger(x, 0) + log(1 + exp(-Abs(x)))"),
    ("softplus by sigmoid", SOFTPLUS, "y = -log(1/(1 + exp(x)))"),
    ("softplus and x", SOFTPLUS, "y = x + log(1 + exp(-x))"),
    ("softplus by cosh", SOFTPLUS, "y = x/2 + log(2*cosh(x/2))"),
    ("softplus by the rest", SOFTPLUS, "y = -log(1 - 1/(1 + exp(-x)))"),
    ("softplus by tanh", SOFTPLUS, "y = -log((1 - tanh(x/2))/2)"),
    ("silu by tanh", SILU, "y = x*(1 + tanh(x/2))/2"),
    ("silu from above", SILU, "y = x*exp(x)/(exp(x) + 1)"),
    ("silu less the rest", SILU, "y = x - x/(1 + exp(x))"),
    ("mish by exponentials", MISH, "e = exp(x); n = e*(e + 2); y = x*n/(n + 2)"),
    ("mish as a remainder", MISH, "y = x*(1 - 2/((1 + exp(x))**2 + 1))"),
    ("gelu by erfc", GELU, "y = x*erfc(-x/sqrt(2))/2"),
    ("gelu less the tail", GELU, "y = x - x*erfc(x/sqrt(2))/2"),
    ("gelu by the tail", GELU, "h = 1 - erf(x/sqrt(2)); y = x*(1 - h/2)"),
    ("erfc", "y = erfc(x)", "y = 1 - erf(x)"),
    (
        "gelu, tanh as sigmoid",
        "y = x*(1 + tanh(0.8*(x + 0.044715*x**3)))/2",
        "y = x/(1 + exp(-1.6*(x + 0.044715*x*x*x)))",
    ),
    ("log sigmoid", LOG_SIGMOID, "y = log(1/(1 + exp(-x)))"),
    ("log sigmoid by its smaller", LOG_SIGMOID, "y = Smaller(x, 0) - log(1 + exp(-Abs(x)))"),
    ("log sigmoid and x", LOG_SIGMOID, "y = x - log(1 + exp(x))"),
    ("log sigmoid by tanh", LOG_SIGMOID, "y = log((1 + tanh(x/2))/2)"),
    ("log cosh by magnitude", LOG_COSH, "y = Abs(x) + log(1 + exp(-2*Abs(x))) - log(2)"),
    ("log cosh by exponentials", LOG_COSH, "y = log((exp(x) + exp(-x))/2)"),
    ("log cosh by softplus", LOG_COSH, "y = x + log(1 + exp(-2*x)) - log(2)"),
    ("log sech", LOG_COSH, "y = -log(2/(exp(x) + exp(-x)))"),
    ("asinh by log", "y = asinh(x)", "y = log(x + sqrt(x**2 + 1))"),
    ("asinh by another log", "y = asinh(x)", "y = -log(sqrt(1 + x*x) - x)"),
    ("acosh by log", "y = acosh(g)", "y = log(g + sqrt(g**2 - 1))"),
    ("atanh by a quotient", "y = atanh(u)", "y = log((1 + u)/(1 - u))/2"),
    ("atanh by two logs", "y = atanh(u)", "y = (log(1 + u) - log(1 - u))/2"),
    ("sinh by exponentials", "y = sinh(x)", "y = (exp(x) - exp(-x))/2"),
    ("cosh by exponentials", "y = cosh(x)", "y = (exp(x) + exp(-x))/2"),
    ("sech by both", "y = 1/cosh(x)", "y = 2/(exp(x) + exp(-x))"),
    ("sech by one", "y = 1/cosh(x)", "y = 2*exp(x)/(exp(2*x) + 1)"),
    ("sech squared", "y = 1/cosh(x)**2", "y = 1 - tanh(x)**2"),
    ("sigmoid's slope by sech", f"{SIGMOID.replace('y', 'a')}; y = a*(1 - a)",
     "y = 1/(4*cosh(x/2)**2)"),
    ("sigmoid's slope", f"{SIGMOID.replace('y', 'a')}; y = a*(1 - a)",
     "y = exp(-x)/(1 + exp(-x))**2"),
    ("expm1 by sinh", "y = exp(x) - 1", "y = 2*exp(x/2)*sinh(x/2)"),
    ("expm1 by tanh", "y = exp(x) - 1", "y = tanh(x/2)*(exp(x) + 1)"),
    ("elu by its sides", ELU, "y = Larger(x, 0) + Smaller(exp(x) - 1, 0)"),
    ("elu by the smaller inside", ELU, "y = Larger(x, 0) + exp(Smaller(x, 0)) - 1"),
    ("relu by its larger", RELU, "y = Larger(x, 0)"),
    ("relu by magnitude", RELU, "y = (x + Abs(x))/2"),
    ("leaky relu by its larger", LEAKY, "y = Larger(x, x/10)"),
    ("leaky relu by its sides", LEAKY, "y = Larger(x, 0) + Smaller(x, 0)/10"),
    ("hard tanh by extremes", CLAMP, "y = Larger(-1, Smaller(x, 1))"),
    ("hard tanh by magnitudes", CLAMP, "y = (Abs(x + 1) - Abs(x - 1))/2"),
    (
        "hard sigmoid by pieces",
        "y = Smaller(Larger(x/6 + Rational(1, 2), 0), 1)",
        "y = Piecewise((0, x <= -3), (1, x >= 3), (x/6 + Rational(1, 2), True))",
    ),
    (
        "hard swish by pieces",
        "y = x*Smaller(Larger(x + 3, 0), 6)/6",
        "y = Piecewise((0, x <= -3), (x, x >= 3), (x*(x + 3)/6, True))",
    ),
    ("huber by its smaller", HUBER, "a = Abs(x - w); m = Smaller(a, 1); y = m*(a - m/2)"),
    ("softsign in pieces", "y = x/(1 + Abs(x))",
     "y = Piecewise((x/(1 + x), x > 0), (x/(1 - x), True))"),
    ("softmax of a root", "y = exp(x/2)/Sum(exp(x/2), C)", "r = sqrt(exp(x)); y = r/Sum(r, C)"),
    (
        "softmax with a temperature",
        "h = x/s; y = exp(h)/Sum(exp(h), C)",
        "y = exp(x)**(1/s)/Sum(exp(x)**(1/s), C)",
    ),
    ("softmax by differences", SOFTMAX, "y = 1/Sum(exp(Rename(x, C, K) - x), K)"),
    ("softmax by its logarithm", SOFTMAX, "l = x - log(Sum(exp(x), C)); y = exp(l)"),
    ("softmax shifted", SOFTMAX, "e = exp(x - Max(x, C)); y = e/Sum(e, C)"),
    ("log softmax of a quotient", LOG_SOFTMAX, "y = log(exp(x)/Sum(exp(x), C))"),
    ("log softmax turned", LOG_SOFTMAX, "y = -log(Sum(exp(x), C)/exp(x))"),
    ("log softmax by differences", LOG_SOFTMAX, "y = -log(Sum(exp(Rename(x, C, K) - x), K))"),
    (
        "log softmax shifted",
        LOG_SOFTMAX,
        "m = Max(x, C); y = (x - m) - log(Sum(exp(x - m), C))",
    ),
    ("log softmax as a product", LOG_SOFTMAX, "y = -log(exp(-x)*Sum(exp(x), C))"),
    ("entropy of logits", ENTROPY,
     "z = Sum(exp(x), C); y = log(z) - Sum(x*exp(x), C)/z"),
    ("entropy, turned", ENTROPY, f"{P}; y = Sum(a*log(1/a), C)"),
    ("kl of a quotient", KL, f"{P}; {Q}; y = Sum(a*log(a/b), C)"),
    (
        "kl of logits",
        KL,
        f"{P}; y = Sum(a*(x - w), C) - log(Sum(exp(x), C)) + log(Sum(exp(w), C))",
    ),
    ("cross entropy of a quotient", CROSS, "y = Sum(t*log(Sum(exp(x), C)/exp(x)), C)"),
    (
        "cross entropy taken apart",
        CROSS,
        "y = log(Sum(exp(x), C))*Sum(t, C) - Sum(t*x, C)",
    ),
    (
        "nll of what is picked",
        NLL,
        "y = -Sum(log(Sum(OneHot(labels, C)*exp(x), C)/Sum(exp(x), C)), N)/N",
    ),
    ("nll, taken apart", NLL,
     "y = Sum(log(Sum(exp(x), C)) - Sum(OneHot(labels, C)*x, C), N)/N"),
    (
        "bce of probabilities",
        BCE,
        "a = 1/(1 + exp(-x)); y = -t*log(a) - (1 - t)*log(1 - a)",
    ),
    ("bce by its larger", BCE, "y = Larger(x, 0) - x*t + log(1 + exp(-Abs(x)))"),
    (
        "focal",
        "a = 1/(1 + exp(-x)); y = -(1 - a)**2*log(a)",
        "y = (1/(1 + exp(x)))**2*log(1 + exp(-x))",
    ),
    ("preference", "y = log(1 + exp(w - x))", "y = -log(exp(x)/(exp(x) + exp(w)))"),
    ("log add exp", LSE2, "y = Larger(x, w) + log(1 + exp(-Abs(x - w)))"),
    ("log add exp by one", LSE2, "y = x + log(1 + exp(w - x))"),
    ("weighted, shifted", WEIGHTED, "m = Max(x, C); y = m + log(Sum(t*exp(x - m), C))"),
    ("weighted, inside", WEIGHTED, "y = log(Sum(exp(x + log(t)), C))"),
    (
        "weighted mean of softmax",
        f"{P}; y = Sum(a*w, C)",
        "y = Sum(w*exp(x), C)/Sum(exp(x), C)",
    ),
    ("variance by squares", VARIANCE, "y = Sum(x**2, C)/C - (Sum(x, C)/C)**2"),
    ("variance by products", VARIANCE, f"{MEAN}; y = Sum(d*x, C)/C"),
    (
        "layer norm by squares",
        LAYER_NORM,
        "m = Sum(x, C)/C; y = (x - m)/sqrt(Sum(x*x, C)/C - m*m + 1e-5)",
    ),
    ("layer norm by a root", LAYER_NORM,
     f"{MEAN}; r = (Sum(d*d, C)/C + 1e-5)**Rational(-1, 2); y = r*x - r*m"),
    ("rms norm by a root", RMS_NORM, "r = (Sum(x*x, C)/C + 1e-5)**Rational(-1, 2); y = x*r"),
    ("rms norm of the sum", RMS_NORM, "y = sqrt(C)*x/sqrt(Sum(x**2, C) + C*1e-5)"),
    (
        "skewness by products",
        f"{MEAN}; y = Sum(d**3, C)/C/(Sum(d**2, C)/C + 1e-5)**Rational(3, 2)",
        f"{MEAN}; v2 = Sum(d*d, C)/C + 1e-5; y = Sum(d*d*d, C)/(C*v2*sqrt(v2))",
    ),
    ("length by a power", "y = x/sqrt(Sum(x**2, C))", "y = x*Sum(x*x, C)**Rational(-1, 2)"),
    (
        "cosine by two roots",
        "y = Sum(x*w, C)/sqrt(Sum(x**2, C)*Sum(w**2, C))",
        "y = Sum(x/sqrt(Sum(x**2, C))*w/sqrt(Sum(w**2, C)), C)",
    ),
    ("product of powers", "y = p**Rational(3, 2)", "y = p**2*sqrt(p)/p"),
    ("power by exp and log", "y = p**s", "y = exp(s*log(p))"),
    ("geometric mean", "y = exp(Sum(log(p), C)/C)", "y = exp(-Sum(log(1/p), C)/C)"),
    ("attention as a fraction", ATTENTION,
     f"{SCORES}; e = exp(score); y = Sum(e*v, K)/Sum(e, K)"),
    (
        "attention shifted",
        ATTENTION,
        f"{SCORES}; e = exp(score - Max(score, K)); y = Sum(e/Sum(e, K)*v, K)",
    ),
    ("glu by tanh", "y = x/(1 + exp(-w))", "y = x*(tanh(w/2) + 1)/2"),
)  # fmt: skip


def body_of(written: str) -> str:
    """The class body of a spelling: what it reads is declared, then its lines."""
    words = set(re.findall(r"[A-Za-z_]\w*", written))
    made = {line.split(" = ")[0] for line in written.split("; ")}
    declared = [f"{n} = {kind}" for n, kind in DECLARED.items() if n in words - made]
    return "".join(f"    {line}\n" for line in [*declared, *written.split("; ")])
