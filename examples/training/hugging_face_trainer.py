"""Validation in Hugging Face: a Seq2SeqTrainer generates answers, and `compute_metrics` submits them.

Start a server, then run: python -m examples.training.hugging_face_trainer --server 127.0.0.1:50051 --directory runs/hf
"""

import argparse
from pathlib import Path

import torch
from examples.training.questions import NUMBERS, ROWS
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    DataCollatorForSeq2Seq,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    set_seed,
)

from gradewire.integrations import ValidationSettings
from gradewire.integrations.training.hugging_face import ValidationCallback


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Make a tokenizer with one token for each word in the questions and answers."""
    words = ["<pad>", "</s>", "<unk>", "What", "is", "plus", "?", *NUMBERS]
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))  # noqa: S106 - no secret
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",  # noqa: S106 - no secret
        eos_token="</s>",  # noqa: S106 - no secret
        unk_token="<unk>",  # noqa: S106 - no secret
    )


def main() -> None:
    """Train the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="127.0.0.1:50051", help="HOST:PORT of a gradewire server")
    parser.add_argument("--directory", type=Path, required=True, help="directory of the run: spool, logs, checkpoints")
    parser.add_argument("--metrics", default="exact_match,smile", help="metrics to score with")
    parser.add_argument(
        "--wait-s", type=float, default=0.0, help="wait for scores, and keep the best checkpoint by them"
    )
    arguments = parser.parse_args()

    set_seed(0)
    torch.set_num_threads(1)
    tokenizer = make_tokenizer()
    model = T5ForConditionalGeneration(
        T5Config(
            vocab_size=len(tokenizer),
            d_model=64,
            d_kv=16,
            d_ff=128,
            num_layers=1,
            num_heads=4,
            dropout_rate=0.0,
            decoder_start_token_id=0,
            pad_token_id=0,
            eos_token_id=1,
        )
    )
    encoded = [
        tokenizer(row["question"], return_token_type_ids=False)
        | {"labels": tokenizer(row["references"][0])["input_ids"]}
        for row in ROWS
    ]
    validation = ValidationCallback(
        ValidationSettings(arguments.server, arguments.metrics, directory=arguments.directory / "validation"),
        ROWS,
        processing_class=tokenizer,
        wait_s=arguments.wait_s,
    )
    best = {"metric_for_best_model": "exact_match", "load_best_model_at_end": True} if arguments.wait_s else {}
    trainer = Seq2SeqTrainer(
        model,
        Seq2SeqTrainingArguments(
            str(arguments.directory),
            num_train_epochs=50,
            per_device_train_batch_size=25,
            per_device_eval_batch_size=100,
            learning_rate=2e-3,
            eval_strategy="steps",
            eval_steps=40,
            save_strategy="steps",
            save_steps=40,
            save_total_limit=1,
            predict_with_generate=True,
            generation_max_length=4,
            use_cpu=True,
            report_to="none",
            disable_tqdm=True,
            **best,
        ),
        data_collator=DataCollatorForSeq2Seq(tokenizer, model),
        train_dataset=encoded,
        eval_dataset=encoded,
        processing_class=tokenizer,
        compute_metrics=validation.compute_metrics,
        callbacks=[validation],
    )
    trainer.train()
    trainer.save_state()


if __name__ == "__main__":
    main()
