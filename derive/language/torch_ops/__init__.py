"""The meaning of torch's operations, one row each.

In: a front end's arrays, and the arguments of one operation under torch's names. Out: an array of
the same front end.

trees.py    formulas of entries: they keep the order in which they are typed
table.py    what a row is, and the kinds of arguments
arrays.py   what rows are made of: each front end has these, and nothing else is asked of it
the others  the rows, a subject a file
"""

from derive.language.torch_ops import along as along
from derive.language.torch_ops import attention as attention
from derive.language.torch_ops import choosing as choosing
from derive.language.torch_ops import convolutions as convolutions
from derive.language.torch_ops import creating as creating
from derive.language.torch_ops import joining as joining
from derive.language.torch_ops import labels as labels
from derive.language.torch_ops import losses as losses
from derive.language.torch_ops import norms as norms
from derive.language.torch_ops import picking as picking
from derive.language.torch_ops import pointwise as pointwise
from derive.language.torch_ops import pools as pools
from derive.language.torch_ops import products as products
from derive.language.torch_ops import recurrent as recurrent
from derive.language.torch_ops import reducing as reducing
from derive.language.torch_ops import resizing as resizing
from derive.language.torch_ops import shaping as shaping
from derive.language.torch_ops.table import table as table
