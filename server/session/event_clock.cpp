// SPDX-License-Identifier: Apache-2.0
#include "server/session/event_clock.h"

#include <cmath>
#include <limits>

#include "base/clock.h"

namespace remora::server {
namespace {

// A float holds a second of milliseconds to 60 ns.
constexpr std::uint64_t kOldNs = 1'000'000'000;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double elapsed(const DriverTable& driver, CUevent from, CUevent to) {
  float ms = 0;
  CUresult result = driver.cuEventElapsedTime(&ms, from, to);
  if (result == CUDA_ERROR_NOT_READY && driver.cuEventSynchronize(from) == CUDA_SUCCESS) {
    // Only the base can be unfinished, and nothing is before it on its stream.
    result = driver.cuEventElapsedTime(&ms, from, to);
  }
  return result == CUDA_SUCCESS ? static_cast<double>(ms) : kNone;
}

}  // namespace

struct EventClock::Base {
  CUevent event = nullptr;
  std::uint64_t made_ns = 0;
  double offset_ms = kNone;         // since the first base; known once it was asked for
  std::shared_ptr<Base> previous;  // until then
};

std::shared_ptr<EventClock::Base> EventClock::base_for_now(const DriverTable& driver) {
  const std::uint64_t now = now_ns();
  if (latest_ && now - latest_->made_ns < kOldNs) return latest_;
  if (stream_ == nullptr && driver.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    return nullptr;
  }
  auto base = std::make_shared<Base>();
  if (driver.cuEventCreate(&base->event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return nullptr;
  if (driver.cuEventRecord(base->event, stream_) != CUDA_SUCCESS) return nullptr;
  base->made_ns = now;
  if (latest_) {
    base->previous = latest_;
  } else {
    base->offset_ms = 0;
  }
  latest_ = base;
  return base;
}

double EventClock::time_of(const DriverTable& driver, const std::shared_ptr<Base>& base, CUevent event) {
  if (!base) return kNone;
  if (base->previous) {
    base->offset_ms = time_of(driver, base->previous, base->event);
    base->previous.reset();
  }
  return base->offset_ms + elapsed(driver, base->event, event);
}

void EventClock::forget() {
  latest_.reset();
  stream_ = nullptr;
}

}  // namespace remora::server
