"""How accelerations follow from rows, and how states are brought back onto them."""
