// A breach by a source of the host: it knows the name of an evaluator's metric, and of a plugin.
const char* const kMetric = "occupancy";
const char* const kPlugin = "one";
