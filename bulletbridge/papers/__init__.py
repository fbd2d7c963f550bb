"""Examples of the papers that the formulations come from, run again beside their numbers."""
