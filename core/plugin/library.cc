#include "plugin/library.h"

#include <dlfcn.h>  // dlerror
#include <elf.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>
#include <link.h>  // ElfW
#include <boost/dll/shared_library.hpp>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/faults.h"

namespace kgrpo {
namespace {

// The first fields have one layout in all classes: e_ident, e_type, e_machine.
using Header = ElfW(Ehdr);

std::optional<Header> ReadHeader(const std::filesystem::path& path) {
  Header header{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header))) return {};
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  return header;
}

std::string MachineName(unsigned machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "aarch64";
    case EM_386: return "32-bit x86";
    case EM_ARM: return "32-bit ARM";
    case EM_RISCV: return "RISC-V";
    case EM_PPC64: return "POWER";
    case EM_S390: return "s390";
    default: return "machine " + std::to_string(machine) + " (ELF's number)";
  }
}

// The line of a file LIBRARY.hint beside a plugin: where to get the library; "" without the file.
std::string HintOn(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// True if the file's bytes contain the library's name, as its list of needed libraries does.
bool NamesLibrary(const std::filesystem::path& path, const std::string& library) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  return bytes.find(library) != std::string::npos;
}

std::string ClassName(unsigned char elf_class) {
  return elf_class == ELFCLASS64 ? "64-bit" : elf_class == ELFCLASS32 ? "32-bit" : "unknown";
}

// Returns why this machine cannot load the file: "was built for aarch64; this machine is x86-64". Empty if the file's
// header shows no reason.
std::string ForeignElf(const std::filesystem::path& path) {
  // This program's own header shows the format that this machine loads.
  const std::optional<Header> own = ReadHeader("/proc/self/exe"), theirs = ReadHeader(path);
  if (!own || !theirs) return "";
  const bool same_order = theirs->e_ident[EI_DATA] == own->e_ident[EI_DATA];
  if (same_order && theirs->e_machine != own->e_machine)
    return "was built for " + MachineName(theirs->e_machine) + "; this machine is " + MachineName(own->e_machine);
  if (!same_order)
    return "was built for a machine of the other byte order; this machine is " + MachineName(own->e_machine);
  if (theirs->e_ident[EI_CLASS] != own->e_ident[EI_CLASS]) {
    return "was built as " + ClassName(theirs->e_ident[EI_CLASS]) + " code; this program is " +
           ClassName(own->e_ident[EI_CLASS]);
  }
  if (theirs->e_type == ET_REL) return "is an object file, not a shared library: link it with -shared";
  return "";
}

// Returns the linker's `reason` for not loading the file, or a plainer one if the file needs a library that is missing.
std::string PlainLinkerReason(const std::filesystem::path& path, const std::string& reason) {
  const std::string missing = ": cannot open shared object file: No such file or directory";
  const std::string undefined = ": undefined symbol: ";
  if (reason.ends_with(missing)) {
    const std::string library = reason.substr(0, reason.size() - missing.size());
    const std::string hint = HintOn(path.parent_path() / (library + ".hint"));
    return "needs " + library + ", which is not installed (" +
           (hint.empty() ? "ldd " + path.string() + " lists what it needs" : hint) + ")";
  }
  if (reason.find(undefined) == std::string::npos) return reason;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), ignored)) {
    // A needed library of another release has other symbols.
    const std::string library = entry.path().stem().string();
    if (entry.path().extension() != ".hint" || !NamesLibrary(path, library)) continue;
    return reason + ": " + library + " is of another release (" + HintOn(entry.path()) + ")";
  }
  return reason;
}

template <typename T>
constexpr bool kHasPrefix = offsetof(T, struct_size) == offsetof(InterfacePrefix, struct_size) &&
                            offsetof(T, options_schema) == offsetof(InterfacePrefix, options_schema);
static_assert(kHasPrefix<kgrpo_policy_interface> && kHasPrefix<kgrpo_coder_interface> &&
              kHasPrefix<kgrpo_evaluator_interface> && kHasPrefix<kgrpo_reward_interface> &&
              kHasPrefix<kgrpo_trainer_interface> && kHasPrefix<kgrpo_observer_interface>);

// The dynamic linker's last message, without the path in front, which the caller shows anyway.
std::string LinkerReason(const std::filesystem::path& path) {
  const char* said = dlerror();
  std::string reason = said == nullptr ? "the dynamic linker gave no reason" : said;
  const std::string prefix = path.string() + ": ";
  if (reason.starts_with(prefix)) reason.erase(0, prefix.size());
  return reason;
}

// Never unloads it: see the head of library.h. [any thread]
const boost::dll::shared_library& KeepForEver(std::unique_ptr<boost::dll::shared_library> library) {
  static std::mutex mutex;
  static auto* const libraries = new std::vector<std::unique_ptr<boost::dll::shared_library>>();
  const std::lock_guard lock(mutex);
  return *libraries->emplace_back(std::move(library));
}

}  // namespace

