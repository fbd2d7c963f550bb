"""What closes loops: descriptions, and the rows that follow from them."""
