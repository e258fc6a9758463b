// What no source of the host may do: know the name of what an evaluator measures, or of a plugin.
const char* const kMetric = "occupancy";
const char* const kPlugin = "one";
