"""Measures retrieval: gold questions and BEIR folders, through the search that the tools call."""
