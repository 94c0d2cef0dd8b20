// SPDX-License-Identifier: Apache-2.0
// All in the blocking lane: mapping and unmapping may block, and the order among them is the rule by
// which both ends know which addresses have memory (WindowMemory).
#include <utility>

#include "server/doers.h"
#include "server/session/session.h"

namespace remora::server::doers {

void cuMemAlloc_v2(Session& session, Command command, const protocol::cuMemAlloc_v2_call& call) {
  Context* const context = session.context_of(command);
  if (context == nullptr) return session.reject(command, CUDA_ERROR_INVALID_CONTEXT);
  session.queue_blocking(std::move(command), context,
                         [&session, context, address = call.dptr, size = call.bytesize](const Command&) {
                           return session.devices()[static_cast<std::size_t>(context->device)]
                               .memory.allocate(address, size);
                         });
}

void cuMemFree_v2(Session& session, Command command, const protocol::cuMemFree_v2_call& call) {
  Context* const context = session.context_of(command);
  if (context == nullptr) return session.reject(command, CUDA_ERROR_INVALID_CONTEXT);
  // Behind all that was posted before it, whatever the client waited for.
  std::vector<After> after = session.all_before(*context);
  session.queue_blocking(
      std::move(command), context,
      [&session, context, address = call.dptr](const Command&) {
        return session.devices()[static_cast<std::size_t>(context->device)].memory.free(address);
      },
      std::move(after));
}

}  // namespace remora::server::doers
