// Nothing to call: see ThreadSanitizerMutex.c.
