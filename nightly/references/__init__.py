"""References in texts: what is named, and the place that it names. Pure: no database.

`manuscript` puts a document together from its passages, `outline` finds its numbered places, `grammar` and `markup`
find what refers to something, `resolve` finds what it refers to.
"""
