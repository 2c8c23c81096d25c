"""``python -m bench.swarm``: says what is missing here for variants in containers, if anything."""

import sys

from bench.errors import BadInput
from bench.swarm import deployment

if __name__ == "__main__":
    try:
        deployment.require()
    except BadInput as error:
        sys.exit(str(error))
