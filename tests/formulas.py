"""Backwards as people write them, right ones and wrong ones: the corpus of `derive.check`.

Every label is confirmed numerically by ``test_check_formulas.py``. A text is in torch, in the
project's notation, or reads the same in both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Formula:
    """A text that claims to be the gradient of ``of``, and whether it is."""

    forward: str
    of: str
    text: str
    right: bool
    about: str  # the form it is in, or the mistake
    let: dict[str, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        label = "right" if self.right else "wrong"
        return f"{self.forward}.{self.of} {label}: {self.about}"

    @property
    def in_project_notation(self) -> bool:
        return bool(re.search(r"\b(Sum|Max|OneHot)\(", self.text))

    @property
    def in_torch(self) -> bool:
        return bool(re.search(r"\.[a-zA-Z]|\[|@", self.text))


# Names of the exercise's own, and what the mathematics calls them.
PUBLISHED = {
    "bngain": "gain",
    "bnvar_inv": "inv_std",
    "bnraw": "xhat",
    "dhpreact": "dy",
}

RIGHT = {
    ("BatchNorm", "x"): {
        "closed": "gain*inv_std*(dy - dbias/N - dgain*xhat/(N - 1))",
        "published": "bngain*bnvar_inv/n * (n*dhpreact - dhpreact.sum(0)"
        " - n/(n-1)*bnraw*(dhpreact*bnraw).sum(0))",
        "expanded": "gain*inv_std*dy - gain*inv_std*dy.mean(0)"
        " - gain*inv_std*xhat*(dy*xhat).sum(0)/(n - 1)",
        "common denominator": "gain*inv_std*(n*(n - 1)*dy - (n - 1)*dy.sum(0)"
        " - n*xhat*(dy*xhat).sum(0))/(n*(n - 1))",
        "gain inside of the sums": "inv_std*(gain*dy - (gain*dy).mean(0)"
        " - xhat*(gain*dy*xhat).sum(0)/(n - 1))",
        "through x - mean": "gain*(dy - dy.mean(0))/torch.sqrt(var + eps)"
        " - gain*(x - mean)*(dy*(x - mean)).sum(0)/(n - 1)*(var + eps)**-1.5",
        "recomputed statistics": "gain*(x.var(0, correction=1) + eps)**-0.5*(dy - dy.mean(0)"
        " - (x - x.mean(0))*(dy*(x - x.mean(0))).sum(0)"
        "/((x.shape[0] - 1)*(x.var(0, correction=1) + eps)))",
        "raw moments": "gain*(dy - dy.mean(0) - (x - x.mean(0))"
        "*((dy*x).sum(0) - x.mean(0)*dy.sum(0))/(x.pow(2).sum(0) - n*x.mean(0)**2 + (n - 1)*eps))"
        "/(((x**2).sum(0) - n*x.mean(0).pow(2))/(n - 1) + eps).sqrt()",
        "from dxhat": "inv_std*(dxhat - dxhat.mean(0) - xhat*(dxhat*xhat).sum(0)/(n - 1))",
        "from ddiff": "ddiff - ddiff.mean(0)",
        "from dxhat, dvar and dmean": "dxhat*inv_std + 2*diff*dvar/(n - 1) + dmean/n",
        "from dgain and dbias, times n": "gain*inv_std/n*(n*dy - dbias - n*xhat*dgain/(n - 1))",
        "dvar written out": "gain*dy*inv_std - (gain*dy*inv_std).sum(0)/n"
        " + 2*diff/(n - 1)*(-0.5*(gain*dy*diff).sum(0)*inv_std**3)",
        "dinv_std written out": "(dy*gain*inv_std - (dy*gain*inv_std).mean(0))"
        " - diff*inv_std.pow(3)*(gain*dy*diff).sum(0, keepdim=True)/(len(x) - 1)",
        "centred upstream": "gain*inv_std*(dy - dy.mean(0)"
        " - xhat*((dy - dy.mean(0))*xhat).sum(0)/(n - 1))",
        "a mean inside of a mean": "gain*inv_std*((dy - xhat*dgain/(n - 1))"
        " - (dy - xhat*dgain/(n - 1)).mean(0))",
        "upstream times x": "gain*inv_std*(dy - dy.mean(0)"
        " - inv_std*xhat*((dy*x).sum(0) - mean*dy.sum(0))/(n - 1))",
        "xhat through y": "gain*inv_std*(dy - dy.mean(0)"
        " - (y - bias)/gain*(dy*(y - bias)/gain).sum(0)/(n - 1))",
        "y, the gain cancelled": "gain*inv_std*(dy - dy.mean(0))"
        " - inv_std/gain*(y - bias)*(dy*(y - bias)).sum(0)/(n - 1)",
        "rsqrt": "gain*torch.rsqrt(var + eps)*(dy - torch.mean(dy, 0)"
        " - diff*torch.sum(dy*diff, dim=0)/((n - 1)*(var + eps)))",
        "var + eps for inv_std": "gain*inv_std**3*((var + eps)*(dy - dy.mean(0))"
        " - diff*(dy*diff).sum(0)/(n - 1))",
        "everything over one root": "gain*((n - 1)*(var + eps)*(n*dy - dy.sum(0))"
        " - n*diff*(dy*diff).sum(0))/(n*(n - 1)*(var + eps)**1.5)",
        "n - 1 as a sum of squares": "gain*inv_std*(dy - dy.mean(0)"
        " - xhat*(dy*xhat).sum(0)*var*inv_std**2/(xhat**2).sum(0))",
        "biased variance, corrected": "gain*inv_std*(dy - dy.mean(0)) - gain*inv_std**3*diff"
        "*(dy*diff).mean(0)*x.var(0, correction=1)/x.var(0, correction=0)",
        "transposed": "(dy.T - dy.T.mean(1, keepdim=True)).T*gain*inv_std"
        " - gain*inv_std*xhat*dgain/(n - 1)",
        "columns of xhat sum to zero": "gain*inv_std*(dy - dy.mean(0)"
        " - xhat*(dy*xhat).sum(0)/(n - 1)) - xhat.mean(0)*dy.var(0, correction=1)",
        "terms of nothing": "gain*inv_std*(dy - dy.mean(0) - xhat*(dy*xhat).sum(0)/(n - 1))"
        " + 0*x + diff.sum(0)*gain + (x - x) + torch.zeros_like(dy)",
        "a term that vanishes through eps": "gain*inv_std*(dy - dy.mean(0)"
        " - xhat*(dy*xhat).sum(0)/(n - 1))"
        " + gain*dgain*xhat*(1 - (xhat**2).sum(0)/(n - 1) - eps*inv_std**2)",
        "x added and taken away": "gain*inv_std*(dy - dbias/n"
        " - ((xhat + x)*dgain - x*dgain)/(n - 1))",
        "sizes in every spelling": "gain*inv_std*(dy - dy.sum(dim=0)/x.size(0)"
        " - xhat*(dy*xhat).sum(0)/(len(dy) - 1))",
        "dim and keepdim": "gain*inv_std*(dy - dy.mean(dim=0, keepdim=True)"
        " - xhat*(dy*xhat).sum(dim=0, keepdim=True)/(x.shape[0] - 1))",
        "negative dim": "gain*inv_std*(dy - dy.mean(-2) - xhat*(dy*xhat).sum(-2)/(n - 1))",
        "sums of the notation": "gain*inv_std*(dy - Sum(dy, N)/N - xhat*Sum(dy*xhat, N)/(N - 1))",
        "notation, through x": "gain*(dy - Sum(dy, N)/N - (x - Sum(x, N)/N)"
        "*Sum(dy*(x - Sum(x, N)/N), N)/((N - 1)*(var + eps)))/sqrt(var + eps)",
        "notation, raw moments": "gain*(dy - Sum(dy, N)/N"
        " - (x - mean)*(Sum(dy*x, N) - Sum(dy, N)*Sum(x, N)/N)"
        "/(Sum(x**2, N) - Sum(x, N)**2/N + (N - 1)*eps))"
        "*((Sum(x**2, N) - N*mean**2)/(N - 1) + eps)**Rational(-1, 2)",
        "notation, everything under the sum": "inv_std*(gain*dy"
        " - Sum(gain*dy/N, N) - xhat*Sum(gain*dy*xhat/(N - 1), N))",
        "notation, common denominator": "gain*inv_std/(N*(N - 1))*((N - 1)*(N*dy - Sum(dy, N))"
        " - N*xhat*Sum(xhat*dy, N))",
        "notation, zero term": "gain*inv_std*(dy - Sum(dy - xhat, N)/N"
        " - xhat*Sum(dy*xhat, N)/(N - 1))",
    },
    ("BatchNorm", "gain"): {
        "sum": "(dy*xhat).sum(0)",
        "through diff": "(dy*(x - mean)*inv_std).sum(0)",
        "mean times n": "n*(dy*xhat).mean(0)",
        "through y": "(dy*(y - bias)).sum(0)/gain",
        "raw": "(dy*inv_std*x).sum(0) - (dy*inv_std*mean).sum(0)",
        "centred upstream": "((dy - dy.mean(0))*xhat).sum(0)",
        "eps in the root": "((x - x.mean(0))/(x.var(0, correction=1) + eps).sqrt()*dy).sum(0)",
        "from dxhat": "(dxhat*xhat).sum(0)/gain",
        "transposed": "(dy*xhat).T.sum(1)",
        "notation": "Sum(dy*xhat, N)",
        "notation, raw": "(Sum(x*dy, N) - Sum(x, N)*Sum(dy, N)/N)/sqrt(var + eps)",
    },
    ("BatchNorm", "bias"): {
        "sum": "dy.sum(0)",
        "function": "torch.sum(dy, 0)",
        "mean times n": "x.shape[0]*dy.mean(0)",
        "from dxhat": "dxhat.sum(0)/gain",
        "transposed": "dy.T.sum(-1)",
        "zero added": "dy.sum(0) + xhat.sum(0)*gain",
        "notation": "Sum(dy, N)",
        "notation, zero added": "Sum(dy + diff*gain, N)",
    },
    ("LayerNorm", "x"): {
        "from dxhat": "inv_std*(dxhat - dxhat.mean(1, keepdim=True)"
        " - xhat*(dxhat*xhat).mean(1, keepdim=True))",
        "gain inside": "inv_std*(gain*dy - (gain*dy).mean(1, keepdim=True)"
        " - xhat*(gain*dy*xhat).mean(1, keepdim=True))",
        "times C": "inv_std/C*(C*gain*dy - (gain*dy).sum(1, keepdim=True)"
        " - xhat*(gain*dy*xhat).sum(1, keepdim=True))",
        "matrix products": "inv_std*(gain*dy - (dy @ gain)[:, None]/C"
        " - xhat*((dy*xhat) @ gain).unsqueeze(1)/C)",
        "through x - mean": "(gain*dy - (gain*dy).mean(1, keepdim=True))/(var + eps).sqrt()"
        " - (x - mean)*(gain*dy*(x - mean)).mean(1, keepdim=True)*(var + eps)**-1.5",
        "recomputed statistics": "(gain*dy - (gain*dy).mean(-1, keepdim=True)"
        " - (x - x.mean(-1, keepdim=True))*(gain*dy*(x - x.mean(-1, keepdim=True)))"
        ".mean(-1, keepdim=True)/(x.var(-1, correction=0, keepdim=True) + eps))"
        "*torch.rsqrt(x.var(-1, correction=0, keepdim=True) + eps)",
        "raw moments": "inv_std*(gain*dy - (gain*dy).mean(1)[:, None]"
        " - xhat*inv_std*((gain*dy*x).mean(1) - x.mean(1)*(gain*dy).mean(1))[:, None])",
        "raw second moment": "(gain*dy - (gain*dy).mean(1, keepdim=True)"
        " - (x - mean)*(gain*dy*(x - mean)).mean(1, keepdim=True)"
        "/((x**2).mean(1, keepdim=True) - mean**2 + eps))"
        "*((x**2).mean(1, keepdim=True) - mean**2 + eps)**-0.5",
        "y in its honest place": "inv_std*(gain*dy - (gain*dy).mean(1, keepdim=True)"
        " - xhat*(dy*(y - bias)).mean(1, keepdim=True))",
        "from ddiff": "ddiff - ddiff.mean(1, keepdim=True)",
        "from dvar and dmean": "dxhat*inv_std + 2*diff*dvar/C + dmean/C",
        "transposed": "((gain*dy*inv_std).T - (gain*dy*inv_std).mean(1)).T"
        " - inv_std*xhat*(gain*dy*xhat).mean(1, keepdim=True)",
        "sample variance, corrected": "inv_std*(dxhat - dxhat.mean(1, keepdim=True)"
        " - xhat*(dxhat*xhat).sum(1, keepdim=True)/C"
        "*((C - 1)*x.var(1, correction=1, keepdim=True)/C/var))",
        "rows of xhat sum to zero": "inv_std*(dxhat - dxhat.mean(1, keepdim=True)"
        " - xhat*(dxhat*xhat).mean(1, keepdim=True)) + dy*xhat.sum(1, keepdim=True)",
        "inv_std to the third": "inv_std**3*((var + eps)*(dxhat - dxhat.mean(1, keepdim=True))"
        " - diff*(dxhat*diff).sum(1, keepdim=True)/x.shape[1])",
        "common denominator": "gain*dy*inv_std - ((var + eps)*(gain*dy).sum(1, keepdim=True)"
        " + diff*(gain*dy*diff).sum(1, keepdim=True))/(C*(var + eps)**1.5)",
        "sums of the notation": "inv_std*(gain*dy - Sum(gain*dy, C)/C"
        " - xhat*Sum(gain*dy*xhat, C)/C)",
        "notation, dxhat": "inv_std*(dxhat - (Sum(dxhat, C) + xhat*Sum(dxhat*xhat, C))/C)",
        "notation, through x": "(gain*dy - Sum(gain*dy, C)/C)/sqrt(var + eps)"
        " - diff*Sum(gain*dy*diff, C)/C/sqrt(var + eps)**3",
    },
    ("LayerNorm", "gain"): {
        "sum": "(dy*xhat).sum(0)",
        "through y": "((y - bias)*dy/gain).sum(0)",
        "recomputed": "(dy*(x - x.mean(1, keepdim=True))*inv_std).sum(0)",
        "notation": "Sum(dy*(x - Sum(x, C)/C)/sqrt(var + eps), N)",
    },
    ("LayerNorm", "bias"): {"sum": "dy.sum(0)", "notation": "Sum(dy, N)"},
    ("RMSNorm", "x"): {
        "closed": "inv_rms*(gain*dy - xhat*(gain*dy*xhat).mean(1, keepdim=True))",
        "through x": "gain*dy*inv_rms - x*inv_rms**3*(gain*dy*x).sum(1, keepdim=True)/C",
        "through y": "inv_rms*(gain*dy - xhat*(dy*y).mean(-1, keepdim=True))",
        "powers": "gain*dy*(square + eps).pow(-0.5)"
        " - x*(gain*dy*x).mean(1, keepdim=True)*(square + eps)**-1.5",
        "recomputed": "(gain*dy - x*((dy*x) @ gain)[:, None]/((x**2).sum(1, keepdim=True) + C*eps))"
        "/((x*x).mean(1, keepdim=True) + eps).sqrt()",
        "eps inside of the mean": "(gain*dy - xhat*(gain*dy*xhat).mean(1, keepdim=True))"
        "*(x**2 + eps).mean(1, keepdim=True)**-0.5",
        "common denominator": "inv_rms**3*(gain*dy*(C*(square + eps))"
        " - x*(gain*dy*x).sum(1, keepdim=True))/C",
        "from dxhat and dsquare": "dxhat*inv_rms + 2*x*dsquare/C",
        "notation": "inv_rms*(gain*dy - xhat*Sum(gain*dy*xhat, C)/C)",
        "notation, through x": "(gain*dy*(Sum(x**2, C)/C + eps) - x*Sum(gain*dy*x, C)/C)"
        "/(Sum(x**2, C)/C + eps)**Rational(3, 2)",
        "vanishing through eps": "inv_rms*(dxhat - xhat*Sum(dxhat*xhat, C)/C)"
        " + dy*(Sum(xhat**2, C)/C + eps*inv_rms**2 - 1)",
    },
    ("RMSNorm", "gain"): {
        "sum": "(dy*xhat).sum(0)",
        "through y": "(dy*y).sum(0)/gain",
        "notation": "Sum(dy*x/sqrt(square + eps), N)",
    },
    ("SoftmaxNLL", "logits"): {
        "closed": "dloss*(probs - F.one_hot(labels, C))/n",
        "recomputed softmax": "dloss*(F.softmax(logits, 1)"
        " - F.one_hot(labels, num_classes=logits.shape[1]))/logits.shape[0]",
        "clone": "(probs.clone() - F.one_hot(labels, C))*dloss/n",
        "counts": "dloss/n*(counts/counts.sum(1, keepdim=True) - F.one_hot(labels, C))",
        "exp of logprobs": "dloss/n*(logprobs.exp() - F.one_hot(labels, C))",
        "log_softmax": "dloss/n*(F.log_softmax(logits, dim=1).exp() - F.one_hot(labels, C))",
        "logsumexp": "dloss/n*(torch.exp(logits - torch.logsumexp(logits, 1, keepdim=True))"
        " - F.one_hot(labels, C))",
        "no maximum": "dloss/n*(logits.exp()/logits.exp().sum(1, keepdim=True)"
        " - F.one_hot(labels, C))",
        "row maximum": "dloss/n*((logits - logits.max(1, keepdim=True).values).exp()"
        "/(logits - logits.amax(1, keepdim=True)).exp().sum(1, keepdim=True)"
        " - F.one_hot(labels, C))",
        "row mean for the maximum": "dloss/n*((logits - logits.mean(1, keepdim=True)).exp()"
        "/(logits - logits.mean(1, keepdim=True)).exp().sum(1)[:, None] - F.one_hot(labels, C))",
        "maximum subtracted twice, in both": "dloss/n*((norm_logits - logit_maxes).exp()"
        "/(norm_logits - logit_maxes).exp().sum(1, keepdim=True) - F.one_hot(labels, C))",
        "common denominator": "dloss*(counts - F.one_hot(labels, C)*counts_sum)/(n*counts_sum)",
        "counts_sum_inv": "dloss*counts*counts_sum_inv/n - dloss*F.one_hot(labels, C)/n",
        "rows of probs sum to one": "dloss/n*(probs - F.one_hot(labels, C))"
        " + probs.sum(1, keepdim=True) - 1",
        "the maximum's own path": "dloss/n*(probs - F.one_hot(labels, C))"
        " - dloss*F.one_hot(logits.max(1).indices, num_classes=logits.shape[1])"
        "*(probs.sum(1, keepdim=True) - 1)/n",
        "published, last line": "dnorm_logits"
        " + F.one_hot(logits.max(1).indices, num_classes=logits.shape[1])*dlogit_maxes",
        "through dcounts": "dcounts*counts",
        "jacobian of softmax": "probs*(dprobs - (dprobs*probs).sum(1, keepdim=True))",
        "jacobian of log_softmax": "dlogprobs - probs*dlogprobs.sum(1, keepdim=True)",
        "two cases": "dloss/n*((1 - F.one_hot(labels, C))*probs"
        " - F.one_hot(labels, C)*(1 - probs))",
        "one-hot sums to one": "dloss*(probs*F.one_hot(labels, C).sum(1, keepdim=True)"
        " - F.one_hot(labels, C))/n",
        "method of the tensor": "dloss*(logits.softmax(-1) - F.one_hot(labels, C))/len(logits)",
        "notation": "dloss*(probs - OneHot(labels, C))/N",
        "notation, exponentials": "dloss/N*(exp(logits)/Sum(exp(logits), C) - OneHot(labels, C))",
        "notation, logsumexp": "dloss/N*(exp(logits - log(Sum(exp(logits), C)))"
        " - OneHot(labels, C))",
        "notation, row maximum": "dloss*(exp(logits - Max(logits, C))"
        "/Sum(exp(logits - Max(logits, C)), C) - OneHot(labels, C))/N",
        "notation, zero term": "dloss*(probs - OneHot(labels, C)*Sum(probs, C))/N",
    },
    ("SmoothedNLL", "logits"): {
        "closed": "dloss*(probs - target)/n",
        "written out": "dloss/n*(probs - (1 - smoothing)*F.one_hot(labels, C) - smoothing/C)",
        "mixture": "dloss/n*((1 - smoothing)*(probs - F.one_hot(labels, C))"
        " + smoothing*(probs - 1/C))",
        "mass of the target": "dloss*(F.softmax(logits, 1)*target.sum(1, keepdim=True) - target)/n",
        "two cases": "dloss/n*(probs - F.one_hot(labels, C)*(1 - smoothing + smoothing/C)"
        " - (1 - F.one_hot(labels, C))*smoothing/C)",
        "notation": "dloss/N*(probs - (1 - smoothing)*OneHot(labels, C) - smoothing/C)",
        "notation, common denominator": "dloss*(C*counts - Sum(counts, C)"
        "*(C*(1 - smoothing)*OneHot(labels, C) + smoothing))/(N*C*Sum(counts, C))",
    },
    ("WeightedNLL", "logits"): {
        "picked weights": "dloss*(F.one_hot(labels, C)*weight).sum(1, keepdim=True)"
        "*(probs - F.one_hot(labels, C))/total",
        "indexed weights": "dloss*weight[labels][:, None]/weight[labels].sum()"
        "*(probs - F.one_hot(labels, C))",
        "total recomputed": "dloss*((F.one_hot(labels, C)*weight).sum(1, keepdim=True)"
        "*F.softmax(logits, 1) - F.one_hot(labels, C)*weight)/(F.one_hot(labels, C)*weight).sum()",
        "total by classes": "dloss*((F.one_hot(labels, C)*weight).sum(1, keepdim=True)*probs"
        " - F.one_hot(labels, C)*weight)/(F.one_hot(labels, C).sum(0)*weight).sum()",
        "from dprobs": "probs*(dprobs - (dprobs*probs).sum(1, keepdim=True))",
        "notation": "dloss*Sum(OneHot(labels, C)*weight, C)*(probs - OneHot(labels, C))/total",
        "notation, written out": "dloss*(Sum(OneHot(labels, C)*weight, C)*exp(logits)"
        "/Sum(exp(logits), C) - OneHot(labels, C)*weight)/Sum(OneHot(labels, C)*weight, N, C)",
    },
    ("RowNLL", "logits"): {
        "column of upstream": "dloss[:, None]*(probs - F.one_hot(labels, C))",
        "unsqueeze": "dloss.unsqueeze(1)*(F.softmax(logits, 1) - F.one_hot(labels, C))",
        "transposed": "(dloss*(probs - F.one_hot(labels, C)).T).T",
        "notation": "dloss*(probs - OneHot(labels, C))",
        "notation, logsumexp": "dloss*exp(logits - log(Sum(exp(logits), C)))"
        " - dloss*OneHot(labels, C)",
    },
    ("SumNLL", "logits"): {
        "closed": "dloss*(probs - F.one_hot(labels, C))",
        "log_softmax": "dloss*(torch.log_softmax(logits, 1).exp() - F.one_hot(labels, C))",
        "notation": "dloss*(counts/Sum(counts, C) - OneHot(labels, C))",
    },
    ("TemperedNLL", "logits"): {
        "closed": "dloss*(probs - F.one_hot(labels, C))/(n*temperature)",
        "recomputed": "dloss/temperature*(F.softmax(logits/temperature, 1)"
        " - F.one_hot(labels, C))/n",
        "from dscaled": "dscaled/temperature",
        "notation": "dloss*(exp(logits/temperature)/Sum(exp(logits/temperature), C)"
        " - OneHot(labels, C))/(N*temperature)",
    },
}

WRONG = {
    ("BatchNorm", "x"): {
        "Bessel missing": "gain*inv_std*(dy - dbias/N - dgain*xhat/N)",
        "Bessel missing, published": "bngain*bnvar_inv/n * (n*dhpreact - dhpreact.sum(0)"
        " - bnraw*(dhpreact*bnraw).sum(0))",
        "Bessel upside down, published": "bngain*bnvar_inv/n * (n*dhpreact - dhpreact.sum(0)"
        " - (n-1)/n*bnraw*(dhpreact*bnraw).sum(0))",
        "Bessel on both terms": "gain*inv_std*(dy - dbias/(N - 1) - dgain*xhat/(N - 1))",
        "Bessel on the wrong term": "gain*inv_std*(dy - dbias/(N - 1) - dgain*xhat/N)",
        "Bessel in front of everything": "gain*inv_std*n/(n - 1)*(dy - dy.mean(0)"
        " - xhat*(dy*xhat).mean(0))",
        "Bessel squared": "gain*inv_std*(dy - dbias/N - dgain*xhat*N/(N - 1)**2)",
        "eps outside of the root": "gain/(var.sqrt() + eps)*(dy - dy.mean(0)"
        " - xhat*(dy*xhat).sum(0)/(n - 1))",
        "eps outside of the root, everywhere": "gain/(var.sqrt() + eps)*(dy - dy.mean(0)"
        " - diff*(dy*diff).sum(0)/((n - 1)*(var.sqrt() + eps)**2))",
        "eps forgotten": "gain*var**-0.5*(dy - dy.mean(0) - diff*(dy*diff).sum(0)/((n - 1)*var))",
        "eps forgotten in one place": "gain*inv_std*(dy - dy.mean(0)"
        " - diff*(dy*diff).sum(0)/((n - 1)*var))",
        "eps twice": "gain*(var + 2*eps)**-0.5*(dy - dy.mean(0) - xhat*(dy*xhat).sum(0)/(n - 1))",
        "eps forgotten, in disguise": "gain*(dy - dy.mean(0) - xhat*(dy*xhat).sum(0)/(n - 1))"
        "*((var + eps)**2 - 2*eps*(var + eps) + eps**2)**-0.25",
        "right where eps is 0: sum of squares for n - 1": "gain*inv_std*(dy - dy.mean(0)"
        " - xhat*(dy*xhat).sum(0)/(xhat**2).sum(0))",
        "right where eps is 0: var times inv_std squared": "gain*inv_std*(dy - dbias/N"
        " - dgain*xhat*var*inv_std**2/(N - 1))",
        "mean over the wrong axis": "gain*inv_std*(dy - dy.mean(1, keepdim=True)"
        " - xhat*(dy*xhat).sum(0)/(n - 1))",
        "sum over the wrong axis": "gain*inv_std*(dy - dy.mean(0)"
        " - xhat*(dy*xhat).sum(1, keepdim=True)/(n - 1))",
        "wrong axis without keepdim": "gain*inv_std*(dy - dy.mean(1)"
        " - xhat*(dy*xhat).sum(0)/(n - 1))",
        "mean over everything": "gain*inv_std*(dy - dy.mean() - xhat*(dy*xhat).sum(0)/(n - 1))",
        "the size of the other axis": "gain*inv_std*(dy - dy.sum(0)/C"
        " - xhat*(dy*xhat).sum(0)/(n - 1))",
        "the other axis less one": "gain*inv_std*(dy - dy.mean(0)"
        " - xhat*(dy*xhat).sum(0)/(x.shape[1] - 1))",
        "mean for sum": "gain*inv_std*(dy - dy.mean(0) - xhat*(dy*xhat).mean(0)/(n - 1))",
        "sum for mean": "gain*inv_std*(dy - dy.sum(0) - xhat*(dy*xhat).sum(0)/(n - 1))",
        "a half lost": "dxhat*inv_std - (dxhat*inv_std).mean(0)"
        " + 2*diff/(n - 1)*(-(dxhat*diff).sum(0)*inv_std**3)",
        "the two of the square lost": "dxhat*inv_std + diff*dvar/(n - 1) + dmean/n",
        "a term doubled": "gain*inv_std*(dy - 2*dbias/N - dgain*xhat/(N - 1))",
        "the last term doubled": "gain*inv_std*(dy - dbias/N - 2*dgain*xhat/(N - 1))",
        "statistics as constants": "gain*inv_std*dy",
        "mean as a constant": "gain*inv_std*(dy - xhat*(dy*xhat).sum(0)/(n - 1))",
        "variance as a constant": "gain*inv_std*(dy - dy.mean(0))",
        "path of the mean through the variance": "dxhat*inv_std + 2*diff*dvar/(n - 1)",
        "y for xhat": "gain*inv_std*(dy - dy.mean(0) - y*(dy*y).sum(0)/(n - 1))",
        "y for one xhat": "gain*inv_std*(dy - dy.mean(0) - y*(dy*xhat).sum(0)/(n - 1))",
        "y less bias for xhat": "gain*inv_std*(dy - dy.mean(0)"
        " - (y - bias)*(dy*(y - bias)).sum(0)/(n - 1))",
        "diff for one xhat": "gain*inv_std*(dy - dbias/N - dgain*diff/(N - 1))",
        "x for diff": "gain*inv_std*(dy - dy.mean(0) - inv_std*x*(dy*xhat).sum(0)/(n - 1))",
        "x for xhat": "gain*inv_std*(dy - Sum(dy, N)/N - x*Sum(dy*x, N)/(N - 1))",
        "gain forgotten": "inv_std*(dy - dy.mean(0) - xhat*(dy*xhat).sum(0)/(n - 1))",
        "gain squared": "gain**2*inv_std*(dy - dy.mean(0) - xhat*(dy*xhat).sum(0)/(n - 1))",
        "gain twice in one term": "gain*inv_std*(dy - dy.mean(0)"
        " - xhat*(gain*dy*xhat).sum(0)/(n - 1))",
        "gain on one term": "inv_std*(gain*dy - dy.mean(0) - xhat*(dy*xhat).sum(0)/(n - 1))",
        "gain inside and outside": "gain*inv_std*(dxhat - dxhat.mean(0)"
        " - xhat*(dxhat*xhat).sum(0)/(n - 1))",
        "gain averaged": "gain.mean()*inv_std*(dy - dy.mean(0) - xhat*(dy*xhat).sum(0)/(n - 1))",
        "gain by its magnitude": "(gain**2).sqrt()*inv_std*(dy - dy.mean(0)"
        " - xhat*(dy*xhat).sum(0)/(n - 1))",
        "upstream ignored": "gain*inv_std*(1 - xhat*xhat.sum(0)/(n - 1))",
        "upstream in the sums only": "gain*inv_std*(1 - dy.mean(0)"
        " - xhat*(dy*xhat).sum(0)/(n - 1))",
        "upstream averaged too early": "gain*inv_std*(dy - dy.mean(0)"
        " - xhat*dy.mean(0)*xhat.sum(0)/(n - 1))",
        "upstream outside of the sum": "gain*inv_std*(dy - dy.mean(0) - xhat*dy*xhat/(n - 1))",
        "sign of the mean": "gain*inv_std*(dy + dbias/N - dgain*xhat/(N - 1))",
        "sign of the last term": "gain*inv_std*(dy - dbias/N + dgain*xhat/(N - 1))",
        "sign of everything": "-gain*inv_std*(dy - dbias/N - dgain*xhat/(N - 1))",
        "inv_std squared": "gain*inv_std**2*(dy - dbias/N - dgain*xhat/(N - 1))",
        "inv_std missing": "gain*(dy - dbias/N - dgain*xhat/(N - 1))",
        "multiplied by the deviation": "gain/inv_std*(dy - dbias/N - dgain*xhat/(N - 1))",
        "power of the root": "gain*(dy - dy.mean(0))*inv_std"
        " - gain*diff*(dy*diff).sum(0)/(n - 1)*(var + eps)**-0.5",
        "root of the root": "gain*(var + eps)**-0.25*(dy - dbias/N - dgain*xhat/(N - 1))",
        "biased variance recomputed": "gain*(dy - dy.mean(0) - xhat*(dy*xhat).sum(0)/(n - 1))"
        "/(x.var(0, correction=0) + eps).sqrt()",
        "raw moment without the mean": "gain*(dy - dy.mean(0) - xhat*(dy*xhat).sum(0)/(n - 1))"
        "/((x**2).sum(0)/(n - 1) + eps).sqrt()",
        "raw moments, mean not squared": "gain*inv_std*(dy - Sum(dy, N)/N"
        " - inv_std*xhat*(Sum(dy*x, N) - Sum(x, N)*Sum(dy, N))/(N - 1))",
        "a millionth": "1.000001*gain*inv_std*(dy - dbias/N - dgain*xhat/(N - 1))",
        "a billionth": "gain*inv_std*(dy - dbias/N - (1 + 1e-9)*dgain*xhat/(N - 1))",
        "a billionth of the size": "gain*inv_std*(dy - dbias/N - dgain*xhat/(N - 1 + 1e-9))",
        "a power nearly right": "gain*(var + eps)**-0.500001*(dy - dbias/N - dgain*xhat/(N - 1))",
        "negligible at large n: n + 1": "gain*inv_std*(dy - dbias/(N + 1) - dgain*xhat/(N - 1))",
        "negligible at large n: another term": "gain*inv_std*(dy - dbias/N - dgain*xhat/(N - 1)"
        " + dy/N**4)",
        "negligible at large n: expansion of n - 1": "gain*inv_std*(dy - dbias/N"
        " - dgain*xhat*(1/N + 1/N**2 + 1/N**3))",
        "right at n = 2: no division": "gain*inv_std*(dy - dbias/N - dgain*xhat)",
        "right at n = 2: divided twice": "gain*inv_std*(dy - dbias/N - dgain*xhat/(N - 1)**2)",
        "right at n = 2: the size written down": "gain*inv_std*(dy - dy.sum(0)/2"
        " - xhat*(dy*xhat).sum(0)/(n - 1))",
        "right at n = 2, 3 and 4": "gain*inv_std*(dy - dbias/N - dgain*xhat/(N - 1)"
        "*(1 + (N - 2)*(N - 3)*(N - 4)))",
        "right where the upstream is centred": "gain*inv_std*(dy - dgain*xhat/(N - 1))"
        " - gain*inv_std*Sum(diff, N)*dbias/N",
        "right where y is xhat": "inv_std*(dy - dy.mean(0) - y*(dy*y).sum(0)/(n - 1))",
        "right where x is centred": "gain*inv_std*(dy - Sum(dy, N)/N"
        " - inv_std**2*x*Sum(dy*x, N)/(N - 1))",
        "inner sum over the wrong axis": "gain*inv_std*(dy - Sum(dy, C)/C"
        " - xhat*Sum(dy*xhat, N)/(N - 1))",
        "sum over both axes": "gain*inv_std*(dy - Sum(dy, N)/N - xhat*Sum(dy*xhat, N, C)/(N - 1))",
        "layer norm's": "inv_std*(dxhat - Sum(dxhat, C)/C - xhat*Sum(dxhat*xhat, C)/C)",
        "square inside of the sum": "gain*inv_std*(dy - Sum(dy, N)/N - Sum(dy*xhat**2, N)/(N - 1))",
        "nothing at all": "0*x",
    },
    ("BatchNorm", "gain"): {
        "y for xhat": "(dy*y).sum(0)",
        "x for xhat": "(dy*x).sum(0)",
        "diff for xhat": "(dy*diff).sum(0)",
        "mean for sum": "(dy*xhat).mean(0)",
        "gain left in": "(dy*gain*xhat).sum(0)",
        "wrong axis": "(dy*xhat).sum(1)",
        "upstream ignored": "xhat.sum(0)",
        "sum of the factors": "Sum(dy, N)*Sum(xhat, N)",
        "eps outside of the root": "(dy*diff).sum(0)/(x.var(0, correction=1).sqrt() + eps)",
        "biased variance": "Sum(dy*diff, N)/sqrt(Sum(diff**2, N)/N + eps)",
        "not summed": "dy*xhat",
    },
    ("BatchNorm", "bias"): {
        "mean for sum": "dy.mean(0)",
        "wrong axis": "dy.sum(1)",
        "sum of everything": "dy.sum()",
        "gain left in": "(gain*dy).sum(0)",
        "n - 1": "(n - 1)*dy.mean(0)",
        "xhat in it": "Sum(dy*xhat, N)",
        "upstream ignored": "torch.ones_like(dy).sum(0)",
    },
    ("LayerNorm", "x"): {
        "no keepdim": "inv_std*(gain*dy - (gain*dy).mean(1)"
        " - xhat*(gain*dy*xhat).mean(1, keepdim=True))",
        "no keepdim in the last term": "inv_std*(gain*dy - (gain*dy).mean(1, keepdim=True)"
        " - xhat*(gain*dy*xhat).mean(1))",
        "matrix products without a column": "inv_std*(gain*dy - (dy @ gain)/C"
        " - xhat*((dy*xhat) @ gain)/C)",
        "statistics without a column": "(dxhat - dxhat.mean(1, keepdim=True)"
        " - xhat*(dxhat*xhat).mean(1, keepdim=True))/(x.var(1, correction=0) + eps).sqrt()",
        "batchnorm's axis": "inv_std*(dxhat - dxhat.mean(0) - xhat*(dxhat*xhat).mean(0))",
        "gain outside": "gain*inv_std*(dy - dy.mean(1, keepdim=True)"
        " - xhat*(dy*xhat).mean(1, keepdim=True))",
        "gain outside of one sum": "inv_std*(gain*dy - gain*dy.mean(1, keepdim=True)"
        " - xhat*(gain*dy*xhat).mean(1, keepdim=True))",
        "gain forgotten": "inv_std*(dy - dy.mean(1, keepdim=True)"
        " - xhat*(dy*xhat).mean(1, keepdim=True))",
        "gain twice": "inv_std*gain*(dxhat - dxhat.mean(1, keepdim=True)"
        " - xhat*(dxhat*xhat).mean(1, keepdim=True))",
        "Bessel where there is none": "inv_std*(dxhat - dxhat.mean(1, keepdim=True)"
        " - xhat*(dxhat*xhat).sum(1, keepdim=True)/(C - 1))",
        "sample variance": "(dxhat - dxhat.mean(1, keepdim=True)"
        " - xhat*(dxhat*xhat).mean(1, keepdim=True))"
        "*torch.rsqrt(x.var(1, correction=1, keepdim=True) + eps)",
        "rows for columns": "inv_std*(dxhat - (dxhat.sum(1, keepdim=True)"
        " + xhat*(dxhat*xhat).sum(1, keepdim=True))/n)",
        "eps outside of the root": "(dxhat - dxhat.mean(1, keepdim=True)"
        " - xhat*(dxhat*xhat).mean(1, keepdim=True))/(torch.sqrt(var) + eps)",
        "statistics as constants": "inv_std*gain*dy",
        "mean as a constant": "inv_std*(dxhat - xhat*(dxhat*xhat).mean(1, keepdim=True))",
        "variance as a constant": "inv_std*(dxhat - dxhat.mean(1, keepdim=True))",
        "y for xhat": "inv_std*(dxhat - dxhat.mean(1, keepdim=True)"
        " - y*(dxhat*y).mean(1, keepdim=True))",
        "y with the bias": "inv_std*(dxhat - dxhat.mean(1, keepdim=True)"
        " - xhat*(dy*y).mean(1, keepdim=True))",
        "a half lost": "dxhat*inv_std + diff*dvar/C + dmean/C",
        "sign of the mean": "inv_std*(dxhat + dxhat.mean(1, keepdim=True)"
        " - xhat*(dxhat*xhat).mean(1, keepdim=True))",
        "rms norm's": "inv_std*(dxhat - x*inv_std*(dxhat*x*inv_std).mean(1, keepdim=True))",
        "mean of the product for product of the means": "inv_std*(gain*dy"
        " - Sum(gain, C)*Sum(dy, C)/C**2 - xhat*Sum(gain*dy*xhat, C)/C)",
        "sum for mean": "inv_std*(dxhat - Sum(dxhat, C) - xhat*Sum(dxhat*xhat, C))",
        "right where the gain is constant": "inv_std*(gain*dy - gain*Sum(dy, C)/C"
        " - xhat*gain*Sum(dy*xhat, C)/C)",
        "summed over the rows": "inv_std*(dxhat - Sum(dxhat, N)/N - xhat*Sum(dxhat*xhat, N)/N)",
        "a billionth": "inv_std*(dxhat - Sum(dxhat, C)/C - 0.999999999*xhat*Sum(dxhat*xhat, C)/C)",
        "right where eps is 0": "inv_std*(dxhat - Sum(dxhat, C)/C"
        " - xhat*Sum(dxhat*xhat, C)/Sum(xhat**2, C))",
    },
    ("LayerNorm", "gain"): {
        "wrong axis": "(dy*xhat).sum(1)",
        "wrong axis, kept": "(dy*xhat).sum(1, keepdim=True)",
        "mean for sum": "(dy*xhat).mean(0)",
        "bias left in": "Sum(dy*y/gain, N)",
        "statistics of the batch": "(dy*(x - x.mean(0))*inv_std).sum(0)",
    },
    ("LayerNorm", "bias"): {
        "wrong axis": "dy.sum(-1)",
        "divided by the rows": "Sum(dy, N)/N",
    },
    ("RMSNorm", "x"): {
        "sum for mean": "inv_rms*(gain*dy - xhat*(gain*dy*xhat).sum(1, keepdim=True))",
        "no keepdim": "inv_rms*(gain*dy - xhat*(gain*dy*xhat).mean(1))",
        "statistic as a constant": "inv_rms*gain*dy",
        "layer norm's": "inv_rms*(gain*dy - (gain*dy).mean(1, keepdim=True)"
        " - xhat*(gain*dy*xhat).mean(1, keepdim=True))",
        "y for xhat": "inv_rms*(gain*dy - y*(gain*dy*xhat).mean(1, keepdim=True))",
        "y for both": "inv_rms*(gain*dy - y*(dy*y).mean(1, keepdim=True))",
        "gain outside": "gain*inv_rms*(dy - xhat*(dy*xhat).mean(1, keepdim=True))",
        "gain forgotten": "inv_rms*(dy - xhat*(dy*xhat).mean(1, keepdim=True))",
        "one power too few": "gain*dy*inv_rms - x*inv_rms**2*(gain*dy*x).mean(1, keepdim=True)",
        "eps outside of the root": "(gain*dy - xhat*(gain*dy*xhat).mean(1, keepdim=True))"
        "/(square.sqrt() + eps)",
        "eps forgotten": "gain*dy*inv_rms - x*inv_rms/square*(gain*dy*x).mean(1, keepdim=True)",
        "eps in the sum of squares": "(gain*dy - xhat*(gain*dy*xhat).mean(1, keepdim=True))"
        "*(((x**2).sum(1, keepdim=True) + eps)/C)**-0.5",
        "a two too many": "dxhat*inv_rms - 2*xhat*inv_rms*Sum(dxhat*xhat, C)/C",
        "sign": "inv_rms*(gain*dy + xhat*Sum(gain*dy*xhat, C)/C)",
        "rows for columns": "inv_rms*(gain*dy - xhat*Sum(gain*dy*xhat, C)/N)",
        "over the batch": "inv_rms*(gain*dy - xhat*Sum(gain*dy*xhat, N)/N)",
        "upstream ignored": "inv_rms*(gain - xhat*Sum(gain*xhat, C)/C)",
        "a millionth": "inv_rms*(gain*dy - 1.000001*xhat*Sum(gain*dy*xhat, C)/C)",
    },
    ("RMSNorm", "gain"): {
        "x for xhat": "(dy*x).sum(0)",
        "y for xhat": "Sum(dy*y, N)",
        "eps outside of the root": "Sum(dy*x/(sqrt(square) + eps), N)",
    },
    ("SoftmaxNLL", "logits"): {
        "upstream squared": "dloss**2*(probs - F.one_hot(labels, C))/n",
        "upstream on one term": "(dloss*probs - F.one_hot(labels, C))/n",
        "1/n missing": "dloss*(probs - F.one_hot(labels, C))",
        "1/n on one term": "dloss*(probs - F.one_hot(labels, C)/n)",
        "1/n on the other term": "dloss*(probs/n - F.one_hot(labels, C))",
        "1/C for 1/n": "dloss*(probs - F.one_hot(labels, C))/C",
        "1/(n - 1)": "dloss*(probs - F.one_hot(labels, C))/(n - 1)",
        "1/n twice": "dloss*(probs - F.one_hot(labels, C))/n**2",
        "every entry in the mean": "dloss*(probs - F.one_hot(labels, C))/(n*C)",
        "softmax over the batch": "dloss*(F.softmax(logits, 0) - F.one_hot(labels, C))/n",
        "exponentials over the batch": "dloss*(logits.exp()/logits.exp().sum(0)"
        " - F.one_hot(labels, C))/n",
        "softmax without keepdim": "dloss*(counts/counts.sum(1) - F.one_hot(labels, C))/n",
        "softmax of everything": "dloss*(logits.exp()/logits.exp().sum() - F.one_hot(labels, C))/n",
        "softmax of the probabilities": "dloss*(F.softmax(probs, 1) - F.one_hot(labels, C))/n",
        "sigmoid": "dloss*(torch.sigmoid(logits) - F.one_hot(labels, C))/n",
        "counts for probs": "dloss*(counts - F.one_hot(labels, C))/n",
        "logits for probs": "dloss*(logits - F.one_hot(labels, C))/n",
        "logprobs for probs": "dloss*(logprobs - F.one_hot(labels, C))/n",
        "sign": "dloss*(F.one_hot(labels, C) - probs)/n",
        "sign of the one-hot": "dloss*(probs + F.one_hot(labels, C))/n",
        "one-hot missing": "dloss*probs/n",
        "one-hot alone": "-dloss*F.one_hot(labels, C)/n",
        "one-hot doubled": "dloss*(probs - 2*F.one_hot(labels, C))/n",
        "one-hot of the maximum": "dloss*(probs - F.one_hot(logits.max(1).indices,"
        " num_classes=logits.shape[1]))/n",
        "one-hot of another size": "dloss*(probs - F.one_hot(labels, C + 1))/n",
        "one-hot times probs": "dloss*(probs - probs*F.one_hot(labels, C))/n",
        "square error": "dloss*probs*(probs - F.one_hot(labels, C))/n",
        "maximum subtracted twice": "dloss*((norm_logits - logit_maxes).exp()/counts_sum"
        " - F.one_hot(labels, C))/n",
        "maximum in the numerator only": "dloss*((logits - logits.max(1, keepdim=True).values)"
        ".exp()/logits.exp().sum(1, keepdim=True) - F.one_hot(labels, C))/n",
        "maximum over the batch in one place": "dloss*((logits - logits.amax(0)).exp()"
        "/(logits - logits.amax(0)).exp().sum(1, keepdim=True) - F.one_hot(labels, C))/n",
        "maximum's path counted": "dloss/n*(probs - F.one_hot(labels, C))"
        " - dloss/n*F.one_hot(logits.max(1).indices, num_classes=C)*probs.sum(1, keepdim=True)",
        "diagonal of the jacobian": "dprobs*probs*(1 - probs)",
        "jacobian without probs": "dprobs - (dprobs*probs).sum(1, keepdim=True)",
        "jacobian, wrong axis": "probs*(dprobs - (dprobs*probs).sum(0))",
        "log_softmax's without probs": "dlogprobs - dlogprobs.sum(1, keepdim=True)",
        "label smoothing where there is none": "dloss*(probs - 0.9*F.one_hot(labels, C) - 0.1/C)/n",
        "a millionth": "1.000001*dloss*(probs - F.one_hot(labels, C))/n",
        "a billionth": "dloss*(probs - 0.999999999*F.one_hot(labels, C))/n",
        "an eps in the denominator": "dloss*(counts/(counts_sum + 1e-8) - F.one_hot(labels, C))/n",
        "negligible at large n": "dloss*(probs - OneHot(labels, C))/(N + 1/N**2)",
        "rows that do not sum to one": "dloss*(probs - OneHot(labels, C)*Sum(probs, N))/N",
        "notation, over the batch": "dloss*(exp(logits)/Sum(exp(logits), N) - OneHot(labels, C))/N",
        "base two": "dloss*(2**logits/Sum(2**logits, C) - OneHot(labels, C))/N",
        "right for two classes": "dloss*(probs - OneHot(labels, C)*Sum(probs, C)*(C - 1))/N",
        "centred over the batch": "dloss*(probs - Sum(probs, N)/N)/N",
    },
    ("SmoothedNLL", "logits"): {
        "no smoothing": "dloss*(probs - F.one_hot(labels, C))/n",
        "spread over C - 1": "dloss/n*(probs - (1 - smoothing)*F.one_hot(labels, C)"
        " - smoothing/(C - 1))",
        "spread over the other classes": "dloss/n*(probs - (1 - smoothing)*F.one_hot(labels, C)"
        " - (1 - F.one_hot(labels, C))*smoothing/(C - 1))",
        "spread over the other classes, over C": "dloss/n*(probs"
        " - (1 - smoothing)*F.one_hot(labels, C) - (1 - F.one_hot(labels, C))*smoothing/C)",
        "applied twice": "dloss/n*(probs - (1 - smoothing)*target - smoothing/C)",
        "not spread": "dloss/n*(probs - (1 - smoothing)*F.one_hot(labels, C))",
        "label not lowered": "dloss/n*(probs - F.one_hot(labels, C) - smoothing/C)",
        "roles exchanged": "dloss/n*(probs - smoothing*F.one_hot(labels, C) - (1 - smoothing)/C)",
        "spread over the rows": "dloss/n*(probs - (1 - smoothing)*F.one_hot(labels, C)"
        " - smoothing/n)",
        "probs smoothed": "dloss/n*((1 - smoothing)*probs + smoothing/C - F.one_hot(labels, C))",
        "1/n missing": "dloss*(probs - target)",
        "sign of the spread": "dloss/N*(probs - (1 - smoothing)*OneHot(labels, C) + smoothing/C)",
        "smoothing squared": "dloss/N*(probs - (1 - smoothing**2)*OneHot(labels, C)"
        " - smoothing**2/C)",
    },
    ("WeightedNLL", "logits"): {
        "no weights": "dloss*(probs - F.one_hot(labels, C))/n",
        "the column's weight": "dloss*weight*(probs - F.one_hot(labels, C))/total",
        "weight on the one-hot only": "dloss*(probs - weight*F.one_hot(labels, C))/total",
        "weight on probs only": "dloss*((F.one_hot(labels, C)*weight).sum(1, keepdim=True)*probs"
        " - F.one_hot(labels, C))/total",
        "normaliser missing": "dloss*(F.one_hot(labels, C)*weight).sum(1, keepdim=True)"
        "*(probs - F.one_hot(labels, C))",
        "1/n for the normaliser": "dloss*(F.one_hot(labels, C)*weight).sum(1, keepdim=True)"
        "*(probs - F.one_hot(labels, C))/n",
        "all weights for the normaliser": "dloss*(F.one_hot(labels, C)*weight)"
        ".sum(1, keepdim=True)*(probs - F.one_hot(labels, C))/weight.sum()",
        "normaliser and 1/n": "dloss*(F.one_hot(labels, C)*weight).sum(1, keepdim=True)"
        "*(probs - F.one_hot(labels, C))/(n*total)",
        "no keepdim": "dloss*(F.one_hot(labels, C)*weight).sum(1)"
        "*(probs - F.one_hot(labels, C))/total",
        "indexed without a column": "dloss*weight[labels]*(probs - F.one_hot(labels, C))/total",
        "weight squared": "dloss*Sum(OneHot(labels, C)*weight**2, C)*(probs - OneHot(labels, C))"
        "/total",
        "normaliser of the row": "dloss*Sum(OneHot(labels, C)*weight, C)"
        "*(probs - OneHot(labels, C))/Sum(OneHot(labels, C)*weight, C)/N",
        "mean weight": "dloss*Sum(weight, C)/C*(probs - OneHot(labels, C))/total",
    },
    ("RowNLL", "logits"): {
        "upstream as a row": "dloss*(probs - F.one_hot(labels, C))",
        "upstream summed": "dloss.sum()*(probs - F.one_hot(labels, C))",
        "1/n of the mean": "dloss[:, None]*(probs - F.one_hot(labels, C))/n",
        "upstream ignored": "probs - F.one_hot(labels, C)",
        "upstream on one term": "dloss*probs - OneHot(labels, C)",
    },
    ("SumNLL", "logits"): {
        "1/n of the mean": "dloss*(probs - F.one_hot(labels, C))/n",
        "over the batch": "dloss*(torch.softmax(logits, 0) - F.one_hot(labels, C))",
    },
    ("TemperedNLL", "logits"): {
        "outer temperature missing": "dloss*(probs - F.one_hot(labels, C))/n",
        "inner temperature missing": "dloss*(F.softmax(logits, 1) - F.one_hot(labels, C))"
        "/(n*temperature)",
        "multiplied by it": "dloss*temperature*(probs - F.one_hot(labels, C))/n",
        "squared": "dloss*(probs - OneHot(labels, C))/(N*temperature**2)",
    },
}


def _listed(table: dict, right: bool) -> list[Formula]:
    return [
        Formula(
            forward,
            of,
            text,
            right,
            about,
            {own: name for own, name in PUBLISHED.items() if re.search(rf"\b{own}\b", text)},
        )
        for (forward, of), texts in table.items()
        for about, text in texts.items()
    ]


FORMULAS = _listed(RIGHT, True) + _listed(WRONG, False)
