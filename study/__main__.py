"""`python -m study`."""

import sys

from study.cli import main

if __name__ == "__main__":
    sys.exit(main())
