#include "interpreter/interpreted_cases.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "interpreter/tensors.h"
#include "judge/verdict/comparison.h"

namespace kgrpo::interpreter {

using evaluator::Argument;
using evaluator::CorrectnessCase;
using evaluator::Expected;
using evaluator::Parameter;

namespace {

using Clock = std::chrono::steady_clock;

// Returns true if the verdict is about values. All others end the candidate's process or come from a check.
bool IsOfValues(const Trouble& trouble) {
  return trouble.code == "wrong" || trouble.code == "non_deterministic" || trouble.code == "input_modified";
}

}  // namespace

InterpretedCases::InterpretedCases(LoadedKernel& loaded, const evaluator::Problem& problem,
                                   const std::vector<CorrectnessCase>& cases, Options options)
    : loaded_(loaded),
      problem_(problem),
      cases_(cases),
      options_(std::move(options)),
      values_decide_(options_.values_decide) {}

Trouble InterpretedCases::StartAgain() {
  placed_.reset();
  loaded_.session.memory().AllocateAside(false);
  return loaded_.Start();
}

// A call that could not decide whether there is a race (simt::RacingReads) is made again: now it can. Such a call may
// find further questions.
Trouble InterpretedCases::RunCase(size_t i, Pass pass) {
  constexpr int kMostCalls = 16;
  racing_reads_.clear();
  for (int call = 1;; ++call) {
    CallRecord record;
    Trouble trouble = CallCase(i, pass, &record);
    const bool finished = !trouble || IsOfValues(trouble);
    bool news = false;
    racing_reads_.resize(std::max(racing_reads_.size(), record.racing_reads.size()));
    for (size_t l = 0; l < record.racing_reads.size(); ++l) {
      news |= finished ? !record.racing_reads[l].crowded.empty() : record.may_be_unused;
      racing_reads_[l].Add(record.racing_reads[l]);
    }
    if ((!finished && trouble.code != "race") || !news || call == kMostCalls) return Chosen(i, pass, trouble, record);
    if (Trouble again = StartAgain()) return again;  // a call that was stopped has ended its process
  }
}

// CUDA leaves some outcomes open (simt::LaunchConfig::other_choices). If the outputs are wrong only by such a choice,
// the trouble is the race that leaves it open.
Trouble InterpretedCases::Chosen(size_t i, Pass pass, const Trouble& trouble, const CallRecord& record) {
  const bool wrong = pass == Pass::kOtherOrderChecked ? !trouble && DecidesValues() : trouble.code == "wrong";
  if (!wrong || record.choice.empty()) return trouble;
  CallRecord other;
  chooses_other_ = true;
  const Trouble of_other = CallCase(i, pass == Pass::kChecked ? pass : Pass::kOtherOrder, &other);
  chooses_other_ = false;
  return of_other ? trouble : Trouble{"race", "At " + cases_[i].where + ": " + record.choice};
}

Trouble InterpretedCases::CallCase(size_t i, Pass pass, CallRecord* record_of) {
  options_.before_each();
  if (warp_instructions_ > options_.most_warp_instructions) {
    return {"unavailable", "The correctness cases execute more than " +
                               std::to_string(options_.most_warp_instructions / 1'000'000) +
                               " million warp instructions."};
  }
  const CorrectnessCase& one = cases_[i];
  const std::string& where = one.where;
  auto placed = std::make_unique<Placed>();
  placed->i = i;
  placed->arguments = evaluator::DrawArguments(problem_, one);
  const std::vector<Argument>& arguments = placed->arguments;
  loaded_.session.memory().AllocateAside(one.further);
  if (!one.same_place || placed_ == nullptr || placed_->i + 1 != i) placed_.reset();
  placed->tensors = std::make_unique<Tensors>(loaded_.session.memory(), problem_, one, arguments,
                                              placed_ == nullptr ? nullptr : placed_->tensors.get());
  placed_ = std::move(placed);
  const Tensors& tensors = *placed_->tensors;
  CallRecord& record = *record_of;
  const bool checked = pass == Pass::kChecked || pass == Pass::kOtherOrderChecked;
  const BlockChoice choice = {.last_block_first = pass == Pass::kOtherOrder || pass == Pass::kOtherOrderChecked,
                              .unwritten_shared = unwritten_shared_,
                              .racing_reads = &racing_reads_,
                              .other_choices = (pass == Pass::kOtherOrder) != chooses_other_};
  const Trouble trouble = loaded_.Call(tensors, checked ? simt::Mode::kChecked : simt::Mode::kPlain, choice, &record);
  warp_instructions_ += record.warp_instructions;
  may_be_unused_ = record.may_be_unused && trouble.code == "uninitialised";
  host_timed_out_ = record.host_timed_out;
  // Further cases leave the time as it is: it follows from what the listed ones show.
  for (const std::string& note : one.further ? std::vector<std::string>() : record.notes) {
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
  }
  runs_whole_ =
      runs_whole_ ||
      (!one.further && (record.data_decides || record.launches > 1 || !record.independent || record.host_writes));
  if (trouble) return {trouble.code, "At " + where + ": " + trouble.sentence};
  if (pass == Pass::kOtherOrderChecked) return {};  // the values are known to be wrong already
  // Where the call before, at the same addresses, did launch, the outputs tell.
  if (record.launches == 0 && !one.same_place)
    return {"no_launch", "At " + where + ": the launch function launches no kernel."};
  if (const std::string name = tensors.WrittenBetweenRows(); !name.empty())
    return {"out_of_bounds", "At " + where + ": It writes between the rows of " + name + "."};
  std::vector<std::vector<uint8_t>> outputs(arguments.size());
  for (size_t p = 0; p < arguments.size(); ++p) {
    if (problem_.parameters[p].IsWritten()) outputs[p] = tensors.Read(p);
  }
  const std::string modified = tensors.ModifiedInput();
  if (first_outputs_.empty()) first_outputs_ = outputs;
  if (!modified.empty()) return {"input_modified", "At " + where + ": the input " + modified + " was overwritten."};
  if (options_.check) {
    const Clock::time_point asked = Clock::now();
    const evaluator::Checker::Result result = options_.check(arguments, outputs);
    oracle_seconds_ += std::chrono::duration<double>(Clock::now() - asked).count();
    if (!result.right) return {"wrong", "At " + where + ": " + result.sentence + "."};
    return {};
  }
  first_chose_ = first_chose_ || (i == 0 && !record.choice.empty());
  if (pass == Pass::kRepeat && !first_chose_) {
    for (size_t p = 0; p < arguments.size(); ++p) {
      if (outputs[p] != first_outputs_[p]) {
        return {"non_deterministic",
                "A second call with the same inputs gives a different " + problem_.parameters[p].name + "."};
      }
    }
    return {};
  }
  return options_.expected ? JudgeOutputs(i, outputs) : Trouble{};
}

evaluator::CaseRule InterpretedCases::RuleOf(size_t i, const std::vector<Argument>& arguments,
                                             const std::vector<Expected>& expected) const {
  const auto of_case = [i](const auto& compute) -> evaluator::Compute {
    if (!compute) return {};
    return [i, &compute](const std::vector<Argument>& inputs) { return compute(i, inputs); };
  };
  return {problem_,
          cases_[i],
          arguments,
          expected,
          of_case(options_.oracle),
          of_case(options_.reference),
          options_.is_reference,
          options_.known};
}

Trouble InterpretedCases::JudgeOutputs(size_t i, const std::vector<std::vector<uint8_t>>& outputs) {
  const Clock::time_point asked = Clock::now();
  std::vector<Expected> expected;
  try {
    expected = options_.expected(i, placed_->arguments);
  } catch (const Error& error) {
    if (!cases_[i].further || error.code() != KGRPO_ERROR_INVALID) throw;
    NoteUndecided(i, "nothing says which outputs are right");
    return {};
  }
  std::vector<std::vector<bool>> unwritten(outputs.size());
  for (size_t p = 0; p < outputs.size(); ++p) {
    if (problem_.parameters[p].IsWritten()) unwritten[p] = placed_->tensors->Unwritten(p);
  }
  evaluator::CaseRule rule = RuleOf(i, placed_->arguments, expected);
  if (!options_.values_decide) rule.oracle = rule.reference = {};
  const evaluator::CaseVerdict verdict = evaluator::JudgeOutputs(rule, outputs, unwritten);
  oracle_seconds_ += std::chrono::duration<double>(Clock::now() - asked).count();
  if (verdict.trouble)
    return {verdict.trouble.code, "At " + cases_[i].where + ": " + verdict.trouble.sentence + ".",
            verdict.trouble.wrong};
  if (!verdict.decides) NoteUndecided(i, verdict.why);
  for (size_t p = 0; p < verdict.errors.size(); ++p) {
    if (problem_.parameters[p].IsWritten()) worst_.Add(p, verdict.errors[p]);
  }
  return {};
}

// A kernel's author reads it of listed cases only: in the others nothing was wrong with the kernel.
void InterpretedCases::NoteUndecided(size_t i, std::string why) {
  const CorrectnessCase& one = cases_[i];
  if (why.ends_with('.')) why.pop_back();
  if (options_.is_reference || !one.further) notes_.push_back("At " + one.where + " nothing is decided: " + why);
  if (options_.is_reference && one.drawn) undecided_.push_back(evaluator::SizeText(*one.drawn) + ": " + why);
}

// After a call that ended in trouble other than wrong values. If the case decides nothing, the next one needs a
// process.
bool InterpretedCases::DecidesNothing(size_t i) {
  if (!cases_[i].further) return false;
  const std::vector<Argument> arguments = evaluator::DrawArguments(problem_, cases_[i]);
  return evaluator::ReferenceFails(RuleOf(i, arguments, {}));
}

Trouble InterpretedCases::RunAll() {
  const auto ends = [&](const Trouble& trouble) { return trouble && (values_decide_ || !IsOfValues(trouble)); };
  for (size_t i = 0; i < cases_.size(); ++i) {
    // Without expected values no wrong value shows where to look, so the checks run in every case.
    const Pass other = DecidesValues() ? Pass::kOtherOrder : Pass::kOtherOrderChecked;
    Trouble trouble = RunCase(i, cases_[i].variant == 0 ? Pass::kChecked : other);
    if (trouble.code == "wrong" && cases_[i].variant != 0) {
      if (const Trouble found = RunCase(i, Pass::kOtherOrderChecked); found) trouble = found;
    }
    if (trouble && !IsOfValues(trouble) && trouble.code != "unavailable" && DecidesNothing(i)) {
      NoteUndecided(i, trouble.sentence.substr(std::string("At : ").size() + cases_[i].where.size()));
      if (Trouble again = StartAgain()) return again;
      continue;
    }
    if (ends(trouble)) return trouble;
  }
  // Once more with the first case's inputs, at other addresses: state kept between calls shows here.
  const Trouble trouble = RunCase(0, Pass::kRepeat);
  return ends(trouble) ? trouble : Trouble{};
}

// Called if a kernel reads vectors or matrices of shared memory that were not written completely. That is harmless if
// the unwritten values are not used. The cases run again with unwritten memory filled with large numbers, zeros and
// NaNs. All arithmetic propagates NaNs; the large numbers catch what ignores them (fmaxf). Returns `found`, the
// accusation, if a run gives wrong values. Any other trouble of such a run (a limit, a fault) is returned as it is,
// since it does not show a use.
Trouble InterpretedCases::RunOverOthers(const Trouble& found) {
  values_decide_ = true;
  std::vector<std::vector<uint8_t>> of_first;
  for (const uint8_t unwritten : {0x7B, 0x00, 0xFF}) {
    // The call that was stopped has ended its process.
    if (Trouble trouble = StartAgain()) return trouble;
    unwritten_shared_ = unwritten;
    first_outputs_.clear();
    worst_ = {};
    if (const Trouble trouble = RunAll()) return IsOfValues(trouble) ? found : trouble;
    // Without expected values the outputs must at least be the same.
    if (DecidesValues()) continue;
    if (of_first.empty()) of_first = first_outputs_;
    if (first_outputs_ != of_first) return found;
  }
  return {};
}

Trouble InterpretedCases::Run() {
  Trouble trouble = RunAll();
  if (trouble && may_be_unused_) trouble = RunOverOthers(trouble);
  placed_.reset();  // a pointer that the kernel keeps is caught at the timing size
  loaded_.session.memory().AllocateAside(false);
  return trouble;
}

InterpretedCases::Options RulesOf(const evaluator::OpenProblem& open, const std::vector<CorrectnessCase>& cases,
                                  ReferenceOutputsOf reference) {
  InterpretedCases::Options rules;
  if (reference) {
    rules.reference = [&cases, reference = std::move(reference)](size_t i, const auto& arguments) {
      return reference(cases[i], arguments);
    };
  }
  if (open.checker != nullptr) {
    rules.check = [&open](const auto& arguments, const auto& outputs) {
      return open.checker->Check(open.problem, arguments, outputs);
    };
  } else if (open.oracle != nullptr) {
    rules.oracle = [&open, &cases](size_t i, const auto& arguments) {
      return open.oracle->Run(open.problem, *cases[i].size, arguments);
    };
  }
  if (const auto compute = rules.oracle ? rules.oracle : rules.reference; compute && !rules.check) {
    rules.known = &open.known;
    rules.expected = [&open, &cases, compute](size_t i, const auto& arguments) {
      return open.known.Outputs(cases[i], [&] { return compute(i, arguments); });
    };
  }
  return rules;
}

}  // namespace kgrpo::interpreter
