"""`kb`: one small module per group of commands; main.py puts them together."""
