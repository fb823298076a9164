"""One line of torch for every operation that is known, under the operation's name.

``READ`` are imported and compared with torch; ``SAID`` are refused, with these words.
"""

import math

import torch
import torch.nn.functional as F

aten = torch.ops.aten

OF_ONE = "abs acos acosh asin asinh atan atanh cos cosh erf erfc exp exp2 expm1 log log10 log1p"
OF_ONE += " log2 logit neg positive reciprocal relu rsqrt sgn sigmoid sign sin sinh sqrt square"
OF_ONE += " tan tanh clone selu ceil floor round trunc i0"
OF_F = "celu elu gelu hardsigmoid hardswish hardtanh leaky_relu mish relu6 silu softplus"
OF_TWO = "add div divide logaddexp maximum minimum mul multiply pow rsub sub subtract"
OF_TWO += " true_divide xlogy atan2 remainder"
RELATIONS = "eq ge gt le lt ne"
OF_LOSSES = "huber_loss kl_div l1_loss mse_loss soft_margin_loss"
OF_LOSSES += " binary_cross_entropy_with_logits"
X, XY, ROWS, PAIRS = "x: N", "x: N, y: N", "x: N C", "x: N C, y: N C"
TURNED = "y: C N, x: N C"
MASKS = "x: N C, a: N C bool, b: N C bool"
LABELS = "x: N C, y: N int"


def _by_name(names, axes, of):
    return {name: (axes, of(name)) for name in names.split()}


