#include "agreement.h"

namespace kgrpo::judging {
namespace {

// In the place of the verdict on a GPU: any will do.
const std::string kAny = "*";

}  // namespace

const std::vector<Equivalence>& Equivalences() {
  static const std::string kInterpreted = "the interpreter's checks see what a GPU may get away with or not";
  static const std::string kOrder = "the interpreter runs streams in order and has no clock of its own";
  static const std::string kTiming =
      "work left out at the timing size: the evaluators look at times and outputs in another "
      "order, and model or measure the time";
  static const std::string kLong = "all of it would have to be interpreted to give it a time, and it is too much";
  static const std::string kPlace =
      "a GPU does not see where a tensor ends: what is read there is just data, and what "
      "is overwritten there may be another tensor";
  static const std::string kLacking = "the simulated device lacks it, so nothing is said of the kernel";
  static const std::string kBits =
      "sim wants the same bytes from the same inputs, a GPU's sums may be in another order";
  static const std::string kOthers =
      "the simulated device is nobody else's: what would change it for others does nothing";
  static const std::string kEnd = "how a forbidden call ends a process depends on what it was made through";
  static const std::string kLooksOn =
      "beside a GPU wrong values do not end the interpretation, and a check finds something at another size";
  static const std::vector<Equivalence> kRows = {
      {"wrong", "out_of_bounds", kLooksOn},
      {"wrong", "uninitialised", kLooksOn},
      {"wrong", "race", kLooksOn},
      {"race", "correct", kInterpreted},
      {"race", "wrong", kInterpreted},
      {"race", "non_deterministic", kInterpreted},
      {"race", "input_modified", kInterpreted},
      {"uninitialised", "correct", kInterpreted},
      {"uninitialised", "wrong", kInterpreted},
      {"uninitialised", "non_deterministic", kInterpreted},
      {"divergent", "correct", kInterpreted},
      {"divergent", "wrong", kInterpreted},
      {"divergent", "timeout", kInterpreted},
      {"correct", "unsynchronised", kOrder},
      {"correct", "hidden_work", kOrder},
      {"correct", "unfinished", kOrder},
      {"correct", "interference", kOrder},
      {"no_launch", "wrong", kTiming},
      {"no_launch", "implausible", kTiming},
      {"wrong", "implausible", kTiming},
      {"implausible", "wrong", kTiming},
      {"not_timed", "correct", kLong},
      {"not_timed", "wrong", kLong},
      {"out_of_bounds", "correct", kPlace},
      {"out_of_bounds", "wrong", kPlace},
      {"out_of_bounds", "input_modified", kPlace},
      {"unsupported", kAny, kLacking},
      {"non_deterministic", "correct", kBits},
      {"non_deterministic", "wrong", kBits},
      {"correct", "forbidden", kOthers},
      {"crash", "forbidden", kEnd},
      {"forbidden", "crash", kEnd},
  };
  return kRows;
}

std::optional<std::string> WhyTheyMaySay(const std::string& sim, const std::string& cuda) {
  if (sim == cuda) return "the same";
  for (const Equivalence& row : Equivalences()) {
    if (row.sim == sim && (row.cuda == cuda || row.cuda == kAny)) return row.why;
  }
  return std::nullopt;
}

}  // namespace kgrpo::judging
