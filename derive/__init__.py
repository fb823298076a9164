"""Forward mathematics in, a proved backward pass out."""

from derive.derivation import derive as derive
from derive.errors import NotationError as NotationError
from derive.errors import QuestionError as QuestionError
from derive.errors import UnprovedError as UnprovedError
from derive.forward import Forward as Forward
from derive.library import forward_from as forward_from
from derive.notation import Axis as Axis
from derive.notation import Broadcast as Broadcast
from derive.notation import Input as Input
from derive.notation import Label as Label
from derive.notation import Max as Max
from derive.notation import OneHot as OneHot
from derive.notation import Rename as Rename
from derive.notation import Scalar as Scalar
from derive.notation import Sum as Sum
from derive.proof import Proved as Proved
