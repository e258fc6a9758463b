#include "simt/lower/integer_meaning.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

// Meanings of the integer handlers that FindAlu chooses. Types of one width may share a handler: then they mean the
// same.
const std::unordered_map<Handler, IntegerMeaning>& Meanings() {
  static const std::unordered_map<Handler, IntegerMeaning> kMeanings = [] {
    std::unordered_map<Handler, IntegerMeaning> all;
    const auto add = [&](const std::string& name, const IntegerMeaning& meaning) {
      if (const AluChoice choice = FindAlu(Opcode(name)); choice.handler != nullptr)
        all.emplace(choice.handler, meaning);
    };
    struct Named {
      const char* name;
      Type type;
      Type twice;
    };
    const Named types[] = {{"u32", Type::kU32, Type::kU64},
                           {"s32", Type::kS32, Type::kS64},
                           {"u64", Type::kU64, Type::kU64},
                           {"s64", Type::kS64, Type::kS64}};
    const std::pair<const char*, Operation> plain[] = {
        {"mov", Operation::kCopy},     {"add", Operation::kAdd},      {"sub", Operation::kSub},
        {"mul.lo", Operation::kMulLo}, {"mul.hi", Operation::kMulHi}, {"mad.lo", Operation::kMadLo},
        {"div", Operation::kDiv},      {"rem", Operation::kRem},      {"shr", Operation::kShr},
        {"min", Operation::kMin},      {"max", Operation::kMax},      {"neg", Operation::kNeg},
        {"selp", Operation::kSelect}};
    const std::pair<const char*, Relation> relations[] = {
        {"eq", Relation::kEq}, {"ne", Relation::kNe}, {"lt", Relation::kLt}, {"le", Relation::kLe},
        {"gt", Relation::kGt}, {"ge", Relation::kGe}, {"lo", Relation::kLt}, {"ls", Relation::kLe},
        {"hi", Relation::kGt}, {"hs", Relation::kGe}};
    for (const Named& type : types) {
      const std::string suffix = std::string(".") + type.name;
      for (const auto& [name, operation] : plain)
        add(name + suffix, {.operation = operation, .type = type.type, .to = type.type});
      for (const auto& [name, relation] : relations)
        add(std::string("setp.") + name + suffix,
            {.operation = Operation::kCompare, .type = type.type, .relation = relation});
      if (TypeBytes(type.type) == 4) {
        add("mul.wide" + suffix, {.operation = Operation::kMulWide, .type = type.type, .to = type.twice});
        add("mad.wide" + suffix, {.operation = Operation::kMadWide, .type = type.type, .to = type.twice});
      }
      for (const Named& to : types)
        add(std::string("cvt.") + to.name + suffix,
            {.operation = Operation::kConvert, .type = type.type, .to = to.type});
    }
    for (const auto& [bits, type] : {std::pair{".b32", Type::kU32}, {".b64", Type::kU64}}) {
      const std::pair<const char*, Operation> bitwise[] = {{"mov", Operation::kCopy}, {"shl", Operation::kShl},
                                                           {"and", Operation::kAnd},  {"or", Operation::kOr},
                                                           {"not", Operation::kNot},  {"selp", Operation::kSelect}};
      for (const auto& [name, operation] : bitwise)
        add(std::string(name) + bits, {.operation = operation, .type = type, .to = type});
    }
    const std::pair<const char*, Logic> logic[] = {{"mov.pred", Logic::kMove},
                                                   {"not.pred", Logic::kNot},
                                                   {"and.pred", Logic::kAnd},
                                                   {"or.pred", Logic::kOr},
                                                   {"xor.pred", Logic::kXor}};
    for (const auto& [name, which] : logic) add(name, {.operation = Operation::kPredicate, .logic = which});
    return all;
  }();
  return kMeanings;
}

}  // namespace

const IntegerMeaning* MeaningOf(Handler handler) {
  const auto found = Meanings().find(handler);
  return found == Meanings().end() ? nullptr : &found->second;
}

}  // namespace kgrpo::simt
