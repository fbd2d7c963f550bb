"""One adapter for each simulator, all alike to the measurements."""
