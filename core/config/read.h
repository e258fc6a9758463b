// Converts a checked tree to the PipelineConfig that the loop uses. Used by load.cc.
#ifndef KGRPO_CONFIG_READ_H
#define KGRPO_CONFIG_READ_H

#include "config/node.h"
#include "config/pipeline.h"

namespace kgrpo {

// `root` satisfies the host's schema (pipeline_schema.h) and has its defaults filled in.
PipelineConfig ReadPipeline(const Node& root);

}  // namespace kgrpo
#endif
