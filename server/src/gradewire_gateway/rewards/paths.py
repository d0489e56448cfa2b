"""Paths of the posts; OpenRLHF's is its own reward server's, slime takes any, and NeMo Gym asks for these."""

from typing import Final

OPENRLHF_PATH: Final = "/get_reward"
SLIME_PATH: Final = "/slime/reward"
VERIFY_PATH: Final = "/verify"
SEED_PATH: Final = "/seed_session"
AGGREGATE_PATH: Final = "/aggregate_metrics"
