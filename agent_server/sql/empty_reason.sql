-- What a collection holds, to say why a search found nothing.
SELECT count(*) AS chunks, count(*) FILTER (WHERE canonical) AS searched, count(*) FILTER (WHERE retired) AS retired,
       count(*) FILTER (WHERE canonical AND embedding IS NOT NULL) AS with_vector
FROM chunks
