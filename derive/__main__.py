"""``python -m derive list | show | check | certificate | site``"""

from derive.running.starting import run

if __name__ == "__main__":
    run(f"{__package__}.commands.main", "main")
