"""What users touch: loops files, comparison with Bullet, reports, the command line."""
