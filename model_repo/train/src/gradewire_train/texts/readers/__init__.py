"""The user's own files of questions with answers, and of sentence pairs, as training texts."""
