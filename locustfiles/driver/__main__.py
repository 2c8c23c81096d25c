"""Print the options of the tests: Locust prints its ``--help`` before it has read a locust file.

python -m locustfiles.driver
"""

import argparse
import sys

from .options import HTTP, WEBSOCKET, add_to

for file, options in (("http.py", HTTP), ("websocket.py", WEBSOCKET)):
    usage = f"locust -f locustfiles/{file} [TEST] [options of Locust's own] [these]"
    parser = argparse.ArgumentParser(prog="locust", usage=usage, add_help=False)
    add_to(parser, options)
    sys.stdout.write(parser.format_help() + "\n")
