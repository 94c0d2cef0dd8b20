// SPDX-License-Identifier: Apache-2.0
#include "server/session/handshake.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "protocol/wire/version.h"
#include "transport/control_connection.h"

namespace remora::server {
namespace {

using protocol::ControlKind;

// Far from where Linux puts programs, stacks and mappings, and from the shadow of sanitizers.
constexpr std::uint64_t kFirstWindow = 0x1200'0000'0000;
constexpr std::uint64_t kWindowStep = 0x0080'0000'0000;  // 512 GiB
// Memory that small allocations are carved from without asking.
constexpr std::uint64_t kCommitted = std::uint64_t{64} << 20;
constexpr std::uint64_t kInlineLimit = 64 << 10;
constexpr std::uint64_t kUnacknowledgedLimit = 64 << 20;

template <typename Message>
Result<> send(int socket, const Message& message, Deadline deadline) {
  return transport::send_frame(socket, protocol::kProtocolVersion,
                               static_cast<std::uint16_t>(Message::kKind),
                               protocol::encode_control(message), deadline);
}

protocol::DeviceOffer offer_of(const Driver& driver, const Device& device) {
  const DriverTable& t = driver.table();
  protocol::DeviceOffer offer;
  char name[256] = {};
  if (t.cuDeviceGetName(name, sizeof name - 1, device.device) == CUDA_SUCCESS) offer.name = name;
  CUuuid uuid{};
  if (t.cuDeviceGetUuid_v2 != nullptr && t.cuDeviceGetUuid_v2(&uuid, device.device) == CUDA_SUCCESS) {
    std::memcpy(offer.uuid.data(), uuid.bytes, offer.uuid.size());
  }
  std::size_t total = 0;
  if (t.cuDeviceTotalMem_v2(&total, device.device) == CUDA_SUCCESS) offer.total_memory = total;
  for (int attribute = 1; attribute < CU_DEVICE_ATTRIBUTE_MAX; ++attribute) {
    int value = 0;
    if (t.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), device.device) ==
        CUDA_SUCCESS) {
      offer.attributes.push_back({attribute, value});
    }
  }
  if (t.cuCtxSetCurrent(device.primary) == CUDA_SUCCESS) {
    t.cuCtxGetStreamPriorityRange(&offer.least_stream_priority, &offer.greatest_stream_priority);
  }
  offer.window = device.memory.window();
  return offer;
}

Result<> agree_on_windows(int socket, std::vector<Device>& devices, Deadline deadline) {
  for (int round = 0; round < protocol::kMaxWindowRounds; ++round) {
    REMORA_TRY(const transport::Frame frame,
               transport::receive_frame(socket, protocol::kProtocolVersion, deadline));
    if (frame.type != static_cast<std::uint16_t>(ControlKind::window_answer)) {
      return Error{ErrorKind::invalid_input, 0, "The client does not answer to the offered windows."};
    }
    REMORA_TRY(const protocol::WindowAnswer answer,
               protocol::decode_control<protocol::WindowAnswer>(frame.payload));
    if (answer.bases.size() != devices.size()) {
      return Error{ErrorKind::invalid_input, 0, "The client answers for other devices."};
    }
    bool same = true;
    protocol::WindowOffer offer;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      WindowMemory& memory = devices[i].memory;
      if (memory.window().base != answer.bases[i]) {
        log::debug("device {}: the client asks for a window at {:#x}", i, answer.bases[i]);
        REMORA_TRY_DO(memory.move_to(answer.bases[i]));
        same &= memory.window().base == answer.bases[i];
      }
      offer.bases.push_back(memory.window().base);
    }
    if (same) return {};
    REMORA_TRY_DO(send(socket, offer, deadline));
  }
  return Error{ErrorKind::exhausted, 0, "No address window is free on both sides."};
}

}  // namespace

Result<std::vector<Device>> prepare_devices(const Driver& driver) {
  const DriverTable& t = driver.table();
  std::vector<Device> devices;
  const int count = std::min<int>(driver.device_count(), protocol::kMaxDevices);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    CUcontext primary = nullptr;
    CUresult result = t.cuDeviceGet(&device, ordinal);
    if (result == CUDA_SUCCESS) result = t.cuDevicePrimaryCtxRetain(&primary, device);
    if (result == CUDA_SUCCESS) result = t.cuCtxSetCurrent(primary);
    if (result != CUDA_SUCCESS) {
      return Error{ErrorKind::unavailable, static_cast<int>(result),
                   fmt::format("Device {} gives no context: {}.", ordinal, driver.name_of(result))};
    }
    std::size_t total = 0;
    t.cuDeviceTotalMem_v2(&total, device);
    // Twice the memory, so that fragmentation of addresses never is what ends a program.
    REMORA_TRY(WindowMemory memory,
               WindowMemory::reserve(t, device, kFirstWindow + kWindowStep * static_cast<unsigned>(ordinal),
                                     2 * std::uint64_t{total}));
    REMORA_TRY_DO(memory.commit_prefix(std::min<std::uint64_t>(kCommitted, total / 8)));
    devices.push_back({device, primary, std::move(memory)});
  }
  return devices;
}

std::string describe_devices(const Driver& driver) {
  const DriverTable& t = driver.table();
  char name[256] = "a device";
  std::size_t total = 0;
  CUdevice device = 0;
  if (t.cuDeviceGet(&device, 0) == CUDA_SUCCESS) {
    t.cuDeviceGetName(name, sizeof name - 1, device);
    t.cuDeviceTotalMem_v2(&total, device);
  }
  const std::string one = fmt::format("{}, {:.0f} GiB", name, static_cast<double>(total) / (1 << 30));
  return driver.device_count() == 1 ? one : fmt::format("{} × {}", driver.device_count(), one);
}

Result<> offer_session(int socket, const Driver& driver, std::vector<Device>& devices,
                       Bytes worker_address, Deadline deadline) {
  protocol::SessionOffer offer;
  offer.session_id = static_cast<std::uint64_t>(getpid());
  offer.epoch = 1;
  offer.driver_version = driver.version();
  offer.worker_address.assign(worker_address.begin(), worker_address.end());
  offer.inline_limit = kInlineLimit;
  offer.unacknowledged_limit = kUnacknowledgedLimit;
  offer.software_device = driver.is_software();
  for (const Device& device : devices) offer.devices.push_back(offer_of(driver, device));
  REMORA_TRY_DO(send(socket, offer, deadline));
  auto agreed = agree_on_windows(socket, devices, deadline);
  if (!agreed.ok() && agreed.error().kind != ErrorKind::unavailable) {
    (void)send(socket, protocol::Refusal{protocol::RefusalReason::windows, agreed.error().text}, deadline);
  }
  return agreed;
}

Result<> send_ready(int socket, Deadline deadline) { return send(socket, protocol::Ready{}, deadline); }

}  // namespace remora::server
