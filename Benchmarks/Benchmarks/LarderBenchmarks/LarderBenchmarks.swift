import Benchmark
import Workloads

// Each measurement is one round of a workload. The name contains the number of operations in a round.
let benchmarks: @Sendable () -> Void = {
  for workload in Comparison.workloads {
    let name = workload.operationCount == 1 ? workload.name : "\(workload.operationCount) × \(workload.name)"
    // Allocations are not counted, because the benchmark package needs a layer in the memory allocator for that.
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
