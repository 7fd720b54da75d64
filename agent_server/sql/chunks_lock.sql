-- Keep everybody away from the passages until the end of the transaction, for catalogue changes that take a moment.
LOCK TABLE chunks IN ACCESS EXCLUSIVE MODE
