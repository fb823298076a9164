"""One line of torch for every row of `derive.language.torch_ops`: read as text, traced, and run by
torch.

``name(more)`` is a further line of the same row.
"""

import torch_ops_networks as networks
import torch_ops_shapes as shapes

X, XY, MATRIX, PAIRS = "x: N", "x: N, y: N", "x: N C", "x: N C, y: N C"
F_OF_ONE = "softplus gelu elu leaky_relu hardtanh softshrink logsigmoid hardsigmoid hardswish mish "
F_OF_ONE += "silu relu6 tanhshrink softsign hardshrink celu selu"
TORCH_OF_ONE = (
    "exp log2 log10 exp2 rsqrt reciprocal log1p expm1 sigmoid logit tanh erf erfc sin cos tan "
)
TORCH_OF_ONE += (
    "sinh cosh asin acos atan asinh acosh atanh sqrt lgamma digamma i0 abs absolute relu "
)
TORCH_OF_ONE += "trunc fix frac round neg negative square sign sgn floor ceil positive log erfinv"
POSITIVE = ["log2", "log10", "rsqrt", "reciprocal", "log1p", "sqrt", "lgamma", "digamma", "log"]
INSIDE = ["logit"]
ABOVE_ONE = ["acosh"]
BELOW_ONE = ["asin", "acos", "atanh", "erfinv"]
LOSSES = "mse_loss l1_loss soft_margin_loss huber_loss binary_cross_entropy_with_logits kl_div"


def operand(name: str) -> str:
    if name in POSITIVE:
        return "x**2 + 0.1"
    if name in INSIDE:
        return "torch.sigmoid(x)"
    if name in ABOVE_ONE:
        return "1.1 + x**2"
    return "torch.tanh(x)" if name in BELOW_ONE else "x"


