"""The lean module: two plain functions, and one autograd Function that calls them.

In: `Proved`.
Out: the module's text, compared with autograd.

Inside the Function stands only what was derived. What torch differentiates at no cost stands
outside, in the public function: the reduction, ignored labels, defaults, merged dimensions. So one
derivation is enough, and the module imports nothing but torch.
"""
