"""Every transform of torch, of a function of several tensors, and the same of plain torch.

``of(f, xs, vs)`` has the function, where it is, and directions; a number is made of its output by
`loss_of`, whose derivatives all differ. Whole Jacobians are taken along three directions.
"""

from __future__ import annotations

import torch
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.utils.checkpoint import checkpoint

ALONG = 3  # directions


def loss_of(f):
    return lambda *xs: (f(*xs) ** 3).sum() + f(*xs).sum()


def leaves(xs):
    return [x.detach().clone().requires_grad_() for x in xs]


def gradients(f, xs, vs, graph=False):
    own = leaves(xs)
    how = {"create_graph": graph, "materialize_grads": True}
    return own, torch.autograd.grad(loss_of(f)(*own), own, **how)


def again(f, xs, vs, times=1):
    own, found = gradients(f, xs, vs, graph=True)
    for i in range(times):
        total = sum((g**2).sum() for g in found if g.requires_grad)
        if not torch.is_tensor(total):
            return [torch.zeros_like(x) for x in xs]
        how = {"create_graph": i + 1 < times, "materialize_grads": True}
        found = torch.autograd.grad(total, own, **how)
    return found


def batched(f, xs, vs):
    own = leaves(xs)
    y = f(*own)
    ups = torch.stack([torch.ones_like(y), torch.cos(y.detach())])
    how = {"is_grads_batched": True, "allow_unused": True, "materialize_grads": True}
    return torch.autograd.grad(y, own, ups, **how)


def dual(f, xs, vs):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(*map(forward_ad.make_dual, xs, vs))).tangent


def dual_of_gradient(f, xs, vs):
    own = leaves(xs)
    with forward_ad.dual_level():
        loss = loss_of(f)(*map(forward_ad.make_dual, own, vs))
        how = {"create_graph": True, "materialize_grads": True}
        found = torch.autograd.grad(loss, own, **how)
        tangents = [forward_ad.unpack_dual(g).tangent for g in found]
    return [torch.zeros_like(x) if t is None else t for x, t in zip(xs, tangents, strict=True)]


def in_checkpoint(f, xs, vs):
    own = leaves(xs)
    y = checkpoint(f, *own, use_reentrant=False)
    return torch.autograd.grad((y**3).sum(), own, materialize_grads=True)


def along(f, xs, vs):
    """The loss as a function of how far it goes in each of some directions."""
    ways = [[torch.cos((k + 1) * (v + k)) for v in vs] for k in range(ALONG)]

    def of(t):
        moved = (x + sum(t[k] * way[i] for k, way in enumerate(ways)) for i, x in enumerate(xs))
        return loss_of(f)(*moved)

    return of, torch.zeros(ALONG, dtype=xs[0].dtype)


def jacobian(transform):
    def of(f, xs, vs):
        function, t = along(f, xs, vs)
        return transform(function)(t)

    return of


def jvp_of_jvp(f, xs, vs):
    xs, vs = tuple(xs), tuple(vs)
    return jvp(lambda *a: jvp(f, a, vs)[1], xs, vs)[1]


def vmap_of_gradient(f, xs, vs):
    """One input in a batch, the others not."""
    places = tuple(range(len(xs)))
    dims = (0, *[None] * (len(xs) - 1))
    return vmap(grad(loss_of(f), places), dims)(torch.stack([xs[0], xs[0].flip(0)]), *xs[1:])


def jvp_of_vmap(f, xs, vs):
    def both(tensors):
        return tuple(torch.stack([t, t.flip(0)]) for t in tensors)

    return jvp(vmap(f), both(xs), both(vs))[1]


def compiled(of):
    torch.compiler.reset()  # or the limit of compilations in one process is met
    return torch.compile(of, backend="aot_eager", fullgraph=True)


EAGER = {
    "gradient": lambda *a: gradients(*a)[1],
    "double backward": again,
    "third order": lambda *a: again(*a, times=2),
    "batched gradients": batched,
    "forward mode": dual,
    "forward mode of a gradient": dual_of_gradient,
    "checkpoint": in_checkpoint,
    "jvp": lambda f, xs, vs: jvp(f, tuple(xs), tuple(vs))[1],
    "jvp of jvp": jvp_of_jvp,
    "jacrev": jacobian(jacrev),
    "jacfwd": jacobian(jacfwd),
    "hessian": jacobian(hessian),
    "jacrev of jacrev": jacobian(lambda f: jacrev(jacrev(f))),
    "jacfwd of hessian": jacobian(lambda f: jacfwd(hessian(f))),
    "vmap of gradient": vmap_of_gradient,
    "jvp of vmap": jvp_of_vmap,
}
COMPILED = {
    "compiled": lambda f, xs, vs: gradients(compiled(f), xs, vs)[1],
    "compiled transform": lambda f, xs, vs: compiled(grad(loss_of(f), tuple(range(len(xs)))))(*xs),
}
TRANSFORMS = EAGER | COMPILED


def of_plain_torch(what):
    """The transform, in reverse alone where torch's forward mode is silently wrong in forward mode:
    there ``torch.linalg.solve`` takes its factors for constants.
    """
    return IN_REVERSE.get(what) or TRANSFORMS[what]


def in_direction(f, vs):
    """The derivative along ``vs`` as a function, by two gradients."""

    def of(*xs):
        y, pulled = vjp(f, *xs)

        def total(up):
            return sum((g * v).sum() for g, v in zip(pulled(up), vs, strict=True))

        return grad(total)(torch.zeros_like(y))

    return of


IN_REVERSE = {
    "jvp of jvp": lambda f, xs, vs: in_direction(in_direction(f, vs), vs)(*xs),
    "jacfwd of hessian": jacobian(lambda f: jacrev(jacrev(jacrev(f)))),
}
