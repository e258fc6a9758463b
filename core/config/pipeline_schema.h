// The JSON Schema of a pipeline file's own keys: types, ranges, defaults, descriptions. Each plugin's own schema covers
// its options. Used by load.cc, and by the test that compares docs/pipeline.md with it.
#ifndef KGRPO_CONFIG_PIPELINE_SCHEMA_H
#define KGRPO_CONFIG_PIPELINE_SCHEMA_H

#include "config/schema.h"

namespace kgrpo {

const Schema& PipelineSchema();

}  // namespace kgrpo
#endif
