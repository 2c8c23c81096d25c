"""``python -m bench.swarm``: says what is missing here for variants in containers, if anything."""

import sys

from bench.errors import BadInput
from bench.swarm import engine, image

if __name__ == "__main__":
    try:
        engine.require()
        image.require()
    except BadInput as error:
        sys.exit(str(error))
