// A kernel's variables: where they lie, and the operands that hold their addresses.
#include <kgrpo/support/demangle.h>

#include "simt/lower/lowerer.h"
#include "simt/lower/lowering.h"

namespace kgrpo::simt {
namespace {

// Between shared arrays; a multiple of all banks, so conflicts stay as they are.
constexpr uint32_t kSharedRedZone = 128;

}  // namespace

std::string SourceName(std::string_view mangled) {
  std::string name = Demangled(std::string(mangled));
  if (name.empty()) return std::string(mangled);
  if (const size_t colon = name.rfind("::"); colon != std::string::npos) name = name.substr(colon + 2);
  return name;
}

Lowerer::Place Lowerer::FindVariable(std::string_view name) {
  if (const auto it = instance_->variables.find(name); it != instance_->variables.end()) return it->second;
  for (const Variable& variable : instance_->function->variables) {
    if (variable.name == name) return Materialise(variable, instance_->variables);
  }
  for (const Variable& variable : module_.variables) {
    if (variable.name != name) continue;
    if (variable.space == Variable::Space::kShared) return Materialise(variable, instance_->variables);
    if (const auto it = globals_.find(name); it != globals_.end()) return {Space::kGlobal, it->second};
  }
  Unsupported("'" + std::string(name) + "', which this module does not define,");
}

Lowerer::Place Lowerer::Materialise(const Variable& variable, std::unordered_map<std::string_view, Place>& into) {
  Place place;
  if (variable.space == Variable::Space::kShared) {
    place = {Space::kShared, SharedIndex(variable)};
  } else {  // .local, and .param of a call, which live in the thread's frame
    uint32_t& end = in_subroutine_ ? frame_end_ : kernel_.local_bytes;
    end = (end + variable.align - 1) / variable.align * variable.align;
    place = {Space::kLocal, end, in_subroutine_};
    end += static_cast<uint32_t>(variable.bytes);
  }
  into[variable.name] = place;
  return place;
}

uint32_t Lowerer::SharedIndex(const Variable& variable) {
  const auto [it, added] = shared_.try_emplace(variable.name, static_cast<uint32_t>(shared_variables_.size()));
  if (added) shared_variables_.push_back(&variable);
  return it->second;
}

Operand Lowerer::Address(std::string_view name, int64_t addend, uint32_t width) {
  if (functions_.contains(name) && !globals_.contains(name)) {
    const uint64_t address = FunctionAddress(module_, name);
    if (address == 0 || width != 8) Unsupported("the address of kernel '" + SourceName(name) + "'");
    return Constant(8, address);
  }
  const Place place = FindVariable(name);
  switch (place.space) {
    case Space::kGlobal: {
      ConstantPatch patch;
      patch.kind = ConstantPatch::Kind::kGlobal;
      patch.wide = width == 8;
      patch.value = place.offset;
      patch.addend = addend;
      if (width != 8) Unsupported("a 32-bit address of a global variable");
      return Patched(patch);
    }
    case Space::kShared: {
      const uint32_t at = NewConstant(width, 0);
      shared_fixups_.push_back({at, width, place.offset, addend});
      return ~static_cast<Operand>(at);
    }
    default:
      if (place.framed) return FrameOffset(place.offset + addend, width);
      return Constant(width, static_cast<uint64_t>(place.offset) + static_cast<uint64_t>(addend));
  }
}

// Lays out the shared arrays with red zones between, the dynamic one last, and fills in their addresses.
void Lowerer::FinishShared() {
  std::vector<uint32_t> offsets(shared_variables_.size());
  uint32_t end = 0, packed = 0;
  if (kernel_.reserved_shared) {  // in front, as on the device
    kernel_.shared.push_back({"(reserved)", 0, kReservedSharedBytes});
    end = kReservedSharedBytes + kSharedRedZone;
  }
  for (const bool dynamic : {false, true}) {
    if (dynamic) end = (end + 127) / 128 * 128;
    for (size_t i = 0; i < shared_variables_.size(); ++i) {
      const Variable& variable = *shared_variables_[i];
      if ((variable.bytes == 0) != dynamic) continue;
      if (dynamic) {
        offsets[i] = end;  // all dynamic arrays are the same memory
        continue;
      }
      end = (end + variable.align - 1) / variable.align * variable.align;
      packed = (packed + variable.align - 1) / variable.align * variable.align + static_cast<uint32_t>(variable.bytes);
      offsets[i] = end;
      kernel_.shared.push_back({SourceName(variable.name), end, static_cast<uint32_t>(variable.bytes)});
      end += static_cast<uint32_t>(variable.bytes) + kSharedRedZone;
    }
  }
  kernel_.static_shared_bytes = packed;
  kernel_.shared_layout_bytes = end;
  for (const SharedFixup& fixup : shared_fixups_) {
    const uint64_t value = offsets[fixup.variable] + static_cast<uint64_t>(fixup.addend);
    for (uint32_t l = 0; l < kLanes; ++l) {
      uint32_t* word = &kernel_.constants[fixup.at / 4 + l * (fixup.width / 4)];
      word[0] = static_cast<uint32_t>(value);
      if (fixup.width == 8) word[1] = static_cast<uint32_t>(value >> 32);
    }
  }
}

}  // namespace kgrpo::simt
