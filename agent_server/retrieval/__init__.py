"""The read path. `search.py` reads top to bottom."""
