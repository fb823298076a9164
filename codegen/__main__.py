"""``python -m codegen [NAME or FILE ...] [--out DIR] [--check]``"""

import sys

from codegen.cli import main

if __name__ == "__main__":  # the processes that derive in parallel import this file
    sys.exit(main())
