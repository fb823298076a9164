"""Names of the variables of a C++ kernel."""

from codegen.targets.cpp.vocabulary import PREFIXES, SUFFIXES, TAKEN
from codegen.targets.tables import names
from codegen.targets.tables.names import Taken

CPP = Taken(TAKEN, PREFIXES, SUFFIXES)
named = CPP.named


class CppNames(names.Names):
    language = CPP
