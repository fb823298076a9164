"""All rules by ATen name: importing rules, and rows of `derive.language.torch_ops`."""

from codegen.importing import around_rows as around_rows
from codegen.importing import arrays as arrays
from codegen.importing import operations as operations
from codegen.importing.operations.table import checks as checks
from codegen.importing.operations.table import names as names
from codegen.importing.operations.table import rules as rules
