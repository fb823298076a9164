"""The packages; all else is in pyproject.toml. The gallery, the folder ``generated/``, is installed
as ``gradform.generated``: so it is never in the way of a folder of that name of a user's own.
"""

from setuptools import find_packages, setup

PACKAGES = ("derive", "codegen", "gradform")
gallery = find_packages(include=["generated", "generated.*"])

setup(
    packages=[
        *find_packages(include=[*PACKAGES, *(f"{name}.*" for name in PACKAGES)]),
        *(f"gradform.{name}" for name in gallery),
    ],
    package_dir={f"gradform.{name}": name.replace(".", "/") for name in gallery},
)
