"""Bodies in PyBullet worlds: read into mechanisms, their states read and written."""
