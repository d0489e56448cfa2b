"""A language model of a few thousand weights with a tokenizer of whole words, made here: nothing is downloaded."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = ("a", "small", "cat", "dog", "sleeps", "barks", "on", "the", "sill", "what", "there", "answer", "is", "red")


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Of a few words and the marks that trainers want."""
    vocabulary = {word: number for number, word in enumerate(("<pad>", "<eos>", "<unk>", *WORDS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))  # noqa: S106 - a word
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    marks = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, padding_side="left", **marks)


def tiny_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """One layer with random weights, the same every time."""
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=64,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )
