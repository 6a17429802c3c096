"""`python -m vramplan`."""

import sys

from vramplan.cli import main

sys.exit(main())
