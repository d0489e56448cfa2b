"""What the stand-in backend answers, on the real server."""

import tritonclient.grpc
from tests.support.triton import TritonServer

MODEL = "all-MiniLM-L6-v2"


def test_is_ready(triton: TritonServer) -> None:
    assert triton.is_model_ready(MODEL)
    with tritonclient.grpc.InferenceServerClient(triton.url) as client:
        assert client.is_server_ready()
        assert client.get_model_metadata(MODEL).versions == ["1"]