PluginLibrary::PluginLibrary(const std::filesystem::path& path)
    : path_(std::filesystem::absolute(path).lexically_normal()) {
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) throw Error(KGRPO_ERROR_NOT_FOUND, "no such file");
  if (std::filesystem::is_directory(path_, error)) throw Error(KGRPO_ERROR_INVALID, "it is a folder");

  if (const std::string foreign = ForeignElf(path_); !foreign.empty()) throw Error(KGRPO_ERROR_UNSUPPORTED, foreign);
  auto library = std::make_unique<boost::dll::shared_library>();
  boost::dll::fs::error_code load_error;
  dlerror();  // forget older errors
  library->load(boost::dll::fs::path(path_.string()), load_error,
                boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (load_error) throw Error(KGRPO_ERROR_INVALID, PlainLinkerReason(path_, LinkerReason(path_)));
  const boost::dll::shared_library& opened = KeepForEver(std::move(library));
  WatchExit();

  if (!opened.has(KGRPO_PLUGIN_ENTRY)) {
    throw Error(KGRPO_ERROR_INVALID, "not a kgrpo plugin: it does not export " KGRPO_PLUGIN_ENTRY);
  }
  const auto entry = opened.get<const kgrpo_plugin*()>(KGRPO_PLUGIN_ENTRY);
  plugin_ = entry();
  if (plugin_ == nullptr) throw Error(KGRPO_ERROR_INVALID, KGRPO_PLUGIN_ENTRY " returned NULL");
  // Checks the size first: it tells which other members exist.
  if (plugin_->struct_size < KGRPO_PLUGIN_SIZE_1) {
    throw Error(KGRPO_ERROR_INVALID, "its kgrpo_plugin has struct_size " + std::to_string(plugin_->struct_size) +
                                         ", below " + std::to_string(KGRPO_PLUGIN_SIZE_1));
  }
  if (plugin_->abi_major != KGRPO_ABI_MAJOR) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "built for plugin ABI " + std::to_string(plugin_->abi_major) +
                                             ", this host has " + std::to_string(KGRPO_ABI_MAJOR) +
                                             ": rebuild it with the headers of this host");
  }
  if (plugin_->get_interface == nullptr) throw Error(KGRPO_ERROR_INVALID, "its kgrpo_plugin has no get_interface");
  if (plugin_->name.size == 0) throw Error(KGRPO_ERROR_INVALID, "its kgrpo_plugin has no name");
}

std::string PluginLibrary::name() const { return Copy(plugin_->name); }
std::string PluginLibrary::version() const { return Copy(plugin_->version); }
std::string PluginLibrary::summary() const { return Copy(plugin_->summary); }

bool PluginLibrary::Plays(Role role) const { return plugin_->get_interface(Str(RoleInterface(role))) != nullptr; }

const kgrpo_transport_interface* PluginLibrary::transport() const {
  return static_cast<const kgrpo_transport_interface*>(
      plugin_->get_interface(KGRPO_LITERAL(KGRPO_TRANSPORT_INTERFACE)));
}

const void* PluginLibrary::CheckedTable(Role role) const {
  const void* table = plugin_->get_interface(Str(RoleInterface(role)));
  if (table == nullptr) {
    std::string offered;
    for (Role other : kRoles) {
      if (Plays(other)) offered += (offered.empty() ? "" : ", ") + std::string(RoleInterface(other));
    }
    throw Error(KGRPO_ERROR_UNSUPPORTED, "plugin \"" + name() + "\" is no " + RoleName(role) + ": it offers " +
                                             (offered.empty() ? "no interface that this host knows" : offered) +
                                             ", not " + RoleInterface(role) + " (" + path_.string() + ")");
  }
  const uint32_t size = static_cast<const InterfacePrefix*>(table)->struct_size;
  if (size < RoleInterfaceSize(role)) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "plugin \"" + name() + "\": its table of " + RoleInterface(role) +
                                             " has struct_size " + std::to_string(size) + ", below " +
                                             std::to_string(RoleInterfaceSize(role)) + " (" + path_.string() + ")");
  }
  return table;
}

nlohmann::ordered_json PluginLibrary::OptionsSchema(Role role) const {
  const auto* table = static_cast<const InterfacePrefix*>(CheckedTable(role));
  if (table->options_schema == nullptr) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "plugin \"" + name() + "\" has no options_schema (" + path_.string() + ")");
  }
  try {
    return nlohmann::ordered_json::parse(View(table->options_schema()));
  } catch (const nlohmann::json::exception& error) {
    throw Error(KGRPO_ERROR_INTERNAL, "plugin \"" + name() + "\": its options schema is not JSON: " + error.what() +
                                          " (" + path_.string() + ")");
  }
}

}  // namespace kgrpo
