// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/core.h"

#include <sys/sysinfo.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/environment.h"
#include "base/log.h"
#include "softgpu/driver/device_attributes.h"

namespace remora::softgpu {
namespace {

std::atomic<Driver*> the_driver{nullptr};
std::mutex initializing;

/// Half of the host's memory, as far as nothing else is asked for.
std::uint64_t default_memory() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return 4ull << 30;
  return align_down(std::uint64_t{info.totalram} * info.mem_unit / 2, 1 << 20);
}

CUuuid uuid_of(int ordinal) {
  // "Remora software" and the ordinal: the same in every process, as programs expect of a GPU.
  CUuuid uuid{};
  const char* text = "remora-softgpu-";
  std::copy_n(text, 15, uuid.bytes);
  uuid.bytes[15] = static_cast<char>(ordinal);
  return uuid;
}

}  // namespace

Driver* Driver::get() { return the_driver.load(std::memory_order_acquire); }

CUresult Driver::initialize() {
  const std::lock_guard hold(initializing);
  if (get() != nullptr) return CUDA_SUCCESS;
  const auto memory = environment::size_bytes("REMORA_SOFTGPU_MEMORY", default_memory());
  const auto count = environment::number("REMORA_SOFTGPU_DEVICES", 1, 1, kMaxDevices);
  const auto workers = environment::number("REMORA_SOFTGPU_WORKERS", 0, 0, 1024);
  const auto capability = capability_from_environment();
  for (const Error* error : {memory.ok() ? nullptr : &memory.error(),
                             count.ok() ? nullptr : &count.error(),
                             workers.ok() ? nullptr : &workers.error(),
                             capability.ok() ? nullptr : &capability.error()}) {
    if (error == nullptr) continue;
    log::error("software GPU: {}", error->text);
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto* driver = new Driver({static_cast<unsigned>(*workers)});
  driver->memory = std::make_unique<AddressSpace>(static_cast<int>(*count), *memory);
  for (int i = 0; i < static_cast<int>(*count); ++i) {
    auto device = std::make_unique<Device>();
    device->ordinal = i;
    device->name = "Remora software GPU";
    device->uuid = uuid_of(i);
    device->capability = *capability;
    device->attributes = device_attributes(*capability, driver->engine.workers(), i);
    driver->devices.push_back(std::move(device));
  }
  the_driver.store(driver, std::memory_order_release);
  return CUDA_SUCCESS;
}

// --- Handles -----------------------------------------------------------------------------------

void Handles::add(const void* handle, Kind kind) {
  const std::unique_lock hold(mutex_);
  kinds_[handle] = kind;
}
void Handles::remove(const void* handle) {
  const std::unique_lock hold(mutex_);
  kinds_.erase(handle);
}
bool Handles::is(const void* handle, Kind kind) const {
  const std::shared_lock hold(mutex_);
  const auto at = kinds_.find(handle);
  return at != kinds_.end() && at->second == kind;
}

Device* device_at(CUdevice ordinal) {
  Driver* driver = Driver::get();
  if (driver == nullptr || ordinal < 0 ||
      static_cast<std::size_t>(ordinal) >= driver->devices.size()) {
    return nullptr;
  }
  return driver->devices[static_cast<std::size_t>(ordinal)].get();
}

CUresult result_of(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::none: return CUDA_SUCCESS;
    case Fault::Kind::illegal_address: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case Fault::Kind::misaligned_address: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case Fault::Kind::illegal_instruction: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case Fault::Kind::assert_failed: return CUDA_ERROR_ASSERT;
    case Fault::Kind::invalid_ptx: return CUDA_ERROR_INVALID_PTX;
    case Fault::Kind::stack_overflow: return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case Fault::Kind::trapped:
    case Fault::Kind::internal: return CUDA_ERROR_LAUNCH_FAILED;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

}  // namespace remora::softgpu
