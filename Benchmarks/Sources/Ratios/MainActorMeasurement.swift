import Larder
import LarderJSON
import Workloads

/// Measures how long calls with many values block the main actor.
@MainActor
enum MainActorMeasurement {
  private struct Series: Codable, Sendable, Equatable {
    var values: [Double]
  }

  /// Compares the longest stall with the duration of one frame of a display.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    let name = "longest stall of the main actor, 5,000 values of 200 doubles in a JSONFileStore"
    guard isWanted(name) else { return [] }
    let folder = try ScratchFolder()
    let store = try await JSONFileStore<Series>(path: folder.newPath(), durability: .buffered)
    let changes = ChangeBatch(
      (0..<5000).map { number in
        BatchChange.set(StoreKey(integer: number), Series(values: (0..<200).map { Double($0) * 1.1 + Double(number) }))
      })
    let writing = try await longestStall { try await store.apply(changes) }
    let reading = try await longestStall { _ = try await store.entries(in: .all, limit: .max, order: .ascending) }
    try await store.close()
    try folder.remove()
    return [("apply", writing), ("entries", reading)].map { call, stall in
      Measured(
        name: "\(name), \(call)", figure: stall / .seconds(1), unit: .seconds,
        yardsticks: [Measured.Yardstick(name: "delay that a person notices", figure: 0.020, limit: 1)])
    }
  }

  /// Returns the longest pause of a task of the main actor that only yields, while another task of the actor works.
  private static func longestStall(during body: @escaping @MainActor () async throws -> Void) async throws -> Duration {
    var isOver = false
    // Before the work begins, so that its part before the first suspension counts too.
    var last = ContinuousClock.now
    var longest = Duration.zero
    let work = Task {
      defer { isOver = true }
      try await body()
    }
    while !isOver {
      await Task.yield()
      let now = ContinuousClock.now
      longest = max(longest, now - last)
      last = now
    }
    try await work.value
    return longest
  }
}
