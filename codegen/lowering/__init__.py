"""From mathematics to the lines of a Program.

In: expressions over named axes.
Out: values and steps with every dimension decided.
"""

from codegen.lowering.expressions import Lowering as Lowering
from codegen.lowering.frames import sizes_used as sizes_used
