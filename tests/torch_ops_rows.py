"""One line of torch for every row of `derive.torch_ops`: read as text, traced, and run by torch."""

X, XY, ROWS, PAIRS = "x: N", "x: N, y: N", "x: N C", "x: N C, y: N C"
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


ROWS_OF_TEXT = {
    **{n: (X, f"F.{n}(x)") for n in F_OF_ONE.split()},
    **{n: (X, f"torch.{n}({operand(n)})") for n in TORCH_OF_ONE.split()},
    **{n: (XY, f"F.{n}(x, y)") for n in LOSSES.split()},
    "binary_cross_entropy": (XY, "F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y))"),
    "kl_div": (XY, "F.kl_div(x, torch.exp(y), reduction='sum')"),
    "margin_ranking_loss": ("x: N, y: N, z: N", "F.margin_ranking_loss(x, y, z, margin=0.3)"),
    "threshold": (X, "F.threshold(x, 0.1, 2)"),
    "lerp": ("x: N, y: N, z: N", "torch.lerp(x, y, 0.3) + torch.lerp(x, y, z)"),
    "addcdiv": ("x: N, y: N, z: N", "torch.addcdiv(x, y, torch.exp(z), value=0.3)"),
    "logaddexp": (XY, "torch.logaddexp(x, y)"),
    "xlogy": (XY, "torch.xlogy(x, y**2 + 1)"),
    "hypot": (XY, "torch.hypot(x, y)"),
    "copysign": (XY, "torch.copysign(x, y)"),
    "heaviside": (XY, "torch.heaviside(x, y) * x"),
    "sum": (ROWS, "x.sum(1) + x.sum(dim=-1) + x.sum((0, 1))"),
    "mean": (ROWS, "x - x.mean(1, keepdim=True)"),
    "var": (ROWS, "x.var(0) + torch.var(x, dim=0, unbiased=False)"),
    "std": (ROWS, "x.std(1, keepdim=True, correction=0)"),
    "var_mean": (ROWS, "torch.var_mean(x, 0)[0] * torch.var_mean(x, 0)[1]"),
    "std_mean": (ROWS, "torch.std_mean(x, 0)[0]"),
    "norm": (ROWS, "x.norm(dim=1) + torch.norm(x, p=1, dim=1) + x.norm(3, 1)"),
    "amax": (ROWS, "x.amax(1)"),
    "amin": (ROWS, "x - x.amin((0, 1), keepdim=True)"),
    "argmax": ("x: N C, y: N C", "y.gather(1, x.argmax(1, keepdim=True))"),
    "argmin": ("x: N C, y: N C", "y.gather(1, x.argmin(1, keepdim=True))"),
    "count_nonzero": (ROWS, "x.sum(1) * torch.count_nonzero(x, 1)"),
    "softmax": (ROWS, "F.softmax(x, dim=1) + x.softmax(0)"),
    "softmin": (ROWS, "F.softmin(x, 1)"),
    "log_softmax": (ROWS, "torch.log_softmax(x, 1)"),
    "logsumexp": (ROWS, "torch.logsumexp(x, 1, keepdim=True)"),
    "cumsum": (ROWS, "x.cumsum(1)"),
    "cumprod": (ROWS, "torch.cumprod(x, dim=0)"),
    "logcumsumexp": (ROWS, "torch.logcumsumexp(x, 1)"),
    "diff": (ROWS, "(torch.diff(x, dim=1)**2).sum()"),
    "flip": (ROWS, "torch.flip(x, [0, 1]) + x.flip(0)"),
    "permute": (ROWS, "x.permute(1, 0) + torch.permute(x, (1, 0))"),
    "transpose": (ROWS, "x.transpose(0, 1) + x.swapaxes(0, 1)"),
    "movedim": ("x: N C T", "x.movedim(0, 2) + torch.movedim(x, (0, 1), (2, 0))"),
    "unsqueeze": (ROWS, "x.unsqueeze(1) * x"),
    "narrow": (ROWS, "(x.narrow(1, 1, 2)**2).sum()"),
    "select": (ROWS, "x.select(1, 0)"),
    "gather": ("x: N C, y: N int", "x.gather(1, y[:, None])"),
    "index_select": ("x: N V, y: T int", "torch.index_select(x, 1, y)"),
    "embedding": ("x: V C, y: N int", "F.embedding(y, x)"),
    "tril": (ROWS, "torch.tril(x @ x.T) + torch.tril(x @ x.T, -1)"),
    "triu": (ROWS, "(x @ x.T).triu(1)"),
    "trace": (ROWS, "torch.trace(x @ x.T)"),
    "zeros_like": (ROWS, "x + torch.zeros_like(x)"),
    "ones_like": (ROWS, "x * torch.ones_like(x)"),
    "full_like": (ROWS, "x * torch.full_like(x, 0.5)"),
    "new_zeros": (ROWS, "x + x.new_zeros(x.shape[1])"),
    "new_ones": (ROWS, "x * x.new_ones(x.shape[0], 1)"),
    "new_full": (ROWS, "x * x.new_full((x.shape[1],), 0.5)"),
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
    "relu(inplace)": (X, "F.relu(x, inplace=True)"),
    "exp_": (X, "(x * 1).exp_()"),
    "sum(axis)": (ROWS, "x.sum(axis=1, keepdims=True)"),
    "zeros_like(dtype)": (ROWS, "x + torch.zeros_like(x, dtype=x.dtype, device=x.device)"),
}
IDIOMS = {
    "chunk of half": ("x: N C", "x[:, : x.shape[1] // 2] * x[:, x.shape[1] // 2 :]"),
    "empty_like filled": ("x: N C", "torch.empty_like(x).fill_(2) * x"),
    "stack flatten": ("x: N C", "torch.stack([x, x**2], -1).flatten(-2)"),
    "interpolate": ("x: N C T", "F.interpolate(x, scale_factor=2)"),
    "adaptive_avg_pool1d": ("x: N C T", "F.adaptive_avg_pool1d(x, 1)"),
    "conv_transpose1d": ("x: N C T, y: C K 3", "F.conv_transpose1d(x, y)"),
    "prod": ("x: N C", "x.prod(1)"),
    "dist": (PAIRS, "torch.dist(x, y)"),
}
