"""The health check of an image: asks the server of this container whether it is ready, with TLS or without.

    python -m gradewire_server.probe

The exit code is 0 where /readyz answers 200. Which of the two the server speaks is tried, since a file or a flag may
say so, which a health check does not see. No certificate is checked: it is asked by its address on this machine.
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
    """Return whether the server whose HTTP is on this port of this machine takes calls.

    Args:
        port: 1 to 65535.
    """
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
        except (OSError, HTTPException):  # nobody there, or it speaks the other one
            continue
    return False


if __name__ == "__main__":
    sys.exit(0 if is_ready(os.environ.get("GRADEWIRE_HTTP_PORT", _DEFAULT_PORT)) else 1)
