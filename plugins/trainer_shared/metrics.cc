#include "trainer_shared/metrics.h"

namespace kgrpo::trainer {

void DeclareTrainingMetrics(const Host& host) {
  const auto declare = [&](std::string_view name, std::string_view label,
                           kgrpo_metric_direction direction = KGRPO_METRIC_NEUTRAL,
                           kgrpo_metric_combination combination = KGRPO_METRIC_MEAN) {
    host.Declare(
        {.name = name, .label = label, .group = kMetricGroup, .direction = direction, .combination = combination});
  };
  declare("loss", "loss", KGRPO_METRIC_LOWER_IS_BETTER);
  declare("grad_norm", "gradient norm");
  declare("learning_rate", "learning rate");
  host.Declare({.name = "entropy", .label = "entropy of a token", .group = kMetricGroup, .unit = "nats"});
  declare("optimizer_steps", "optimiser steps", KGRPO_METRIC_NEUTRAL, KGRPO_METRIC_SUM);
  // Totals of the run so far: the latest value is the greatest.
  declare("skipped_steps", "optimiser steps skipped", KGRPO_METRIC_LOWER_IS_BETTER, KGRPO_METRIC_MAXIMUM);
  declare("num_tokens", "tokens seen", KGRPO_METRIC_NEUTRAL, KGRPO_METRIC_MAXIMUM);
}

}  // namespace kgrpo::trainer
