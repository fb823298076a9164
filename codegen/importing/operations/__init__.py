"""ATen operations in the notation, one subject a file.

In: a reader and the arguments of one operation. Out: its value in named axes.
"""

from codegen.importing.operations import along as along
from codegen.importing.operations import choosing as choosing
from codegen.importing.operations import creating as creating
from codegen.importing.operations import joining as joining
from codegen.importing.operations import picking as picking
from codegen.importing.operations import pointwise as pointwise
from codegen.importing.operations import reducing as reducing
from codegen.importing.operations import scattering as scattering
from codegen.importing.operations import viewing as viewing
