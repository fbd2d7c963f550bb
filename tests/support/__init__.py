"""What several tests share: models, worlds, and functions that other processes import."""
