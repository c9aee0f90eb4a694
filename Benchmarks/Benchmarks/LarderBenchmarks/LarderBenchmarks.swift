import Benchmark
import Workloads

// Each measurement is one round of a workload; the name says how many operations that is.
let benchmarks: @Sendable () -> Void = {
  for workload in Comparison.workloads {
    let name = workload.operationCount == 1 ? workload.name : "\(workload.operationCount) × \(workload.name)"
    // No counts of allocations: they need a layer of the benchmark package's in the memory allocator.
    let configuration = Benchmark.Configuration(metrics: [.wallClock], maxDuration: .seconds(2), maxIterations: 50)
    let prepared = PreparedWorkload(workload)
    Benchmark(name, configuration: configuration) { _ in
      try await prepared.run()
    } setup: {
      try await prepared.prepare()
    } teardown: {
      try prepared.remove()
    }
  }
}
