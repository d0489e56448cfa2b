"""What the tests of posts share."""

from collections.abc import AsyncIterator

import pytest
from tests.client.rewards.holding_transport import HoldingTransport
from tests.client.small_server import SmallServer

from gradewire._transports.grpc_transport import GrpcTransport
from gradewire.rewards import RewardScorer
from gradewire.transport import Endpoint


@pytest.fixture
async def scorer(small_server: SmallServer) -> AsyncIterator[RewardScorer]:
    """A scorer whose server is late with dogs."""
    transport = HoldingTransport(
        GrpcTransport(Endpoint(small_server.address)), lambda item: "dog" in item.prediction, 60
    )
    async with RewardScorer(transport, deadline_s=4.0) as scorer:
        yield scorer
