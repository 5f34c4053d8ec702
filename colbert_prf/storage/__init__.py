"""Folders that survive a crash: arrays, texts and ids in files, written whole, with checksums and a lock."""
