"""Idioms that people write, each in several spellings: lines that end in ``result``.

``axes`` are as in `both_doors`. Everything else of a text is Python's and torch's.
"""

from __future__ import annotations

from typing import NamedTuple


class Idiom(NamedTuple):
    axes: str
    texts: tuple[str, ...]


MATRIX = "x: N D"
IDIOMS = {
    "a strided part is written": Idiom(
        MATRIX,
        (
            "z = torch.zeros_like(x)\nz[..., ::2] = -x[..., 1::2]\nz[..., 1::2] = x[..., ::2]\n"
            "result = z * x",
            "z = x.clone()\nz[:, 1::2] *= 2\nz[:, 0::2] -= x[:, 1::2]\nresult = z",
            "z = torch.zeros(x.shape[0], x.shape[1], dtype=x.dtype)\nz[:, ::2] = x[:, ::2] ** 2\n"
            "result = z + x",
        ),
    ),
    "a part is copied into": Idiom(
        MATRIX,
        (
            "z = torch.zeros_like(x)\nz[1:].copy_(x[:-1])\nresult = z * x",
            "z = x.clone()\nz[:, :-1].add_(x[:, 1:])\nz[:, -1].mul_(2)\nresult = z",
            "z = torch.zeros_like(x)\nz.narrow(1, 1, x.size(1) - 1).copy_(x[:, 1:] * 3)\n"
            "z[:, :1].fill_(1)\nresult = z",
            "z = torch.empty_like(x)\nz[:, 0::2].copy_(x[:, 1::2])\nz[:, 1::2].copy_(-x[:, 0::2])\n"
            "result = z",
        ),
    ),
    "entries are put by an index": Idiom(
        "x: N C, u: N, y: N int",
        (
            "z = x.softmax(1) + 0\nz.index_put_((torch.arange(x.size(0)), y), u)\nresult = z",
            "z = x.clone()\nz[torch.arange(x.shape[0]), y] -= u\nresult = z",
            "z = torch.zeros_like(x)\nrows = torch.arange(len(x))\n"
            "z.index_put_((rows, y), u, accumulate=True)\nresult = z * x",
            "z = x * 2\nz[range(x.shape[0]), y] = 0\nresult = z",
        ),
    ),
    "rows are put by an index": Idiom(
        "w: V D, u: N D, y: N int",
        (
            "z = torch.zeros_like(w)\nz.index_put_((y,), u, accumulate=True)\nresult = z * w",
            "z = w.clone()\nz.index_add_(0, y, u)\nresult = z",
            "z = w.clone()\nz[y] = 0\nresult = z[y] * u",
        ),
    ),
    "a part is masked": Idiom(
        MATRIX,
        (
            "z = x.clone()\nz[:, 1:].masked_fill_(x[:, 1:] < 0, 0)\nresult = z",
            "z = x * 2\nz[:-1].masked_fill_(x[1:] > 0.5, -1.0)\nresult = z * x",
            "z = x.clone()\nz[z < 0] = 0\nz[:, ::2].clamp_(max=0.5)\nresult = z",
        ),
    ),
    "what is empty is filled": Idiom(
        MATRIX,
        (
            "z = torch.empty_like(x)\nz.copy_(x)\nresult = z * x",
            "z = x.new_empty(x.shape)\nz.fill_(1)\nz[:, 0] = x[:, 1]\nresult = z * x",
            "z = torch.empty(x.shape[0], x.shape[1], dtype=x.dtype)\nz[:, :1] = x[:, :1]\n"
            "z[:, 1:] = x[:, :-1]\nresult = z",
            "z = torch.empty(x.shape[0], 2, dtype=x.dtype)\nz[:, 0] = x.sum(1)\n"
            "z[:, 1] = x.amax(1)\nresult = z",
            "z = x.new_empty(x.shape[0], 2 * x.shape[1])\nz[:, :x.shape[1]] = x\n"
            "z[:, x.shape[1]:] = x ** 2\nresult = z",
        ),
    ),
    "halves are interleaved": Idiom(
        MATRIX,
        (
            "a, b = x[..., ::2], x[..., 1::2]\nresult = torch.stack([-b, a], -1).flatten(-2)",
            "a = x[:, 0::2]\nb = x[:, 1::2]\n"
            "result = torch.stack((a * b, a - b), dim=2).reshape(x.shape)",
            "a = x[:, ::2]\nb = x[:, 1::2]\n"
            "result = torch.cat([b.unsqueeze(-1), a.unsqueeze(-1)], -1).view(x.size(0), -1)",
            "p = x.view(x.shape[0], -1, 2)\na, b = p.unbind(-1)\n"
            "result = torch.stack([-b, a], dim=-1).view_as(x)",
        ),
    ),
    "stacked and cut again": Idiom(
        "x: N D, y: N D, w: N D",
        (
            "D = x.size(1)\nall3 = torch.cat([x, y, w], 1)\n"
            "result = all3[:, :D] * all3[:, D:2 * D] - all3[:, 2 * D:]",
            "s = torch.stack([x, y, w])\na, b, c = s.unbind(0)\nresult = a * b - c",
            "s = torch.stack((x, y, w), dim=1)\nresult = s[:, 0] * s[:, 1] + s[:, 2].exp()",
            "q, k, v = torch.cat((x, y, w), dim=-1).chunk(3, dim=-1)\nresult = q * k - v",
            "q, k = torch.cat((x, y), dim=-1).split(x.size(-1), dim=-1)\nresult = q * k - w",
            "a, b = torch.stack([x, y])\nresult = a * b - w",
        ),
    ),
    "padded and cut to the old length": Idiom(
        MATRIX,
        (
            "p = F.pad(x, (1, 1))\nresult = p[:, 1:-1] * x",
            "p = F.pad(x, (2, 0))\nresult = p[:, :x.size(1)] + x",
            "p = torch.cat([torch.zeros_like(x[:, :1]), x], dim=1)\nresult = x - p[:, :-1]",
            "p = F.pad(x, (0, 0, 1, 0))\nresult = p[:x.shape[0]] * x",
        ),
    ),
    "a slice beside the whole": Idiom(
        "x: B T V, y: B T int",
        (
            "lp = x[:, :-1].log_softmax(-1)\n"
            "result = -lp.gather(-1, y[:, 1:].unsqueeze(-1)).squeeze(-1).mean() + x.mean()",
            "logits, labels = x[:, :-1], y[:, 1:]\n"
            "result = F.cross_entropy(logits.reshape(-1, logits.size(-1)), labels.reshape(-1))",
            "lp = torch.log_softmax(x, -1)\nhit = F.one_hot(y, x.shape[-1])\n"
            "result = -(lp[:, :-1] * hit[:, 1:]).sum() / x.shape[0]",
            "shift_logits = x[..., :-1, :].contiguous()\nshift_labels = y[..., 1:].contiguous()\n"
            "result = F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), "
            "shift_labels.view(-1))",
        ),
    ),
    "differences of neighbours": Idiom(
        MATRIX,
        (
            "d = x[:, 1:] - x[:, :-1]\nresult = d.square().mean() + x.mean()",
            "result = (x - x[:, :1]) * x[:, -1:]",
            "d = x[1:] * x[:-1]\nresult = d.sum(0) / x.sum(0)",
        ),
    ),
    "halves": Idiom(
        MATRIX,
        (
            "half = x.shape[1] // 2\nresult = x[:, :half] * x[:, half:]",
            "half = x.size(-1) // 2\na, b = x[..., :half], x[..., half:]\n"
            "result = torch.cat((-b, a), dim=-1) * x",
            "D = x.shape[-1]\na, b = x.split(D // 2, dim=-1)\nresult = a * torch.sigmoid(b)",
            "a, b = x.chunk(2, dim=-1)\nresult = torch.cat([a * b, a - b], -1)",
            "half = x.shape[1] // 2\nz = torch.empty_like(x)\nz[:, :half] = x[:, half:]\n"
            "z[:, half:] = x[:, :half]\nresult = z * x",
            "result = x[:, ::2] * x[:, 1::2]",
        ),
    ),
    "a loop over blocks": Idiom(
        "x: N D, w: D",
        (
            "z = torch.zeros_like(x)\nfor i in range(0, x.shape[0], 2):\n"
            "    z[i:i + 2] = x[i:i + 2] * w\nresult = z",
            "C = 4\nz = torch.empty_like(x)\nfor i in range(0, x.size(0), C):\n"
            "    block = x[i:i + C]\n    z[i:i + C] = block * block.sum(1, keepdim=True)\n"
            "result = z",
            "total = 0\nfor start in range(0, len(x), 3):\n    end = min(start + 3, len(x))\n"
            "    total = total + (x[start:end] * w).square().sum()\nresult = total / x.numel()",
            "parts = []\nfor i in range(0, x.shape[0], 2):\n"
            "    parts.append(torch.tanh(x[i:i + 2] * w))\nresult = torch.cat(parts)",
            "C = 64  # more than any size that is tried unasked\nparts = []\n"
            "for i in range(0, len(x), C):\n    parts.append(x[i:i + C].softmax(1) * w)\n"
            "result = torch.cat(parts)",
        ),
    ),
    "sizes that are expressions": Idiom(
        "x: B T D, w: D",
        (
            "B, T, D = x.shape\nresult = (x.view(B * T, D) * w).view(B, T, D)",
            "flat = x.reshape(x.shape[0] * x.shape[1], x.shape[2])\n"
            "result = flat.softmax(-1).reshape(x.size(0), x.size(1), -1)",
            "B, T, D = x.shape\nh = x.view(B, T, 2, D // 2)\n"
            "result = (h - h.mean(-1, keepdim=True)).reshape(B, T, D)",
            "r = x.reshape(-1, x.size(-1))\nresult = (r / r.sum(-1, keepdim=True)).view(x.shape)",
        ),
    ),
    "sizes in arithmetic": Idiom(
        MATRIX,
        (
            "result = x.sum(-1) / x.size(-1)",
            "result = x * x.size(-1) ** -0.5 + x.shape[0]",
            "d = x - x.mean(-1, keepdim=True)\nresult = d.pow(2).sum(-1) / (x.size(-1) - 1)",
            "n, d = x.shape\nresult = x.sum() / (n * d) + math.sqrt(d)",
        ),
    ),
    "autocast": Idiom(
        "x: N D, w: D K",
        (
            "with torch.autocast('cpu', enabled=False):\n    result = x.float() @ w.float()",
            "with torch.autocast(device_type='cpu', dtype=torch.bfloat16):\n    z = x @ w\n"
            "    result = z.tanh()",
            "with torch.amp.autocast('cpu', dtype=torch.bfloat16):\n    z = torch.mm(x, w)\n"
            "result = z.softmax(-1)",
            "with torch.autocast(device_type=x.device.type, enabled=False):\n    z = x @ w\n"
            "    result = F.relu(z)",
        ),
    ),
}
REFUSED = {
    "a loop whose rounds need others": Idiom(
        MATRIX,
        (
            "parts = []\nfor i in range(0, x.shape[0], 64):\n    block = x[i:i + 64]\n"
            "    parts.append(block - block.mean(0))\nresult = torch.cat(parts)",
            "z = torch.zeros_like(x)\nbefore = 0\nfor i in range(0, x.shape[0], 2):\n"
            "    z[i:i + 2] = x[i:i + 2] + before\n    before = before + x[i:i + 2].sum()\n"
            "result = z",
            "parts = []\nfor i in range(0, x.shape[0], 9000):\n"
            "    parts.append(x[i:i + 9000] ** 2)\nresult = torch.cat(parts)",
        ),
    ),
    "what is empty is read": Idiom(
        MATRIX,
        (
            "z = torch.empty_like(x)\nz += x\nresult = z",
            "z = x.new_empty(x.shape)\nz[:, 1:] = x[:, 1:]\nresult = z * 2",
            "z = torch.empty(x.shape[0], x.shape[1])\nw = z * x\nresult = w",
            "z = torch.empty_like(x)\nz[:, ::2] = x[:, ::2]\nresult = z",
        ),
    ),
}
NUMPY = {
    "numpy": Idiom(
        "x: N C, u: N C, y: N int",
        (
            "result = x - x.max(axis=1, keepdims=True)",
            "p = np.exp(x)\np /= np.sum(p, axis=1, keepdims=True)\np[range(x.shape[0]), y] -= 1\n"
            "result = p / x.shape[0]",
            "z = np.zeros((x.shape[1], x.shape[1]))\nnp.add.at(z, y, x)\nresult = z",
            "z = np.zeros_like(x)\nnp.add.at(z, (np.arange(len(y)), y), 1)\nresult = z * x",
            "cache = {}\ncache['p'] = np.tanh(x)\ncache['q'] = cache['p'] @ u.T\n"
            "result = cache['q'] @ cache['p']",
            "cache = {'a': x, 'b': u}\nresult = cache['a'].T @ cache['b']",
            "z = np.empty_like(x)\nz[:, 0] = x[:, 0]\nz[:, 1:] = u[:, :-1]\nresult = z",
            "z = np.zeros(x.shape)\nz[np.arange(x.shape[0]), y] = 1\nresult = (x - z) * u",
            "z = np.zeros((len(y), x.shape[1]))\nz[np.arange(len(y)), y] = 1.0\nresult = z * x",
        ),
    ),
}
