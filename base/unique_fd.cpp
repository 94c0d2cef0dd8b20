// SPDX-License-Identifier: Apache-2.0
#include "base/unique_fd.h"

#include <unistd.h>

#include <cerrno>

namespace remora {

void UniqueFd::reset(int fd) noexcept {
  if (fd_ >= 0) {
    const int saved_errno = errno;
    ::close(fd_);
    errno = saved_errno;
  }
  fd_ = fd;
}

}  // namespace remora
