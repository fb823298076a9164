"""Autograd Functions in the idioms of repositories. All of them are right;
``test_torch_functions.py`` breaks them.
"""

import math

import torch
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, grad_output):
        x, s = ctx.saved_tensors
        return grad_output * (s * (1 + x * (1 - s)))


class SwishSetup(Function):
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x, output)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        s = x.sigmoid()
        return grad * (y + s * (1 - y))


class GELU(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        cdf = 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
        pdf = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return grad_output * (cdf + x * pdf)


class GELUTanh(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + torch.tanh(inner))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        k = math.sqrt(2.0 / math.pi)
        t = torch.tanh(k * (x + 0.044715 * x * x * x))
        dinner = k * (1 + 3 * 0.044715 * x * x)
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * dinner)


class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps=1e-5):
        mean = x.mean(-1, keepdim=True)
        rstd = torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + eps)
        xhat = (x - mean) * rstd
        ctx.save_for_backward(xhat, weight, rstd)
        return xhat * weight + bias

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        xhat, weight, rstd = ctx.saved_tensors
        g = dy * weight
        c1 = g.mean(-1, keepdim=True)
        c2 = (g * xhat).mean(-1, keepdim=True)
        dx = rstd * (g - c1 - xhat * c2)
        dweight = (dy * xhat).sum(dim=tuple(range(dy.ndim - 1)))
        dbias = dy.sum(dim=tuple(range(dy.ndim - 1)))
        return dx, dweight, dbias, None


class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, eps=1e-6):
        rstd = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, rstd)
        return x * rstd * weight

    @staticmethod
    def backward(ctx, dy):
        x, weight, rstd = ctx.saved_tensors
        n = x.shape[-1]
        wdy = dy * weight
        dot = (wdy * x).sum(dim=-1, keepdim=True)
        dx = rstd * wdy - rstd**3 / n * dot * x
        dw = (dy * x * rstd).flatten(0, -2).sum(0)
        return dx, dw, None


class Standardize(Function):
    @staticmethod
    def forward(ctx, x):
        n = x.shape[0]
        mu = x.mean(0)
        xmu = x - mu
        var = (xmu**2).sum(0) / (n - 1)
        ivar = 1.0 / torch.sqrt(var + 1e-5)
        ctx.save_for_backward(xmu, ivar)
        ctx.n = n
        return xmu * ivar

    @staticmethod
    def backward(ctx, dout):
        xmu, ivar = ctx.saved_tensors
        n = ctx.n
        xhat = xmu * ivar
        return ivar * (dout - dout.mean(0) - xhat * (dout * xhat).sum(0) / (n - 1))


class BatchNorm(Function):
    @staticmethod
    def forward(ctx, x, gamma, beta):
        mean = x.mean(dim=0)
        var = x.var(dim=0, unbiased=False)
        invstd = (var + 1e-5) ** -0.5
        ctx.save_for_backward(x, gamma, mean, invstd)
        return gamma * (x - mean) * invstd + beta

    @staticmethod
    def backward(ctx, gy):
        x, gamma, mean, invstd = ctx.saved_tensors
        N = x.size(0)
        xhat = (x - mean) * invstd
        gbeta = gy.sum(dim=0)
        ggamma = torch.einsum("nc,nc->c", gy, xhat)
        gx = (gamma * invstd / N) * (N * gy - gbeta - xhat * ggamma)
        return gx, ggamma, gbeta


class Softmax(Function):
    @staticmethod
    def forward(ctx, x):
        e = torch.exp(x - x.max(dim=-1, keepdim=True)[0])
        y = e / e.sum(dim=-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return y * (dy - (dy * y).sum(dim=-1, keepdim=True))


class LogSoftmax(Function):
    @staticmethod
    def forward(ctx, x):
        y = x - torch.logsumexp(x, dim=1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return dy - y.exp() * dy.sum(1, keepdim=True)


class CrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, target):
        logp = F.log_softmax(logits, dim=1)
        ctx.save_for_backward(logp, target)
        return -logp[torch.arange(logits.shape[0]), target].mean()

    @staticmethod
    def backward(ctx, g):
        logp, target = ctx.saved_tensors
        grad = logp.exp()
        grad[torch.arange(grad.shape[0]), target] -= 1
        return g * grad / grad.shape[0], None


class SmoothedCrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, labels, smoothing=0.1):
        _, c = logits.shape
        p = logits.softmax(-1)
        onehot = F.one_hot(labels, num_classes=c).to(p.dtype)
        q = onehot * (1 - smoothing) + smoothing / c
        ctx.save_for_backward(p, q)
        return -(q * torch.log(p)).sum(-1).mean()

    @staticmethod
    def backward(ctx, grad_output):
        p, q = ctx.saved_tensors
        return grad_output * (p - q) / p.size(0), None, None


