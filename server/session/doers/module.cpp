// SPDX-License-Identifier: Apache-2.0
// Code. All that loads or looks into it is in the blocking lane. What was posted and could not be
// loaded is reported when a kernel of it is first used.
#include <algorithm>
#include <utility>
#include <vector>

#include "protocol/image/image.h"
#include "server/doers.h"
#include "server/session/session.h"

namespace remora::server::doers {
namespace {

Module* make_module(Session& session, protocol::ObjectId id, Context* context) {
  auto module = std::make_unique<Module>();
  module->id = id;
  module->context = context;
  return session.modules().insert(id, std::move(module));
}

/// What names a kernel: how it is found is the blocking lane's affair.
template <typename Find>
void get_kernel(Session& session, Command command, Context* context, protocol::ObjectId id, Module* module,
                std::string_view name, Find find) {
  if (module == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  Kernel* const kernel =
      session.kernels().insert(id, std::make_unique<Kernel>(id, module, std::string(name)));
  if (kernel == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  session.queue_blocking(std::move(command), context, [kernel, find](const Command& command) {
    kernel->find_result = kernel->module->load_result;
    if (kernel->find_result == CUDA_SUCCESS) kernel->find_result = find(*kernel);
    return command.header.reply_wanted() ? kernel->find_result : CUDA_SUCCESS;
  });
}

CUresult load(Session& session, const protocol::ContentHash& hash, const std::shared_ptr<Image>& image,
              const auto& load_bytes) {
  if (!image) return CUDA_ERROR_INVALID_IMAGE;
  // As the client flattened it; the reader checks every size in it.
  const auto view = image::read_flat(image->wait(hash));
  if (!view.ok()) return CUDA_ERROR_INVALID_IMAGE;
  const image::LoadableImage loadable(*view);
  return load_bytes(session.driver(), loadable.pointer());
}

}  // namespace

void cuModuleLoadData(Session& session, Command command, const protocol::cuModuleLoadData_call& call) {
  Context* const context = session.context_of(command);
  if (context == nullptr) return session.reject(command, CUDA_ERROR_INVALID_CONTEXT);
  Module* const module = make_module(session, call.module, context);
  if (module == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  session.queue_blocking(
      std::move(command), context,
      [&session, module, hash = call.image, image = session.images().find(call.image)](const Command&) {
        module->load_result =
            load(session, hash, image, [&](const DriverTable& driver, const void* bytes) {
              return driver.cuModuleLoadData(&module->module, bytes);
            });
        return module->load_result;
      });
}

void cuModuleUnload(Session& session, Command command, const protocol::cuModuleUnload_call& call) {
  Context* const context = session.context_of(command);
  if (context == nullptr) return session.reject(command, CUDA_ERROR_INVALID_CONTEXT);
  Module* const found = session.find_module(call.hmod);
  if (found == nullptr || found->context == nullptr || found->of_library) {
    return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  }
  auto kernels = session.forget_kernels(*found);
  std::shared_ptr<Module> module = session.modules().erase(call.hmod);
  session.queue_blocking(
      std::move(command), context,
      [&session, module, kernels](const Command&) {
        return module->module == nullptr ? CUDA_SUCCESS : session.driver().cuModuleUnload(module->module);
      },
      session.all_before(*context));
}

void cuModuleGetFunction(Session& session, Command command,
                         const protocol::cuModuleGetFunction_call& call) {
  Context* const context = session.context_of(command);
  if (context == nullptr) return session.reject(command, CUDA_ERROR_INVALID_CONTEXT);
  get_kernel(session, std::move(command), context, call.hfunc, session.find_module(call.hmod), call.name,
             [&session, context](Kernel& kernel) {
               CUfunction function = nullptr;
               const CUresult result = session.driver().cuModuleGetFunction(
                   &function, kernel.module->module, kernel.name.c_str());
               if (result == CUDA_SUCCESS) kernel.set_function(*context, function);
               return result;
             });
}

void cuLibraryLoadData(Session& session, Command command, const protocol::cuLibraryLoadData_call& call) {
  Context* const context = session.context_of(command);
  Module* const library = make_module(session, call.library, nullptr);
  if (library == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  const std::uint64_t sequence = command.sequence;
  // A library may be loaded before there is a context.
  session.scheduler().add_blocking(
      sequence,
      work_of([&session, library, hash = call.code, image = session.images().find(call.code),
               command = std::move(command)] {
        library->load_result =
            load(session, hash, image, [&](const DriverTable& driver, const void* bytes) {
              return driver.cuLibraryLoadData(&library->library, bytes, nullptr, nullptr, 0, nullptr,
                                              nullptr, 0);
            });
        session.settle(command, command.header.reply_wanted() ? library->load_result : CUDA_SUCCESS);
        return Step::done;
      }),
      context != nullptr ? std::vector<After>{context->ready} : std::vector<After>{});
}

void cuLibraryUnload(Session& session, Command command, const protocol::cuLibraryUnload_call& call) {
  Module* const found = session.find_module(call.library);
  if (found == nullptr || found->context != nullptr) {
    return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  }
  std::vector<After> after;
  session.contexts().for_each([&](protocol::ObjectId, const Context& context) {
    for (After& one : session.all_before(context)) after.push_back(std::move(one));
  });
  auto kernels = session.forget_kernels(*found);
  std::shared_ptr<Module> library = session.modules().erase(call.library);
  const std::uint64_t sequence = command.sequence;
  session.scheduler().add_blocking(
      sequence, work_of([&session, library, kernels, command = std::move(command)] {
        session.settle(command, library->library == nullptr
                                    ? CUDA_SUCCESS
                                    : session.driver().cuLibraryUnload(library->library));
        return Step::done;
      }),
      std::move(after));
}

void cuLibraryGetKernel(Session& session, Command command, const protocol::cuLibraryGetKernel_call& call) {
  Module* const library = session.find_module(call.library);
  if (library == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  Kernel* const kernel = session.kernels().insert(
      call.pKernel, std::make_unique<Kernel>(call.pKernel, library, std::string(call.name)));
  if (kernel == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  const std::uint64_t sequence = command.sequence;
  session.scheduler().add_blocking(
      sequence, work_of([&session, kernel, library, command = std::move(command)] {
        kernel->find_result = library->load_result;
        if (kernel->find_result == CUDA_SUCCESS) {
          kernel->find_result = session.driver().cuLibraryGetKernel(&kernel->kernel, library->library,
                                                                    kernel->name.c_str());
        }
        session.settle(command, command.header.reply_wanted() ? kernel->find_result : CUDA_SUCCESS);
        return Step::done;
      }));
}

void cuLibraryGetModule(Session& session, Command command, const protocol::cuLibraryGetModule_call& call) {
  Context* const context = session.context_of(command);
  if (context == nullptr) return session.reject(command, CUDA_ERROR_INVALID_CONTEXT);
  Module* const library = session.find_module(call.library);
  if (library == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  Module* const module = make_module(session, call.pMod, context);
  if (module == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  module->of_library = true;
  session.queue_blocking(std::move(command), context, [&session, library, module](const Command& command) {
    module->load_result = library->load_result;
    if (module->load_result == CUDA_SUCCESS) {
      module->load_result = session.driver().cuLibraryGetModule(&module->module, library->library);
    }
    return command.header.reply_wanted() ? module->load_result : CUDA_SUCCESS;
  });
}

void remora_module_wanted(Session& session, Command command,
                          const protocol::remora_module_wanted_call& call) {
  protocol::remora_module_wanted_reply reply;
  reply.wanted = session.images().find(call.image) == nullptr;
  session.answer(command, CUDA_SUCCESS, reply);
}

void remora_module_bytes(Session& session, Command command,
                         const protocol::remora_module_bytes_call& call) {
  const bool in_record = call.bytes.transfer == 0;
  if (call.size == 0 || (in_record && call.bytes.inline_bytes.size() != call.size)) {
    return session.fail("a module's bytes are not as many as it says");
  }
  const auto image = session.images().announce(call.image, call.size);
  if (!image) return session.fail("a module is sent twice, or modules are too large");
  if (in_record) {
    std::ranges::copy(call.bytes.inline_bytes, image->destination().begin());
    image->arrived(true);
  } else {
    session.bulk().accept_all(call.bytes.transfer, image->destination(),
                              [image](Result<> result) { image->arrived(result.ok()); });
  }
  session.settle(command, CUDA_SUCCESS);
}

void remora_kernel_facts(Session& session, Command command,
                         const protocol::remora_kernel_facts_call& call) {
  Context* const context = session.context_of(command);
  if (context == nullptr) return session.reject(command, CUDA_ERROR_INVALID_CONTEXT);
  Kernel* const kernel = session.find_kernel(call.f);
  if (kernel == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  session.queue_blocking_answering(
      std::move(command), context,
      [&session, context, kernel, most = call.max_parameters](const Command& command) {
        const DriverTable& driver = session.driver();
        protocol::remora_kernel_facts_reply reply;
        CUfunction function = kernel->function_in(*context);
        CUresult result = function == nullptr ? kernel->find_result : CUDA_SUCCESS;
        if (function == nullptr && result == CUDA_SUCCESS) {
          result = kernel->kernel == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                             : driver.cuKernelGetFunction(&function, kernel->kernel);
        }
        // Loads what was left for its first use.
        for (int i = 0; result == CUDA_SUCCESS && i < static_cast<int>(std::size(reply.facts.attributes));
             ++i) {
          const auto attribute = static_cast<CUfunction_attribute>(i);
          const CUresult got =
              driver.cuFuncGetAttribute(&reply.facts.attributes[i], attribute, function);
          // Only of older drivers the last ones are unknown.
          if (got != CUDA_SUCCESS && got != CUDA_ERROR_INVALID_VALUE) result = got;
        }
        if (result == CUDA_SUCCESS && driver.cuFuncGetParamInfo == nullptr) {
          result = CUDA_ERROR_NOT_SUPPORTED;
        }
        std::vector<remora_kernel_parameter> parameters;
        while (result == CUDA_SUCCESS && parameters.size() < most) {
          std::size_t offset = 0, size = 0;
          if (driver.cuFuncGetParamInfo(function, parameters.size(), &offset, &size) != CUDA_SUCCESS) break;
          parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
          reply.facts.parameter_bytes =
              std::max(reply.facts.parameter_bytes, static_cast<std::uint32_t>(offset + size));
        }
        if (result == CUDA_SUCCESS) kernel->set_function(*context, function);
        reply.facts.parameter_count = static_cast<std::uint32_t>(parameters.size());
        reply.parameters = {parameters.data(), parameters.size()};
        session.context_failed(*context, result);
        session.answer(command, result, reply);
      });
}

}  // namespace remora::server::doers
