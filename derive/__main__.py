"""``python -m derive list | show | check | site``"""

from derive.starting import run

if __name__ == "__main__":
    run("derive.command", "main")
