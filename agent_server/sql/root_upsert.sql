-- Record where a root lies now. in: root, path
INSERT INTO roots (root, path) VALUES (:'root'::text, :'path'::text)
ON CONFLICT (root) DO UPDATE SET path = excluded.path
