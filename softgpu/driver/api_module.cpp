// SPDX-License-Identifier: Apache-2.0
// Modules, libraries, functions and kernels.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "softgpu/driver/entry.h"

using namespace remora::softgpu;

namespace {

LoadedModule* find_module(Context& context, CUmodule handle) {
  auto* module = reinterpret_cast<LoadedModule*>(handle);
  {
    const std::lock_guard hold(context.ordering);
    if (context.modules.contains(module)) return module;
  }
  return Driver::get()->handles.is(handle, Handles::Kind::module) ? module : nullptr;
}

Library* find_library(CUlibrary handle) {
  Driver* driver = Driver::get();
  return driver->handles.is(handle, Handles::Kind::library) ? reinterpret_cast<Library*>(handle)
                                                           : nullptr;
}

LibraryKernel* find_kernel(CUkernel handle) {
  return Driver::get()->handles.is(handle, Handles::Kind::kernel)
             ? reinterpret_cast<LibraryKernel*>(handle)
             : nullptr;
}

/// A file's bytes with a zero behind them, as PTX text needs.
bool read_file(const char* path, std::vector<char>& bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  bytes.push_back(0);
  return true;
}

CUresult load_into_context(CUmodule* handle, const void* image) {
  REMORA_REQUIRE(handle != nullptr);
  REMORA_USE_CONTEXT(context);
  std::string text;
  if (const CUresult result = image_to_ptx(image, context->device->capability, text)) return result;
  std::unique_ptr<LoadedModule> module;
  if (const CUresult result = load_module(*context, text, module)) return result;
  Driver::get()->handles.add(module.get(), Handles::Kind::module);
  *handle = reinterpret_cast<CUmodule>(module.get());
  const std::lock_guard hold(context->ordering);
  context->modules[module.get()] = std::move(module);
  return CUDA_SUCCESS;
}

CUresult global_of(LoadedModule& module, const char* name, CUdeviceptr* address, std::size_t* bytes) {
  const auto index = module.ptx->find_global(name);
  if (!index || module.addresses[*index] == 0) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = module.addresses[*index];
  if (bytes != nullptr) *bytes = module.ptx->globals()[*index].size;
  return CUDA_SUCCESS;
}

CUresult attribute_of(Function& function, CUfunction_attribute attribute, int* value) {
  std::shared_ptr<const Kernel> kernel;
  if (const CUresult result = prepare(function, kernel)) return result;
  const KernelResources& resources = kernel->resources();
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(resources.max_threads_per_block);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(resources.static_shared_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *value = static_cast<int>(resources.constant_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(resources.local_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(resources.registers);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = static_cast<int>(resources.target);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = static_cast<int>(function.module->context->device->capability);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function.max_dynamic_shared_bytes -
               (function.max_dynamic_shared_bytes == (48 << 10)
                    ? static_cast<int>(resources.static_shared_bytes)
                    : 0);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = function.preferred_carveout;
      return CUDA_SUCCESS;
    default:
      REMORA_REQUIRE(attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
      *value = 0;
      return CUDA_SUCCESS;
  }
}

CUresult set_attribute(Function& function, CUfunction_attribute attribute, int value) {
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    REMORA_REQUIRE(value >= -1 && value <= 100);
    function.preferred_carveout = value;
    return CUDA_SUCCESS;
  }
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<const Kernel> kernel;
  if (const CUresult result = prepare(function, kernel)) return result;
  const auto& attributes = function.module->context->device->attributes;
  const int most = attributes.at(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) -
                   static_cast<int>(kernel->resources().static_shared_bytes);
  REMORA_REQUIRE(value >= 0 && value <= most);
  function.max_dynamic_shared_bytes = value;
  return CUDA_SUCCESS;
}

CUresult parameter_of(const KernelSignature& signature, std::size_t index, std::size_t* offset,
                      std::size_t* size) {
  REMORA_REQUIRE(offset != nullptr && index < signature.parameters.size());
  *offset = signature.parameters[index].offset;
  if (size != nullptr) *size = signature.parameters[index].size;
  return CUDA_SUCCESS;
}

}  // namespace

REMORA_API(cuModuleLoadData)(CUmodule* module, const void* image) { return load_into_context(module, image); }
REMORA_API(cuModuleLoadDataEx)(CUmodule* module, const void* image, unsigned int, CUjit_option*, void**) {
  return load_into_context(module, image);
}
REMORA_API(cuModuleLoadFatBinary)(CUmodule* module, const void* image) { return load_into_context(module, image); }
REMORA_API(cuModuleLoad)(CUmodule* module, const char* path) {
  REMORA_REQUIRE(path != nullptr);
  std::vector<char> bytes;
  if (!read_file(path, bytes)) return CUDA_ERROR_FILE_NOT_FOUND;
  return load_into_context(module, bytes.data());
}
REMORA_API(cuModuleUnload)(CUmodule handle) {
  REMORA_USE_CONTEXT(context);
  if (const CUresult result = context->synchronize()) return result;
  const std::lock_guard hold(context->ordering);
  if (context->modules.erase(reinterpret_cast<LoadedModule*>(handle)) == 0) return CUDA_ERROR_INVALID_HANDLE;
  Driver::get()->handles.remove(handle);
  return CUDA_SUCCESS;
}
REMORA_API(cuModuleGetLoadingMode)(CUmoduleLoadingMode* mode) {
  REMORA_REQUIRE(mode != nullptr);
  REMORA_USE_DRIVER(driver);
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}
REMORA_API(cuModuleGetFunction)(CUfunction* function, CUmodule handle, const char* name) {
  REMORA_REQUIRE(function != nullptr && name != nullptr);
  REMORA_USE_CONTEXT(context);
  LoadedModule* module = find_module(*context, handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto at = module->functions.find(std::string_view(name));
  if (at == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(at->second.get());
  return CUDA_SUCCESS;
}
REMORA_API(cuModuleGetGlobal_v2)(CUdeviceptr* address, std::size_t* bytes, CUmodule handle, const char* name) {
  REMORA_REQUIRE(name != nullptr);
  REMORA_USE_CONTEXT(context);
  LoadedModule* module = find_module(*context, handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return global_of(*module, name, address, bytes);
}
REMORA_API(cuModuleGetFunctionCount)(unsigned int* count, CUmodule handle) {
  REMORA_REQUIRE(count != nullptr);
  REMORA_USE_CONTEXT(context);
  LoadedModule* module = find_module(*context, handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}
REMORA_API(cuModuleEnumerateFunctions)(CUfunction* functions, unsigned int count, CUmodule handle) {
  REMORA_REQUIRE(functions != nullptr);
  REMORA_USE_CONTEXT(context);
  LoadedModule* module = find_module(*context, handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& [name, function] : module->functions) {
    if (count-- == 0) break;
    *functions++ = reinterpret_cast<CUfunction>(function.get());
  }
  return CUDA_SUCCESS;
}

// --- Libraries ---------------------------------------------------------------------------------

REMORA_API(cuLibraryLoadData)(CUlibrary* handle, const void* code, CUjit_option*, void**, unsigned int,
                              CUlibraryOption*, void**, unsigned int) {
  REMORA_REQUIRE(handle != nullptr);
  REMORA_USE_DRIVER(driver);
  auto library = std::make_unique<Library>();
  if (const CUresult result = image_to_ptx(code, driver->devices[0]->capability, library->text)) return result;
  auto index = Module::parse(library->text);
  if (!index.ok()) return CUDA_ERROR_INVALID_PTX;
  library->index = std::move(*index);
  for (const KernelSignature* signature : library->index->kernels()) {
    auto kernel = std::make_unique<LibraryKernel>();
    kernel->library = library.get();
    kernel->name = signature->name;
    driver->handles.add(kernel.get(), Handles::Kind::kernel);
    library->kernels.emplace(signature->name, std::move(kernel));
  }
  driver->handles.add(library.get(), Handles::Kind::library);
  *handle = reinterpret_cast<CUlibrary>(library.get());
  const std::lock_guard hold(driver->mutex);
  driver->libraries[library.get()] = std::move(library);
  return CUDA_SUCCESS;
}
REMORA_API(cuLibraryLoadFromFile)(CUlibrary* handle, const char* path, CUjit_option*, void**, unsigned int,
                                  CUlibraryOption*, void**, unsigned int) {
  REMORA_REQUIRE(path != nullptr);
  std::vector<char> bytes;
  if (!read_file(path, bytes)) return CUDA_ERROR_FILE_NOT_FOUND;
  return cuLibraryLoadData(handle, bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
}
REMORA_API(cuLibraryUnload)(CUlibrary handle) {
  REMORA_USE_DRIVER(driver);
  Library* library = find_library(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<Context*> contexts;
  {
    const std::lock_guard hold(library->mutex);
    for (const auto& [context, module] : library->modules) contexts.push_back(context);
  }
  for (Context* context : contexts) context->synchronize();
  for (const auto& [name, kernel] : library->kernels) driver->handles.remove(kernel.get());
  driver->handles.remove(library);
  const std::lock_guard hold(driver->mutex);
  driver->libraries.erase(library);
  return CUDA_SUCCESS;
}
REMORA_API(cuLibraryGetKernel)(CUkernel* kernel, CUlibrary handle, const char* name) {
  REMORA_REQUIRE(kernel != nullptr && name != nullptr);
  REMORA_USE_DRIVER(driver);
  Library* library = find_library(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto at = library->kernels.find(std::string_view(name));
  if (at == library->kernels.end()) return CUDA_ERROR_NOT_FOUND;
  *kernel = reinterpret_cast<CUkernel>(at->second.get());
  return CUDA_SUCCESS;
}
REMORA_API(cuLibraryGetKernelCount)(unsigned int* count, CUlibrary handle) {
  REMORA_REQUIRE(count != nullptr);
  REMORA_USE_DRIVER(driver);
  Library* library = find_library(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(library->kernels.size());
  return CUDA_SUCCESS;
}
REMORA_API(cuLibraryEnumerateKernels)(CUkernel* kernels, unsigned int count, CUlibrary handle) {
  REMORA_REQUIRE(kernels != nullptr);
  REMORA_USE_DRIVER(driver);
  Library* library = find_library(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& [name, kernel] : library->kernels) {
    if (count-- == 0) break;
    *kernels++ = reinterpret_cast<CUkernel>(kernel.get());
  }
  return CUDA_SUCCESS;
}
REMORA_API(cuLibraryGetModule)(CUmodule* handle, CUlibrary library_handle) {
  REMORA_REQUIRE(handle != nullptr);
  REMORA_USE_CONTEXT(context);
  Library* library = find_library(library_handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  LoadedModule* module = nullptr;
  if (const CUresult result = library_module(*library, *context, module)) return result;
  Driver::get()->handles.add(module, Handles::Kind::module);
  *handle = reinterpret_cast<CUmodule>(module);
  return CUDA_SUCCESS;
}
REMORA_API(cuLibraryGetGlobal)(CUdeviceptr* address, std::size_t* bytes, CUlibrary handle, const char* name) {
  REMORA_REQUIRE(name != nullptr);
  REMORA_USE_CONTEXT(context);
  Library* library = find_library(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  LoadedModule* module = nullptr;
  if (const CUresult result = library_module(*library, *context, module)) return result;
  return global_of(*module, name, address, bytes);
}

// --- Kernels and functions ---------------------------------------------------------------------

REMORA_API(cuKernelGetFunction)(CUfunction* function, CUkernel handle) {
  REMORA_REQUIRE(function != nullptr);
  REMORA_USE_CONTEXT(context);
  if (find_kernel(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result;
  Function* found = find_function(*context, reinterpret_cast<CUfunction>(handle), result);
  if (found == nullptr) return result;
  *function = reinterpret_cast<CUfunction>(found);
  return CUDA_SUCCESS;
}
REMORA_API(cuKernelGetLibrary)(CUlibrary* library, CUkernel handle) {
  REMORA_REQUIRE(library != nullptr);
  REMORA_USE_DRIVER(driver);
  LibraryKernel* kernel = find_kernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *library = reinterpret_cast<CUlibrary>(kernel->library);
  return CUDA_SUCCESS;
}
REMORA_API(cuKernelGetName)(const char** name, CUkernel handle) {
  REMORA_REQUIRE(name != nullptr);
  REMORA_USE_DRIVER(driver);
  LibraryKernel* kernel = find_kernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = kernel->name.c_str();
  return CUDA_SUCCESS;
}
REMORA_API(cuKernelGetParamInfo)(CUkernel handle, std::size_t index, std::size_t* offset, std::size_t* size) {
  REMORA_USE_DRIVER(driver);
  LibraryKernel* kernel = find_kernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return parameter_of(*kernel->library->index->find_kernel(kernel->name), index, offset, size);
}
REMORA_API(cuKernelGetAttribute)(int* value, CUfunction_attribute attribute, CUkernel handle, CUdevice device) {
  REMORA_REQUIRE(value != nullptr);
  REMORA_USE_DEVICE(on, device);
  LibraryKernel* kernel = find_kernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = current_context();
  if (context == nullptr || context->device != on) context = &primary_context(*on);
  CUresult result;
  Function* function = find_function(*context, reinterpret_cast<CUfunction>(handle), result);
  return function == nullptr ? result : attribute_of(*function, attribute, value);
}
REMORA_API(cuKernelSetAttribute)(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
  REMORA_USE_DEVICE(on, device);
  LibraryKernel* kernel = find_kernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = current_context();
  if (context == nullptr || context->device != on) context = &primary_context(*on);
  CUresult result;
  Function* function = find_function(*context, reinterpret_cast<CUfunction>(handle), result);
  if (function == nullptr) return result;
  result = set_attribute(*function, attribute, value);
  if (result == CUDA_SUCCESS && attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    kernel->max_dynamic_shared_bytes = value;  // for modules that other contexts load later
  }
  return result;
}
REMORA_API(cuKernelSetCacheConfig)(CUkernel handle, CUfunc_cache, CUdevice device) {
  REMORA_USE_DEVICE(on, device);
  return find_kernel(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

#define REMORA_USE_FUNCTION(function, handle)                             \
  REMORA_USE_CONTEXT(context);                                            \
  CUresult function_result;                                               \
  Function* const function = find_function(*context, handle, function_result); \
  if (function == nullptr) return function_result

REMORA_API(cuFuncGetAttribute)(int* value, CUfunction_attribute attribute, CUfunction handle) {
  REMORA_REQUIRE(value != nullptr);
  REMORA_USE_FUNCTION(function, handle);
  return attribute_of(*function, attribute, value);
}
REMORA_API(cuFuncSetAttribute)(CUfunction handle, CUfunction_attribute attribute, int value) {
  REMORA_USE_FUNCTION(function, handle);
  return set_attribute(*function, attribute, value);
}
REMORA_API(cuFuncSetCacheConfig)(CUfunction handle, CUfunc_cache) {
  REMORA_USE_FUNCTION(function, handle);
  return CUDA_SUCCESS;
}
REMORA_API(cuFuncGetModule)(CUmodule* module, CUfunction handle) {
  REMORA_REQUIRE(module != nullptr);
  REMORA_USE_FUNCTION(function, handle);
  *module = reinterpret_cast<CUmodule>(function->module);
  return CUDA_SUCCESS;
}
REMORA_API(cuFuncGetName)(const char** name, CUfunction handle) {
  REMORA_REQUIRE(name != nullptr);
  REMORA_USE_FUNCTION(function, handle);
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}
REMORA_API(cuFuncGetParamInfo)(CUfunction handle, std::size_t index, std::size_t* offset, std::size_t* size) {
  REMORA_USE_FUNCTION(function, handle);
  return parameter_of(*function->signature, index, offset, size);
}
REMORA_API(cuFuncLoad)(CUfunction handle) {
  REMORA_USE_FUNCTION(function, handle);
  std::shared_ptr<const Kernel> kernel;
  return prepare(*function, kernel);
}
REMORA_API(cuFuncIsLoaded)(CUfunctionLoadingState* state, CUfunction handle) {
  REMORA_REQUIRE(state != nullptr);
  REMORA_USE_FUNCTION(function, handle);
  *state = function->loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
  return CUDA_SUCCESS;
}
