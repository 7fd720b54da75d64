-- Keep everybody from writing passages until the end of the transaction; searches go on.
LOCK TABLE chunks IN SHARE ROW EXCLUSIVE MODE
