"""One adjoint for every statement."""
