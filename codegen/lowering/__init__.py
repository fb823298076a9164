"""From a closed form to the values and steps of a Program."""

from codegen.lowering.expressions import Lowering as Lowering
from codegen.lowering.frames import sizes_used as sizes_used
