"""Layers, blocks and modules as people write them in torch, typed anew."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import einsum


def layer_norm(x, gamma, beta, eps=1e-5):
    mu = x.mean(-1, keepdim=True)
    var = ((x - mu) ** 2).mean(-1, keepdim=True)
    xhat = (x - mu) / torch.sqrt(var + eps)
    return gamma * xhat + beta


def rms_norm(x, weight, eps=1e-6):
    variance = x.float().pow(2).mean(-1, keepdim=True)
    return weight * (x * torch.rsqrt(variance + eps))


def batch_norm_images(x, gamma, beta):
    mean = x.mean(dim=(0, 2, 3), keepdim=True)
    var = x.var(dim=(0, 2, 3), unbiased=False, keepdim=True)
    y = (x - mean) / (var + 1e-5).sqrt()
    return gamma.view(1, -1, 1, 1) * y + beta.view(1, -1, 1, 1)


def global_response_norm(x, gamma, beta):
    gx = torch.norm(x, p=2, dim=(1, 2), keepdim=True)
    nx = gx / (gx.mean(dim=-1, keepdim=True) + 1e-6)
    return gamma * (x * nx) + beta + x


def new_gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3))))


def fast_gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))


def quick_gelu(x):
    return x * torch.sigmoid(1.702 * x)


def squared_relu(x):
    return F.relu(x).square()


def swiglu(x, w_gate, w_up, w_down):
    return (F.silu(x @ w_gate) * (x @ w_up)) @ w_down


def glu_split(x, w):
    a, b = (x @ w).chunk(2, dim=-1)
    return a * b.sigmoid()


def attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return scores.softmax(dim=-1) @ v


def causal_attention(q, k, v):
    T = q.shape[-2]
    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    mask = torch.tril(torch.ones(T, T, dtype=torch.bool))
    att = att.masked_fill(~mask, float("-inf"))
    return F.softmax(att, dim=-1) @ v


def masked_attention(q, k, v, mask):
    scores = torch.einsum("bqd,bkd->bqk", q, k) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(mask[:, None, :] == 0, -1e9)
    return torch.einsum("bqk,bkd->bqd", F.softmax(scores, dim=-1), v)


def alibi(q, k, v, slope):
    t = q.size(0)
    pos = torch.arange(t)
    bias = -(pos[:, None] - pos[None, :]).abs() * slope
    return ((q @ k.T) * q.size(1) ** -0.5 + bias).softmax(-1) @ v


def linear_attention(q, k, v, eps=1e-6):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    kv = einsum("nd,nm->dm", k, v)
    z = 1 / (einsum("nd,d->n", q, k.sum(0)) + eps)
    return einsum("nd,dm,n->nm", q, kv, z)


def rotary(x, cos, sin):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    rotated = torch.cat((-x2, x1), dim=-1)
    return x * cos + rotated * sin


def cosine_attention(q, k, v, scale):
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    return F.softmax(q @ k.mT * scale, dim=-1) @ v


def talking_heads(q, k, v, mix):
    dots = einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
    dots = einsum("bhij,hg->bgij", dots, mix)
    return einsum("bgij,bgjd->bgid", dots.softmax(-1), v)


def gru_cell(x, h, w_ih, w_hh, b_ih, b_hh):
    gi = x @ w_ih.t() + b_ih
    gh = h @ w_hh.t() + b_hh
    i_r, i_z, i_n = gi.chunk(3, 1)
    h_r, h_z, h_n = gh.chunk(3, 1)
    r = torch.sigmoid(i_r + h_r)
    z = torch.sigmoid(i_z + h_z)
    n = torch.tanh(i_n + r * h_n)
    return (1 - z) * n + z * h


def lstm_hidden(x, h, c, w, u, b):
    gates = x @ w + h @ u + b
    i, f, g, o = gates.chunk(4, dim=1)
    c_next = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c_next.tanh()


def film(x, gamma, beta):
    return x * (1 + gamma[:, :, None, None]) + beta[:, :, None, None]


def squeeze_excite(x, w1, w2):
    s = x.mean(dim=(2, 3))
    s = torch.sigmoid(F.relu(s @ w1) @ w2)
    return x * s[:, :, None, None]


def layer_scale_residual(x, gamma, w):
    return x + gamma * torch.tanh(x @ w)


def bigram(ids, table):
    return F.embedding(ids, table).mean(1)


def factorization_machine(x, v, w, b):
    linear = x @ w + b
    square_of_sum = (x @ v) ** 2
    sum_of_square = (x**2) @ (v**2)
    return linear + 0.5 * (square_of_sum - sum_of_square).sum(1)


def graph_attention(h, adj, a_src, a_dst):
    e = F.leaky_relu((h @ a_src)[:, None] + (h @ a_dst)[None, :], 0.2)
    e = torch.where(adj > 0, e, torch.full_like(e, -9e15))
    return F.elu(F.softmax(e, dim=1) @ h)


def gcn(x, adj, w):
    deg = adj.sum(-1)
    d = deg.pow(-0.5)
    norm = d[:, None] * adj * d[None, :]
    return F.relu(norm @ (x @ w))


def mixture(x, pi, mu, sigma):
    d = (x[:, None] - mu) / sigma
    logp = -0.5 * d**2 - sigma.log() - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(pi.log_softmax(-1) + logp, dim=1).mean()


def group_norm_by_view(x, weight, bias):
    n, c, h, w = x.shape
    y = x.view(n, 4, -1)
    y = (y - y.mean(-1, keepdim=True)) / torch.sqrt(y.var(-1, unbiased=False, keepdim=True) + 1e-5)
    return y.view(n, c, h, w) * weight.view(1, c, 1, 1) + bias.view(1, c, 1, 1)


def pixel_norm(x, eps=1e-8):
    return x * (x.square().mean(dim=1, keepdim=True) + eps).rsqrt()


def weight_standardized(x, w):
    w = w - w.mean(dim=1, keepdim=True)
    w = w / (w.std(dim=1, keepdim=True) + 1e-5)
    return F.linear(x, w)


class MLP(nn.Module):
    def __init__(self, k=12, h=20, c=5):
        super().__init__()
        self.fc1 = nn.Linear(k, h)
        self.norm = nn.LayerNorm(h)
        self.fc2 = nn.Linear(h, c)

    def forward(self, x):
        return self.fc2(F.gelu(self.norm(self.fc1(x))))


class FeedForward(nn.Module):
    def __init__(self, dim=16, hidden=36):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SelfAttention(nn.Module):
    def __init__(self, dim=16, heads=4):
        super().__init__()
        self.n_head = heads
        self.c_attn = nn.Linear(dim, 3 * dim)
        self.c_proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


class Classifier(nn.Module):
    """A network with a loss."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 5))

    def forward(self, x, labels):
        return F.cross_entropy(self.net(x), labels)


