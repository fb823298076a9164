"""``python -m derive list | show | site``"""

import sys

from derive.command import main

sys.exit(main())
