"""From flat settings to the engine's groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradewire_models.judges import default_judge_repository
from gradewire_models.repository.built import default_repository
from gradewire_server.settings.groups import (
    CacheConfig,
    ComputeConfig,
    DiskConfig,
    EngineConfig,
    RedisConfig,
    TritonConfig,
)
from gradewire_server.settings.judge import EmbeddedJudgeConfig, JudgeConfig, RemoteJudgeConfig

if TYPE_CHECKING:
    from pathlib import Path

    from gradewire_server.settings.server import Settings


def engine_config(settings: Settings) -> EngineConfig:
    """The engine's part; raises ValueError where its groups refuse a value."""
    return EngineConfig(
        model_repository=_model_repository(settings),
        default_model=settings.default_model,
        preload=settings.preload,
        compute=_compute(settings),
        cache=_cache(settings),
        triton=_triton(settings) if settings.backend == "triton" else None,
        wordnet_directory=settings.wordnet_directory.expanduser() if settings.wordnet_directory else None,
        judge=_judge(settings),
    )


def _model_repository(settings: Settings) -> Path:
    return settings.model_repository.expanduser() if settings.model_repository else default_repository()


def _compute(settings: Settings) -> ComputeConfig:
    return ComputeConfig(
        workers=settings.workers,
        intra_op_threads=settings.intra_op_threads,
        lone_run_threads=settings.lone_run_threads,
        allow_spinning=settings.allow_spinning,
        max_batch_tokens=settings.max_batch_tokens,
        max_batch_texts=settings.max_batch_texts,
        max_queue_tokens=settings.max_queue_tokens,
    )


def _cache(settings: Settings) -> CacheConfig:
    disk = redis = None
    if settings.disk_directory is not None:
        disk = DiskConfig(
            directory=settings.disk_directory.expanduser(),
            max_bytes=settings.disk_max_bytes,
            reference_max_bytes=settings.reference_max_bytes,
            prepared_max_bytes=settings.prepared_max_bytes,
        )
    if settings.redis_url is not None:
        url = settings.redis_url.get_secret_value()
        redis = RedisConfig(url=url, cluster=settings.redis_cluster, timeout_s=settings.redis_timeout_s)
    return CacheConfig(
        namespace=settings.namespace,
        memory_max_bytes=settings.memory_max_bytes,
        prediction_ttl_s=settings.prediction_ttl_s,
        disk=disk,
        redis=redis,
    )


def _triton(settings: Settings) -> TritonConfig:
    return TritonConfig(
        url=settings.triton_url,
        tls=settings.triton_tls,
        tls_ca=settings.triton_tls_ca,
        tls_cert=settings.triton_tls_cert,
        tls_key=settings.triton_tls_key,
        token=settings.triton_token.get_secret_value() if settings.triton_token else "",
        timeout_s=settings.triton_timeout_s,
        max_in_flight=settings.triton_max_in_flight,
        max_run_tokens=settings.triton_max_run_tokens,
        poll_s=settings.triton_poll_s,
        repair=settings.triton_repair,
    )


def _judge(settings: Settings) -> JudgeConfig:
    embedded = remote = None
    if settings.judge_backend == "embedded":
        repository = settings.judge_repository
        embedded = EmbeddedJudgeConfig(
            repository=(
                repository.expanduser() if repository else default_judge_repository(_model_repository(settings))
            ),
            form=settings.judge_form,
            threads=settings.judge_threads,
            max_item_tokens=settings.judge_max_item_tokens,
            nice=settings.judge_nice,
        )
    elif settings.judge_backend != "none":
        remote = RemoteJudgeConfig(
            url=settings.judge_url,
            model=settings.judge_remote_model,
            token=settings.judge_token.get_secret_value() if settings.judge_token else "",
            timeout_s=settings.judge_timeout_s,
            max_in_flight=settings.judge_max_in_flight,
            assistant_prefill=settings.judge_assistant_prefill,
            tls=settings.judge_tls,
            input_price=settings.judge_input_price,
            output_price=settings.judge_output_price,
        )
    return JudgeConfig(
        backend=settings.judge_backend,
        default=settings.judge_model,
        preload=settings.judge_preload,
        max_queue_items=settings.judge_max_queue_items,
        embedded=embedded,
        remote=remote,
    )
