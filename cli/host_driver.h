// SPDX-License-Identifier: Apache-2.0
// Does this host have a GPU of its own that its CUDA driver can use?
#pragma once

namespace remora::cli {

/// True when libcuda.so.1 loads, initialises and sees a device. Asked in a process of its own, since a
/// driver that was initialised does not survive a fork.
bool host_has_gpu();

}  // namespace remora::cli