class Dice(Function):
    @staticmethod
    def forward(ctx, p, t):
        inter = (p * t).sum(dim=1)
        union = p.sum(dim=1) + t.sum(dim=1)
        ctx.save_for_backward(t, inter, union)
        return 1 - 2 * inter / (union + 1.0)

    @staticmethod
    def backward(ctx, g):
        t, inter, union = ctx.saved_tensors
        u = (union + 1.0).unsqueeze(1)
        dp = -2 * (t * u - inter.unsqueeze(1)) / u**2
        return g.unsqueeze(1) * dp, None


class Focal(Function):
    @staticmethod
    def forward(ctx, x, t, gamma=2.0):
        p = torch.sigmoid(x)
        ctx.save_for_backward(p, t)
        ctx.gamma = gamma
        a = -t * (1 - p) ** gamma * torch.log(p)
        b = -(1 - t) * p**gamma * torch.log(1 - p)
        return (a + b).sum()

    @staticmethod
    def backward(ctx, g):
        p, t = ctx.saved_tensors
        k = ctx.gamma
        da = t * (1 - p) ** k * (k * p * torch.log(p) - (1 - p))
        db = (1 - t) * p**k * (p - k * (1 - p) * torch.log(1 - p))
        return g * (da + db), None, None


class Linear(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w.t() + b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = g @ w
        if ctx.needs_input_grad[1]:
            gw = g.t() @ x
        if ctx.needs_input_grad[2]:
            gb = g.sum(0)
        return gx, gw, gb


class BatchedLinear(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.einsum("btd,dk->btk", x, w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return torch.einsum("btk,dk->btd", g, w), torch.einsum("btd,btk->dk", x, g)


class ReLU(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.relu(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x > 0).to(g.dtype)


class LeakyReLU(Function):
    @staticmethod
    def forward(ctx, x, slope=0.01):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return torch.where(x > 0, x, slope * x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, g, ctx.slope * g), None


class PReLU(Function):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return torch.where(x > 0, x, a * x)

    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        gx = torch.where(x > 0, g, a * g)
        ga = torch.where(x > 0, torch.zeros_like(x), x * g).sum(0)
        return gx, ga


class Clamp(Function):
    @staticmethod
    def forward(ctx, x, lo=-3.0, hi=3.0):
        ctx.save_for_backward(x)
        ctx.lo, ctx.hi = lo, hi
        return x.clamp(lo, hi)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ((x >= ctx.lo) & (x <= ctx.hi)).type_as(g), None, None


class MSE(Function):
    @staticmethod
    def forward(ctx, x, y):
        d = x - y
        ctx.save_for_backward(d)
        return (d * d).mean()

    @staticmethod
    def backward(ctx, g):
        (d,) = ctx.saved_tensors
        gx = 2 * g * d / d.numel()
        return gx, -gx


class SmoothL1(Function):
    @staticmethod
    def forward(ctx, x, y, beta=1.0):
        d = x - y
        ctx.save_for_backward(d)
        ctx.beta = beta
        a = d.abs()
        return torch.where(a < beta, 0.5 * d * d / beta, a - 0.5 * beta).sum()

    @staticmethod
    def backward(ctx, g):
        (d,) = ctx.saved_tensors
        gx = torch.where(d.abs() < ctx.beta, d / ctx.beta, d.sign()) * g
        return gx, -gx, None


class Mish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(F.softplus(x))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        t = torch.tanh(F.softplus(x))
        return g * (t + x * s * (1 - t * t))


class SwiGLU(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return F.silu(a) * b

    @staticmethod
    def backward(ctx, dc):
        a, b = ctx.saved_tensors
        sig = torch.sigmoid(a)
        silu = a * sig
        db = dc * silu
        da = dc * (silu * (1 - sig) + sig) * b
        return da, db


class Scale(Function):
    @staticmethod
    def forward(ctx, x, scale, shift):
        ctx.save_for_backward(x, scale)
        return x * scale + shift

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return g * scale, (g * x).sum(dim=(0, 1)), g.sum(dim=(0, 1))


class Embedding(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table[ids]

    @staticmethod
    def backward(ctx, g):
        (ids,) = ctx.saved_tensors
        d = torch.zeros(ctx.shape, dtype=g.dtype)
        d.index_add_(0, ids, g)
        return d, None


class Normalize(Function):
    @staticmethod
    def forward(ctx, x):
        n = x.pow(2).sum(1, keepdim=True).sqrt()
        y = x / n
        ctx.save_for_backward(y, n)
        return y

    @staticmethod
    def backward(ctx, g):
        y, n = ctx.saved_tensors
        return (g - y * (g * y).sum(1, keepdim=True)) / n


class Attention(Function):
    @staticmethod
    def forward(ctx, q, k, v):
        scale = q.shape[-1] ** -0.5
        p = torch.softmax(q @ k.transpose(-2, -1) * scale, dim=-1)
        ctx.save_for_backward(q, k, v, p)
        ctx.scale = scale
        return p @ v

    @staticmethod
    def backward(ctx, do):
        q, k, v, p = ctx.saved_tensors
        dv = p.transpose(-2, -1) @ do
        dp = do @ v.transpose(-2, -1)
        ds = p * (dp - (dp * p).sum(-1, keepdim=True))
        dq = ds @ k * ctx.scale
        dk = ds.transpose(-2, -1) @ q * ctx.scale
        return dq, dk, dv


class KLDiv(Function):
    @staticmethod
    def forward(ctx, logits, target):
        logp = logits.log_softmax(-1)
        ctx.save_for_backward(logp, target)
        return (target * (target.log() - logp)).sum(-1).mean()

    @staticmethod
    def backward(ctx, g):
        logp, target = ctx.saved_tensors
        n = logp.shape[0]
        dlogits = (logp.exp() * target.sum(-1, keepdim=True) - target) / n * g
        return dlogits, (target.log() + 1 - logp) / n * g


class LogSumExp(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.logsumexp(x, dim=-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g[:, None] * torch.exp(x - y[:, None])


class Reciprocal(Function):
    @staticmethod
    def forward(ctx, x):
        y = 1 / x
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return -g * y * y


class Cosine(Function):
    @staticmethod
    def forward(ctx, a, b):
        na = a.norm(dim=1, keepdim=True)
        nb = b.norm(dim=1, keepdim=True)
        c = ((a * b).sum(1, keepdim=True)) / (na * nb)
        ctx.save_for_backward(a, b, na, nb, c)
        return c.squeeze(1)

    @staticmethod
    def backward(ctx, g):
        a, b, na, nb, c = ctx.saved_tensors
        g = g.unsqueeze(1)
        da = g * (b / (na * nb) - c * a / na**2)
        db = g * (a / (na * nb) - c * b / nb**2)
        return da, db


class Huber(Function):
    @staticmethod
    def forward(ctx, pred, target, delta=1.5):
        r = pred - target
        ctx.save_for_backward(r)
        ctx.delta = delta
        small = r.abs() <= delta
        return torch.where(small, 0.5 * r**2, delta * (r.abs() - 0.5 * delta)).mean()

    @staticmethod
    def backward(ctx, g):
        (r,) = ctx.saved_tensors
        gr = g * torch.where(r.abs() <= ctx.delta, r, ctx.delta * r.sign()) / r.numel()
        return gr, -gr, None


class WeightedCrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, labels, weight):
        p = torch.softmax(logits, 1)
        w = weight[labels]
        nll = -torch.log(p.gather(1, labels.unsqueeze(1))).squeeze(1)
        ctx.save_for_backward(p, labels, w)
        return (w * nll).sum() / logits.shape[0]

    @staticmethod
    def backward(ctx, g):
        p, labels, w = ctx.saved_tensors
        d = p.clone()
        d.scatter_add_(1, labels.unsqueeze(1), -torch.ones_like(labels, dtype=p.dtype).unsqueeze(1))
        return d * w.unsqueeze(1) * g / p.shape[0], None, None
