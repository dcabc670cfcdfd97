"""``python -m memohop`` runs the command ``memohop``."""

import sys

from memohop.cli import main

if __name__ == "__main__":
    sys.exit(main())
