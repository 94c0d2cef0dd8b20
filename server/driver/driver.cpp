// SPDX-License-Identifier: Apache-2.0
#include "server/driver/driver.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstring>
#include <system_error>

#include "base/log.h"

namespace remora::server {
namespace {

constexpr const char* kHostDriver = "libcuda.so.1";
constexpr const char* kSoftwareGpu = "libremora-softgpu.so";

/// lib/ beside the bin/ that this program lies in.
std::string software_gpu_path() {
  std::error_code failure;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return kSoftwareGpu;
  return (self.parent_path().parent_path() / "lib" / kSoftwareGpu).string();
}

}  // namespace

Result<Driver> Driver::load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error{ErrorKind::not_found, 0, fmt::format("No CUDA driver could be loaded: {}.", dlerror())};
  }
  Driver driver;
  driver.path_ = path;
  driver.software_ = path.ends_with(kSoftwareGpu);
  for (const DriverSymbol& symbol : driver_symbols()) {
    void* const function = dlsym(library, symbol.name);
    std::memcpy(reinterpret_cast<std::byte*>(&driver.table_) + symbol.offset, &function, sizeof function);
  }
  const DriverTable& t = driver.table_;
  if (t.cuInit == nullptr || t.cuDeviceGetCount == nullptr || t.cuDriverGetVersion == nullptr) {
    return Error{ErrorKind::unsupported, 0, fmt::format("{} is not a CUDA driver library.", path)};
  }
  CUresult result = t.cuInit(0);
  if (result == CUDA_SUCCESS) result = t.cuDriverGetVersion(&driver.version_);
  if (result == CUDA_SUCCESS) result = t.cuDeviceGetCount(&driver.device_count_);
  if (result == CUDA_SUCCESS && driver.device_count_ == 0) result = CUDA_ERROR_NO_DEVICE;
  if (result != CUDA_SUCCESS) {
    return Error{ErrorKind::unavailable, result,
                 fmt::format("The driver {} cannot start: {}.", path, driver.name_of(result))};
  }
  return driver;
}

Result<Driver> Driver::open(const std::string& path) {
  if (!path.empty()) return load(path);
  auto host = load(kHostDriver);
  if (host.ok()) return host;
  log::debug("no driver of the host: {}", host.error().text);
  return load(software_gpu_path());
}

std::string Driver::name_of(CUresult result) const {
  const char* name = nullptr;
  if (table_.cuGetErrorName != nullptr) table_.cuGetErrorName(result, &name);
  return fmt::format("{} ({})", name == nullptr ? "error" : name, static_cast<int>(result));
}

}  // namespace remora::server
