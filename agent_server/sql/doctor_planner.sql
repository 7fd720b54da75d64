-- Settings that keep the planner from plans, and where they come from ('database', 'user', 'configuration file' ...).
-- out: name, source
SELECT name, source FROM pg_settings
WHERE name LIKE 'enable\_%' AND setting = 'off' AND boot_val = 'on' AND source NOT IN ('default', 'session')
ORDER BY name
