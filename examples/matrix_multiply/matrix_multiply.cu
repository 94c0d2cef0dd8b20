// SPDX-License-Identifier: Apache-2.0
// C = A B with square tiles in dynamic shared memory; no side is a multiple of the tile.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                        \
  do {                                                                          \
    const cudaError_t cuda_status = (call);                                     \
    if (cuda_status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(cuda_status)); \
      std::exit(1);                                                             \
    }                                                                           \
  } while (0)

/// A is rows x inner, B is inner x columns. A block of tile x tile threads makes one tile of C.
__global__ void multiply(const float* a, const float* b, float* c, int rows, int inner,
                         int columns) {
  extern __shared__ float shared[];
  const int tile = blockDim.x;
  float* tile_a = shared;
  float* tile_b = shared + tile * tile;
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * tile + y;
  const int column = blockIdx.x * tile + x;

  float sum = 0;
  for (int start = 0; start < inner; start += tile) {
    tile_a[y * tile + x] = row < rows && start + x < inner ? a[row * inner + start + x] : 0;
    tile_b[y * tile + x] =
        start + y < inner && column < columns ? b[(start + y) * columns + column] : 0;
    __syncthreads();
    for (int k = 0; k < tile; ++k) sum += tile_a[y * tile + k] * tile_b[k * tile + x];
    __syncthreads();
  }
  if (row < rows && column < columns) c[row * columns + column] = sum;
}

int main() {
  const int rows = 200, inner = 150, columns = 170, tile = 16;

  // Small whole numbers: the sums are exact in a float, in whatever order they are made.
  std::vector<float> a(rows * inner), b(inner * columns), c(rows * columns);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 11) - 5;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 5 % 13) - 6;

  float *device_a, *device_b, *device_c;
  CUDA_CHECK(cudaMalloc(&device_a, a.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&device_b, b.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&device_c, c.size() * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));

  const dim3 threads(tile, tile);
  const dim3 blocks((columns + tile - 1) / tile, (rows + tile - 1) / tile);
  const size_t shared_bytes = 2 * tile * tile * sizeof(float);
  multiply<<<blocks, threads, shared_bytes>>>(device_a, device_b, device_c, rows, inner, columns);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));

  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      float expected = 0;
      for (int k = 0; k < inner; ++k) expected += a[row * inner + k] * b[k * columns + column];
      if (c[row * columns + column] != expected) {
        std::fprintf(stderr, "C[%d][%d] is %g, not %g\n", row, column, c[row * columns + column],
                     expected);
        return 1;
      }
    }
  }
  CUDA_CHECK(cudaFree(device_a));
  CUDA_CHECK(cudaFree(device_b));
  CUDA_CHECK(cudaFree(device_c));
  std::printf("matrix_multiply: %dx%d times %dx%d: correct\n", rows, inner, inner, columns);
  return 0;
}
