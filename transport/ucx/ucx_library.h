// SPDX-License-Identifier: Apache-2.0
// libucp, opened late and quietly. Loading the library by the linker, or with its defaults, would
// replace the program's signal handlers, patch munmap and start a file system; so it is opened with
// dlopen when the first connection is made, under an environment that turns these off. The
// program's own environment is not changed, and a UCX that it uses itself is left alone.
//
// Threads: open() from any thread; it works once, later calls give the same answer.
#pragma once

#include <ucp/api/ucp.h>

#include <string>

#include "base/result.h"

namespace remora::transport {

/// The functions of libucp that we call, under their own names without the prefix.
struct UcxLibrary {
#define REMORA_UCP_FUNCTIONS(X)                                                                 \
  X(config_read)                                                                                \
  X(config_release) X(config_modify) X(init_version) X(cleanup) X(get_version)                  \
      X(get_version_string) X(worker_create) X(worker_destroy) X(worker_progress) X(worker_arm) \
          X(worker_get_efd) X(worker_get_address) X(worker_release_address)                     \
              X(worker_set_am_recv_handler) X(ep_create) X(ep_close_nbx) X(ep_print_info)       \
                  X(am_send_nbx) X(am_recv_data_nbx) X(am_data_release) X(request_free)         \
                      X(request_cancel) X(request_check_status)
#define REMORA_UCP_MEMBER(name) decltype(&ucp_##name) name = nullptr;
  REMORA_UCP_FUNCTIONS(REMORA_UCP_MEMBER)
#undef REMORA_UCP_MEMBER

  const char* (*status_string)(ucs_status_t) = nullptr;

  /// Errors: unavailable (no libucp on this host, or one too old), with the loader's words.
  static Result<const UcxLibrary*> open();

  Error error(const char* doing, ucs_status_t status) const;
};

}  // namespace remora::transport
