"""Loops files, models and what they become: loaded, assembled systems."""
