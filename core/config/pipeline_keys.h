// The keys of a pipeline file: their JSON Schema, and the PipelineConfig of a tree that satisfies it. Each plugin's own
// schema covers its options. Used by load.cc, and by the test that compares docs/pipeline.md with the schema.
#ifndef KGRPO_CONFIG_PIPELINE_KEYS_H
#define KGRPO_CONFIG_PIPELINE_KEYS_H

#include "config/node.h"
#include "config/pipeline.h"
#include "config/schema.h"

namespace kgrpo {

const Schema& PipelineSchema();

// `root` satisfies the schema and has its defaults filled in.
PipelineConfig ReadPipeline(const Node& root);

}  // namespace kgrpo
#endif
