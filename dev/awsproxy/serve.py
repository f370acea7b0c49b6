"""Serves moto on a free loopback port with one thread.

One thread makes every call atomic: moto's models have no locks. The port is
printed once it accepts connections; the process ends with its standard input,
so that it never outlives the devstack.
"""

import os
import sys
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from waitress.server import create_server


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


server = create_server(
    DomainDispatcherApplication(create_backend_app),
    host="127.0.0.1",
    port=0,
    threads=1,
    connection_limit=1000,
    max_request_body_size=128 << 20,
)
threading.Thread(target=end_with_parent, daemon=True).start()
print("listening", server.effective_port, flush=True)
server.run()
