// SPDX-License-Identifier: Apache-2.0
// The CUDA driver that a session process executes on: any library that exports the driver API. Which
// one is a matter of configuration; nothing behind this header tells NVIDIA's from the software GPU.
//
// Loaded once, never unloaded. The table may be used from any thread.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "server/driver_table.h"

namespace remora::server {

class Driver {
 public:
  /// Loads `path`, or, when it is empty, the host's NVIDIA driver if that sees a device, else the
  /// software GPU beside this program. The driver is initialised and has at least one device.
  static Result<Driver> open(const std::string& path);

  const DriverTable& table() const { return table_; }
  const std::string& path() const { return path_; }
  bool is_software() const { return software_; }
  int version() const { return version_; }
  int device_count() const { return device_count_; }

  /// "CUDA_ERROR_INVALID_VALUE (1)", for logs.
  std::string name_of(CUresult result) const;

 private:
  static Result<Driver> load(const std::string& path);

  DriverTable table_;
  std::string path_;
  bool software_ = false;
  int version_ = 0;
  int device_count_ = 0;
};

}  // namespace remora::server
