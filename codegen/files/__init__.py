"""Files: their digests, their first lines, what they depend on.

In: files and texts.
Out: hashes, headers, modules that were loaded.
"""
