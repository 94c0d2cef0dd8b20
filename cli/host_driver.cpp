// SPDX-License-Identifier: Apache-2.0
#include "cli/host_driver.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace remora::cli {
namespace {

bool see_a_device() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return false;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count_of = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int count = 0;
  return init != nullptr && count_of != nullptr && init(0) == 0 && count_of(&count) == 0 && count > 0;
}

}  // namespace

bool host_has_gpu() {
  const pid_t child = fork();
  if (child == 0) _exit(see_a_device() ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace remora::cli