ROWS = {
    **{n: (X, f"F.{n}(x)") for n in F_OF_ONE.split()},
    **{n: (X, f"torch.{n}({operand(n)})") for n in TORCH_OF_ONE.split()},
    **{n: (XY, f"F.{n}(x, y)") for n in LOSSES.split()},
    "binary_cross_entropy": (XY, "F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y))"),
    "kl_div": (XY, "F.kl_div(x, torch.exp(y), reduction='sum')"),
    "margin_ranking_loss": ("x: N, y: N, z: N", "F.margin_ranking_loss(x, y, z, margin=0.3)"),
    "threshold": (X, "F.threshold(x, 0.1, 2)"),
    "lerp": ("x: N, y: N, z: N", "torch.lerp(x, y, 0.3) + torch.lerp(x, y, z)"),
    "special_erfcx": (X, "torch.special.erfcx(x)"),
    "special_ndtr": (X, "torch.special.ndtr(x)"),
    "special_log_ndtr": (X, "torch.special.log_ndtr(x)"),
    "special_entr": (X, "torch.special.entr(torch.exp(x))"),
    "sinc": (X, "torch.sinc(x) + torch.special.sinc(2 * x)"),
    "special_i0e": (X, "torch.special.i0e(x)"),
    "special_i1e": (X, "torch.special.i1e(x)"),
    "rad2deg": (X, "torch.rad2deg(x)"),
    "deg2rad": (X, "x.deg2rad()"),
    "acos(arc)": (X, "torch.arccos(torch.tanh(x)) + torch.arctan(x) + x.arcsinh()"),
    "logaddexp2": (XY, "torch.logaddexp2(x, y)"),
    "special_xlog1py": (XY, "torch.special.xlog1py(x, y**2)"),
    "xlogy(number)": (X, "torch.xlogy(2.0, x**2 + 1) + torch.special.xlogy(x, 3.0)"),
    "fmod": (XY, "torch.fmod(x, 0.3) + x.fmod(y)"),
    "remainder": (XY, "torch.remainder(x, 0.3) + x.remainder(y)"),
    "ldexp": (X, "torch.ldexp(x, torch.tensor(3))"),
    "addcmul": ("x: N, y: N, z: N", "torch.addcmul(x, y, z, value=0.3) + x.addcmul(y, z)"),
    "polygamma": (X, "torch.polygamma(1, torch.exp(x)) + torch.special.polygamma(2, x.exp())"),
    "mvlgamma": (X, "torch.mvlgamma(torch.exp(x) + 2, 3)"),
    "round(decimals)": (X, "torch.round(x, decimals=2) * x"),
    "logit(eps)": (X, "torch.logit(torch.sigmoid(3 * x), eps=0.2)"),
    "addcdiv": ("x: N, y: N, z: N", "torch.addcdiv(x, y, torch.exp(z), value=0.3)"),
    "logaddexp": (XY, "torch.logaddexp(x, y)"),
    "xlogy": (XY, "torch.xlogy(x, y**2 + 1)"),
    "hypot": (XY, "torch.hypot(x, y)"),
    "copysign": (XY, "torch.copysign(x, y)"),
    "heaviside": (XY, "torch.heaviside(x.detach(), y.detach()) * x"),
    "atan2": (XY, "torch.atan2(x, y)"),
    "i1": (X, "torch.special.i1(x)"),
    "special_ndtri": (X, "torch.special.ndtri(torch.sigmoid(x))"),
    "sum": (MATRIX, "x.sum(1) + x.sum(dim=-1) + x.sum((0, 1))"),
    "mean": (MATRIX, "x - x.mean(1, keepdim=True)"),
    "var": (MATRIX, "x.var(0) + torch.var(x, dim=0, unbiased=False)"),
    "std": (MATRIX, "x / x.std(1, keepdim=True, correction=0)"),
    "var_mean": (MATRIX, "torch.var_mean(x, 0)[0] * torch.var_mean(x, 0)[1]"),
    "std_mean": (MATRIX, "torch.std_mean(x, 0)[0]"),
    "norm": (MATRIX, "x.norm(dim=1) + torch.norm(x, p=1, dim=1) + x.norm(3, 1)"),
    "normalize": (MATRIX, "F.normalize(x) + F.normalize(x, p=1, dim=0)"),
    "nanmean": (MATRIX, "x - torch.nanmean(x, dim=1, keepdim=True)"),
    "nansum": (MATRIX, "torch.nansum(x, 1)"),
    "corrcoef": (MATRIX, "torch.corrcoef(x)"),
    "cov": ("x: N C", "torch.cov(x) + x.cov(correction=0)"),
    "tensordot(dims)": ("x: N C T, y: T C K", "torch.tensordot(x, y, ([1, 2], [1, 0]))"),
    "amax": (MATRIX, "x.amax(1)"),
    "amin": (MATRIX, "x - x.amin((0, 1), keepdim=True)"),
    "argmax": (MATRIX, "x.exp().gather(1, x.argmax(1, keepdim=True))[:, 0]"),
    "argmin": (MATRIX, "x.exp().gather(1, x.argmin(1, keepdim=True))[:, 0]"),
    "count_nonzero": (MATRIX, "x.sum(1) * torch.count_nonzero(x, 1)"),
    "softmax": (MATRIX, "F.softmax(x, dim=1) + x.softmax(0)"),
    "softmin": (MATRIX, "F.softmin(x, 1)"),
    "log_softmax": (MATRIX, "torch.log_softmax(x, 1)"),
    "logsumexp": (MATRIX, "x - torch.logsumexp(x, 1, keepdim=True)"),
    "cumsum": (MATRIX, "x.cumsum(1)"),
    "cumprod": (MATRIX, "torch.cumprod(x, dim=0)"),
    "logcumsumexp": (MATRIX, "torch.logcumsumexp(x, 1)"),
    "diff": (MATRIX, "(torch.diff(x, dim=1)**2).sum()"),
    "diff(ends)": (PAIRS, "torch.diff(x, dim=1, prepend=y[:, :1], append=y[:, -1:])"),
    "diff(prepended)": (PAIRS, "torch.diff(x, prepend=y)"),
    "diff(thrice)": (MATRIX, "torch.diff(x, n=3, dim=0).sum(0)"),
    "flip": (MATRIX, "torch.flip(x, [0, 1]) + x.flip(0)"),
    "permute": (MATRIX, "x.permute(1, 0) + torch.permute(x, (1, 0))"),
    "transpose": (MATRIX, "x.transpose(0, 1) + x.swapaxes(0, 1)"),
    "movedim": ("x: N C T", "x.movedim(0, 2) + torch.movedim(x, (0, 1), (2, 0))"),
    "unsqueeze": (MATRIX, "x.unsqueeze(1) * x"),
    "narrow": (MATRIX, "(x.narrow(1, 1, 2)**2).sum()"),
    "select": (MATRIX, "x.select(1, 0)"),
    "gather": ("x: N C, y: N int", "x + x.gather(1, y[:, None])"),
    "index_select": ("x: N V, y: T int", "torch.index_select(x, 1, y)"),
    "embedding": ("x: V C, y: N int", "F.embedding(y, x)"),
    "tril": (MATRIX, "torch.tril(x @ x.T) + torch.tril(x @ x.T, -1)"),
    "triu": (MATRIX, "(x @ x.T).triu(1)"),
    "trace": (MATRIX, "torch.trace(x @ x.T)"),
    "zeros_like": (MATRIX, "x + torch.zeros_like(x)"),
    "ones_like": (MATRIX, "x * torch.ones_like(x)"),
    "full_like": (MATRIX, "x * torch.full_like(x, 0.5)"),
    "new_zeros": (MATRIX, "x + x.new_zeros(x.shape[1])"),
    "new_ones": (MATRIX, "x * x.new_ones(x.shape[0], 1)"),
    "new_full": (MATRIX, "x * x.new_full((x.shape[1],), 0.5)"),
    "cross": ("x: N 3, y: N 3", "torch.cross(x, y, dim=1)"),
    "matmul": ("x: N C, y: C K", "torch.matmul(x, y)"),
    "outer": ("x: N, y: C", "torch.outer(x, y)"),
    "linear": ("x: N C, y: K C, z: K", "F.linear(x, y, z)"),
    "bilinear": ("x: N C, y: N K, z: H C K", "F.bilinear(x, y, z)"),
    "addmm": ("x: N K, y: N C, z: C K", "torch.addmm(x, y, z, alpha=0.5)"),
    "tensordot": ("x: N C T, y: C T K", "torch.tensordot(x, y, 2)"),
    "cosine_similarity": (PAIRS, "F.cosine_similarity(x, y, dim=1)"),
    "layer_norm": ("x: N C, y: C, z: C", "F.layer_norm(x, (x.shape[1],), y, z)"),
    "rms_norm": ("x: N C, y: C", "F.rms_norm(x, (x.shape[1],), y, 1e-6)"),
    "nan_to_num": (X, "torch.nan_to_num(x)"),
    # in place, and spelled otherwise
    "relu(inplace)": (X, "F.relu(x * 1, inplace=True)"),
    "exp(in place)": (X, "(x * 1).exp_()"),
    "sum(axis)": (MATRIX, "x * x.sum(axis=1, keepdims=True)"),
    "zeros_like(dtype)": (MATRIX, "x + torch.zeros_like(x, dtype=x.dtype, device=x.device)"),
}

# Those that one door alone meets, with the reason.
IMPORTED_ALONE: dict[str, str] = {
    "special_ndtri": "only torch.special has it",
}
READ_ALONE: dict[str, str] = {
    "corrcoef": "as cov",
    "cov": "torch asks for values while it is traced",
}
DECOMPOSED = {
    "slice_scatter",  # what is written whole needs no row
    "select_scatter",
    "split",
    "chunk",
    "norm",
    "one_hot",
    "Tensor_where",
    "softsign",
    "tanhshrink",
    "softmin",
    "normalize",
}  # traced as the operations they are made of

ROWS |= networks.ROWS | shapes.ROWS
IMPORTED_ALONE |= networks.IMPORTED_ALONE
READ_ALONE |= networks.READ_ALONE
DECOMPOSED |= networks.DECOMPOSED