READ = {
    **_by_name(OF_ONE, X, lambda n: lambda x: getattr(torch, n)(x)),
    **_by_name(OF_F, X, lambda n: lambda x: getattr(F, n)(x)),
    **_by_name(OF_TWO, XY, lambda n: lambda x, y: getattr(torch, n)(x, y)),
    **_by_name(OF_LOSSES, XY, lambda n: lambda x, y: getattr(F, n)(x, y)),
    **_by_name(RELATIONS, XY, lambda n: lambda x, y: x * getattr(torch, n)(x, y)),
    "lgamma": (X, lambda x: torch.lgamma(x.exp())),
    "digamma": (X, lambda x: torch.digamma(x.exp())),
    "erfinv": (X, lambda x: torch.erfinv(x.tanh())),
    "polygamma": (X, lambda x: torch.polygamma(1, x.exp())),
    "special_polygamma": (X, lambda x: torch.special.polygamma(1, x.exp())),
    "special_i1": (X, lambda x: torch.special.i1(x)),
    "special_ndtri": (X, lambda x: torch.special.ndtri(x.sigmoid())),
    "log_sigmoid": (X, lambda x: F.logsigmoid(x)),
    "addcdiv": ("x: N, y: N, z: N", lambda x, y, z: torch.addcdiv(x, y, z, value=0.3)),
    "addcmul": ("x: N, y: N, z: N", lambda x, y, z: torch.addcmul(x, y, z, value=0.3)),
    "lerp": ("x: N, y: N, z: N", lambda x, y, z: torch.lerp(x, y, z)),
    # Choices
    "__and__": (MASKS, lambda x, a, b: x * (a & b)),
    "__or__": (MASKS, lambda x, a, b: x * (a | b)),
    "bitwise_and": (MASKS, lambda x, a, b: x * torch.bitwise_and(a, b)),
    "bitwise_or": (MASKS, lambda x, a, b: x * torch.bitwise_or(a, b)),
    "bitwise_not": (MASKS, lambda x, a, b: x * ~a + b * x),
    "logical_and": (MASKS, lambda x, a, b: x * torch.logical_and(a, b)),
    "logical_or": (MASKS, lambda x, a, b: x * torch.logical_or(a, b)),
    "logical_not": (MASKS, lambda x, a, b: x * torch.logical_not(a) + b * x),
    "where": (PAIRS, lambda x, y: torch.where(x > 0.2, x * y, y)),
    "masked_fill": ("x: N C, a: N C bool", lambda x, a: x.masked_fill(a, 2.5)),
    "clamp": (X, lambda x: torch.clamp(x, 0.1, 0.7)),
    "clip": (X, lambda x: torch.clip(x, 0.1, 0.7)),
    "clamp_min": (X, lambda x: torch.clamp_min(x, 0.1)),
    "clamp_max": (X, lambda x: torch.clamp_max(x, 0.1)),
    # Constants
    "arange": (ROWS, lambda x: x * torch.arange(x.shape[1])),
    "copy": (PAIRS, lambda x, y: x.clone().copy_(y) * y),
    "diag": ("x: N", lambda x: torch.diag(x).exp()),
    "diag_embed": ("x: N", lambda x: torch.diag_embed(x).exp()),
    "diagonal": ("x: N N", lambda x: torch.diagonal(x).exp()),
    "eye": ("x: N N", lambda x: x * torch.eye(x.shape[0])),
    "fill": (ROWS, lambda x: x * x.clone().fill_(2.5)),
    "full": (ROWS, lambda x: x * torch.full((x.shape[1],), 2.5)),
    "full_like": (ROWS, lambda x: x * torch.full_like(x, 2.5)),
    "empty": (ROWS, lambda x: torch.empty(x.shape).copy_(x * x)),
    "empty_like": (ROWS, lambda x: torch.empty_like(x).fill_(2.5) * x),
    "empty_permuted": (ROWS, lambda x: torch.empty_permuted(x.shape, (1, 0)).copy_(x * x)),
    "empty_strided": (ROWS, lambda x: torch.empty_strided(x.shape, x.stride()).copy_(x * x)),
    "new_empty_strided": (
        ROWS,
        lambda x: x.new_empty_strided(x.shape, x.stride()).copy_(x.exp()),
    ),
    "zero": (ROWS, lambda x: (2 * x).zero_() + x),
    "new_empty": (ROWS, lambda x: x.new_empty(x.shape).copy_(x.exp())),
    "new_full": (ROWS, lambda x: x * x.new_full((x.shape[1],), 2.5)),
    "new_ones": (ROWS, lambda x: x + x.new_ones((x.shape[1],))),
    "new_zeros": (ROWS, lambda x: x.exp() + x.new_zeros((x.shape[1],))),
    "ones": (ROWS, lambda x: x + torch.ones(x.shape[1])),
    "ones_like": (ROWS, lambda x: x + torch.ones_like(x)),
    "scalar_tensor": (X, lambda x: x * torch.scalar_tensor(2.5)),
    "trace": ("x: N N", lambda x: torch.trace(x)),
    "tril": ("x: N N", lambda x: torch.tril(x)),
    "triu": ("x: N N", lambda x: torch.triu(x, 1)),
    "zeros": (ROWS, lambda x: x.exp() + torch.zeros(x.shape[1])),
    "zeros_like": (ROWS, lambda x: torch.maximum(x, torch.zeros_like(x))),
    # Losses
    "binary_cross_entropy": (XY, lambda x, y: F.binary_cross_entropy(x, y)),
    "cross_entropy_loss": (LABELS, lambda x, y: F.cross_entropy(x, y)),
    "margin_ranking_loss": (
        "x: N, y: N, t: N",
        lambda x, y, t: F.margin_ranking_loss(x, y, t.sign(), margin=0.2),
    ),
    "nll_loss2d": ("x: N C H W, y: N H W int", lambda x, y: aten.nll_loss2d(x, y)),
    "nll_loss_nd": (LABELS, lambda x, y: F.nll_loss(x, y)),
    # Normalizations, attention
    "_native_batch_norm_legit_functional": (
        "x: N C, m: C given, v: C given",
        lambda x, m, v: aten._native_batch_norm_legit_functional(
            x, None, None, m, v, True, 0.1, 1e-5
        )[0],
    ),
    "layer_norm": ("x: N C, w: C", lambda x, w: F.layer_norm(x, w.shape, w)),
    "rms_norm": ("x: N C, w: C", lambda x, w: F.rms_norm(x, w.shape, w)),
    # What is picked
    "embedding": ("y: N int, w: V E", lambda y, w: F.embedding(y, w)),
    "gather": (LABELS, lambda x, y: x.gather(1, y[:, None])[:, 0]),
    "index": ("y: N int, x: V C", lambda y, x: x[y]),
    "index_select": ("y: N int, x: V C", lambda y, x: x.index_select(0, y)),
    "one_hot": ("x: N 5, y: N int", lambda x, y: x * F.one_hot(y, 5)),
    # Products
    "addmm": ("a: N K, b: K M, x: M", lambda a, b, x: torch.addmm(x, a, b, beta=2, alpha=3)),
    "bilinear": ("x: N K, y: N L, w: J K L", lambda x, y, w: F.bilinear(x, y, w)),
    "cosine_similarity": (PAIRS, lambda x, y: F.cosine_similarity(x, y)),
    "ger": ("x: N, y: M", lambda x, y: torch.ger(x, y)),
    "linear": ("x: N K, w: M K, b: M", lambda x, w, b: F.linear(x, w, b)),
    "matmul": ("a: B N K, b: K M", lambda a, b: a @ b),
    "outer": ("x: N, y: M", lambda x, y: torch.outer(x, y)),
    # Recurrent cells
    # Reductions
    "_log_softmax": (ROWS, lambda x: torch._log_softmax(x, 1, False)),
    "_safe_softmax": (ROWS, lambda x: aten._safe_softmax(x, 1)),
    "_softmax": (ROWS, lambda x: torch._softmax(x, 1, False)),
    "amax": (ROWS, lambda x: x.amax(1)),
    "amin": (ROWS, lambda x: x.amin(1)),
    "argmax": (ROWS, lambda x: x.exp().gather(1, x.argmax(1, keepdim=True))[:, 0]),
    "count_nonzero": (ROWS, lambda x: x / (1 + (x > 0).count_nonzero(1))[:, None]),
    "cumsum": (ROWS, lambda x: x.cumsum(1)),
    "cumprod": (ROWS, lambda x: x.cumprod(0)),
    "logcumsumexp": (ROWS, lambda x: x.logcumsumexp(1)),
    # Entries in other places
    "flip": (ROWS, lambda x: x * x.flip(1)),
    "roll": (ROWS, lambda x: x * x.roll((1, -1), (0, 1))),
    "pad": (ROWS, lambda x: F.pad(x, (2, 1), value=0.5) * F.pad(x, (0, 3))),
    "constant_pad_nd": (ROWS, lambda x: torch.constant_pad_nd(x, [1, 1, 0, 2], 1.0)),
    "unfold": (ROWS, lambda x: x.unfold(1, 2, 1).exp().sum(2)),
    "frobenius_norm": (ROWS, lambda x: aten.frobenius_norm(x, [0, 1])),
    "linalg_norm": (X, lambda x: torch.linalg.norm(x)),
    "linalg_vector_norm": (ROWS, lambda x: torch.linalg.vector_norm(x, 3, 1)),
    "log_softmax": (ROWS, lambda x: x.log_softmax(1)),
    "logsumexp": (ROWS, lambda x: x.logsumexp(1)),
    "max": (ROWS, lambda x: x.max(1).values),
    "min": (ROWS, lambda x: x.min(1).values),
    "mean": (ROWS, lambda x: x.exp().mean(1)),
    "norm": (ROWS, lambda x: aten.norm(x, 2, [1])),
    "softmax": (ROWS, lambda x: x.softmax(1)),
    "std": (ROWS, lambda x: x.std(1)),
    "std_mean": (ROWS, lambda x: sum(torch.std_mean(x, 1))),
    "sum": (ROWS, lambda x: x.exp().sum(1)),
    "var": (ROWS, lambda x: x.var(1)),
    "var_mean": (ROWS, lambda x: sum(torch.var_mean(x, 1))),
    # What is written
    "_unsafe_index_put": (
        "x: V, y: N int, z: N",
        lambda x, y, z: aten._unsafe_index_put(x, [x > 0], torch.tensor(2.5)) + (y * z).sum(),
    ),
    "index_add": ("x: V C, y: N int, z: N C", lambda x, y, z: x.index_add(0, y, z)),
    "index_put": ("x: N C", lambda x: x.index_put((x > 0,), torch.tensor(2.5)).exp()),
    "scatter": (LABELS, lambda x, y: x.scatter(1, y[:, None], 2.5)),
    "scatter_add": (
        "x: N C, y: N int, z: N",
        lambda x, y, z: x.scatter_add(1, y[:, None], z[:, None]),
    ),
    "select_scatter": ("x: N C, z: N", lambda x, z: x.select_scatter(z, 1, 2)),
    "slice_scatter": (PAIRS, lambda x, y: x.slice_scatter(y.exp(), 0)),
    # Views
    "_to_copy": (ROWS, lambda x: aten._to_copy(x > 0, dtype=torch.float64) * x),
    "_unsafe_view": (ROWS, lambda x: aten._unsafe_view(x, [-1]).exp()),
    "adjoint": (TURNED, lambda y, x: y * x.adjoint()),
    "alias": (ROWS, lambda x: aten.alias(x).exp()),
    "alpha_dropout": (ROWS, lambda x: F.alpha_dropout(x, 0.5, training=False).exp()),
    "broadcast_tensors": (
        "x: N C, y: C",
        lambda x, y: math.prod(torch.broadcast_tensors(x, y)),
    ),
    "broadcast_to": ("x: N C, y: C", lambda x, y: x * y.broadcast_to(x.shape)),
    "cat": (PAIRS, lambda x, y: torch.cat([x, y.exp()], 1)),
    "concat": (PAIRS, lambda x, y: torch.concat([x, y.exp()], 1)),
    "concatenate": (PAIRS, lambda x, y: torch.concatenate([x, y.exp()], 1)),
    "chunk": (ROWS, lambda x: math.prod(x.chunk(2, 1))),
    "contiguous": (TURNED, lambda y, x: y * x.T.contiguous()),
    "detach": (ROWS, lambda x: x * (x > 0).double().detach()),
    "expand": ("x: N C, y: C", lambda x, y: x * y.expand(x.shape[0], -1)),
    "expand_as": ("x: N C, y: C", lambda x, y: x * y.expand_as(x)),
    "feature_dropout": ("x: N C S", lambda x: F.dropout1d(x, 0.5, training=False).exp()),
    "flatten": ("x: N C S", lambda x: x.flatten(1).exp()),
    "getitem": (ROWS, lambda x: x.chunk(2, 1)[1].exp()),
    "lift_fresh_copy": (X, lambda x: x * aten.lift_fresh_copy(x)),
    "mT": ("y: B C N, x: B N C", lambda y, x: y * x.mT),
    "matrix_H": (TURNED, lambda y, x: y * x.H),
    "movedim": ("y: N C B, x: B N C", lambda y, x: y * x.movedim(0, 2)),
    "narrow": ("x: N 6", lambda x: x.narrow(1, 1, 3).exp().sum(1)),
    "numpy_T": (TURNED, lambda y, x: y * x.T),
    "permute": ("y: C B N, x: B N C", lambda y, x: y * x.permute(2, 0, 1)),
    "repeat": ("x: N C, y: C", lambda x, y: x * y.repeat(x.shape[0], 1)),
    "repeat_interleave": ("x: N C", lambda x: x.repeat_interleave(3, 1).exp()),
    "reshape": ("x: N C S", lambda x: x.reshape(x.shape[0], -1).exp()),
    "reshape_as": ("y: C N, x: N C S, z: C N S", lambda y, x, z: y * (x.sum(2).T.reshape_as(y))),
    "select": (ROWS, lambda x: x.select(1, 2).exp()),
    "slice": (ROWS, lambda x: x[:, 1:].exp().sum(1)),
    "split": (ROWS, lambda x: math.prod(x.split(x.shape[1] // 2, 1))),
    "split_with_sizes": ("x: N 6", lambda x: math.prod(x.split([3, 3], 1))),
    "squeeze": ("x: N 1 C", lambda x: x.squeeze(1).exp()),
    "stack": (PAIRS, lambda x, y: torch.stack([x, y.exp()])),
    "swapaxes": (TURNED, lambda y, x: y * x.swapaxes(0, 1)),
    "t": (TURNED, lambda y, x: y * x.t()),
    "to": (ROWS, lambda x: x * (x > 0).to(torch.float64)),
    "transpose": (TURNED, lambda y, x: y * x.transpose(0, 1)),
    "type_as": (ROWS, lambda x: x * (x > 0).type_as(x)),
    "unbind": ("x: N 3", lambda x: math.prod(x.unbind(1))),
    "unflatten": ("x: N 6", lambda x: x.unflatten(1, (2, 3)).exp()),
    "unsafe_chunk": (ROWS, lambda x: math.prod(torch.unsafe_chunk(x, 2, 1))),
    "unsafe_split": ("x: N 6", lambda x: math.prod(torch.unsafe_split(x, 3, 1))),
    "unsqueeze": (ROWS, lambda x: x.unsqueeze(1) * x),
    "view": ("x: N C S", lambda x: x.view(x.shape[0], -1).exp()),
    "view_as": ("x: N C, y: N C", lambda x, y: x.view_as(y) * y),
}

RANDOM, ORDERED = "random numbers", "sorting or counting"
WRITTEN = "writing at positions"
SAID = {
    "bernoulli": (RANDOM, ROWS, lambda x: x * torch.bernoulli(x.sigmoid())),
    "exponential": (RANDOM, ROWS, lambda x: x * aten.exponential(x)),
    "multinomial": (RANDOM, ROWS, lambda x: x[:, torch.multinomial(x.exp().sum(0), 1)]),
    "normal": (RANDOM, ROWS, lambda x: torch.normal(x)),
    "normal_functional": (RANDOM, ROWS, lambda x: x * torch.zeros_like(x).normal_()),
    "rand": (RANDOM, ROWS, lambda x: x * torch.rand(x.shape[1])),
    "rand_like": (RANDOM, ROWS, lambda x: x * torch.rand_like(x)),
    "randint": (RANDOM, ROWS, lambda x: x * torch.randint(5, (x.shape[1],))),
    "randint_like": (RANDOM, ROWS, lambda x: x * torch.randint_like(x, 5)),
    "randn": (RANDOM, ROWS, lambda x: x * torch.randn(x.shape[1])),
    "randn_like": (RANDOM, ROWS, lambda x: x * torch.randn_like(x)),
    "randperm": (RANDOM, ROWS, lambda x: x * torch.randperm(x.shape[1])),
    "uniform": (RANDOM, ROWS, lambda x: x * torch.zeros_like(x).uniform_()),
    "argsort": (ORDERED, ROWS, lambda x: x * x.argsort(1)),
    "kthvalue": (ORDERED, ROWS, lambda x: x.kthvalue(2, 1)[0]),
    "median": (ORDERED, ROWS, lambda x: x.median(1)[0]),
    "mode": (ORDERED, ROWS, lambda x: x.mode(1)[0]),
    "nanmedian": (ORDERED, ROWS, lambda x: x.nanmedian(1)[0]),
    "nonzero": (ORDERED, ROWS, lambda x: x.sum() * aten.nonzero(x).sum()),
    "sort": (ORDERED, ROWS, lambda x: x.sort(1)[0]),
    "topk": (ORDERED, ROWS, lambda x: x.topk(2, 1)[0]),
    "_unique2": (ORDERED, ROWS, lambda x: x.unique().sum()),
    "unique_dim": (ORDERED, ROWS, lambda x: x.unique(dim=0).sum()),
    "unique_consecutive": (ORDERED, ROWS, lambda x: x.unique_consecutive().sum()),
    "index_copy": (WRITTEN, "x: V C, y: N int, z: N C", lambda x, y, z: x.index_copy(0, y, z)),
    "masked_scatter": (WRITTEN, PAIRS, lambda x, y: x.masked_scatter(x > 0, y)),
    "put": (WRITTEN, "x: N C, y: M int, z: M", lambda x, y, z: x.put(y, z)),
    "rot90": ("a rotation by 90 degrees", ROWS, lambda x: torch.rot90(x)),
}
