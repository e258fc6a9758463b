"""stub"""
class Missing(Exception): pass
def summed(call): return 1
def without_kernels(signature, missing): return "// none: %s\n" % missing
class Reference:
    def __init__(self, importer): raise Missing("not yet")
