// SPDX-License-Identifier: Apache-2.0
#include "protocol/stats/stats_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "base/unique_fd.h"

namespace remora::protocol {
namespace {

Result<StatsLayout*> map(int fd, int protection, int flags) {
  void* memory = ::mmap(nullptr, sizeof(StatsLayout), protection, flags, fd, 0);
  if (memory == MAP_FAILED) return system_error("Mapping the statistics page");
  return static_cast<StatsLayout*>(memory);
}

// The memory is zero: fresh from the kernel, or a file just truncated.
void initialise(StatsLayout* layout) {
  ::new (layout) StatsLayout{};
  layout->magic = StatsLayout::kMagic;
  layout->version = StatsLayout::kVersion;
  layout->call_end = kCallIdEnd;
}

}  // namespace

Result<StatsPage> StatsPage::create(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd || ::ftruncate(fd.get(), sizeof(StatsLayout)) != 0) {
    return system_error("Making the statistics page " + path);
  }
  REMORA_TRY(StatsLayout * layout, map(fd.get(), PROT_READ | PROT_WRITE, MAP_SHARED));
  initialise(layout);
  return StatsPage(layout);
}

Result<StatsPage> StatsPage::create_anonymous() {
  REMORA_TRY(StatsLayout * layout, map(-1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS));
  initialise(layout);
  return StatsPage(layout);
}

Result<StatsPage> StatsPage::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    return system_error("Opening the statistics page " + path);
  }
  if (status.st_size != static_cast<off_t>(sizeof(StatsLayout))) {
    return Error{ErrorKind::invalid_input, 0,
                 "The statistics page " + path + " has " + std::to_string(status.st_size) +
                     " bytes, not " + std::to_string(sizeof(StatsLayout)) + "."};
  }
  REMORA_TRY(StatsLayout * layout, map(fd.get(), PROT_READ, MAP_SHARED));
  StatsPage page(layout);
  if (page->magic != StatsLayout::kMagic || page->version != StatsLayout::kVersion ||
      page->call_end != kCallIdEnd) {
    return Error{ErrorKind::invalid_input, 0,
                 "The statistics page " + path + " is of another version."};
  }
  return page;
}

StatsPage::StatsPage(StatsPage&& other) noexcept : layout_(std::exchange(other.layout_, nullptr)) {}

StatsPage& StatsPage::operator=(StatsPage&& other) noexcept {
  std::swap(layout_, other.layout_);
  return *this;
}

StatsPage::~StatsPage() {
  if (layout_ != nullptr) ::munmap(layout_, sizeof(StatsLayout));
}

CallSums sum_of_calls(const StatsLayout& layout) {
  CallSums sums;
  for (const CallCounters& call : layout.calls) {
    sums.local += read(call.local);
    sums.posted += read(call.posted);
    sums.awaited += read(call.awaited);
  }
  return sums;
}

std::string stats_path(const std::string& directory, int pid) {
  return directory + "/" + std::to_string(pid) + ".stats";
}

}  // namespace remora::protocol
