"""``python -m derive list``"""

import sys

from derive.command import main

sys.exit(main())
