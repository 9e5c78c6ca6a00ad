"""Files and LMDB environments: records with checksums, syncs, free space."""
