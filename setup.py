"""The packages; all else is in pyproject.toml. The gallery, the folder ``generated/``, is installed
as ``gradform.generated``: so it is never in the way of a folder of that name of a user's own.
"""

from setuptools import find_namespace_packages, setup


def found(name: str) -> list[str]:
    """The package of that name, and every folder in it: what is copied from one is no package."""
    return find_namespace_packages(include=[name, f"{name}.*"], exclude=["*.__pycache__"])


inside = {f"gradform.{name}": name.replace(".", "/") for name in found("generated")}
setup(
    packages=[*found("derive"), *found("codegen"), *found("gradform"), *inside],
    package_dir=inside,
)
