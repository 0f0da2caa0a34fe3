"""Runs localstripe, a Stripe server written by others, on a free port of 127.0.0.1 and prints the port.

Its own command line listens on all interfaces and keeps its state in a file that all instances share.
"""

import socket
from aiohttp import web
from localstripe import resources
from localstripe.server import app

resources.Store.dump_to_disk = lambda store: None

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
web.run_app(app, sock=listener, print=None, access_log=None)
