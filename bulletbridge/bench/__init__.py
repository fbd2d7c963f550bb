"""Our solver beside those that users would pick instead, on the same mechanisms."""
