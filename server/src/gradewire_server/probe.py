"""The container image's health check: `python -m gradewire_server.probe`.

The exit code is 0 if the container's server answers /readyz with 200. The probe does not know the settings, so it tries
both HTTP and HTTPS. It checks no certificate, because it connects to the loopback address.
"""

import os
import ssl
import sys
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Final

_TIMEOUT_S: Final = 2.0
_DEFAULT_PORT: Final = "9464"


def is_ready(port: int | str) -> bool:
    """Return True if the server on this machine is ready. `port` (1 to 65535) is its port for operational HTTP."""
    unchecked = ssl.create_default_context()
    unchecked.check_hostname = False
    unchecked.verify_mode = ssl.CERT_NONE
    for scheme, context in (("http", None), ("https", unchecked)):
        asked = f"{scheme}://127.0.0.1:{port}/readyz"
        try:
            with urllib.request.urlopen(asked, timeout=_TIMEOUT_S, context=context) as reply:  # noqa: S310 - our own
                ready: bool = reply.status == 200
                return ready
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except (OSError, HTTPException):  # nothing listens on the port, or the server uses the other protocol
            continue
    return False


if __name__ == "__main__":
    sys.exit(0 if is_ready(os.environ.get("GRADEWIRE_HTTP_PORT", _DEFAULT_PORT)) else 1)
