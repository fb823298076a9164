"""Is an expression identically zero?"""
