import Foundation
import Larder

/// Those who look at the records of a catalogue, at some of them much more often than at others.
struct Visitors<Store: DataStore<FileRecord>> {
  let store: Store

  /// What they look at, the most popular path first.
  let paths: [StoreKey]

  /// Reads records one by one, in several tasks.
  ///
  /// - Parameters:
  ///   - count: How many reads.
  ///   - taskCount: How many tasks share them.
  func look(_ count: Int, tasks taskCount: Int) async throws {
    try await share(count, among: taskCount) { _ = try await store.value(forKey: $0) }
  }

  /// Writes records again as they are, each by itself, in several tasks: whereby they live on.
  ///
  /// - Parameters:
  ///   - count: How many writes.
  ///   - taskCount: How many tasks share them.
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

  /// A path: the one at place n n times as seldom as the first one.
  private func popularPath() -> StoreKey {
    let place = Int(pow(Double(paths.count), Double.random(in: 0..<1))) - 1
    return paths[min(max(place, 0), paths.count - 1)]
  }
}
