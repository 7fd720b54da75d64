"""Claims read from texts by rules: pure functions over a passage and its headings.

`find.find_claims` is the way in. `definitions` and `sentences` know the forms, `alone` whether a statement is
understood without its surroundings, `wording` how a quote becomes a statement, `conflicts` which claims contradict
each other, and `check` whether a statement that was not made by a rule says what its quote says.
"""
