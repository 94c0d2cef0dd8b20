// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/ucx_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

namespace remora::transport {
namespace {

// What UCX reads while it is loaded, whatever prefix is asked for later: it is a property of the
// process. LOG_LEVEL: errors reach us as status codes, and stderr belongs to the program.
constexpr const char* kQuietly[] = {
    "UCX_HANDLE_ERRORS=none",      "UCX_MEM_EVENTS=n",           "UCX_VFS_ENABLE=n",
    "UCX_LOG_LEVEL=fatal",         "UCX_WARN_UNUSED_ENV_VARS=n", "UCX_MEM_MALLOC_HOOKS=n",
    "UCX_MEM_MMAP_HOOK_MODE=none",
};

bool names_same_variable(std::string_view a, std::string_view b) {
  const std::size_t name = b.find('=') + 1;
  return a.substr(0, name) == b.substr(0, name);
}

/// The caller's environment with kQuietly over it, in force while the object lives. The strings are
/// the caller's own, so a pointer that a concurrent getenv() returned stays good; the array is
/// never freed, for a concurrent reader may still walk it.
class QuietEnvironment {
 public:
  QuietEnvironment() : before_(environ) {
    auto* entries = new std::vector<char*>();
    for (const char* setting : kQuietly) entries->push_back(const_cast<char*>(setting));
    for (char** entry = before_; entry != nullptr && *entry != nullptr; ++entry) {
      bool overridden = false;
      for (const char* setting : kQuietly) overridden |= names_same_variable(*entry, setting);
      if (!overridden) entries->push_back(*entry);
    }
    entries->push_back(nullptr);
    ours_ = entries->data();
    environ = ours_;
  }
  ~QuietEnvironment() {
    if (environ == ours_) environ = before_;
  }
  QuietEnvironment(const QuietEnvironment&) = delete;
  QuietEnvironment& operator=(const QuietEnvironment&) = delete;

 private:
  char** before_;
  char** ours_;
};

void* open_quietly(const char* name) {
  if (void* present = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return present;
  const QuietEnvironment quiet;
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

Result<UcxLibrary> load() {
  // libucp needs libucs, whose constructor is what reads the environment.
  void* ucp = open_quietly("libucp.so.0");
  if (ucp == nullptr) {
    const char* reason = dlerror();
    return Error{
        ErrorKind::unavailable, 0,
        fmt::format("UCX cannot be loaded: {}.", reason != nullptr ? reason : "no reason")};
  }
  UcxLibrary library;
  const char* missing = nullptr;
#define REMORA_UCP_FIND(name)                                                        \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(ucp, "ucp_" #name)); \
  if (library.name == nullptr) missing = "ucp_" #name;
  REMORA_UCP_FUNCTIONS(REMORA_UCP_FIND)
#undef REMORA_UCP_FIND
  library.status_string =
      reinterpret_cast<decltype(library.status_string)>(dlsym(ucp, "ucs_status_string"));
  if (missing != nullptr || library.status_string == nullptr) {
    return Error{ErrorKind::unavailable, 0,
                 fmt::format("The UCX of this host has no {}: version 1.13 or newer is needed.",
                             missing != nullptr ? missing : "ucs_status_string")};
  }
  return library;
}

}  // namespace

Result<const UcxLibrary*> UcxLibrary::open() {
  static const auto* const loaded = new Result<UcxLibrary>(load());
  if (!loaded->ok()) return loaded->error();
  return &loaded->value();
}

Error UcxLibrary::error(const char* doing, ucs_status_t status) const {
  ErrorKind kind = ErrorKind::system;
  if (status == UCS_ERR_CONNECTION_RESET || status == UCS_ERR_ENDPOINT_TIMEOUT ||
      status == UCS_ERR_NOT_CONNECTED || status == UCS_ERR_UNREACHABLE) {
    kind = ErrorKind::unavailable;
  }
  return {kind, 0, fmt::format("UCX fails {}: {}.", doing, status_string(status))};
}

}  // namespace remora::transport
