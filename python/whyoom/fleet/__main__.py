"""`python -m whyoom.fleet`, and the file that spark-submit starts."""

import sys

from whyoom.fleet import main

if __name__ == "__main__":
    sys.exit(main())
