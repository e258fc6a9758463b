// The plugins that are used where neither a pipeline nor an option names one: the host's only names of plugins
// (tests/boundary holds that). Used by cli/ and by config/pipeline_keys.cc.
#ifndef KGRPO_BASE_DEFAULT_PLUGINS_H
#define KGRPO_BASE_DEFAULT_PLUGINS_H

#define KGRPO_DEFAULT_EVALUATOR "evaluator_sim"    // of commands without a pipeline: it needs no device
#define KGRPO_DEFAULT_POLICY "policy_qwen"         // of commands on a model's folder
#define KGRPO_DEFAULT_TRANSPORT "transport_torch"  // between the ranks of a run
#define KGRPO_DEFAULT_OBSERVER "observer_tensorboard"
#define KGRPO_DEFAULT_SECOND_OBSERVER "observer_metrics"

#endif
