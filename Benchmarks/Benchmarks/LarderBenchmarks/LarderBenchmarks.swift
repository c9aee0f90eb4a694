import Benchmark
import Workloads

// Each measurement is one round of a workload; the name says how many operations that is.
let benchmarks: @Sendable () -> Void = {
  for workload in Comparison.workloads {
    let name = workload.operationCount == 1 ? workload.name : "\(workload.operationCount) × \(workload.name)"
    // No counts of allocations: they need a layer of the benchmark package's in the memory allocator.
    let configuration = Benchmark.Configuration(
      metrics: [.wallClock, .cpuTotal], maxDuration: .seconds(2), maxIterations: 50)
    Benchmark(name, configuration: configuration) { (benchmark: Benchmark, prepared: PreparedWorkload) in
      try await prepared.round()
    } setup: {
      try await PreparedWorkload(workload)
    }
  }
}
