"""python -m whyoom: the command."""

import sys

from whyoom._program import main

if __name__ == "__main__":
    sys.exit(main())
