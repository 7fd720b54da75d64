"""From files to passages: validate, extract, chunk, store."""
