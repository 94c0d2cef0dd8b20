// SPDX-License-Identifier: Apache-2.0
// Images to modules: the PTX for this device is chosen, indexed, its variables are allocated and
// written. Kernels are translated when they are first used.
#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "protocol/image/image.h"
#include "protocol/image/module_summary.h"
#include "softgpu/driver/core.h"

namespace remora::softgpu {

LoadedModule::~LoadedModule() {
  Driver& driver = *Driver::get();
  for (const auto& [name, function] : functions) driver.handles.remove(function.get());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (addresses[i] != 0) Driver::get()->memory->release(addresses[i]);
  }
}

Result<std::string> ptx_of(const void* pointer, std::uint32_t capability) {
  REMORA_TRY(const image::ImageView view, image::find_extent(pointer));
  REMORA_TRY(std::vector<image::PtxText> texts, image::select_ptx(view, capability));
  if (texts.size() != 1) {
    return Error{ErrorKind::unsupported, 0,
                 "The image is linked from several pieces of PTX (-rdc=true), which the software "
                 "GPU does not link yet."};
  }
  return std::move(texts[0].text);
}

namespace {

CUresult result_of_image_error(const Error& error) {
  switch (error.kind) {
    case ErrorKind::not_found: return CUDA_ERROR_NO_BINARY_FOR_GPU;
    case ErrorKind::unsupported: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_IMAGE;
  }
}

CUresult allocate_variables(LoadedModule& module) {
  AddressSpace& memory = *Driver::get()->memory;
  const int device = module.context->device->ordinal;
  const auto& globals = module.ptx->globals();
  module.addresses.assign(globals.size(), 0);
  for (std::size_t i = 0; i < globals.size(); ++i) {
    if (globals[i].linkage == Linkage::external) continue;
    // A variable of size 0 has an address as well.
    const std::uint64_t size = std::max<std::uint64_t>(globals[i].size, 1);
    if (const CUresult result = memory.allocate(device, size, module.addresses[i])) return result;
  }
  module.ptx->bind_globals(module.addresses);
  for (std::size_t i = 0; i < globals.size(); ++i) {
    if (!globals[i].initialized || module.addresses[i] == 0) continue;
    const MutableBytes image(reinterpret_cast<std::byte*>(module.addresses[i]), globals[i].size);
    const auto built = module.ptx->build_global_image(i, image);
    if (!built.ok()) {
      log::warn("software GPU: {}", built.error().text);
      return CUDA_ERROR_INVALID_PTX;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult load_module(Context& context, std::string_view text, std::unique_ptr<LoadedModule>& out) {
  auto parsed = Module::parse(text);
  if (!parsed.ok()) {
    log::warn("software GPU: {}", parsed.error().text);
    return CUDA_ERROR_INVALID_PTX;
  }
  auto module = std::make_unique<LoadedModule>();
  module->context = &context;
  module->ptx = std::move(*parsed);
  if (const CUresult result = allocate_variables(*module)) return result;
  module->cache = std::make_unique<KernelCache>(*module->ptx);
  for (const KernelSignature* signature : module->ptx->kernels()) {
    auto function = std::make_unique<Function>();
    function->module = module.get();
    function->name = signature->name;
    function->signature = signature;
    Driver::get()->handles.add(function.get(), Handles::Kind::function);
    module->functions.emplace(signature->name, std::move(function));
  }
  out = std::move(module);
  return CUDA_SUCCESS;
}

CUresult image_to_ptx(const void* image, std::uint32_t capability, std::string& text) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto chosen = ptx_of(image, capability);
  if (!chosen.ok()) {
    log::warn("software GPU: {}", chosen.error().text);
    return result_of_image_error(chosen.error());
  }
  text = std::move(*chosen);
  return CUDA_SUCCESS;
}

CUresult library_module(Library& library, Context& context, LoadedModule*& module) {
  const std::lock_guard hold(library.mutex);
  auto& loaded = library.modules[&context];
  if (!loaded) {
    if (const CUresult result = load_module(context, library.text, loaded)) {
      library.modules.erase(&context);
      return result;
    }
    for (const auto& [name, kernel] : library.kernels) {
      const int bytes = kernel->max_dynamic_shared_bytes.load();
      const auto function = loaded->functions.find(name);
      if (bytes >= 0 && function != loaded->functions.end()) {
        function->second->max_dynamic_shared_bytes = bytes;
      }
    }
  }
  module = loaded.get();
  return CUDA_SUCCESS;
}

Function* find_function(Context& context, CUfunction handle, CUresult& result) {
  Handles& handles = Driver::get()->handles;
  result = CUDA_ERROR_INVALID_HANDLE;
  if (handles.is(handle, Handles::Kind::function)) {
    result = CUDA_SUCCESS;
    return reinterpret_cast<Function*>(handle);
  }
  if (!handles.is(handle, Handles::Kind::kernel)) return nullptr;
  auto* kernel = reinterpret_cast<LibraryKernel*>(handle);
  LoadedModule* module = nullptr;
  result = library_module(*kernel->library, context, module);
  if (result != CUDA_SUCCESS) return nullptr;
  const auto at = module->functions.find(kernel->name);
  if (at != module->functions.end()) return at->second.get();
  result = CUDA_ERROR_NOT_FOUND;
  return nullptr;
}

CUresult prepare(Function& function, std::shared_ptr<const Kernel>& kernel) {
  auto prepared = function.module->cache->prepare(function.name);
  if (!prepared.ok()) {
    if (!function.loaded.exchange(true)) log::error("software GPU: {}", prepared.error().text);
    return CUDA_ERROR_INVALID_PTX;
  }
  function.loaded = true;
  kernel = std::move(*prepared);
  return CUDA_SUCCESS;
}

}  // namespace remora::softgpu
