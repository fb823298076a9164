"""Expert implementations for the ranks of a group, for ranks.py."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

EPS = 1e-5


class VocabParallel(torch.autograd.Function):
    """The loss of each row as Megatron-LM has it: an all-reduce for the largest, and one each for
    the label's logit and the sum of exponentials. (These two could share one, as gradform's do.)
    The buffer of the exponentials becomes the probabilities, and those the gradient.
    """

    @staticmethod
    def forward(ctx, logits: Tensor, labels: Tensor) -> Tensor:
        largest = logits.amax(1)
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        shifted = logits - largest[:, None]
        place = labels - dist.get_rank() * logits.shape[1]
        elsewhere = (place < 0) | (place >= logits.shape[1])
        place = place.masked_fill(elsewhere, 0)
        rows = torch.arange(len(labels))
        predicted = shifted[rows, place].masked_fill(elsewhere, 0)
        dist.all_reduce(predicted)
        sums = shifted.exp_().sum(1)
        dist.all_reduce(sums)
        ctx.save_for_backward(shifted.div_(sums[:, None]), rows, place, elsewhere)
        return sums.log() - predicted

    @staticmethod
    def backward(ctx, dlosses: Tensor):
        dlogits, rows, place, elsewhere = ctx.saved_tensors
        dlogits[rows, place] -= (~elsewhere).to(dlogits.dtype)
        return dlogits.mul_(dlosses[:, None]), None


class SynchronisedNorm(torch.autograd.Function):
    """batch_norm with the n-1 variance: count, sum and sum of squares in one all-reduce, the two
    sums of the gradient in another. (These squares cancel if the mean is large; a second
    all-reduce would avoid that.)
    """

    @staticmethod
    def forward(ctx, x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
        columns = x.shape[1]
        told = torch.cat([x.sum(0), (x * x).sum(0), x.new_tensor([len(x)])])
        dist.all_reduce(told)
        total, squares, count = told.split([columns, columns, 1])
        mean = total / count
        inv_std = ((squares - total * mean) / (count - 1) + EPS).rsqrt()
        xhat = (x - mean).mul_(inv_std)
        ctx.save_for_backward(xhat, gain * inv_std, count)
        return torch.addcmul(bias, gain, xhat)

    @staticmethod
    def backward(ctx, dy: Tensor):
        xhat, scale, count = ctx.saved_tensors
        told = torch.stack([(dy * xhat).sum(0), dy.sum(0)])
        dist.all_reduce(told)
        dgain, dbias = told
        dx = torch.addcmul(dy - dbias / count, xhat, dgain / (count - 1), value=-1).mul_(scale)
        return dx, dgain, dbias
