"""What no forward can say, or what would be read wrong by who trusts one trace of it."""

import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

WEIGHTS = torch.randn(20)


def branch_on_values(x):
    if x.sum() > 0:
        return x * 2
    return x


def item(x):
    return x - x.max().item()


def branch_on_equality(x):
    if torch.equal(x, x.flip(0)):
        return x * 2
    return x


def branch_on_closeness(x):
    return x.sum() if torch.allclose(x, torch.zeros_like(x)) else x


def data(x):
    return x.data * x


def in_place(x):
    x.mul_(2)
    return x.sum()


def random_numbers(x):
    return (x + torch.randn_like(x)).sum()


def random_of_python(x):
    return (x * random.random()).sum()


def dropout(x):
    return F.dropout(x, 0.5).sum()


def outside(x):
    return x * WEIGHTS


def integer_division(x):
    return x // 2


def divided_size(x):
    return x * (x.shape[0] // 3)


def added_size(x):
    return x.sum() + x.shape[0] // 3


def ordered(x):
    return x.topk(2, -1)[0].sum()


def number(x):
    return 3


def raises(x):
    raise ValueError("not today")


def picked_by_mask(x):
    return x[x > 0].sum()


def loop_over_a_size(x):
    out = 0
    for i in range(x.shape[0]):
        out = out + x[i]
    return out


def without_grad(x):
    with torch.no_grad():
        w = x.sigmoid()
    return (w * x).sum()


def branch_on_a_size(x):
    if x.shape[0] > 5:
        return x * 2
    return x * 3


def branch_on_two_sizes(x):
    if x.shape[0] > x.shape[1]:
        return x.sum(0)
    return x.sum(0) * 2


def branch_on_evenness(x):
    if x.shape[0] % 2 == 0:
        return x.sum() * 2
    return x.sum()


def branch_far_away(x):
    if x.shape[0] > 1000:
        return x.sum() * 2
    return x.sum()


def branch_on_one_size(x):
    if x.shape[1] == 17:
        return x.sum() * 2
    return x.sum()


def rounded_size(x):
    return x.sum() / math.log(x.shape[0] + 1)


def half(x):
    return x[: int(x.shape[0] * 0.5)].sum()


class NeedsArguments(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        return x * self.k


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x


no_function = 5

# What is said of each, and on which line; "" where it stands for the whole function.
SAID = {
    "branch_on_values": ("depends on the values of a tensor", "if x.sum() > 0:"),
    "branch_on_equality": ("depends on the values of a tensor", "if torch.equal(x, x.flip(0)):"),
    "branch_on_closeness": (
        "depends on the values of a tensor",
        "return x.sum() if torch.allclose(x, torch.zeros_like(x)) else x",
    ),
    "data": (".data cannot be traced", "return x.data * x"),
    "item": ("depends on the values of a tensor", "return x - x.max().item()"),
    "in_place": ("modifies its argument x in place", "def in_place(x):"),
    "random_numbers": ("random numbers", "return (x + torch.randn_like(x)).sum()"),
    "random_of_python": ("at N = 12, C = 20, and", "return (x * random.random()).sum()"),
    "dropout": ("dropout is random", "return F.dropout(x, 0.5).sum()"),
    "outside": ("created outside the function", "return x * WEIGHTS"),
    "integer_division": ("floor_divide is not supported", "return x // 2"),
    "divided_size": ("read as a different function", "def divided_size(x):"),
    "added_size": ("its value at", "def added_size(x):"),
    "ordered": ("x.topk(2, -1): sorting or counting", "return x.topk(2, -1)[0].sum()"),
    "number": ("returns something that is not a tensor", "def number(x):"),
    "raises": ("ValueError: not today", 'raise ValueError("not today")'),
    "picked_by_mask": ("depends on its values", "return x[x > 0].sum()"),
    "loop_over_a_size": ("a size becomes a Python number", "for i in range(x.shape[0]):"),
    "without_grad": ("no_grad() stops gradients", "def without_grad(x):"),
    "branch_on_a_size": ("another branch at", "if x.shape[0] > 5:"),
    "branch_on_two_sizes": ("another branch at", "if x.shape[0] > x.shape[1]:"),
    "branch_on_evenness": ("another branch at", "if x.shape[0] % 2 == 0:"),
    "branch_far_away": ("another branch at", "if x.shape[0] > 1000:"),
    "branch_on_one_size": ("another branch at", "if x.shape[1] == 17:"),
    "rounded_size": ("a size becomes a Python number", "return x.sum() / math.log(x.shape[0] + 1)"),
    "half": ("a size becomes a Python number", "return x[: int(x.shape[0] * 0.5)].sum()"),
    "NeedsArguments": ("is a class, and needs k", ""),
    "Doubled": ("is an autograd Function", ""),
    "no_function": ("is int, not a function", ""),
    "missing": ("has no missing", ""),
}
