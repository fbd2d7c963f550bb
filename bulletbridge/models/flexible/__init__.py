"""Links made flexible: beams as modes or as segments, and their linearised equations."""
