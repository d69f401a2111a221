"""Write a context: read inputs, cut frames, build filters, store segments, commit a generation."""
