"""Definitions in texts, found by their form alone: pure functions over a text and its headings.

`find.find_definitions` is the way in. `units` knows where a text's entries and sentences begin, `terms` what can be a
term, `scope` where a definition says that it holds, `sentences` and `entries` the forms.
"""
