set(allowed)
