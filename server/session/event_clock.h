// SPDX-License-Identifier: Apache-2.0
// The time that a session tells its client for each event: milliseconds since the context's first
// timed event. A driver only gives differences between two events, as a float, so the clock keeps
// bases: events of its own, a new one whenever the last is old, each placed relative to the one before.
//
// In the issuing role, with the context current.
#pragma once

#include <cstdint>
#include <memory>

#include "server/driver_table.h"

namespace remora::server {

class EventClock {
 public:
  struct Base;

  /// To be called when an event is recorded, and kept until its time is asked for. Null when the
  /// driver refuses.
  std::shared_ptr<Base> base_for_now(const DriverTable& driver);

  /// The time of a completed event recorded under `base`; not a number when the driver has none.
  static double time_of(const DriverTable& driver, const std::shared_ptr<Base>& base, CUevent event);

  /// Lets go of what lies in the driver. The context may be gone.
  void forget();

 private:
  std::shared_ptr<Base> latest_;
  CUstream stream_ = nullptr;  // of our own, so that nothing of the program's is before a base
};

}  // namespace remora::server