class Normalized(nn.Module):
    def __init__(self, features=20):
        super().__init__()
        self.bn = nn.BatchNorm1d(features)
        self.act = nn.PReLU()

    def forward(self, x):
        return self.act(self.bn(x))


AXES = {
    "layer_norm": "x: N C, gamma: C, beta: C",
    "rms_norm": "x: B T C, weight: C",
    "batch_norm_images": "x: N C H W, gamma: C, beta: C",
    "global_response_norm": "x: N H W C, gamma: C, beta: C",
    "new_gelu": "x: N C",
    "fast_gelu": "x: N C",
    "quick_gelu": "x: N C",
    "squared_relu": "x: N C",
    "swiglu": "x: N K, w_gate: K H, w_up: K H, w_down: H D",
    "glu_split": "x: N K, w: K H",
    "attention": "q: B T E, k: B S E, v: B S D",
    "causal_attention": "q: B T E, k: B T E, v: B T E",
    "masked_attention": "q: B T E, k: B S E, v: B S D, mask: B S",
    "alibi": "q: T E, k: T E, v: T E, slope:",
    "linear_attention": "q: N D, k: N D, v: N M",
    "rotary": "x: T E, cos: T E, sin: T E",
    "cosine_attention": "q: B T E, k: B T E, v: B T E, scale:",
    "talking_heads": "q: B H T E, k: B H T E, v: B H T E, mix: H H",
    "gru_cell": "x: N K, h: N H, w_ih: G K, w_hh: G H, b_ih: G, b_hh: G",
    "lstm_hidden": "x: N K, h: N H, c: N H, w: K G, u: H G, b: G",
    "film": "x: N C H W, gamma: N C, beta: N C",
    "squeeze_excite": "x: N C H W, w1: C R, w2: R C",
    "layer_scale_residual": "x: N C, gamma: C, w: C C",
    "bigram": "ids: N T, table: V D",
    "factorization_machine": "x: N F, v: F K, w: F, b:",
    "graph_attention": "h: N D, adj: N N, a_src: D, a_dst: D",
    "gcn": "x: N K, adj: N N, w: K H",
    "mixture": "x: N, pi: K, mu: K, sigma: K",
    "group_norm_by_view": "x: N C H W, weight: C, bias: C",
    "pixel_norm": "x: N C H",
    "weight_standardized": "x: N K, w: H K",
    "MLP": "x: N K",
    "FeedForward": "x: B T C",
    "SelfAttention": "x: B T C",
    "Classifier": "x: N K, labels: N",
    "Normalized": "x: N C",
}
