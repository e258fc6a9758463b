// custom_advantage.h - advantages by the user's own formula or program, in place of a baseline and a scale. Used by
// grpo_trainer.cc.
#pragma once
#include <kgrpo/sdk/collective.h>
#include <kgrpo/sdk/host.h>

#include <memory>
#include <span>

#include "trainer_grpo/advantage.h"
#include "trainer_grpo/grpo_options.h"

namespace kgrpo::program {
class Pool;
}
namespace kgrpo::expression {
class Expression;
}

namespace kgrpo::grpo {

// "Variables: ..." for the option's description.
std::string AdvantageVariables();

class CustomAdvantage {
 public:
  // Parses options.advantage, and starts options.advantage_program. Throws KGRPO_ERROR_INVALID if the formula cannot be
  // parsed, and what the program said.
  CustomAdvantage(const kgrpo_host* host, const GrpoOptions& options);
  ~CustomAdvantage();

  // Replaces the advantages of the samples whose return is not cut, if the options ask for it. On several ranks the
  // program of the first is asked. Throws KGRPO_ERROR_NOT_FINITE where a value is no finite number.
  void Apply(const AdvantageOptions& options, std::span<const RoundOutcome> samples, const Collective& ranks,
             Advantages* advantages) const;

 private:
  std::unique_ptr<expression::Expression> expression_;
  std::unique_ptr<program::Pool> program_;
};

}  // namespace kgrpo::grpo
