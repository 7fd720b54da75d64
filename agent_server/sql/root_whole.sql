-- Record whether a root is synced as a folder, or single files were taken from it alone. in: root, whole
UPDATE roots SET whole = :'whole'::boolean WHERE root = :'root'::text AND whole <> :'whole'::boolean
