// The JSON Schema of a pipeline file's own keys: types, ranges, defaults, descriptions. What plugins' options may hold
// is theirs to say. Used by load.cc, and by the test that holds docs/pipeline.md to it.
#ifndef KGRPO_CONFIG_PIPELINE_SCHEMA_H
#define KGRPO_CONFIG_PIPELINE_SCHEMA_H

#include "config/schema.h"

namespace kgrpo {

const Schema& PipelineSchema();

}  // namespace kgrpo
#endif
