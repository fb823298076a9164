"""``python -m codegen [NAME or FILE ...] [--out DIR] [--check]``"""

import sys

from codegen.cli import main

sys.exit(main())
