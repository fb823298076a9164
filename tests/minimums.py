"""The lowest versions of what gradform needs, and the tools of its tests, a line each for pip:

python tests/minimums.py > requirements.txt
"""

import tomllib
from pathlib import Path

TOOLS = ("pytest", "hypothesis", "expecttest")

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
pinned = project["optional-dependencies"]["dev"]
print(*(needed.replace(">=", "==") for needed in project["dependencies"]), sep="\n")
print(*(tool for tool in pinned if tool.partition("==")[0] in TOOLS), sep="\n")
