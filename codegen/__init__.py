"""Proved closed forms, written out as code: a Program, and targets that print it."""

from codegen.driver import Generated as Generated
from codegen.driver import generate as generate
