import Foundation
import Larder

/// Simulated visitors, who read some records of a catalog much more often than others.
struct Visitors<Store: DataStore<FileRecord>> {
  let store: Store

  /// The paths of the records, the most popular first.
  let paths: [StoreKey]

  /// Reads records one by one, in several tasks.
  ///
  /// - Parameters:
  ///   - count: The number of reads.
  ///   - taskCount: The number of tasks that share them.
  func look(_ count: Int, tasks taskCount: Int) async throws {
    try await share(count, among: taskCount) { _ = try await store.value(forKey: $0) }
  }

  /// Writes records again unchanged, one by one, in several tasks, which renews their time to live.
  ///
  /// - Parameters:
  ///   - count: The number of writes.
  ///   - taskCount: The number of tasks that share them.
  func renew(_ count: Int, tasks taskCount: Int) async throws {
    try await share(count, among: taskCount) { path in
      guard let record = try await store.value(forKey: path) else { return }
      try await store.setValue(record, forKey: path)
    }
  }

  private func share(
    _ count: Int, among taskCount: Int, _ visit: @escaping @Sendable (StoreKey) async throws -> Void
  ) async throws {
    guard !paths.isEmpty else { return }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<taskCount {
        group.addTask {
          for _ in stride(from: task, to: count, by: taskCount) { try await visit(popularPath()) }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Returns a random path.
  ///
  /// The path at position n is chosen n times less often than the first one.
  private func popularPath() -> StoreKey {
    let place = Int(pow(Double(paths.count), Double.random(in: 0..<1))) - 1
    return paths[min(max(place, 0), paths.count - 1)]
  }
}
